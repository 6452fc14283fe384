"""Records that are replaced and deleted under ids of their owner's, over a `SemanticIndex`, which only grows.

A drawer's id is the `turn_id` of its record. To replace it, the new record is appended and then the old one deleted: after a
crash between the two the newer one counts, and the next writer deletes the other.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from hsca_fast._native.inputs import Texts
from hsca_fast.memory.filters import FIELDS, MISSING, Column, Mask, Where, check_where, where_mask
from hsca_fast.memory.index import SemanticIndex
from hsca_fast.memory.records import Hit, Record
from hsca_fast.memory.search import SearchSettings
from hsca_fast.memory.store_files import MANIFEST
from hsca_fast.vectors.arrays import Float32, as_rows
from hsca_fast.vectors.cascade import CascadeIndex
from hsca_fast.vectors.embedder import NO_LIMIT, Progress, fingerprint

_CONTAINS = "$contains"
_PREFIX = "hsca:"  # before metadata keys that the index would take for its own fields
_AT_ONCE = 8192
_FIRST_TIER = 64


class Drawer(NamedTuple):
    """A record under its owner's id and with its owner's metadata."""

    id: str
    text: str
    metadata: dict[str, Any]
    record: str
    sequence: int


class Found(NamedTuple):
    """A drawer with its score: a cosine, or BM25."""

    drawer: Drawer
    score: float


class _GivenVectors:
    """The stamp of a model whose vectors are always given."""

    max_tokens = NO_LIMIT

    def __init__(self, name: str, dim: int) -> None:
        self.name, self.dim = name, dim
        self.fingerprint = fingerprint("given", name, dim)

    def embed_documents(self, texts: Texts, *, progress: Progress | None = None) -> npt.NDArray[np.float32]:
        self._refuse()

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        self._refuse()

    def count_tokens(self, text: str) -> int:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError(f"{self.name} does not run here: vectors are given")


class DrawerStore:
    """A folder of drawers. Reading opens it to read; the first write opens it to write, which one process can at a time.

    Parameters
    ----------
    folder
        Need not be there before the first write.
    model
        Name of the model that makes the vectors, for a new store.
    read_only
        Refuse writes.
    timeout
        Seconds a write waits for another process to let go of the store.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, model: str = "given", read_only: bool = False, timeout: float = 10.0
    ) -> None:
        self.folder = os.fspath(folder)
        self._model, self._read_only, self._timeout = model, read_only, timeout
        self._lock = threading.RLock()
        self._index: SemanticIndex | None = None
        self._forget()

    def _forget(self) -> None:
        self._records: dict[str, tuple[str, int]] = {}  # by drawer: record, sequence
        self._drawer_of: dict[int, str] = {}
        self._seen = 0
        self._generation = -1
        # By sequence: records that a newer one of the same drawer has replaced, but that are not deleted yet.
        self._replaced: dict[int, str] = {}
        self._cascade: CascadeIndex | None = None
        # What the next search adds to it (sequence, record) and removes from it.
        self._new: dict[int, str] = {}
        self._gone: list[int] = []

    # ---- opening

    def close(self) -> None:
        """Let go of the folder; the next use opens it again."""
        with self._lock:
            index, self._index = self._index, None
            self._forget()
            if index is not None:
                index.close()

    def _reading(self) -> SemanticIndex | None:
        """The index, with all that others have committed; None while there is nothing."""
        if self._index is None:
            if not os.path.exists(self.folder):
                return None
            with suppress(FileNotFoundError):
                self._index = _open(self.folder, "r")
        if self._index is not None and self._index.mode == "r":  # a writer knows what it wrote
            self._refresh(self._index)
        return self._index

    def _writing(self, dim: int) -> SemanticIndex:
        if self._read_only:
            raise PermissionError(f"{self.folder} is open to read")
        if self._index is not None and self._index.mode == "a":
            return self._index
        self.close()
        is_new = not os.path.exists(os.path.join(self.folder, MANIFEST))
        embedder = _GivenVectors(self._model, dim) if is_new else None
        self._index = _open(self.folder, "a", embedder=embedder, timeout=self._timeout)
        self._refresh(self._index)
        self._delete_replaced(self._index)  # a crash has kept them
        return self._index

    def _delete_replaced(self, index: SemanticIndex, also: Sequence[str] = ()) -> None:
        """In one commit, so that no drawer comes back as it once was."""
        if self._replaced or also:
            index.delete([*self._replaced.values(), *also])
            self._replaced = {}

    def _refresh(self, index: SemanticIndex) -> None:
        generation = index.generation
        if generation == self._generation:
            return
        self._take_new(index)
        live = index.live()
        if self._replaced or int(live.sum()) != len(self._records):  # something was deleted elsewhere
            self._replaced = {sequence: record for sequence, record in self._replaced.items() if live[sequence - 1]}
            known = np.fromiter(self._drawer_of, np.int64, len(self._drawer_of))
            for sequence in known[~live[known - 1]].tolist():
                self._records.pop(self._drawer_of[sequence])
                self._drop(sequence)
        self._generation = generation

    def _take_new(self, index: SemanticIndex) -> None:
        for batch in index.iter_records(_AT_ONCE, after=self._seen):
            for record in batch:
                self._place(record.turn_id, record.id, record.sequence)
            self._seen = batch[-1].sequence

    def _place(self, drawer: str, record: str, sequence: int) -> None:
        """This record, which is newer than all that were placed, is the drawer's."""
        before = self._records.pop(drawer, None)  # it is now the last that was written
        self._records[drawer] = record, sequence
        self._drawer_of[sequence] = drawer
        self._new[sequence] = record
        if before is not None:
            self._replaced[before[1]] = before[0]
            self._drop(before[1])

    def _is_current(self, record: Record | Hit) -> bool:
        return self._records.get(record.turn_id, ("",))[0] == record.id

    def _drop(self, sequence: int) -> None:
        self._drawer_of.pop(sequence, None)
        if self._new.pop(sequence, None) is None:
            self._gone.append(sequence)

    # ---- what is there

    @property
    def dim(self) -> int | None:
        """Numbers in a vector; None before the first write."""
        with self._lock:
            index = self._reading()
            return None if index is None else index.model.dim

    @property
    def generation(self) -> int:
        """Grows with every write; 0 before the first."""
        with self._lock:
            index = self._reading()
            return 0 if index is None else index.generation

    def name_model(self, model: str) -> None:
        """Which model the vectors of a store that is not there yet will be of."""
        self._model = model

    def __len__(self) -> int:
        with self._lock:
            self._reading()
            return len(self._records)

    def __contains__(self, drawer: object) -> bool:
        with self._lock:
            self._reading()
            return drawer in self._records

    def get(self, ids: Sequence[str]) -> dict[str, Drawer]:
        """Those of these drawers that there are."""
        with self._lock:
            index = self._reading()
            known = [self._records[drawer][0] for drawer in dict.fromkeys(ids) if drawer in self._records]
            if index is None or not known:
                return {}
            return {record.turn_id: _drawer(record) for record in index.get_many(known)}

    def page(self, offset: int, limit: int | None) -> list[Drawer]:
        """Drawers in order of writing."""
        with self._lock:
            self._reading()
            stop = None if limit is None else offset + limit
            ids = list(islice(self._records, offset, stop))
        found = self.get(ids)
        return [found[drawer] for drawer in ids if drawer in found]

    def matching(self, where: Where | None = None, text: Where | None = None) -> Iterator[Drawer]:
        """Drawers whose metadata passes `where` and whose text passes `text`, in order of writing."""
        where = None if where is None else _renamed(where)
        inside = None if where is None or _mentions_contains(where) else check_where(where)
        with self._lock:
            index = self._reading()
        if index is None:
            return
        for batch in index.iter_records(_AT_ONCE, where=inside):
            kept = np.array([self._is_current(record) for record in batch], bool)
            if where is not None and inside is None:
                kept &= _mask(where, _Batch(batch))
            if text is not None:
                kept &= _text_mask(text, [record.text for record in batch])
            yield from (_drawer(batch[i]) for i in np.flatnonzero(kept).tolist())

    def facets(self, field: str) -> Counter[str] | None:
        """How many drawers have each value, as str; None where a value is neither text nor a number: count the drawers."""
        key = _escaped(field)
        with self._lock:
            index = self._reading()
            if index is None:
                return Counter()
            counted = index.value_counts(key)
            if self._replaced or sum(count for _, count in counted) != index.count({key: {"$exists": True}}):
                return None
        counts: Counter[str] = Counter()
        for value, count in counted:
            counts[str(value)] += count
        return counts

    def vectors(self, drawers: Sequence[Drawer]) -> Float32:
        """As they were put."""
        with self._lock:
            index = self._reading()
            if index is None:
                return np.empty((0, 0), np.float32)
            return index.vectors([drawer.record for drawer in drawers])

    # ---- searching

    def nearest(
        self, vector: npt.ArrayLike, k: int, *, where: Where | None = None, text: Where | None = None
    ) -> list[Found]:
        """The k drawers of the highest cosines, exact; ties go to the one that was written first."""
        with self._lock:
            index = self._reading()
            if index is None or k < 1 or not self._records:
                return []
            asked = as_rows(vector, "the query's embedding", width=index.model.dim, ndim=(1,))
            allowed = None
            if where is not None and text is None and not _mentions_contains(where):
                hits = index.query(asked[0], k + len(self._replaced), where=check_where(_renamed(where)), lexical=False)
                return [Found(_drawer(hit), hit.score) for hit in hits if self._is_current(hit)][:k]
            if where is not None or text is not None:
                allowed = np.array([drawer.sequence for drawer in self.matching(where, text)], np.int64)
                if not len(allowed):
                    return []
            found = self._tiers(index).search(asked, min(k, len(self._records)), mode="exact", allowed_ids=allowed)
            scores = {int(s): float(score) for s, score in zip(found.ids[0], found.scores[0], strict=True) if s >= 0}
            records = index.get_many([self._records[self._drawer_of[sequence]][0] for sequence in scores])
        return [Found(_drawer(record), scores[record.sequence]) for record in records]

    def _tiers(self, index: SemanticIndex) -> CascadeIndex:
        if self._cascade is None:
            dim = index.model.dim
            self._cascade = CascadeIndex((_FIRST_TIER, dim) if dim > 2 * _FIRST_TIER else (dim,))
        if self._gone:
            self._cascade.remove(self._gone)
            self._gone = []
        new = list(self._new.items())
        for start in range(0, len(new), _AT_ONCE):
            sequences, records = zip(*new[start : start + _AT_ONCE], strict=True)
            self._cascade.add(index.vectors(records), ids=sequences)
        self._new.clear()
        return self._cascade

    def with_words(self, query: str, k: int, *, where: Where | None = None) -> list[Found]:
        """The k drawers whose words fit best."""
        with self._lock:
            index = self._reading()
            if index is None or k < 1:
                return []
            if where is not None and _mentions_contains(where):
                wanted = {drawer.record for drawer in self.matching(where)}
                hits = [hit for hit in index.query(query, len(self._records), vector=False) if hit.id in wanted]
            else:
                inside = None if where is None else check_where(_renamed(where))
                hits = index.query(query, k + len(self._replaced), where=inside, vector=False)
            hits = [hit for hit in hits if self._is_current(hit)][:k]
        return [Found(_drawer(hit), hit.score) for hit in hits]

    # ---- changing

    def put(
        self, ids: Sequence[str], texts: Sequence[str], metadata: Sequence[Mapping[str, Any]], vectors: Float32
    ) -> None:
        """Write drawers, in place of those of the same ids; durable when it returns."""
        if not len(ids):
            return
        with self._lock:
            index = self._writing(vectors.shape[1])
            given = [{_escaped(key): value for key, value in each.items()} for each in metadata]
            records = index.append(texts, turn_id=list(ids), metadata=given, embeddings=vectors)
            first = index.get(records[0]).sequence  # those of one append follow each other
            for i, (drawer, record) in enumerate(zip(ids, records, strict=True)):
                self._place(drawer, record, first + i)
            self._delete_replaced(index)

    def remove(self, ids: Sequence[str]) -> None:
        """Delete drawers; ids that are not there are left out."""
        with self._lock:
            index = self._reading()
            if index is None or not any(drawer in self._records for drawer in ids):
                return
            index = self._writing(index.model.dim)
            known = [drawer for drawer in dict.fromkeys(ids) if drawer in self._records]
            self._delete_replaced(index, [self._records[drawer][0] for drawer in known])
            for drawer in known:
                self._drop(self._records.pop(drawer)[1])


def _open(folder: str, mode: Any, *, embedder: Any = None, timeout: float = 0.0) -> SemanticIndex:
    return SemanticIndex.open(
        folder, embedder=embedder, mode=mode, timeout=timeout, settings=SearchSettings(neighbour_weight=0.0)
    )


def _drawer(record: Any) -> Drawer:
    metadata = {key.removeprefix(_PREFIX): value for key, value in record.metadata.items()}
    return Drawer(record.turn_id, record.text, metadata, record.id, record.sequence)


# ---- filters: the index's own, and $contains


def _escaped(key: str) -> str:
    return _PREFIX + key if key in FIELDS or key.startswith((_PREFIX, "$")) else key


def _renamed(where: Where) -> dict[str, Any]:
    """`where` over the keys as they are stored; None, as a value, also means that there is no such key."""
    out: dict[str, Any] = {}
    for key, condition in where.items():
        if key in ("$and", "$or"):
            out[key] = [_renamed(part) for part in condition]
        elif key == "$not":
            out[key] = _renamed(condition)
        elif condition is None:
            out.setdefault("$and", []).append(
                {"$or": [{_escaped(key): {"$exists": False}}, {_escaped(key): {"$eq": None}}]}
            )
        else:
            out[_escaped(key)] = condition
    return out


def _mentions_contains(where: Where) -> bool:
    return any(
        any(_mentions_contains(part) for part in condition)
        if key in ("$and", "$or")
        else isinstance(condition, Mapping) and (_CONTAINS in condition or _mentions_contains(condition))
        for key, condition in where.items()
    )


class _Batch:
    """Records as columns, for the index's filters."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self.n = len(records)

    def column(self, name: str) -> Column:
        column = Column()
        column.extend([record.metadata.get(name, MISSING) for record in self._records])
        return column


def _mask(where: Where, batch: _Batch) -> Mask:
    mask = np.ones(batch.n, bool)
    for key, condition in where.items():
        if key == "$and":
            mask &= np.logical_and.reduce([_mask(part, batch) for part in condition])
        elif key == "$or":
            mask &= np.logical_or.reduce([_mask(part, batch) for part in condition])
        elif key == "$not":
            mask &= ~_mask(condition, batch)
        elif isinstance(condition, Mapping) and _CONTAINS in condition:
            mask &= batch.column(key).mask(partial(_has, str(condition[_CONTAINS])))
            rest = {operator: operand for operator, operand in condition.items() if operator != _CONTAINS}
            if rest:
                mask &= where_mask(check_where({key: rest}), batch)
        else:
            mask &= where_mask(check_where({key: condition}), batch)
    return mask


def _has(part: str, value: Any) -> bool:
    return value is not MISSING and part in str(value)


def _text_mask(where: Where, texts: list[str]) -> Mask:
    mask = np.ones(len(texts), bool)
    for key, condition in where.items():
        if key == "$and":
            mask &= np.logical_and.reduce([_text_mask(part, texts) for part in condition])
        elif key == "$or":
            mask &= np.logical_or.reduce([_text_mask(part, texts) for part in condition])
        else:
            found = np.array([condition in text for text in texts], bool)
            mask &= found if key == _CONTAINS else ~found
    return mask
