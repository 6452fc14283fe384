"""What the documentation shows must work."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = [
    "config",
    "ids",
    "types",
    *(f"context.{name}" for name in ("claims", "conversation_map", "engine", "provenance", "session", "words")),
    *(f"context.{name}" for name in ("beats", "boundaries", "calibration", "paragraphs", "tuning")),
    *(f"evals.{name}" for name in ("adversarial", "passages", "report")),
    *(f"text.{name}" for name in ("explanation", "lexicon", "models", "relational", "scoring", "segmentation")),
]


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module):
    result = doctest.testmod(importlib.import_module(f"hsca_fast.{module}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_readme_example(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "lamp" in capsys.readouterr().out


def test_context_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "context.md").read_text(), re.S)
    exec(compile(block, "context.md", "exec"), {})
    assert (tmp_path / "talk.engine.jsonl").exists()


def test_readme_table_is_what_the_command_prints():
    readme = (ROOT / "README.md").read_text()
    shown = [line.split() for line in readme.splitlines() if line.startswith("    examples/texts/")]
    assert len(shown) >= 5
    printed = subprocess.run(
        [sys.executable, "-m", "hsca_fast", "score", "examples/texts"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [line.split() for line in printed.splitlines()]
    for line in shown:
        assert line in rows


def test_links_between_documents():
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
