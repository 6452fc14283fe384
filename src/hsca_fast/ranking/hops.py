"""Hops along authored links, and rankings merged into one."""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from hsca_fast.ranking.columns import number

Id = TypeVar("Id", bound=Hashable)
Ranking = Mapping[Id, float] | Iterable[tuple[Id, float]]


def expand_hops(
    scores: Mapping[Id, float],
    edges: Mapping[Id, Sequence[Id]],
    *,
    eta: float = 0.5,
    theta: float = 0.15,
    eligible: Container[Id] | None = None,
) -> dict[Id, float]:
    """Documents one link away from ranked ones: S_hop(d') = eta · the best score of a parent, kept from `theta` on.

    Only one step is taken, so cycles and self-links do no harm. Targets that are ranked already, or not `eligible`
    (dangling links), are left out. Ids may be any hashable that sorts; a (collection, id) pair keeps collections apart.

    Parameters
    ----------
    scores
        Ranked documents; scores are clamped to [0, 1].
    edges
        Link targets by document; documents without an entry have none.
    eta
        What a hop leaves of a score, between 0 and 1.
    theta
        Least score of a hop, in [0, 1].
    eligible
        Ids that exist as targets; None takes every target.

    Returns
    -------
    dict
        Ordered by (score descending, id ascending).

    Examples
    --------
    >>> expand_hops({"a": 0.9, "b": 0.4}, {"a": ["b", "x"], "b": ["x", "y"]})
    {'x': 0.45, 'y': 0.2}
    """
    eta = number("eta", eta, 0.0, 1.0, open_ends=True)
    theta = number("theta", theta, 0.0, 1.0)
    for name, given in (("scores", scores), ("edges", edges)):
        if not isinstance(given, Mapping):
            raise TypeError(f"{name} must be a mapping, not {type(given).__name__}")
    best: dict[Id, float] = {}
    for parent, score in scores.items():
        inherited = eta * min(max(_finite(parent, score), 0.0), 1.0)
        targets = edges.get(parent, ())
        if isinstance(targets, (str, bytes)) or not isinstance(targets, Iterable):
            raise TypeError(f"edges[{parent!r}] must be a sequence of ids, not {type(targets).__name__}")
        if inherited < theta:
            continue
        for target in targets:
            if target in scores or (eligible is not None and target not in eligible):
                continue
            if inherited > best.get(target, -1.0):
                best[target] = inherited
    return dict(by_score(best))


def merge_ranked(*rankings: Ranking[Id]) -> list[tuple[Id, float]]:
    """All rankings as one, each id with its highest score, by (score descending, id ascending).

    A ranking is a mapping from id to score or an iterable of (id, score) pairs.

    Examples
    --------
    >>> merge_ranked([("a", 0.3), ("b", 0.5)], {"a": 0.6})
    [('a', 0.6), ('b', 0.5)]
    """
    best: dict[Id, float] = {}
    for number_of, ranking in enumerate(rankings):
        for item, score in pairs(ranking, f"rankings[{number_of}]"):
            if score > best.get(item, -math.inf):
                best[item] = score
    return by_score(best)


def pairs(ranking: Ranking[Id], name: str) -> list[tuple[Id, float]]:
    """The (id, score) pairs of a ranking, checked; a mapping is put in order of its scores."""
    if isinstance(ranking, Mapping):
        return by_score({item: _finite(item, score) for item, score in ranking.items()})
    found: list[tuple[Id, float]] = []
    for row, pair in enumerate(ranking):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"{name}[{row}] must be an (id, score) pair, not {pair!r}")
        found.append((pair[0], _finite(pair[0], pair[1])))
    return found


def by_score(scores: Mapping[Id, float]) -> list[tuple[Id, float]]:
    """By (score descending, id ascending)."""
    key: Any = lambda pair: (-pair[1], pair[0])  # noqa: E731
    try:
        return sorted(scores.items(), key=key)
    except TypeError:
        raise TypeError("ids with equal scores must sort among each other: use ids of one type") from None


def _finite(item: object, score: float) -> float:
    if not isinstance(score, (int, float)) and not hasattr(score, "__float__"):
        raise TypeError(f"the score of {item!r} must be a number, not {type(score).__name__}")
    try:
        value = float(score)
    except OverflowError:
        raise ValueError(f"the score of {item!r} is beyond float64") from None
    if not math.isfinite(value):
        raise ValueError(f"the score of {item!r} is {value}; every score must be finite")
    return value
