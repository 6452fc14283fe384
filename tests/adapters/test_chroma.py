"""Chroma with the real package."""

import numpy as np
import pytest
from adapter_cases import QUERY, TEXTS, expected, needs

needs("chromadb")

import chromadb
from chromadb.config import Settings

from hsca_fast import HashEmbedder, ModelMismatchError, SemanticIndex, default_embedder
from hsca_fast.adapters.chroma import HSCAEmbeddingFunction, import_collection, rerank

IDS = [f"id {i}" for i in range(len(TEXTS))]


@pytest.fixture
def client(tmp_path):
    return chromadb.PersistentClient(str(tmp_path / "chroma"), Settings(anonymized_telemetry=False))


def collection(client, embedder="default", texts=TEXTS):
    made = client.create_collection("lamps", embedding_function=HSCAEmbeddingFunction(embedder))
    made.add(ids=IDS[: len(texts)], documents=list(texts), metadatas=[{"i": i, "wing": "w"} for i in range(len(texts))])
    return made


def test_vectors_are_the_embedders_to_the_bit():
    function = HSCAEmbeddingFunction()
    assert np.array(function(TEXTS)).tolist() == default_embedder().embed_documents(TEXTS).tolist()
    assert function.embed_query([QUERY])[0].tolist() == default_embedder().embed_query(QUERY).tolist()
    assert (function.name(), function.default_space()) == ("hsca_fast", "cosine")


def test_a_collection_remembers_its_function(client):
    collection(client)
    again = client.get_collection("lamps")  # no function given: Chroma builds it from the stored configuration
    found = again.query(query_texts=[QUERY], n_results=3)
    vectors = default_embedder().embed_documents(TEXTS)
    order = np.argsort(-(vectors @ default_embedder().embed_query(QUERY)), kind="stable")[:3]
    assert found["ids"][0] == [IDS[i] for i in order]


def test_a_collection_is_not_opened_with_another_function(client):
    collection(client, HashEmbedder(256))
    with pytest.raises(ValueError, match="Embedding function conflict: new: hsca_fast vs persisted: hsca_fast_"):
        client.get_collection("lamps", embedding_function=HSCAEmbeddingFunction())
    with pytest.raises(ValueError, match="Embedding function conflict"):
        client.get_or_create_collection("lamps", embedding_function=HSCAEmbeddingFunction(HashEmbedder(128)))
    again = client.get_collection("lamps", embedding_function=HSCAEmbeddingFunction(HashEmbedder(256)))
    assert again.query(query_texts=[TEXTS[2]], n_results=1)["ids"] == [[IDS[2]]]


def test_an_embedder_of_your_own(client):
    collection(client, HashEmbedder(32))
    assert client.get_collection("lamps").query(query_texts=[TEXTS[2]], n_results=1)["ids"] == [[IDS[2]]]


def test_another_model_under_the_same_name_is_refused():
    config = HSCAEmbeddingFunction().get_config()
    assert HSCAEmbeddingFunction.build_from_config(config).get_config() == config
    with pytest.raises(ModelMismatchError, match="refused"):
        HSCAEmbeddingFunction.build_from_config(config | {"fingerprint": "static:other"})
    with pytest.raises(ModelMismatchError):
        HSCAEmbeddingFunction().validate_config_update(config, config | {"dim": 3})
    with pytest.raises(ValueError, match="has no fingerprint"):
        HSCAEmbeddingFunction.build_from_config({"embedder": "default", "model": "m", "dim": 3})
    with pytest.raises(ValueError, match="give it to HSCAEmbeddingFunction first"):
        HSCAEmbeddingFunction.build_from_config(config | {"embedder": None, "fingerprint": "unknown"})
    with pytest.raises(ValueError, match="embedder must be one of default, minilm, not 'bert'"):
        HSCAEmbeddingFunction("bert")


@pytest.mark.parametrize("with_vectors", [True, False])
def test_rerank_equals_the_library_to_the_bit(client, with_vectors):
    include = ["documents", "metadatas", "distances", *(["embeddings"] if with_vectors else [])]
    results = collection(client).query(query_texts=[QUERY, "bread"], n_results=len(TEXTS), include=include)
    ranked = rerank(results, [QUERY, "bread"], embedder=default_embedder(), min_score=0.0, lambda_=0.6, top_n=3)
    for q, query in enumerate([QUERY, "bread"]):
        # As rows of what Chroma returned, since ties go to the earlier one.
        own = expected(results["documents"][q], query, min_score=0.0, lambda_=0.6, top_n=3)
        assert ranked["ids"][q] == [results["ids"][q][row] for row, _ in own]
        assert [each["score"] for each in ranked["hsca"][q]] == [score for _, score in own]
        assert ranked["documents"][q] == [results["documents"][q][row] for row, _ in own]
        assert ranked["distances"][q] == [results["distances"][q][row] for row, _ in own]
    assert ranked["included"] == results["included"]


def test_rerank_by_distances_and_bad_results(client):
    results = collection(client).query(query_texts=[QUERY], n_results=4, include=["documents", "distances"])
    ranked = rerank(results, space="cosine", similarity_threshold=None)
    assert ranked["ids"] == results["ids"]
    assert [each["score"] for each in ranked["hsca"][0]] == [1.0 - d for d in results["distances"][0]]
    with pytest.raises(ValueError, match="queries has 2 elements for 1 result lists"):
        rerank(results, ["a", "b"])
    with pytest.raises(ValueError, match="the results have no distances"):
        rerank({"ids": [["a"]]}, space="cosine")
    for other in ({}, {"ids": ["a", "b"], "documents": ["a", "b"]}):
        with pytest.raises(ValueError, match=r"results must be what collection\.query returned"):
            rerank(other, [QUERY])
    with pytest.raises(ValueError, match="space must be"):
        rerank(results, space="dot")
    empty = {"ids": [[]], "documents": [[]], "distances": [[]], "metadatas": None, "embeddings": None}
    assert rerank(empty, [QUERY])["ids"] == [[]]


def test_import_keeps_vectors_and_can_be_repeated(client, tmp_path):
    source = collection(client)
    seen = []
    with import_collection(
        source, tmp_path / "index", embedder=default_embedder(), batch_size=3, progress=lambda *at: seen.append(at)
    ) as index:
        assert seen[-1] == (len(TEXTS), len(TEXTS))
        records = [record for batch in index.iter_records() for record in batch]
        assert [(record.turn_id, record.text, record.metadata) for record in records] == [
            (IDS[i], TEXTS[i], {"i": i, "wing": "w"}) for i in range(len(TEXTS))
        ]
        vectors = index.vectors([record.id for record in records])
        assert vectors.tolist() == np.array(source.get(include=["embeddings"])["embeddings"]).tolist()
        assert index.model.fingerprint == default_embedder().fingerprint
        assert index.query(QUERY, 1, where={"wing": "w"})[0].turn_id in IDS
    source.add(ids=["late"], documents=["A late record."])
    with import_collection(source, tmp_path / "index", embedder=default_embedder()) as index:
        assert index.count() == len(TEXTS) + 1


def test_import_says_what_has_changed_since_the_last(client, tmp_path):
    source = collection(client)
    import_collection(source, tmp_path / "index", embedder=default_embedder()).close()
    source.update(ids=[IDS[1]], documents=["Another text."])
    source.update(ids=[IDS[3]], metadatas=[{"i": 33}])
    with (
        pytest.warns(UserWarning, match=r"^2 records of lamps have changed since .* the first is 'id 1'"),
        import_collection(source, tmp_path / "index", embedder=default_embedder(), batch_size=3) as index,
    ):
        assert [record.text for batch in index.iter_records() for record in batch] == TEXTS


def test_import_refuses_another_model_and_writes_nothing(client, tmp_path):
    source = collection(client)
    for embedder in (HashEmbedder(256), HashEmbedder(32)):
        with pytest.raises(ModelMismatchError):
            import_collection(source, tmp_path / "index", embedder=embedder)
    plain = client.create_collection("plain", embedding_function=None)
    plain.add(ids=["a"], documents=["one two"], embeddings=[[1.0] + [0.0] * 31])
    with pytest.raises(ModelMismatchError, match=r"makes another vector of 'one two' than collection plain"):
        import_collection(plain, tmp_path / "index", embedder=HashEmbedder(32))
    assert not (tmp_path / "index").exists()
    with import_collection(plain, tmp_path / "index", embedder=HashEmbedder(32), verify=0) as index:
        assert index.count() == 1


def test_import_names_a_record_without_a_document(client, tmp_path):
    plain = client.create_collection("plain", embedding_function=None)
    plain.add(ids=["bare"], embeddings=[[1.0, 0.0]])
    with pytest.raises(ValueError, match="the record 'bare' of plain has no document"):
        import_collection(plain, tmp_path / "index", embedder=HashEmbedder(2))
    SemanticIndex.open(tmp_path / "index", embedder=HashEmbedder(2)).close()  # it was let go of


def test_import_of_nothing(client, tmp_path):
    with import_collection(
        client.create_collection("empty", embedding_function=None), tmp_path / "i", embedder=HashEmbedder(4)
    ) as index:
        assert index.count() == 0
