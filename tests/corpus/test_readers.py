import csv
import io
import json
import os
import sys
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast.corpus import readers
from hsca_fast.corpus.readers import CorpusReader, InputError, cut_text, find_files


def read(*paths, **options):
    """Every (source, row, text) of the paths, and the reasons of what failed."""
    reasons = []
    reader = CorpusReader([str(path) for path in paths], on_error=lambda e: reasons.append(str(e)), **options)
    found = []
    for batch in reader:
        texts = batch.texts if isinstance(batch.texts, list) else batch.texts.to_pylist()
        texts = [None if i in batch.nulls else text for i, text in enumerate(texts)]
        assert len(texts) == len(batch.sources) == len(batch.rows)
        found += zip(batch.sources, batch.rows.tolist(), texts, strict=True)
    return found, reasons, reader


TEXTS = ['One. Two, "three".', "", "line\nbreak\r\nand\ttab", "Zażółć 漢字 🎉", "a\0b"]


def write_jsonl(path, texts):
    path.write_text("".join(json.dumps({"id": 1, "text": text}) + "\n" for text in texts))


def write_csv(path, texts):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "text"), *((i, text) for i, text in enumerate(texts))])


def write_parquet(path, texts):
    pq.write_table(pa.table({"id": range(len(texts)), "text": pa.array(texts, pa.string())}), path)


WRITERS = {"jsonl": write_jsonl, "ndjson": write_jsonl, "csv": write_csv, "parquet": write_parquet}


@pytest.mark.parametrize("extension", WRITERS)
def test_records_come_back_as_written(tmp_path, extension):
    path = tmp_path / f"data.{extension}"
    WRITERS[extension](path, TEXTS)
    found, reasons, reader = read(path)
    assert found == [(str(path), i, text) for i, text in enumerate(TEXTS)]
    assert reasons == []
    assert reader.n_input_bytes == path.stat().st_size


def test_text_file_is_one_text(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes("# Title\r\n\r\nBody 漢\0.".encode())
    assert read(path)[0] == [(str(path), 0, "# Title\r\n\r\nBody 漢\0.")]


def test_batches_hold_many_small_files_and_keep_order(tmp_path):
    for i in range(10):
        (tmp_path / f"{i}.txt").write_text("x" * 10)
    write_parquet(tmp_path / "4.parquet", ["p"])
    batches = list(CorpusReader([str(tmp_path)], batch_bytes=30))
    assert [len(batch.sources) for batch in batches] == [3, 1, 1, 3, 3]
    sources = [os.path.basename(source) for batch in batches for source in batch.sources]
    assert sources == sorted(sources)
    assert sum(batch.n_bytes for batch in batches) == 101


def test_batches_are_bounded_in_rows(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", ["t"] * (readers.BATCH_ROWS + 1))
    assert [len(b.sources) for b in CorpusReader([str(tmp_path)])] == [readers.BATCH_ROWS, 1]


# ---- directories


def test_directory_is_sorted_recursive_and_passes_over_the_rest(tmp_path):
    for name in ["b.txt", "a.md", "sub/c.TXT", ".hidden.txt", ".git/d.txt", "e.png", "f"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("t")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "loop").symlink_to(tmp_path)
    expected = [str(tmp_path / name) for name in ["a.md", "b.txt", "sub/c.TXT"]]
    assert list(find_files([str(tmp_path)])) == expected


def test_directory_with_nothing_to_read_is_an_error(tmp_path):
    (tmp_path / "a.png").touch()
    with pytest.raises(InputError, match=r"no files in this directory.*\.parquet"):
        list(find_files([str(tmp_path)]))


def test_broken_link_and_missing_file_are_named_and_the_rest_read(tmp_path):
    (tmp_path / "a.txt").symlink_to("nowhere")
    (tmp_path / "b.txt").write_text("fine")
    found, reasons, _ = read(tmp_path, tmp_path / "gone.xyz")
    assert [text for _, _, text in found] == ["fine"]
    assert reasons == [
        f"{tmp_path}/a.txt: No such file or directory",
        f"{tmp_path}/gone.xyz: No such file or directory",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission_denied_is_named(tmp_path):
    (tmp_path / "a.txt").touch(mode=0)
    (tmp_path / "closed").mkdir(mode=0)
    _, reasons, _ = read(tmp_path / "a.txt", tmp_path / "closed")
    assert reasons == [f"{tmp_path}/a.txt: Permission denied", f"{tmp_path}/closed: Permission denied"]


def test_unknown_extension_needs_an_input_format(tmp_path):
    path = tmp_path / "notes.log"
    path.write_text("text")
    assert "unknown extension '.log'" in read(path)[1][0]
    assert read(path, input_format="txt")[0] == [(str(path), 0, "text")]


def test_file_name_that_is_not_utf8(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")
    Path(path).write_text("text")
    (found,), _, _ = read(path)
    assert found == (f"{tmp_path}/\\xff.txt", 0, "text")
    found[0].encode()


# ---- cutting


@given(st.text(alphabet="ab \t\n\ré漢🎉\ufeff", max_size=200), st.integers(4, 40))
def test_parts_concatenate_to_the_text_and_split_no_character(text, chunk_bytes):
    parts = list(cut_text(io.BytesIO(text.encode()), chunk_bytes=chunk_bytes))
    assert "".join(part.decode() for part in parts) == text.removeprefix("\ufeff")
    assert all(0 < len(part) <= chunk_bytes for part in parts[1:])


@given(st.binary(max_size=200), st.integers(4, 40))
def test_parts_of_any_bytes_concatenate(data, chunk_bytes):
    parts = list(cut_text(io.BytesIO(data), chunk_bytes=chunk_bytes))
    assert b"".join(parts) == data.removeprefix(b"\xef\xbb\xbf")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("aa\n\nb b\nc", ["aa\n\n", "b b\nc"]),
        ("aa\r\n\r\nb\nc", ["aa\r\n\r\n", "b\nc"]),
        ("a a\nb bbb", ["a a\n", "b bbb"]),
        ("aa aa aaa", ["aa aa ", "aaa"]),
        ("aaaaaaaaa", ["aaaaaaaa", "a"]),
        ("漢漢漢", ["漢漢", "漢"]),
        ("aaaaaaaa", ["aaaaaaaa"]),
        ("", [""]),
    ],
)
def test_cut_prefers_paragraph_then_line_then_space_then_character(text, parts):
    assert [part.decode() for part in cut_text(io.BytesIO(text.encode()), chunk_bytes=8)] == parts


def test_cut_file_gives_a_row_for_each_part(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\n\ntwo\n\nthree")
    assert [(row, text) for _, row, text in read(path, chunk_bytes=6)[0]] == [
        (0, "one\n\n"),
        (1, "two\n\n"),
        (2, "three"),
    ]


def test_chunks_below_a_character_are_refused():
    with pytest.raises(ValueError, match="chunk_bytes is 3"):
        CorpusReader([], chunk_bytes=3)


@pytest.mark.parametrize("extension", ["txt", "jsonl", "csv"])
def test_memory_does_not_grow_with_the_file(tmp_path, extension):
    path = tmp_path / f"big.{extension}"
    line = "The quick brown fox jumps over the lazy dog near the river bank. " * 15
    records = {
        "txt": f"{line}\n",
        "jsonl": json.dumps({"text": line}) + "\n",
        "csv": f"{line}\n",
    }
    with path.open("w") as file:
        file.write("text\n" if extension == "csv" else "")
        for _ in range(40):
            file.write(records[extension] * 1024)
    assert path.stat().st_size > 38e6
    tracemalloc.start()
    n_bytes = sum(batch.n_bytes for batch in CorpusReader([str(path)], chunk_bytes=1 << 20, batch_bytes=2 << 20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_bytes > 38e6
    assert peak < 12e6


# ---- encodings


@pytest.mark.parametrize(("extension", "content"), [("txt", "t"), ("jsonl", '{"text": "t"}'), ("csv", "text\nt\n")])
def test_byte_order_mark_is_dropped(tmp_path, extension, content):
    path = tmp_path / f"a.{extension}"
    path.write_bytes(b"\xef\xbb\xbf" + content.encode())
    assert read(path)[0] == [(str(path), 0, "t")]


BAD = b"bad \xff\xfe \xef\xbf\xbd \xe6\xbc"  # three faults, and one replacement character of its own


def bad_file(folder, extension):
    path = folder / f"a.{extension}"
    if extension == "txt":
        path.write_bytes(BAD)
    elif extension == "jsonl":
        path.write_bytes(b'{"text": "good"}\n{"text": "' + BAD + b'"}\n{"text": "last"}\n')
    elif extension == "csv":
        path.write_bytes(b"id,text\n\xff,good\n2," + BAD + b"\n3,last\n")
    else:
        texts = pa.array([b"good", BAD, b"last", None], pa.binary())
        buffers = texts.buffers()
        pq.write_table(pa.table({"text": pa.Array.from_buffers(pa.string(), 4, buffers)}), path)
    return path


@pytest.mark.parametrize("extension", ["txt", "jsonl", "csv", "parquet"])
@pytest.mark.parametrize("errors", ["replace", "strict", "skip"])
def test_invalid_utf8(tmp_path, extension, errors):
    found, reasons, reader = read(bad_file(tmp_path, extension), errors=errors)
    others = {"txt": [], "parquet": ["good", "last", None]}.get(extension, ["good", "last"])
    texts = [text for _, _, text in found]
    bad_row = 0 if extension == "txt" else 1
    if errors == "replace":
        assert texts[bad_row] == "bad \ufffd\ufffd \ufffd \ufffd"
        del texts[bad_row]
    assert texts == others
    assert reader.n_replaced == (3 if errors == "replace" else 0)
    assert reader.n_skipped == (1 if errors == "skip" else 0)
    assert len(reasons) == (1 if errors == "strict" else 0)
    if errors != "replace" and extension != "txt":
        assert found[1][1] == 2  # the rows that remain keep their numbers
    if errors == "strict":
        assert "invalid UTF-8" in reasons[0]


# ---- records that cannot be read


def test_bad_json_lines_are_named_and_the_rest_read(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = ['{"text": "a"}', "", "{nope", "[1]", '{"id": 1}', '{"text": 5}', '{"text": null}', "[" * 100_000]
    path.write_text("\n".join([*lines, '{"text": "z"}']))
    found, reasons, _ = read(path)
    assert [(row, text) for _, row, text in found] == [(0, "a"), (5, None), (7, "z")]
    expected = [
        "line 3: not valid JSON: Expecting property name",
        "line 4: a JSON array, expected an object",
        "line 5: no column 'text'; it has 'id'",
        "line 6: column 'text' is a JSON number, expected a string",
        "line 8: not readable JSON",
    ]
    assert len(reasons) == len(expected)
    assert all(reason.startswith(f"{path}: {start}") for reason, start in zip(reasons, expected, strict=True))


def test_lone_surrogates_in_json_reach_the_scorer(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "\\ud800"}')
    assert read(path)[0][0][2] == "\ud800"


def test_records_beyond_the_limit_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "RECORD_BYTES", 100)
    write_jsonl(tmp_path / "a.jsonl", ["a", "b" * 1000, "c"])
    found, reasons, _ = read(tmp_path / "a.jsonl")
    assert [(row, text) for _, row, text in found] == [(0, "a"), (2, "c")]
    assert reasons == [f"{tmp_path}/a.jsonl: line 2: longer than 100 bytes"]
    write_csv(tmp_path / "a.csv", ["a", "b" * 1000, "c"])
    found, reasons, _ = read(tmp_path / "a.csv")
    assert [text for _, _, text in found] == ["a"]
    assert reasons == [f"{tmp_path}/a.csv: line 3: longer than 100 bytes; the rest is not read"]


def test_unclosed_quote_does_not_swallow_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "RECORD_BYTES", 200_000)
    before = csv.field_size_limit(200_000)
    try:
        (tmp_path / "a.csv").write_text('text\n"open\n' + "x\n" * 150_000)
        found, reasons, _ = read(tmp_path / "a.csv")
    finally:
        csv.field_size_limit(before)
    assert "field larger than field limit" in reasons[0]
    assert len(found) > 10_000


def test_big_csv_field(tmp_path):
    write_csv(tmp_path / "a.csv", ["x y " * 500_000])
    assert len(read(tmp_path / "a.csv")[0][0][2]) == 2_000_000


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no header line"),
        ("id,body\n1,x\n", "no column 'text'; it has 'id', 'body'"),
        ("id,text\n1,a,b\n", "line 2: 3 fields where the header has 2"),
    ],
)
def test_bad_csv(tmp_path, content, reason):
    path = tmp_path / "a.csv"
    path.write_text(content)
    assert read(path)[:2] == ([], [f"{path}: {reason}"])


# ---- Parquet


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_text_types_and_nulls_stay_in_arrow(tmp_path, kind):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"body": pa.array(["a", None, "a"]).cast(kind)}), path)
    (batch,) = CorpusReader([str(path)], text_column="body")
    assert isinstance(batch.texts, pa.Array)
    assert not pa.types.is_dictionary(batch.texts.type)
    assert batch.texts.to_pylist() == ["a", None, "a"]
    assert batch.n_bytes == 2


def test_parquet_batches_follow_the_size_of_the_texts(tmp_path):
    path = tmp_path / "a.parquet"
    texts = [f"{i:06}" * 200 for i in range(2000)]
    write_parquet(path, texts)
    batches = list(CorpusReader([str(path)], batch_bytes=100_000))
    assert [text for batch in batches for text in batch.texts.to_pylist()] == texts
    assert [row for batch in batches for row in batch.rows] == list(range(2000))
    assert max(batch.n_bytes for batch in batches) <= 110_000


def test_parquet_faults_are_named(tmp_path):
    write_parquet(tmp_path / "good.parquet", [f"{i} some text" for i in range(5000)])
    content = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "cut.parquet").write_bytes(content[: len(content) // 2])
    page = pq.ParquetFile(tmp_path / "good.parquet").metadata.row_group(0).column(1).data_page_offset
    (tmp_path / "noise.parquet").write_bytes(content[:page] + b"\xff" * 1000 + content[page + 1000 :])
    pq.write_table(pa.table({"text": [1, 2]}), tmp_path / "numbers.parquet")
    pq.write_table(pa.table({"body": ["a"]}), tmp_path / "other.parquet")
    found, reasons, _ = read(tmp_path)
    assert {source for source, _, _ in found} == {f"{tmp_path}/good.parquet"}
    assert [reason.split(": ")[0] for reason in reasons] == [
        f"{tmp_path}/{name}.parquet" for name in ["cut", "empty", "noise", "numbers", "other"]
    ]
    assert "column 'text' has type int64, expected text" in reasons[3]
    assert "no column 'text'; it has 'body'" in reasons[4]


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    write_parquet(tmp_path / "a.parquet", ["a"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert read(tmp_path)[1] == [f"{tmp_path}/a.parquet: Parquet needs pyarrow: pip install 'hsca_fast[arrow]'"]


# ---- standard input


@pytest.mark.parametrize(
    ("input_format", "content", "texts"),
    [(None, "a\nb", ["a\nb"]), ("jsonl", '{"text": "a"}\n', ["a"]), ("csv", "text\na\nb\n", ["a", "b"])],
)
def test_standard_input(monkeypatch, input_format, content, texts):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert read("-", input_format=input_format)[0] == [("-", i, text) for i, text in enumerate(texts)]
    assert not sys.stdin.closed
