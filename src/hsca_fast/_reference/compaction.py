"""Section 5 of the document in plain Python: clusters, preservation, confidence, extracts."""

from __future__ import annotations

import math
from collections.abc import Sequence


def cluster_count(n: int, k: int) -> int:
    """c = ceil(max(n, 1) / k), k = 20 when it is not positive."""
    return math.ceil(max(n, 1) / (k if k > 0 else 20))


def cluster_index(i: int, n: int, k: int) -> int:
    """clusterIndex(i) = floor(i * c / max(n, 1))."""
    return i * cluster_count(n, k) // max(n, 1)


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    norms = math.sqrt(math.fsum(x * x for x in a)) * math.sqrt(math.fsum(x * x for x in b))
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / norms if norms else 0.0


def mean(vectors: Sequence[Sequence[float]]) -> list[float]:
    """mu_C = (1/n) sum v_i."""
    return [math.fsum(column) / len(vectors) for column in zip(*vectors, strict=True)]


def align(summary: Sequence[float], sources: Sequence[Sequence[float]]) -> float:
    """Q_align = cos(v_s, mu_C)."""
    return cosine(summary, mean(sources))


def cover(summary: Sequence[float], sources: Sequence[Sequence[float]]) -> float:
    """Q_cover = (1/n) sum max(0, cos(v_s, v_i))."""
    return math.fsum(max(0.0, cosine(summary, source)) for source in sources) / len(sources)


def preservation_confidence(align: float, cover: float) -> float:
    """max(0, min(1, (Q_align + Q_cover) / 2))."""
    return max(0.0, min(1.0, (align + cover) / 2))


def hybrid_confidence(preservation: float, decoder: float, weight: float = 0.8) -> float:
    """lambda * conf_space + (1 - lambda) * conf_decoder."""
    return weight * preservation + (1 - weight) * decoder


def extract_rows(vectors: Sequence[Sequence[float]], density: float = 0.4) -> list[int]:
    """The ceil(density * n) rows nearest to the mean, ties to the earlier, in time order."""
    centre = mean(vectors)
    nearest = sorted(range(len(vectors)), key=lambda row: (-cosine(vectors[row], centre), row))
    return sorted(nearest[: math.ceil(density * len(vectors))])
