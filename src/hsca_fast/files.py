"""Files that are written whole or not at all, and what is said of those that were torn."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True, slots=True)
class Tear:
    """Where a file stops making sense.

    Attributes
    ----------
    place
        The line or block that could not be read.
    offset
        The bytes before it, all of which were read.
    n_lost
        The bytes from there to the end.
    """

    path: str
    place: str
    offset: int
    n_lost: int

    def __str__(self) -> str:
        return f"{self.path} is torn at {self.place}: the first {self.offset} bytes were read, {self.n_lost} are lost"


class TornFileWarning(UserWarning):
    """A file was damaged, and read up to the damage."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose bytes appear under `path` when the block ends without an exception: all of them, durably, or none."""
    target = os.path.realpath(path)  # a link stays a link
    mode = None
    with suppress(FileNotFoundError):
        mode = os.stat(target).st_mode
    if mode is not None and not stat.S_ISREG(mode):  # a device or a pipe can only be written in place
        with open(target, "wb") as stream:
            yield stream
        return
    folder, name = os.path.split(target)
    # Hidden, so that a directory that is both input and output is not read half-written.
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with open(temporary, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_directory(folder)


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Make the names in a directory durable."""
    with suppress(OSError):  # not every file system can; the files themselves are safe by now
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
