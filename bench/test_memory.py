"""The store beside its peers: appends, opening, queries; see bench/README.md.

Texts are made of words with the frequencies of language, vectors at random; 100,000 records of 384 dimensions. Each
append job writes them in batches of 1,000, durable one by one.
"""

import gc
import os
import sqlite3
import time
from collections import Counter

import faiss
import numpy as np
import pytest

from hsca_fast import SemanticIndex
from hsca_fast.memory.search import match_expression
from hsca_fast.vectors.embedder import CallableEmbedder

N = int(os.environ.get("HSCA_BENCH_RECORDS", "100000"))
DIM, BATCH, WORDS = 384, 1000, 45
faiss.omp_set_num_threads(1)


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfw"))
    vocabulary = ["".join(rng.choice(letters, rng.integers(2, 10))) for _ in range(30_000)]
    drawn = np.minimum(rng.zipf(1.3, size=(N, WORDS)), len(vocabulary)) - 1
    return [" ".join(vocabulary[i] for i in row) for row in drawn]


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(1).standard_normal((N, DIM), dtype=np.float32)


def embedder():
    return CallableEmbedder(lambda texts: np.ones((len(texts), DIM)), name="given", dim=DIM)


def batches():
    return range(0, N, BATCH)


def append_store(path, texts, vectors):
    index = SemanticIndex.open(path, embedder=embedder())
    for begin in batches():
        part = slice(begin, begin + BATCH)
        index.append(texts[part], embeddings=vectors[part], role="user", turn_id="t")
    return index


def append_blobs(path, texts, vectors):
    """One table, vectors as blobs, the same durability."""
    os.makedirs(path)
    connection = sqlite3.connect(path / "blobs.sqlite3", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(
        "CREATE TABLE records (n INTEGER PRIMARY KEY, id BLOB, text TEXT, role TEXT, turn TEXT, time REAL, vector BLOB)"
    )
    for begin in batches():
        part = zip(texts[begin : begin + BATCH], vectors[begin : begin + BATCH], strict=True)
        rows = [(os.urandom(16), text, "user", "t", time.time(), vector.tobytes()) for text, vector in part]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO records VALUES (NULL, ?, ?, ?, ?, ?, ?)", rows)
        connection.execute("COMMIT")
    return connection


def append_lance(path, texts, vectors):
    """LanceDB syncs nothing; its rows are not durable when it returns."""
    lancedb = pytest.importorskip("lancedb")
    import pyarrow as pa

    table = None
    database = lancedb.connect(path)
    for begin in batches():
        part = slice(begin, begin + BATCH)
        flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors[part].ravel()), DIM)
        data = pa.table({"text": texts[part], "vector": flat})
        if table is None:
            table = database.create_table("records", data)
        else:
            table.add(data)
    return table


def count(made):
    if isinstance(made, SemanticIndex):
        return made.count()
    if isinstance(made, sqlite3.Connection):
        return made.execute("SELECT count(*) FROM records").fetchone()[0]
    return made.count_rows()


@pytest.mark.parametrize("append", [append_store, append_blobs, append_lance])
@pytest.mark.benchmark(group="append 100k x 384, a commit a 1,000")
def test_append(benchmark, tmp_path, texts, vectors, append):
    runs = iter(range(100))
    made = []

    def fresh():
        made.clear()
        gc.collect()
        return (tmp_path / str(next(runs)), texts, vectors), {}

    benchmark.pedantic(lambda *arguments: made.append(append(*arguments)), setup=fresh, rounds=5)
    benchmark.extra_info["records_per_second"] = N / benchmark.stats["min"]
    assert count(made[0]) == N


@pytest.fixture(scope="module")
def store(tmp_path_factory, texts, vectors):
    path = tmp_path_factory.mktemp("store") / "store"
    with append_store(path, texts, vectors) as index:
        index.compact()
    return path


@pytest.mark.benchmark(group="open a store of 100k")
def test_open(benchmark, store):
    def opened():
        with SemanticIndex.open(store, embedder=embedder()) as index:
            return index.count()

    assert benchmark(opened) == N


QUERIES = 40


@pytest.fixture(scope="module")
def queries(texts):
    """Words as people ask with: none of those that are in every text."""
    rng = np.random.default_rng(2)
    seen = Counter(word for text in texts[:2000] for word in set(text.split()))
    words = []
    for i in rng.integers(0, N, QUERIES):
        own = sorted({word for word in texts[i].split() if seen[word] < 100})
        words.append(" ".join(rng.choice(own, min(6, len(own)), replace=False)))
    return list(zip(words, rng.standard_normal((QUERIES, DIM), dtype=np.float32), strict=True))


@pytest.mark.benchmark(group="query 100k x 384, both arms")
def test_query(benchmark, store, queries):
    by_text = dict(queries)
    asked = CallableEmbedder(
        lambda texts: np.ones((len(texts), DIM)),
        query_fn=lambda texts: [by_text[t] for t in texts],
        name="given",
        dim=DIM,
    )
    with SemanticIndex.open(store, embedder=asked, mode="r") as index:
        index.query(queries[0][0])  # checks the vectors, once
        at = iter(range(10**9))
        hits = benchmark.pedantic(lambda: index.query(queries[next(at) % QUERIES][0], k=10), rounds=3 * QUERIES)
        assert len(hits) == 10


@pytest.mark.benchmark(group="query 100k x 384, both arms")
def test_query_bare(benchmark, store, queries, vectors):
    """FAISS over the same vectors, and the same expression to FTS5 over the same texts, top 10 of each."""
    flat = faiss.IndexFlatIP(DIM)
    flat.add(vectors)
    connection = sqlite3.connect(store / "catalog.sqlite3")
    sql = "SELECT rowid, rank FROM lexical WHERE lexical MATCH ? ORDER BY rank LIMIT 10"
    expressions = [match_expression(text) for text, _ in queries]
    at = iter(range(10**9))

    def both():
        i = next(at) % QUERIES
        return flat.search(queries[i][1][None], 10), connection.execute(sql, (expressions[i],)).fetchall()

    (_, found), rows = benchmark.pedantic(both, rounds=3 * QUERIES)
    assert (found >= 0).all()
    assert rows
