"""How well boundaries between the beats of a conversation were found.

A boundary is the number of the turn that opens a new beat: 1 to n - 1 for n turns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def pk(truth: Sequence[int], found: Sequence[int], n_turns: int) -> float:
    """Share of probes, two turns half a true beat apart, that `found` puts wrongly together or apart (Beeferman 1999).

    Examples
    --------
    >>> pk([4], [4], 8), pk([4], [], 8)
    (0.0, 0.3333333333333333)
    """
    true, guess, k = _counts(truth, found, n_turns)
    if k >= n_turns:
        return 0.0
    return float(np.mean((true[k:] != true[:-k]) != (guess[k:] != guess[:-k])))


def window_diff(truth: Sequence[int], found: Sequence[int], n_turns: int) -> float:
    """Share of windows of half a true beat in which the numbers of boundaries differ (Pevzner & Hearst 2002).

    Examples
    --------
    >>> window_diff([4], [3, 4], 8)
    0.3333333333333333
    """
    true, guess, k = _counts(truth, found, n_turns)
    if k >= n_turns:
        return 0.0
    return float(np.mean((true[k:] - true[:-k]) != (guess[k:] - guess[:-k])))


def matched_boundaries(truth: Sequence[int], found: Sequence[int], *, tolerance: int = 1) -> int:
    """How many of `found` lie within `tolerance` turns of a boundary of `truth` of their own.

    Examples
    --------
    >>> matched_boundaries([4, 9], [3, 4, 5])
    1
    """
    matched, rest = 0, sorted(found)
    for boundary in sorted(truth):
        while rest and rest[0] < boundary - tolerance:
            rest.pop(0)
        if rest and rest[0] <= boundary + tolerance:
            rest.pop(0)
            matched += 1
    return matched


def _counts(
    truth: Sequence[int], found: Sequence[int], n_turns: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """The beat that each turn is in, by truth and as found, and half the mean length of a true beat."""
    for name, boundaries in (("truth", truth), ("found", found)):
        for boundary in boundaries:
            if not 0 < boundary < n_turns:
                raise ValueError(f"{name} has boundary {boundary}, outside of 1 to {n_turns - 1}")
    beats = []
    for boundaries in (truth, found):
        opens = np.zeros(n_turns, np.int64)
        opens[list(boundaries)] = 1
        beats.append(np.cumsum(opens))
    k = max(2, round(n_turns / (2 * (len(set(truth)) + 1))))
    return beats[0], beats[1], k
