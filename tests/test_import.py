"""`import hsca_fast` is light: numpy and our own code."""

import subprocess
import sys

HEAVY = ("scipy", "faiss", "onnxruntime", "pyarrow", "sklearn", "pandas", "polars")


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(found.split())


def test_import_loads_no_heavy_library():
    loaded = modules_after("import hsca_fast; hsca_fast.score_texts(['One. Two.']); hsca_fast.segment('One.')")
    assert not {name.split(".")[0] for name in loaded} & set(HEAVY)


def test_import_adds_few_modules_to_numpy():
    # A count of modules, not of milliseconds: machines are shared. numpy brings about 150 and everything costs accordingly.
    added = modules_after("import hsca_fast") - modules_after("import numpy")
    foreign = {name for name in added if name.split(".")[0] != "hsca_fast"}
    assert len(foreign) < 42, sorted(foreign)


def test_import_prints_nothing_and_starts_no_thread():
    code = "import hsca_fast, threading; assert threading.active_count() == 1"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (result.stdout, result.stderr) == (b"", b"")
