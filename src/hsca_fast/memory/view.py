"""What a process keeps in memory of a store it has open: nothing until it is needed, and brought up to date by the tip."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast.memory.catalog import Catalog, State, Tip
from hsca_fast.memory.filters import FIELDS, MISSING, Column
from hsca_fast.memory.segments import SegmentReader
from hsca_fast.vectors.embedder import unit_rows
from hsca_fast.vectors.storage import DamagedIndexError

Float32 = npt.NDArray[np.float32]
_ROWS_AT_ONCE = 5000
_FEWEST_FOR_MEAN, _MOST_FOR_MEAN = 64, 16_384


class View:
    """One state of a store. Call `refresh` first, in the transaction that reads on."""

    def __init__(self, catalog: Catalog, folder: str, dim: int) -> None:
        self._catalog, self._folder, self._dim = catalog, folder, dim
        self.tip = catalog.tip()
        self._forget()

    def _forget(self) -> None:
        self._segments = SegmentReader(self._folder, self._dim)
        self._mean_of = 0
        self._mean = self._with_mean = np.zeros(0, np.float32)
        self._columns: dict[str, Column] = {}
        self._status = np.zeros(0, np.uint8)
        self._states_at: int | None = None  # generation
        self._given_checked = False

    def refresh(self) -> Tip:
        before, self.tip = self.tip, self._catalog.tip()
        if self.tip.layout != before.layout or self.tip.generation < before.generation:
            self._forget()
        return self.tip

    @property
    def n(self) -> int:
        """Records, whatever became of them."""
        return self.tip.last_sequence

    def segments(self) -> SegmentReader:
        if self._segments.n < self.n:
            self._segments.extend(self._catalog.blocks(self._segments.n, self.n))
        return self._segments

    def mean_direction(self) -> tuple[Float32, Float32] | None:
        """The mean of unit vectors of the store, and its product with the unit vector of every record; None for a small store.

        The mean is that of the first 2^m records, m as large as it can be, so that it depends on the records alone and seldom
        changes while a store grows.
        """
        n = min(1 << (self.n.bit_length() - 1), _MOST_FOR_MEAN) if self.n else 0
        if n < _FEWEST_FOR_MEAN:
            return None
        segments = self.segments()
        if self._mean_of != n:
            rows = unit_rows(segments.take(np.arange(1, n + 1)))
            self._mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
            self._mean_of, self._with_mean = n, np.zeros(0, np.float32)
        if len(self._with_mean) < self.n:
            new = segments.cosines(self._mean, after=len(self._with_mean))
            self._with_mean = np.concatenate([self._with_mean, new])
        return self._mean, self._with_mean

    def status(self) -> npt.NDArray[np.uint8]:
        """Of each record, by sequence: 0 live, 1 archived, 2 deleted."""
        if len(self._status) < self.n:
            self._status = np.concatenate([self._status, np.zeros(self.n - len(self._status), np.uint8)])
        if self._states_at != self.tip.generation:
            if self._states_at is None and self._catalog.states_digest() != self.tip.states_digest:
                raise DamagedIndexError(f"{self._catalog.path}: states of records are missing; see `hsca index repair`")
            for state in self._catalog.states_since(self._states_at or 0):
                self._status[state.sequence - 1] = state.status
            self._states_at = self.tip.generation
        return self._status

    def states(self, sequences: list[int]) -> dict[int, State]:
        self.status()  # the first time, it notices states that are gone
        return self._catalog.states(sequences)

    def find(self, ids: list[bytes]) -> list[int | None]:
        """Sequences of ids, None for those that are not there."""
        found = self._catalog.find(ids, self.n)
        if None in found and not self._given_checked:
            self._catalog.check_given_ids(self.tip)
            self._given_checked = True
        return found

    def column(self, name: str) -> Column:
        """The values of a field or a metadata key, one a record."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = Column()
        parse = lru_cache(4096)(json.loads)
        while column.n < self.n:
            rows = self._catalog.rows(column.n, min(self.n, column.n + _ROWS_AT_ONCE))
            values: list[Any]
            if name in FIELDS:
                values = [getattr(row, name) for row in rows]
            else:
                values = [parse(row.metadata).get(name, MISSING) for row in rows]
            column.extend(values)
        return column
