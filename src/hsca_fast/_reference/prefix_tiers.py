"""Regularised prefixes: u_k = v[:k] / sqrt(|v[:k]|² + ε²)."""

import math
from collections.abc import Sequence


def prefix(v: Sequence[float], k: int, eps: float = 1e-8) -> list[float]:
    """u_k; zeros stay zeros whatever ε is."""
    energy = math.fsum(x * x for x in v[:k])
    if energy == 0.0:
        return [0.0] * k
    return [x / math.sqrt(energy + eps * eps) for x in v[:k]]


def prefix_tiers(v: Sequence[float], dims: Sequence[int], eps: float = 1e-8) -> list[list[float]]:
    """u_k for every k of `dims`."""
    return [prefix(v, k, eps) for k in dims]
