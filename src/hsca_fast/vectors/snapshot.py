"""A search over an index as it was when the search began."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hsca_fast._native import vectors as _native
from hsca_fast._native.vectors import NO_ROW
from hsca_fast.vectors.arrays import Float32, Int64
from hsca_fast.vectors.calibration import exit_candidates
from hsca_fast.vectors.full_index import FaissTier
from hsca_fast.vectors.prefix import EPS
from hsca_fast.vectors.results import ResultArrays

Mask: TypeAlias = npt.NDArray[np.uint8] | None
Found: TypeAlias = tuple[npt.NDArray[np.uint32], Float32]


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Rows, ids, and for each tier its codes, or None if it lacks rows: such a tier never decides."""

    dims: tuple[int, ...]
    rows: Float32
    ids: Int64
    codes: tuple[_native.TierCodes | None, ...]
    faiss: FaissTier | None
    threads: int

    @property
    def last(self) -> int:
        return len(self.dims) - 1

    def cascade(
        self, tiers: tuple[Float32, ...], k: int, allowed: Mask, thresholds: tuple[float, ...], out: ResultArrays
    ) -> None:
        """Each query exits at the first tier whose best score exceeds its threshold; without thresholds at the last."""
        waiting = np.arange(len(tiers[0]))
        for number, threshold in enumerate(thresholds):
            codes = self.codes[number]
            if codes is None or not waiting.size:
                continue
            wanted = min(exit_candidates(k), len(self.rows))
            candidates, scores = self._search(codes, tiers[number][waiting], wanted, allowed, candidates=True)
            # No cosine exceeds 1, so that a threshold of 1 lets nobody exit, whatever the rounding of float32.
            best = np.clip(scores[:, 0], 0.0, 1.0)
            out.best[waiting, number] = best
            done = best > threshold
            if done.any():
                leaving = waiting[done]
                found = self._narrow(candidates[done], self.last, tiers[-1][leaving], k)
                out.put(leaving, number, *found)
                waiting = waiting[~done]
        if waiting.size:
            found = self.full_width(tiers[-1][waiting], k, allowed, early=bool(thresholds))
            out.put(waiting, self.last, *found)
            if k:
                out.best[waiting, self.last] = np.clip(found[1][:, 0], 0.0, 1.0)

    def funnel(
        self, tiers: tuple[Float32, ...], k: int, allowed: Mask, sizes: tuple[int, ...], out: ResultArrays
    ) -> None:
        """The best of each tier, `sizes` of them, scored at the next."""
        first = next((number for number in range(self.last) if self.codes[number] is not None), None)
        if first is None or not k:
            self.cascade(tiers, k, allowed, (), out)
            return
        codes = self.codes[first]
        assert codes is not None
        candidates, scores = self._search(codes, tiers[first], sizes[first], allowed, candidates=True)
        out.best[:, first] = np.clip(scores[:, 0], 0.0, 1.0)
        for number in range(first + 1, self.last):
            candidates, scores = self._narrow(candidates, number, tiers[number], sizes[number], further=True)
            out.best[:, number] = np.clip(scores[:, 0], 0.0, 1.0)
        found = self._narrow(candidates, self.last, tiers[-1], k)
        out.put(np.arange(len(tiers[0])), self.last, *found)
        out.best[:, self.last] = np.clip(found[1][:, 0], 0.0, 1.0)

    def full_width(self, queries: Float32, k: int, allowed: Mask, *, early: bool = False) -> Found:
        """The best at full width: exact, unless FAISS may choose the candidates of `early` exits."""
        if early and self.faiss is not None and k:
            wanted = min(exit_candidates(k), len(self.rows))
            candidates = self.faiss.candidates(self.rows, queries, wanted, allowed)
            if candidates is not None:
                found, scores = self._narrow(candidates, self.last, queries, k)
                # A graph or a list that the filter leaves little of finds fewer than there are.
                there = min(k, len(self.rows) if allowed is None else int(np.count_nonzero(allowed)))
                short = np.flatnonzero(np.count_nonzero(found != NO_ROW, axis=1) < there)
                if short.size:
                    found[short], scores[short] = self._exact(queries[short], k, allowed)
                return found, scores
        return self._exact(queries, k, allowed)

    def _exact(self, queries: Float32, k: int, allowed: Mask) -> Found:
        codes = self.codes[-1]
        if codes is not None:
            return self._search(codes, queries, k, allowed)
        inverse = self.inverse(self.last)
        return _native.scan(self.rows, inverse, queries, k, ids=self.ids, allowed=allowed, threads=self.threads)

    def neighbours(self, queries: Float32, k: int, own: Int64 | None) -> npt.NDArray[np.uint32]:
        """Rows of the k true neighbours of each query, without its `own`."""
        k = min(k, len(self.rows) - (own is not None))
        if own is None:
            return self.full_width(queries, k, None)[0]
        found = self.full_width(queries, k + 1, None)[0]
        lines = [line[line != row][:k] for line, row in zip(found, own, strict=True)]
        return np.array(lines, np.uint32).reshape(len(own), k)

    def inverse(self, number: int) -> Float32:
        """1 / length of the rows' prefixes at a tier."""
        codes = self.codes[number]
        if codes is not None:
            return codes.inverse
        return _native.prefix_inverse(self.rows, self.dims[number], EPS)

    def _search(
        self, codes: _native.TierCodes, queries: Float32, k: int, allowed: Mask, *, candidates: bool = False
    ) -> Found:
        return codes.search(
            self.rows, queries, k, ids=self.ids, allowed=allowed, candidates=candidates, threads=self.threads
        )

    def _narrow(
        self, candidates: npt.NDArray[np.uint32], number: int, queries: Float32, keep: int, *, further: bool = False
    ) -> Found:
        return _native.narrow(
            self.rows, self.inverse(number), self.ids, queries, candidates, keep, further, self.threads
        )
