"""Haystack with the real package."""

import pytest
from adapter_cases import OPTIONS, QUERY, TEXTS, expected, needs

needs("haystack")

from haystack import Document, Pipeline

from hsca_fast import default_embedder
from hsca_fast.adapters.haystack import HSCARanker


def documents(**columns):
    return [
        Document(id=str(i), content=text, meta={"i": i}, **{name: column[i] for name, column in columns.items()})
        for i, text in enumerate(TEXTS)
    ]


def found(result):
    return [(document.meta["i"], document.score) for document in result["documents"]]


@pytest.mark.parametrize("options", OPTIONS)
def test_ranker_equals_the_library_to_the_bit(options):
    options = {{"top_n": "top_k"}.get(name, name): value for name, value in options.items()}
    want = expected(TEXTS, QUERY, **{{"top_k": "top_n"}.get(name, name): value for name, value in options.items()})
    assert found(HSCARanker(**options).run(QUERY, documents())) == want
    assert found(HSCARanker("default", **options).run(QUERY, documents())) == want


def test_given_vectors_and_scores():
    vectors = default_embedder().embed_documents(TEXTS).tolist()
    scores = [0.9, 0.95, 0.4, 0.35, 0.8, 0.2, 0.1, 0.5]
    result = HSCARanker().run(None, documents(embedding=vectors, score=scores))
    assert found(result)[0] == (1, 0.95)
    assert result["stats"]["original_count"] == len(TEXTS)
    query = default_embedder().embed_query(QUERY).tolist()
    again = HSCARanker(rescore=True).run(
        None, documents(embedding=vectors, score=scores), query_embedding=query, top_k=2
    )
    assert found(again) == expected(TEXTS, QUERY, top_n=2)


def test_documents_are_copies():
    given = documents()
    kept = HSCARanker().run(QUERY, given)["documents"]
    assert all("hsca" not in document.meta and document.score is None for document in given)
    assert kept[0].meta["hsca"]["rank"] == 0
    assert kept[0].id == str(kept[0].meta["i"])


def test_it_is_written_and_read_within_a_pipeline():
    pipeline = Pipeline()
    pipeline.add_component("rank", HSCARanker("default", min_score=0.0, lambda_=0.5, max_tokens=40))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["hsca_fast.adapters.haystack"])
    asked = {"rank": {"documents": documents(), "query": QUERY}}
    want = expected(TEXTS, QUERY, min_score=0.0, lambda_=0.5, max_tokens=40)
    assert found(pipeline.run(asked)["rank"]) == found(again.run(asked)["rank"]) == want


def test_empty_list_and_bad_documents():
    assert HSCARanker().run(QUERY, [])["documents"] == []
    with pytest.raises(ValueError, match=r"documents\[0\] has neither text nor embedding"):
        HSCARanker("default").run(QUERY, [Document(content=None, meta={"i": 0})])
    with pytest.raises(
        ValueError, match=r"embeddings of documents\[1\] has 1 numbers; embeddings of documents\[0\] has 2"
    ):
        HSCARanker().run(
            QUERY,
            [Document(content="a", score=1.0, embedding=[1.0, 2.0]), Document(content="b", score=1.0, embedding=[1.0])],
        )
    with pytest.raises(ValueError, match="embedder must be None or one of default, minilm, not 'bert'"):
        HSCARanker("bert")
    with pytest.raises(ValueError, match="top_k must be at least 1, not 0"):
        HSCARanker("default").run(QUERY, documents(), top_k=0)
    with pytest.raises(ValueError, match="the query's embedding is given, but documents have none: give the embedder"):
        HSCARanker().run(QUERY, documents(), query_embedding=[1.0] * 256)


def test_arguments_are_in_the_order_of_haystacks_rankers():
    by_name = HSCARanker("default").run(query=QUERY, documents=documents(), top_k=2)["documents"]
    assert HSCARanker("default").run(QUERY, documents(), 2)["documents"] == by_name
