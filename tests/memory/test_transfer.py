"""Exports come back as they were; anything else is refused, and nothing is left behind."""

import base64
import hashlib
import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import EMBEDDER, content, make_store

from hsca_fast import HashEmbedder, ImportRefusedError, ModelMismatchError, SemanticIndex, verify_store
from hsca_fast.memory import records, transfer

FORMATS = ("jsonl", "parquet")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("transfer") / "store"
    make_store(path)
    return path


def exported(sound, tmp_path, kind, **options):
    out = tmp_path / f"out.{kind}"
    with SemanticIndex.open(sound, embedder=EMBEDDER, mode="r") as index:
        n = index.export(out, **options)
    return out, n


def without_order(found):
    """What must be the same when deleted records were left out: all but numbers that count them."""
    found = dict(found)
    found["records"] = [(r.id, r.text, r.metadata, r.timestamp, r.reference_count, r.last_access, r.status, r.role,
                         r.turn_id, r.sentence_id, r.n_tokens, r.superseded_by, r.compacted_into, r.reason) for r in found["records"]]  # fmt: skip
    del found["by id"]
    found["counts"] = found["counts"][:3]
    return found


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("embeddings", [False, True])
def test_round_trip(sound, tmp_path, kind, embeddings):
    out, n = exported(sound, tmp_path, kind, embeddings=embeddings)
    assert n == 10
    with SemanticIndex.import_(out, tmp_path / "new", embedder=EMBEDDER) as index:
        assert index.mode == "a"
        assert index.query("lamps", vector=False)
    assert without_order(content(tmp_path / "new")) == without_order(content(sound))
    assert verify_store(tmp_path / "new").ok
    again = tmp_path / f"again.{kind}"
    with SemanticIndex.open(tmp_path / "new", embedder=EMBEDDER) as index:
        index.export(again, embeddings=embeddings)
    if kind == "jsonl":
        lines = [out.read_text().splitlines()[1:-1], again.read_text().splitlines()[1:-1]]
        assert lines[0] == lines[1]


@pytest.mark.parametrize("kind", FORMATS)
def test_with_deleted_records_even_the_numbers_stay(sound, tmp_path, kind):
    out, n = exported(sound, tmp_path, kind, embeddings=True, include_deleted=True)
    assert n == 11
    SemanticIndex.import_(out, tmp_path / "new", embedder=EMBEDDER).close()
    before, after = content(sound), content(tmp_path / "new")
    assert before.pop("counts")[:3] == after.pop("counts")[:3]
    assert before == after


def test_deleted_text_does_not_leave_the_store(sound, tmp_path):
    out, _ = exported(sound, tmp_path, "jsonl")
    assert "and one more" not in out.read_text()


def test_vectors_of_another_model(sound, tmp_path):
    out, _ = exported(sound, tmp_path, "jsonl", embeddings=True)
    with pytest.raises(ModelMismatchError, match=r"hash-4 \(4\), query model: hash-5 \(5\)"):
        SemanticIndex.import_(out, tmp_path / "new", embedder=HashEmbedder(5))
    assert not (tmp_path / "new").exists()
    with SemanticIndex.import_(out, tmp_path / "new", embedder=HashEmbedder(5), regenerate=True) as index:
        ids = [record.id for batch in index.iter_records() for record in batch]
        texts = [record.text for record in index.get_many(ids)]
        assert np.array_equal(index.vectors(ids), HashEmbedder(5).embed_documents(texts))
    plain, _ = exported(sound, tmp_path, "parquet")
    SemanticIndex.import_(plain, tmp_path / "plain", embedder=HashEmbedder(5)).close()


# ---- what is refused


def sealed(lines):
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return body + json.dumps({"end": hashlib.sha256(body).hexdigest()}).encode() + b"\n"


def altered(lines, change):
    lines = json.loads(json.dumps(lines))
    change(lines)
    return sealed(lines)


def put(place, value):
    def change(lines):
        target = lines
        for key in place[:-1]:
            target = target[key]
        target[place[-1]] = value

    return change


REFUSED = {
    "no header": (lambda lines: lines.pop(0), "header is missing"),
    "another's format": (put((0, "format"), "chroma"), "header is missing"),
    "newer": (put((0, "version"), 2), "format version is 2"),
    "too few": (put((0, "n_records"), 99), "there are 10 records; the header tells of 99"),
    "too many": (put((0, "n_records"), 3), "more than the 3 records"),
    "negative": (put((0, "n_records"), -1), "header is damaged"),
    "twice": (lambda lines: put((2, "id"), lines[1]["id"])(lines), "is there twice"),
    "path": (put((1, "id"), "../../etc/passwd"), "32 hexadecimal digits"),
    "unknown field": (put((1, "cache"), "index.faiss"), "does not have just the fields"),
    "missing field": (lambda lines: lines[1].pop("role"), "does not have just the fields"),
    "not a record": (put((1,), ["x"]), "does not have just the fields"),
    "text": (put((1, "text"), 3), "text must be str, not int"),
    "surrogate": (put((1, "text"), "\ud800"), "lone surrogate"),
    "metadata": (put((1, "metadata"), [1]), "metadata must be a mapping"),
    "timestamp": (put((1, "timestamp"), "now"), "timestamp must be a number"),
    "status": (put((1, "status"), "gone"), "record 0: status must be one of live, archived, deleted, not 'gone'"),
    "count": (put((1, "reference_count"), -4), "reference_count must be at least 0"),
    "huge count": (put((1, "n_tokens"), 2**70), "n_tokens must be at"),
    "vector": (put((1, "vector"), base64.b64encode(b"\0" * 8).decode()), "vector of shape"),
    "not base64": (put((1, "vector"), "@@@"), "base64"),
    "nan": (put((1, "vector"), base64.b64encode(np.full(4, np.nan, "<f4").tobytes()).decode()), "not finite"),
    "access": (put((-1,), {"access": [1.0, "q", "s", ["f" * 32]]}), "ffff"),
    "order": (lambda lines: lines.insert(1, {"access": [1.0, "q", "s", []]}), "behind the accesses"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(sound, tmp_path, name):
    out, _ = exported(sound, tmp_path, "jsonl", embeddings=True)
    lines = [json.loads(line) for line in out.read_text().splitlines()[:-1]]
    change, message = REFUSED[name]
    out.write_bytes(altered(lines, change))
    with pytest.raises(ImportRefusedError, match=message):
        SemanticIndex.import_(out, tmp_path / "new", embedder=EMBEDDER)
    assert sorted(os.listdir(tmp_path)) == ["out.jsonl"]


@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_files_are_refused(sound, tmp_path, kind):
    out, _ = exported(sound, tmp_path, kind, embeddings=True)
    data = out.read_bytes()
    expected = without_order(content(sound))
    noticed = 0
    for at in range(0, len(data), max(1, len(data) // 60)):
        cut = at % 2
        out.write_bytes(data[:at] if cut else data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        try:
            SemanticIndex.import_(out, tmp_path / "new", embedder=EMBEDDER).close()
        except (ImportRefusedError, ModelMismatchError):
            noticed += 1
            assert sorted(os.listdir(tmp_path)) == [f"out.{kind}"]
        else:
            assert kind == "parquet"  # some of its bytes say nothing
            assert without_order(content(tmp_path / "new")) == expected
            shutil.rmtree(tmp_path / "new")
    assert noticed >= (60 if kind == "jsonl" else 30)


def test_oversized_lines_are_refused(sound, tmp_path, monkeypatch):
    out, _ = exported(sound, tmp_path, "jsonl")
    monkeypatch.setattr(transfer, "MAX_LINE_BYTES", 200)
    with pytest.raises(ImportRefusedError, match="line 1 is longer than 200 bytes"):
        SemanticIndex.import_(out, tmp_path / "new", embedder=EMBEDDER)


@pytest.fixture
def small_limits(monkeypatch):
    """A 64th of the real ones, in the same proportion."""
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", records.MAX_RECORD_BYTES // 64)
    monkeypatch.setattr(transfer, "MAX_LINE_BYTES", transfer.MAX_LINE_BYTES // 64)
    return records.MAX_RECORD_BYTES, transfer.MAX_LINE_BYTES


def test_oversized_records_of_parquet_are_refused(sound, tmp_path, small_limits):
    """A text that repeats is there once: a few kilobytes can ask for gigabytes."""
    out, n = exported(sound, tmp_path, "parquet")
    table = pq.read_table(out)
    for size, message in (
        (small_limits[0], "record 0 is larger than a record may be"),
        (small_limits[1], "record 0 has"),
    ):
        large = table.set_column(table.schema.get_field_index("text"), "text", pa.array(["x" * (size + 1)] * n))
        pq.write_table(large.replace_schema_metadata(table.schema.metadata), out)
        assert out.stat().st_size < small_limits[0]
        with pytest.raises(ImportRefusedError, match=message):
            SemanticIndex.import_(out, tmp_path / "new", embedder=EMBEDDER)
    assert sorted(os.listdir(tmp_path)) == ["out.parquet"]


def test_parquet_is_read_in_parts_that_memory_can_hold(sound, tmp_path, monkeypatch):
    out, n = exported(sound, tmp_path, "parquet")
    monkeypatch.setattr(transfer, "MAX_LINE_BYTES", 1 << 20)
    batch = pa.record_batch({"text": pa.array(["x" * 400_000, None, "y" * 700_000, "z"]).dictionary_encode()})
    assert [part.num_rows for part in transfer._light_parts(batch, 0)] == [2, 2]
    with SemanticIndex.import_(out, tmp_path / "new", embedder=EMBEDDER) as index:
        assert index.stats().records == n


@pytest.mark.parametrize("kind", FORMATS)
def test_the_largest_record_comes_back(tmp_path, small_limits, kind):
    """Every character of it escaped by JSON: a backup must not be refused when it is needed."""
    text = "\0" * (small_limits[0] - 3)
    with SemanticIndex.open(tmp_path / "store", embedder=EMBEDDER) as index:
        index.append([text], turn_id="t")
        with pytest.raises(ValueError, match=rf"chunks\[1\] has more than {small_limits[0]} bytes"):
            index.append(["lamp", text], turn_id="turn")
        index.export(tmp_path / f"out.{kind}", embeddings=True)
    with SemanticIndex.import_(tmp_path / f"out.{kind}", tmp_path / "new", embedder=EMBEDDER) as index:
        (record,) = next(index.iter_records())
    assert record.text == text


def test_sources_and_targets(sound, tmp_path):
    out, _ = exported(sound, tmp_path, "jsonl")
    (tmp_path / "here").mkdir()
    with pytest.raises(FileExistsError, match="is there already"):
        SemanticIndex.import_(out, tmp_path / "here", embedder=EMBEDDER)
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(ImportRefusedError, match="is not a file"):
        SemanticIndex.import_(tmp_path / "folder.jsonl", tmp_path / "new", embedder=EMBEDDER)
    with pytest.raises(ValueError, match=r"are \.jsonl or \.parquet files"):
        SemanticIndex.import_(sound / "catalog.sqlite3", tmp_path / "new", embedder=EMBEDDER)
    with pytest.raises(FileNotFoundError):
        SemanticIndex.import_(tmp_path / "no.jsonl", tmp_path / "new", embedder=EMBEDDER)
    with (
        SemanticIndex.open(sound, embedder=EMBEDDER) as index,
        pytest.raises(ValueError, match=r"are \.jsonl or \.parquet"),
    ):
        index.export(tmp_path / "out.pickle")
    for name, data in (("a.jsonl", b"\x80\x04pickle"), ("a.parquet", b"IxFI" + b"\0" * 100), ("b.jsonl", b"")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ImportRefusedError):
            SemanticIndex.import_(tmp_path / name, tmp_path / "new", embedder=EMBEDDER)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", FORMATS)
def test_an_export_is_one_state(tmp_path, monkeypatch, kind):
    """What becomes of records while it is written is not in it."""
    with SemanticIndex.open(tmp_path / "store", embedder=EMBEDDER) as index:
        ids = index.append(["lamp", "gull"])
        written = transfer._as_dict

        def and_delete(record):
            index.touch(ids, query="meanwhile")
            index.delete([ids[1]])
            index.append(["fog"])
            return written(record)

        monkeypatch.setattr(transfer, "_as_dict", and_delete)
        assert index.export(tmp_path / f"out.{kind}") == 2
    with SemanticIndex.import_(tmp_path / f"out.{kind}", tmp_path / "new", embedder=EMBEDDER) as index:
        records = [record for batch in index.iter_records() for record in batch]
        assert [(record.text, record.reference_count) for record in records] == [("lamp", 0), ("gull", 0)]
        assert not list(index.access_log())


@pytest.mark.parametrize("kind", FORMATS)
def test_exports_of_before_there_were_reasons(sound, tmp_path, monkeypatch, kind):
    fields = tuple(name for name in transfer._FIELDS if name != "reason")
    monkeypatch.setattr(transfer, "_FIELDS", fields)
    out, n = exported(sound, tmp_path, kind)
    monkeypatch.undo()
    with SemanticIndex.import_(out, tmp_path / "new", embedder=EMBEDDER) as index:
        assert index.stats().records == n


def test_an_export_is_whole_or_not_there(sound, tmp_path, monkeypatch):
    out = tmp_path / "out.jsonl"
    out.write_text("before")
    monkeypatch.setattr(transfer, "_as_dict", lambda record: 1 / 0)
    with SemanticIndex.open(sound, embedder=EMBEDDER, mode="r") as index, pytest.raises(ZeroDivisionError):
        index.export(out)
    assert out.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.jsonl"]


# ---- eviction, compaction, numbers


def test_eviction(tmp_path):
    with SemanticIndex.open(tmp_path, embedder=EMBEDDER) as index:
        ids = index.append(["aaaa"] * 6)
        index.touch(ids[:2], at=1.0)
        index.touch(ids[1:2], at=2.0)
        index.touch(ids[2:3], at=3.0)
        index.archive(ids[5:], reason="x")
        order = [ids[3], ids[4], ids[0], ids[2], ids[1]]
        generation = index.generation
        for limit in range(7):
            plan = index.evict(max_records=limit)
            assert plan.ids == tuple(order[: max(0, 5 - limit)])
            assert (plan.n_before, plan.n_after, plan.dry_run) == (5, min(5, limit), True)
        assert index.evict(max_bytes=45).ids == tuple(order[:3])
        assert index.evict(max_bytes=45).bytes_after == 40
        assert index.evict(max_records=9, max_bytes=0).ids == tuple(order)
        assert index.generation == generation
        done = index.evict(max_records=3, dry_run=False)
        assert done.ids == tuple(order[:2])
        assert index.count() == 3
        assert index.get(order[0]).status == "archived"
        index.restore(done.ids)
        assert index.count() == 5
        index.evict(max_records=4, action="delete", dry_run=False)
        assert index.get(order[0]).status == "deleted"
        for options, message in (
            ({}, "a limit is needed"),
            ({"max_records": -1}, "max_records must be at least 0, not -1"),
            ({"max_records": 1, "action": "burn"}, "action must be"),
        ):
            with pytest.raises(ValueError, match=message):
                index.evict(**options)


def test_compaction_changes_no_record(tmp_path):
    with SemanticIndex.open(tmp_path, embedder=EMBEDDER) as index:
        ids = [id_ for i in range(120) for id_ in index.append([f"text {i}"])]
        index.append([f"more {i}" for i in range(5000)])
        with SemanticIndex.open(tmp_path, embedder=EMBEDDER, mode="r") as reader:
            before = index.stats()
            hits = [hit.id for hit in reader.query("text 17", lexical=False)]
            vectors = reader.vectors(ids)
            after = index.compact()
            assert (before.blocks, after.blocks, after.not_indexed) == (122, 2, 0)
            assert [hit.id for hit in reader.query("text 17", lexical=False)] == hits
            assert reader.query("text 17") == index.query("text 17")
            assert np.array_equal(reader.vectors(ids), vectors)
            index.append(["later"])
            assert reader.query("later", k=1, vector=False)[0].text == "later"
        assert (after.records, after.live, after.vector_bytes) == (5120, 5120, 5120 * 16)
        assert index.compact().blocks == 3
    assert verify_store(tmp_path).ok
