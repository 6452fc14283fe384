"""Files that are whole or absent: written beside, synced, renamed, and checked before anything in them is parsed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

MANIFEST = "manifest.json"
FORMAT = 1
_OWN_FILE = re.compile(r"[a-z]+-[0-9a-f]{32}\.(npy|faiss)|\.[0-9a-f]{16}\.tmp")
_MAGIC = b"hsca array 1\n"

_T = TypeVar("_T")


class DamagedIndexError(ValueError):
    """A file that is not what was written: truncated, altered, or another's."""


class _HashingFile(io.RawIOBase):
    """Passes writes on and hashes them."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.sha256 = hashlib.sha256()
        self.n_bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.sha256.update(view)
        self.n_bytes += len(view)
        self._stream.write(view)
        return len(view)


def _sync_folder(folder: str) -> None:
    with suppress(OSError):  # not every file system can
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_whole(path: str, write: Callable[[BinaryIO], object]) -> None:
    """What `write` writes appears under `path` complete or not at all."""
    folder = os.path.dirname(path) or "."
    temporary = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def write_array(path: str, array: npt.NDArray[Any]) -> None:
    """One array with its checksum in front."""
    body = io.BytesIO()
    np.lib.format.write_array(body, array, allow_pickle=False)
    digest = hashlib.sha256(body.getbuffer()).hexdigest().encode()
    _write_whole(path, lambda stream: stream.write(b"".join((_MAGIC, digest, b"\n", body.getbuffer()))))


def read_array(path: str) -> npt.NDArray[Any]:
    """What `write_array` wrote."""
    with open(path, "rb") as stream:
        head = stream.read(len(_MAGIC) + 65)
        body = stream.read()
    if not head.startswith(_MAGIC) or hashlib.sha256(body).hexdigest().encode() + b"\n" != head[len(_MAGIC) :]:
        raise DamagedIndexError(f"{path}: the checksum does not match; the file is damaged or not of this kind")
    array: npt.NDArray[Any] = np.lib.format.read_array(io.BytesIO(body), allow_pickle=False)
    return array


def _put(folder: str, kind: str, ending: str, write: Callable[[BinaryIO], object]) -> dict[str, Any]:
    """A file named by its content; returns its entry in the manifest."""
    temporary = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            hashing = _HashingFile(stream)
            write(hashing)  # type: ignore[arg-type]
            stream.flush()
            os.fsync(stream.fileno())
        digest = hashing.sha256.hexdigest()
        name = f"{kind}-{digest[:32]}.{ending}"
        os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return {"name": name, "bytes": hashing.n_bytes, "sha256": digest}


def _write_blob(stream: BinaryIO, blob: bytes) -> None:
    stream.write(blob)


def _digest(manifest: Mapping[str, Any]) -> str:
    text = json.dumps({k: v for k, v in manifest.items() if k != "sha256"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _make_folder(folder: str) -> None:
    """Makes it, and those it is in, so that a loss of power does not take it away again."""
    new = os.path.abspath(folder)
    if os.path.isdir(new):
        return
    _make_folder(os.path.dirname(new))
    os.makedirs(new, exist_ok=True)
    _sync_folder(os.path.dirname(new))


def write_folder(
    folder: str, meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], blobs: Mapping[str, bytes]
) -> None:
    """Arrays and blobs under content names, then the manifest that makes them the index, in that order.

    A writer that dies leaves the index as it was before. One writer at a time.
    """
    _make_folder(folder)
    files = {}
    for kind, array in arrays.items():
        write = partial(np.lib.format.write_array, array=array, allow_pickle=False)
        files[kind] = _put(folder, kind, "npy", write)
    for kind, blob in blobs.items():
        files[kind] = _put(folder, kind, "faiss", partial(_write_blob, blob=blob))
    _sync_folder(folder)
    manifest: dict[str, Any] = {"format": FORMAT, **meta, "files": files}
    manifest["sha256"] = _digest(manifest)
    text = json.dumps(manifest, indent=1, sort_keys=True).encode()
    _write_whole(os.path.join(folder, MANIFEST), lambda stream: stream.write(text))
    current = {entry["name"] for entry in files.values()}
    for name in os.listdir(folder):
        if _OWN_FILE.fullmatch(name) and name not in current:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


class MissingFileError(DamagedIndexError):
    """A file that the manifest names is not there: gone, or a writer has replaced the index meanwhile."""


def read_folder(path: str, read: Callable[[Folder], _T]) -> _T:
    """What `read` makes of the folder; read again if a writer took files away under it."""
    folder = Folder(path)
    while True:
        try:
            return read(folder)
        except MissingFileError:
            if folder.is_current():
                raise
            folder = Folder(path)


class Folder:
    """An index on disk. Every byte is checked before it is parsed, in the file that is then read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.manifest = _read_manifest(path)

    def is_current(self) -> bool:
        """False if the index has been written anew since."""
        return _read_manifest(self.path) == self.manifest

    def has(self, kind: str) -> bool:
        """Whether the index has such a file."""
        return kind in self.manifest["files"]

    def blob(self, kind: str) -> bytes:
        """A file as it is."""
        with self._checked(kind) as stream:
            return stream.read()

    def array(
        self, kind: str, dtype: type[np.generic], shape: tuple[int, ...], *, mmap: bool = False
    ) -> npt.NDArray[Any]:
        """An array, mapped read-only if `mmap`."""
        with self._checked(kind) as stream:
            found = np.lib.format.read_magic(stream), np.lib.format.read_array_header_1_0(stream)
            if found != ((1, 0), (shape, False, np.dtype(dtype))):
                raise DamagedIndexError(f"{stream.name} holds {found[1]}; the manifest says {dtype.__name__} {shape}")
            if mmap and 0 not in shape:  # a map of nothing is an error of the system
                mapped = np.memmap(stream, dtype, "r", stream.tell(), shape)
                return mapped.view(np.ndarray)
            return np.fromfile(stream, dtype).reshape(shape)

    def _checked(self, kind: str) -> io.BufferedReader:
        """The file, open at its start, its bytes those that were written."""
        entry = self.manifest["files"][kind]
        path = os.path.join(self.path, entry["name"])
        try:
            stream = open(path, "rb")  # noqa: SIM115 (the caller closes it)
        except FileNotFoundError:
            raise MissingFileError(f"{path} is missing") from None
        try:
            n_bytes = os.fstat(stream.fileno()).st_size
            if n_bytes != entry["bytes"]:
                raise DamagedIndexError(f"{path} has {n_bytes} bytes; {entry['bytes']} were written")
            if hashlib.file_digest(stream, "sha256").hexdigest() != entry["sha256"]:
                raise DamagedIndexError(f"{path}: the checksum does not match; the file is damaged or another's")
            stream.seek(0)
        except BaseException:
            stream.close()
            raise
        return stream


def _read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of `folder`, checked."""
    path = os.path.join(folder, MANIFEST)
    with open(path, "rb") as stream:
        text = stream.read()
    try:
        manifest = json.loads(text)
        intact = isinstance(manifest, dict) and manifest.get("sha256") == _digest(manifest)
    except (ValueError, RecursionError):
        intact = False
    if not intact:
        raise DamagedIndexError(f"{path}: the checksum does not match; the file is damaged")
    if manifest.get("format") != FORMAT:
        raise DamagedIndexError(f"{path}: format {manifest.get('format')!r} is not known; this release reads {FORMAT}")
    return dict(manifest)
