"""LlamaIndex: a node postprocessor and a retriever over `SemanticIndex`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hsca_fast.adapters.frontends import require

require("llamaindex")

from llama_index.core.bridge.pydantic import ConfigDict, PrivateAttr, field_serializer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
from pydantic import FieldSerializationInfo

from hsca_fast.adapters.embedders import NAMES, TextEmbedder, as_embedder
from hsca_fast.adapters.selection import Candidates, SelectionOptions, hit_breakdown, select
from hsca_fast.vectors.arrays import as_count

if TYPE_CHECKING:
    from llama_index.core.callbacks import CallbackManager

    from hsca_fast.memory.index import SemanticIndex

BREAKDOWN_KEY = "hsca"


class HSCAPostprocessor(BaseNodePostprocessor):
    """Threshold, de-duplication, MMR and a token budget over retrieved nodes.

    Nodes are judged by their own scores, or, with `rescore` or where none has a score, by their cosine to the query. A
    node's vector is its `embedding`, else what `embedder` makes of its text. The nodes that stay are copies with the score,
    best first, and with the breakdown in `metadata["hsca"]`, which is kept from prompts and embeddings.

    Parameters
    ----------
    embedder
        "default" or "minilm", so that the postprocessor can be written to a file, or an object with `embed_documents` and
        `embed_query`. None: `default_embedder()` if no node has a vector.
    rescore
        Cosines to the query in place of the nodes' scores.
    min_score, similarity_threshold, lambda_, top_n, max_tokens, count_tokens
        As of `SelectionOptions`.
    """

    embedder: Any = None
    rescore: bool = False
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
        """Options are checked when the postprocessor is made."""
        super().model_post_init(context)
        self._embedder = as_embedder(self.embedder)
        self._options = SelectionOptions(
            self.min_score, self.similarity_threshold, self.lambda_, self.top_n, self.max_tokens, self.count_tokens
        )

    @field_serializer("embedder", "count_tokens")
    def _written(self, value: Any, info: FieldSerializationInfo) -> str | None:
        # Left out in silence, they would be others when the file is read.
        if value is None or isinstance(value, str):
            return value
        known = f"; embedders that are named can: {', '.join(NAMES)}" if info.field_name == "embedder" else ""
        raise ValueError(f"{info.field_name} is a {type(value).__name__}, which cannot be written to a file{known}")

    @classmethod
    def class_name(cls) -> str:
        """The name LlamaIndex writes to files."""
        return "HSCAPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        vectors = [node.node.embedding for node in nodes]
        has_all_vectors = type(None) not in set(map(type, vectors))
        # With vectors and without a budget nobody asks for the texts.
        needs_texts = self.max_tokens is not None or not has_all_vectors
        candidates = Candidates(
            "nodes",
            [_text(node.node) for node in nodes] if needs_texts else [None] * len(nodes),
            vectors,
            [None] * len(nodes) if self.rescore else [node.score for node in nodes],
        )
        chosen = select(
            candidates,
            self._options,
            query=None if query_bundle is None else query_bundle.query_str,
            # A vector retriever leaves its model's vector in the bundle: of use beside its nodes' vectors, not beside ours.
            query_vector=query_bundle.embedding if query_bundle is not None and has_all_vectors else None,
            embedder=self._embedder,
        )
        return [
            NodeWithScore(node=_with_breakdown(nodes[row].node, breakdown), score=breakdown["score"])
            for row, breakdown in zip(chosen.rows.tolist(), chosen.breakdowns(), strict=True)
        ]


class HSCARetriever(BaseRetriever):
    """Nodes from a `SemanticIndex`: what `index.query` finds, in its order.

    A node's metadata is the record's, with the scores and ranks of both arms under `hsca`, which is kept from prompts. The
    question is embedded by the index's model, also where its bundle has a vector, which may be another model's.

    Parameters
    ----------
    index
        An open `SemanticIndex`.
    k, where, lexical, vector
        As of `SemanticIndex.query`.
    """

    def __init__(
        self,
        index: SemanticIndex,
        *,
        k: int = 10,
        where: Mapping[str, Any] | None = None,
        lexical: bool = True,
        vector: bool = True,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._query = partial(index.query, k=as_count(k, "k"), where=where, lexical=lexical, vector=vector)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._query(query_bundle.query_str)
        return [
            NodeWithScore(
                node=_with_breakdown(TextNode(id_=hit.id, text=hit.text, metadata=hit.metadata), hit_breakdown(hit)),
                score=hit.score,
            )
            for hit in hits
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _text(node: BaseNode) -> str:
    text: str = node.text if type(node) is TextNode else node.get_content(metadata_mode=MetadataMode.NONE)
    return text


def _with_breakdown(node: BaseNode, breakdown: dict[str, Any]) -> BaseNode:
    return node.model_copy(
        update={
            "metadata": {**node.metadata, BREAKDOWN_KEY: breakdown},
            "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, BREAKDOWN_KEY],
            "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, BREAKDOWN_KEY],
        }
    )
