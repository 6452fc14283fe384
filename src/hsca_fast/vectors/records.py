"""Vectors in rows, each under an id: what an index holds, and how it changes in one step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import vectors as _native
from hsca_fast._native.vectors import NO_ROW
from hsca_fast.vectors.arrays import Float32, Int64

_LAST_ID = int(np.iinfo(np.int64).max)


class Records:
    """Rows [0, n) are the records. Everything is written behind `n` before `n` moves: that is the one step of a change,
    and an interrupt comes before it or after it.
    """

    def __init__(self, width: int) -> None:
        self.n = 0
        self.next_id = 0
        self._vectors: Float32 = np.empty((0, width), np.float32)
        self._ids: Int64 = np.empty(0, np.int64)
        # None while it is out of step with the ids: then it is made again from them.
        self._map: dict[int, int] | None = {}

    @classmethod
    def of(cls, vectors: Float32, ids: Int64, next_id: int) -> Records:
        """Records over given arrays; vectors that cannot be written to are copied when they change."""
        records = cls(vectors.shape[1])
        records._vectors, records._ids, records._map = vectors, ids, None
        records.n, records.next_id = len(ids), next_id
        return records

    @property
    def row_of(self) -> dict[int, int]:
        """Id to row."""
        if self._map is None:
            self._map = dict(zip(self._ids[: self.n].tolist(), range(self.n), strict=True))
        return self._map

    def view(self) -> tuple[Float32, Int64]:
        """Vectors and ids."""
        n = self.n  # once: another thread may add
        return self._vectors[:n], self._ids[:n]

    def new_ids(self, count: int) -> Int64:
        """The ids behind the greatest so far."""
        if self.next_id + count - 1 > _LAST_ID:
            raise ValueError(f"there are no ids behind {self.next_id - 1}: give ids")
        return np.arange(self.next_id, self.next_id + count).astype(np.int64)

    def refuse_known(self, ids: Int64) -> None:
        """ValueError for an id that is given twice or is there already."""
        unique, counts = np.unique(ids, return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"ids has {int(unique[counts > 1][0])} more than once")
        known = [i for i in ids.tolist() if i in self.row_of]
        if known:
            shown = ", ".join(map(str, known[:10]))
            raise ValueError(f"ids already in the index: {shown}; remove them first")

    def stage(self, vectors: Float32, ids: Int64) -> tuple[int, int]:
        """Writes new rows behind the records, where nobody looks yet. Returns their range, for `commit`."""
        begin, end = self.n, self.n + len(vectors)
        if end >= NO_ROW:
            raise ValueError(f"an index holds fewer than {NO_ROW} vectors")
        self._make_room(end)
        self._vectors[begin:end] = vectors
        self._ids[begin:end] = ids
        return begin, end

    def commit(self, begin: int, end: int) -> None:
        """The rows that were staged become records."""
        ids = self._ids[begin:end].tolist()
        self.next_id = max(self.next_id, max(ids, default=-1) + 1)
        rows, self._map = self.row_of, None
        rows.update(zip(ids, range(begin, end), strict=True))
        self.n = end
        self._map = rows

    def plan_removal(self, ids: Int64) -> tuple[Int64, Int64]:
        """The rows that become free, and the last rows, which are to move there."""
        self._make_room(self.n)  # mapped vectors cannot be changed
        gone = np.array([self.row_of[i] for i in ids.tolist()], np.int64)
        left = self.n - len(gone)
        return np.sort(gone[gone < left]), np.setdiff1d(np.arange(left, self.n), gone)

    def remove(self, ids: Int64, holes: Int64, movers: Int64) -> None:
        """Does what `plan_removal` said."""
        rows, self._map = self.row_of, None
        _native.move_rows(self, self._vectors, self._ids, holes, movers, self.n - len(ids))
        for i in ids.tolist():
            del rows[i]
        rows.update(zip(self._ids[holes].tolist(), holes.tolist(), strict=True))
        self._map = rows

    def _make_room(self, n: int) -> None:
        if n <= min(len(self._vectors), len(self._ids)) and self._vectors.flags.writeable:
            return
        room = n if not self.n else max(n, self.n + self.n // 2)
        arrays: list[npt.NDArray[Any]] = []
        for old in self.view():
            new = np.empty((room, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            arrays.append(new)
        self._vectors, self._ids = arrays
