"""Hops along authored links (section 7.7) and merged rankings (7.8)."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import Any

from hsca_fast._reference.decay import clamp


def expand_hops(
    scores: Mapping[Hashable, float],
    edges: Mapping[Hashable, Iterable[Hashable]],
    *,
    eta: float = 0.5,
    theta: float = 0.15,
    eligible: Container[Hashable] | None = None,
) -> dict[Hashable, float]:
    """S_hop(d') = η·max over parents d with d' in H(d) of S(d), for d' outside the ranked set; kept when at least θ."""
    targets = {t for parent in scores for t in edges.get(parent, ()) if t not in scores}
    hops = {}
    for target in targets:
        if eligible is not None and target not in eligible:
            continue
        best = max(clamp(score) for parent, score in scores.items() if target in list(edges.get(parent, ())))
        if eta * best >= theta:
            hops[target] = eta * best
    return hops


def merge_ranked(rankings: Sequence[Sequence[tuple[Any, float]]]) -> list[tuple[Any, float]]:
    """Each id with its highest score, by (score descending, id ascending)."""
    ids = {item for ranking in rankings for item, _ in ranking}
    best = [(item, max(s for ranking in rankings for i, s in ranking if i == item)) for item in ids]
    return sorted(best, key=lambda pair: (-pair[1], pair[0]))
