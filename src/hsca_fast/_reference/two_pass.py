"""Two-pass discovery: authority (section 7.3), the coarse filter (7.4) and the second-pass score (7.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hsca_fast._reference.decay import clamp, normalize_weights, recency
from hsca_fast._reference.hybrid import top_k


def authority_weight(
    age: float,
    access_count: float,
    authored: float,
    max_access: float,
    *,
    weights: Sequence[float] = (0.5, 0.2, 0.3),
    decay: float = 1e-5,
) -> float:
    """ω = α_r·r + α_f·f + α_a·a with f = ln(1 + acc) / ln(1 + max acc + 1)."""
    alpha_r, alpha_f, alpha_a = normalize_weights(weights, (0.5, 0.2, 0.3))
    f = math.log(1.0 + clamp(access_count, 0.0, max_access)) / math.log(1.0 + max_access + 1.0)
    return min(alpha_r * recency(age, decay) + alpha_f * f + alpha_a * clamp(authored), 1.0)


def coarse_candidates(similarity: Sequence[float], *, k: int, theta: float) -> list[int]:
    """Pass 1: the k highest similarities, then those of at least θ₁."""
    return [row for row in top_k(similarity, k) if similarity[row] >= theta]


def second_pass_score(similarity: float, authority: float, coverage: float, *, kappa: float = 0.3) -> float:
    """S = ω·max(sim, 0)·(1 + κ·M) / (1 + κ)."""
    return clamp(authority) * clamp(similarity) * (1.0 + kappa * clamp(coverage)) / (1.0 + kappa)
