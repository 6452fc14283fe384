"""Search over prefix tiers, as the document has it, with early exits scored again at full width."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hsca_fast._reference.prefix_tiers import prefix

Vector = Sequence[float]


@dataclass
class Found:
    """Hits as (id, score), the tier that decided, the best score of every tier searched."""

    hits: list[tuple[int, float]]
    tier: int
    best: list[float]


def score(query: Vector, record: Vector, width: int) -> float:
    """Cosine of two regularised prefixes."""
    return math.fsum(a * b for a, b in zip(prefix(query, width), prefix(record, width), strict=True))


def top(query: Vector, records: Mapping[int, Vector], width: int, k: int) -> list[tuple[int, float]]:
    """The k best at `width`: score descending, then id ascending."""
    scored = [(id_, score(query, record, width)) for id_, record in records.items()]
    return sorted(scored, key=lambda hit: (-hit[1], hit[0]))[:k]


def exact(query: Vector, records: Mapping[int, Vector], dims: Sequence[int], k: int) -> Found:
    """A scan of every record at full width."""
    hits = top(query, records, dims[-1], k)
    return Found(hits, len(dims) - 1, [best(hits)])


def best(hits: Sequence[tuple[int, float]]) -> float:
    """The best score of a tier; max(∅) = 0, and no cosine exceeds 1, whatever its rounding."""
    return min(1.0, max([0.0, *(value for _, value in hits)]))


def early_exit(
    query: Vector,
    records: Mapping[int, Vector],
    dims: Sequence[int],
    k: int,
    *,
    thresholds: Sequence[float],
    candidates: int,
    lacking: Sequence[int] = (),
) -> Found:
    """Exit at the first tier whose best score exceeds its threshold; tiers in `lacking` do not hold every record."""
    seen = []
    for tier, (width, threshold) in enumerate(zip(dims, thresholds, strict=False)):
        if tier in lacking:
            seen.append(0.0)
            continue
        hits = top(query, records, width, candidates)
        seen.append(best(hits))
        if best(hits) > threshold:
            return Found(top(query, {id_: records[id_] for id_, _ in hits}, dims[-1], k), tier, seen)
    found = exact(query, records, dims, k)
    return Found(found.hits, found.tier, [*seen, *found.best])


def funnel(query: Vector, records: Mapping[int, Vector], dims: Sequence[int], k: int, *, sizes: Sequence[int]) -> Found:
    """The best sizes[0] at dims[0], of those the best sizes[1] at dims[1], ..., of those the best k at full width."""
    left = dict(records)
    seen = []
    for width, size in zip(dims, [*sizes, k], strict=True):
        hits = top(query, left, width, size)
        seen.append(best(hits))
        left = {id_: records[id_] for id_, _ in hits}
    return Found(hits, len(dims) - 1, seen)
