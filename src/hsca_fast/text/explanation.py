"""Every score of one text with what caused it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import text as _native
from hsca_fast._native.strings import encode
from hsca_fast.config import ScoringConfig
from hsca_fast.text.kernel import all_cues, native_scorer
from hsca_fast.text.lexicon import DOMAIN_PREFIX
from hsca_fast.text.models import DomainModel
from hsca_fast.text.relational import BlockFactors
from hsca_fast.text.scoring import score_silently
from hsca_fast.text.segmentation import characters_before
from hsca_fast.text.supervisor import warn_of
from hsca_fast.types import DomainTag, NuanceFlag

_DEFAULTS = ScoringConfig()


@dataclass(frozen=True, slots=True)
class CueSpan:
    """A cue where it counted: characters [start, end) of the text."""

    category: str
    start: int
    end: int
    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class CategoryTotal:
    """A category over the whole text: cues found, their weight, and sentences that reach the threshold."""

    n_cues: int
    weight: float
    n_sentences: int


@dataclass(frozen=True, slots=True)
class SentimentSpan:
    """A word that bears on the sentiment, and its part of its sentence's sum."""

    start: int
    end: int
    text: str
    valence: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of text to show: the cues that count there, or a word with a valence."""

    start: int
    end: int
    categories: tuple[str, ...]
    valence: float


@dataclass(frozen=True, slots=True)
class Coherence:
    """The parts of the coherence score, each in [0, 1] (docs/formulas.md)."""

    length: float
    pronouns: float
    punctuation: float
    clauses: float
    edges: float
    extent: float
    known: float
    letters: float
    order: float
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class TextExplanation:
    """Scores of one text and their causes; places are characters of `text`.

    Attributes
    ----------
    relational
        The factors of Layer 1, one entry for each stretch of up to 95 distinct sentences.
    domain_scores
        Probability of each domain by the linear model; with rules, the weight of the cues over the square root of the
        number of words; zeros where a user's model decides.
    cues
        Every cue that counted, domain rules included, in text order.
    categories
        Totals of every category of cues, by name.
    sentences, sentence_scores, sentence_compounds
        Where the sentences are, their relational weight and their sentiment.
    """

    text: str
    layer1_score: float
    short_chunk: bool
    relational: list[BlockFactors]
    coherence: Coherence
    domain_tags: list[str]
    domain_scores: dict[str, float]
    nuance_flags: list[str]
    assessed: frozenset[NuanceFlag]
    cues: list[CueSpan]
    categories: dict[str, CategoryTotal]
    sentiment_score: float
    sentiment: list[SentimentSpan]
    sentences: npt.NDArray[np.int64]
    sentence_scores: npt.NDArray[np.float64]
    sentence_compounds: npt.NDArray[np.float64]
    n_words: int
    warnings: tuple[str, ...]

    @property
    def coherence_score(self) -> float:
        """What the parts of `coherence` come to."""
        return self.coherence.score

    def flag_spans(self, flag: str) -> list[CueSpan]:
        """The cues that count for a nuance flag or another category."""
        return [cue for cue in self.cues if cue.category == flag]

    def marks(self) -> list[Mark]:
        """Nuance cues and words of feeling in text order; of those that overlap, the first."""
        return _marks(
            (
                (cue.start, cue.end, cue.category)
                for cue in self.cues
                if cue.weight and not is_domain_rule(cue.category)
            ),
            ((word.start, word.end, word.valence) for word in self.sentiment),
        )


def explain_text(text: str, *, config: ScoringConfig | None = None) -> TextExplanation:
    """Score one text and say why: every sub-score, and every cue with its place.

    Examples
    --------
    >>> explanation = explain_text("It may rain. Perhaps not.")
    >>> [(cue.category, cue.text) for cue in explanation.flag_spans("hedged")]
    [('hedged', 'may'), ('hedged', 'Perhaps')]
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be str, not {type(text).__name__}")
    config = ScoringConfig() if config is None else config
    batch = score_silently([text], config)
    warn_of(batch.failures)
    encoded, _ = encode(text)
    detail = _native.text_detail(native_scorer(config, explains=True), encoded)
    _, sentences, _ = _native.segment(encoded)
    before = characters_before(encoded)
    if isinstance(config.domain_model, DomainModel):
        detail["domain_scores"] = [0.0] * len(detail["domain_scores"])
    names = [category.name for category in all_cues(tuple(config.lexicons), with_domain_rules=True).categories]

    def span(begin: int, end: int) -> dict[str, Any]:
        start, stop = int(before[begin]), int(before[end])
        return {"start": start, "end": stop, "text": text[start:stop]}

    return TextExplanation(
        text=text,
        layer1_score=detail["layer1_score"],
        short_chunk=detail["is_short"],
        relational=[BlockFactors(*block) for block in detail["blocks"]],
        coherence=Coherence(*detail["coherence"]),
        domain_tags=batch.domain_tags(0),
        domain_scores={tag.value: score for tag, score in zip(DomainTag, detail["domain_scores"], strict=False)},
        nuance_flags=batch.nuance_flags(0),
        assessed=batch.assessed,
        cues=[CueSpan(names[i], **span(begin, end), weight=weight / 1000) for i, begin, end, weight in detail["cues"]],
        categories={
            name: CategoryTotal(n_cues, weight / 1000, n_sentences)
            for name, (n_cues, weight, n_sentences) in zip(names, detail["categories"], strict=True)
        },
        sentiment_score=detail["sentiment"],
        sentiment=[SentimentSpan(**span(begin, end), valence=v) for begin, end, v in detail["sentiment_tokens"]],
        sentences=before[sentences],
        sentence_scores=detail["sentence_scores"],
        sentence_compounds=detail["sentence_compounds"],
        n_words=detail["n_words"],
        warnings=batch.warnings,
    )


def text_marks(text: str) -> list[Mark]:
    """What `explain_text(text).marks()` says, without the rest, which takes four times as long.

    Examples
    --------
    >>> [(mark.start, mark.categories) for mark in text_marks("It may rain.")]
    [(3, ('hedged',))]
    """
    encoded, _ = encode(text)
    detail = _native.text_detail(native_scorer(_DEFAULTS), encoded)
    if not (detail["cues"] or detail["sentiment_tokens"]):
        return []
    at = range(len(text) + 1) if len(encoded) == len(text) else characters_before(encoded).tolist()
    names = [category.name for category in all_cues((), with_domain_rules=False).categories]
    return _marks(
        ((at[begin], at[end], names[i]) for i, begin, end, weight in detail["cues"] if weight),
        ((at[begin], at[end], valence) for begin, end, valence in detail["sentiment_tokens"]),
    )


def _marks(cues: Iterable[tuple[int, int, str]], feelings: Iterable[tuple[int, int, float]]) -> list[Mark]:
    seen_by: dict[tuple[int, int], list[str]] = {}  # categories that see the same words
    for start, end, category in cues:
        seen_by.setdefault((start, end), []).append(category)
    found = [Mark(start, end, tuple(names), 0.0) for (start, end), names in seen_by.items()]
    found += [Mark(start, end, (), valence) for start, end, valence in feelings if valence]
    found.sort(key=lambda mark: (mark.start, mark.end, not mark.categories))
    kept: list[Mark] = []
    for mark in found:
        if not kept or mark.start >= kept[-1].end:
            kept.append(mark)
    return kept


def is_domain_rule(category: str) -> bool:
    """Whether a category is one of the keyword rules for domains."""
    return category.startswith(DOMAIN_PREFIX)
