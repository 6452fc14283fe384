"""How many tokens texts are likely to cost."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from hsca_fast._native import ranking as _native
from hsca_fast._native.inputs import Texts, string_columns, thread_count
from hsca_fast._native.strings import text_lengths

TokenKind = Literal["host", "sidecar", "fitted"]


@overload
def estimate_tokens(  # type: ignore[overload-overlap]  # a str is a sequence of str, too
    text_or_texts: str, *, kind: TokenKind = "host", threads: int = 1
) -> int: ...
@overload
def estimate_tokens(text_or_texts: Texts, *, kind: TokenKind = "host", threads: int = 1) -> npt.NDArray[np.int32]: ...
def estimate_tokens(text_or_texts: Texts | str, *, kind: TokenKind = "host", threads: int = 1) -> Any:
    """Token estimate of a text, or of each of many, from its characters alone.

    Parameters
    ----------
    text_or_texts
        A str, or a sequence, numpy array or Arrow column of them. A null row costs what empty text costs.
    kind
        ``"host"``: ⌈UTF-16 units / χ⌉, χ = 1.6 for text with any CJK character, 2.5 with any Cyrillic, Arabic or Hebrew, 4
        otherwise. ``"sidecar"``: max(⌊characters / 4⌋, 1). ``"fitted"``: a linear function of letters, words,
        punctuation, digits and characters by script, fitted to a real tokenizer (docs/ranking.md says how far each is off); blanks cost nothing.
        The kinds are not to be mixed within one budget.
    threads
        Worker threads; 0 takes every usable CPU.

    Returns
    -------
    int or numpy.ndarray
        int for a str, int32 for many.

    Examples
    --------
    >>> estimate_tokens("Hello, world!"), estimate_tokens(["漢字", ""], kind="host").tolist()
    (4, [2, 0])
    """
    if kind not in ("host", "sidecar", "fitted"):
        raise ValueError(f"kind must be 'host', 'sidecar' or 'fitted', not {kind!r}")
    n_threads = thread_count(threads)
    if isinstance(text_or_texts, str):
        return int(estimate_tokens([text_or_texts], kind=kind)[0])
    if kind == "sidecar" and (type(text_or_texts) is list or type(text_or_texts) is tuple):
        return _sidecar_tokens(text_or_texts)
    n, columns = string_columns(text_or_texts)
    tokens = np.empty(n, np.int32)
    for start, column in columns:
        _native.estimate_tokens(column, kind, n_threads, tokens[start : start + len(column)])
    return tokens


def _sidecar_tokens(texts: list[str] | tuple[str, ...]) -> npt.NDArray[np.int32]:
    """The rule needs no more than the lengths, which Python strings know: the characters are not read."""
    lengths = np.empty(len(texts), np.int64)
    text_lengths(texts, lengths)
    lengths >>= 2
    return lengths.clip(1, np.iinfo(np.int32).max, out=lengths).astype(np.int32)
