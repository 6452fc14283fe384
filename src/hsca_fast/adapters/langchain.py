"""LangChain: a document compressor, a redundancy filter, a retriever over `SemanticIndex`, a text splitter."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from hsca_fast.adapters.frontends import require

require("langchain")

from langchain_core.callbacks import CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.retrievers import BaseRetriever
from langchain_text_splitters import TextSplitter
from pydantic import ConfigDict, PrivateAttr

from hsca_fast.adapters.selection import Candidates, DocumentVectors, SelectionOptions, hit_breakdown, select
from hsca_fast.context.beats import find_beats
from hsca_fast.text.segmentation import segment
from hsca_fast.vectors.arrays import as_count
from hsca_fast.vectors.dedup import deduplicate

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


class HSCARetriever(BaseRetriever):
    """Documents from a `SemanticIndex`: what `index.query` finds, in its order.

    A document's metadata is the record's, with `hsca_score` and, under `hsca`, the scores and ranks of both arms, the turn, the
    role and the time.

    Parameters
    ----------
    index
        An open `SemanticIndex`.
    k, where, lexical, vector
        As of `SemanticIndex.query`.
    """

    index: Any
    k: int = 10
    where: dict[str, Any] | None = None
    lexical: bool = True
    vector: bool = True

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        hits = self.index.query(query, self.k, where=self.where, lexical=self.lexical, vector=self.vector)
        return [
            Document(
                page_content=hit.text,
                id=hit.id,
                metadata={**hit.metadata, SCORE_KEY: hit.score, BREAKDOWN_KEY: hit_breakdown(hit)},
            )
            for hit in hits
        ]


class HSCATextSplitter(TextSplitter):
    """Splits a text where the library does: lines of at least `min_line_tokens`, or beats of paragraphs.

    Chunks are slices of the text, and `start_index`, if asked for, is exact.

    Parameters
    ----------
    by
        "lines" joins short lines with the next (`merge_short_lines`); "beats" cuts where the paragraphs turn to something
        else (`find_beats`).
    min_line_tokens
        Of "lines".
    add_start_index
        Put the offset of a chunk into its document's metadata.
    """

    def __init__(
        self,
        by: Literal["lines", "beats"] = "lines",
        *,
        min_line_tokens: int = 10,
        add_start_index: bool = False,
    ) -> None:
        super().__init__(add_start_index=add_start_index)
        if by not in ("lines", "beats"):
            raise ValueError(f"by must be 'lines' or 'beats', not {by!r}")
        self._by = by
        self._min_line_tokens = as_count(min_line_tokens, "min_line_tokens", least=1)

    def split_text(self, text: str) -> list[str]:
        """The chunks of a text, in order."""
        return [text[start:end] for start, end in self._spans(text)]

    def create_documents(self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None) -> list[Document]:
        """A document for each chunk, with the metadata of its text."""
        given = metadatas if metadatas is not None else [{} for _ in texts]
        return [
            Document(
                page_content=text[start:end],
                metadata=copy.deepcopy(metadata) | ({"start_index": start} if self._add_start_index else {}),
            )
            for text, metadata in zip(texts, given, strict=True)
            for start, end in self._spans(text)
        ]

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        if self._by == "lines":
            from hsca_fast.memory.chunking import merge_short_lines

            spans = [
                (chunk.start, chunk.end) for chunk in merge_short_lines(text, min_line_tokens=self._min_line_tokens)
            ]
        else:
            paragraphs = segment(text).paragraphs.tolist()
            cuts = [0, *find_beats([text[a:b] for a, b in paragraphs]), len(paragraphs)]
            spans = [(paragraphs[a][0], paragraphs[b - 1][1]) for a, b in pairwise(cuts) if a < b]
        return ((start, end) for start, end in spans if not text[start:end].isspace())


def _columns(documents: Sequence[Document], embedding_key: str) -> Candidates:
    return Candidates(
        "documents",
        [document.page_content for document in documents],
        [_vector(document, embedding_key) for document in documents],
        [None] * len(documents),
    )


def _vector(document: Document, key: str) -> Any:
    # Of langchain-community's stateful documents; pydantic makes it dear to ask for an attribute that is not there.
    state = document.__dict__.get("state")
    if state and "embedded_doc" in state:
        return state["embedded_doc"]
    return document.metadata.get(key)


def _copy(document: Document, embedding_key: str, breakdown: dict[str, Any]) -> Document:
    metadata = {key: value for key, value in document.metadata.items() if key != embedding_key}
    metadata[SCORE_KEY] = breakdown["score"]
    metadata[BREAKDOWN_KEY] = breakdown
    return Document(page_content=document.page_content, metadata=metadata, id=document.id)
