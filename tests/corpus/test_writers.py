import csv
import errno
import json
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow.parquet as pq
import pytest

from hsca_fast.corpus import writers
from hsca_fast.corpus.writers import FORMAT_BY_EXTENSION, FORMATS, ScoredRows, open_scores


def batch(n, first=0, source="a.txt", valid=None):
    numbers = np.arange(first, first + n)
    return ScoredRows(
        [source] * n,
        numbers.astype(np.int64),
        {
            "score": 1 / (numbers + 3.0),
            "bits": numbers.astype(np.uint16),
            "flag": numbers % 2 == 0,
            "100% label": np.array([f'a,"{i}' for i in numbers], dtype=object),
        },
        np.ones(n, bool) if valid is None else np.array(valid),
    )


def expected(n, source="a.txt"):
    return [
        {
            "source": source,
            "row": i,
            "score": 1 / (i + 3.0),
            "bits": i,
            "flag": i % 2 == 0,
            "100% label": f'a,"{i}',
        }
        for i in range(n)
    ]


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {
                "source": row["source"],
                "row": int(row["row"]),
                "score": float(row["score"]) if row["score"] else None,
                "bits": int(row["bits"]) if row["bits"] else None,
                "flag": {"true": True, "false": False, "": None}[row["flag"]],
                "100% label": row["100% label"] or None,
            }
            for row in csv.DictReader(file)
        ]


READERS = {
    "json": lambda path: json.loads(path.read_text()),
    "jsonl": lambda path: [json.loads(line) for line in path.read_text().splitlines()],
    "csv": read_csv,
    "parquet": lambda path: pq.read_table(path).to_pylist(),
}


def write(path, *batches, file_format):
    with open_scores(str(path), file_format=file_format) as writer:
        for one in batches:
            writer.write(one)


@pytest.mark.parametrize("file_format", READERS)
@pytest.mark.parametrize("source", ["a.txt", 'odd "näme", 漢%s\n.txt'])
def test_what_is_written_reads_back_bit_for_bit(tmp_path, file_format, source):
    path = tmp_path / "out"
    write(path, batch(0), batch(3, source=source), batch(0), batch(2, 3, source=source), file_format=file_format)
    assert READERS[file_format](path) == expected(5, source)


@pytest.mark.parametrize("file_format", READERS)
def test_invalid_rows_are_nulls(tmp_path, file_format):
    write(tmp_path / "out", batch(3, valid=[True, False, True]), file_format=file_format)
    rows = expected(3)
    rows[1] = {"source": "a.txt", "row": 1} | dict.fromkeys(["score", "bits", "flag", "100% label"])
    assert READERS[file_format](tmp_path / "out") == rows


@pytest.mark.parametrize("file_format", READERS)
def test_no_rows_still_give_a_readable_file(tmp_path, file_format):
    write(tmp_path / "out", batch(0), file_format=file_format)
    assert READERS[file_format](tmp_path / "out") == []
    if file_format == "csv":
        assert (tmp_path / "out").read_text() == "source,row,score,bits,flag,100% label\n"
    if file_format == "parquet":
        assert pq.read_schema(tmp_path / "out").names[:3] == ["source", "row", "score"]


def test_parquet_rows_are_grouped_across_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(writers, "PARQUET_GROUP_ROWS", 10)
    write(tmp_path / "out", *(batch(4, i * 4) for i in range(6)), file_format="parquet")
    metadata = pq.ParquetFile(tmp_path / "out").metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [12, 12]
    assert pq.read_table(tmp_path / "out").to_pylist() == expected(24)


def test_every_extension_has_a_writer():
    assert set(FORMAT_BY_EXTENSION.values()) < set(FORMATS)


# ---- the table


def test_table_is_aligned(capsys):
    with open_scores(None, file_format="table") as writer:
        writer.write(batch(1))
        writer.write(batch(1, 1, source="longer/name.txt", valid=[False]))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "source           row   score  bits  flag  100% label",
        'a.txt              0  0.3333     0   yes        a,"0',
        "longer/name.txt    1       -     -     -           -",
        "2 rows",
    ]


@pytest.mark.parametrize("n_rows", [0, 1, 20, 21, 40, 41, 5000])
@pytest.mark.parametrize("n_batch", [1, 7, 5000])
def test_table_shows_head_and_tail_and_counts_all(capsys, n_rows, n_batch):
    with open_scores(None, file_format="table") as writer:
        writer.write(batch(0))
        for first in range(0, n_rows, n_batch):
            writer.write(batch(min(n_batch, n_rows - first), first))
    lines = capsys.readouterr().out.splitlines()
    shown = [int(line.split()[1]) for line in lines[1:-1] if not line.startswith("...")]
    assert shown == [*range(min(20, n_rows)), *range(max(20, n_rows - 20), n_rows)]
    assert lines[-1] == ("1 row" if n_rows == 1 else f"{n_rows:,} rows")
    assert (f"... {n_rows - 40:,} more rows ..." in lines) == (n_rows > 40)


def test_table_escapes_names_that_would_move_the_cursor(capsys):
    with open_scores(None, file_format="table") as writer:
        writer.write(batch(1, source="a\x1b[2J\n.txt"))
    assert "\x1b" not in capsys.readouterr().out


# ---- files


def fail_inside(path, file_format="csv", error=RuntimeError):
    with open_scores(str(path), file_format=file_format) as writer:
        writer.write(batch(3))
        raise error


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_failure_leaves_nothing(tmp_path, file_format, error):
    with pytest.raises(error):
        fail_inside(tmp_path / "out", file_format, error)
    assert list(tmp_path.iterdir()) == []


def test_failure_leaves_the_old_file(tmp_path):
    (tmp_path / "out").write_text("old")
    with pytest.raises(RuntimeError):
        fail_inside(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_full_disk_leaves_nothing(tmp_path, monkeypatch, file_format, call):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "out", batch(3), file_format=file_format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file_format", READERS)
def test_pipe_is_written_in_place_not_replaced(tmp_path, file_format):
    # Not tried on a real device: were this broken, it would replace the device for the whole machine.
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        content = pool.submit((tmp_path / "pipe").read_bytes)
        write(tmp_path / "pipe", batch(3), file_format=file_format)
        assert (tmp_path / "pipe").is_fifo()
        (tmp_path / "copy").write_bytes(content.result(timeout=10))
    assert READERS[file_format](tmp_path / "copy") == expected(3)


def test_link_stays_a_link_and_mode_stays(tmp_path):
    (tmp_path / "real").touch(mode=0o640)
    os.chmod(tmp_path / "real", 0o640)
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", batch(1), file_format="jsonl")
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "real").read_text())["row"] == 0
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640


def test_new_file_has_the_usual_mode(tmp_path):
    write(tmp_path / "out", batch(1), file_format="csv")
    (tmp_path / "plain").touch()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_directory_as_output_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        write(tmp_path, batch(1), file_format="csv")
    assert list(tmp_path.iterdir()) == []


def test_closed_standard_output_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OSError, match="closed"), open_scores(None, file_format="csv"):
        pass
