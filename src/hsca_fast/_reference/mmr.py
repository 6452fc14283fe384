"""Maximal marginal relevance with group balance, by trying every candidate at every step."""

import math
from collections.abc import Sequence


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Of two vectors; 0 if one of them is zero."""
    lengths = math.sqrt(math.fsum(x * x for x in a)) * math.sqrt(math.fsum(x * x for x in b))
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def marginal(
    i: int,
    picked: Sequence[int],
    relevance: Sequence[float],
    embeddings: Sequence[Sequence[float]],
    lambda_: float,
    groups: Sequence[object],
    group_weight: float,
) -> float:
    """λ·rel(i) − (1−λ)·max_{j ∈ S} cos(i, j) − γ·|{j ∈ S: same group}| / |S|; the last two are 0 for S = ∅."""
    if not picked:
        return lambda_ * relevance[i]
    redundancy = max(cosine(embeddings[i], embeddings[j]) for j in picked)
    saturation = sum(groups[j] == groups[i] for j in picked) / len(picked)
    return lambda_ * relevance[i] - (1 - lambda_) * redundancy - group_weight * saturation


def mmr(
    relevance: Sequence[float],
    embeddings: Sequence[Sequence[float]],
    k: int,
    lambda_: float = 0.7,
    groups: Sequence[object] | None = None,
    group_weight: float = 0.0,
) -> list[int]:
    """Row numbers in the order they are picked; ties go to the lowest."""
    groups = [0] * len(relevance) if groups is None else groups
    picked: list[int] = []
    while len(picked) < min(k, len(relevance)):
        left = [i for i in range(len(relevance)) if i not in picked]
        values = [marginal(i, picked, relevance, embeddings, lambda_, groups, group_weight) for i in left]
        picked.append(left[values.index(max(values))])
    return picked
