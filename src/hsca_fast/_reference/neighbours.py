"""Vectors of chunks drawn towards their neighbours."""

from __future__ import annotations

import math

Vector = list[float]


def unit(v: Vector) -> Vector:
    """v / |v|; zeros stay."""
    length = math.sqrt(sum(x * x for x in v))
    return [x / length for x in v] if length else v


def smooth_neighbours(vectors: list[Vector], reach: int, weight: float, decay: float) -> list[Vector]:
    """unit(v_i + weight unit(Σ_d decay^(d-1) (v_{i-d} + v_{i+d}))), d = 1 … reach, over unit vectors."""
    v = [unit(row) for row in vectors]
    smooth = []
    for i, own in enumerate(v):
        around = [0.0] * len(own)
        for d in range(1, reach + 1):
            for j in (i - d, i + d):
                if 0 <= j < len(v):
                    around = [a + decay ** (d - 1) * x for a, x in zip(around, v[j], strict=True)]
        smooth.append(unit([x + weight * a for x, a in zip(own, unit(around), strict=True)]))
    return smooth
