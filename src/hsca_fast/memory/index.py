"""The semantic index: every chunk of a conversation kept for ever, found by meaning and by words.

    append ─► check ─► embed ─► segment, fsync ─► catalog, commit ─► ids          (durable when it returns)
    query  ─► filter ─► vector arm + lexical arm ─► fuse ─► hits                  (reads only)

The records and their vectors are the truth; the full-text index and everything in memory is derived from them.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hsca_fast.memory.catalog import STATUSES, Access, Row, State, Status
from hsca_fast.memory.columns import RecordColumns
from hsca_fast.memory.eviction import Eviction, least_used
from hsca_fast.memory.filters import Where, check_where
from hsca_fast.memory.records import ChunkLike, Hit, Incoming, Record, checked_text, finite, id_bytes, incoming
from hsca_fast.memory.search import SearchSettings, allowed_records, search
from hsca_fast.memory.segments import BLOCK_ROWS
from hsca_fast.memory.session_view import SessionView
from hsca_fast.memory.store import Store
from hsca_fast.memory.transfer import export_store, import_store
from hsca_fast.memory.verification import Report, verify_store
from hsca_fast.vectors.arrays import as_count, as_rows
from hsca_fast.vectors.embedder import Embedder, Progress
from hsca_fast.vectors.guard import ModelMismatchError, ModelStamp, check_model


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts and sizes of a store."""

    path: str
    store_id: str
    model: str
    generation: int
    records: int
    live: int
    archived: int
    deleted: int
    summaries: int
    accesses: int
    not_indexed: int
    segments: int
    blocks: int
    vector_bytes: int
    catalog_bytes: int


Float32 = npt.NDArray[np.float32]
OnConflict = Literal["error", "skip"]
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
        self, store: Store, embedder: Embedder | None, settings: SearchSettings, clock: Callable[[], float]
    ) -> None:
        self.path = store.folder
        self.store_id = store.manifest.store_id
        self.model = store.manifest.model
        self.embedder = embedder
        self.settings = settings
        self._store = store
        self._clock = clock
        self._last_stamp = float("-inf")

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
        if not os.fspath(path):
            raise ValueError("path is empty")
        folder = os.path.abspath(os.fspath(path))
        model = None if embedder is None else ModelStamp.of(embedder)
        store = Store.open(folder, model, write=mode == "a", timeout=timeout)
        return cls(store, embedder, settings or SearchSettings(), clock)

    def close(self) -> None:
        """Finish the full-text index, fold the log into the catalog, let another write. Again: nothing."""
        self._store.close()

    def __enter__(self) -> SemanticIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SemanticIndex({self.path!r}, {self.model}, {'closed' if self._store.closed else self.mode!r})"

    @property
    def mode(self) -> Literal["a", "r"]:
        """As it was opened."""
        return "a" if self._store.catalog.write else "r"

    @property
    def generation(self) -> int:
        """Grows with every commit; the same number means the same content."""
        with self._store.reading() as tip:
            return tip.generation

    def __len__(self) -> int:
        return self.count()

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
        with self._store.mutex:
            self._store.check_open(write=True)
            tip = self._store.view.refresh()
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
            assigned = self._store.append(tip, new, self._pieces(new.texts, vectors, progress))
        return [id_.hex() for id_ in (assigned if wanted is None else wanted)]

    def _pieces(self, texts: list[str], vectors: Float32 | None, progress: Progress | None) -> Iterator[Float32]:
        """Rows to write, a block at a time."""
        for begin in range(0, len(texts), BLOCK_ROWS):
            part = texts[begin : begin + BLOCK_ROWS]
            if vectors is not None:
                yield vectors[begin : begin + BLOCK_ROWS]
            else:
                yield self._given_vectors(
                    self._embed(part, begin, len(texts), progress), len(part), "the embedder's vectors"
                )

    def _embed(self, part: list[str], begin: int, n: int, progress: Progress | None) -> Float32:
        """Vectors of some of `n` texts. The embedder may tell of its progress; the end of the part is told in any case."""
        assert self.embedder is not None
        if progress is None:
            return self.embedder.embed_documents(part)
        told = begin

        def tell(done: int, _: int) -> None:
            nonlocal told
            told = begin + done
            progress(told, n)

        made = self.embedder.embed_documents(part, progress=tell)
        if told < begin + len(part):
            progress(begin + len(part), n)
        return made

    def _given_vectors(self, embeddings: npt.ArrayLike, n: int, name: str = "embeddings") -> Float32:
        width = np.shape(embeddings)[-1] if np.ndim(embeddings) == 2 else None
        if width is not None and width != self.model.dim and n:
            found = ModelStamp(name, max(1, width), "")
            raise ModelMismatchError(f"ingest model: {self.model}, {found}: refused", self.model, found)
        rows = as_rows(embeddings, name, width=self.model.dim, ndim=(2,) if n else (1, 2))
        if len(rows) != n:
            raise ValueError(f"{name} has {len(rows)} rows for {n} chunks")
        if rows.size and max(float(rows.max()), -float(rows.min())) > _MAX_VALUE:
            large = np.flatnonzero(np.abs(rows).max(axis=1) > _MAX_VALUE)
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
        known = {i for i, found in enumerate(self._store.view.find(new.ids)) if found is not None}
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
        with self._store.reading():
            return self._records(self._sequences(ids))

    def vectors(self, ids: Sequence[str]) -> Float32:
        """Vectors [n, dim] of these records, as they were stored."""
        with self._store.reading():
            return self._store.view.segments().take(np.array(self._sequences(ids), np.int64))

    def count(self, where: Where | None = None, *, include_archived: bool = False) -> int:
        """Records that a query would look at."""
        where = None if where is None else check_where(where)
        with self._store.reading() as tip:
            allowed = allowed_records(self._store.view, where, include_archived)
            return tip.last_sequence if allowed is None else int(allowed.sum())

    def passing(self, ids: Sequence[str], where: Where | None = None) -> list[str]:
        """Those of `ids` that a query with this filter would look at."""
        where = None if where is None else check_where(where)
        with self._store.mutex:
            sequences = self._sequences(ids)
            with self._store.reading():
                allowed = allowed_records(self._store.view, where, False)
        return [
            each
            for each, sequence in zip(ids, sequences, strict=True)
            if allowed is None or (sequence <= len(allowed) and allowed[sequence - 1])
        ]

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
        with self._store.reading() as tip:
            last = tip.last_sequence
        return self._iterate(batch_size, after, last, where, include_archived)

    @property
    def last_sequence(self) -> int:
        """Of the record that was appended last; 0 for none."""
        with self._store.reading() as tip:
            return tip.last_sequence

    def live(self) -> npt.NDArray[np.bool_]:
        """For each sequence number, from 1 on, whether a query would look at its record."""
        with self._store.reading():
            return np.asarray(self._store.view.status() == 0)

    def iter_columns(self, batch_size: int = 5000, *, after: int = 0) -> Iterator[RecordColumns]:
        """The numbers of all records there are now, archived and deleted ones too; many times as fast as the records."""
        batch_size = as_count(batch_size, "batch_size", least=1)
        after = as_count(after, "after")
        with self._store.reading() as tip:
            last = tip.last_sequence
        while after < last:
            stop = min(last, after + batch_size)
            with self._store.reading():
                timestamps = np.array(self._store.catalog.timestamps(after, stop), np.float64)
                states = self._store.catalog.states_between(after, stop)
                live = self._store.view.status()[after:stop] == 0
            last_access = np.full(stop - after, np.nan)
            superseded, compacted = np.zeros(stop - after, bool), np.zeros(stop - after, bool)
            for state in states:
                row = state.sequence - after - 1
                last_access[row] = np.nan if state.last_access is None else state.last_access
                superseded[row] = state.superseded_by is not None
                compacted[row] = state.compacted_into is not None
            yield RecordColumns(
                np.arange(after + 1, stop + 1), live.copy(), timestamps, last_access, superseded, compacted
            )
            after = stop

    def records_at(self, sequences: Sequence[int]) -> list[Record]:
        """Records by sequence number; KeyError names the first that is not there."""
        with self._store.reading() as tip:
            for sequence in sequences:
                if not 1 <= sequence <= tip.last_sequence:
                    raise KeyError(sequence)
            return self._records(list(sequences))

    def value_counts(self, name: str) -> list[tuple[Any, int]]:
        """Each value of a metadata key that is a str, a number or a bool, with the number of live records that have it.

        Pairs, as 1, 1.0 and True are three values to JSON and one key to a dict.
        """
        with self._store.reading():
            column = self._store.view.column(name)
            live = self._store.view.status() == 0
            counts = np.bincount(column.codes[live], minlength=len(column.values)).tolist()
            return [
                (value, count)
                for value, count in zip(column.values, counts, strict=True)
                if count and isinstance(value, (str, int, float))
            ]

    def _iterate(
        self, batch_size: int, after: int, last: int, where: Where | None, include_archived: bool
    ) -> Iterator[list[Record]]:
        waiting: list[Record] = []
        while after < last:
            stop = min(last, after + batch_size)
            with self._store.reading():
                allowed = allowed_records(self._store.view, where, include_archived)
                if allowed is None:
                    sequences = list(range(after + 1, stop + 1))
                    rows = self._store.catalog.rows(after, stop)
                else:
                    sequences = (np.flatnonzero(allowed[after:stop]) + after + 1).tolist()
                    rows = self._store.catalog.rows_at(sequences)
                states = self._store.view.states(sequences)
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
        found = self._store.view.find(wanted)
        for id_, sequence in zip(ids, found, strict=True):
            if sequence is None:
                raise KeyError(id_)
        return [sequence for sequence in found if sequence is not None]

    def _records(self, sequences: list[int]) -> list[Record]:
        states = self._store.view.states(sequences)
        return [Record.of(row, states.get(row.sequence)) for row in self._store.catalog.rows_at(sequences)]

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
            turn_id, sentence_id, role, timestamp; operators $eq $ne $in $nin $gt $gte $lt $lte $exists, and $and $or $not around
            them.
        lexical, vector
            Which arms to ask. With both, their standard scores are fused; with one, its own score decides.
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
        with self._store.mutex:
            if lexical and text is not None and self._store.catalog.write:
                self._store.check_open()
                self._store.catalog.index_text(self._store.catalog.tip())
            with self._store.reading() as tip:
                if not k or not tip.last_sequence:
                    return []
                position = context_position
                if position is not None and position < 0:
                    position += tip.last_sequence + 1
                k = min(k, tip.last_sequence)
                found = search(
                    self._store.catalog, self._store.view, self.settings, vector=asked, text=text if lexical else None, k=k,
                    allowed=allowed_records(self._store.view, where, include_archived), position=position,
                )  # fmt: skip
                records = self._store.catalog.rows_at([each.sequence for each in found])
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
        with self._store.mutex:
            now = self._now() if at is None else finite(at, "at")
            with self._store.writing() as tip:
                sequences = self._sequences(ids)
                if not sequences:
                    return
                times = Counter(sequences)
                self._store.catalog.log_access(tip.n_accesses + 1, Access(now, query, session, tuple(sequences)))

                def used(state: State) -> State:
                    latest = now if state.last_access is None else max(now, state.last_access)
                    count = state.reference_count + times[state.sequence]
                    return replace(state, reference_count=count, last_access=latest)

                self._store.change(tip, sequences, used, n_accesses=tip.n_accesses + 1)

    @property
    def n_accesses(self) -> int:
        """Entries of the access log."""
        with self._store.reading() as tip:
            return tip.n_accesses

    def access_log(
        self, since: float | None = None, *, after: int = 0, before: int | None = None
    ) -> Iterator[tuple[float, str, str, list[str]]]:
        """(at, query, session, ids) of every `touch`, in order; only those at `since` or later if given.

        Parameters
        ----------
        after, before
            Of all entries of the log only those from `after` on and before `before`: what is new since `n_accesses` was `after`.
        """
        since = None if since is None else finite(since, "since")
        after = as_count(after, "after")
        with self._store.reading() as tip:
            last = tip.n_accesses if before is None else min(tip.n_accesses, as_count(before, "before"))
        return self._accesses(after, last, since)

    def _accesses(self, first: int, last: int, since: float | None) -> Iterator[tuple[float, str, str, list[str]]]:
        for after in range(first, last, 1000):
            with self._store.reading():
                part = [
                    access
                    for access in self._store.catalog.accesses(after, min(last, after + 1000))
                    if since is None or access.at >= since
                ]
                used = sorted({sequence for access in part for sequence in access.sequences})
                ids = {row.sequence: row.id.hex() for row in self._store.catalog.rows_at(used)}
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

        with self._store.writing() as tip:
            self._store.change(tip, self._sequences(ids), set_to)

    def supersede(self, old_id: str, new_id: str) -> None:
        """Say that one record corrects another. Both stay and can be found; the older one says so."""
        if old_id == new_id:
            raise ValueError(f"{old_id} cannot supersede itself")
        with self._store.writing() as tip:
            old, new = self._sequences([old_id, new_id])
            newer = self._store.catalog.states([new]).get(new)
            if newer is not None and newer.superseded_by == id_bytes(old_id):
                raise ValueError(f"{new_id} is itself superseded by {old_id}")
            self._store.change(tip, [old], lambda state: replace(state, superseded_by=id_bytes(new_id)))

    def evict(
        self,
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
        action: Literal["archive", "delete"] = "archive",
        dry_run: bool = True,
    ) -> Eviction:
        """Archive, or mark as deleted, the records that were used least, until the live ones are within a limit.

        Parameters
        ----------
        max_records, max_bytes
            Of the live records, their texts and vectors.
        action
            "archive" can be undone with `restore`.
        dry_run
            Only say which would go. That is the default: nothing goes that was not asked for.
        """
        if action not in ("archive", "delete"):
            raise ValueError(f'action must be "archive" or "delete", not {action!r}')
        if max_records is None and max_bytes is None:
            raise ValueError("a limit is needed: max_records or max_bytes")
        for name, limit in (("max_records", max_records), ("max_bytes", max_bytes)):
            if limit is not None:
                as_count(limit, name)
        store = self._store
        with store.mutex:
            with store.reading():
                gone, live, sizes = least_used(
                    store.catalog, store.view, self.model.dim, max_records=max_records, max_bytes=max_bytes
                )
                ids = [row.id.hex() for row in store.catalog.rows_at(gone)]
            if gone and not dry_run:
                self._set_status(ids, "archived" if action == "archive" else "deleted", "evicted", allowed=("live",))
        freed = int(sizes[np.isin(live, gone)].sum())
        total = int(sizes.sum())
        return Eviction(tuple(ids), len(live), len(live) - len(gone), total, total - freed, dry_run)

    # ---- files

    def export(self, path: str | os.PathLike[str], *, embeddings: bool = False, include_deleted: bool = False) -> int:
        """Write the records to a `.jsonl` or `.parquet` file, whole or not at all; returns how many.

        Parameters
        ----------
        embeddings
            The vectors too, bit for bit. Without them an import makes them again.
        include_deleted
            Records that are marked as deleted, too; then sequence numbers stay what they are.
        """
        return export_store(self, path, embeddings=embeddings, include_deleted=include_deleted)

    @classmethod
    def import_(
        cls,
        source: str | os.PathLike[str],
        path: str | os.PathLike[str],
        *,
        embedder: Embedder,
        regenerate: bool = False,
        progress: Progress | None = None,
    ) -> SemanticIndex:
        """Make a new store from a file that `export` wrote, and open it; on any error there is none.

        Parameters
        ----------
        path
            Where nothing is yet.
        regenerate
            Make the vectors again though the file has some; needed when they are another model's.

        Raises
        ------
        ImportRefusedError
            The file is no export, is damaged, or has an id twice.
        ModelMismatchError
            Its vectors are of another model.
        """
        import_store(source, path, embedder, regenerate=regenerate, progress=progress)
        return cls.open(path, embedder=embedder)

    def stats(self) -> Stats:
        """Counts and sizes."""
        store = self._store
        with store.reading() as tip:
            status = np.bincount(store.view.status(), minlength=3).tolist()
            segments = store.view.segments().segments
            return Stats(
                path=self.path,
                store_id=self.store_id,
                model=str(self.model),
                generation=tip.generation,
                records=tip.last_sequence,
                live=status[0],
                archived=status[1],
                deleted=status[2],
                summaries=len(store.catalog.summaries(tip)),
                accesses=tip.n_accesses,
                not_indexed=tip.last_sequence - tip.indexed,
                segments=len(segments),
                blocks=sum(segment.n_blocks for segment in segments),
                vector_bytes=sum(os.path.getsize(segment.path) for segment in segments),
                catalog_bytes=store.catalog.size(),
            )

    def compact(self) -> Stats:
        """Finish and merge the full-text index, join small blocks of vectors, fold the log into the catalog.

        Records stay as they are. Interrupted, it can be repeated.
        """
        self._store.compact()
        return self.stats()

    # ---- checking

    def verify(self) -> Report:
        """Check every checksum of the store; nothing is changed."""
        with self._store.mutex:
            self._store.check_open()
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
