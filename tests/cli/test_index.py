"""`hsca index`, from a first text to a repaired store."""

import io
import json
import sys

import pytest

from hsca_fast import HashEmbedder, SemanticIndex
from hsca_fast.cli import main

NOTES = "The lamp of the tower is broken.\nIt went out at night.\n\nWe sail at dawn.\n\n\nBring rope.\n"


@pytest.fixture
def hsca(capsys):
    def run(*args, code=0):
        assert main(["index", *map(str, args)]) == code
        return capsys.readouterr().out

    return run


@pytest.fixture
def store(tmp_path, hsca):
    (tmp_path / "notes.txt").write_text(NOTES)
    said = hsca("add", tmp_path / "store", tmp_path / "notes.txt", "--metadata", "wing=sea", "--role", "user", "--json")
    assert json.loads(said) == {"store": str(tmp_path / "store"), "chunks_read": 3, "chunks_added": 3}
    return tmp_path / "store"


def found(hsca, *args):
    return [hit["text"] for hit in json.loads(hsca("search", *args, "--json"))["hits"]]


def test_add_and_search(store, hsca, tmp_path):
    table = hsca("search", store, "which lamp?", "-k", 2)
    assert table.splitlines()[0].split() == ["score", "cosine", "bm25", "id", "text"]
    assert table.splitlines()[1].endswith("The lamp of the tower is broken. It went out at night.")
    lines = [
        {
            "text": "a lamp",
            "role": "assistant",
            "metadata": {"wing": "home"},
            "id": "0" * 32,
            "timestamp": 5.0,
            "more": 1,
        }
    ]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps(line) + "\n\n" for line in lines))
    hsca("add", store, tmp_path / "chat.jsonl")
    assert found(hsca, store, "lamp", "--where", '{"wing": "home"}') == ["a lamp"]
    assert found(hsca, store, "lamp", "--arm", "lexical", "-k", 1) == ["a lamp"]
    assert "chunks added  0" in hsca("add", store, tmp_path / "chat.jsonl", "--skip-known")
    stats = json.loads(hsca("stats", store, "--json"))
    assert (stats["records"], stats["live"], stats["model"]) == (4, 4, "hsca-static-minilm-256 (256)")
    assert "vector bytes" in hsca("stats", store)


def test_standard_input(store, hsca, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'"one"\n{"text": "two", "turn_id": "t"}\n')))
    assert "chunks added  2" in hsca("add", store, "-", "--input-format", "jsonl")


def test_verify_repair_compact(store, hsca):
    assert "nothing is wrong" in hsca("verify", store)
    assert "blocks" in hsca("compact", store)
    vectors = store / "seg-000001.vec"
    data = bytearray(vectors.read_bytes())
    data[5] ^= 1
    vectors.write_bytes(data)
    assert "the vectors of records 1 to 3 are damaged" in hsca("verify", store, code=1)
    assert json.loads(hsca("verify", store, "--json", code=1))["ok"] is False
    report = json.loads(hsca("repair", store, "--json"))
    assert (report["repaired"], report["lost"], report["vectors_lost"]) == (True, [], [])
    assert "nothing is wrong" in hsca("verify", store)
    assert found(hsca, store, "which lamp?", "-k", 1, "--arm", "vector")[0].startswith("The lamp")


def test_what_cannot_be_saved_is_told(tmp_path, hsca):
    with SemanticIndex.open(tmp_path / "store", embedder=HashEmbedder(8)) as index:
        index.append(["one"])
    (tmp_path / "store" / "seg-000001.vec").write_bytes(b"")
    assert "vectors lost  1" in hsca("repair", tmp_path / "store", code=1)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_export_and_import(store, hsca, tmp_path, kind):
    out = tmp_path / f"out.{kind}"
    assert json.loads(hsca("export", store, out, "--embeddings", "--json"))["records"] == 3
    assert "records  3" in hsca("import", out, tmp_path / "copy")
    assert found(hsca, tmp_path / "copy", "rope") == found(hsca, store, "rope")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["search", "{tmp}/nothing", "x"], "is not a store"),
        (["verify", "{tmp}/nothing"], "is not a store"),
        (["search", "{store}", "x", "--where", "{"], "--where is not JSON"),
        (["search", "{store}", "x", "--where", '{"$no": 1}'], "unknown operator '$no'"),
        (["search", "{store}", "x", "-k", "-1"], "k must be at least 0"),
        (["add", "{store}", "{tmp}/none.txt"], "none.txt"),
        (["add", "{store}", "{tmp}/notes.txt", "--metadata", "x"], "--metadata x: it must be KEY=VALUE"),
        (["add", "{store}", "{tmp}/notes.txt", "--input-format", "jsonl"], "line 1 is not JSON"),
        (["export", "{store}", "{tmp}/out.csv"], ".jsonl or .parquet"),
        (["import", "{tmp}/notes.txt", "{tmp}/new"], ".jsonl or .parquet"),
        (["import", "{tmp}/bad.jsonl", "{tmp}/new"], "not an export"),
        (["import", "{tmp}/bad.jsonl", "{store}"], "is there already"),
        (["search", "{tmp}/other", "x"], "ingest model: hash-8"),
    ],
)  # fmt: skip
def test_usage_errors(store, tmp_path, capsys, args, message):
    (tmp_path / "bad.jsonl").write_text("{}\n")
    SemanticIndex.open(tmp_path / "other", embedder=HashEmbedder(8)).close()
    capsys.readouterr()
    assert main(["index", *(arg.replace("{tmp}", str(tmp_path)).replace("{store}", str(store)) for arg in args)]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_a_locked_store(store, tmp_path, capsys):
    from hsca_fast import default_embedder

    with SemanticIndex.open(store, embedder=default_embedder()):
        capsys.readouterr()
        assert main(["index", "add", str(store), str(tmp_path / "notes.txt")]) == 2
        assert "is written by process" in capsys.readouterr().err
        assert main(["index", "search", str(store), "rope"]) == 0


@pytest.mark.parametrize("action", ["", "add", "search", "stats", "verify", "repair", "compact", "export", "import"])
def test_help(action, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["index", *action.split(), "--help"])
    assert stopped.value.code == 0
    assert "usage: hsca index" in capsys.readouterr().out
