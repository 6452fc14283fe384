"""Cosines of vectors from which a share of their common mean is taken."""

import math
from collections.abc import Sequence

Vector = Sequence[float]
LEAST_SQUARE = 0.01


def unit(vector: Vector) -> list[float]:
    """Of length 1; a vector of zeros stays."""
    length = math.sqrt(math.fsum(x * x for x in vector))
    return [x / length if length else 0.0 for x in vector]


def mean_vector(vectors: Sequence[Vector]) -> list[float]:
    """Mean of unit vectors."""
    rows = [unit(vector) for vector in vectors]
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]


def centred_cosine(query: Vector, record: Vector, mean: Vector, weight: float = 1.0) -> float:
    """(q − w·μ)·(d − w·μ) / (‖q − w·μ‖·‖d − w·μ‖), no squared length below 0.01; -1 for a record of zeros."""
    if not any(record):
        return -1.0
    q, d = ([x - weight * m for x, m in zip(unit(v), mean, strict=True)] for v in (query, record))
    squares = [max(math.fsum(x * x for x in v), LEAST_SQUARE) for v in (q, d)]
    return math.fsum(x * y for x, y in zip(q, d, strict=True)) / math.sqrt(squares[0] * squares[1])
