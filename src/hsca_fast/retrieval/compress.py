"""Fewer tokens for the same content: what is not relevant goes, of what repeats itself the best stays, nothing is rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from hsca_fast.ranking import fit_budget
from hsca_fast.ranking.costs import CountTokens, token_costs
from hsca_fast.retrieval.calibration import ScoreCalibration
from hsca_fast.vectors.arrays import as_count, as_number
from hsca_fast.vectors.dedup import deduplicate


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """A chunk that a search found.

    Parameters
    ----------
    chunk_id, doc_id
        Of the chunk, and of the document it is a part of.
    score
        Relevance; between 0 and 1 unless `compress` is told how to calibrate it.
    header_path
        The headings above it, as "Components > IndexManager".
    file_path
        Where it comes from.
    content
        Its full text.

    Examples
    --------
    >>> ChunkResult("a1", "a", 0.9, "Guide > Lamps", "guide.md", "Lamps burn oil.").score
    0.9
    """

    chunk_id: str
    doc_id: str
    score: float
    header_path: str
    file_path: str
    content: str


@dataclass(frozen=True, slots=True)
class CompressionStats:
    """What a compression did.

    Attributes
    ----------
    original_count, after_threshold, after_dedup
        Results before, those that reach `min_score`, and those left when of each cluster one stays.
    clusters_merged
        Clusters of two or more results that became one.
    removed
        Results that another of their cluster stands for.
    returned
        Results in the end, after `top_n` and `max_tokens`.
    tokens_before, tokens_after
        Cost of the content of all results, and of those returned.
    truncated
        A result was left out only because `max_tokens` was spent.
    """

    original_count: int
    after_threshold: int
    after_dedup: int
    clusters_merged: int
    removed: int
    returned: int
    tokens_before: int
    tokens_after: int
    truncated: bool = False

    def to_dict(self) -> dict[str, int | bool]:
        """Plain values for JSON."""
        return asdict(self)


def compress(
    results: Sequence[ChunkResult],
    embeddings: npt.ArrayLike,
    *,
    min_score: float = 0.3,
    similarity_threshold: float = 0.85,
    top_n: int = 5,
    calibration: ScoreCalibration | None = None,
    max_tokens: int | None = None,
    count_tokens: CountTokens | None = None,
) -> tuple[list[ChunkResult], CompressionStats]:
    """The relevant results that do not repeat each other, best first, as they were.

    Parameters
    ----------
    results
        What a search found, in any order.
    embeddings
        One row a result. A row of zeros repeats nothing, so a result without an embedding is kept.
    min_score
        Results below are left out, in [0, 1].
    similarity_threshold
        Results connected by cosines of at least this are a cluster, in [0.5, 1].
    top_n
        At most this many are returned.
    calibration
        Makes chances of relevance of raw scores, before anything else; the results returned carry them.
    max_tokens
        Hard limit on the cost of all that is returned; the first result that does not fit ends the list. None for none.
    count_tokens
        Cost of a text; the default is `estimate_tokens`.

    Returns
    -------
    list of ChunkResult, CompressionStats
        Ties in score go to the result given first.

    Examples
    --------
    >>> found = [ChunkResult(str(i), "d", s, "", "", "Lamps burn oil.") for i, s in enumerate([0.9, 0.8, 0.1])]
    >>> kept, stats = compress(found, [[1.0, 0.0], [0.99, 0.1], [0.0, 1.0]])
    >>> [each.chunk_id for each in kept], stats.after_threshold, stats.removed
    (['0'], 2, 1)
    """
    min_score = as_number(min_score, "min_score", low=0.0, high=1.0)
    similarity_threshold = as_number(similarity_threshold, "similarity_threshold", low=0.5, high=1.0)
    top_n = as_count(top_n, "top_n")
    if max_tokens is not None:
        max_tokens = as_count(max_tokens, "max_tokens")
    rows = np.asarray(embeddings)
    if len(rows) != len(results):
        raise ValueError(f"embeddings has {len(rows)} rows for {len(results)} results")
    if not len(results):
        return [], CompressionStats(0, 0, 0, 0, 0, 0, 0, 0)
    scores = result_scores(results, calibration)
    passed = np.flatnonzero(scores >= min_score)
    unique = deduplicate(rows[passed], scores[passed], threshold=similarity_threshold)
    best = passed[unique.keep[:top_n]]
    costs = np.array(token_costs([result.content for result in results], count_tokens, "result"), np.int64)
    fitting = best if max_tokens is None else best[fit_budget(costs[best], max_tokens)]
    kept = [
        results[row] if calibration is None else replace(results[row], score=float(scores[row]))
        for row in fitting.tolist()
    ]
    return kept, CompressionStats(
        original_count=len(results),
        after_threshold=len(passed),
        after_dedup=len(unique.keep),
        clusters_merged=unique.clusters_merged,
        removed=unique.removed,
        returned=len(kept),
        tokens_before=int(costs.sum()),
        tokens_after=int(costs[fitting].sum()),
        truncated=len(fitting) < len(best),
    )


def result_scores(
    results: Sequence[ChunkResult], calibration: ScoreCalibration | None = None
) -> npt.NDArray[np.float64]:
    """Scores of results, each a number between 0 and 1; with a calibration they may be any before it."""
    for row, result in enumerate(results):
        if not isinstance(result, ChunkResult):
            raise TypeError(f"results[{row}] must be a ChunkResult, not {type(result).__name__}")
        if isinstance(result.score, bool) or not isinstance(result.score, (int, float, np.number)):
            raise TypeError(f"results[{row}].score must be a number, not {type(result.score).__name__}")
        if not np.isfinite(result.score):
            raise ValueError(f"results[{row}].score must be finite, not {result.score}")
        if calibration is None and not 0.0 <= result.score <= 1.0:
            raise ValueError(f"results[{row}].score must be between 0 and 1, not {result.score}: pass a calibration")
    raw = np.array([result.score for result in results], np.float64)
    return raw if calibration is None else calibration(raw)
