"""Keywords of a query, and how many of them a text holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from hsca_fast._native import ranking as _native
from hsca_fast._native.inputs import Texts, string_columns, thread_count
from hsca_fast._native.strings import StringColumn, encode
from hsca_fast.ranking.columns import count

TermKind = Literal["unicode", "ascii"]


def extract_keywords(text: str, *, kind: TermKind = "unicode", min_length: int = 3) -> list[str]:
    """The terms of a query, each once, in order of first occurrence.

    Parameters
    ----------
    text
        The query.
    kind
        ``"unicode"``: case-folded runs of letters, digits, marks and ``_``; scripts written without spaces give every pair of
        neighbours. ``"ascii"``: lower-cased runs of a-z, 0-9 and ``_``, as in the recorded vectors.
    min_length
        Shorter terms are left out, pairs of unspaced scripts apart; in characters, at least 1.

    Examples
    --------
    >>> extract_keywords("What is max_tokens in São Paulo? What?")
    ['what', 'max_tokens', 'são', 'paulo']
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be str, not {type(text).__name__}")
    encoded, _ = encode(text)
    return _native.extract_keywords(encoded, _checked(kind), count("min_length", min_length))


def keyword_coverage(
    keywords: Sequence[str], texts: Texts, *, kind: TermKind = "unicode", threads: int = 1
) -> npt.NDArray[np.float64]:
    """``M = |K ∩ terms(d)| / max(|K|, 1)`` of each text, in [0, 1].

    Parameters
    ----------
    keywords
        As `extract_keywords` gives them; case-folded here, repeated ones count once. None at all cover nothing: 0.
    texts
        A sequence, numpy array or Arrow column of str. A null row holds no terms.
    kind
        How terms are found; the one that found the keywords.
    threads
        Worker threads; 0 takes every usable CPU.

    Examples
    --------
    >>> keyword_coverage(["budget", "token"], ["A token budget.", "Tokens!", ""]).tolist()
    [1.0, 0.0, 0.0]
    """
    if isinstance(keywords, str):
        raise TypeError("keywords must be a sequence of str, not str")
    wanted = tuple(keywords)
    for row, keyword in enumerate(wanted):
        if not isinstance(keyword, str):
            raise TypeError(f"keywords[{row}] must be str, not {type(keyword).__name__}")
    _checked(kind)
    n_threads = thread_count(threads)
    known = StringColumn.from_sequence(wanted, 0, 1 << 62)
    n, columns = string_columns(texts)
    coverage = np.empty(n, np.float64)
    for start, column in columns:
        _native.keyword_coverage(known, column, kind, n_threads, coverage[start : start + len(column)])
    return coverage


def _checked(kind: str) -> str:
    if kind not in ("unicode", "ascii"):
        raise ValueError(f"kind must be 'unicode' or 'ascii', not {kind!r}")
    return kind
