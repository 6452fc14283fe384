"""Paragraphs, sentences and words of a text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hsca_fast._native import text as _native
from hsca_fast._native.strings import encode


@dataclass(frozen=True, slots=True, eq=False)
class Segmentation:
    """Where things are: each array is int64[n, 2], rows (start, end) in characters of the text."""

    paragraphs: npt.NDArray[np.int64]
    sentences: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]


def segment(text: str) -> Segmentation:
    """Find the paragraphs, sentences and words of `text`.

    Words are runs of letters and digits with inner apostrophes and hyphens; scripts without spaces give one word a pair
    of neighbouring characters. Every sentence and paragraph holds at least one word.

    Examples
    --------
    >>> text = "Dr. Smith paid $3.50. He left."
    >>> [text[a:b] for a, b in segment(text).sentences]
    ['Dr. Smith paid $3.50.', 'He left.']
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be str, not {type(text).__name__}")
    encoded, _ = encode(text)
    paragraphs, sentences, words = _native.segment(encoded)
    if len(encoded) == len(text):
        return Segmentation(paragraphs, sentences, words)
    before = characters_before(encoded)
    return Segmentation(before[paragraphs], before[sentences], before[words])


def characters_before(encoded: bytes) -> npt.NDArray[np.int64]:
    """For each byte of UTF-8 text and its end: how many characters start before it, which turns byte offsets into
    character offsets."""
    starts = (np.frombuffer(encoded, np.uint8) & 0xC0) != 0x80
    return np.concatenate(([0], np.cumsum(starts, dtype=np.int64)))
