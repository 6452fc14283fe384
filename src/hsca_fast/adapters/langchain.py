"""LangChain: a document compressor, a redundancy filter, a retriever over `SemanticIndex`, a text splitter."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from hsca_fast.adapters.frontends import require

require("langchain")

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_text_splitters import TextSplitter
from pydantic import ConfigDict, PrivateAttr

from hsca_fast.adapters.embedders import TextEmbedder, as_embedder
from hsca_fast.adapters.selection import (
    Candidates,
    DocumentVectors,
    SelectionOptions,
    hit_breakdown,
    needs_vectors,
    select,
)
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
        "default", "minilm", one of ours, or a LangChain `Embeddings`, whose own coroutines `acompress_documents` awaits. None:
        `default_embedder()` if no document has a vector.
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
    _embedder: TextEmbedder | None = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Options are checked when the compressor is made."""
        self._embedder = as_embedder(self.embedder)
        self._options = SelectionOptions(
            self.min_score, self.similarity_threshold, self.lambda_, self.top_n, self.max_tokens, self.count_tokens
        )

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The documents that stay; `callbacks` are not called, as there is no model run to report."""
        documents = list(documents)
        return self._selected(documents, self._candidates(documents), query, self._embedder)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The same, beside the event loop."""
        documents = list(documents)
        candidates = self._candidates(documents)
        embedder = self._embedder
        scored = self.score_key is not None
        if documents and isinstance(embedder, Embeddings) and needs_vectors(self._options, scored=scored):
            embedder = await _Awaited.of(embedder, candidates, None if scored else query)
        return await asyncio.to_thread(self._selected, documents, candidates, query, embedder)

    def _candidates(self, documents: list[Document]) -> Candidates:
        candidates = _columns(documents, self.embedding_key)
        if self.score_key is not None:
            candidates.scores = [self._score(document, i) for i, document in enumerate(documents)]
        return candidates

    def _selected(
        self, documents: list[Document], candidates: Candidates, query: str, embedder: TextEmbedder | None
    ) -> list[Document]:
        chosen = select(candidates, self._options, query=query, embedder=embedder)
        return [
            _copy(documents[row], self.embedding_key, breakdown)
            for row, breakdown in zip(chosen.rows.tolist(), chosen.breakdowns(), strict=True)
        ]

    def _score(self, document: Document, row: int) -> float:
        score = document.metadata.get(self.score_key)
        if isinstance(score, bool) or not isinstance(score, (int, float, np.integer, np.floating)):
            raise ValueError(f"documents[{row}].metadata[{self.score_key!r}] must be a number, not {score!r}")
        return float(score)


class _Awaited:
    """What an embedder's coroutines have given, for `select`, which asks for nothing else."""

    def __init__(self, vectors: Sequence[Any], query_vector: Any) -> None:
        self._vectors, self._query_vector = vectors, query_vector

    @classmethod
    async def of(cls, embedder: Embeddings, candidates: Candidates, query: str | None) -> _Awaited:
        texts = [text for text, vector in zip(candidates.texts, candidates.vectors, strict=True) if vector is None]
        vectors = await embedder.aembed_documents(texts) if texts else []
        return cls(vectors, None if query is None else await embedder.aembed_query(query))

    def embed_documents(self, texts: list[str]) -> Sequence[Any]:
        return self._vectors

    def embed_query(self, text: str) -> Any:
        return self._query_vector


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
        self.embedder = as_embedder(embedder)
        self.embedding_key = embedding_key
        self.similarity_threshold = similarity_threshold
        self.threads = threads

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> Sequence[Document]:
        """The documents that stay."""
        documents = list(documents)
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
        As of `SemanticIndex.query`; a call may give others: `retriever.invoke(question, k=3)`.
    """

    index: Any
    k: int = 10
    where: dict[str, Any] | None = None
    lexical: bool = True
    vector: bool = True

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def model_post_init(self, context: Any, /) -> None:
        """Options are checked when the retriever is made."""
        if not callable(getattr(self.index, "query", None)):
            raise ValueError(f"index must be a SemanticIndex, not {type(self.index).__name__}")
        as_count(self.k, "k")

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return self._found(query, options)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await asyncio.to_thread(self._found, query, options)

    def _found(self, query: str, options: dict[str, Any]) -> list[Document]:
        own = {"k": self.k, "where": self.where, "lexical": self.lexical, "vector": self.vector}
        hits = self.index.query(query, **(own | options))
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


def _columns(documents: list[Document], embedding_key: str) -> Candidates:
    try:
        texts = [document.page_content for document in documents]
    except AttributeError:
        row = next(i for i, document in enumerate(documents) if not isinstance(document, Document))
        raise TypeError(f"documents[{row}] must be a Document, not {type(documents[row]).__name__}") from None
    vectors = [_vector(document, embedding_key) for document in documents]
    return Candidates("documents", texts, vectors, [None] * len(documents))


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
