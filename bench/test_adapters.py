"""The adapters beside the front ends' own parts, and beside this library called by itself; see bench/README.md.

HSCA_BENCH_DRAWERS says how many drawers a palace has (50000 takes Chroma some minutes to fill).
"""

import os
import warnings
from functools import partial

import numpy as np
import pytest

import hsca_fast
from hsca_fast.adapters.selection import cosines

N_DRAWERS = int(os.environ.get("HSCA_BENCH_DRAWERS", "10000"))
WORDS = "lamp keeper boat harbour night sea wind bread flour salt rope tide".split()


def made(n, width=384, seed=1):
    """Vectors in clusters, every fourth a near-duplicate of another."""
    rng = np.random.default_rng(seed)
    rows = 0.5 * rng.standard_normal((200, width))[rng.integers(0, 200, n)] + rng.standard_normal((n, width))
    rows[3::4] = rows[2::4][: len(rows[3::4])] + 0.02 * rng.standard_normal((len(rows[3::4]), width))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def texts(n):
    rng = np.random.default_rng(2)
    return [" ".join(WORDS[i] for i in row) + "." for row in rng.integers(0, len(WORDS), (n, 40))]


# ---- LangChain: near-duplicates among 2,000 documents whose embeddings are given, as lists, as LangChain has them


@pytest.fixture(scope="module")
def documents():
    community = pytest.importorskip("langchain_community.document_transformers.embeddings_redundant_filter")
    return [
        community._DocumentWithState(page_content=str(i), state={"embedded_doc": row})
        for i, row in enumerate(made(2000).astype(float).tolist())
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["hsca_fast", "hsca_fast, all CPUs", "langchain"])
def test_redundant_documents(benchmark, documents, name):
    from langchain_community.document_transformers import EmbeddingsRedundantFilter
    from langchain_core.embeddings import DeterministicFakeEmbedding

    from hsca_fast.adapters.langchain import HSCARedundantFilter

    benchmark.group = "langchain: 2,000 documents without near-duplicates"
    own = HSCARedundantFilter(threads=0 if "all" in name else 1)
    theirs = EmbeddingsRedundantFilter(embeddings=DeterministicFakeEmbedding(size=2))
    filtering = theirs if name == "langchain" else own
    kept = benchmark.pedantic(filtering.transform_documents, (documents,), rounds=30, warmup_rounds=2)
    # One of each pair: they keep the later, we the earlier.
    assert len(kept) == len(own.transform_documents(documents)) == 1500


# ---- LlamaIndex, Haystack: a call beside the library's own functions over the same values, and beside a call that does nothing,
# which is what the front end costs by itself. The adapter's overhead is what is left of its call without these two.

QUERY = "who saw the lamp?"
JOBS = {
    "given": (2000, {"min_score": None, "similarity_threshold": 0.85, "top_n": 50}),
    "texts": (200, {"min_score": None, "similarity_threshold": 0.85, "top_n": 5}),
}
GROUPS = {
    "given": "selection of 50 from 2,000 with given vectors",
    "texts": "selection of 5 from 200 texts, embedded on the way",
}


def values(job):
    n, options = JOBS[job]
    if job == "texts":
        return texts(n), [None] * n, [None] * n, options
    return texts(n), made(n).astype(float).tolist(), np.random.default_rng(3).random(n).tolist(), options


def library_call(contents, vectors, scores, options):
    embedder = hsca_fast.default_embedder()

    def call():
        rows, numbers = vectors, scores
        if vectors[0] is None:
            rows = embedder.embed_documents(contents)
            numbers = cosines(embedder.embed_query(QUERY)[None], rows)
        found = hsca_fast.deduplicate(rows, numbers, threshold=options["similarity_threshold"])
        return found.keep[: options["top_n"]].tolist()

    return call


def llamaindex_call(contents, vectors, scores, options, does_nothing=False):
    schema = pytest.importorskip("llama_index.core.schema")
    from hsca_fast.adapters.llamaindex import HSCAPostprocessor

    class Nothing(HSCAPostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            return nodes

    nodes = [
        schema.NodeWithScore(node=schema.TextNode(text=text, embedding=vector, metadata={"row": i}), score=score)
        for i, (text, vector, score) in enumerate(zip(contents, vectors, scores, strict=True))
    ]
    postprocessor = (Nothing if does_nothing else HSCAPostprocessor)(embedder=hsca_fast.default_embedder(), **options)
    query = schema.QueryBundle(QUERY)
    return lambda: [
        node.node.metadata["row"] for node in postprocessor.postprocess_nodes(nodes, query)[: options["top_n"]]
    ]


def haystack_call(contents, vectors, scores, options, does_nothing=False):
    haystack = pytest.importorskip("haystack")
    from hsca_fast.adapters.haystack import HSCARanker

    given = [
        haystack.Document(id=str(i), content=text, embedding=vector, score=score, meta={"row": i})
        for i, (text, vector, score) in enumerate(zip(contents, vectors, scores, strict=True))
    ]
    ranker = HSCARanker("default", **{{"top_n": "top_k"}.get(name, name): value for name, value in options.items()})
    run = (lambda query, documents: {"documents": documents}) if does_nothing else ranker.run
    return lambda: [document.meta["row"] for document in run(QUERY, given)["documents"][: options["top_n"]]]


CALLS = {
    "library": library_call,
    "llamaindex": llamaindex_call,
    "llamaindex, doing nothing": partial(llamaindex_call, does_nothing=True),
    "haystack": haystack_call,
    "haystack, doing nothing": partial(haystack_call, does_nothing=True),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("job", JOBS)
def test_overhead(benchmark, job, name):
    benchmark.group = GROUPS[job]
    found = benchmark.pedantic(CALLS[name](*values(job)), rounds=60, warmup_rounds=2)
    assert "nothing" in name or found == library_call(*values(job))()


# ---- MemPalace: its default backend and ours, through its own interface


@pytest.fixture(scope="module")
def palaces(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        backends = pytest.importorskip("mempalace.backends")
        rows = made(N_DRAWERS)
        opened = {}
        for name in ("chroma", "hsca"):
            path = str(tmp_path_factory.mktemp(name))
            opened[name] = backends.get_backend(name).get_collection(
                palace=backends.PalaceRef(id=path, local_path=path), collection_name="mempalace_drawers", create=True
            )
            for start in range(0, N_DRAWERS, 1000):
                part = range(start, min(N_DRAWERS, start + 1000))
                opened[name].upsert(
                    ids=[f"drawer_{i}" for i in part],
                    documents=[" ".join(WORDS[(i * 7 + j * j) % len(WORDS)] for j in range(60)) for i in part],
                    metadatas=[
                        {
                            "wing": f"w{i % 10}",
                            "room": f"r{i % 50}",
                            "source_file": f"{i // 20}.md",
                            "filed_at": "2026-01-01",
                        }
                        for i in part
                    ],
                    embeddings=rows[part.start : part.stop].tolist(),
                )
        yield opened, rows
        backends.reset_backends()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["hsca", "chroma"])
@pytest.mark.parametrize("where", [None, {"wing": "w3"}], ids=["whole palace", "one wing"])
def test_drawers(benchmark, palaces, name, where):
    opened, rows = palaces
    benchmark.group = f"mempalace: 10 of {N_DRAWERS} drawers, {'one wing' if where else 'whole palace'}"
    rng = np.random.default_rng(5)
    asked = rows[rng.integers(0, len(rows), 100)] + 0.01 * rng.standard_normal((100, rows.shape[1]))
    queries = iter(np.tile(asked, (4, 1)).tolist())
    collection = opened[name]

    allowed = np.arange(len(rows)) if where is None else np.arange(3, len(rows), 10)
    recalls = []
    for query in asked[:20].tolist():
        best = allowed[np.argsort(-(rows[allowed] @ np.float32(query)))[:10]]
        found = collection.query(query_embeddings=[query], n_results=10, where=where).ids[0]
        recalls.append(len({f"drawer_{i}" for i in best} & set(found)) / 10)
    benchmark.extra_info["recall"] = np.mean(recalls)
    assert np.mean(recalls) >= (0.999 if name == "hsca" else 0.8)
    benchmark.pedantic(
        lambda query: collection.query(query_embeddings=[query], n_results=10, where=where),
        setup=lambda: ((next(queries),), {}),
        rounds=200 if where is None else 30,
        warmup_rounds=5,
    )
