"""Where a conversation turns to something else, by its words.

The engine's own snapshots follow coherence alone (HSCA 2.4), which says when enough has been said and not that the topic is a new
one. `find_beats` is a separate reading of the same turns: it looks for places where the words before and after have little in
common, and expects beats of about a usual length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hsca_fast._native.text import function_words
from hsca_fast.text.segmentation import segment

_STEM = 6  # letters of a word that count


@dataclass(frozen=True, slots=True)
class BeatConfig:
    """How beats are found.

    Parameters
    ----------
    block
        Turns on each side of a place whose words are compared.
    beat_length
        Turns that a beat usually has.
    length_weight
        What a beat of twice or half that length costs, in units of the change of words at its beginning.
    question_weight
        What a turn that asks a question is worth as the beginning of a beat.

    Examples
    --------
    >>> BEAT_PRESETS["chat"].beat_length
    4.6
    """

    block: int = 3
    beat_length: float = 8.0
    length_weight: float = 0.2
    question_weight: float = 0.0

    def __post_init__(self) -> None:
        if self.block < 1:
            raise ValueError(f"block must be at least 1, not {self.block}")
        if not self.beat_length >= 1:
            raise ValueError(f"beat_length must be at least 1, not {self.beat_length}")
        if not self.length_weight > 0:
            raise ValueError(f"length_weight must be above 0, not {self.length_weight}")


# Calibrated by `hsca eval boundaries` on the dev halves of TIAGE and Choi's documents (docs/evals.md).
BEAT_PRESETS = {
    "chat": BeatConfig(1, 4.6, 0.2, 0.3),
    "document": BeatConfig(7, 8.4, 0.2),
}


def find_beats(turns: Sequence[str], *, config: BeatConfig | None = None) -> list[int]:
    """The numbers of the turns that open a new beat, best as a whole (dynamic programming over all places).

    Examples
    --------
    >>> boats = ["The boat has a sail.", "A sail needs wind.", "The boat left in the wind."]
    >>> bread = ["Bread needs flour.", "The flour is rye.", "Rye bread is dark."]
    >>> find_beats(boats + bread, config=BeatConfig(block=2, beat_length=3))
    [3]
    """
    if isinstance(turns, str):
        raise TypeError("turns must be a sequence of str, not str")
    config = BeatConfig() if config is None else config
    return best_cut(word_change(turns, config), config)


def word_change(turns: Sequence[str], config: BeatConfig) -> npt.NDArray[np.float64]:
    """For each turn, how little the words of the block before it and of the block from it on have in common; 0 to 1, and the
    worth of its question."""
    n = len(turns)
    ignored = frozenset(function_words())
    numbers: dict[str, int] = {}
    said = []
    for turn in turns:
        words = (turn[a:b].lower() for a, b in segment(turn).words.tolist())
        said.append([numbers.setdefault(w[:_STEM], len(numbers)) for w in words if w not in ignored and w.isalpha()])
    counts = np.zeros((n + 1, max(1, len(numbers))))
    for i, own in enumerate(said):
        np.add.at(counts[i + 1], own, 1.0)
    spread = (counts > 0).sum(axis=0)
    counts *= np.log((1 + n) / (1 + spread)) + 1.0
    total = np.cumsum(counts, axis=0)
    at = np.arange(n)
    before = total[at] - total[np.maximum(at - config.block, 0)]
    after = total[np.minimum(at + config.block, n)] - total[at]
    norms = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    alike = np.divide((before * after).sum(axis=1), norms, out=np.zeros(n), where=norms > 0)
    asks = np.array(["?" in turn for turn in turns], float).reshape(n)
    return np.asarray(1.0 - alike + config.question_weight * asks)


def best_cut(change: npt.NDArray[np.float64], config: BeatConfig) -> list[int]:
    """The boundaries with the largest sum of standardised change, less what unusual lengths cost."""
    n = len(change)
    if n < 2:
        return []
    inner = change[1:]
    deviation = float(inner.std())
    worth = (change - inner.mean()) / deviation if deviation > 0 else np.zeros(n)
    lengths = np.arange(1, n + 1)
    cost = config.length_weight * (np.log2(lengths) - math.log2(config.beat_length)) ** 2
    best = np.full(n + 1, -np.inf)
    best[0] = 0.0
    back = [0] * (n + 1)
    for end in range(1, n + 1):
        opened = best[:end] + np.concatenate([[0.0], worth[1:end]])
        scores = opened - cost[end - 1 :: -1][:end]
        back[end] = int(np.argmax(scores))
        best[end] = scores[back[end]]
    found: list[int] = []
    end = n
    while end > 0:
        end = back[end]
        if end:
            found.append(end)
    return found[::-1]
