"""Summaries of a run of turns: extractive always, abstractive when somebody brings a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from hsca_fast.memory.preservation import cosines
from hsca_fast.ranking import estimate_tokens
from hsca_fast.text.segmentation import segment

DENSITY = 0.4


@dataclass(frozen=True, slots=True)
class Draft:
    """What an abstractive summariser proposes.

    Attributes
    ----------
    text
        The summary.
    confidence
        Geometric mean probability of the generated tokens, or None when the model does not tell.
    """

    text: str
    confidence: float | None = None


@runtime_checkable
class Summarizer(Protocol):
    """Anything that writes a summary. It may fail: compaction then falls back to extraction and says so."""

    @property
    def name(self) -> str:
        """Stored as the method of the summaries it wrote."""
        ...

    def summarize(self, texts: Sequence[str], *, max_tokens: int) -> Draft:
        """A draft of at most `max_tokens` tokens over `texts`, which are in time order."""
        ...


@dataclass(frozen=True, slots=True)
class Extract:
    """Turns picked to stand for all.

    Attributes
    ----------
    text
        The picked texts in time order, with a blank between them.
    picked
        Their row numbers, ascending.
    similarity
        Mean cosine of the picked with the mean of all, clamped to [0, 1].
    is_cut
        No picked text fitted the cap, so `text` is the first sentences of the nearest; "" when not even one fits.
    """

    text: str
    picked: tuple[int, ...]
    similarity: float
    is_cut: bool = False


def extractive_summary(
    texts: Sequence[str],
    vectors: npt.ArrayLike,
    *,
    density: float = DENSITY,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] | None = None,
) -> Extract:
    """The ceil(density * n) texts nearest to the mean of all, in time order.

    Ties go to the earlier text. Under a cap the nearest are taken first and those that do not fit are passed over; when
    none fits, the nearest is cut after a sentence: half a sentence may say the opposite of the whole.

    Parameters
    ----------
    texts, vectors
        n texts in time order and their embeddings, [n, d].
    density
        Share of the texts to pick, in (0, 1].
    max_tokens
        Cap on the cost of the summary; None for no cap.
    count_tokens
        Cost of a text; the default is `estimate_tokens`.

    Examples
    --------
    >>> extract = extractive_summary(["a", "b", "c"], [[1, 0], [0.9, 0.1], [0, 1]], density=0.3)
    >>> extract.text, extract.picked
    ('b', (1,))
    """
    if not 0.0 < density <= 1.0:
        raise ValueError(f"density must be above 0 and at most 1, not {density}")
    if max_tokens is not None and max_tokens < 1:
        raise ValueError(f"max_tokens must be at least 1, not {max_tokens}")
    if not len(texts):
        return Extract("", (), 0.0)
    rows = np.asarray(vectors, np.float64)
    if rows.ndim != 2 or len(rows) != len(texts):
        raise ValueError(f"vectors must be one row for each of {len(texts)} texts, not of shape {rows.shape}")
    if not np.isfinite(rows).all():
        row, dim = np.argwhere(~np.isfinite(rows))[0].tolist()
        raise ValueError(f"vectors[{row}, {dim}] is {rows[row, dim]}")
    count = count_tokens or estimate_tokens
    nearness = cosines(rows, rows.mean(axis=0))
    nearest = np.argsort(-nearness, kind="stable")[: math.ceil(density * len(texts))].tolist()
    picked = sorted(nearest) if max_tokens is None else _fitting(texts, nearest, max_tokens, count)
    if picked:
        text, is_cut = " ".join(texts[row] for row in picked), False
    else:
        assert max_tokens is not None
        picked = nearest[:1]
        text, is_cut = _cut(texts[picked[0]], max_tokens, count), True
    similarity = float(np.clip(nearness[picked].mean(), 0.0, 1.0))
    return Extract(text, tuple(picked), similarity, is_cut)


def _fitting(texts: Sequence[str], nearest: Sequence[int], max_tokens: int, count: Callable[[str], int]) -> list[int]:
    """Rows, ascending, taken nearest first while the joined text stays within the cap."""
    picked: list[int] = []
    for row in nearest:
        trial = sorted([*picked, row])
        if count(" ".join(texts[each] for each in trial)) <= max_tokens:
            picked = trial
    return picked


def _cut(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """The longest beginning of `text` within the cap that ends after a sentence, else ""."""
    ends = segment(text).sentences[:, 1].tolist()
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[: ends[middle - 1]].strip()) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return text[: ends[low - 1]].strip() if low else ""
