"""Haystack: a ranker that is written to and read from pipeline files."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

from hsca_fast.adapters.frontends import require

require("haystack")

from haystack import Document, component, default_from_dict, default_to_dict

from hsca_fast.adapters.embedders import NAMES, named_embedder
from hsca_fast.adapters.selection import Candidates, SelectionOptions, select
from hsca_fast.vectors.arrays import as_count
from hsca_fast.vectors.embedder import Embedder

BREAKDOWN_KEY = "hsca"


@component
class HSCARanker:
    """Threshold, de-duplication, MMR and a token budget over documents.

    Documents are judged by their own scores, or, with `rescore` or where none has a score, by their cosine to the query. A
    document's vector is its `embedding`, else what the embedder makes of its content. The documents that stay are copies
    with the score, best first, and with the breakdown in `meta["hsca"]`.

    Parameters
    ----------
    embedder
        "default" or "minilm": names, so that the component can be written to a file. None: documents have vectors and scores,
        or the query's vector is given, or no document has a vector, which then come from the default embedder.
    rescore
        Cosines to the query in place of the documents' scores.
    min_score, similarity_threshold, lambda_, top_k, max_tokens
        As of `SelectionOptions`; `top_k` is its `top_n`.
    """

    def __init__(
        self,
        embedder: str | None = None,
        rescore: bool = False,
        min_score: float | None = 0.3,
        similarity_threshold: float | None = 0.85,
        lambda_: float | None = None,
        top_k: int | None = 5,
        max_tokens: int | None = None,
    ) -> None:
        if embedder is not None and embedder not in NAMES:
            raise ValueError(f"embedder must be None or one of {', '.join(NAMES)}, not {embedder!r}")
        self._given = {
            "embedder": embedder,
            "rescore": rescore,
            "min_score": min_score,
            "similarity_threshold": similarity_threshold,
            "lambda_": lambda_,
            "top_k": top_k,
            "max_tokens": max_tokens,
        }
        self._options = SelectionOptions(min_score, similarity_threshold, lambda_, top_k, max_tokens)
        self._rescore = rescore
        self._embedder: Embedder | None = None

    def warm_up(self) -> None:
        """Load the embedder; `run` does so where nobody has."""
        name = self._given["embedder"]
        if self._embedder is None and name is not None:
            self._embedder = named_embedder(str(name))

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values."""
        data: dict[str, Any] = default_to_dict(self, **self._given)
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HSCARanker:
        """The component that `to_dict` wrote."""
        made: HSCARanker = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document], stats=dict[str, int])
    def run(
        self,
        query: str | None,
        documents: list[Document],
        top_k: int | None = None,
        query_embedding: list[float] | None = None,
    ) -> dict[str, Any]:
        """The documents that stay, and how many were left after each step; arguments in the order of Haystack's rankers."""
        self.warm_up()
        candidates = Candidates(
            "documents",
            [document.content for document in documents],
            [document.embedding for document in documents],
            [None if self._rescore else document.score for document in documents],
        )
        options = self._options
        if top_k is not None:
            options = replace(options, top_n=as_count(top_k, "top_k", least=1))
        chosen = select(candidates, options, query=query, query_vector=query_embedding, embedder=self._embedder)
        kept = [
            _with_breakdown(documents[row], breakdown)
            for row, breakdown in zip(chosen.rows.tolist(), chosen.breakdowns(), strict=True)
        ]
        return {"documents": kept, "stats": chosen.stats}


def _with_breakdown(document: Document, breakdown: dict[str, Any]) -> Document:
    # dataclasses.replace checks every field again, which takes more than twice as long.
    copied: Document = copy(document)
    copied.__dict__.update(score=breakdown["score"], meta={**document.meta, BREAKDOWN_KEY: breakdown})
    return copied
