"""Terms, keywords and coverage (section 7.5)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hsca_fast._reference.segmentation import char_class


def terms(text: str, *, kind: str) -> list[tuple[str, bool]]:
    """The terms of a text in order, each with whether it is a pair (or lone character) of an unspaced script."""
    if kind == "ascii":
        return [(term, False) for term in re.findall("[a-z0-9_]+", text.lower())]
    found: list[tuple[str, bool]] = []
    term = ""
    run = ""
    for ch in [*text, "\n"]:
        word = char_class(ch)
        if run and word != "unspaced":
            found += [(run[i : i + 2].casefold(), True) for i in range(max(1, len(run) - 1))]
            run = ""
        if word in ("lower", "letter", "digit") or ch == "_" or (word == "mark" and term):
            term += "" if ch == "\u00ad" else ch.casefold()
            continue
        if term:
            found.append((term, False))
        term = ""
        if word == "unspaced":
            run += ch
    return found


def extract_keywords(text: str, *, kind: str = "unicode", min_length: int = 3) -> list[str]:
    """Unique terms of at least `min_length` characters in order of first occurrence; unspaced pairs always."""
    kept = [term for term, is_unspaced in terms(text, kind=kind) if is_unspaced or len(term) >= min_length]
    return list(dict.fromkeys(kept))


def keyword_coverage(keywords: Sequence[str], text: str, *, kind: str = "unicode") -> float:
    """M = |K ∩ terms(d)| / max(|K|, 1)."""
    wanted = {keyword.replace("\u00ad", "").casefold() for keyword in keywords}
    return len(wanted & {term for term, _ in terms(text, kind=kind)}) / max(len(wanted), 1)
