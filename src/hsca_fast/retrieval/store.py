"""What a retrieval needs of a store. `SemanticIndex` has it; anything else with it will do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hsca_fast.memory.columns import RecordColumns
from hsca_fast.vectors.embedder import Embedder
from hsca_fast.vectors.guard import ModelStamp

Float32 = npt.NDArray[np.float32]


class StoredHit(Protocol):
    """A record that a query found; scores are None where an arm was not asked or did not find it."""

    @property
    def id(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def vector_score(self) -> float | None: ...
    @property
    def lexical_score(self) -> float | None: ...


class StoredRecord(Protocol):
    """A record; wing and room are in its metadata."""

    @property
    def id(self) -> str: ...
    @property
    def sequence(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def timestamp(self) -> float: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def role(self) -> str: ...
    @property
    def reference_count(self) -> int: ...
    @property
    def last_access(self) -> float | None: ...
    @property
    def status(self) -> str: ...
    @property
    def superseded_by(self) -> str | None: ...
    @property
    def compacted_into(self) -> str | None: ...


class RetrievalStore(Protocol):
    """A store of records with vectors, and of who asked for what. Only `touch`, `archive` and `restore` write."""

    @property
    def store_id(self) -> str:
        """Tells this store from every other."""

    @property
    def model(self) -> ModelStamp:
        """Of the model that made its vectors."""

    @property
    def embedder(self) -> Embedder | None:
        """What embeds the text of a query."""

    @property
    def generation(self) -> int:
        """Grows with every change."""

    def query(
        self,
        query: str | Float32,
        k: int,
        *,
        where: Mapping[str, Any] | None = None,
        lexical: bool = True,
        vector: bool = True,
    ) -> Sequence[StoredHit]:
        """The k best of the live records that pass `where`."""

    def get_many(self, ids: Sequence[str]) -> Sequence[StoredRecord]:
        """Records in the order of `ids`; KeyError for one that is not there."""

    def vectors(self, ids: Sequence[str]) -> Float32:
        """[n, dim]."""

    def count(self, where: Mapping[str, Any] | None = None) -> int:
        """Live records."""

    def passing(self, ids: Sequence[str], where: Mapping[str, Any] | None = None) -> Sequence[str]:
        """Those of `ids` that are live and pass `where`, in their order."""

    @property
    def last_sequence(self) -> int:
        """Of the record that was appended last; 0 for none."""

    def iter_columns(self, batch_size: int = 5000, *, after: int = 0) -> Iterator[RecordColumns]:
        """The numbers of all records after the sequence `after`, without gaps."""

    def records_at(self, sequences: Sequence[int]) -> Sequence[StoredRecord]:
        """Records by sequence."""

    def value_counts(self, name: str) -> Sequence[tuple[Any, int]]:
        """Each value of a metadata key, with the number of live records that have it."""

    @property
    def n_accesses(self) -> int:
        """Entries of the access log."""

    def access_log(
        self, since: float | None = None, *, after: int = 0, before: int | None = None
    ) -> Iterator[tuple[float, str, str, Sequence[str]]]:
        """(at, query, session, ids) of what was returned before, in the order it was noted: entries [after, before) of the log, and
        of them those at `since` or later."""

    def touch(self, ids: Sequence[str], *, query: str = "", session: str = "", at: float | None = None) -> None:
        """Note that these were returned."""

    def archive(self, ids: Sequence[str], *, reason: str) -> None:
        """Leave records out of queries, reversibly."""

    def restore(self, ids: Sequence[str]) -> None:
        """Undo `archive`."""


class RecordCache:
    """Records that one retrieval has read, so that none is read twice."""

    def __init__(self, store: RetrievalStore) -> None:
        self._store = store
        self._known: dict[str, StoredRecord] = {}

    def get_many(self, ids: Sequence[str]) -> list[StoredRecord]:
        missing = [each for each in ids if each not in self._known]
        if missing:
            self._known.update(zip(missing, self._store.get_many(missing), strict=True))
        return [self._known[each] for each in ids]
