"""How far a cascade may be trusted, measured against full-width ground truth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import vectors as _native
from hsca_fast.vectors.arrays import Float32, as_number

Model = Mapping[str, str | int]

# Candidates an early exit scores at full width, for each result asked for.
EXIT_FACTOR = 10
# Points kept of a distribution of ranks.
_QUANTILES = 1001
_QUERY_BLOCK = 16


def _divisions(n_tiers: int) -> Iterator[tuple[float, ...]]:
    """Ways to divide 1 among tiers, by tenths; evenly where there are too many to try."""
    if n_tiers > 3:
        yield (1.0 / n_tiers,) * n_tiers
    elif n_tiers > 0:
        for parts in product(range(1, 10), repeat=n_tiers - 1):
            if sum(parts) < 10:
                yield tuple(part / 10 for part in (*parts, 10 - sum(parts)))


def exit_candidates(k: int) -> int:
    """How many of a tier's best an early exit scores at full width."""
    return max(EXIT_FACTOR * k, 100)


@dataclass(frozen=True, slots=True)
class RocCurve:
    """Does a tier's best score tell whether its candidates hold the true neighbours?

    Of the queries whose candidates do (`true_positive_rate`) and do not (`false_positive_rate`), the share that would exit
    at each of `thresholds`, highest threshold first.
    """

    thresholds: tuple[float, ...]
    true_positive_rate: tuple[float, ...]
    false_positive_rate: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Thresholds and funnel sizes of one model's vectors.

    Attributes
    ----------
    dims
        Widths of the tiers.
    thresholds
        For each tier but the last, the least threshold at which the queries that exit reach `recall` together; 1 if there
        is none: no query exits.
    exit_shares
        The share of the calibration queries that exit at each tier, as the cascade goes.
    recall, k
        What was asked for.
    n_vectors, n_queries
        What it was measured on.
    ranks
        For each tier but the last, quantiles of the ranks there of the true neighbours.
    roc
        For each tier but the last.
    model, rotation
        What the vectors were: the calibration is for no other.
    """

    dims: tuple[int, ...]
    thresholds: tuple[float, ...]
    exit_shares: tuple[float, ...]
    recall: float
    k: int
    n_vectors: int
    n_queries: int
    ranks: tuple[tuple[int, ...], ...]
    roc: tuple[RocCurve, ...]
    model: dict[str, str | int] | None = None
    rotation: str | None = None

    def funnel_sizes(self, recall: float | None = None, *, n_vectors: int | None = None) -> tuple[int, ...]:
        """Candidates to keep after each tier but the last so that `recall` of the true neighbours come through.

        What may be lost is divided among the tiers so that the fewest coordinates are read; together they lose no
        more. Ranks grow with the number of vectors.
        """
        recall = self.recall if recall is None else as_number(recall, "recall", low=0.0, high=1.0)
        grown = max(1.0, (self.n_vectors if n_vectors is None else n_vectors) / max(1, self.n_vectors))

        def size(tier: int, lost: float) -> int:
            ranks = self.ranks[tier]
            rank = ranks[math.ceil((1.0 - lost) * (len(ranks) - 1))] if ranks else 0
            return max(self.k, math.ceil((rank + 1) * grown))

        n_tiers = len(self.ranks)
        best: tuple[int, tuple[int, ...]] | None = None
        for shares in _divisions(n_tiers):
            sizes = tuple(size(tier, share * (1.0 - recall)) for tier, share in enumerate(shares))
            cost = sum(kept * width for kept, width in zip(sizes, self.dims[1:], strict=True))
            if best is None or cost < best[0]:
                best = cost, sizes
        return best[1] if best is not None else ()

    def check(self, *, dims: tuple[int, ...], model: Model | None, rotation: str | None) -> None:
        """Refuses vectors it was not made for."""
        for name, own, other in (
            ("dims", self.dims, dims),
            ("model", self.model, None if model is None else dict(model)),
            ("rotation", self.rotation, rotation),
        ):
            if own != other:
                raise ValueError(f"the calibration was made for {name} {own}, not for {other}: calibrate again")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """What `to_dict` gave."""
        plain = dict(values)
        for name in ("dims", "thresholds", "exit_shares"):
            plain[name] = tuple(plain[name])
        plain["ranks"] = tuple(tuple(ranks) for ranks in plain["ranks"])
        plain["roc"] = tuple(RocCurve(*(tuple(curve[name]) for name in RocCurve.__slots__)) for curve in plain["roc"])
        return cls(**plain)


def neighbour_ranks(
    rows: Float32,
    inverse: Float32,
    queries: Float32,
    neighbours: npt.NDArray[np.uint32],
    own: npt.NDArray[np.int64] | None,
    threads: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The rank of each query's true neighbours by the scores of a tier (0 = best, ties count as better), and its best score.

    `own` are the queries' own rows, which do not count.
    """
    ranks = np.empty(neighbours.shape, np.int64)
    best = np.empty(len(queries))
    for begin in range(0, len(queries), _QUERY_BLOCK):
        block = slice(begin, begin + _QUERY_BLOCK)
        scores = _native.dot_products(queries[block], rows, threads) * inverse[: len(rows)]
        if own is not None:
            scores[np.arange(len(scores)), own[block]] = -2.0
        for i, (line, near) in enumerate(zip(scores, neighbours[block], strict=True)):
            # Searching the sorted scores costs less than a comparison of all with each neighbour. Ties may all come
            # before it.
            ranks[begin + i] = len(line) - 1 - np.searchsorted(np.sort(line), line[near], side="left")
            best[begin + i] = min(1.0, float(line.max(initial=0.0)))  # as the cascade reads it
    return ranks, best


def exit_threshold(best: npt.NDArray[np.float64], shares: npt.NDArray[np.float64], recall: float) -> float:
    """The least threshold such that the queries with a greater best score find `recall` of their neighbours on average."""
    order = np.argsort(-best, kind="stable")
    ranked, means = best[order], np.cumsum(shares[order]) / np.arange(1, len(best) + 1)
    # Queries of equal best score exit together.
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    good = ends[means[ends] >= recall]
    if not good.size:
        return 1.0
    last = int(good[-1])
    return float(ranked[last + 1]) if last + 1 < len(ranked) else 0.0


def roc_curve(best: npt.NDArray[np.float64], is_safe: npt.NDArray[np.bool_]) -> RocCurve:
    """One point for each distinct best score."""
    order = np.argsort(-best, kind="stable")
    ranked, safe = best[order], is_safe[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(best) else np.empty(0, np.int64)
    hits, misses = np.cumsum(safe)[ends], np.cumsum(~safe)[ends]
    return RocCurve(
        tuple(ranked[ends].tolist()),
        tuple((hits / max(1, safe.sum())).tolist()),
        tuple((misses / max(1, (~safe).sum())).tolist()),
    )


def rank_quantiles(ranks: npt.NDArray[np.int64]) -> tuple[int, ...]:
    """A distribution of ranks in at most a thousand and one numbers, each no less than the quantile it stands for."""
    if not ranks.size:
        return ()
    points = np.linspace(0.0, 1.0, min(_QUANTILES, ranks.size))
    return tuple(np.quantile(ranks, points, method="higher").tolist())


def measure(
    rows: Float32,
    inverses: Sequence[Float32],
    queries: Sequence[Float32],
    neighbours: npt.NDArray[np.uint32],
    own: npt.NDArray[np.int64] | None,
    *,
    recall: float,
    k: int,
    model: dict[str, str | int] | None,
    rotation: str | None,
    threads: int,
) -> Calibration:
    """The calibration of tiers, narrowest first, from the queries' prefixes and the rows of their true neighbours.

    `inverses` are the rows' for each tier but the last.
    """
    ranks, thresholds, curves, exit_shares = [], [], [], []
    n_queries = len(queries[0])
    waiting = np.ones(n_queries, np.bool_)
    for inverse, prefixes in zip(inverses, queries, strict=False):
        found, best = neighbour_ranks(rows, inverse, prefixes, neighbours, own, threads)
        shares = (found < exit_candidates(k)).mean(axis=1) if neighbours.shape[1] else np.ones(n_queries)
        ranks.append(rank_quantiles(found))
        thresholds.append(exit_threshold(best, shares, recall))
        curves.append(roc_curve(best, shares >= recall))
        leaving = waiting & (best > thresholds[-1])
        exit_shares.append(float(leaving.mean()))
        waiting &= ~leaving
    return Calibration(
        dims=tuple(prefixes.shape[1] for prefixes in queries),
        thresholds=tuple(thresholds),
        exit_shares=(*exit_shares, float(waiting.mean())),
        recall=recall,
        k=k,
        n_vectors=len(rows),
        n_queries=n_queries,
        ranks=tuple(ranks),
        roc=tuple(curves),
        model=model,
        rotation=rotation,
    )
