"""Domains of a text that is about several things, one after the other."""

from __future__ import annotations

import re

from hsca_fast.text.scoring import score_texts
from hsca_fast.types import DomainTag

MIN_CHARACTERS = 180
_CONTENT = frozenset(tag.value for tag in DomainTag if tag not in (DomainTag.CROSS_DOMAIN, DomainTag.UNCLASSIFIED))


def paragraph_domains(texts: list[str]) -> list[list[str]]:
    """The domains of each text's paragraphs, taken together; a `domain_model` for `ScoringConfig`.

    The trained model looks for what a whole text is about, and names one of two topics that share it. This one asks it about
    runs of paragraphs of at least 180 characters, so that a turn over two topics has both domains and `cross_domain`.

    Examples
    --------
    >>> from hsca_fast import ScoringConfig, score_text
    >>> chunk = score_text("One, two.", config=ScoringConfig(domain_model=paragraph_domains))
    >>> chunk.domain_tags
    ['unclassified']
    """
    runs = [_runs(text) for text in texts]
    batch = score_texts([run for own in runs for run in own])
    found, at = [], 0
    for own in runs:
        tags = {tag for i in range(at, at + len(own)) for tag in batch.domain_tags(i)}
        found.append(sorted(tags & _CONTENT))
        at += len(own)
    return found


def _runs(text: str) -> list[str]:
    runs: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        if runs and len(runs[-1]) < MIN_CHARACTERS:
            runs[-1] += "\n\n" + paragraph
        else:
            runs.append(paragraph)
    if len(runs) > 1 and len(runs[-1]) < MIN_CHARACTERS:
        rest = runs.pop()
        runs[-1] += "\n\n" + rest
    return runs
