import base64
import gzip
import json
import re

import pytest

from hsca_fast import ConversationMap, HSCAEngine, SemanticIndex, default_embedder
from hsca_fast.cli import main

TURNS = ["The keeper lit the lamp. The lamp lit the harbour. Boats came into the harbour."] * 4


@pytest.fixture
def talk(tmp_path):
    engine = HSCAEngine(max_buffer_chunks=2)
    engine.ingest_turns(TURNS)
    engine.save(tmp_path / "talk.engine.jsonl")
    ConversationMap(engine.get_macro_context()).save(tmp_path / "talk.jsonl")
    ConversationMap(engine.get_macro_context()).save(tmp_path / "talk.npz")
    return tmp_path


@pytest.mark.parametrize("name", ["talk.engine.jsonl", "talk.jsonl", "talk.npz"])
def test_saved_conversations(talk, name):
    assert main(["report", str(talk / name), "-o", str(talk / "page.html")]) == 0
    assert 'id="map"' in (talk / "page.html").read_text(encoding="utf-8")


def test_corpus_and_turns(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("\n".join(TURNS))
    (tmp_path / "bad.parquet").write_bytes(b"no")
    out = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "a.txt"), "-o", str(out), "--title", "Mine"]) == 0
    assert "<h1>Mine</h1>" in out.read_text(encoding="utf-8")
    assert main(["report", str(tmp_path / "a.txt"), "-o", str(out), "--as", "turns"]) == 0
    assert 'id="map"' in out.read_text(encoding="utf-8")
    assert main(["report", str(tmp_path / "a.txt"), str(tmp_path / "bad.parquet"), "-o", str(out)]) == 1
    assert "bad.parquet" in capsys.readouterr().err


@pytest.mark.parametrize("extension", ["jsonl", "csv", "parquet", "txt"])
def test_a_record_is_one_turn_and_a_null_none(tmp_path, extension):
    records = ["First line.\nSecond line of the same turn.", None, "  ", "Another turn."]
    file = tmp_path / f"talk.{extension}"
    if extension == "parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pytest.importorskip("pyarrow").table({"text": records}), file)
    elif extension == "jsonl":
        file.write_text("".join(json.dumps({"text": record}) + "\n" for record in records))
    elif extension == "csv":
        file.write_text('text\n"First line.\nSecond line of the same turn."\n""\n"  "\nAnother turn.\n')
    else:
        file.write_text("First line.\n\n \nAnother turn.\n")
    out = tmp_path / "page.html"
    assert main(["report", str(file), "-o", str(out), "--as", "turns"]) == 0
    packed = re.search('id="snapshots">([^<]*)<', out.read_text(encoding="utf-8"))[1]
    snapshots = json.loads(gzip.decompress(base64.b64decode(packed)))
    texts = [
        "".join(p if isinstance(p, str) else p[0] for p in pieces) for _, chunks in snapshots for _, pieces in chunks
    ]
    first = "First line." if extension == "txt" else records[0]
    assert texts == [first, records[-1]]


def test_bad_input(tmp_path, capsys):
    text = tmp_path / "a.txt"
    text.write_text("x")
    assert main(["report", str(text), "-o", str(text)]) == 2
    assert text.read_text() == "x"
    assert main(["report", str(text), "-o", str(tmp_path / "p.html"), "--as", "conversation"]) == 1
    assert main(["report", str(text), str(text), "-o", str(tmp_path / "p.html"), "--as", "conversation"]) == 2
    assert main(["report", str(tmp_path / "none"), "-o", str(tmp_path / "p.html")]) == 1
    assert main(["report", str(text), "-o", str(tmp_path / "no" / "p.html")]) == 3
    assert "a.txt" in capsys.readouterr().err


def test_without_plotly(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("hsca_fast.cli.report.find_spec", lambda name: None)
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "p.html")]) == 2
    assert "hsca_fast[viz]" in capsys.readouterr().err


def test_an_index_and_a_query(tmp_path, capsys):
    with SemanticIndex.open(tmp_path / "talk", embedder=default_embedder()) as index:
        index.append(
            [*TURNS, "We sail at <b>dawn</b>.", "The lamp is broken.", "A broken lamp.", "Bread.", "Oil.", "Tide."]
        )
    out = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "talk"), "-o", str(out)]) == 0
    assert 'id="map"' in out.read_text(encoding="utf-8")
    assert main(["report", str(tmp_path / "talk"), "-o", str(out), "--query", "at dawn <i>"]) == 0
    page = out.read_text(encoding="utf-8").split("<script>")[0]
    assert "<h1>at dawn &lt;i&gt;</h1>" in page
    assert "We sail at &lt;b&gt;dawn&lt;/b&gt;." in page
    assert "<h2>Left out</h2>" in page
    assert main(["report", str(tmp_path), "-o", str(out), "--query", "x"]) == 2
    (tmp_path / "talk" / "manifest.json").write_text("{}")
    assert main(["report", str(tmp_path / "talk"), "-o", str(out)]) == 1
    assert "cannot read" in capsys.readouterr().err
