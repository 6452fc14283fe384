"""Files, directories and standard input as batches of texts, in bounded memory."""

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hsca_fast.corpus.arrow import check_text_column, decode_replacing, listing

FORMAT_BY_EXTENSION = {
    ".txt": "txt",
    ".md": "txt",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}
STREAM_FORMATS = ("txt", "jsonl", "csv")
STDIN = "-"

# Python may need four bytes a character, and the scorer a copy in UTF-8: a batch takes up to six times this.
CHUNK_BYTES = 4 << 20
BATCH_BYTES = 4 << 20
BATCH_ROWS = 16_384
# One JSON line or CSV field. Without a bound, an unclosed quote would pull the rest of the file into memory.
RECORD_BYTES = 128 << 20
_BOM = b"\xef\xbb\xbf"

ErrorMode: TypeAlias = Literal["replace", "strict", "skip"]
_Record: TypeAlias = tuple[int, str | None, int]  # row, text (None: a null), its bytes


class InputError(Exception):
    """An input, or one record of it, that could not be read."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source = source
        self.reason = reason


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Texts in the form `score_texts` takes, and where each came from."""

    texts: Any  # list[str], or an Arrow array
    sources: list[str]
    rows: NDArray[np.int64]  # index of the text within its source
    nulls: list[int]  # positions in a list of texts that stand for a null
    n_bytes: int


@dataclass(slots=True)
class _Pending:
    """The batch being filled; it may span many small files."""

    texts: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    nulls: list[int] = field(default_factory=list)
    n_bytes: int = 0

    def add(self, source: str, row: int, text: str | None, size: int) -> None:
        if text is None:
            self.nulls.append(len(self.texts))
            text = ""
        self.texts.append(text)
        self.sources.append(source)
        self.rows.append(row)
        self.n_bytes += size

    def freeze(self) -> TextBatch:
        return TextBatch(self.texts, self.sources, np.array(self.rows, np.int64), self.nulls, self.n_bytes)


def raise_error(error: InputError) -> NoReturn:
    """The `on_error` that stops at the first failure."""
    raise error


class CorpusReader:
    """Iterate over `paths` in batches of texts.

    Parameters
    ----------
    paths : files, directories (see `find_files`) or "-" for standard input
    text_column : the column of JSON lines, CSV and Parquet that holds the text
    input_format : "txt", "jsonl" or "csv": how to read standard input (None: "txt") and files whose
        extension says nothing
    errors : what becomes of a text with invalid UTF-8: "replace" its bad bytes (counted in `n_replaced`),
        "strict" reports it to `on_error`, "skip" leaves it out (counted in `n_skipped`)
    chunk_bytes : a plain text file longer than this is cut into several texts, see `cut_text`
    batch_bytes : a batch holds at most this much text, or one text
    on_error : told of each file and record that cannot be read, then reading goes on; raises by default
    """

    def __init__(
        self,
        paths: Iterable[str],
        *,
        text_column: str = "text",
        input_format: str | None = None,
        errors: ErrorMode = "replace",
        chunk_bytes: int = CHUNK_BYTES,
        batch_bytes: int = BATCH_BYTES,
        on_error: Callable[[InputError], None] = raise_error,
    ) -> None:
        if chunk_bytes < 4:
            raise ValueError(f"chunk_bytes is {chunk_bytes}, but the longest UTF-8 character needs 4")
        self._paths = paths
        self._text_column = text_column
        self._input_format = input_format
        self._errors = errors
        self._chunk_bytes = chunk_bytes
        self._batch_bytes = batch_bytes
        self._on_error = on_error
        self.n_replaced = 0
        self.n_skipped = 0
        self.n_input_bytes = 0
        """Bytes of the input files consumed so far; unlike the texts, comparable with the files' sizes."""

    def __iter__(self) -> Iterator[TextBatch]:
        pending = _Pending()
        for path in find_files(self._paths, on_error=self._on_error):
            source = display_name(path)
            n_bytes_before = self.n_input_bytes
            try:
                file_format = self._format(path)
                if file_format == "parquet":
                    if pending.texts:
                        yield pending.freeze()
                        pending = _Pending()
                    yield from self._read_parquet(path, source)
                    continue
                with _open(path) as stream:
                    for row, text, size in self._records(stream, file_format, source):
                        if pending.texts and (
                            pending.n_bytes + size > self._batch_bytes or len(pending.texts) == BATCH_ROWS
                        ):
                            self.n_input_bytes = n_bytes_before + _position(stream)
                            yield pending.freeze()
                            pending = _Pending()
                        pending.add(source, row, text, size)
                    self.n_input_bytes = n_bytes_before + _position(stream)
            except OSError as error:
                self._on_error(InputError(source, error.strerror or str(error)))
            except InputError as error:
                self._on_error(error)
        if pending.texts:
            yield pending.freeze()

    def _format(self, path: str) -> str:
        if path == STDIN:
            return self._input_format or "txt"
        extension = os.path.splitext(path)[1].lower()
        file_format = FORMAT_BY_EXTENSION.get(extension, self._input_format)
        if file_format is None:
            os.stat(path)  # a missing file is better told from a file of an unknown kind
            known = " ".join(FORMAT_BY_EXTENSION)
            raise InputError(
                display_name(path), f"unknown extension {extension!r} (known: {known}); name its input format"
            )
        return file_format

    def _records(self, stream: BinaryIO, file_format: str, source: str) -> Iterator[_Record]:
        read = {"txt": self._read_txt, "jsonl": self._read_jsonl, "csv": self._read_csv}[file_format]
        return read(stream, source)

    def _fail(self, source: str, reason: str) -> None:
        self._on_error(InputError(source, reason))

    def _read_txt(self, stream: BinaryIO, source: str) -> Iterator[_Record]:
        for row, part in enumerate(cut_text(stream, chunk_bytes=self._chunk_bytes)):
            text = self._decode(part, source, "part", row)
            if text is not None:
                yield row, text, len(part)

    def _read_jsonl(self, stream: BinaryIO, source: str) -> Iterator[_Record]:
        column = self._text_column
        # What json.loads does around it costs more than parsing a short line.
        parse = json.JSONDecoder().raw_decode
        row = -1
        for number, line in enumerate(_lines(stream), 1):
            line = line.strip(b" \t\r\n")
            if not line:
                continue
            row += 1
            if len(line) > RECORD_BYTES:
                self._fail(source, f"line {number}: longer than {RECORD_BYTES} bytes")
                continue
            decoded = self._decode(line, source, "line", number)
            if decoded is None:
                continue
            try:
                record, end = parse(decoded)
            except json.JSONDecodeError as error:
                self._fail(source, f"line {number}: not valid JSON: {error.msg} at column {error.colno}")
                continue
            except (ValueError, RecursionError) as error:  # a number or a nesting beyond Python's limits
                self._fail(source, f"line {number}: not readable JSON: {error}")
                continue
            if end != len(decoded):
                self._fail(source, f"line {number}: not valid JSON: more data at column {end + 1}")
            elif not isinstance(record, dict):
                self._fail(source, f"line {number}: a JSON {_JSON_KINDS[type(record)]}, expected an object")
            elif column not in record:
                self._fail(source, f"line {number}: no column {column!r}; it has {listing(record)}")
            elif (text := record[column]) is None:
                yield row, None, 0
            elif isinstance(text, str):
                # JSON can spell lone surrogates; the scorer replaces and counts those.
                yield row, text, len(text.encode("utf-8", "surrogatepass"))
            else:
                kind = _JSON_KINDS[type(text)]
                self._fail(source, f"line {number}: column {column!r} is a JSON {kind}, expected a string")

    def _read_csv(self, stream: BinaryIO, source: str) -> Iterator[_Record]:
        # The limit belongs to the process and only ever grows here.
        csv.field_size_limit(max(RECORD_BYTES, csv.field_size_limit()))
        # Strict: a quote that is never closed is an error, not a field that swallows the rest of the file.
        reader = csv.reader(_csv_lines(stream, source), strict=True)
        try:
            header = next(reader, None)
        except csv.Error as error:
            raise InputError(source, f"line {reader.line_num}: {error}") from error
        if not header:
            raise InputError(source, "no header line")
        if self._text_column not in header:
            raise InputError(source, f"no column {self._text_column!r}; it has {listing(header)}")
        column = header.index(self._text_column)
        row = -1
        while True:
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                row += 1
                self._fail(source, f"line {reader.line_num}: {error}")
                continue
            if not fields:
                continue
            row += 1
            if len(fields) != len(header):
                self._fail(source, f"line {reader.line_num}: {len(fields)} fields where the header has {len(header)}")
                continue
            data = fields[column].encode("utf-8", "surrogateescape")
            text = self._decode(data, source, "line", reader.line_num)
            if text is not None:
                yield row, text, len(data)

    def _decode(self, data: bytes, source: str, unit: str, number: int) -> str | None:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if self._errors == "strict":
                self._fail(source, f"{unit} {number}: invalid UTF-8 at byte {error.start}")
                return None
            if self._errors == "skip":
                self.n_skipped += 1
                return None
        text, n_replaced = decode_replacing(data)
        self.n_replaced += n_replaced
        return text

    def _read_parquet(self, path: str, source: str) -> Iterator[TextBatch]:
        try:
            import pyarrow as pa
            import pyarrow.compute as pc
            import pyarrow.parquet as pq
        except ImportError as error:
            raise InputError(source, "Parquet needs pyarrow: pip install 'hsca_fast[arrow]'") from error
        n_bytes_before = self.n_input_bytes
        n_file_bytes = os.stat(path).st_size
        try:
            # By default a whole column chunk is read at once, which is often the whole file.
            options = {"buffer_size": 1 << 20, "pre_buffer": False, "page_checksum_verification": True}
            with pq.ParquetFile(path, **options) as file:
                try:
                    check_text_column(file.schema_arrow, self._text_column)
                except (TypeError, ValueError) as error:
                    raise InputError(source, str(error)) from error
                batches = file.iter_batches(
                    batch_size=rows_per_batch(file.metadata, self._batch_bytes),
                    columns=[self._text_column],
                )
                row = 0
                for texts in (batch.column(0) for batch in batches):
                    if pa.types.is_dictionary(texts.type):
                        texts = texts.cast(texts.type.value_type)
                    n_rows = len(texts)
                    try:
                        texts.validate(full=True)
                    except pa.ArrowInvalid:  # Parquet does not promise that its strings are UTF-8
                        yield self._decode_arrow(texts, source, row)
                    else:
                        rows = np.arange(row, row + n_rows, dtype=np.int64)
                        n_text_bytes = pc.sum(pc.binary_length(texts)).as_py() or 0
                        yield TextBatch(texts, [source] * n_rows, rows, [], n_text_bytes)
                    row += n_rows
                    self.n_input_bytes = n_bytes_before + n_file_bytes * row // max(row, file.metadata.num_rows)
        except (
            pa.ArrowException,
            OSError,
            ValueError,
            KeyError,
        ) as error:  # whatever a damaged file makes pyarrow raise
            if isinstance(error, OSError) and error.errno:
                raise
            raise InputError(source, f"cannot read it as Parquet: {str(error).strip()}") from error
        self.n_input_bytes = n_bytes_before + n_file_bytes

    def _decode_arrow(self, texts: Any, source: str, first_row: int) -> TextBatch:
        import pyarrow as pa

        pending = _Pending()
        for row, data in enumerate(texts.cast(pa.large_binary()).to_pylist(), first_row):
            if data is None:
                pending.add(source, row, None, 0)
            elif (text := self._decode(data, source, "row", row)) is not None:
                pending.add(source, row, text, len(data))
        return pending.freeze()


def find_files(paths: Iterable[str], *, on_error: Callable[[InputError], None] = raise_error) -> Iterator[str]:
    """Files named by `paths`, in order; a directory gives its files of known extensions, sorted.

    Hidden files and directories, and what is neither a file nor a link to one, are passed over.
    """
    for path in paths:
        if path == STDIN or not os.path.isdir(path):
            yield path
            continue
        n_results = 0

        def unreadable(error: OSError) -> None:
            nonlocal n_results
            n_results += 1
            on_error(InputError(display_name(error.filename), error.strerror or str(error)))

        for folder, subfolders, names in os.walk(path, onerror=unreadable):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            for name in sorted(names):
                file = os.path.join(folder, name)
                if name.startswith(".") or os.path.splitext(name)[1].lower() not in FORMAT_BY_EXTENSION:
                    continue
                if not os.path.isfile(file) and os.path.exists(file):
                    continue  # opening a named pipe would wait for ever
                n_results += 1
                yield file
        if not n_results:
            known = " ".join(FORMAT_BY_EXTENSION)
            on_error(InputError(display_name(path), f"no files in this directory to read (known: {known})"))


def cut_text(stream: BinaryIO, *, chunk_bytes: int) -> Iterator[bytes]:
    """Parts of at most `chunk_bytes` that together are the stream, less its byte order mark.

    A part ends after the last blank line that fits, else after the last line end, else after the last white
    space, else between two characters. An empty stream is one empty part.
    """
    rest = stream.read(len(_BOM)).removeprefix(_BOM)
    while True:
        # One byte more than a part tells whether it is the last and whether its end splits a character.
        block = rest + _read(stream, chunk_bytes + 1 - len(rest))
        if len(block) <= chunk_bytes:
            yield block
            return
        end = _cut_point(block, chunk_bytes)
        yield block[:end]
        rest = block[end:]


def _read(stream: BinaryIO, n_bytes: int) -> bytes:
    # A stream sets aside all it is asked for; for a small file that would take longer than reading it.
    head = stream.read(min(n_bytes, 1 << 16))
    return head + stream.read(n_bytes - len(head)) if len(head) == 1 << 16 else head


def _cut_point(block: bytes, limit: int) -> int:
    for marks in (b"\n\n", b"\n\r\n"), (b"\n",), (b" ", b"\t", b"\r"):
        starts = [(block.rfind(mark, 0, limit), len(mark)) for mark in marks]
        end = max((start + length for start, length in starts if start >= 0), default=0)
        if end:
            return end
    for end in range(limit, limit - 4, -1):
        if block[end] & 0xC0 != 0x80:
            return end
    return limit  # not UTF-8


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines less the byte order mark; of a line over RECORD_BYTES only so much as shows that it is."""
    line = stream.readline(RECORD_BYTES + 1).removeprefix(_BOM)
    while line:
        tail = line
        while len(line) > RECORD_BYTES and tail and not tail.endswith(b"\n"):
            tail = stream.readline(RECORD_BYTES)
        yield line
        line = stream.readline(RECORD_BYTES + 1)


def _csv_lines(stream: BinaryIO, source: str) -> Iterator[str]:
    for number, line in enumerate(_lines(stream), 1):
        if len(line) > RECORD_BYTES:
            raise InputError(source, f"line {number}: longer than {RECORD_BYTES} bytes; the rest is not read")
        # Bad bytes pass through the parser as surrogates, so that only those in the text column count.
        yield line.decode("utf-8", "surrogateescape")


def rows_per_batch(metadata: Any, batch_bytes: int) -> int:
    """Rows that keep a batch within `batch_bytes`, by the footer's sizes of whole row groups.

    The sizes of single columns would be closer, but pyarrow ends the process when it meets some damaged ones.
    """
    n_rows = BATCH_ROWS
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        if group.total_byte_size > 0:
            n_rows = min(n_rows, batch_bytes * group.num_rows // group.total_byte_size)
    return max(1, n_rows)


def display_name(path: str) -> str:
    """The path as given; bytes that are not UTF-8 are escaped, so that every output format can hold it."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _open(path: str) -> AbstractContextManager[BinaryIO]:
    if path == STDIN and sys.stdin is None:
        raise InputError("-", "standard input is closed")
    # Standard input is not ours to close.
    return nullcontext(sys.stdin.buffer) if path == STDIN else open(path, "rb")


def _position(stream: BinaryIO) -> int:
    return stream.tell() if stream.seekable() else 0


_JSON_KINDS = {
    dict: "object",
    list: "array",
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
