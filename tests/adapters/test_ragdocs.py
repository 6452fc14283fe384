"""The shape of ragdocs' reply, over any results."""

from types import SimpleNamespace

import numpy as np
import pytest

from hsca_fast import ChunkResult, compress
from hsca_fast.adapters.ragdocs import query_documents_compressed

VECTORS = [[1.0, 0.0], [0.99, 0.1], [0.0, 1.0], [0.1, 0.99]]
RESULTS = [
    {"chunk_id": "a", "doc_id": "d", "score": 0.7, "header_path": "", "file_path": "", "content": "one"},
    {"chunk_id": "b", "doc_id": "d", "score": 0.9, "header_path": "", "file_path": "", "content": "two"},
    {"chunk_id": "c", "doc_id": "d", "score": 0.5, "header_path": "", "file_path": "", "content": "three"},
    {"chunk_id": "e", "doc_id": "d", "score": 0.1, "header_path": "", "file_path": "", "content": "four"},
]


def test_the_seeds_reply():
    reply = query_documents_compressed(RESULTS, VECTORS, answer="why")
    assert reply == {
        "answer": "why",
        "results": [RESULTS[1], RESULTS[2]],
        "compression_stats": {"original_count": 4, "after_threshold": 3, "after_dedup": 2, "clusters_merged": 1},
    }
    assert reply["results"][0] is RESULTS[1]


def test_equals_compress():
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((100, 8)).astype(np.float32)
    results = [ChunkResult(f"c{i}", "d", float(score), "", "", "text") for i, score in enumerate(rng.random(100))]
    kept, stats = compress(results, vectors, min_score=0.2, similarity_threshold=0.8, top_n=30)
    reply = query_documents_compressed(results, vectors, min_score=0.2, similarity_threshold=0.8, top_n=30)
    assert reply["results"] == kept
    assert reply["compression_stats"].items() <= stats.to_dict().items()


@pytest.mark.parametrize("kind", [dict, SimpleNamespace])
def test_embeddings_of_the_results_themselves(kind):
    results = [kind(**result, embedding=vector) for result, vector in zip(RESULTS, VECTORS, strict=True)]
    assert query_documents_compressed(results)["results"] == [results[1], results[2]]


def test_empty_and_bad_results():
    assert query_documents_compressed([])["compression_stats"]["original_count"] == 0
    with pytest.raises(ValueError, match=r"results\[1\] has no score"):
        query_documents_compressed([{"score": 0.1}, {}], [[1.0], [2.0]])
    with pytest.raises(ValueError, match=r"results\[0\] has no embedding"):
        query_documents_compressed(RESULTS)
    with pytest.raises(ValueError, match="top_n must be at most 100, not 101"):
        query_documents_compressed(RESULTS, VECTORS, top_n=101)


def test_rows_of_other_lengths_are_named():
    found = [{"score": 0.9}, {"score": 0.8}]
    for embeddings in ([[1.0, 0.0], [1.0]], [[1, 0], (1,)]):
        with pytest.raises(ValueError, match=r"embeddings\[1\] has 1 numbers; embeddings\[0\] has 2"):
            query_documents_compressed(found, embeddings)
