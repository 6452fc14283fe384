"""The one-way street of docs/architecture.md: who may import whom."""

import ast
from pathlib import Path

import pytest

import hsca_fast

ROOT = Path(hsca_fast.__file__).parent
SERVANTS = {"fields", "files", "jsonl", "ids"}  # serve whoever reads or writes records
LIBRARY = {"data", "types", "config", "text", "context", "vectors", "ranking", "memory", "retrieval", "assembly"}
OUTSIDE = LIBRARY | SERVANTS | {"_native"}  # what corpus, adapters, report and evals may use

MAY_IMPORT = {
    "_native": set(),
    "_reference": {"types"},
    "data": set(),
    "fields": set(),
    "files": set(),
    "ids": set(),
    "jsonl": {"files"},
    "types": {"fields"},
    "config": {"text"},  # it checks lexicons and models, which text/ knows
    "text": {"_native", "data", "config", "types", "ids"},
    "context": {"_native", "config", "types", "text"} | SERVANTS,
    "vectors": {"_native", "data"},
    "ranking": {"_native"},
    "memory": {"_native", "text", "vectors", "ranking"} | SERVANTS,
    "retrieval": {"_native", "data", "text", "vectors", "ranking", "memory"} | SERVANTS,
    "assembly": {"_native", "text", "ranking", "memory"} | SERVANTS,
    "corpus": OUTSIDE,
    "adapters": OUTSIDE,
    "report": OUTSIDE,
    "evals": OUTSIDE | {"_reference"},
    "cli": OUTSIDE | {"corpus", "adapters", "report", "evals"},
    "__main__": {"cli"},
}


def rooms() -> list[str]:
    folders = [path.name for path in ROOT.iterdir() if path.is_dir() and any(path.rglob("*.py"))]
    return sorted({*folders, *(path.stem for path in ROOT.glob("*.py"))} - {"__init__", "__pycache__"})


def imports_of(room: str) -> set[str]:
    """The other rooms that the files of `room` name in an import, at the top or inside a function."""
    files = (ROOT / room).rglob("*.py") if (ROOT / room).is_dir() else [ROOT / f"{room}.py"]
    named = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not node.level, f"{file.name}:{node.lineno} imports relatively"
                of = node.module or ""
                modules = [f"{of}.{name.name}" for name in node.names] if of == "hsca_fast" else [of]
            elif isinstance(node, ast.Import):
                modules = [name.name for name in node.names]
            else:
                continue
            named |= {module.split(".")[1] for module in modules if module.startswith("hsca_fast.")}
    return {name for name in named if name != room and name in rooms()}


def test_every_room_has_its_rule():
    assert set(rooms()) <= set(MAY_IMPORT)


@pytest.mark.parametrize("room", rooms())
def test_imports_point_one_way(room):
    assert imports_of(room) <= MAY_IMPORT[room]
