"""Extractive compression: of each chunk the sentences that answer the question, exactly as they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hsca_fast._native.ranking import log_counts
from hsca_fast.ranking import extract_keywords, fit_budget, keyword_coverage
from hsca_fast.ranking.columns import number
from hsca_fast.ranking.costs import CountTokens, token_costs
from hsca_fast.retrieval.compress import ChunkResult
from hsca_fast.text.segmentation import segment
from hsca_fast.vectors.arrays import as_count
from hsca_fast.vectors.embedder import Embedder, unit_rows

Scores = npt.NDArray[np.float64]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Extraction:
    """Sentences of one chunk.

    Attributes
    ----------
    result
        The whole chunk.
    spans
        (start, end) of each sentence in `result.content`, in the order of the text.
    scores
        What each was chosen by.
    n_tokens
        Cost of `text`.
    """

    result: ChunkResult
    spans: tuple[Span, ...]
    scores: tuple[float, ...]
    n_tokens: int

    @property
    def sentences(self) -> list[str]:
        """As they stand in the chunk."""
        return [self.result.content[start:end] for start, end in self.spans]

    @property
    def text(self) -> str:
        """The sentences, with a blank between them."""
        return " ".join(self.sentences)


def extract_sentences(
    query: str,
    results: Sequence[ChunkResult],
    *,
    max_tokens: int,
    embedder: Embedder | None = None,
    weights: tuple[float, float, float] = (0.5, 0.4, 0.1),
    count_tokens: CountTokens | None = None,
) -> list[Extraction]:
    """The sentences of each chunk that say most about the query, within a budget; nothing is rewritten or cut.

    A sentence scores w₁·cosine to the query + w₂·share of the query's terms that it holds, rare ones counting more +
    w₃ / (1 + its place in the chunk). Each chunk has an equal share of what is left of the budget when its turn comes, so the best
    chunks come first and nothing is wasted on short ones. Ties go to the earlier sentence.

    Parameters
    ----------
    query
        What is asked.
    results
        Best first. A chunk of which no sentence fits is left out.
    max_tokens
        The texts of all extractions together never cost more.
    embedder
        Without one the first term is 0, and words alone decide.
    weights
        w₁, w₂, w₃, each at least 0.
    count_tokens
        Cost of a text; the default is `estimate_tokens`.

    Examples
    --------
    >>> chunk = ChunkResult("1", "d", 0.9, "", "", "Fog came. The keeper lit the lamp. Gulls slept. It rained for days.")
    >>> extract_sentences("who lit the lamp?", [chunk], max_tokens=8)[0].text
    'The keeper lit the lamp.'
    """
    max_tokens = as_count(max_tokens, "max_tokens")
    w_cosine, w_terms, w_place = (number(f"weights[{i}]", w, 0.0) for i, w in enumerate(weights))
    spans = [segment(result.content).sentences.tolist() for result in results]
    texts = [result.content[a:b] for result, found in zip(results, spans, strict=True) for a, b in found]
    if not texts:
        return []
    places = np.concatenate([np.arange(len(found), dtype=np.float64) for found in spans])
    scores = w_terms * _term_shares(query, texts) + w_place / (1.0 + places)
    if embedder is not None and w_cosine > 0.0:
        scores += w_cosine * _cosines(query, texts, embedder)
    # The blank after a sentence is part of its cost, so that the joined text never costs more than the sentences.
    costs = np.array(token_costs([text + " " for text in texts], count_tokens, "sentence"), np.int64)

    extractions: list[Extraction] = []
    left = max_tokens
    bounds = pairwise(np.cumsum([0, *map(len, spans)]).tolist())
    for i, (first, last) in enumerate(bounds):
        share = left // (len(results) - i)
        chosen = np.sort(fit_budget(costs[first:last], share, scores=scores[first:last], policy="first_fit")).tolist()
        while chosen:
            extraction = _extraction(results[i], spans[i], scores[first:last], chosen, count_tokens)
            if extraction.n_tokens <= share:
                extractions.append(extraction)
                left -= extraction.n_tokens
                break
            # A counter of the caller's may charge more for the whole than for its parts.
            chosen.remove(min(chosen, key=lambda row, first=first: (scores[first + row], -row)))  # type: ignore[misc]
    return extractions


def _extraction(
    result: ChunkResult, spans: list[list[int]], scores: Scores, chosen: list[int], count_tokens: CountTokens | None
) -> Extraction:
    picked = tuple((spans[row][0], spans[row][1]) for row in chosen)
    text = " ".join(result.content[start:end] for start, end in picked)
    (cost,) = token_costs([text], count_tokens, "text")
    return Extraction(result, picked, tuple(scores[chosen].tolist()), cost)


def _term_shares(query: str, texts: list[str]) -> Scores:
    """Σ idf of the query's terms in each text / Σ idf of all of them, idf = ln(1 + n / df)."""
    held = np.array([keyword_coverage([term], texts) for term in extract_keywords(query)])
    in_texts = held.sum(axis=1) if len(held) else np.empty(0)
    held = held[in_texts > 0]
    if not len(held):
        return np.zeros(len(texts))
    idf = log_counts(len(texts) / in_texts[in_texts > 0])
    shares: Scores = (idf[:, None] * held).sum(axis=0) / idf.sum()
    return shares


def _cosines(query: str, texts: list[str], embedder: Embedder) -> Scores:
    asked = unit_rows(embedder.embed_query(query)[None]).astype(np.float64)[0]
    rows = unit_rows(embedder.embed_documents(texts)).astype(np.float64)
    cosines: Scores = np.maximum((rows * asked).sum(axis=1), 0.0)
    return cosines
