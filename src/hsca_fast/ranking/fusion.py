"""Several rankings fused by rank."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from hsca_fast.ranking.columns import number
from hsca_fast.ranking.hops import by_score, pairs

Id = TypeVar("Id", bound=Hashable)


def fuse_ranks(
    rankings: Sequence[Mapping[Id, float] | Iterable[tuple[Id, float]] | Iterable[Id]],
    *,
    weights: Sequence[float] | None = None,
    k: float = 60,
    damping: float | None = None,
) -> list[tuple[Id, float]]:
    """Reciprocal rank fusion: each id's Σ w / (k + rank), ranks from 0, by (score descending, id ascending).

    Parameters
    ----------
    rankings
        Each best first: (id, score) pairs, plain ids, or a mapping from id to score. A tuple is always a pair, so ids that
        are tuples need scores. Of an id that a ranking names twice the first counts.
    weights
        One each, from 0 to 10⁹; None weighs all alike, with 1.
    k
        At least 10⁻⁹; the larger, the less the first ranks stand out.
    damping
        A ranking whose scores have a variance below this says little: its weight is multiplied by
        max(1/2, variance / damping), and all weights are rescaled to their old sum. Needs scores; None does nothing.

    Examples
    --------
    >>> [item for item, _ in fuse_ranks([["a", "b", "c"], ["b", "c", "d"]])]
    ['b', 'c', 'a', 'd']
    """
    k = number("k", k, 1e-9)
    rankings = list(rankings)
    used = (
        [1.0] * len(rankings)
        if weights is None
        else [number(f"weights[{i}]", w, 0.0, 1e9) for i, w in enumerate(weights)]
    )
    if len(used) != len(rankings):
        raise ValueError(f"weights has {len(used)} elements but there are {len(rankings)} rankings")
    ranked = [_ranking(ranking, f"rankings[{i}]") for i, ranking in enumerate(rankings)]
    if damping is not None:
        used = _damped(used, [scores for _, scores in ranked], number("damping", damping, 0.0))
    fused: dict[Id, float] = {}
    for weight, (ids, _) in zip(used, ranked, strict=True):
        first_rank: dict[Id, int] = {}
        for rank, item in enumerate(ids):
            first_rank.setdefault(item, rank)
        for item, rank in first_rank.items():
            fused[item] = fused.get(item, 0.0) + weight / (k + rank)
    return by_score(fused)


def _ranking(ranking: Any, name: str) -> tuple[list[Any], list[float] | None]:
    """Ids in order, and their scores if there are any."""
    if isinstance(ranking, (str, bytes)):
        raise TypeError(f"{name} must be a sequence of ids, not {type(ranking).__name__}")
    if not isinstance(ranking, Mapping):
        ranking = list(ranking)
        if not any(isinstance(item, tuple) for item in ranking):
            return ranking, [] if not ranking else None
    scored = pairs(ranking, name)
    return [item for item, _ in scored], [score for _, score in scored]


def _damped(weights: list[float], scores: list[list[float] | None], damping: float) -> list[float]:
    damped = list(weights)
    for i, values in enumerate(scores):
        if values is None:
            raise ValueError(f"damping needs scores, but rankings[{i}] holds plain ids")
        mean = sum(values) / len(values) if values else 0.0
        variance = sum((v - mean) * (v - mean) for v in values) / len(values) if values else 0.0
        if variance < damping:
            damped[i] *= max(0.5, variance / damping)
    total = sum(damped)
    return [w * sum(weights) / total for w in damped] if total > 0 else damped
