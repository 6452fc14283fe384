"""What every front end's compressor does: threshold, de-duplication, MMR, budget, over the documents' arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import vectors as _native
from hsca_fast.adapters.embedders import TextEmbedder
from hsca_fast.ranking.budget import fit_budget
from hsca_fast.ranking.tokens import estimate_tokens
from hsca_fast.vectors.arrays import Float32, Int64, as_count, as_number, as_rows, refuse_infinite, stack_rows
from hsca_fast.vectors.dedup import deduplicate
from hsca_fast.vectors.mmr import mmr
from hsca_fast.vectors.prefix import prefix_tiers
from hsca_fast.vectors.static import default_embedder

if TYPE_CHECKING:
    from hsca_fast.memory.records import Hit

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """How documents are selected; None turns a step off.

    Attributes
    ----------
    min_score
        Least score to stay.
    similarity_threshold
        Cosine from which on documents are near-duplicates; the best of them stays (`deduplicate`).
    lambda_
        Weight of relevance against novelty (`mmr`). None: best score first.
    top_n
        At most so many.
    max_tokens
        The documents' tokens never add up to more; the first that does not fit ends the list (`fit_budget`).
    count_tokens
        What a text costs; `estimate_tokens` when not given.
    """

    min_score: float | None = 0.3
    similarity_threshold: float | None = 0.85
    lambda_: float | None = None
    top_n: int | None = 5
    max_tokens: int | None = None
    count_tokens: Callable[[str], int] | None = None

    def __post_init__(self) -> None:
        if self.min_score is not None:
            as_number(self.min_score, "min_score", low=-1e300, high=1e300)
        if self.similarity_threshold is not None:
            as_number(self.similarity_threshold, "similarity_threshold", low=1e-3, high=1.0)
        if self.lambda_ is not None:
            as_number(self.lambda_, "lambda_", low=0.0, high=1.0)
        if self.top_n is not None:
            as_count(self.top_n, "top_n", least=1)
        if self.max_tokens is not None:
            as_count(self.max_tokens, "max_tokens")


@dataclass(slots=True)
class Candidates:
    """Documents as columns; None where a document has no such thing.

    `what` is what messages call them.
    """

    what: str
    texts: Sequence[str | None]
    vectors: Sequence[Any]
    scores: Sequence[float | None]


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The rows that were selected, in order, and what became of the others.

    Attributes
    ----------
    rows, scores
        Rows of the candidates, and their scores.
    stats
        Counts after each step, as plain values.
    """

    rows: Int64
    scores: Floats
    stats: dict[str, int]
    _stands_for: list[int] = field(repr=False)
    _tokens: npt.NDArray[Any] | None = field(repr=False)

    def breakdowns(self) -> list[dict[str, Any]]:
        """For each selected row plain values: score, rank, rank before, near-duplicates it stands for, tokens."""
        return [
            {
                "score": score,
                "rank": rank,
                "rank_before": row,
                "duplicates": self._stands_for[rank] - 1,
                **({"tokens": int(self._tokens[rank])} if self._tokens is not None else {}),
            }
            for rank, (row, score) in enumerate(zip(self.rows.tolist(), self.scores.tolist(), strict=True))
        ]


def select(
    candidates: Candidates,
    options: SelectionOptions,
    *,
    query: str | None = None,
    query_vector: npt.ArrayLike | None = None,
    embedder: TextEmbedder | None = None,
) -> Selection:
    """Select documents by their own scores, or by their cosine to the query if they have none.

    Raises
    ------
    ValueError
        Documents are scored in part, vectors are missing or of different sizes, or the model of given vectors is not known and
        a text would have to be embedded.
    """
    n = len(candidates.texts)
    steps = {"original_count": n, "after_threshold": 0, "after_dedup": 0, "clusters_merged": 0, "after_top_n": 0}
    if n == 0:
        return Selection(np.empty(0, np.int64), np.empty(0), steps | {"after_budget": 0}, [], None)
    scored = _given_scores(candidates)
    vectors = np.empty((n, 0), np.float32)
    if needs_vectors(options, scored=scored is not None):
        if scored is None and query_vector is not None and embedder is None and _has_no_vector(candidates):
            raise ValueError(
                f"the query's embedding is given, but {candidates.what} have none: give the embedder that made it"
            )
        source = DocumentVectors(candidates, embedder)
        vectors = source.rows
    scores = scored if scored is not None else cosines(source.of_query(query, query_vector), vectors)

    rows = np.arange(n) if options.min_score is None else np.flatnonzero(scores >= options.min_score)
    steps["after_threshold"] = len(rows)
    stands_for = np.ones(n, np.int64)
    if options.similarity_threshold is not None:
        left = vectors if len(rows) == n else vectors[rows]
        found = deduplicate(left, scores[rows], threshold=options.similarity_threshold)
        stands_for[rows[found.keep]] = np.bincount(found.labels, minlength=len(found.keep))
        steps["clusters_merged"] = found.clusters_merged
        rows = rows[found.keep]
    else:
        rows = rows[np.lexsort((rows, -scores[rows]))]
    steps["after_dedup"] = len(rows)
    wanted = len(rows) if options.top_n is None else options.top_n
    if options.lambda_ is not None and len(rows):
        rows = rows[mmr(scores[rows], vectors[rows], wanted, lambda_=options.lambda_)]
    rows = rows[:wanted]
    steps["after_top_n"] = len(rows)
    tokens = None
    if options.max_tokens is not None:
        tokens = _costs([candidates.texts[i] or "" for i in rows.tolist()], options.count_tokens)
        fitting = fit_budget(tokens, options.max_tokens)
        rows, tokens = rows[fitting], tokens[fitting]
    steps["after_budget"] = len(rows)
    return Selection(rows, scores[rows], steps, stands_for[rows].tolist(), tokens)


def needs_vectors(options: SelectionOptions, *, scored: bool) -> bool:
    """Whether documents, with scores of their own or without, are compared by their vectors."""
    return not scored or options.similarity_threshold is not None or options.lambda_ is not None


def _has_no_vector(candidates: Candidates) -> bool:
    return all(vector is None for vector in candidates.vectors)


class DocumentVectors:
    """Vectors that documents have, or that an embedder makes of their texts.

    `embedder` may be None: the default embedder is used if no document has a vector. Vectors that are given may be of any
    model, so none is guessed for what has to be compared with them.
    """

    def __init__(self, candidates: Candidates, embedder: TextEmbedder | None) -> None:
        self._what = candidates.what
        vectors = list(candidates.vectors)
        missing = [i for i, vector in enumerate(vectors) if vector is None]
        if embedder is None and len(missing) == len(vectors):
            embedder = default_embedder()
        self._embedder = embedder
        if missing and embedder is None:
            raise ValueError(f"{self._what}[{missing[0]}] has no embedding, and no embedder was given")
        if missing and embedder is not None:
            made = self._embed(embedder, candidates.texts, missing)
            if len(missing) == len(vectors):
                self.rows = made
                return
            for i, row in zip(missing, made, strict=True):
                vectors[i] = row
        self.rows = stack_rows(vectors, f"embeddings of {self._what}")
        refuse_infinite(self.rows, f"embeddings of {self._what}")

    def of_query(self, query: str | None, vector: npt.ArrayLike | None) -> Float32:
        """`vector`, or what the documents' embedder makes of `query`."""
        if vector is None:
            if query is None:
                raise ValueError(f"{self._what} have no scores: a query is needed to score them")
            if self._embedder is None:
                raise ValueError(
                    f"{self._what} have embeddings but no scores: give the embedder that made them, or scores"
                )
            vector = np.asarray(self._embedder.embed_query(query))
        return as_rows(vector, "the query's embedding", width=self.rows.shape[1], ndim=(1,))

    def _embed(self, embedder: TextEmbedder, texts: Sequence[str | None], rows: list[int]) -> Float32:
        wanted = []
        for i in rows:
            text = texts[i]
            if text is None:
                raise ValueError(f"{self._what}[{i}] has neither text nor embedding")
            wanted.append(text)
        made = as_rows(embedder.embed_documents(wanted), "the embedder's vectors", ndim=(2,))
        if len(made) != len(wanted):
            raise ValueError(f"the embedder gave {len(made)} vectors for {len(wanted)} texts")
        return made


def cosines(query_vector: Float32, vectors: Float32) -> Floats:
    """Cosines as an exact search gives them, to the bit."""
    width = (vectors.shape[1],)
    (unit_query,), (unit_rows,) = prefix_tiers(query_vector, width), prefix_tiers(vectors, width)
    products: Floats = _native.dot_products(unit_query, unit_rows)[0].astype(np.float64)
    return products


def _given_scores(candidates: Candidates) -> Floats | None:
    missing = [i for i, score in enumerate(candidates.scores) if score is None]
    if len(missing) == len(candidates.scores):
        return None
    if missing:
        raise ValueError(f"{candidates.what}[{missing[0]}] has no score, but others have one")
    scores = np.array(candidates.scores, np.float64)
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise ValueError(f"{candidates.what}[{bad[0]}] has the score {scores[bad[0]]}; scores must be finite")
    return scores


def _costs(texts: list[str], count_tokens: Callable[[str], int] | None) -> npt.NDArray[Any]:
    if count_tokens is None:
        return estimate_tokens(texts)
    return np.array([as_count(count_tokens(text), "count_tokens(text)") for text in texts], np.int64)


def hit_breakdown(hit: Hit) -> dict[str, Any]:
    """Where a hit comes from and how it was scored, as plain values."""
    names = ("score", "vector_score", "lexical_score", "vector_rank", "lexical_rank", "turn_id", "sentence_id", "role")
    return {name: getattr(hit, name) for name in (*names, "timestamp")}
