import multiprocessing
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

from hsca_fast import CascadeIndex
from hsca_fast.vectors import storage
from hsca_fast.vectors.full_index import FaissTier

faiss = pytest.importorskip("faiss")
faiss.omp_set_num_threads(1)

DIMS = (8, 32)


def made(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 32)).astype(np.float32)


def index_of(factory, n=500):
    index = CascadeIndex(DIMS, thresholds=(1.0,), full_factory=factory)
    index.add(made(n), ids=np.arange(n) + 7)
    return index


@pytest.mark.parametrize("factory", ["HNSW16", "IVF4,Flat", "SQ8"])
def test_a_factory_index_is_the_last_tier(factory):
    index = index_of(factory)
    queries = made(30, seed=1)
    truth = index.search(queries, 5, mode="exact")
    result = index.search(queries, 5)
    hits = np.mean([len(set(a) & set(b)) for a, b in zip(result.ids, truth.ids, strict=True)]) / 5
    assert hits >= (0.95 if factory == "SQ8" else 0.3)
    # Scores are the exact ones whatever the index thinks.
    for line in range(30):
        known = dict(zip(truth.ids[line], truth.scores[line], strict=True))
        for id_, score in zip(result.ids[line], result.scores[line], strict=True):
            assert known.get(id_, score) == score
    allowed = index.ids[::3]
    filtered = index.search(queries, 5, allowed_ids=allowed)
    assert set(filtered.ids.ravel()) - {-1} <= set(allowed.tolist())
    index.remove(truth.ids[0])
    index.add(made(3, seed=8))
    assert not set(index.search(queries[0], 5).ids[0]) & set(truth.ids[0])


def test_bad_factories():
    with pytest.raises(ValueError, match="'Nonsense' is refused by FAISS"):
        CascadeIndex(DIMS, full_factory="Nonsense")
    with pytest.raises(TypeError, match="full_factory must be a str"):
        CascadeIndex(DIMS, full_factory=3)
    index = CascadeIndex(DIMS, thresholds=(1.0,), full_factory="IVF400,Flat")
    index.add(made(20))
    with pytest.warns(RuntimeWarning, match="cannot hold these 20 vectors yet .* searched natively"):
        found = index.search(made(1), 5)
    assert found.ids.tolist() == index.search(made(1), 5, mode="exact").ids.tolist()
    with pytest.raises(ValueError, match="'IDMap,Flat': the ids are kept here"):
        CascadeIndex(DIMS, full_factory="IDMap,Flat")


def test_the_file_is_a_cache(tmp_path, monkeypatch):
    index = index_of("HNSW16")
    queries = made(5, seed=1)
    expected = index.search(queries, 5)
    index.save(tmp_path)
    (path,) = tmp_path.glob("full-*.faiss")

    def no_build(self, rows):
        raise AssertionError("the cache was there")

    with monkeypatch.context() as patch:
        patch.setattr(FaissTier, "_build", no_build)
        assert CascadeIndex.load(tmp_path).search(queries, 5).ids.tolist() == expected.ids.tolist()
    data = path.read_bytes()
    parsed = []
    monkeypatch.setattr(FaissTier, "from_checked_bytes", lambda self, data, n: parsed.append(data))
    for damaged in (data[:-9], b"", data[:99] + bytes([data[99] ^ 4]) + data[100:]):
        path.write_bytes(damaged)
        with pytest.warns(RuntimeWarning, match="made again from the vectors"):
            loaded = CascadeIndex.load(tmp_path)
        assert loaded.search(queries, 5).ids.tolist() == expected.ids.tolist()
    assert not parsed  # damaged bytes never reach FAISS


def test_a_cache_that_is_gone_is_made_again(tmp_path):
    index = index_of("HNSW16")
    queries = made(5, seed=1)
    expected = index.search(queries, 5)
    index.save(tmp_path)
    (path,) = tmp_path.glob("full-*.faiss")
    path.unlink()
    with pytest.warns(RuntimeWarning, match=f"{path.name} is missing; it is made again from the vectors"):
        loaded = CascadeIndex.load(tmp_path)
    assert loaded.search(queries, 5).ids.tolist() == expected.ids.tolist()


def test_a_cache_that_a_writer_took_away_is_read_anew(tmp_path, monkeypatch):
    index = index_of("HNSW16")
    index.search(made(1), 1)
    index.save(tmp_path)
    real, saves = storage.Folder.blob, []

    def blob(self, kind):
        if not saves:  # the writer comes between the manifest and the file
            saves.append(1)
            index.add(made(5, seed=4))
            index.save(tmp_path)
        return real(self, kind)

    monkeypatch.setattr(storage.Folder, "blob", blob)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CascadeIndex.load(tmp_path).ntotal == 505


@pytest.mark.parametrize("factory", ["HNSW4", "IVF32,Flat"])
def test_a_filter_leaves_every_hit_it_allows(factory):
    # A walk through a graph, or a look at one list of many, passes by most of the few that are allowed.
    index = index_of(factory, 3000)
    queries = made(40, seed=1)
    for allowed in (index.ids[::150], index.ids[5:8]):
        found = index.search(queries, 10, allowed_ids=allowed)
        expected = index.search(queries, 10, allowed_ids=allowed, mode="exact")
        assert ((found.ids >= 0).sum(axis=1) == min(10, len(allowed))).all()
        assert (found.tier == 1).all()
        if len(allowed) < 10:
            assert found.ids.tolist() == expected.ids.tolist()
    assert (index.search(queries, 2000).ids >= 0).all()


@pytest.mark.parametrize("factory", ["HNSW16", "SQ8"])
def test_searches_beside_adds(factory):
    # FAISS must not grow under a search, and a search must not be told of rows that came after it.
    pool = made(3000)
    index = CascadeIndex(DIMS, thresholds=(1.0,), full_factory=factory)
    index.add(pool[:200])
    wrong, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            try:
                if (index.search(pool[:20], 3).ids < 0).any():
                    wrong.append("a hit is missing")
            except Exception as error:
                wrong.append(error)

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    for begin in range(200, len(pool), 100):
        index.add(pool[begin : begin + 100])
    stop.set()
    for asker in askers:
        asker.join()
    assert not wrong
    assert index.search(pool[-1], 1).ids.tolist() == [[2999]]


def test_rows_that_faiss_cannot_take_are_in_the_index(monkeypatch):
    index = index_of("SQ8")
    queries = made(3, seed=1)
    index.search(queries, 1)

    def fail(self, rows):
        raise MemoryError("std::bad_alloc")

    with monkeypatch.context() as patch:
        patch.setattr(FaissTier, "_append", fail)
        with pytest.warns(
            RuntimeWarning, match="could not take new vectors .*bad_alloc.* made again at the next search"
        ):
            index.add(queries)
    assert index.ntotal == 503
    assert index.search(queries, 1).ids.ravel().tolist() == [507, 508, 509]


def test_an_index_of_another_shape_is_not_taken():
    tier = FaissTier("HNSW16", 32)
    other = faiss.IndexHNSWFlat(32, 16, faiss.METRIC_INNER_PRODUCT)
    other.add(made(10))
    data = faiss.serialize_index(other).tobytes()
    limit = faiss.get_deserialization_vector_byte_limit()
    assert tier.from_checked_bytes(data, 10)
    assert not tier.from_checked_bytes(data, 11)
    flat = faiss.IndexFlatIP(32)
    flat.add(made(10))
    assert not tier.from_checked_bytes(faiss.serialize_index(flat).tobytes(), 10)
    assert not tier.from_checked_bytes(b"IHNf junk", 10)
    assert faiss.get_deserialization_vector_byte_limit() == limit


def _search_in_child(index, queries, connection):
    if not isinstance(index, CascadeIndex):
        index = index()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        connection.send((index.search(queries, 5).ids.tolist(), [str(w.message) for w in caught]))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("factory", ["Flat", "HNSW16"])
def test_search_in_a_forked_child(factory):
    index = index_of(factory)
    queries = made(5, seed=1)
    index.search(queries, 5)
    context = multiprocessing.get_context("fork")
    parent, child = context.Pipe()
    process = context.Process(target=_search_in_child, args=(index, queries, child))
    process.start()
    assert parent.poll(60)
    ids, messages = parent.recv()
    process.join(60)
    assert ids == index.search(queries, 5, mode="exact").ids.tolist()
    assert any("forked process" in message for message in messages) == (factory != "Flat")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("source", ["made", "loaded"])
def test_an_index_made_in_a_forked_child(source, tmp_path):
    index = index_of("HNSW16")
    queries = made(200, seed=1)
    faiss.omp_set_num_threads(2)  # the threads that a child does not have
    try:
        index.search(queries, 5)
        index.save(tmp_path)
        make = (lambda: index_of("HNSW16")) if source == "made" else (lambda: CascadeIndex.load(tmp_path))
        context = multiprocessing.get_context("fork")
        parent, child = context.Pipe()
        process = context.Process(target=_search_in_child, args=(make, queries, child))
        process.start()
        answered = parent.poll(30)
        if not answered:
            process.kill()
        assert answered
        ids, messages = parent.recv()
        process.join(60)
    finally:
        faiss.omp_set_num_threads(1)
    assert ids == index.search(queries, 5, mode="exact").ids.tolist()
    assert any("forked process" in message for message in messages)


def test_faiss_is_asked_for_by_name():
    code = """
import sys
sys.modules["faiss"] = None
import hsca_fast
hsca_fast.CascadeIndex((4, 8)).search([0.0] * 8)
try:
    hsca_fast.CascadeIndex((4, 8), full_factory="HNSW16")
except ImportError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "hsca_fast[faiss]" in said
