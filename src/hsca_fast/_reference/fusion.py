"""Reciprocal rank fusion with variance damping."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence


def fuse_ranks(
    rankings: Sequence[Sequence[tuple[Hashable, float]]],
    *,
    weights: Sequence[float],
    k: float = 60.0,
    damping: float | None = None,
) -> dict[Hashable, float]:
    """Σ w_s / (k + rank), rank from 0. With damping v a ranking whose score variance is below v has its weight times
    max(1/2, variance / v), and all weights are rescaled to their old sum."""
    used = list(weights)
    if damping is not None:
        for i, ranking in enumerate(rankings):
            values = [score for _, score in ranking]
            mean = sum(values) / len(values) if values else 0.0
            variance = sum((v - mean) ** 2 for v in values) / len(values) if values else 0.0
            if variance < damping:
                used[i] *= max(0.5, variance / damping)
        total = sum(used)
        used = [w * sum(weights) / total for w in used] if total > 0 else used
    fused: dict[Hashable, float] = {}
    for weight, ranking in zip(used, rankings, strict=True):
        seen = set()
        for rank, (item, _) in enumerate(ranking):
            if item not in seen:
                fused[item] = fused.get(item, 0.0) + weight / (k + rank)
            seen.add(item)
    return fused


def fuse_scores(rankings: Sequence[dict[Hashable, float]], *, weights: Sequence[float]) -> dict[Hashable, float]:
    """1 / (1 + e^(−Σ w·z / Σ w)), z = (score − mean) / deviation of its ranking; the lowest z of a ranking that lacks the id."""
    standard = []
    for scores in rankings:
        mean = sum(scores.values()) / len(scores) if scores else 0.0
        spread = (sum((x - mean) ** 2 for x in scores.values()) / len(scores)) ** 0.5 if scores else 0.0
        standard.append({item: (x - mean) / spread if spread else 0.0 for item, x in scores.items()})
    fused = {}
    for item in {item for scores in standard for item in scores}:
        z = sum(w * s.get(item, min(s.values(), default=0.0)) for w, s in zip(weights, standard, strict=True))
        fused[item] = 1.0 / (1.0 + math.exp(-z / sum(weights)))
    return fused
