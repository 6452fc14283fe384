"""Relevance of a document that was found by meaning, by words or by both."""

from collections.abc import Sequence


def blended_relevance(cosine: float, lexical: float, weight: float = 0.5, saturation: float = 10.0) -> float:
    """w·max(cos, 0) + (1 − w)·b / (b + c), in [0, 1]."""
    return weight * min(max(cosine, 0.0), 1.0) + (1.0 - weight) * max(lexical, 0.0) / (max(lexical, 0.0) + saturation)


def dealt_relevance(relevance: Sequence[float]) -> list[float]:
    """The highest to the first, the next to the second, and so on."""
    return sorted(relevance, reverse=True)
