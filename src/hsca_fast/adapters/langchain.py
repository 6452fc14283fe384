"""LangChain: a document compressor, a redundancy filter, a retriever over `SemanticIndex`, a text splitter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hsca_fast.adapters.frontends import require

require("langchain")

from langchain_core.callbacks import Callbacks  # noqa: E402
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document  # noqa: E402
from pydantic import ConfigDict, PrivateAttr  # noqa: E402

from hsca_fast.adapters.selection import Candidates, DocumentVectors, SelectionOptions, select  # noqa: E402
from hsca_fast.vectors.dedup import deduplicate  # noqa: E402

SCORE_KEY = "hsca_score"
BREAKDOWN_KEY = "hsca"


class HSCACompressor(BaseDocumentCompressor):
    """Threshold, de-duplication, MMR and a token budget over retrieved documents.

    A document's vector is what LangChain's own filters keep in its `state`, else `metadata[embedding_key]`, else what
    `embedder` makes of its text. The documents that stay are copies with `hsca_score` and `hsca` (the breakdown) in their
    metadata, best first.

    Parameters
    ----------
    embedder
        One of ours or a LangChain `Embeddings`; `default_embedder()` if no document has a vector.
    embedding_key
        Metadata key of a document's vector; it is left out of the copies.
    score_key
        Metadata key of a document's score. None: scores are cosines to the query.
    min_score, similarity_threshold, lambda_, top_n, max_tokens, count_tokens
        As of `SelectionOptions`.
    """

    embedder: Any = None
    embedding_key: str = "embedding"
    score_key: str | None = None
    min_score: float | None = 0.3
    similarity_threshold: float | None = 0.85
    lambda_: float | None = None
    top_n: int | None = 5
    max_tokens: int | None = None
    count_tokens: Callable[[str], int] | None = None

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", frozen=True)
    _options: SelectionOptions = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Options are checked when the compressor is made."""
        self._options = SelectionOptions(
            self.min_score, self.similarity_threshold, self.lambda_, self.top_n, self.max_tokens, self.count_tokens
        )

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The documents that stay; `callbacks` are not called, as there is no model run to report."""
        candidates = _columns(documents, self.embedding_key)
        if self.score_key is not None:
            candidates.scores = [self._score(document, i) for i, document in enumerate(documents)]
        chosen = select(candidates, self._options, query=query, embedder=self.embedder)
        return [
            _copy(documents[row], self.embedding_key, breakdown)
            for row, breakdown in zip(chosen.rows.tolist(), chosen.breakdowns(), strict=True)
        ]

    def _score(self, document: Document, row: int) -> float:
        score = document.metadata.get(self.score_key)
        if isinstance(score, bool) or not isinstance(score, (int, float, np.integer, np.floating)):
            raise ValueError(f"documents[{row}].metadata[{self.score_key!r}] must be a number, not {score!r}")
        return float(score)


class HSCARedundantFilter(BaseDocumentTransformer):
    """Drops near-duplicates: of documents that cosines ≥ `similarity_threshold` join, the first stays.

    Documents stay themselves and in their order, so it stands where LangChain's `EmbeddingsRedundantFilter` stood. That
    one keeps one of each *pair*: from a chain of documents that are each like the next it may keep several.

    Parameters
    ----------
    embedder, embedding_key
        As of `HSCACompressor`; a vector that is made is not kept.
    similarity_threshold
        LangChain's own value is 0.95.
    threads
        Worker threads; 0 takes every usable CPU. The result is the same for every number.
    """

    def __init__(
        self,
        *,
        embedder: Any = None,
        embedding_key: str = "embedding",
        similarity_threshold: float = 0.95,
        threads: int = 1,
    ) -> None:
        SelectionOptions(similarity_threshold=similarity_threshold)
        self.embedder = embedder
        self.embedding_key = embedding_key
        self.similarity_threshold = similarity_threshold
        self.threads = threads

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> Sequence[Document]:
        """The documents that stay."""
        if not documents:
            return []
        vectors = DocumentVectors(_columns(documents, self.embedding_key), self.embedder).rows
        found = deduplicate(vectors, np.zeros(len(vectors)), threshold=self.similarity_threshold, threads=self.threads)
        return [documents[i] for i in np.sort(found.keep).tolist()]


def _columns(documents: Sequence[Document], embedding_key: str) -> Candidates:
    return Candidates(
        "documents",
        [document.page_content for document in documents],
        [_vector(document, embedding_key) for document in documents],
        [None] * len(documents),
    )


def _vector(document: Document, key: str) -> Any:
    state = getattr(document, "state", None)  # of langchain-community's stateful documents
    if state and "embedded_doc" in state:
        return state["embedded_doc"]
    return document.metadata.get(key)


def _copy(document: Document, embedding_key: str, breakdown: dict[str, Any]) -> Document:
    metadata = {key: value for key, value in document.metadata.items() if key != embedding_key}
    metadata[SCORE_KEY] = breakdown["score"]
    metadata[BREAKDOWN_KEY] = breakdown
    return Document(page_content=document.page_content, metadata=metadata, id=document.id)
