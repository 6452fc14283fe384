"""`import hsca_fast` is light: nothing of what is behind a name is loaded before the name is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hsca_fast

HEAVY = ("scipy", "faiss", "onnxruntime", "pyarrow", "sklearn", "pandas", "polars", "markdown_it", "tokenizers")


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(found.split())


def test_use_loads_no_heavy_library():
    loaded = modules_after(
        "import hsca_fast; hsca_fast.score_texts(['One. Two.']); hsca_fast.segment('One.'); hsca_fast.default_embedder().embed_query('One.')"
    )
    assert not {name.split(".")[0] for name in loaded} & set(HEAVY)


def test_import_adds_few_modules():
    # A count of modules, not of milliseconds: machines are shared. numpy brings about 150 and everything costs accordingly.
    assert len(modules_after("import hsca_fast") - modules_after("import typing")) < 10
    added = modules_after("import hsca_fast; hsca_fast.score_texts") - modules_after("import numpy")
    assert len(added) < 60, sorted(added)


def test_import_prints_nothing_and_starts_no_thread():
    code = "import hsca_fast, threading; assert threading.active_count() == 1"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (result.stdout, result.stderr) == (b"", b"")


def test_type_checkers_and_programs_see_the_same_names():
    tree = ast.parse(Path(hsca_fast.__file__).read_text(encoding="utf-8"))
    typed = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hsca_fast.")
        for alias in node.names
    }
    assert {name: f"hsca_fast.{module}" for name, module in hsca_fast._HOMES.items()} == typed
    assert sorted(typed) == sorted(hsca_fast.__all__)


@pytest.mark.parametrize("name", [*hsca_fast.__all__, "__version__"])
def test_every_public_name_is_there(name):
    assert getattr(hsca_fast, name) is not None
    assert name in dir(hsca_fast)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'score_textz'"):
        hsca_fast.score_textz  # noqa: B018
