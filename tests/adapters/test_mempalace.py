"""MemPalace with the real package: its backend contract (RFC 001), and what it keeps through crashes.

The assertions of MemPalace's own conformance suite, which is not in its wheel, run by tools/mempalace_conformance.py.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from adapter_cases import needs

needs("mempalace")

from mempalace.backends import (
    BackendClosedError,
    BackendError,
    CollectionNotInitializedError,
    DimensionMismatchError,
    PalaceNotFoundError,
    PalaceRef,
    UnsupportedCapabilityError,
    UnsupportedFilterError,
    available_backends,
    detect_backend_for_path,
    get_backend,
    reset_backends,
)
from mempalace.backends.base import EmbedderIdentity

from hsca_fast.adapters.mempalace import HSCABackend

NAME = "mempalace_drawers"


def ref(path):
    return PalaceRef(id=str(path), local_path=str(path))


@pytest.fixture
def backend():
    backend = HSCABackend()
    yield backend
    backend.close()


@pytest.fixture
def drawers(backend, tmp_path):
    drawers = backend.get_collection(palace=ref(tmp_path), collection_name=NAME, create=True)
    drawers.add(
        ids=["a", "b", "c"],
        documents=["alpha vector memory", "beta exact memory", "gamma filtered memory"],
        metadatas=[
            {"wing": "alpha", "room": "notes", "chunk": 0, "filed_at": "2026-01-01"},
            {"wing": "alpha", "room": "lab", "chunk": 1, "filed_at": "2026-03-01"},
            {"wing": "gamma", "room": "notes", "chunk": 2, "filed_at": "2026-02-01"},
        ],
        embeddings=[[1.0, 0.0], [0.0, 1.0], [0.2, 0.8]],
    )
    return drawers


def test_mempalace_finds_the_backend():
    assert "hsca" in available_backends()
    assert isinstance(get_backend("hsca"), HSCABackend)
    reset_backends()
    assert HSCABackend.spec_version == "1.0"


def test_round_trip(drawers):
    assert drawers.count() == drawers.estimated_count() == 3
    found = drawers.query(query_embeddings=[[1.0, 0.0], [0.0, 1.0]], n_results=2)
    assert found.ids == [["a", "c"], ["b", "c"]]
    assert found.documents[0][0] == "alpha vector memory"
    assert found.distances[0][0] == pytest.approx(0.0, abs=1e-6)
    assert found.distances[0][1] == pytest.approx(1 - 0.2 / np.hypot(0.2, 0.8), abs=1e-6)
    assert found.embeddings is None
    got = drawers.get(ids=["c", "nothing", "a"], include=["documents", "embeddings"])
    assert (got.ids, got.documents, got.metadatas) == (["c", "a"], ["gamma filtered memory", "alpha vector memory"], [])
    assert np.allclose(got.embeddings, [[0.2, 0.8], [1.0, 0.0]])


def test_empty_results_keep_their_shape(backend, tmp_path, drawers):
    empty = backend.get_collection(palace=ref(tmp_path), collection_name="empty", create=True)
    for collection, where in ((empty, None), (drawers, {"wing": "none"})):
        found = collection.query(query_embeddings=[[1.0, 0.0]] * 2, where=where, include=["embeddings"])
        assert (found.ids, found.documents, found.metadatas, found.distances) == ([[], []],) * 4
        assert found.embeddings == [[], []]
        assert collection.get(where={"wing": "none"}).ids == []
    assert empty.count() == 0


def test_upsert_update_delete(drawers):
    drawers.upsert(
        ids=["a", "d"], documents=["again", "delta"], metadatas=[{"wing": "new"}, None], embeddings=[[0.5, 0.5]] * 2
    )
    assert drawers.count() == 4
    assert drawers.get(ids=["a"]).metadatas == [{"wing": "new"}]
    drawers.update(ids=["b", "nothing"], metadatas=[{"room": "attic"}, {}])
    changed = drawers.get(ids=["b"], include=["documents", "metadatas", "embeddings"])
    assert changed.metadatas[0] == {"wing": "alpha", "room": "attic", "chunk": 1, "filed_at": "2026-03-01"}
    assert (changed.documents, changed.embeddings) == (["beta exact memory"], [[0.0, 1.0]])
    drawers.delete(where={"wing": "alpha"})
    drawers.delete(ids=["nothing"])
    assert drawers.get().ids == ["c", "a", "d"]
    drawers.delete(ids=["a", "c"], where={"wing": "new"})
    assert drawers.get().ids == ["c", "d"]
    assert drawers.query(query_embeddings=[[0.0, 1.0]], n_results=9).ids == [["c", "d"]]


def test_the_last_of_equal_ids_is_upserted_and_add_refuses_them(drawers):
    drawers.upsert(ids=["x", "x"], documents=["one", "two"], embeddings=[[1.0, 0.0], [0.0, 1.0]])
    assert drawers.get(ids=["x"]).documents == ["two"]
    for ids in (["y", "y"], ["y", "a"]):
        with pytest.raises(ValueError, match=r"ids\[1\] is .* which is there already: use upsert"):
            drawers.add(ids=ids, documents=["1", "2"], embeddings=[[1.0, 0.0]] * 2)
    assert drawers.count() == 4


def test_pages_tile(backend, tmp_path):
    drawers = backend.get_collection(palace=ref(tmp_path), collection_name=NAME, create=True)
    ids = [f"d{i}" for i in range(11)]
    drawers.add(
        ids=ids, documents=ids, metadatas=[{"even": i % 2 == 0} for i in range(11)], embeddings=[[1.0, 2.0]] * 11
    )
    for where, wanted in ((None, ids), ({"even": True}, ids[::2])):
        pages = [drawers.get(limit=4, offset=offset, where=where).ids for offset in range(0, 12, 4)]
        assert [each for page in pages for each in page] == wanted
    assert drawers.get(offset=9).ids == ["d9", "d10"]
    assert drawers.get(limit=0).ids == []
    assert drawers.get(limit=-1).ids == ids[:-1]
    assert drawers.get(offset=-2).ids == ids[-2:]


def test_whole_collection_readers(drawers):
    assert drawers.get_all_metadata({"wing": "gamma"})[0]["chunk"] == 2
    assert drawers.get_all_rows(include=["documents"]).documents[0] == "alpha vector memory"
    assert drawers.get_recent(limit=2).ids == ["b", "c"]
    assert drawers.get_recent(limit=9, where={"room": "notes"}, include=["metadatas"]).ids == ["c", "a"]
    assert drawers.facet_counts("wing") == {"alpha": 2, "gamma": 1}
    assert drawers.facet_counts("room", where={"wing": "alpha"}, limit=1) == {"lab": 1}
    assert [hit.id for hit in drawers.lexical_search(query="exact memory", n_results=1).hits] == ["b"]
    assert [hit.id for hit in drawers.lexical_search(query="memory", where={"wing": "gamma"}).hits] == ["c"]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"wing": {"$eq": "alpha"}}, ["a", "b"]),
        ({"wing": {"$ne": "alpha"}}, ["c"]),
        ({"chunk": {"$in": [0, 2]}}, ["a", "c"]),
        ({"chunk": {"$nin": [0, 2]}}, ["b"]),
        ({"$and": [{"wing": "alpha"}, {"chunk": {"$gte": 1}}]}, ["b"]),
        ({"$or": [{"wing": "gamma"}, {"chunk": {"$lt": 1}}]}, ["a", "c"]),
        ({"room": {"$contains": "ote"}}, ["a", "c"]),
        ({"$and": [{"wing": "alpha"}], "room": "lab"}, ["b"]),
    ],
)
def test_required_filters(drawers, where, ids):
    assert drawers.get(where=where).ids == ids
    assert sorted(drawers.query(query_embeddings=[[1.0, 1.0]], where=where).ids[0]) == ids
    assert drawers.get(ids=["c", "a"], where=where).ids == [each for each in ("c", "a") if each in ids]


@pytest.mark.parametrize(
    "where",
    [
        {"wing": {"$regex": "a"}},
        {"$nor": [{"wing": "a"}]},
        {"$and": []},
        {"$or": [{"a": {"$near": 1}}]},
        {"wing": {"$in": "a"}},
        {"a": {}},
        [1],
        {"chunk": {"$gt": True}},
        {"chunk": {"$lt": None}},
        {"turn_id": {"$lte": float("nan")}},
        {"a": {"$exists": 1}},
        {"a": {1}},
        {"a": {"$contains": None}},
        {5: 1},
        {"$and": [{"$or": [{"chunk": {"$gte": [1]}}]}]},
    ],
)
def test_unknown_filters_are_refused(drawers, where):
    with pytest.raises(UnsupportedFilterError):
        drawers.get(where=where)
    with pytest.raises(UnsupportedFilterError):
        drawers.query(query_embeddings=[[1.0, 1.0]], where=where)
    with pytest.raises(UnsupportedFilterError):
        drawers.delete(where=where)
    assert drawers.count() == 3


def test_a_refused_filter_is_named_as_it_was_given(drawers):
    with pytest.raises(UnsupportedFilterError, match=r"^'turn_id'\['\$gt'\] must be a number or a str, not bool$"):
        drawers.get(where={"turn_id": {"$gt": True}})


def test_facets_are_counted_as_text(backend, tmp_path):
    drawers = backend.get_collection(palace=ref(tmp_path), collection_name=NAME, create=True)
    values = ["a", "a", "b", 1, 2.5, True, None]
    drawers.add(
        ids=[*map(str, range(8))],
        documents=["x"] * 8,
        metadatas=[*({"room": value, "role": value} for value in values), {}],
        embeddings=np.eye(8),
    )
    wanted = {"a": 2, "1": 1, "2.5": 1, "True": 1, "b": 1}
    assert drawers.facet_counts("room") == drawers.facet_counts("role") == wanted
    drawers.delete(ids=["5", "6"])
    for field in ("room", "role"):
        assert drawers.facet_counts(field) == drawers._store.facets(field) == {"a": 2, "b": 1, "1": 1, "2.5": 1}
    assert drawers.facet_counts("room", where={"room": {"$ne": "a"}}) == {"1": 1, "2.5": 1, "b": 1}
    assert drawers.facet_counts("nothing") == {}


def test_text_filters(drawers):
    assert drawers.get(where_document={"$contains": "exact"}).ids == ["b"]
    assert drawers.query(query_embeddings=[[1.0, 0.0]], where_document={"$not_contains": "exact"}).ids == [["a", "c"]]
    with pytest.raises(UnsupportedFilterError):
        drawers.get(where_document={"$regex": "e"})


def test_bad_input_writes_nothing(drawers):
    good = {"ids": ["x", "y"], "documents": ["x", "y"], "metadatas": [{}, {}], "embeddings": [[1.0, 0.0]] * 2}
    cases = [
        ({"embeddings": [[1.0, 0.0, 0.0]] * 2}, DimensionMismatchError, "has vectors of 2 dimensions, and 3 are given"),
        (
            {"embeddings": [[1.0, 0.0], [1.0]]},
            DimensionMismatchError,
            r"embeddings\[1\] has 1 numbers; embeddings\[0\] has 2",
        ),
        ({"embeddings": [[1.0, 0.0], [1.0, float("nan")]]}, ValueError, "not finite float32 numbers in 1 row: 1"),
        ({"embeddings": None}, ValueError, "needs embeddings"),
        (
            {"metadatas": [{}, {5: 1}]},
            TypeError,
            r"metadatas\[1\] must be a mapping with keys that are str, not {5: 1}",
        ),
        ({"metadatas": [{}, "wing"]}, TypeError, r"metadatas\[1\] must be a mapping"),
        ({"metadatas": [{}, {"when": {1, 2}}]}, ValueError, r"metadata\[1\] is not JSON"),
        ({"documents": ["x", None]}, TypeError, r"chunks\[1\] must be"),
        ({"documents": ["x"]}, ValueError, "documents length 1 does not match ids length 2"),
    ]
    for change, error, message in cases:
        for write in (drawers.add, drawers.upsert):
            with pytest.raises(error, match=message):
                write(**(good | change))
    with pytest.raises(DimensionMismatchError):
        drawers.query(query_embeddings=[[1.0, 0.0, 0.0]])
    with pytest.raises(DimensionMismatchError):
        drawers.update(ids=["a"], embeddings=[[1.0]])
    with pytest.raises(ValueError, match="needs query_embeddings"):
        drawers.query(query_texts=["x"])
    with pytest.raises(ValueError, match="query_embeddings is empty"):
        drawers.query(query_embeddings=[])
    assert drawers.get().ids == ["a", "b", "c"]


def test_unicode_and_strange_names(backend, tmp_path):
    for name in ("mempalace_drawers", "../escape", "日本 語", ".", "a/b", "é" * 100, "é" * 101):
        collection = backend.get_collection(palace=ref(tmp_path), collection_name=name, create=True)
        collection.upsert(
            ids=["ид/№1 💡", ""], documents=["текст", ""], metadatas=[{"ключ": "знач"}, {}], embeddings=[[1.0]] * 2
        )
        assert collection.get(where={"ключ": "знач"}).ids == ["ид/№1 💡"]
        assert collection.count() == 2
    assert sorted(os.listdir(tmp_path)) == ["hsca"]


def test_large_batch(backend, tmp_path):
    drawers = backend.get_collection(palace=ref(tmp_path), collection_name=NAME, create=True)
    rows = np.random.default_rng(6).standard_normal((10_001, 4)).astype(np.float32)
    ids = [f"d{i}" for i in range(len(rows))]
    drawers.upsert(ids=ids, documents=ids, embeddings=rows.tolist())
    assert drawers.count() == len(rows)
    assert drawers.query(query_embeddings=[rows[777].tolist()], n_results=1).ids == [["d777"]]


def test_creating_and_missing(backend, tmp_path):
    with pytest.raises(PalaceNotFoundError):
        backend.get_collection(palace=ref(tmp_path / "p"), collection_name=NAME)
    with pytest.raises(PalaceNotFoundError):
        backend.get_collection(palace=PalaceRef(id="x"), collection_name=NAME, create=True)
    assert not (tmp_path / "p").exists()
    for _ in range(2):
        backend.get_collection(palace=ref(tmp_path / "p"), collection_name=NAME, create=True)
    assert (tmp_path / "p").stat().st_mode & 0o777 == 0o700
    assert detect_backend_for_path(str(tmp_path / "p")) == "hsca"
    with pytest.raises(CollectionNotInitializedError, match="'other'"):
        backend.get_collection(palace=ref(tmp_path / "p"), collection_name="other")
    with pytest.raises(UnsupportedCapabilityError):
        backend.get_collection(
            palace=PalaceRef(str(tmp_path), str(tmp_path), "tenant"), collection_name=NAME, create=True
        )


def test_persistence_closing_and_deleting(backend, drawers, tmp_path):
    backend.close_palace(ref(tmp_path))
    assert not drawers.health().ok
    with pytest.raises(BackendClosedError):
        drawers.count()
    again = backend.get_collection(palace=ref(tmp_path), collection_name=NAME)
    assert again.get().ids == ["a", "b", "c"]
    assert backend.health(ref(tmp_path)).ok
    assert again.maintenance_state()["row_count"] == 3
    backend.delete_collection(str(tmp_path), NAME)
    with pytest.raises(CollectionNotInitializedError):
        backend.get_collection(palace=ref(tmp_path), collection_name=NAME)
    backend.close()
    with pytest.raises(BackendClosedError):
        backend.get_collection(palace=ref(tmp_path), collection_name=NAME, create=True)
    with pytest.raises(BackendClosedError):
        again.count()


def test_the_model_is_remembered(backend, tmp_path):
    drawers = backend.get_collection(palace=ref(tmp_path), collection_name=NAME, create=True)
    assert drawers.get_stored_embedder_identity() is None
    drawers.set_embedder_identity(EmbedderIdentity("all-minilm", 2))
    drawers.upsert(ids=["a"], documents=["a"], embeddings=[[1.0, 2.0]])
    assert drawers._store._index.model.name == "all-minilm"
    backend.close_palace(ref(tmp_path))
    again = backend.get_collection(palace=ref(tmp_path), collection_name=NAME)
    assert again.get_stored_embedder_identity() == EmbedderIdentity("all-minilm", 2)


def test_read_only_and_two_writers(backend, drawers, tmp_path):
    other = HSCABackend()
    reader = other.get_collection(palace=ref(tmp_path), collection_name=NAME, options={"read_only": True})
    assert reader.count() == 3
    with pytest.raises(PermissionError):
        reader.upsert(ids=["x"], documents=["x"], embeddings=[[1.0, 0.0]])
    second = other.get_collection(palace=ref(tmp_path), collection_name=NAME, options={"timeout": 0.0})
    with pytest.raises(BackendError, match="is written by process"):
        second.upsert(ids=["x"], documents=["x"], embeddings=[[1.0, 0.0]])
    drawers.upsert(ids=["x"], documents=["x"], embeddings=[[1.0, 0.0]])
    assert reader.count() == second.count() == 4
    other.close()


def test_palaces_opened_at_once(backend, tmp_path):
    failed = []

    def work(i):
        try:
            drawers = backend.get_collection(palace=ref(tmp_path / str(i % 4)), collection_name=NAME, create=True)
            for j in range(5):
                drawers.upsert(ids=[f"{i}-{j}"], documents=["x"], embeddings=[[1.0, float(j)]])
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    counts = [backend.get_collection(palace=ref(tmp_path / str(i)), collection_name=NAME).count() for i in range(4)]
    assert counts == [10] * 4


WRITER = """
import json, random, sys
from mempalace.backends import PalaceRef, get_backend
path, seed = sys.argv[1], int(sys.argv[2])
drawers = get_backend("hsca").get_collection(
    palace=PalaceRef(id=path, local_path=path), collection_name="mempalace_drawers", create=True
)
rng = random.Random(seed)
print("ready", flush=True)
for step in range(100_000):
    ids = rng.sample([f"d{i}" for i in range(400)], rng.randrange(1, 12))
    texts = None if rng.random() < 0.2 else {each: f"{each} {seed} {step}" for each in ids}
    print(json.dumps(texts or dict.fromkeys(ids)), flush=True)
    if texts is None:
        drawers.delete(ids=ids)
    else:
        vectors = [[float(step % 97), float(seed), 1.0]] * len(ids)
        drawers.upsert(ids=ids, documents=[*texts.values()], metadatas=[{"step": step}] * len(ids), embeddings=vectors)
    print("done", flush=True)
"""


def kill_trial(path, seed, state):
    """Runs a writer, kills it, and checks all it acknowledged. `state` has the text of each drawer, or None; returns commits."""
    command = [sys.executable, "-W", "ignore", "-c", WRITER, str(path), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(random.Random(seed).uniform(0.0, 0.3))
        finally:
            child.kill()
        lines = child.stdout.read().split("\n")[:-1]  # without what was not written to its end
    under_way = {}
    for line in lines:
        if line == "done":
            state |= under_way
            under_way = {}
        else:
            under_way = json.loads(line)
    backend = HSCABackend()
    got = backend.get_collection(palace=ref(path), collection_name=NAME).get(include=["documents", "embeddings"])
    backend.close()
    found = dict(zip(got.ids, got.documents, strict=True))
    for each in {*state, *found}:
        assert found.get(each) in {state.get(each), under_way.get(each, state.get(each))}, each
    for text, vector in zip(got.documents, got.embeddings or [], strict=True):
        _, writer, step = text.split()
        assert vector == [float(int(step) % 97), float(writer), 1.0]
    state.clear()
    state |= found
    return lines.count("done")


def run_kill_trials(path, n):
    state = {}
    return sum(kill_trial(path, seed, state) for seed in range(n))


def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(tmp_path):
    assert run_kill_trials(tmp_path, 3) > 0


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_in_a_hundred_kills(tmp_path, capsys):
    commits = run_kill_trials(tmp_path, 100)
    with capsys.disabled():
        print(f"\n100 kills, {commits} acknowledged commits, 0 lost")
    assert commits > 100
