"""Texts that share most of their characters' n-grams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hsca_fast.vectors.arrays import as_count, as_number

Int64 = npt.NDArray[np.int64]


def near_copies(texts: Sequence[str], *, size: int = 3, threshold: float = 0.7) -> dict[int, tuple[int, float]]:
    """Texts that are like an earlier one: {row: (the first row that stays and is like it, their Jaccard similarity)}.

    The similarity is that of sets of n-grams of lower-cased characters; a text shorter than `size` is one n-gram by itself.
    Exact: of two texts with a similarity of t, the rarest (1 - t)·n + 1 n-grams of each have one in common, so only
    texts that share a rare n-gram are compared.

    Examples
    --------
    >>> near_copies(["the old lamp", "The old lamp.", "a boat"])
    {1: (0, 0.9090909090909091)}
    """
    size = as_count(size, "size", least=1)
    threshold = as_number(threshold, "threshold", low=1e-3, high=1.0)
    if len(texts) < 2:
        return {}
    owner, grams, lengths = _grams([text.lower() for text in texts], size)
    _, gram, counts = np.unique(grams, return_inverse=True, return_counts=True)
    starts = np.cumsum(lengths) - lengths
    # Rarest first within each text.
    order = np.lexsort((gram, counts[gram], owner))
    least = np.ceil(threshold * lengths - 1e-9).astype(np.int64)
    rare = (np.arange(len(order)) - starts[owner]) < (lengths - least + 1)[owner]
    rare &= counts[gram[order]] > 1
    chosen = order[rare]
    sets: dict[int, set[int]] = {}
    found: dict[int, tuple[int, float]] = {}
    holders: dict[int, list[int]] = {}  # rows that stay, by rare n-gram
    by_row = np.split(gram[chosen], np.searchsorted(owner[chosen], np.arange(1, len(texts))))
    for row, marks in enumerate(by_row):
        listed = marks.tolist()
        for other in sorted({other for mark in listed for other in holders.get(mark, ())}):
            if min(lengths[row], lengths[other]) < threshold * max(lengths[row], lengths[other]) - 1e-9:
                continue
            for each in (row, other):
                if each not in sets:
                    sets[each] = set(gram[starts[each] : starts[each] + lengths[each]].tolist())
            common = len(sets[row] & sets[other])
            share = common / (len(sets[row]) + len(sets[other]) - common)
            if share >= threshold:
                found[row] = other, share
                break
        else:
            for mark in listed:
                holders.setdefault(mark, []).append(row)
    return found


def _grams(texts: list[str], size: int) -> tuple[Int64, Int64, Int64]:
    """Distinct n-grams of all texts as numbers, with the row of each, by row; and how many each text has."""
    padded = [text if len(text) >= size else text + "\0" * (size - len(text)) for text in texts]
    points = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    n_points = np.array([len(text) for text in padded], np.int64)
    ends = np.cumsum(n_points)
    windows = len(points) - size + 1
    mixed = np.zeros(windows, np.uint64)
    for offset in range(size):
        mixed = (mixed ^ points[offset : offset + windows]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    row = np.repeat(np.arange(len(texts)), n_points)[:windows]
    inside = np.arange(windows) + size <= ends[row]
    row, numbers = row[inside], mixed[inside].view(np.int64)
    order = np.lexsort((numbers, row))
    row, numbers = row[order], numbers[order]
    new = np.ones(len(row), bool)
    new[1:] = (row[1:] != row[:-1]) | (numbers[1:] != numbers[:-1])
    row, numbers = row[new], numbers[new]
    return row, numbers, np.bincount(row, minlength=len(texts)).astype(np.int64)
