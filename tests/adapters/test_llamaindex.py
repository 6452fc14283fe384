"""LlamaIndex with the real package."""

import asyncio

import pytest
from adapter_cases import OPTIONS, QUERY, TEXTS, expected, needs

needs("llama_index.core")

from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from hsca_fast import SemanticIndex, default_embedder
from hsca_fast.adapters.llamaindex import HSCAPostprocessor, HSCARetriever


def nodes(scores=None, vectors=None):
    return [
        NodeWithScore(
            node=TextNode(id_=str(i), text=text, metadata={"i": i}, embedding=None if vectors is None else vectors[i]),
            score=None if scores is None else scores[i],
        )
        for i, text in enumerate(TEXTS)
    ]


def found(kept):
    return [(node.node.metadata["i"], node.score) for node in kept]


@pytest.mark.parametrize("options", OPTIONS)
def test_postprocessor_equals_the_library_to_the_bit(options):
    postprocessor = HSCAPostprocessor(**options)
    want = expected(TEXTS, QUERY, **options)
    assert found(postprocessor.postprocess_nodes(nodes(), query_str=QUERY)) == want
    assert found(asyncio.run(postprocessor.apostprocess_nodes(nodes(), query_str=QUERY))) == want


def test_given_vectors_and_scores():
    vectors = default_embedder().embed_documents(TEXTS).tolist()
    scores = [0.9, 0.95, 0.4, 0.35, 0.8, 0.2, 0.1, 0.5]
    kept = found(HSCAPostprocessor().postprocess_nodes(nodes(scores, vectors)))
    assert kept[0] == (1, 0.95)
    assert [score for _, score in kept] == sorted((scores[i] for i, _ in kept), reverse=True)
    query = QueryBundle(QUERY, embedding=default_embedder().embed_query(QUERY).tolist())
    again = HSCAPostprocessor(rescore=True).postprocess_nodes(nodes(scores, vectors), query)
    assert found(again) == expected(TEXTS, QUERY)


def test_nodes_are_copies_and_the_breakdown_is_no_prompt():
    given = nodes()
    kept = HSCAPostprocessor().postprocess_nodes(given, query_str=QUERY)
    assert all("hsca" not in node.node.metadata for node in given)
    assert kept[0].node.metadata["hsca"]["rank"] == 0
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert "hsca" not in kept[0].node.get_content(metadata_mode=mode)


def test_empty_list_and_bad_nodes():
    assert HSCAPostprocessor().postprocess_nodes([], query_str=QUERY) == []
    with pytest.raises(ValueError, match="a query is needed to score them"):
        HSCAPostprocessor().postprocess_nodes(nodes())
    mixed = nodes()
    mixed[2].node.embedding = [1.0, 2.0]
    with pytest.raises(ValueError, match=r"nodes\[0\] has no embedding, and no embedder was given"):
        HSCAPostprocessor().postprocess_nodes(mixed, query_str=QUERY)


def test_it_is_written_and_read():
    postprocessor = HSCAPostprocessor(lambda_=0.4, top_n=2)
    again = HSCAPostprocessor.from_dict(postprocessor.to_dict())
    assert (again.lambda_, again.top_n) == (0.4, 2)
    assert found(again.postprocess_nodes(nodes(), query_str=QUERY)) == expected(TEXTS, QUERY, lambda_=0.4, top_n=2)


def test_what_cannot_be_written_is_refused():
    again = HSCAPostprocessor.from_json(HSCAPostprocessor(embedder="default").to_json())
    assert again.embedder == "default"
    assert found(again.postprocess_nodes(nodes(), query_str=QUERY)) == expected(TEXTS, QUERY)
    with pytest.raises(ValueError, match="embedder is a StaticEmbedder, which cannot be written to a file"):
        HSCAPostprocessor(embedder=default_embedder()).to_dict()
    with pytest.raises(ValueError, match="count_tokens is a type, which cannot be written"):
        HSCAPostprocessor(count_tokens=int).to_json()


def test_an_embedder_is_checked_when_it_is_given():
    with pytest.raises(TypeError, match="embedder must be one of default, minilm, or have embed_documents"):
        HSCAPostprocessor(embedder=3)
    with pytest.raises(ValueError, match="embedder must be one of default, minilm, not 'bert'"):
        HSCAPostprocessor(embedder="bert")


def test_a_vector_that_another_model_left_in_the_bundle_is_not_compared_with_ours():
    for width in (256, 1536):
        bundle = QueryBundle(QUERY, embedding=[1.0] * width)
        assert found(HSCAPostprocessor().postprocess_nodes(nodes(), bundle)) == expected(TEXTS, QUERY)
        kept = HSCAPostprocessor(rescore=True).postprocess_nodes(nodes(scores=[0.5] * len(TEXTS)), bundle)
        assert found(kept) == expected(TEXTS, QUERY)


def test_retriever_equals_the_index_to_the_bit(tmp_path):
    with SemanticIndex.open(tmp_path / "index", embedder=default_embedder()) as index:
        index.append(TEXTS, metadata=[{"i": i} for i in range(len(TEXTS))])
        hits = index.query(QUERY, 3, where={"i": {"$lt": 6}})
        retriever = HSCARetriever(index, k=3, where={"i": {"$lt": 6}})
        for kept in (retriever.retrieve(QUERY), asyncio.run(retriever.aretrieve(QUERY))):
            assert [(n.node.node_id, n.node.text, n.score) for n in kept] == [(h.id, h.text, h.score) for h in hits]
            assert kept[0].node.metadata["hsca"]["vector_rank"] == hits[0].vector_rank
            assert "hsca" not in kept[0].node.get_content(metadata_mode=MetadataMode.LLM)
        left = QueryBundle(QUERY, embedding=[1.0, 2.0])  # of another model
        assert [(node.node_id, node.score) for node in retriever.retrieve(left)] == [(h.id, h.score) for h in hits]
        with pytest.raises(ValueError, match="k must be at least 0, not -1"):
            HSCARetriever(index, k=-1)
        with pytest.raises(ValueError, match="unknown operator"):
            HSCARetriever(index, where={"i": {"$like": 1}}).retrieve(QUERY)
