"""Token estimates (section 3)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_CJK = re.compile("[\u4e00-\u9faf\u3041-\u3096\u30a1-\u30fa\uac00-\ud7a3]")
_MID = re.compile("[\u0400-\u04ff\u0590-\u05ff\u0600-\u06ff]")


def host_tokens(text: str) -> int:
    """⌈|t| / χ(t)⌉ with |t| in UTF-16 units; one character decides χ for the whole text."""
    units = len(text) + sum(ch > "\uffff" for ch in text)
    chi = 1.6 if _CJK.search(text) else 2.5 if _MID.search(text) else 4.0
    return math.ceil(units / chi)


def sidecar_tokens(text: str) -> int:
    """max(⌊C(t) / 4⌋, 1) with C(t) the number of code points."""
    return max(len(text) // 4, 1)


def token_features(text: str) -> list[int]:
    """What the fitted rule counts, in the order of its coefficients; characters beyond ASCII by their first byte."""
    data = text.encode()
    words = re.findall(rb"[A-Za-z\x80-\xff]+", data)
    letters = len(re.findall(rb"[A-Za-z]", data))
    digits = len(re.findall(rb"[0-9]", data))
    printing = len(re.findall(rb"[!-~]", data))
    first_bytes = [rb"[\xc2-\xcd]", rb"[\xce-\xcf]", rb"[\xd0-\xd4]", rb"[\xd5-\xdf]", rb"[\xe3-\xed]",
                   rb"[\xe0-\xe2\xee-\xef]", rb"[\xf0-\xf4]"]  # fmt: skip
    beyond = [len(re.findall(pattern, data)) for pattern in first_bytes]
    return [letters, len(words), printing - letters - digits, digits, *beyond]


def fitted_tokens(text: str, coefficients: Sequence[float]) -> int:
    """A linear function of the features, rounded; at least 1 for text, 0 for empty text."""
    if not text:
        return 0
    total = 0.0
    for coefficient, count in zip(coefficients, token_features(text), strict=True):
        total += coefficient * count
    return max(1, math.floor(total + 0.5))
