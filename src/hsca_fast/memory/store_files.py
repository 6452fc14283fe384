"""The files of a store beside its catalog: the manifest, the writer's lock, and the head that outlives a damaged log.

manifest.json     what the store is: format, id, model; written once, checksummed
writer.lock       held by the one process that writes; says which
head              how far the catalog had come; written after each commit, never waited for
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import time
import uuid
import weakref
import zlib
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import FileIO

from hsca_fast.files import replacing, sync_directory
from hsca_fast.vectors.guard import ModelStamp
from hsca_fast.vectors.storage import DamagedIndexError

FORMAT_NAME = "hsca-store"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
LOCK = "writer.lock"
HEAD = "head"
CATALOG = "catalog.sqlite3"
REPAIRED = ".repaired"  # behind the name of a store: what a repair has made and not yet put in its place

_HEAD = struct.Struct("<8sqqI")
_HEAD_MAGIC = b"hscahead"
_POLL_SECONDS = 0.01


class StoreVersionError(ValueError):
    """A store of another format version than this release reads."""


class StoreLocked(RuntimeError):  # noqa: N818 (the name is the contract)
    """Another process writes to the store.

    Attributes
    ----------
    path
        Of the store.
    pid, host
        Of the process that holds the lock, None when it has not said yet.
    """

    def __init__(self, path: str, pid: int | None, host: str | None) -> None:
        super().__init__(path, pid, host)
        self.path, self.pid, self.host = path, pid, host

    def __str__(self) -> str:
        holder = "another process" if self.pid is None else f"process {self.pid} on {self.host}"
        return f'{self.path} is written by {holder}; open it with mode="r", or wait (timeout=)'


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a store is; nothing in it changes."""

    store_id: str
    model: ModelStamp
    created_at: float
    metric: str = "cosine"

    @classmethod
    def new(cls, model: ModelStamp) -> Manifest:
        return cls(uuid.uuid4().hex, model, time.time())

    def write(self, folder: str) -> None:
        content: dict[str, object] = {
            "format": FORMAT_NAME,
            "version": FORMAT_VERSION,
            "store_id": self.store_id,
            "model": {"name": self.model.name, "dim": self.model.dim, "fingerprint": self.model.fingerprint},
            "metric": self.metric,
            "created_at": self.created_at,
        }
        content["sha256"] = _digest(content)
        with replacing(os.path.join(folder, MANIFEST)) as stream:
            stream.write(json.dumps(content, indent=1).encode())

    @classmethod
    def read(cls, folder: str) -> Manifest:
        path = os.path.join(folder, MANIFEST)
        with open(path, "rb") as stream:
            data = stream.read(1 << 20)
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            raise DamagedIndexError(f"{path} is not JSON: damaged, or not a store of ours") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT_NAME:
            raise DamagedIndexError(f"{path} is not the manifest of a store ({FORMAT_NAME!r}): damaged, or another's")
        if content.get("sha256") != _digest(content):
            raise DamagedIndexError(f"{path}: the checksum does not match; the file is damaged")
        if content["version"] != FORMAT_VERSION:
            raise StoreVersionError(
                f"{path}: format version {content['version']}; this release reads {FORMAT_VERSION} (docs/store.md)"
            )
        return cls(content["store_id"], ModelStamp(**content["model"]), content["created_at"], content["metric"])


def _digest(content: dict[str, object]) -> str:
    text = json.dumps({key: value for key, value in content.items() if key != "sha256"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class WriterLock:
    """A lock of the operating system's on a file of the store: a process that dies loses it, and so does a dropped index."""

    def __init__(self, folder: str, timeout: float) -> None:
        self._file: FileIO | None = None
        path = os.path.join(folder, LOCK)
        deadline = time.monotonic() + timeout
        while not self._acquire(path):
            if time.monotonic() >= deadline:
                raise StoreLocked(folder, *_holder(path))
            time.sleep(_POLL_SECONDS)
        _held.add(self)

    def _acquire(self, path: str) -> bool:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:  # of the folder: a repair is about to put another in its place
            return False
        with ExitStack() as on_failure:
            file = on_failure.enter_context(FileIO(descriptor, "r+"))
            # A repair may have moved the folder away while we waited: then this is the lock of the damaged store.
            if not _try_lock(descriptor) or not _is_file_at(descriptor, path):
                return False
            who = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, who, 0)
            self._file = file
            on_failure.pop_all()
        return True

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    __del__ = release  # an index that was dropped without `close` must not lock its store for the life of the process


_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """A child shares the lock of its parent, who could then neither release it nor lose it by dying."""
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)


def _is_file_at(descriptor: int, path: str) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    return False


def _holder(path: str) -> tuple[int | None, str | None]:
    with suppress(ValueError, KeyError, TypeError, OSError), open(path, "rb") as stream:
        said = json.loads(stream.read(4096))
        return int(said["pid"]), str(said["host"])
    return None, None


if os.name == "nt":
    import msvcrt

    _LOCKED_BYTE = 1 << 30  # beyond what is written, which others read

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def write_head(folder: str, generation: int, last_sequence: int) -> None:
    """How far the catalog has come. Not synced: a stale one only means that a loss goes unnoticed here."""
    body = _HEAD.pack(_HEAD_MAGIC, generation, last_sequence, 0)[:-4]
    data = body + struct.pack("<I", zlib.crc32(body))
    path = os.path.join(folder, HEAD)
    new = not os.path.exists(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.pwrite(descriptor, data, 0)
    finally:
        os.close(descriptor)
    if new:
        sync_directory(folder)


def read_head(folder: str) -> tuple[int, int] | None:
    """(generation, last sequence); None when there is none, or none that is whole."""
    try:
        with open(os.path.join(folder, HEAD), "rb") as stream:
            data = stream.read(_HEAD.size + 1)
    except FileNotFoundError:
        return None
    if len(data) != _HEAD.size:
        return None
    magic, generation, last_sequence, crc = _HEAD.unpack(data)
    if magic != _HEAD_MAGIC or zlib.crc32(data[:-4]) != crc:
        return None
    return generation, last_sequence
