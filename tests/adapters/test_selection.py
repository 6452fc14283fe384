"""The selection that every compressor shares: the library's own functions, composed."""

import json

import numpy as np
import pytest
from adapter_cases import OPTIONS, QUERY, TEXTS, expected

from hsca_fast import CascadeIndex, ChunkResult, HashEmbedder, compress, default_embedder
from hsca_fast.adapters.selection import Candidates, SelectionOptions, cosines, select

NONE = [None] * len(TEXTS)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("given", ["texts", "arrays", "lists", "some"])
def test_equals_the_librarys_functions_to_the_bit(options, given):
    embedder = default_embedder()
    vectors = embedder.embed_documents(TEXTS)
    columns = {
        "texts": NONE,
        "arrays": [*vectors],
        "lists": vectors.tolist(),
        "some": [row if i % 2 else None for i, row in enumerate(vectors)],
    }[given]
    chosen = select(
        Candidates("documents", TEXTS, columns, NONE), SelectionOptions(**options), query=QUERY, embedder=embedder
    )
    assert list(zip(chosen.rows.tolist(), chosen.scores.tolist(), strict=True)) == expected(TEXTS, QUERY, **options)


def test_equals_compress():
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((200, 16)).astype(np.float32)
    vectors[100:150] = vectors[:50] + 0.05 * rng.standard_normal((50, 16))
    scores = rng.random(200)
    results = [ChunkResult(str(i), "", score, "", "", "some text") for i, score in enumerate(scores.tolist())]
    kept, stats = compress(results, vectors, top_n=40)
    chosen = select(
        Candidates("documents", ["some text"] * 200, [*vectors], scores.tolist()), SelectionOptions(top_n=40)
    )
    assert [int(each.chunk_id) for each in kept] == chosen.rows.tolist()
    for name in ("original_count", "after_threshold", "after_dedup", "clusters_merged"):
        assert chosen.stats[name] == getattr(stats, name)


def test_cosines_are_those_of_an_exact_search():
    embedder = default_embedder()
    vectors, query = embedder.embed_documents(TEXTS), embedder.embed_query(QUERY)
    index = CascadeIndex(dims=(256,))
    index.add(vectors)
    found = index.search(query[None], len(TEXTS), mode="exact")
    assert cosines(query[None], vectors)[found.ids[0]].astype(np.float32).tolist() == found.scores[0].tolist()


def test_breakdowns_are_plain_and_add_up():
    chosen = select(
        Candidates("documents", TEXTS, NONE, NONE), SelectionOptions(min_score=0.0, max_tokens=30), query=QUERY
    )
    breakdowns = chosen.breakdowns()
    assert json.loads(json.dumps(breakdowns)) == breakdowns
    assert [each["rank"] for each in breakdowns] == list(range(len(breakdowns)))
    assert sum(each["tokens"] for each in breakdowns) <= 30
    assert breakdowns[0]["duplicates"] == 1  # the sentence with an exclamation mark


def test_nothing_in_nothing_out():
    chosen = select(Candidates("documents", [], [], []), SelectionOptions(), query="")
    assert chosen.rows.tolist() == []
    assert set(chosen.stats.values()) == {0}
    assert chosen.breakdowns() == []


def test_no_vector_is_made_where_none_is_needed():
    class Refusing:
        def embed_documents(self, texts):
            raise AssertionError

        embed_query = embed_documents

    chosen = select(
        Candidates("documents", ["a", "b", "c"], [None] * 3, [0.5, 0.9, 0.2]),
        SelectionOptions(similarity_threshold=None),
        embedder=Refusing(),
    )
    assert chosen.rows.tolist() == [1, 0]


def test_an_error_of_a_callback_comes_out_as_it_is():
    def count(text):
        raise RuntimeError("no tokenizer")

    with pytest.raises(RuntimeError, match="no tokenizer"):
        select(
            Candidates("documents", TEXTS, NONE, NONE),
            SelectionOptions(0.0, max_tokens=9, count_tokens=count),
            query=QUERY,
        )


BAD = [
    ({"vectors": [[1.0, 2.0], None]}, "documents[1] has no embedding, and no embedder was given"),
    ({"vectors": [[1.0, 2.0], [1.0]]}, "embeddings of documents[1] has 1 numbers; embeddings of documents[0] has 2"),
    ({"vectors": [np.ones(2), [1.0]]}, "embeddings of documents[1] has 1 numbers; embeddings of documents[0] has 2"),
    ({"vectors": [[1.0, 2.0], [1.0, "x"]]}, "embeddings of documents[1][1] must be a number, not str"),
    ({"vectors": [np.ones(2), "x"]}, "embeddings of documents[1] must be a vector of numbers, not str"),
    ({"vectors": [[1.0, 2.0], [1.0, float("nan")]]}, "embeddings of documents has values that are not finite"),
    ({"scores": [0.5, None]}, "documents[1] has no score, but others have one"),
    ({"scores": [0.5, float("inf")]}, "documents[1] has the score inf; scores must be finite"),
    ({"texts": ["a", None], "scores": [None, None]}, "documents[1] has neither text nor embedding"),
    ({"vectors": [[1.0, 2.0], [2.0, 1.0]], "scores": [None, None]}, "give the embedder that made them, or scores"),
    ({"scores": [None, None], "query": None}, "documents have no scores: a query is needed to score them"),
    (
        {"vectors": [[1.0, 2.0], [2.0, 1.0]], "scores": [None, None], "embedder": HashEmbedder(3)},
        "the query's embedding has vectors of 3 values; 2 are wanted",
    ),
    (
        {"vectors": [[1.0, 2.0], None], "embedder": HashEmbedder(3)},
        "embeddings of documents[1] has 3 numbers; embeddings of documents[0] has 2",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_documents_are_named(change, message):
    columns = {"texts": ["a", "b"], "vectors": [None, None], "scores": [0.5, 0.6]} | change
    query, embedder = columns.pop("query", "q"), columns.pop("embedder", None)
    with pytest.raises((ValueError, TypeError)) as caught:
        select(Candidates("documents", **columns), SelectionOptions(), query=query, embedder=embedder)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_score": float("nan")}, "min_score must be between"),
        ({"similarity_threshold": 0.0}, "similarity_threshold must be between 0.001 and 1.0, not 0.0"),
        ({"lambda_": 1.5}, "lambda_ must be between 0.0 and 1.0, not 1.5"),
        ({"top_n": 0}, "top_n must be at least 1, not 0"),
        ({"max_tokens": -1}, "max_tokens must be at least 0, not -1"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        SelectionOptions(**options)
