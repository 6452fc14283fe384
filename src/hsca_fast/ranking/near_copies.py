"""Texts that share most of their characters' n-grams with an earlier one."""

from __future__ import annotations

from collections.abc import Sequence

from hsca_fast._native import ranking as _native
from hsca_fast._native.strings import StringColumn
from hsca_fast.ranking.columns import count, number


def near_copies(texts: Sequence[str], *, size: int = 3, threshold: float = 0.7) -> dict[int, tuple[int, float]]:
    """Texts that are like an earlier one: {row: (the first row that stays and is like it, their Jaccard similarity)}.

    The similarity is that of sets of n-grams of lower-cased characters; a text shorter than `size` is one n-gram by itself.

    Examples
    --------
    >>> near_copies(["the old lamp", "The old lamp.", "a boat"])
    {1: (0, 0.9090909090909091)}
    """
    size = count("size", size)
    threshold = number("threshold", threshold, 1e-3, 1.0)
    lowered = tuple(map(str.lower, texts))
    column = StringColumn.from_sequence(lowered, 0, 1 << 62)
    first, similarity = _native.near_copies(column, size, threshold)
    return {
        row: (found, share)
        for row, (found, share) in enumerate(zip(first.tolist(), similarity.tolist(), strict=True))
        if found >= 0
    }
