"""Domains of a text that is about several things, one after the other."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from hsca_fast._native.inputs import string_columns
from hsca_fast._native.text import domain_sums
from hsca_fast.config import ScoringConfig
from hsca_fast.text.kernel import linear_model, native_scorer
from hsca_fast.text.scoring import score_texts
from hsca_fast.types import DomainTag

MIN_CHARACTERS = 100
_BLANK_LINES = re.compile(r"\n\s*\n")
_CONTENT = frozenset(tag.value for tag in DomainTag if tag not in (DomainTag.CROSS_DOMAIN, DomainTag.UNCLASSIFIED))


def paragraph_domains(texts: list[str]) -> list[list[str]]:
    """The domains of each text's parts, taken together; a `domain_model` for `ScoringConfig`.

    The trained model looks for what a whole text is about, and names one of two topics that share it, or none. This one cuts the
    text between paragraphs, where the parts have more evidence for their domains than the whole (docs/context.md), and asks the model
    about each part of at least 100 characters, so that a turn over two topics has both domains and `cross_domain`.

    Examples
    --------
    >>> from hsca_fast import ScoringConfig, score_text
    >>> chunk = score_text("One, two.", config=ScoringConfig(domain_model=paragraph_domains))
    >>> chunk.domain_tags
    ['unclassified']
    """
    if not texts:
        return []
    paragraphs = [[(m.start(), m.end()) for m in _BLANK_LINES.finditer(text)] for text in texts]
    pieces = [_between(text, gaps) for text, gaps in zip(texts, paragraphs, strict=True)]
    sums, words = _evidence([piece for own in pieces for piece in own])
    parts, first = [], 0
    for text, gaps, own in zip(texts, paragraphs, pieces, strict=True):
        rows = slice(first, first + len(own))
        cuts = best_cuts(sums[rows], words[rows], np.array([len(piece) for piece in own]))
        parts.append(_between(text, [gaps[cut - 1] for cut in cuts]))
        first += len(own)
    batch = score_texts([part for own in parts for part in own])
    found, at = [], 0
    for own in parts:
        tags = {tag for i in range(at, at + len(own)) for tag in batch.domain_tags(i)}
        found.append(sorted(tags & _CONTENT))
        at += len(own)
    return found


def best_cuts(sums: npt.NDArray[np.float64], words: npt.NDArray[np.int32], sizes: npt.NDArray[np.int64]) -> list[int]:
    """The numbers of the paragraphs that open a new part, given each one's evidence, words and characters.

    A part of n words is worth n · Σ_t max(0, m_t + e_t): by how much its evidence e_t passes what tag t takes. A text is cut
    where its two parts are worth most, if that is more than it is worth whole, and the parts are cut on in the same way.
    """
    margins, half_length = linear_model().margins, linear_model().half_length
    evidence = np.vstack([np.zeros(sums.shape[1]), np.cumsum(sums, axis=0)])
    counts, length = np.concatenate([[0], np.cumsum(words)]), np.concatenate([[0], np.cumsum(sizes)])

    def worth(begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        n = counts[end] - counts[begin]
        excess = margins + (evidence[end] - evidence[begin]) / (n + half_length)[:, None]
        return np.asarray(n * np.maximum(0.0, excess).sum(axis=1))

    cuts: list[int] = []
    open_parts = [(0, len(sums))]
    while open_parts:
        begin, end = open_parts.pop()
        places = np.arange(begin + 1, end)
        places = places[
            (length[places] - length[begin] >= MIN_CHARACTERS) & (length[end] - length[places] >= MIN_CHARACTERS)
        ]
        if len(places) == 0:
            continue
        apart = worth(np.full(len(places), begin), places) + worth(places, np.full(len(places), end))
        best = int(np.argmax(apart))
        if apart[best] > worth(np.array([begin]), np.array([end]))[0]:
            cut = int(places[best])
            cuts.append(cut)
            open_parts += [(begin, cut), (cut, end)]
    return sorted(cuts)


def _evidence(texts: list[str]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    scorer = native_scorer(ScoringConfig())
    found = [domain_sums(scorer, column) for _, column in string_columns(texts)[1]]
    return np.concatenate([s for s, _ in found]), np.concatenate([n for _, n in found])


def _between(text: str, gaps: list[tuple[int, int]]) -> list[str]:
    """What lies between the gaps."""
    begins, ends = [0, *(end for _, end in gaps)], [*(begin for begin, _ in gaps), len(text)]
    return [text[a:b] for a, b in zip(begins, ends, strict=True)]
