"""The page of a corpus: how its scores are spread, what it is about, its best, its worst and its suspects."""

from __future__ import annotations

import heapq
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hsca_fast.report.figures import score_histograms, tag_bars
from hsca_fast.report.marked import as_markup, explained, short
from hsca_fast.report.page import Markup, Page
from hsca_fast.text.scoring import ScoreBatch
from hsca_fast.types import DomainTag, NuanceFlag

_BINS = 50
_SHOWN = 10
_MOST_CHARACTERS = 3_000
_PREVIEW = 72
# Text that reads well and is about nothing: whole sentences, no mesh (docs/quality.md: nine of ten adversaries are below).
_SUSPECT_LAYER1 = 0.35
_SUSPECT_COHERENCE = 0.5
_RANGES = {"layer1_score": 0.0, "coherence_score": 0.0, "sentiment_score": -1.0}


@dataclass(slots=True)
class _Best:
    """The texts with the greatest keys; of equal ones the first."""

    key: Callable[[ScoreBatch, npt.NDArray[np.intp]], npt.NDArray[np.float64]]
    heap: list[tuple[float, int, str, str]] = field(default_factory=list)

    def add(self, batch: ScoreBatch, rows: npt.NDArray[np.intp], first: int, sources: Sequence[str]) -> None:
        keys = self.key(batch, rows)
        for at in np.argsort(-keys, kind="stable")[:_SHOWN]:
            row = int(rows[at])
            item = (float(keys[at]), -(first + row), sources[row], str(batch.texts[row]))
            if len(self.heap) < _SHOWN:
                heapq.heappush(self.heap, item)
            else:
                heapq.heappushpop(self.heap, item)

    def items(self) -> list[tuple[str, str]]:
        return [(source, text) for _, _, source, text in sorted(self.heap, reverse=True)]


class CorpusSummary:
    """What a page needs to know of a corpus, gathered batch by batch in bounded memory.

    Examples
    --------
    >>> from hsca_fast import score_texts
    >>> summary = CorpusSummary()
    >>> summary.add(score_texts(["It rained. It poured. It snowed."]), ["a.txt"])
    >>> summary.n_texts
    1
    """

    def __init__(self) -> None:
        self.n_texts = self.n_null = self.n_short = self.n_suspect = 0
        self._counts = {name: np.zeros(_BINS, np.int64) for name in _RANGES}
        self._domains = np.zeros(len(DomainTag), np.int64)
        self._flags = np.zeros(len(NuanceFlag), np.int64)
        self._assessed: frozenset[NuanceFlag] | None = None
        self._best = _Best(lambda batch, rows: batch.layer1_score[rows])
        self._worst = _Best(lambda batch, rows: -batch.layer1_score[rows])
        self._suspects = _Best(lambda batch, rows: batch.coherence_score[rows] - batch.layer1_score[rows])

    def add(self, batch: ScoreBatch, sources: Sequence[str]) -> None:
        """Takes in a batch; `sources` names its texts."""
        if len(sources) != len(batch):
            raise ValueError(f"sources has {len(sources)} names for {len(batch)} texts")
        judged = np.flatnonzero(batch.valid & ~batch.short_chunk)
        for name, low in _RANGES.items():
            values = getattr(batch, name)[judged if name == "layer1_score" else batch.valid]
            self._counts[name] += np.histogram(values, _BINS, (low, 1.0))[0]
        self._domains += _bit_counts(batch.domain_bits[batch.valid], len(DomainTag))
        self._flags += _bit_counts(batch.nuance_bits[batch.valid], len(NuanceFlag))
        self._assessed = batch.assessed if self._assessed is None else self._assessed & batch.assessed
        suspects = judged[
            (batch.layer1_score[judged] <= _SUSPECT_LAYER1) & (batch.coherence_score[judged] >= _SUSPECT_COHERENCE)
        ]
        self._best.add(batch, judged, self.n_texts, sources)
        self._worst.add(batch, judged, self.n_texts, sources)
        self._suspects.add(batch, suspects, self.n_texts, sources)
        self.n_suspect += len(suspects)
        self.n_texts += len(batch)
        self.n_null += int(np.count_nonzero(~batch.valid))
        self.n_short += int(np.count_nonzero(batch.short_chunk & batch.valid))

    def page(self, *, title: str = "Corpus") -> Page:
        """The page."""
        page = Page(title, subtitle=f"{self.n_texts:,} texts")
        page.facts(
            {"texts": self.n_texts, "too short to judge": self.n_short, "null": self.n_null, "suspects": self.n_suspect}
        )
        if self.n_texts == self.n_null:
            page.section("Nothing to show", "There is no text in it.")
            return page
        page.section("Scores", "Layer 1 of texts with three sentences or more; coherence and sentiment of all.")
        page.figure(score_histograms(self._counts), label="Histograms of the three scores")
        page.section("Domains", "A text may have several tags.")
        domains = {tag.value: int(n) for tag, n in zip(DomainTag, self._domains, strict=True)}
        page.figure(tag_bars(domains, "texts"), label="Texts of each domain")
        assessed = self._assessed or frozenset()
        unknown = ", ".join(flag.value for flag in NuanceFlag if flag not in assessed)
        page.section("Nuance", f"Not assessed, so unknown: {unknown or 'none'}.")
        flags = {flag.value: int(n) for flag, n in zip(NuanceFlag, self._flags, strict=True) if flag in assessed}
        page.figure(tag_bars(flags, "texts"), label="Texts with each nuance flag")
        for heading, note, best in (
            (
                "Suspects",
                "They read well and hang together badly: stuffed or shuffled text looks like this.",
                self._suspects,
            ),
            ("Worst", "The lowest relational weight.", self._worst),
            ("Best", "The highest relational weight.", self._best),
        ):
            page.section(heading, note)
            for source, text in best.items():
                page.add(_evidence(source, text))
        return page


def _bit_counts(bits: npt.NDArray[np.unsignedinteger], n: int) -> npt.NDArray[np.int64]:
    return np.array([int(np.count_nonzero(bits >> i & 1)) for i in range(n)], np.int64)


def _evidence(source: str, text: str) -> Markup:
    found = explained(text)
    parts = {
        "coherence": {
            name: getattr(found.coherence, name) for name in ("length", "punctuation", "clauses", "known", "order")
        },
        "relational": {}
        if not found.relational
        else {name: getattr(found.relational[0], name) for name in ("strength", "breadth", "clustering", "carriage")},
    }
    lines = [
        html.escape(f"{layer}: " + ", ".join(f"{name} {value:.2f}" for name, value in values.items()))
        for layer, values in parts.items()
        if values
    ]
    tags = "".join(f"<span class=tag>{html.escape(tag)}</span>" for tag in found.domain_tags + found.nuance_flags)
    scores = f"Layer 1 {found.layer1_score:.3f}, coherence {found.coherence_score:.3f}"
    return Markup(
        f"<details><summary>{scores} · <q dir=auto>{html.escape(short(text, _PREVIEW))}</q> · {html.escape(source)}</summary>"
        f"<div>{tags}<p class=note>{'<br>'.join(lines)}</p>"
        f"{as_markup(found, _MOST_CHARACTERS)}</div></details>"
    )
