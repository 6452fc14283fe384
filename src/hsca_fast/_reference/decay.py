"""Recency (section 2), and the clamping and weighing that the scores share (1.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence

# e^-x is held here: R is in (0, 1], never 0 (float32 holds it at 64).
MAX_EXPONENT = 600.0


def clamp(x: float, low: float = 0.0, high: float = 1.0) -> float:
    """`x` moved into [low, high]."""
    return min(max(x, low), high)


def normalize_weights(weights: Sequence[float], default: Sequence[float]) -> list[float]:
    """Each clamped to [0, 1], then divided by their sum; `default` when that is 0."""
    clamped = [clamp(w) for w in weights]
    total = sum(clamped)
    return [w / total for w in clamped] if total > 0 else list(default)


def recency(age: float, decay: float) -> float:
    """R = e^(-λ·Δt); a date in the future is age 0."""
    return math.exp(-min(decay * max(age, 0.0), MAX_EXPONENT))
