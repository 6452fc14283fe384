"""Near-copies by character n-grams, comparing every pair."""

from collections.abc import Sequence


def grams(text: str, size: int) -> set[str]:
    """Of lower-cased characters; a shorter text is one n-gram, padded."""
    text = text.lower().ljust(size, "\0")
    return {text[i : i + size] for i in range(len(text) - size + 1)}


def near_copies(texts: Sequence[str], size: int = 3, threshold: float = 0.7) -> dict[int, tuple[int, float]]:
    """J(a, b) = |a ∩ b| / |a ∪ b| ≥ t with an earlier text that stays; the first such counts."""
    found: dict[int, tuple[int, float]] = {}
    for j, text in enumerate(texts):
        for i in range(j):
            a, b = grams(texts[i], size), grams(text, size)
            share = len(a & b) / len(a | b)
            if i not in found and share >= threshold:
                found[j] = i, share
                break
    return found
