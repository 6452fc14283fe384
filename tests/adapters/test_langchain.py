"""LangChain with the real package."""

import asyncio
import json

import numpy as np
import pytest
from adapter_cases import OPTIONS, QUERY, TEXTS, expected, needs

needs("langchain_core", "langchain_text_splitters")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.runnables import RunnableLambda

from hsca_fast import (
    SemanticIndex,
    deduplicate,
    default_embedder,
    find_beats,
    merge_short_lines,
    segment,
)
from hsca_fast.adapters.langchain import HSCACompressor, HSCARedundantFilter, HSCARetriever, HSCATextSplitter


def documents(**metadata):
    return [Document(page_content=text, id=str(i), metadata={"i": i, **metadata}) for i, text in enumerate(TEXTS)]


def found(kept):
    return [(document.metadata["i"], document.metadata["hsca_score"]) for document in kept]


@pytest.mark.parametrize("options", OPTIONS)
def test_compressor_equals_the_library_to_the_bit(options):
    compressor = HSCACompressor(**options)
    want = expected(TEXTS, QUERY, **options)
    assert found(compressor.compress_documents(documents(), QUERY)) == want
    assert found(asyncio.run(compressor.acompress_documents(documents(), QUERY))) == want


def test_documents_are_copies_with_a_breakdown():
    given = documents(source="s")
    before = [document.model_copy(deep=True) for document in given]
    kept = HSCACompressor(max_tokens=50).compress_documents(given, QUERY)
    assert given == before
    assert [document.id for document in kept] == [str(document.metadata["i"]) for document in kept]
    assert all(document.metadata["source"] == "s" for document in kept)
    assert {"score", "rank", "rank_before", "duplicates", "tokens"} == set(kept[0].metadata["hsca"])
    assert json.dumps([document.metadata for document in kept])


def test_vectors_and_scores_from_metadata():
    vectors = default_embedder().embed_documents(TEXTS)
    given = [
        Document(page_content=text, metadata={"i": i, "embedding": vectors[i].tolist(), "relevance": 1.0 - i / 10})
        for i, text in enumerate(TEXTS)
    ]
    kept = HSCACompressor(score_key="relevance").compress_documents(given, QUERY)
    assert [score for _, score in found(kept)] == [1.0 - i / 10 for i, _ in found(kept)]
    assert all("embedding" not in document.metadata for document in kept)
    with pytest.raises(ValueError, match=r"documents\[0\].metadata\['score'\] must be a number, not None"):
        HSCACompressor(score_key="score").compress_documents(given, QUERY)


def test_langchains_own_embeddings():
    embedder = DeterministicFakeEmbedding(size=32)
    kept = HSCACompressor(embedder=embedder, min_score=-1.0).compress_documents(documents(), QUERY)
    assert len(kept) == 5


class OnlyAsync(Embeddings):
    """Its vectors come from a server, so nothing may be asked for in the way of the event loop."""

    def embed_documents(self, texts):
        raise AssertionError("asked in the way of the event loop")

    embed_query = embed_documents

    async def aembed_documents(self, texts):
        await asyncio.sleep(0)
        return default_embedder().embed_documents(texts).tolist()

    async def aembed_query(self, text):
        return default_embedder().embed_query(text).tolist()


@pytest.mark.parametrize("options", OPTIONS)
def test_coroutines_of_an_embedder_are_awaited(options):
    compressor = HSCACompressor(embedder=OnlyAsync(), **options)
    assert found(asyncio.run(compressor.acompress_documents(documents(), QUERY))) == expected(TEXTS, QUERY, **options)
    given = documents()
    given[1].metadata["embedding"] = default_embedder().embed_documents(TEXTS[1:2])[0].tolist()
    assert found(asyncio.run(compressor.acompress_documents(given, QUERY))) == expected(TEXTS, QUERY, **options)
    assert asyncio.run(compressor.acompress_documents([], QUERY)) == []


def test_coroutines_that_are_not_needed_are_not_called():
    class Nothing(OnlyAsync):
        aembed_documents = aembed_query = None

    compressor = HSCACompressor(embedder=Nothing(), score_key="i", similarity_threshold=None, min_score=None)
    kept = asyncio.run(compressor.acompress_documents(documents(), QUERY))
    assert [document.metadata["i"] for document in kept] == [7, 6, 5, 4, 3]


def test_embedders_are_checked_when_they_are_given():
    assert found(HSCACompressor(embedder="default").compress_documents(documents(), QUERY)) == expected(TEXTS, QUERY)
    for make in (HSCACompressor, HSCARedundantFilter):
        with pytest.raises(TypeError, match="embedder must be one of default, minilm, or have embed_documents"):
            make(embedder=3)
        with pytest.raises(ValueError, match="embedder must be one of default, minilm, not 'bert'"):
            make(embedder="bert")


def test_what_is_no_document_is_named():
    for call in (
        HSCARedundantFilter().transform_documents,
        lambda given: HSCACompressor().compress_documents(given, ""),
    ):
        with pytest.raises(TypeError, match=r"documents\[1\] must be a Document, not str"):
            call([documents()[0], "text"])
    kept = HSCACompressor().compress_documents(iter(documents()), QUERY)
    assert found(kept) == expected(TEXTS, QUERY)


def test_options_of_one_question_to_the_retriever(tmp_path):
    with SemanticIndex.open(tmp_path / "index", embedder=default_embedder()) as index:
        index.append(TEXTS, metadata=[{"i": i} for i in range(len(TEXTS))])
        retriever = HSCARetriever(index=index, k=5)
        hits = index.query(QUERY, 2, where={"i": {"$gt": 1}}, lexical=False)
        kept = retriever.invoke(QUERY, k=2, where={"i": {"$gt": 1}}, lexical=False)
        assert [(document.id, document.metadata["hsca_score"]) for document in kept] == [(h.id, h.score) for h in hits]
        assert asyncio.run(retriever.ainvoke(QUERY, k=2, where={"i": {"$gt": 1}}, lexical=False)) == kept
        with pytest.raises(TypeError, match="unexpected keyword argument 'top'"):
            retriever.invoke(QUERY, top=2)
        with pytest.raises(ValueError, match="k must be at least 0, not -1"):
            HSCARetriever(index=index, k=-1)
    with pytest.raises(ValueError, match="index must be a SemanticIndex, not int"):
        HSCARetriever(index=3)


def test_metadata_that_is_not_json_passes_through():
    marker = object()
    given = [Document(page_content=TEXTS[0], metadata={"marker": marker})]
    assert HSCACompressor().compress_documents(given, QUERY)[0].metadata["marker"] is marker


def test_empty_lists():
    assert HSCACompressor().compress_documents([], QUERY) == []
    assert HSCARedundantFilter().transform_documents([]) == []


def test_options_are_checked_when_it_is_made():
    with pytest.raises(ValueError, match="similarity_threshold must be between"):
        HSCACompressor(similarity_threshold=2.0)
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        HSCACompressor(min_scor=0.1)
    with pytest.raises(ValueError, match="similarity_threshold must be between"):
        HSCARedundantFilter(similarity_threshold=0.0)


def test_within_a_chain():
    chain = RunnableLambda(lambda query: HSCACompressor().compress_documents(documents(), query))
    assert found(chain.invoke(QUERY)) == expected(TEXTS, QUERY)


def test_redundant_filter_keeps_the_first_of_each_component():
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((60, 24)).astype(np.float32)
    vectors[40:] = vectors[:20] * 3.0
    given = [Document(page_content=str(i), metadata={"embedding": row.tolist()}) for i, row in enumerate(vectors)]
    kept = HSCARedundantFilter().transform_documents(given)
    own = sorted(deduplicate(vectors, np.zeros(60), threshold=0.95).keep.tolist())
    assert [int(document.page_content) for document in kept] == own == list(range(40))
    assert all(a is b for a, b in zip(kept, given, strict=False))
    assert asyncio.run(HSCARedundantFilter().atransform_documents(given)) == kept


def test_redundant_filter_reads_the_state_of_langchains_filters():
    class Stateful(Document):
        state: dict

    given = [Stateful(page_content=str(i), state={"embedded_doc": [1.0, float(i % 2)]}) for i in range(6)]
    assert HSCARedundantFilter().transform_documents(given) == given[:2]


@pytest.fixture
def index(tmp_path):
    with SemanticIndex.open(tmp_path / "index", embedder=default_embedder()) as index:
        index.append(
            TEXTS, role="user", metadata=[{"i": i, "wing": "even" if i % 2 == 0 else "odd"} for i in range(len(TEXTS))]
        )
        yield index


@pytest.mark.parametrize("options", [{}, {"k": 2}, {"where": {"wing": "odd"}}, {"lexical": False}])
def test_retriever_equals_the_index_to_the_bit(index, options):
    retriever = HSCARetriever(index=index, **options)
    hits = index.query(QUERY, options.get("k", 10), where=options.get("where"), lexical=options.get("lexical", True))
    assert hits
    for kept in (retriever.invoke(QUERY), asyncio.run(retriever.ainvoke(QUERY))):
        assert [(d.id, d.page_content, d.metadata["hsca_score"]) for d in kept] == [
            (h.id, h.text, h.score) for h in hits
        ]
        assert kept[0].metadata["i"] == hits[0].metadata["i"]
        assert kept[0].metadata["hsca"]["vector_score"] == hits[0].vector_score
        assert json.dumps(kept[0].metadata)


def test_a_callback_that_raises_changes_nothing(index):
    class Raising(BaseCallbackHandler):
        def on_retriever_start(self, *args, **kwargs):
            raise RuntimeError("callback")

        on_retriever_end = on_retriever_start

    kept = HSCARetriever(index=index).invoke(QUERY, config={"callbacks": [Raising()]})
    assert [d.id for d in kept] == [hit.id for hit in index.query(QUERY)]
    compressor = HSCACompressor()
    assert found(compressor.compress_documents(documents(), QUERY, callbacks=[Raising()])) == expected(TEXTS, QUERY)


def test_retriever_says_what_a_filter_cannot_do(index):
    with pytest.raises(ValueError, match="unknown operator"):
        HSCARetriever(index=index, where={"wing": {"$like": "e"}}).invoke(QUERY)


LINES = "Groceries:\n- Milk\n- Eggs\nI will pick them up after work since the store is on my way home.\n\nNot today.\n"


def test_splitter_by_lines_equals_merge_short_lines():
    chunks = merge_short_lines(LINES)
    assert len(chunks) > 1
    assert HSCATextSplitter().split_text(LINES) == [chunk.text for chunk in chunks]
    made = HSCATextSplitter(add_start_index=True).split_documents([Document(page_content=LINES * 2, metadata={"s": 1})])
    assert all((LINES * 2)[d.metadata["start_index"] :].startswith(d.page_content) for d in made)
    assert [d.metadata["start_index"] for d in made] == [chunk.start for chunk in merge_short_lines(LINES * 2)]
    assert all(d.metadata["s"] == 1 for d in made)


def test_splitter_by_beats_cuts_where_the_topic_turns():
    boats = ["The boat has a sail.", "A sail needs wind.", "The boat left in the wind."]
    bread = ["Bread needs flour.", "The flour is rye.", "Rye bread is dark."]
    text = "\n\n".join((boats + bread) * 3)
    paragraphs = [text[a:b] for a, b in segment(text).paragraphs.tolist()]
    made = HSCATextSplitter("beats", add_start_index=True).create_documents([text])
    assert len(made) == len(find_beats(paragraphs)) + 1 > 1
    assert "\n\n".join(d.page_content for d in made) == text
    assert all(text[d.metadata["start_index"] :].startswith(d.page_content) for d in made)


def test_splitter_takes_nothing_and_refuses_what_it_does_not_know():
    assert HSCATextSplitter().split_text("") == HSCATextSplitter("beats").split_text(" \n\n ") == []
    with pytest.raises(ValueError, match="by must be 'lines' or 'beats', not 'pages'"):
        HSCATextSplitter("pages")
