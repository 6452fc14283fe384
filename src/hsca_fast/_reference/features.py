"""A text as a row of hashed counts ("hashed-ngrams-v1"): words, pairs of words, pieces of words, marks.

The definition is in csrc/include/hsca/text/features.hpp; names are the same here and there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hsca_fast._reference import segmentation

WORD = 0x9E3779B97F4A7C15
PAIR = 0xC2B2AE3D27D4EB4F
PIECE = 0x165667B19E3779F9
MARK = 0xD6E8FEB86659FD93
SENTENCE_START = 0x27D4EB2F165667C5
_64_BITS = (1 << 64) - 1


def mix(x: int) -> int:
    """Spreads the bits of a 64-bit number."""
    x ^= x >> 32
    x = x * 0xD6E8FEB86659FD93 & _64_BITS
    return x ^ x >> 29


def word_hash(folded: bytes) -> int:
    """Hash of a folded word: of its bytes as two integers, or of two running hashes when it is longer than 16 bytes."""
    if len(folded) <= 16:
        low, high = (int.from_bytes(folded[i : i + 8], "little") for i in (0, 8))
    else:
        low, high = len(folded), ~len(folded) & _64_BITS
        for i in range(0, len(folded), 8):
            part = int.from_bytes(folded[i : i + 8], "little")
            low = mix((low * 0x9E3779B97F4A7C15 + part) & _64_BITS)
            high = mix((high ^ part) * 0xC2B2AE3D27D4EB4F & _64_BITS)
        high |= 0xFF << 56
    return mix((low * 0x9E3779B97F4A7C15 & _64_BITS) ^ ((high * 0xC2B2AE3D27D4EB4F & _64_BITS) >> 7))


def _found(text: str, function_words: frozenset[str]) -> list[int]:
    """One number for every word, pair, piece and mark of a text."""
    _, sentences, words = segmentation.segment(text, function_words)
    found = []
    inside = {i for begin, end in words for i in range(begin, end)}
    for i, ch in enumerate(text):
        if i not in inside and "!" <= ch <= "~" and not ch.isalnum():
            found.append((ord(ch) + 1) * MARK)
    at = 0
    last = SENTENCE_START
    for begin, end in words:
        while end > sentences[at][1]:
            at += 1
            last = SENTENCE_START
        # '_' and DEL share a key in the native code.
        folded = segmentation.fold(text[begin:end]).encode().replace(b"_", b"\x7f")
        value = word_hash(folded)
        found += [value * WORD, last * PAIR & _64_BITS ^ value]
        last = value
        if len(folded) <= 16:
            padded = b" " + folded + b" "
            found += [(int.from_bytes(padded[i : i + 4], "little") + 1) * PIECE for i in range(len(padded) - 3)]
    return found


def hashed_features(texts: Sequence[str], dim: int, function_words: frozenset[str]) -> npt.NDArray[np.float32]:
    """Rows of `dim` features, each of length 1, or 0 for a text without words and marks."""
    rows = np.zeros((len(texts), dim), np.float32)
    for row, text in zip(rows, texts, strict=True):
        bins = [(mix(value & _64_BITS) >> 32) * dim >> 32 for value in _found(text, function_words)]
        if bins:
            row[:] = np.sqrt(np.bincount(bins, minlength=dim) / len(bins))
    return rows
