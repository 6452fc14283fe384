"""The hybrid rank (section 1)."""

from __future__ import annotations

from collections.abc import Sequence

from hsca_fast._reference.decay import clamp, normalize_weights, recency


def hybrid_score(
    cosine: float,
    age: float,
    decay: float,
    scope_weight: float,
    decay_rate: float | None = None,
    *,
    weights: Sequence[float] = (0.7, 0.2, 0.1),
    delta: float = 0.5,
) -> float:
    """(α·cos + β·R + γ·S)·Q with Q = 1 - δ·decay_rate for summaries, 1 otherwise."""
    alpha, beta, gamma = normalize_weights(weights, (0.7, 0.2, 0.1))
    base = alpha * clamp(cosine) + beta * recency(age, decay) + gamma * scope_weight
    quality = 1.0 if decay_rate is None else 1.0 - delta * clamp(decay_rate)
    return min(base * quality, 1.0)


def top_k(scores: Sequence[float], k: int) -> list[int]:
    """Rows by (score descending, row ascending), the first k."""
    return sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:k]
