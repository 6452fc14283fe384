"""How relevant the snapshots of a conversation are to a query (docs/context.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hsca_fast.types import ContextSnapshot


def log2_line(x: float) -> float:
    """log2 with straight lines between the powers of two: the same bits everywhere."""
    mantissa, exponent = math.frexp(x)
    return exponent - 2 + 2 * mantissa


def word_rarity(n_snapshots: int, n_with_word: int) -> float:
    """1 + log2((N + 1) / (n_w + 1)), n_w of N snapshots with the word."""
    return 1 + log2_line((n_snapshots + 1) / (n_with_word + 1))


def by_words(
    query: Sequence[str], words: Sequence[Sequence[set[str]]], weights: Sequence[Sequence[float]]
) -> list[float]:
    """Σ_w rarity(w) · max {layer1(c) : w in c} / Σ_w rarity(w) over the words w of the query, for each snapshot.

    `words` and `weights` are those of each chunk of each snapshot.
    """
    n = len(words)
    rarity = [word_rarity(n, sum(any(w in chunk for chunk in chunks) for chunks in words)) for w in query]
    scores = []
    for chunks, layer1 in zip(words, weights, strict=True):
        score = 0.0
        for w, r in zip(query, rarity, strict=True):
            score += r * max((x for chunk, x in zip(chunks, layer1, strict=True) if w in chunk), default=0.0)
        total = 0.0
        for r in rarity:
            total += r
        scores.append(min(score / total, 1.0) if total else 0.0)
    return scores


def by_domains(tags: Sequence[str], snapshot: ContextSnapshot) -> float:
    """Macro weight · mean share of the query's domains."""
    share = 0.0
    for tag in tags:
        share += snapshot.domain_summary.get(tag, 0.0)
    return snapshot.macro_weight * share / len(tags)


def locality(position: int, context_position: int, radius: int) -> float:
    """1 at the position asked for, falling evenly to 0 just outside of the radius."""
    return max(0.0, 1 - abs(position - context_position) / (radius + 1))


def vector_product(query: Sequence[float], vectors: Sequence[Sequence[float]], weights: Sequence[float]) -> float:
    """Macro weight · cosine of the query and Σ layer1(c) · v_c / |v_c|, at least 0, for the chunks of a snapshot."""
    added = [0.0] * len(query)
    for vector, weight in zip(vectors, weights, strict=True):
        for j, x in enumerate(_unit(vector)):
            added[j] += weight * x
    cosine = sum(a * b for a, b in zip(_unit(query), _unit(added), strict=True))
    return max(0.0, cosine) * sum(weights) / len(weights)


def _unit(vector: Sequence[float]) -> list[float]:
    norm = math.sqrt(sum(x * x for x in vector))
    return [x / norm for x in vector] if norm else list(vector)
