"""A store as its own process sees it: the files, the lock, and transactions over them.

    append    vectors ─► segment ─► fsync ─► records and blocks ─► SQLite commit ─► head
    change    states ─► SQLite commit ─► head

A process may die anywhere on these lines: what was committed is whole, what was not does not count.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

import numpy as np

from hsca_fast.memory.catalog import Catalog, State, Tip, is_unfinished
from hsca_fast.memory.records import Incoming
from hsca_fast.memory.segments import Float32, SegmentWriter
from hsca_fast.memory.store_files import (
    CATALOG,
    LOCK,
    MANIFEST,
    REPAIRED,
    Manifest,
    WriterLock,
    read_head,
    write_head,
)
from hsca_fast.memory.view import View
from hsca_fast.vectors.guard import ModelStamp, check_model
from hsca_fast.vectors.storage import DamagedIndexError

_UNFINISHED_MANIFEST = f".{MANIFEST}."
_INDEX_NOW = 512  # so many records are put into the full-text index by the append itself


class Store:
    """The one open store behind a `SemanticIndex`."""

    def __init__(self, folder: str, manifest: Manifest, catalog: Catalog, lock: WriterLock | None) -> None:
        self.folder = folder
        self.manifest = manifest
        self.catalog = catalog
        self.mutex = threading.RLock()
        self.closed = False
        self._lock = lock
        self._pid = os.getpid()
        self._is_appending = False
        head = read_head(folder)  # before the tip: a writer beside a reader may commit between the two
        self.view = View(catalog, folder, manifest.model.dim)
        self._segments = SegmentWriter(folder, manifest.model.dim)
        tip = self.view.tip
        if head is not None and head[0] > tip.generation:
            raise DamagedIndexError(
                f"{folder}: {head[0] - tip.generation} commits are missing from the catalog, up to record {head[1]};"
                " its write-ahead log is damaged or gone: see `hsca index repair`"
            )
        if catalog.write:
            self._segments.check(tip.segment, tip.segment_rows)
            self._segments.cut(tip.segment, tip.segment_rows)

    @classmethod
    def open(cls, folder: str, model: ModelStamp | None, *, write: bool, timeout: float) -> Store:
        """A store with this model; one that is to be written is made if it is missing."""
        lock: WriterLock | None = None
        catalog: Catalog | None = None
        try:
            if not os.path.isdir(folder) and os.path.exists(os.path.join(folder + REPAIRED, MANIFEST)):
                raise DamagedIndexError(f"{folder} is missing: a repair was stopped at its last step; start it again")
            if write:
                if model is None and not os.path.isdir(folder):
                    raise FileNotFoundError(f"{folder} is not there, and a new store needs an embedder")
                os.makedirs(folder, exist_ok=True)
                if not _is_free(folder):  # not even a lock is written to a folder of someone else's
                    _manifest(folder, model)
                lock = WriterLock(folder, timeout)
                if _is_free(folder):
                    _found(folder, model)
            manifest = _manifest(folder, model)
            catalog = _catalog(folder, manifest, write=write)
            catalog.check(manifest.store_id, manifest.model)
            return cls(folder, manifest, catalog, lock)
        except BaseException:
            if catalog is not None:
                catalog.abandon()
            if lock is not None:
                lock.release()
            raise

    def close(self) -> None:
        with self.mutex:
            if self.closed:
                return
            self.closed = True
            if os.getpid() != self._pid:  # a forked copy: nothing here is its own
                return
            try:
                if self.catalog.write:
                    with suppress(OSError, DamagedIndexError):  # derived: whoever opens it next goes on
                        self.catalog.index_text(self.catalog.tip())
            finally:
                self._segments.close()
                try:
                    self.catalog.close()
                finally:
                    if self._lock is not None:
                        self._lock.release()

    def check_open(self, *, write: bool = False) -> None:
        if self.closed:
            raise ValueError(f"{self.folder} is closed")
        if os.getpid() != self._pid:
            raise RuntimeError(f"{self.folder} was opened by process {self._pid}: open it again after a fork")
        if write and not self.catalog.write:
            raise PermissionError(f'{self.folder} is open with mode "r"')

    @contextmanager
    def reading(self) -> Iterator[Tip]:
        """One state of the store until the block ends."""
        with self.mutex:
            self.check_open()
            with self.catalog.transaction(write=False):
                yield self.view.refresh()

    @contextmanager
    def writing(self) -> Iterator[Tip]:
        """All of the block, durably, or nothing."""
        with self.mutex:
            self.check_open(write=True)
            with self.catalog.transaction():
                yield self.view.refresh()
            tip = self.view.refresh()
            with suppress(OSError):  # derived; the commit is done
                write_head(self.folder, tip.generation, tip.last_sequence)

    def append(
        self,
        tip: Tip,
        new: Incoming,
        pieces: Iterable[Float32],
        also: Callable[[Tip, int], dict[str, int]] | None = None,
    ) -> list[bytes]:
        """Vectors, sync, commit; returns the ids. `also` writes more in the same commit and returns what it changes in the tip; it
        is told the sequence number of the first record.

        The caller has the mutex since it read `tip`.
        """
        n, first = len(new), tip.last_sequence + 1
        if not n:
            return []
        ids = new.ids if new.ids is not None else _new_ids(first, n)
        given: dict[bytes, int] = {}
        if new.ids is not None:
            given = {id_: first + i for i, id_ in enumerate(ids) if int.from_bytes(id_[:8]) != first + i}
        if self._is_appending:
            raise RuntimeError("an append was begun by the embedder, or the progress, of another one of the same index")
        self._is_appending = True
        try:
            blocks = self._segments.append(tip.segment, tip.segment_rows, first, pieces)
        finally:
            self._is_appending = False
        changes = {
            "last_sequence": tip.last_sequence + n,
            "segment": blocks[-1].segment,
            "segment_rows": blocks[-1].start + blocks[-1].n,
        }
        try:
            with self.writing() as tip:
                changes["given_digest"] = tip.given_digest ^ self.catalog.insert(new.rows(first, ids), blocks, given)
                if also is not None:
                    changes |= also(tip, first)
                after = self.catalog.advance(tip, **changes)
                if after.last_sequence - after.indexed <= _INDEX_NOW:
                    self.catalog.index_text(after)
        except BaseException:
            with suppress(OSError, ValueError):  # else the next append cuts them off
                if self.catalog.tip().generation == tip.generation:  # an interrupt may come when all is done
                    self._segments.cut(tip.segment, tip.segment_rows)
            raise
        return ids

    def change(self, tip: Tip, sequences: Iterable[int], change: Callable[[State], State], **more: int) -> None:
        """New states of records, where they differ, in the transaction of `tip`."""
        each = list(dict.fromkeys(sequences))
        states = self.view.states(each)
        new = []
        for sequence in each:
            before = states.get(sequence, State(sequence))
            after = change(before)
            if after != before:
                new.append(after)
        if new or more:
            digest = self.catalog.put_states(new, tip.generation + 1)
            self.catalog.advance(tip, states_digest=tip.states_digest ^ digest, **more)

    def compact(self) -> None:
        """Finish the full-text index and merge it, join small blocks, and fold the log into the catalog."""
        with self.mutex:
            self.check_open(write=True)
            self.catalog.index_text(self.catalog.tip())
            self.catalog.merge_text()
            with self.writing() as tip:
                joined = self.view.segments().joined_blocks()
                if joined is not None:
                    self.catalog.replace_blocks(joined)
                    self.catalog.advance(tip, layout=tip.layout + 1)
            self.catalog.checkpoint()


def _new_ids(first: int, n: int) -> list[bytes]:
    """The sequence number, so that an id finds its record without an index, and 64 random bits, so that it is no other's."""
    halves = np.empty((n, 2), ">u8")
    halves[:, 0] = np.arange(first, first + n)
    halves[:, 1] = np.frombuffer(os.urandom(8 * n), ">u8")
    data = halves.tobytes()
    return [data[at : at + 16] for at in range(0, 16 * n, 16)]


def _is_free(folder: str) -> bool:
    """Whether a new store may be made here. A folder with other things in it is none, and one without its manifest is not
    begun anew."""
    names = [name for name in os.listdir(folder) if name != LOCK and not name.startswith(_UNFINISHED_MANIFEST)]
    if names and MANIFEST not in names:
        raise DamagedIndexError(f"{folder} has no {MANIFEST} but is not empty ({', '.join(sorted(names)[:3])})")
    return not names


def _found(folder: str, model: ModelStamp | None) -> None:
    """Make a new store; whoever tried before was stopped."""
    if model is None:
        raise ValueError("a new store needs an embedder")
    for name in os.listdir(folder):
        if name.startswith(_UNFINISHED_MANIFEST):
            os.unlink(os.path.join(folder, name))
    Manifest.new(model).write(folder)


def _catalog(folder: str, manifest: Manifest, *, write: bool) -> Catalog:
    """The catalog; a writer makes it if the store was begun and no more."""
    if not is_unfinished(folder):
        if not os.path.exists(
            os.path.join(folder, CATALOG)
        ):  # never begun anew: there are vectors, or commits to tell of
            raise DamagedIndexError(f"{os.path.join(folder, CATALOG)} is missing")
        return Catalog(folder, write=write)
    if not write:
        raise FileNotFoundError(f"{folder} is not a store yet: it was begun, and no more; the next writer goes on")
    catalog = Catalog(folder, write=True)
    try:
        catalog.create(manifest.store_id, manifest.model)
    except BaseException:
        catalog.abandon()
        raise
    return catalog


def _manifest(folder: str, model: ModelStamp | None) -> Manifest:
    """The manifest of a store whose vectors are this model's."""
    try:
        manifest = Manifest.read(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{folder} is not a store: it has no {MANIFEST}") from None
    if model is not None:
        check_model(manifest.model, model, strict=True)
    return manifest
