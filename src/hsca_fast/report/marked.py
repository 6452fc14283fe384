"""A text with the words that caused its flags marked."""

from __future__ import annotations

import html
import warnings
from collections.abc import Iterator, Sequence

from hsca_fast.report.page import Markup
from hsca_fast.text.explanation import Mark, TextExplanation, explain_text
from hsca_fast.text.supervisor import ModelWarning

Piece = tuple[str] | tuple[str, str] | tuple[str, str, str]  # text; class of the mark; label


def explained(text: str) -> TextExplanation:
    """`explain_text` without its warnings: a page shows what there is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return explain_text(text)


def pieces(text: str, marks: Sequence[Mark], most: int) -> Iterator[Piece]:
    """The first `most` characters of the text in pieces, marked or not."""
    done, end = 0, min(most, len(text))
    for mark in marks:
        if mark.end > end:
            break
        if mark.start > done:
            yield (text[done : mark.start],)
        kind = "cue" if mark.categories else "up" if mark.valence > 0 else "down"
        shown = text[mark.start : mark.end]
        yield (shown, kind, ", ".join(mark.categories)) if mark.categories else (shown, kind)
        done = mark.end
    if end > done:
        yield (text[done:end] + ("…" if end < len(text) else ""),)


def as_markup(found: TextExplanation, most: int) -> Markup:
    """The same as HTML."""
    parts = []
    for text, *mark in pieces(found.text, found.marks(), most):
        inner = html.escape(text)
        if mark:
            label = f"<sub>{html.escape(mark[1])}</sub>" if len(mark) > 1 else ""
            inner = f'<mark class="{mark[0]}">{inner}{label}</mark>'
        parts.append(inner)
    return Markup(f"<p class=text>{''.join(parts)}</p>")


def short(text: str, most: int) -> str:
    """The text on one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
