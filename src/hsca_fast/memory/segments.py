"""The vectors of a store: raw little-endian float32 rows in files that only grow.

A segment holds the vectors of a run of records, in order, with nothing between them, so a record's sequence number says
where its vector is. The catalog knows each block that was committed, with its CRC; bytes behind the last block are of a
writer that did not get to commit, and the next one cuts them off.
"""

from __future__ import annotations

import os
import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO

import numpy as np
import numpy.typing as npt

from hsca_fast._native import vectors as _native
from hsca_fast.files import sync_directory
from hsca_fast.vectors.prefix import EPS
from hsca_fast.vectors.storage import DamagedIndexError

Float32 = npt.NDArray[np.float32]
SEGMENT_BYTES = 1 << 28
BLOCK_ROWS = 4096
_NAME = re.compile(r"seg-(\d{6,})\.vec")


@dataclass(frozen=True, slots=True)
class Block:
    """Vectors of the records [first, first + n): rows [start, start + n) of a segment."""

    first: int
    n: int
    segment: int
    start: int
    crc: int


def segment_path(folder: str, number: int) -> str:
    return os.path.join(folder, f"seg-{number:06d}.vec")


def segment_numbers(folder: str) -> list[int]:
    """Of all segment files in the folder, committed or not."""
    return sorted(int(found[1]) for name in os.listdir(folder) if (found := _NAME.fullmatch(name)))


class SegmentWriter:
    """Appends rows behind the last committed ones; nothing counts before the catalog says so."""

    def __init__(self, folder: str, dim: int) -> None:
        self._folder = folder
        self._row_bytes = 4 * dim
        self._open: tuple[int, FileIO] | None = None  # number, file

    def append(self, number: int, n_rows: int, first: int, pieces: Iterable[Float32]) -> list[Block]:
        """Writes and syncs rows behind the `n_rows` of segment `number`; returns their blocks. On an error it is as before."""
        start, size = number, n_rows * self._row_bytes
        blocks = []
        self.check(number, n_rows)
        try:
            descriptor = self._at(number, size)
            for rows in pieces:
                if size and size + rows.nbytes > SEGMENT_BYTES:
                    _sync(descriptor)
                    number, size = number + 1, 0
                    descriptor = self._at(number, size)
                data = np.ascontiguousarray(rows, "<f4").data.cast("B")
                _write_all(descriptor, data, size)
                blocks.append(Block(first, len(rows), number, size // self._row_bytes, zlib.crc32(data)))
                size += len(data)
                first += len(rows)
            _sync(descriptor)
        except BaseException:
            self.cut(start, n_rows)
            raise
        return blocks

    def cut(self, number: int, n_rows: int) -> None:
        """Drops what is behind the first `n_rows` of the segment, and every later one."""
        size = n_rows * self._row_bytes
        with suppress(OSError):  # the next append, or the next writer, does it
            for later in segment_numbers(self._folder):
                if later > number:
                    self.close()
                    os.unlink(segment_path(self._folder, later))
            path = segment_path(self._folder, number)
            if os.path.exists(path) and os.path.getsize(path) > size:
                os.truncate(path, size)

    def check(self, number: int, n_rows: int) -> None:
        """Refuses a segment with fewer rows than were committed: nothing may be written behind a hole."""
        size, path = n_rows * self._row_bytes, segment_path(self._folder, number)
        found = os.path.getsize(path) if os.path.exists(path) else 0
        if found < size:
            raise DamagedIndexError(f"{path} has {found} bytes; {size} were committed: see `hsca index repair`")

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    __del__ = close

    def _at(self, number: int, size: int) -> int:
        """The segment's descriptor, after whatever an interrupted append left is cut off."""
        if self._open is None or self._open[0] != number:
            self.close()
            path = segment_path(self._folder, number)
            new = not os.path.exists(path)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
            self._open = number, FileIO(descriptor, "r+")
            if new:
                sync_directory(self._folder)
        descriptor = self._open[1].fileno()
        if os.fstat(descriptor).st_size > size:
            os.ftruncate(descriptor, size)
        return descriptor


def _write_all(descriptor: int, data: memoryview, offset: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, offset)
        data, offset = data[written:], offset + written


def _sync(descriptor: int) -> None:
    getattr(os, "fdatasync", os.fsync)(descriptor)


class Segment:
    """Committed rows of one file, mapped; a block's CRC is checked before any of its rows is used."""

    def __init__(self, folder: str, number: int, dim: int) -> None:
        self.path = segment_path(folder, number)
        self.number = number
        self._dim = dim
        self._blocks: list[Block] = []
        self._starts: list[int] = []
        self._checked: list[bool] = []
        self._n_checked = 0  # this many leading blocks are checked
        self._rows: Float32 = np.empty((0, dim), np.float32)
        self._inverse: Float32 = np.empty(0, np.float32)
        self.n = 0

    def extend(self, block: Block) -> None:
        if block.start != self.n:
            raise DamagedIndexError(f"{self.path}: the catalog has a gap before row {block.start}")
        self._blocks.append(block)
        self._starts.append(self.n)
        self._checked.append(False)
        self.n += block.n

    @property
    def first(self) -> int:
        return self._blocks[0].first

    @property
    def n_blocks(self) -> int:
        return len(self._blocks)

    def rows(self) -> Float32:
        """Every row, checked."""
        mapped = self._mapped()
        for i in range(self._n_checked, len(self._blocks)):
            self._check(i)
        self._n_checked = len(self._blocks)
        return mapped

    def inverse(self) -> Float32:
        """One over each row's length, 0 for a zero row."""
        rows = self.rows()
        if len(self._inverse) < len(rows):
            new = rows[len(self._inverse) :]
            self._inverse = np.concatenate([self._inverse, _native.prefix_inverse(new, self._dim, EPS)])
        return self._inverse

    def take(self, offsets: npt.NDArray[np.int64]) -> Float32:
        """Some rows; only their blocks are checked."""
        mapped = self._mapped()
        for i in {bisect_right(self._starts, offset) - 1 for offset in offsets.tolist()}:
            self._check(i)
        return mapped[offsets]

    def check_all(self) -> Iterator[Block]:
        """Blocks whose bytes are not those that were committed."""
        for i, block in enumerate(self._blocks):
            try:
                self._check(i)
            except DamagedIndexError:
                yield block

    def _check(self, i: int) -> None:
        if self._checked[i]:
            return
        block, start = self._blocks[i], self._starts[i]
        if zlib.crc32(self._mapped()[start : start + block.n].data.cast("B")) != block.crc:
            raise DamagedIndexError(
                f"{self.path}: the vectors of records {block.first} to {block.first + block.n - 1} are damaged;"
                " see `hsca index repair`"
            )
        self._checked[i] = True

    def _mapped(self) -> Float32:
        if len(self._rows) < self.n:
            wanted = self.n * self._dim * 4
            try:
                size = os.path.getsize(self.path)
                if size < wanted:
                    raise DamagedIndexError(
                        f"{self.path} has {size} bytes; {wanted} were committed: see `hsca index repair`"
                    )
                mapped = np.memmap(self.path, "<f4", "r", shape=(self.n, self._dim))
            except FileNotFoundError:
                raise DamagedIndexError(f"{self.path} is missing; see `hsca index repair`") from None
            self._rows = mapped.view(np.ndarray)
        return self._rows


class SegmentReader:
    """The vectors of all committed records."""

    def __init__(self, folder: str, dim: int) -> None:
        self._folder, self._dim = folder, dim
        self.segments: list[Segment] = []
        self.n = 0

    def extend(self, blocks: Sequence[Block]) -> None:
        """Blocks that were committed since, in order."""
        for block in blocks:
            if block.first != self.n + 1 or block.n < 1:
                raise DamagedIndexError(
                    f"{self._folder}: the catalog's blocks of vectors have a gap before record {block.first}"
                )
            if not self.segments or self.segments[-1].number != block.segment:
                self.segments.append(Segment(self._folder, block.segment, self._dim))
            self.segments[-1].extend(block)
            self.n += block.n

    def joined_blocks(self) -> list[Block] | None:
        """The same rows in blocks as large as they may be, every CRC checked first; None if that saves little."""
        blocks: list[Block] = []
        for segment in self.segments:
            rows = segment.rows()
            for start in range(0, segment.n, BLOCK_ROWS):
                part = rows[start : start + BLOCK_ROWS]
                crc = zlib.crc32(part.data.cast("B"))
                blocks.append(Block(segment.first + start, len(part), segment.number, start, crc))
        return blocks if 2 * len(blocks) <= sum(segment.n_blocks for segment in self.segments) else None

    def cosines(self, query: Float32, after: int = 0) -> Float32:
        """Of a unit vector with every row behind the sequence `after`, by sequence."""
        scores = np.empty(self.n - after, np.float32)
        for segment in self.segments:
            skipped = max(after - (segment.first - 1), 0)
            if skipped < segment.n:
                begin, size = segment.first - 1 + skipped - after, segment.n - skipped
                products = _native.dot_products(query[None], segment.rows()[skipped:])[0]
                np.multiply(products, segment.inverse()[skipped:], out=scores[begin : begin + size])
        return scores

    def take(self, sequences: npt.NDArray[np.int64]) -> Float32:
        out = np.empty((len(sequences), self._dim), np.float32)
        firsts = np.array([segment.first for segment in self.segments], np.int64)
        of = np.searchsorted(firsts, sequences, side="right") - 1
        for i in np.unique(of).tolist():
            chosen = of == i
            out[chosen] = self.segments[i].take(sequences[chosen] - firsts[i])
        return out
