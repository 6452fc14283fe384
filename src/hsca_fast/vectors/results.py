"""What a search finds, and what a repair did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hsca_fast._native.vectors import NO_ROW
from hsca_fast.vectors.arrays import Float32, Int64


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """Hits of a batch of queries.

    Attributes
    ----------
    scores
        Cosines at full width, best first, one row a query; 0 where there is no hit.
    ids
        -1 where there is no hit.
    tier
        For each query the tier that decided, as an index into the cascade's `dims`.
    best
        For each query the best score at each tier; 0 for tiers that hold nothing or were not searched.
    """

    scores: Float32
    ids: Int64
    tier: npt.NDArray[np.int8]
    best: Float32


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """How many rows each tier, by its width, got back, and how many still lack."""

    rebuilt: dict[int, int]
    missing: dict[int, int]


class ResultArrays:
    """The arrays of a SearchResult while they are filled."""

    def __init__(self, n_queries: int, k: int, n_tiers: int) -> None:
        self.rows = np.full((n_queries, k), NO_ROW, np.uint32)
        self.scores = np.zeros((n_queries, k), np.float32)
        self.tier = np.full(n_queries, n_tiers - 1, np.int8)
        self.best = np.zeros((n_queries, n_tiers), np.float32)

    def put(self, queries: Int64, tier: int, rows: npt.NDArray[np.uint32], scores: Float32) -> None:
        self.rows[queries] = rows
        self.scores[queries] = scores
        self.tier[queries] = tier

    def result(self, ids: Int64, k: int) -> SearchResult:
        """With the rows' ids, and room for `k` hits."""
        shape = (len(self.rows), k)
        scores, found = np.zeros(shape, np.float32), np.full(shape, -1, np.int64)
        width = self.rows.shape[1]
        scores[:, :width] = self.scores
        hits = self.rows != NO_ROW
        found[:, :width][hits] = ids[self.rows[hits]]
        return SearchResult(scores, found, self.tier, self.best)
