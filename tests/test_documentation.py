"""What the documentation shows must work."""

import doctest
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hsca_fast

ROOT = Path(__file__).parents[1]
PACKAGE = Path(hsca_fast.__file__).parent
MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


def test_examples_are_found():
    assert {"hsca_fast.config", "hsca_fast.types", "hsca_fast.text.scoring"} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module):
    try:
        imported = importlib.import_module(module)
    except ImportError as error:
        if not module.startswith("hsca_fast.adapters."):
            raise
        pytest.skip(str(error))
    result = doctest.testmod(imported)
    assert result.attempted > 0
    assert result.failed == 0


def test_readme_example(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "lamp" in capsys.readouterr().out


PAGES = sorted(page.stem for page in (ROOT / "docs").glob("*.md") if "```python\n" in page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_page_examples(page, tmp_path, monkeypatch):
    """The blocks of a page run one after the other; one that begins with "# needs PACKAGE" is left out without it."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"), re.S):
        needs = re.match(r"# needs (\w+)", block)
        if needs is None or importlib.util.find_spec(needs[1]):
            exec(compile(block, f"{page}.md", "exec"), names)
    names.clear()  # a function that DuckDB still held at the end of the process would be reported as a leak


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
