"""Which records to let go when there are too many: those that were used least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hsca_fast.memory.catalog import Catalog
from hsca_fast.memory.view import View

_ROWS_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Eviction:
    """What an eviction did, or would do.

    Attributes
    ----------
    ids
        Of the records that go, in the order they go: least used first, of those the one that was used longest ago (never
        before that), of those the oldest.
    n_before, n_after
        Live records.
    bytes_before, bytes_after
        Of their texts and vectors.
    dry_run
        Nothing was changed.
    """

    ids: tuple[str, ...]
    n_before: int
    n_after: int
    bytes_before: int
    bytes_after: int
    dry_run: bool


def least_used(
    catalog: Catalog, view: View, dim: int, *, max_records: int | None, max_bytes: int | None
) -> tuple[list[int], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sequences that go, those of all live records, and the bytes of each."""
    live = np.flatnonzero(view.status() == 0) + 1
    counts = np.zeros(view.n + 1, np.int64)
    used = np.full(view.n + 1, -np.inf)
    for state in catalog.states_since(0):
        counts[state.sequence] = state.reference_count
        used[state.sequence] = -np.inf if state.last_access is None else state.last_access
    sizes = _sizes(catalog, live.tolist(), dim)
    order = np.lexsort((live, used[live], counts[live]))
    left_bytes = int(sizes.sum()) - np.concatenate([[0], np.cumsum(sizes[order])])
    left_records = len(live) - np.arange(len(live) + 1)
    fits = np.ones(len(live) + 1, bool)
    if max_records is not None:
        fits &= left_records <= max_records
    if max_bytes is not None:
        fits &= left_bytes <= max_bytes
    n = int(np.argmax(fits))  # with nothing left, both fit
    return live[order[:n]].tolist(), live, sizes


def _sizes(catalog: Catalog, sequences: Sequence[int], dim: int) -> npt.NDArray[np.int64]:
    sizes = np.empty(len(sequences), np.int64)
    for begin in range(0, len(sequences), _ROWS_AT_ONCE):
        rows = catalog.rows_at(sequences[begin : begin + _ROWS_AT_ONCE])
        sizes[begin : begin + len(rows)] = [len(row.text.encode()) + 4 * dim for row in rows]
    return sizes
