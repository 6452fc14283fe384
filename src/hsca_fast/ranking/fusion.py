"""Several rankings fused by rank."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from hsca_fast.ranking.columns import number
from hsca_fast.ranking.decay import recency
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


def fuse_scores(
    rankings: Sequence[Mapping[Id, float] | Iterable[tuple[Id, float]]], *, weights: Sequence[float] | None = None
) -> list[tuple[Id, float]]:
    """Each id's Σ w·z / Σ w, z its standard score within a ranking, mapped to (0, 1); by (score descending, id ascending).

    Unlike ranks, scores say how far apart results are. An id that a ranking does not have counts as that ranking's last. The mean
    of a ranking alone is mapped to 0.5.

    Parameters
    ----------
    rankings
        Each (id, score) pairs, or a mapping from id to score, on any scale. Of an id named twice the first counts.
    weights
        One each, at least 0 and not all 0; None weighs all alike.

    Examples
    --------
    >>> [(item, round(score, 3)) for item, score in fuse_scores([{"a": 9.0, "b": 8.0, "c": 1.0}, {"b": 0.7, "c": 0.1}])]
    [('b', 0.686), ('a', 0.48), ('c', 0.231)]
    """
    used = (
        [1.0] * len(rankings) if weights is None else [number(f"weights[{i}]", w, 0.0) for i, w in enumerate(weights)]
    )
    if len(used) != len(rankings):
        raise ValueError(f"weights has {len(used)} elements but there are {len(rankings)} rankings")
    total = math.fsum(used)
    if rankings and total == 0.0:
        raise ValueError("weights must not all be 0")
    standard = [_standard_scores(ranking, f"rankings[{i}]") for i, ranking in enumerate(rankings)]
    lowest = [min(scores.values(), default=0.0) for scores in standard]
    ids = dict.fromkeys(item for scores in standard for item in scores)
    sums = [
        math.fsum(w * z.get(item, low) for w, z, low in zip(used, standard, lowest, strict=True)) / total
        for item in ids
    ]
    # e^-|z| is the same on every platform; libm's is not.
    tails = recency(np.abs(np.array(sums, np.float64)), 1.0).tolist()
    return by_score(
        {item: (1.0 if z >= 0.0 else tail) / (1.0 + tail) for item, z, tail in zip(ids, sums, tails, strict=True)}
    )


def _standard_scores(ranking: Any, name: str) -> dict[Any, float]:
    scores: dict[Any, float] = {}
    for item, score in pairs(ranking if isinstance(ranking, Mapping) else list(ranking), name):
        scores.setdefault(item, score)
    if not scores:
        return {}
    mean = math.fsum(scores.values()) / len(scores)
    spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores.values()) / len(scores))
    return {item: (score - mean) / spread if spread > 0.0 else 0.0 for item, score in scores.items()}


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
