"""Scores as a table, JSON, JSON lines, CSV or Parquet, written batch by batch."""

import errno
import json
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from io import UnsupportedOperation
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from hsca_fast.files import replacing
from hsca_fast.text.scoring import ScoreBatch, bit_names
from hsca_fast.types import DomainTag, NuanceFlag

FORMAT_BY_EXTENSION = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}

# Rows a table shows at its head, and again at its foot.
TABLE_ROWS = 20
# Row groups much smaller than this make Parquet files slow to read.
PARQUET_GROUP_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Scores of a batch and where its texts came from; where `valid` is false, `columns` are nulls.

    A column of objects holds strings or lists of strings.
    """

    sources: list[str]
    rows: NDArray[np.int64]
    columns: Mapping[str, NDArray[Any]]
    valid: NDArray[np.bool_]


def named_columns(batch: ScoreBatch) -> dict[str, NDArray[Any]]:
    """The columns of a batch with lists of names in place of the bits of domains and flags."""
    columns: dict[str, NDArray[Any]] = {}
    for name, column in batch.columns().items():
        match name:
            case "domain_bits":
                columns["domain_tags"] = _names(DomainTag, column)
            case "nuance_bits":
                columns["nuance_flags"] = _names(NuanceFlag, column)
            case _:
                columns[name] = column
    return columns


def _names(names: type[Enum], bits: NDArray[Any]) -> NDArray[Any]:
    # Few patterns, many rows: each pattern's list is made once and shared.
    patterns, where = np.unique(bits, return_inverse=True)
    lists = np.empty(len(patterns), object)
    lists[:] = [bit_names(names, pattern) for pattern in patterns]
    named: NDArray[Any] = lists[where]
    return named


LIST_COLUMNS = frozenset({"domain_tags", "nuance_flags"})


class ScoreWriter(Protocol):
    """Takes scored batches of the same columns; an empty first one names them even if no row follows."""

    def write(self, batch: ScoredRows) -> None: ...

    def finish(self) -> None: ...


@contextmanager
def open_scores(path: str | None, *, file_format: str) -> Iterator[ScoreWriter]:
    """A writer to `path` (None: standard output), finished when the block ends without an exception.

    The file appears under its name only then; after a failure, what was there before is untouched.
    """
    with _standard_output() if path is None else replacing(path) as stream:
        writer = _WRITERS[file_format](stream)
        yield writer
        writer.finish()


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    try:
        sys.stdout.flush()
        descriptor = sys.stdout.fileno()
    except UnsupportedOperation:  # something that only looks like a file, as in notebooks
        yield sys.stdout.buffer
        return
    # Not sys.stdout.buffer: under `python -u` that is unbuffered, and may write less than it is given.
    with open(descriptor, "wb", closefd=False) as stream:
        yield stream


def _format_rows(
    batch: ScoredRows, before: list[str], after: str, *, quote: Callable[[str | list[str]], str], null: str
) -> bytes:
    """Each row's cells with `before[i]` before the i-th and `after` behind the last."""
    quoted = {source: quote(source) for source in set(batch.sources)}
    cells: list[list[Any]] = [[quoted[source] for source in batch.sources], batch.rows.tolist()]
    codes = ["%s", "%d"]
    for column in batch.columns.values():
        values, code = _printable(column, quote)
        if not batch.valid.all():
            values = [code % v if ok else null for v, ok in zip(values, batch.valid.tolist(), strict=True)]
            code = "%s"
        cells.append(values)
        codes.append(code)
    template = "".join(text.replace("%", "%%") + code for text, code in zip(before, codes, strict=True)) + after
    # One format of all cells is faster than a string per row or per cell.
    flat: list[Any] = [None] * (len(cells) * len(batch.sources))
    for i, values in enumerate(cells):
        flat[i :: len(cells)] = values
    return (template * len(batch.sources) % tuple(flat)).encode()


def _printable(column: NDArray[Any], quote: Callable[[str | list[str]], str]) -> tuple[list[Any], str]:
    match column.dtype.kind:
        case "b":
            return np.where(column, "true", "false").tolist(), "%s"
        case "i" | "u":
            return column.tolist(), "%d"
        case "f":
            return column.tolist(), "%r"
        case _:
            values = column.tolist()
            quoted = {id(value): quote(value) for value in values}  # lists are shared by many rows
            return [quoted[id(value)] for value in values], "%s"


class _CsvWriter:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._has_header = False

    def write(self, batch: ScoredRows) -> None:
        names = ["source", "row", *batch.columns]
        if not self._has_header:
            self._stream.write((",".join(map(_quote_csv, names)) + "\n").encode())
            self._has_header = True
        before = ["", *[","] * (len(names) - 1)]
        self._stream.write(_format_rows(batch, before, "\n", quote=_quote_csv, null=""))

    def finish(self) -> None:
        pass


def _quote_csv(text: str | list[str]) -> str:
    if isinstance(text, list):
        text = ";".join(text)
    if any(mark in text for mark in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _json_keys(batch: ScoredRows) -> list[str]:
    names = ["source", "row", *batch.columns]
    return ["{" + json.dumps(names[0]) + ": ", *(", " + json.dumps(name) + ": " for name in names[1:])]


class _JsonLinesWriter:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, batch: ScoredRows) -> None:
        self._stream.write(_format_rows(batch, _json_keys(batch), "}\n", quote=json.dumps, null="null"))

    def finish(self) -> None:
        pass


class _JsonWriter:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._opening = b"["

    def write(self, batch: ScoredRows) -> None:
        if not batch.sources:
            return
        keys = _json_keys(batch)
        rows = _format_rows(batch, [",\n" + keys[0], *keys[1:]], "}", quote=json.dumps, null="null")
        self._stream.write(self._opening + rows.removeprefix(b",") if self._opening else rows)
        self._opening = b""

    def finish(self) -> None:
        self._stream.write(self._opening + b"\n]\n")


class _TableWriter:
    """For people: aligned columns, which need every shown row first, so a long middle is counted, not shown."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._names: list[str] = []
        self._head: list[list[str]] = []
        self._tail: deque[list[str]] = deque(maxlen=TABLE_ROWS)
        self._n_rows = 0

    def write(self, batch: ScoredRows) -> None:
        self._names = ["source", "row", *batch.columns]
        n_rows = len(batch.sources)
        n_head = min(n_rows, TABLE_ROWS - len(self._head))
        self._head += [_table_row(batch, i) for i in range(n_head)]
        self._tail += [_table_row(batch, i) for i in range(max(n_head, n_rows - TABLE_ROWS), n_rows)]
        self._n_rows += n_rows

    def finish(self) -> None:
        lines = [self._names, *self._head, *self._tail]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        printed = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines
        ]
        n_hidden = self._n_rows - len(self._head) - len(self._tail)
        if n_hidden:
            printed.insert(1 + len(self._head), f"... {n_hidden:,} more rows ...")
        printed.append(f"{self._n_rows:,} {'row' if self._n_rows == 1 else 'rows'}")
        self._stream.write(("\n".join(printed) + "\n").encode())


def _table_row(batch: ScoredRows, i: int) -> list[str]:
    # A name may hold line ends and terminal escapes.
    cells = [batch.sources[i] if batch.sources[i].isprintable() else repr(batch.sources[i]), str(batch.rows[i])]
    for column in batch.columns.values():
        if not batch.valid[i]:
            cells.append("-")
        elif column.dtype.kind == "f":
            cells.append(f"{column[i]:.4f}")
        elif column.dtype.kind == "b":
            cells.append("yes" if column[i] else "no")
        elif isinstance(column[i], list):
            cells.append(",".join(column[i]) or "none")
        else:
            cells.append(str(column[i]))
    return cells


class _ParquetWriter:
    def __init__(self, stream: BinaryIO) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._pa, self._pq = pa, pq
        self._stream = stream
        self._file: Any = None
        self._waiting: list[Any] = []
        self._n_waiting = 0

    def write(self, batch: ScoredRows) -> None:
        pa = self._pa
        columns = {"source": pa.array(batch.sources, pa.string()), "row": pa.array(batch.rows)}
        for name, column in batch.columns.items():
            kind = None
            if column.dtype.kind not in "biuf":  # of an empty column Arrow could not tell the type
                is_list = name in LIST_COLUMNS
                kind = pa.list_(pa.string()) if is_list else pa.string()
            columns[name] = pa.array(column, kind, mask=~batch.valid)
        self._waiting.append(pa.table(columns))
        self._n_waiting += len(batch.sources)
        if self._n_waiting >= PARQUET_GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        table = self._pa.concat_tables(self._waiting)
        if self._file is None:
            self._file = self._pq.ParquetWriter(self._stream, table.schema)
        self._file.write_table(table)
        self._waiting.clear()
        self._n_waiting = 0

    def finish(self) -> None:
        if self._waiting:
            self._write_group()
        if self._file is not None:
            self._file.close()


_WRITERS: dict[str, Callable[[BinaryIO], ScoreWriter]] = {
    "table": _TableWriter,
    "json": _JsonWriter,
    "jsonl": _JsonLinesWriter,
    "csv": _CsvWriter,
    "parquet": _ParquetWriter,
}
FORMATS = tuple(_WRITERS)
