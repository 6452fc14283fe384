"""The semantic index: every chunk of a conversation kept for ever, found by meaning and by words.

    append ─► check ─► embed ─► segment, fsync ─► catalog, commit ─► ids          (durable when it returns)
    query  ─► filter ─► vector arm + lexical arm ─► fuse ─► hits                  (reads only)

The records and their vectors are the truth; the full-text index and everything in memory is derived from them.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hsca_fast.memory.catalog import STATUSES, Access, Catalog, Row, State, Status, Tip
from hsca_fast.memory.filters import Where, check_where
from hsca_fast.memory.records import ChunkLike, Hit, Incoming, Record, checked_text, finite, id_bytes, incoming
from hsca_fast.memory.search import SearchSettings, allowed_records, search
from hsca_fast.memory.segments import BLOCK_ROWS, SegmentWriter
from hsca_fast.memory.session_view import SessionView
from hsca_fast.memory.store_files import CATALOG, MANIFEST, Manifest, WriterLock, read_head, write_head
from hsca_fast.memory.verification import Report, verify_store
from hsca_fast.memory.view import View
from hsca_fast.vectors.arrays import as_count, as_rows
from hsca_fast.vectors.embedder import Embedder, Progress
from hsca_fast.vectors.guard import ModelMismatchError, ModelStamp, check_model
from hsca_fast.vectors.storage import DamagedIndexError

Float32 = npt.NDArray[np.float32]
OnConflict = Literal["error", "skip"]
_INDEX_NOW = 512  # so many records are put into the full-text index by the append itself
_MAX_VALUE = 1e15  # squares of larger numbers, summed, may leave float32


class SemanticIndex:
    """An append-only store of chunks with their vectors, in a directory. Open it with `SemanticIndex.open`.

    One process writes at a time; others read, each operation one consistent state. Threads may share an index.

    Attributes
    ----------
    path
        The directory.
    store_id
        32 hexadecimal digits that no other store has.
    model
        What made its vectors.
    embedder
        The one it was opened with; None for a store that is given vectors.

    Examples
    --------
    >>> import tempfile
    >>> from hsca_fast import default_embedder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SemanticIndex.open(f"{folder}/talk", embedder=default_embedder()) as index:
    ...         ids = index.append(["The lamp is broken.", "We sail at dawn."], turn_id="1", role="user")
    ...         hit = index.query("which light needs repair?", k=1)[0]
    ...         print(hit.text, hit.id == ids[0], index.count())
    The lamp is broken. True 2
    """

    def __init__(
        self,
        path: str,
        manifest: Manifest,
        embedder: Embedder | None,
        catalog: Catalog,
        lock: WriterLock | None,
        settings: SearchSettings,
        clock: Callable[[], float],
    ) -> None:
        self.path = path
        self.store_id = manifest.store_id
        self.model = manifest.model
        self.embedder = embedder
        self.settings = settings
        self._catalog = catalog
        self._lock = lock
        self._clock = clock
        self._last_stamp = float("-inf")
        self._pid = os.getpid()
        self._mutex = threading.RLock()
        self._closed = False
        self._segments = SegmentWriter(path, self.model.dim)
        self._view = View(catalog, path, self.model.dim)
        head = read_head(path)
        if head is not None and head[0] > self._view.tip.generation:
            raise DamagedIndexError(
                f"{path}: {head[0] - self._view.tip.generation} commits are missing from the catalog, up to record"
                f" {head[1]}; its write-ahead log is damaged or gone: see `hsca index repair`"
            )

    # ---- opening and closing

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        embedder: Embedder | None,
        mode: Literal["a", "r"] = "a",
        timeout: float = 0.0,
        settings: SearchSettings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> SemanticIndex:
        """Open a store; with mode "a" a missing one is made.

        Parameters
        ----------
        embedder
            Must be the one that the store was made with. None for an existing store whose vectors are always given.
        mode
            "a" to append, "r" to read: it never writes.
        timeout
            Seconds to wait for another writer.
        settings
            How `query` weighs its arms.
        clock
            For records without timestamps and for accesses.

        Raises
        ------
        StoreLocked
            Another process writes to the store.
        ModelMismatchError
            The store's vectors are of another model. Nothing has been written.
        DamagedIndexError
            A file is damaged, missing, or not of a store.
        StoreVersionError
            A newer format.
        """
        if mode not in ("a", "r"):
            raise ValueError(f'mode must be "a" or "r", not {mode!r}')
        timeout = finite(timeout, "timeout")
        folder = os.path.abspath(os.fspath(path))
        given = None if embedder is None else ModelStamp.of(embedder)
        lock: WriterLock | None = None
        catalog: Catalog | None = None
        try:
            if mode == "a":
                _make_folder(folder, given)
                lock = WriterLock(folder, timeout)
                if not os.path.exists(os.path.join(folder, MANIFEST)):
                    if given is None:
                        raise ValueError("a new store needs an embedder")
                    _refuse_leftovers(folder)
                    Manifest.new(given).write(folder)
            manifest = _manifest(folder)
            if given is not None:
                check_model(manifest.model, given, strict=True)
            catalog = _catalog(folder, manifest, mode)
            index = cls(folder, manifest, embedder, catalog, lock, settings or SearchSettings(), clock)
            if mode == "a":
                index._segments.check(index._view.tip.segment, index._view.tip.segment_rows)
                index._segments.cut(index._view.tip.segment, index._view.tip.segment_rows)
            return index
        except BaseException:
            if catalog is not None:
                catalog.abandon()
            if lock is not None:
                lock.release()
            raise

    def close(self) -> None:
        """Finish the full-text index, fold the log into the catalog, let another write. Again: nothing."""
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            if os.getpid() != self._pid:  # a forked copy: nothing here is its own
                return
            try:
                if self._catalog.write:
                    with suppress(OSError):  # derived: whoever opens it next goes on
                        self._catalog.index_text(self._catalog.tip())
            finally:
                self._segments.close()
                try:
                    self._catalog.close()
                finally:
                    if self._lock is not None:
                        self._lock.release()

    def __enter__(self) -> SemanticIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SemanticIndex({self.path!r}, {self.model}, {'closed' if self._closed else self.mode!r})"

    @property
    def mode(self) -> Literal["a", "r"]:
        """As it was opened."""
        return "a" if self._catalog.write else "r"

    @property
    def generation(self) -> int:
        """Grows with every commit; the same number means the same content."""
        with self._reading() as tip:
            return tip.generation

    def __len__(self) -> int:
        return self.count()

    @contextmanager
    def _reading(self) -> Iterator[Tip]:
        with self._mutex:
            self._check_open()
            with self._catalog.transaction(write=False):
                yield self._view.refresh()

    @contextmanager
    def _writing(self) -> Iterator[Tip]:
        with self._mutex:
            self._check_open()
            if not self._catalog.write:
                raise PermissionError(f'{self.path} is open with mode "r"')
            with self._catalog.transaction():
                yield self._view.refresh()
            tip = self._view.refresh()
            with suppress(OSError):  # derived; the commit is done
                write_head(self.path, tip.generation, tip.last_sequence)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self.path} is closed")
        if os.getpid() != self._pid:
            raise RuntimeError(f"{self.path} was opened by process {self._pid}: open it again after a fork")

    # ---- appending

    def append(
        self,
        chunks: Iterable[str | ChunkLike],
        *,
        turn_id: str | Sequence[str] | None = None,
        role: str | Sequence[str] | None = None,
        metadata: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        timestamps: float | Sequence[float] | None = None,
        ids: Sequence[str] | None = None,
        embeddings: npt.ArrayLike | None = None,
        on_conflict: OnConflict = "error",
        progress: Progress | None = None,
    ) -> list[str]:
        """Append chunks: all of them, durably, or on any error none.

        Parameters
        ----------
        chunks
            Texts, or anything with `text`, `n_tokens` and `sentence_id`. A plain text's sentence_id is its row.
        turn_id, role, metadata, timestamps
            One for all or one for each. Without turn_id, this append is a turn of its own; without timestamps, it is now.
        ids
            32 hexadecimal digits each; made up when not given.
        embeddings
            Vectors [n, dim] of the store's model; the embedder makes them when not given.
        on_conflict
            When an id is there already: "error", or "skip" to leave that record as it is.
        progress
            Called with (embedded, of) now and then.

        Returns
        -------
        list of str
            Ids, one a chunk, when all are on disk.
        """
        if on_conflict not in ("error", "skip"):
            raise ValueError(f'on_conflict must be "error" or "skip", not {on_conflict!r}')
        with self._mutex:
            self._check_open()
            if not self._catalog.write:
                raise PermissionError(f'{self.path} is open with mode "r"')
            tip = self._view.refresh()
            new = incoming(
                chunks, turn_id=turn_id, role=role, metadata=metadata, timestamps=timestamps, ids=ids,
                now=self._now(), this_turn=str(tip.generation + 1),
            )  # fmt: skip
            vectors = None if embeddings is None else self._given_vectors(embeddings, len(new))
            if vectors is None and len(new):
                self._check_embedder()
            wanted = new.ids
            if wanted is not None:
                new, vectors = self._without_known(new, vectors, on_conflict)
            assigned = self._write(tip, new, vectors, progress)
        return [id_.hex() for id_ in (assigned if wanted is None else wanted)]

    def _write(
        self,
        tip: Tip,
        new: Incoming,
        vectors: Float32 | None,
        progress: Progress | None,
        also: Callable[[Tip, list[Row]], dict[str, int]] | None = None,
    ) -> list[bytes]:
        """Vectors, sync, commit. `also` writes more in the same transaction and returns what changes in the tip."""
        n, first = len(new), tip.last_sequence + 1
        if not n:
            return []
        if new.ids is None:
            noise = os.urandom(8 * n)
            ids = [(first + i).to_bytes(8) + noise[8 * i : 8 * i + 8] for i in range(n)]
        else:
            ids = new.ids
        given = {id_: first + i for i, id_ in enumerate(ids) if int.from_bytes(id_[:8]) != first + i}
        rows = new.rows(first, ids)
        pieces = self._pieces(new.texts, vectors, progress)
        blocks = self._segments.append(tip.segment, tip.segment_rows, first, pieces)
        last = blocks[-1].segment
        in_last = sum(block.n for block in blocks if block.segment == last)
        changes = {
            "last_sequence": tip.last_sequence + n,
            "segment": last,
            "segment_rows": in_last + (tip.segment_rows if last == tip.segment else 0),
        }
        try:
            with self._writing() as tip:
                changes["given_digest"] = tip.given_digest ^ self._catalog.insert(rows, blocks, given)
                if also is not None:
                    changes |= also(tip, rows)
                after = self._catalog.advance(tip, **changes)
                if after.last_sequence - after.indexed <= _INDEX_NOW:
                    self._catalog.index_text(after)
        except BaseException:
            with suppress(OSError, ValueError):  # else the next append cuts them off
                if self._catalog.tip().generation == tip.generation:  # an interrupt may come when all is done
                    self._segments.cut(tip.segment, tip.segment_rows)
            raise
        return ids

    def _pieces(self, texts: list[str], vectors: Float32 | None, progress: Progress | None) -> Iterator[Float32]:
        """Rows to write, a block at a time."""
        for begin in range(0, len(texts), BLOCK_ROWS):
            part = texts[begin : begin + BLOCK_ROWS]
            if vectors is not None:
                yield vectors[begin : begin + BLOCK_ROWS]
            else:
                assert self.embedder is not None
                made = self._given_vectors(self.embedder.embed_documents(part), len(part), "the embedder's vectors")
                if progress is not None:
                    progress(begin + len(part), len(texts))
                yield made

    def _given_vectors(self, embeddings: npt.ArrayLike, n: int, name: str = "embeddings") -> Float32:
        width = np.shape(embeddings)[-1] if np.ndim(embeddings) == 2 else None
        if width is not None and width != self.model.dim and n:
            found = ModelStamp(name, max(1, width), "")
            raise ModelMismatchError(f"ingest model: {self.model}, {found}: refused", self.model, found)
        rows = as_rows(embeddings, name, width=self.model.dim, ndim=(2,) if n else (1, 2))
        if len(rows) != n:
            raise ValueError(f"{name} has {len(rows)} rows for {n} chunks")
        large = np.flatnonzero(np.abs(rows).max(axis=1, initial=0.0) > _MAX_VALUE)
        if len(large):
            raise ValueError(f"{name} has values beyond {_MAX_VALUE:g} in rows {large[:10].tolist()}")
        return rows

    def _check_embedder(self) -> Embedder:
        if self.embedder is None:
            raise ValueError("the store is open without an embedder: give embeddings, or a vector to search with")
        check_model(self.model, ModelStamp.of(self.embedder), strict=True)
        return self.embedder

    def _without_known(
        self, new: Incoming, vectors: Float32 | None, on_conflict: OnConflict
    ) -> tuple[Incoming, Float32 | None]:
        assert new.ids is not None
        known = {i for i, found in enumerate(self._view.find(new.ids)) if found is not None}
        if known and on_conflict == "error":
            row = min(known)
            raise ValueError(f'ids[{row}] is {new.ids[row].hex()}, which is in the store already (on_conflict="skip")')
        if not known:
            return new, vectors
        left = [i for i in range(len(new)) if i not in known]
        return new.without(known), None if vectors is None else vectors[left]

    def _now(self) -> float:
        """The clock, but never earlier than it said before: an order in time must not turn round."""
        self._last_stamp = max(self._last_stamp, finite(self._clock(), "clock()"))
        return self._last_stamp

    # ---- reading

    def get(self, id: str) -> Record:
        """The record with this id, whatever became of it; KeyError if there is none."""
        return self.get_many([id])[0]

    def get_many(self, ids: Sequence[str]) -> list[Record]:
        """Records in the order of `ids`; KeyError names the first that is not there."""
        with self._reading():
            return self._records(self._sequences(ids))

    def vectors(self, ids: Sequence[str]) -> Float32:
        """Vectors [n, dim] of these records, as they were stored."""
        with self._reading():
            return self._view.segments().take(np.array(self._sequences(ids), np.int64))

    def count(self, where: Where | None = None, *, include_archived: bool = False) -> int:
        """Records that a query would look at."""
        where = None if where is None else check_where(where)
        with self._reading() as tip:
            allowed = allowed_records(self._view, where, include_archived)
            return tip.last_sequence if allowed is None else int(allowed.sum())

    def iter_records(
        self, batch_size: int = 5000, *, after: int = 0, where: Where | None = None, include_archived: bool = False
    ) -> Iterator[list[Record]]:
        """The records there are now, in order, in lists of `batch_size`; memory is that of one list.

        Parameters
        ----------
        after
            Begin behind this sequence number.
        """
        batch_size = as_count(batch_size, "batch_size", least=1)
        after = as_count(after, "after")
        where = None if where is None else check_where(where)
        with self._reading() as tip:
            last = tip.last_sequence
        return self._iterate(batch_size, after, last, where, include_archived)

    def _iterate(
        self, batch_size: int, after: int, last: int, where: Where | None, include_archived: bool
    ) -> Iterator[list[Record]]:
        waiting: list[Record] = []
        while after < last:
            stop = min(last, after + batch_size)
            with self._reading():
                allowed = allowed_records(self._view, where, include_archived)
                if allowed is None:
                    sequences = list(range(after + 1, stop + 1))
                    rows = self._catalog.rows(after, stop)
                else:
                    sequences = (np.flatnonzero(allowed[after:stop]) + after + 1).tolist()
                    rows = self._catalog.rows_at(sequences)
                states = self._view.states(sequences)
            after = stop
            waiting += [Record.of(row, states.get(row.sequence)) for row in rows]
            if len(waiting) >= batch_size:
                yield waiting[:batch_size]
                waiting = waiting[batch_size:]
        if waiting:
            yield waiting

    def _sequences(self, ids: Sequence[str]) -> list[int]:
        if isinstance(ids, str):
            raise TypeError("ids must be a sequence of str, not str")
        wanted = [id_bytes(id_, f"ids[{i}]") for i, id_ in enumerate(ids)]
        found = self._view.find(wanted)
        for id_, sequence in zip(ids, found, strict=True):
            if sequence is None:
                raise KeyError(id_)
        return [sequence for sequence in found if sequence is not None]

    def _records(self, sequences: list[int]) -> list[Record]:
        states = self._view.states(sequences)
        return [Record.of(row, states.get(row.sequence)) for row in self._catalog.rows_at(sequences)]

    # ---- searching

    def query(
        self,
        query: str | npt.ArrayLike,
        k: int = 10,
        *,
        where: Where | None = None,
        lexical: bool = True,
        vector: bool = True,
        context_position: int | None = None,
        include_archived: bool = False,
    ) -> list[Hit]:
        """The k best records for a question; deleted ones never, archived ones when asked for.

        Parameters
        ----------
        query
            Text, or a vector, which has no lexical arm.
        where
            Only records that pass are ranked: {"wing": "work", "timestamp": {"$gte": 1.7e9}}. Names are metadata keys, or
            turn_id, role, timestamp; operators $eq $ne $in $nin $gt $gte $lt $lte $exists, and $and $or $not around them.
        lexical, vector
            Which arms to ask. With both, ranks are fused; with one, its own score decides.
        context_position
            A sequence number where the talk is about (negative: from the end); records near it gain a little.
        """
        k = as_count(k, "k")
        where = None if where is None else check_where(where)
        text = checked_text(query, "query") if isinstance(query, str) else None
        if not lexical and not vector:
            raise ValueError("lexical and vector are both off: nothing to search with")
        if text is None and not vector:
            raise ValueError("a vector has no words: the lexical arm needs a text")
        asked: Float32 | None = None
        if vector:
            if text is None:
                asked = as_rows(query, "query", width=self.model.dim, ndim=(1,))[0]
            else:
                asked = np.asarray(self._check_embedder().embed_query(text), np.float32)
        if context_position is not None and (
            isinstance(context_position, bool) or not isinstance(context_position, (int, np.integer))
        ):
            raise TypeError(f"context_position must be an int, not {type(context_position).__name__}")
        with self._mutex:
            if lexical and text is not None and self._catalog.write:
                self._check_open()
                self._catalog.index_text(self._catalog.tip())
            with self._reading() as tip:
                if not k or not tip.last_sequence:
                    return []
                position = context_position
                if position is not None and position < 0:
                    position += tip.last_sequence + 1
                found = search(
                    self._catalog, self._view, self.settings, vector=asked, text=text if lexical else None, k=k,
                    allowed=allowed_records(self._view, where, include_archived), position=position,
                )  # fmt: skip
                records = self._catalog.rows_at([each.sequence for each in found])
        return [_hit(record, each) for record, each in zip(records, found, strict=True)]

    def resurrect(self, query: str | npt.ArrayLike, *, budget: int = 1024, max_results: int = 20) -> list[Hit]:
        """Hits in order of similarity until the next would cost more tokens than are left; each is counted as used."""
        budget = as_count(budget, "budget")
        max_results = as_count(max_results, "max_results")
        taken: list[Hit] = []
        for hit in self.query(query, max_results, lexical=False):
            if hit.n_tokens > budget:
                break
            budget -= hit.n_tokens
            taken.append(hit)
        if taken:
            self.touch([hit.id for hit in taken], query=query if isinstance(query, str) else "")
        return taken

    # ---- what becomes of records

    def touch(self, ids: Sequence[str], *, query: str = "", session: str = "", at: float | None = None) -> None:
        """Log that these records were used: one entry, and one more reference each."""
        query, session = checked_text(query, "query"), checked_text(session, "session")
        with self._mutex:
            now = self._now() if at is None else finite(at, "at")
            with self._writing() as tip:
                sequences = self._sequences(ids)
                if not sequences:
                    return
                times = Counter(sequences)
                self._catalog.log_access(tip.n_accesses + 1, Access(now, query, session, tuple(sequences)))

                def used(state: State) -> State:
                    latest = now if state.last_access is None else max(now, state.last_access)
                    count = state.reference_count + times[state.sequence]
                    return replace(state, reference_count=count, last_access=latest)

                self._change(tip, sequences, used, n_accesses=tip.n_accesses + 1)

    def access_log(self, since: float | None = None) -> Iterator[tuple[float, str, str, list[str]]]:
        """(at, query, session, ids) of every `touch`, in order; only those at `since` or later if given."""
        since = None if since is None else finite(since, "since")
        with self._reading() as tip:
            last = tip.n_accesses
        return self._accesses(last, since)

    def _accesses(self, last: int, since: float | None) -> Iterator[tuple[float, str, str, list[str]]]:
        for after in range(0, last, 1000):
            with self._reading():
                part = [
                    access
                    for access in self._catalog.accesses(after, min(last, after + 1000))
                    if since is None or access.at >= since
                ]
                used = sorted({sequence for access in part for sequence in access.sequences})
                ids = {row.sequence: row.id.hex() for row in self._catalog.rows_at(used)}
            for access in part:
                yield access.at, access.query, access.session, [ids[sequence] for sequence in access.sequences]

    def delete(self, ids: Sequence[str]) -> None:
        """Mark records as deleted: no query finds them again. The log keeps them."""
        self._set_status(ids, "deleted", "", allowed=STATUSES)

    def archive(self, ids: Sequence[str], *, reason: str) -> None:
        """Leave records out of queries until `restore`."""
        self._set_status(ids, "archived", checked_text(reason, "reason"), allowed=("live", "archived"))

    def restore(self, ids: Sequence[str]) -> None:
        """Undo `archive`. What is deleted stays deleted."""
        self._set_status(ids, "live", "", allowed=("live", "archived"))

    def _set_status(self, ids: Sequence[str], status: Status, reason: str, *, allowed: Sequence[Status]) -> None:
        def set_to(state: State) -> State:
            if STATUSES[state.status] not in allowed:
                raise ValueError(f"record {state.sequence} is {STATUSES[state.status]}; it cannot become {status}")
            return replace(state, status=STATUSES.index(status), reason=reason)

        with self._writing() as tip:
            self._change(tip, self._sequences(ids), set_to)

    def supersede(self, old_id: str, new_id: str) -> None:
        """Say that one record corrects another. Both stay and can be found; the older one says so."""
        if old_id == new_id:
            raise ValueError(f"{old_id} cannot supersede itself")
        with self._writing() as tip:
            old, new = self._sequences([old_id, new_id])
            newer = self._catalog.states([new]).get(new)
            if newer is not None and newer.superseded_by == id_bytes(old_id):
                raise ValueError(f"{new_id} is itself superseded by {old_id}")
            self._change(tip, [old], lambda state: replace(state, superseded_by=id_bytes(new_id)))

    def _change(self, tip: Tip, sequences: Iterable[int], change: Callable[[State], State], **more: int) -> None:
        """New states of records, where they differ, and the tip that counts them."""
        each = list(dict.fromkeys(sequences))
        states = self._view.states(each)
        new = []
        for sequence in each:
            before = states.get(sequence, State(sequence))
            after = change(before)
            if after != before:
                new.append(after)
        if new or more:
            digest = self._catalog.put_states(new, tip.generation + 1)
            self._catalog.advance(tip, states_digest=tip.states_digest ^ digest, **more)

    # ---- checking

    def verify(self) -> Report:
        """Check every checksum of the store; nothing is changed."""
        with self._mutex:
            self._check_open()
            return verify_store(self.path)

    # ---- sessions

    def session(self, session_id: str) -> SessionView:
        """The records whose metadata has this `session`, as compaction wants them."""
        return SessionView(self, checked_text(session_id, "session_id"))


def _hit(row: Row, found: Any) -> Hit:
    record = Record.of(row, None)
    return Hit(
        record.id, record.text, found.score, found.vector_score, found.lexical_score, record.metadata, record.timestamp,
        record.turn_id, record.sentence_id, record.role, found.vector_rank, found.lexical_rank, record.sequence,
        record.n_tokens,
    )  # fmt: skip


def _make_folder(folder: str, given: ModelStamp | None) -> None:
    if given is None and not os.path.isdir(folder):
        raise FileNotFoundError(f"{folder} is not there, and a new store needs an embedder")
    os.makedirs(folder, exist_ok=True)


def _refuse_leftovers(folder: str) -> None:
    """A folder with other things in it is not made into a store, and a store without its manifest is not started anew."""
    others = [name for name in os.listdir(folder) if name != "writer.lock"]
    if others:
        raise DamagedIndexError(f"{folder} has no {MANIFEST} but is not empty ({', '.join(sorted(others)[:3])})")


def _manifest(folder: str) -> Manifest:
    try:
        return Manifest.read(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{folder} is not a store: it has no {MANIFEST}") from None


def _catalog(folder: str, manifest: Manifest, mode: str) -> Catalog:
    write = mode == "a"
    if write and not os.path.exists(os.path.join(folder, CATALOG)) and read_head(folder) is not None:
        raise DamagedIndexError(f"{os.path.join(folder, CATALOG)} is missing")
    catalog = Catalog(folder, write=write)
    try:
        if write:
            catalog.create(manifest.store_id, manifest.model)
        catalog.check(manifest.store_id, manifest.model)
    except BaseException:
        catalog.abandon()
        raise
    return catalog
