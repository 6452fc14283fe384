"""The content words of a text, as queries and claims are matched by them."""

from __future__ import annotations

import re
from functools import cache

from hsca_fast._native import text as _native

_APOSTROPHE = "\u2019"
_WORD = re.compile(rf"[^\W_]+(?:['{_APOSTROPHE}-][^\W_]+)*")


@cache
def _function_words() -> frozenset[str]:
    return frozenset(_native.function_words())


def content_words(text: str) -> list[str]:
    """Distinct words, case folded, in order of first appearance; function words only if there is nothing else.

    Examples
    --------
    >>> content_words("The keeper lit the lamp."), content_words("To be")
    (['keeper', 'lit', 'lamp'], ['to', 'be'])
    """
    words = dict.fromkeys(word.replace(_APOSTROPHE, "'") for word in _WORD.findall(text.casefold()))
    functional = _function_words()
    return [word for word in words if word not in functional] or list(words)


def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Finds the words of `phrase` one after the other, as whole words, in any case."""
    words = _WORD.findall(phrase)
    if not words:
        raise ValueError(f"concept must hold a word, not {phrase!r}")
    return re.compile(r"(?<![^\W_])" + r"[\W_]+".join(map(re.escape, words)) + r"(?![^\W_])", re.IGNORECASE)
