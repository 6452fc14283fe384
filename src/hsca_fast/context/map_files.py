"""Files of snapshots: JSON lines, one a snapshot, or compressed columns in blocks.

The columns are an `.npz` file, which is a zip file of arrays; numpy opens it. It is written and read block after block, so
neither needs more memory than a block, and a file that was cut off is good up to its last whole block. Nothing is pickled.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hsca_fast import jsonl
from hsca_fast.context.provenance import Provenance
from hsca_fast.files import Tear, replacing
from hsca_fast.types import ContextSnapshot, WeightedChunk

Row = tuple[ContextSnapshot, Provenance | None]
Path = str | os.PathLike[str]

BLOCK_SNAPSHOTS = 1024
_LAST_COLUMN = "labels.bytes"


def write_map(path: Path, rows: Iterable[Row]) -> None:
    """Write snapshots to a `.jsonl` or `.npz` file, which is replaced whole or not at all."""
    if _is_columns(path):
        _write_blocks(path, rows)
    else:
        jsonl.write_lines(path, map(_to_line, rows), sealed=True)


def read_map(path: Path) -> Iterator[Row | Tear]:
    """The snapshots of a file one after the other; if it is damaged, a `Tear` is the last item."""
    return _read_blocks(path) if _is_columns(path) else _read_lines(path)


def _is_columns(path: Path) -> bool:
    extension = os.path.splitext(os.fspath(path))[1]
    if extension not in (".jsonl", ".npz"):
        raise ValueError(f"path must end in .jsonl or .npz, not {os.fspath(path)!r}")
    return extension == ".npz"


def _to_line(row: Row) -> dict[str, Any]:
    snapshot, origin = row
    line = snapshot.to_dict(digits=None)
    return line if origin is None else {**line, "provenance": origin.to_dict()}


def _read_lines(path: Path) -> Iterator[Row | Tear]:
    for number, line in enumerate(jsonl.read_lines(path, sealed=True), 1):
        if isinstance(line, Tear):
            yield line
            return
        try:
            origin = line.pop("provenance", None) if isinstance(line, dict) else None
            yield ContextSnapshot.from_dict(line), None if origin is None else Provenance.from_dict(origin)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)}, line {number}: {error.args[0]}") from error


# ---- columns

Arrays = dict[str, npt.NDArray[Any]]


class _Columns:
    """The arrays of a block, being made."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self._codes: dict[str, int] = {}

    def numbers(self, name: str, values: Iterable[Any], dtype: type[np.generic]) -> None:
        self.arrays[name] = np.array(list(values), dtype)

    def texts(self, name: str, values: Iterable[str]) -> None:
        encoded = [value.encode("utf-8", "surrogatepass") for value in values]
        self.numbers(f"{name}.lengths", map(len, encoded), np.uint32)
        self.arrays[f"{name}.bytes"] = np.frombuffer(b"".join(encoded), np.uint8)

    def labels(self, name: str, values: Iterable[Iterable[str]]) -> None:
        """Lists of words of which there are few."""
        lists = [[self._codes.setdefault(label, len(self._codes)) for label in labels] for labels in values]
        self.numbers(f"{name}.lengths", map(len, lists), np.uint32)
        self.numbers(f"{name}.codes", (code for codes in lists for code in codes), np.uint32)

    def finish(self) -> Arrays:
        """With the words of `labels` as the last column."""
        self.texts("labels", self._codes)
        return self.arrays


def _to_columns(rows: list[Row]) -> Arrays:
    columns = _Columns()
    snapshots = [snapshot for snapshot, _ in rows]
    columns.texts("snapshot_id", (s.snapshot_id for s in snapshots))
    columns.numbers("macro_weight", (s.macro_weight for s in snapshots), np.float64)
    columns.labels("domain_summary", (s.domain_summary for s in snapshots))
    columns.numbers("domain_share", (w for s in snapshots for w in s.domain_summary.values()), np.float64)
    columns.numbers("conversation_position", (s.conversation_position for s in snapshots), np.int64)
    columns.numbers("forced", (s.forced for s in snapshots), np.bool_)
    columns.numbers("created_at", (s.created_at for s in snapshots), np.float64)
    columns.numbers("n_chunks", (len(s.chunks) for s in snapshots), np.uint32)

    chunks = [chunk for snapshot in snapshots for chunk in snapshot.chunks]
    columns.texts("chunk.chunk_id", (c.chunk_id for c in chunks))
    columns.texts("chunk.text", (c.text for c in chunks))
    columns.numbers("chunk.layer1_score", (c.layer1_score for c in chunks), np.float64)
    columns.labels("chunk.domain_tags", (c.domain_tags for c in chunks))
    columns.numbers("chunk.coherence_score", (c.coherence_score for c in chunks), np.float64)
    columns.labels("chunk.nuance_flags", (c.nuance_flags for c in chunks))
    columns.labels("chunk.parent_id", ([] if c.parent_id is None else [c.parent_id] for c in chunks))
    columns.numbers("chunk.created_at", (c.created_at for c in chunks), np.float64)

    origins = [origin for _, origin in rows if origin is not None]
    columns.numbers("has_origin", (origin is not None for _, origin in rows), np.bool_)
    columns.labels("origin.namespace", ([o.namespace] for o in origins))
    columns.texts("origin.snapshot_id", (o.snapshot_id for o in origins))
    columns.numbers("origin.conversation_position", (o.conversation_position for o in origins), np.int64)
    columns.numbers("origin.decay", (o.decay for o in origins), np.float64)
    return columns.finish()


class _Reader:
    """The values of a block's arrays, one after the other."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._labels = list(self.texts("labels"))

    def numbers(self, name: str) -> Iterator[Any]:
        return iter(self._arrays[name].tolist())

    def texts(self, name: str) -> Iterator[str]:
        data = self._arrays[f"{name}.bytes"].tobytes()
        end = 0
        for length in self._arrays[f"{name}.lengths"].tolist():
            start, end = end, end + length
            yield data[start:end].decode("utf-8", "surrogatepass")

    def labels(self, name: str) -> Iterator[list[str]]:
        labels = self._labels
        codes = self.numbers(f"{name}.codes")
        for length in self._arrays[f"{name}.lengths"].tolist():
            yield [labels[code] for code in islice(codes, length)]


def _from_columns(arrays: Arrays) -> Iterator[Row]:
    read = _Reader(arrays)
    chunks = map(
        WeightedChunk,
        read.texts("chunk.chunk_id"),
        read.texts("chunk.text"),
        read.numbers("chunk.layer1_score"),
        read.labels("chunk.domain_tags"),
        read.numbers("chunk.coherence_score"),
        read.labels("chunk.nuance_flags"),
        (parent[0] if parent else None for parent in read.labels("chunk.parent_id")),
        read.numbers("chunk.created_at"),
    )
    shares = read.numbers("domain_share")
    snapshots = map(
        ContextSnapshot,
        read.texts("snapshot_id"),
        (list(islice(chunks, n)) for n in read.numbers("n_chunks")),
        read.numbers("macro_weight"),
        ({tag: next(shares) for tag in tags} for tags in read.labels("domain_summary")),
        read.numbers("conversation_position"),
        read.numbers("forced"),
        read.numbers("created_at"),
    )
    origins = map(
        Provenance,
        (namespace[0] for namespace in read.labels("origin.namespace")),
        read.texts("origin.snapshot_id"),
        read.numbers("origin.conversation_position"),
        read.numbers("origin.decay"),
    )
    for snapshot, has_origin in zip(snapshots, read.numbers("has_origin"), strict=True):
        yield snapshot, next(origins) if has_origin else None


# ---- blocks

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_MEMBER, _DIRECTORY, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


def _write_blocks(path: Path, rows: Iterable[Row]) -> None:
    rows = iter(rows)
    with replacing(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for block, part in enumerate(iter(lambda: list(islice(rows, BLOCK_SNAPSHOTS)), [])):
            for name, array in _to_columns(part).items():
                data = io.BytesIO()
                np.lib.format.write_array(data, array, allow_pickle=False)
                # No time of day in the name's record: the same map makes the same file.
                info = zipfile.ZipInfo(f"{block:06d}.{name}.npy")
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, data.getbuffer())


def _read_blocks(path: Path) -> Iterator[Row | Tear]:
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        head = stream.read(4)
        if head not in (_MEMBER, _END) and size:
            raise ValueError(f"{os.fspath(path)} is not an .npz file")
        stream.seek(0)
        offset, block = 0, 0
        arrays: Arrays = {}
        while member := _read_member(stream):
            name, array = member
            if not name.startswith(f"{block:06d}."):
                break
            name = name.removeprefix(f"{block:06d}.").removesuffix(".npy")
            arrays[name] = array
            if name == _LAST_COLUMN:
                yield from _checked_rows(arrays, path, block)
                offset, block, arrays = stream.tell(), block + 1, {}
        if member is not None:
            yield Tear(os.fspath(path), f"block {block}", offset, size - offset)


def _checked_rows(arrays: Arrays, path: Path, block: int) -> Iterator[Row]:
    try:
        rows = list(_from_columns(arrays))
    except (KeyError, IndexError, StopIteration, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)}, block {block}: {error.args[0]}") from error
    yield from rows


def _read_member(stream: BinaryIO) -> tuple[str, npt.NDArray[Any]] | tuple[()] | None:
    """Name and array of the next member; () where the file is damaged, None after the last.

    Goes by the members' own headers: the directory of a zip file is at its end, where a torn file has none.
    """
    header = stream.read(_LOCAL_HEADER.size)
    if header[:4] in (_DIRECTORY, _END):
        return None
    if len(header) < _LOCAL_HEADER.size or header[:4] != _MEMBER:
        return ()
    _, _, _, method, _, _, crc, n_packed, n_plain, n_name, n_extra = _LOCAL_HEADER.unpack(header)
    name = stream.read(n_name).decode("ascii", "replace")
    stream.seek(n_extra, os.SEEK_CUR)
    packed = stream.read(n_packed)
    try:
        data = zlib.decompress(packed, -zlib.MAX_WBITS) if method == zipfile.ZIP_DEFLATED else packed
        if len(data) != n_plain or zlib.crc32(data) != crc:
            return ()
        return name, np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except (zlib.error, ValueError):
        return ()
