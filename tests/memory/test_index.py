"""The semantic index: what goes in comes out, and what is asked for is found."""

import math
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsca_fast import (
    HashEmbedder,
    ModelMismatchError,
    SearchSettings,
    SemanticIndex,
    StoreLocked,
    default_embedder,
    fuse_scores,
    verify_store,
)
from hsca_fast._reference import centred
from hsca_fast.memory.catalog import Catalog
from hsca_fast.memory.filters import _TESTS, Column
from hsca_fast.memory.search import top_rows
from hsca_fast.vectors.embedder import CallableEmbedder, unit_rows
from hsca_fast.vectors.storage import DamagedIndexError

NUMBERS = st.sampled_from([0, 1, 1.0, -0.0, 0.5, 2**53, 2**53 + 1, float(2**53), 10**400, -(10**400), 1e308])
JSON_VALUES = NUMBERS | st.sampled_from([True, False, None, "1", "a", [1], {"a": 1}])
TEXTS = ["The lamp is broken.", "We sail at dawn.", "The harbour is full of fog.", "Bring rope and a spare lamp."]


@pytest.fixture
def index(tmp_path):
    with SemanticIndex.open(tmp_path / "store", embedder=HashEmbedder(32)) as index:
        yield index


def all_records(index, **options):
    return [record for batch in index.iter_records(**options) for record in batch]


# ---- append, get, iterate


def test_records_come_back(index):
    ids = index.append(
        TEXTS, turn_id="t1", role=["user", "assistant"] * 2, metadata=[{"n": i, "é": [None, True, 1.5]} for i in range(4)],
        timestamps=[4.0, 3.0, 2.0, 1.0],
    )  # fmt: skip
    assert len(set(ids)) == 4
    for i, record in enumerate(index.get_many(ids)):
        assert (record.id, record.sequence, record.text, record.turn_id) == (ids[i], i + 1, TEXTS[i], "t1")
        assert (record.sentence_id, record.timestamp) == (i, 4.0 - i)
        assert record.metadata == {"n": i, "é": [None, True, 1.5]}
        assert (record.status, record.reference_count, record.last_access) == ("live", 0, None)
        assert (record.superseded_by, record.compacted_into) == (None, None)
    assert [record.role for record in all_records(index)] == ["user", "assistant"] * 2
    assert np.array_equal(index.vectors(ids[::-1]), HashEmbedder(32).embed_documents(TEXTS)[::-1])
    assert (index.count(), len(index), index.generation) == (4, 4, 1)


def test_an_append_within_an_append_is_refused(index):
    """Both would write their vectors to the same place."""
    with pytest.raises(RuntimeError, match="was begun by the embedder, or the progress"):
        index.append(["a", "b"], progress=lambda *_: index.append(["c"]))
    assert index.count() == 0
    index.append(TEXTS)
    assert index.verify().ok


def test_progress_of_the_embedder_is_told(tmp_path):
    """An append is written in blocks of thousands of records; a slow embedder is heard more often than that."""
    told = []
    with SemanticIndex.open(
        tmp_path, embedder=CallableEmbedder(lambda texts: np.ones((len(texts), 4)), name="slow", dim=4, batch_size=2)
    ) as index:
        index.append([*TEXTS, "and one"], progress=lambda done, of: told.append((done, of)))
    assert told == [(2, 5), (4, 5), (5, 5)]


def test_the_reason_of_an_archived_record(index):
    (id_,) = index.append(["lamp"])
    index.archive([id_], reason="repaired")
    assert index.get(id_).reason == "repaired"
    index.restore([id_])
    assert index.get(id_).reason == ""


def test_nothing_is_written_to_a_folder_that_is_no_store(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for _ in range(2):
        with pytest.raises(DamagedIndexError, match=r"has no manifest\.json but is not empty \(notes\.txt\)"):
            SemanticIndex.open(tmp_path, embedder=HashEmbedder(4))
    assert os.listdir(tmp_path) == ["notes.txt"]
    (tmp_path / "manifest.json").write_text('{"format": "theirs"}')
    with pytest.raises(DamagedIndexError, match="is not the manifest of a store"):
        SemanticIndex.open(tmp_path, embedder=HashEmbedder(4))
    assert sorted(os.listdir(tmp_path)) == ["manifest.json", "notes.txt"]
    with pytest.raises(ValueError, match="path is empty"):
        SemanticIndex.open("", embedder=HashEmbedder(4))


@given(st.lists(JSON_VALUES, max_size=12), JSON_VALUES, st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]))
def test_columns_compare_as_single_values_do(values, operand, operator):
    column = Column()
    column.extend(values)
    expected = [_TESTS[operator](operand)(value) for value in values]
    assert column.where(operator, operand).tolist() == expected


def test_a_store_opens_again_with_everything(tmp_path):
    with SemanticIndex.open(tmp_path, embedder=HashEmbedder(8)) as index:
        ids = index.append(TEXTS)
        index.touch(ids[:2])
        index.archive(ids[2:3], reason="old")
        store_id = index.store_id
        before = all_records(index, include_archived=True)
    for mode in ("r", "a"):
        with SemanticIndex.open(tmp_path, embedder=HashEmbedder(8), mode=mode) as index:
            assert all_records(index, include_archived=True) == before
            assert index.store_id == store_id
            assert [hit.id for hit in index.query("dawn", vector=False)] == [ids[1]]


def test_chunks_keep_their_place(index):
    chunk = SimpleNamespace(text="a b", n_tokens=7, sentence_id=3, start=0, end=3)
    (id_,) = index.append([chunk], turn_id="x")
    record = index.get(id_)
    assert (record.n_tokens, record.sentence_id, record.turn_id) == (7, 3, "x")


def test_without_a_turn_an_append_is_one(index):
    first, second = index.append(["a", "b"]), index.append(["c"])
    turns = [record.turn_id for record in index.get_many([*first, *second])]
    assert turns[0] == turns[1] != turns[2]


def test_iteration_by_parts(index):
    index.append([f"text {i}" for i in range(23)], metadata=[{"odd": bool(i % 2)} for i in range(23)])
    index.delete([all_records(index)[4].id])
    whole = all_records(index)
    assert len(whole) == 22
    for size in (1, 5, 22, 100):
        batches = list(index.iter_records(size))
        assert [record for batch in batches for record in batch] == whole
        assert all(len(batch) == size for batch in batches[:-1])
    assert all_records(index, after=20) == whole[-3:]
    assert [r.sequence for r in all_records(index, where={"odd": True}, batch_size=3)] == list(range(2, 24, 2))


def test_iteration_does_not_see_what_comes_later(index):
    index.append(TEXTS)
    batches = index.iter_records(2)
    next(batches)
    index.append(["later"] * 9)
    assert sum(map(len, batches)) == 2


def test_empty_in_empty_out(index):
    assert index.append([]) == []
    assert index.append([], embeddings=np.empty((0, 32))) == []
    assert (index.generation, index.count()) == (0, 0)
    assert index.query("anything") == []
    assert index.get_many([]) == []
    assert index.vectors([]).shape == (0, 32)
    assert all_records(index) == []
    assert list(index.access_log()) == []
    index.append(TEXTS)
    assert index.query("lamp", k=0) == []
    assert index.query("", vector=False) == []


@pytest.mark.parametrize(
    "text", ["", "a\0b", "\0", "\ufeffx", "שלום 👩‍👩‍👧 é", "\u202e\u0301", "x" * 100_000, "\U0010ffff"]
)
def test_any_text_survives(index, text):
    (id_,) = index.append([text], metadata={"text": text}, turn_id=text, role=text)
    record = index.get(id_)
    assert (record.text, record.turn_id, record.role, record.metadata) == (text, text, text, {"text": text})


# ---- ids


def test_given_ids(index):
    ids = [f"{i:032x}" for i in (10**30, 2, 5)]
    assert index.append(["a", "b", "c"], ids=ids) == ids
    assert [record.text for record in index.get_many(ids)] == ["a", "b", "c"]
    with pytest.raises(ValueError, match=rf"ids\[1\] is {ids[2]}, which is in the store already"):
        index.append(["x", "y"], ids=["0" * 32, ids[2]])
    assert index.count() == 3
    assert index.append(["x", "y"], ids=["0" * 32, ids[2]], on_conflict="skip") == ["0" * 32, ids[2]]
    assert [record.text for record in all_records(index)] == ["a", "b", "c", "x"]
    assert index.append(["x"], ids=ids[:1], on_conflict="skip", embeddings=np.ones((1, 32))) == ids[:1]


def test_ids_of_ours_are_known_too(index):
    ids = index.append(TEXTS)
    with pytest.raises(ValueError, match="in the store already"):
        index.append(["again"], ids=ids[:1])
    index.delete(ids[:1])
    with pytest.raises(ValueError, match="in the store already"):
        index.append(["again"], ids=ids[:1])
    with pytest.raises(KeyError, match="0123456789abcdef"):
        index.get("0123456789abcdef" * 2)
    with pytest.raises(KeyError):
        index.get(ids[0][:16] + "0" * 16)


# ---- search


def test_both_arms_are_reported(tmp_path):
    with SemanticIndex.open(tmp_path, embedder=default_embedder()) as index:
        ids = index.append(TEXTS)
        hits = index.query("which lamp?", k=4)
        assert {hits[0].id, hits[1].id} == {ids[0], ids[3]}
        for hit in hits:
            assert (hit.lexical_score is None) == (hit.lexical_rank is None) == (hit.id not in (ids[0], ids[3]))
            assert hit.vector_score == pytest.approx(
                index.vectors([hit.id])[0] @ default_embedder().embed_query("which lamp?")
            )
        settings = index.settings
        fused = fuse_scores(
            [
                {hit.id: hit.vector_score for hit in hits},
                {hit.id: hit.lexical_score for hit in hits if hit.lexical_score is not None},
            ],
            weights=[settings.vector_weight, settings.lexical_weight],
        )
        assert {hit.id: hit.score for hit in hits} == pytest.approx(dict(fused), rel=1e-6)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        only = index.query("which lamp?", vector=False)
        assert {hit.id for hit in only} == {ids[0], ids[3]}
        assert all(hit.score == hit.lexical_score > 0 and hit.vector_score is None for hit in only)
        only = index.query("which lamp?", lexical=False)
        assert all(hit.score == hit.vector_score and hit.lexical_score is None for hit in only)
        by_vector = index.query(default_embedder().embed_query("which lamp?"))
        assert [(hit.id, hit.score) for hit in by_vector] == [(hit.id, hit.score) for hit in only]


def test_vector_arm_is_exact(tmp_path):
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(3000, 16)).astype(np.float32)
    vectors[7] = 0.0
    vectors[100] = vectors[200] = vectors[300]
    with SemanticIndex.open(tmp_path, embedder=HashEmbedder(16)) as index:
        for part in np.array_split(np.arange(3000), 7):
            index.append([""] * len(part), embeddings=vectors[part])
        for query in (vectors[100], rng.normal(size=16)):
            unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
            cosines = unit @ (query / np.linalg.norm(query))
            expected = sorted(range(3000), key=lambda i: (-round(float(cosines[i]), 5), i))[:10]
            hits = index.query(query)
            assert [hit.sequence - 1 for hit in hits] == expected
            assert [hit.score for hit in hits] == pytest.approx(cosines[expected], abs=1e-5)


def test_filters_come_before_the_cut(index):
    index.append([f"lamp {i}" for i in range(500)], metadata=[{"room": "big"}] * 499 + [{"room": "small"}])
    for options in ({}, {"vector": False}, {"lexical": False}):
        (hit,) = index.query("lamp 3", k=5, where={"room": "small"}, **options)
        assert hit.text == "lamp 499"


def test_filters_that_leave_many(index):
    index.append([f"lamp {i}" for i in range(9000)], metadata=[{"half": i % 2} for i in range(9000)])
    hits = index.query("lamp", k=50, where={"half": 1}, vector=False)
    assert [hit.sequence for hit in hits] == list(range(2, 102, 2))


WHERE = [
    ({"wing": "work"}, [0, 2]),
    ({"wing": {"$ne": "work"}}, [1, 3]),
    ({"wing": {"$in": ["home", "work"]}}, [0, 1, 2]),
    ({"wing": {"$nin": ["home"]}}, [0, 2, 3]),
    ({"wing": {"$exists": False}}, [3]),
    ({"n": {"$gte": 1, "$lt": 3}}, [1, 2]),
    ({"n": {"$gt": 1}}, [2, 3]),
    ({"n": {"$lte": 1.0}}, [0, 1]),
    ({"n": 2.0}, [2]),
    ({"flag": True}, [0]),
    ({"flag": 1}, [1]),
    ({"role": "user"}, [0, 1]),
    ({"turn_id": "t3"}, [3]),
    ({"timestamp": {"$gte": 12.0}}, [2, 3]),
    ({"$or": [{"n": 0}, {"wing": {"$exists": False}}]}, [0, 3]),
    ({"$and": [{"wing": "work"}, {"n": {"$gt": 0}}]}, [2]),
    ({"$not": {"wing": "work"}}, [1, 3]),
    ({"wing": "work", "n": 0}, [0]),
    ({"tags": ["a", "b"]}, [2]),
    ({"nested": {"x": 1}}, [3]),
    ({}, [0, 1, 2, 3]),
    ({"nobody": "has"}, []),
    ({"sentence_id": {"$gte": 2}}, [2, 3]),
]


@pytest.mark.parametrize(("where", "expected"), WHERE)
def test_where(index, where, expected):
    index.append(
        TEXTS, role=["user", "user", "assistant", ""], turn_id=["t0", "t1", "t2", "t3"], timestamps=[10.0, 11.0, 12.0, 13.0],
        metadata=[
            {"wing": "work", "n": 0, "flag": True}, {"wing": "home", "n": 1, "flag": 1}, {"wing": "work", "n": 2, "tags": ["a", "b"]},
            {"n": 3, "nested": {"x": 1}},
        ],
    )  # fmt: skip
    assert [record.sequence - 1 for record in all_records(index, where=where)] == expected
    assert index.count(where) == len(expected)
    assert {hit.sequence - 1 for hit in index.query(np.ones(32), where=where)} == set(expected)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"$xor": []}, "unknown operator '\\$xor'"),
        ({"a": {"$regex": "x"}}, "unknown operator '\\$regex'"),
        ({"a": {"$in": "abc"}}, "must be a list, not str"),
        ({"a": {"$exists": 1}}, "must be a bool"),
        ({"a": {"$gt": None}}, "must be a number or a str"),
        ({"$or": []}, "list of one or more"),
        ({"$not": [1]}, "must be a mapping, not list"),
        ({"a": {1, 2}}, "not JSON"),
        ("wing", "must be a mapping, not str"),
    ],
)
def test_bad_where(index, where, message):
    index.append(TEXTS)
    for call in (
        index.count,
        lambda where: index.query("a", where=where),
        lambda where: index.iter_records(where=where),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call(where)


def test_records_near_the_position_gain(index):
    index.append(["lamp"] * 50)
    assert [hit.sequence for hit in index.query("lamp", k=3)] == [1, 2, 3]
    near = index.query("lamp", k=50, context_position=-1)
    assert [hit.sequence for hit in near] == list(range(50, 0, -1))
    plain = {hit.sequence: hit.score for hit in index.query("lamp", k=50)}
    assert set(plain.values()) == {0.5}
    gains = [hit.score - plain[hit.sequence] for hit in near]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] == pytest.approx(-gains[-1])
    assert 0.02 < gains[0] < 0.05
    assert index.query("lamp", k=50, context_position=50) == index.query("lamp", k=50, context_position=-1)


@given(st.lists(st.integers(-3, 3), max_size=40), st.integers(1, 12), st.data())
def test_top_rows_equals_sorting(values, k, data):
    scores = np.array(values, np.float32)
    allowed = data.draw(st.none() | st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    rows = [i for i in range(len(values)) if allowed is None or allowed[i]]
    expected = sorted(rows, key=lambda i: (-values[i], i))[:k]
    assert top_rows(scores, k, None if allowed is None else np.array(allowed, bool)) == expected


def test_neighbours_lift_a_record(tmp_path):
    def embed(texts):
        return [[float("lamp" in text), float("sea" in text), 0.1] for text in texts]

    embedder = CallableEmbedder(embed, name="two words", dim=3)
    for weight, first in ((0.3, 2), (0.0, 1)):
        settings = SearchSettings(neighbour_weight=weight)
        with SemanticIndex.open(tmp_path / str(weight), embedder=embedder, settings=settings) as index:
            index.append(["sea lamp"], metadata={"session": "a"})
            index.append(["lamp", "sea lamp", "lamp"], metadata={"session": "b"})
            index.append(["lamp"], metadata={"session": "a"})
            index.append(["sea lamp", "lamp"])
            hits = {hit.sequence: hit for hit in index.query(embed(["sea lamp"])[0], lexical=False)}
            assert min(hits, key=lambda sequence: hits[sequence].vector_rank) == (3 if first == 2 else 1)
            assert hits[6].vector_score == hits[1].vector_score == hits[3].vector_score


def leaning(n, dim=8, seed=0):
    """Vectors that all lean to one side."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, dim)) + 2.0).astype(np.float32)


def open_leaning(path, n, **options):
    vectors = leaning(n)
    index = SemanticIndex.open(path, embedder=HashEmbedder(8), **options)
    for begin in range(0, n, 37):  # the mean grows with the store
        part = vectors[begin : begin + 37]
        index.append([f"word{begin + i}" for i in range(len(part))], embeddings=part)
        index.query("word1", 1)
    return index, vectors


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n", [63, 64, 150])
def test_vectors_of_a_fused_search_are_apart_from_their_mean(tmp_path, n, weight):
    index, vectors = open_leaning(tmp_path / "index", n, settings=SearchSettings(mean_weight=weight))
    with index:
        hits = index.query("word7", 10)
        asked = index.embedder.embed_query("word7")
        mean = centred.mean_vector(vectors[: 1 << (n.bit_length() - 1)].tolist()) if n >= 64 else [0.0] * 8
        expected = [centred.centred_cosine(asked.tolist(), row, mean, weight) for row in vectors.tolist()]
        ranks = {row + 1: rank for rank, row in enumerate(sorted(range(n), key=lambda row: -expected[row]))}
        for hit in hits:
            assert hit.vector_rank == ranks[hit.sequence]
        plain = index.query("word7", 10, lexical=False)  # a lone arm is what it is
    cosines = unit_rows(vectors) @ unit_rows(asked[None])[0]
    assert [hit.sequence for hit in plain] == (np.argsort(-cosines)[:10] + 1).tolist()
    assert [hit.vector_score for hit in plain] == pytest.approx(np.sort(cosines)[::-1][:10].tolist(), abs=1e-6)


def test_a_store_that_grew_finds_what_one_opened_later_finds(tmp_path):
    index, _ = open_leaning(tmp_path / "index", 200)
    with index:
        grown = [(hit.id, hit.score) for hit in index.query("word150 word3", 20)]
        with SemanticIndex.open(tmp_path / "index", embedder=HashEmbedder(8), mode="r") as reader:
            assert [(hit.id, hit.score) for hit in reader.query("word150 word3", 20)] == grown


def test_alike_and_empty_vectors_have_no_direction_of_their_own(index):
    index.append(["same"] * 70, embeddings=np.ones((70, 32), np.float32))
    (empty,) = index.append(["nothing"], embeddings=np.zeros((1, 32), np.float32))
    hits = index.query("same", 71)
    assert all(math.isfinite(hit.score) for hit in hits)
    assert hits[-1].id == empty


# ---- what becomes of records


def test_use_is_counted(index):
    ids = index.append(TEXTS)
    index.touch(ids[:2], query="lamps?", session="s", at=5.0)
    index.touch([ids[0], ids[0]], at=4.0)
    index.touch([])
    assert [(r.reference_count, r.last_access) for r in index.get_many(ids)] == [
        (3, 5.0),
        (1, 5.0),
        (0, None),
        (0, None),
    ]
    assert list(index.access_log()) == [(5.0, "lamps?", "s", ids[:2]), (4.0, "", "", [ids[0], ids[0]])]
    assert list(index.access_log(since=5.0)) == [(5.0, "lamps?", "s", ids[:2])]
    assert index.n_accesses == 2
    assert [row[0] for row in index.access_log(after=1)] == [4.0]
    assert [row[0] for row in index.access_log(before=1)] == [5.0]
    assert list(index.access_log(since=5.0, after=1, before=9)) == []
    with pytest.raises(ValueError, match="after must be at least 0, not -1"):
        index.access_log(after=-1)
    before = index.generation
    index.query("lamp")
    assert index.generation == before


def test_what_a_query_would_look_at(index):
    ids = index.append(TEXTS, metadata=[{"wing": wing} for wing in ("a", "b", "a", "b")])
    index.archive(ids[:1], reason="stale")
    assert index.passing(ids[::-1]) == ids[:0:-1]
    assert index.passing(ids, {"wing": "a"}) == [ids[2]]
    assert index.passing([]) == []
    with pytest.raises(KeyError):
        index.passing(["0" * 32])
    with pytest.raises(ValueError, match="unknown operator"):
        index.passing(ids, {"wing": {"$like": "a"}})


def test_archive_restore_delete(index):
    ids = index.append(TEXTS)
    index.archive(ids[:2], reason="stale")
    assert index.count() == 2
    assert index.count(include_archived=True) == 4
    assert ids[0] not in {hit.id for hit in index.query("lamp")}
    assert ids[0] in {hit.id for hit in index.query("lamp", include_archived=True)}
    index.restore(ids[:1])
    assert index.get(ids[0]).status == "live"
    index.delete(ids[:2])
    assert {hit.id for hit in index.query("lamp", include_archived=True)} == set(ids[2:])
    assert index.get(ids[1]).status == "deleted"
    with pytest.raises(ValueError, match="record 1 is deleted; it cannot become live"):
        index.restore(ids)
    assert index.get(ids[2]).status == "live"
    with pytest.raises(KeyError):
        index.delete([ids[2], "f" * 32])
    assert index.get(ids[2]).status == "live"


def test_supersede(index):
    ids = index.append(TEXTS)
    index.supersede(ids[0], ids[3])
    assert index.get(ids[0]).superseded_by == ids[3]
    assert ids[0] in {hit.id for hit in index.query("lamp")}
    with pytest.raises(ValueError, match="cannot supersede itself"):
        index.supersede(ids[0], ids[0])
    with pytest.raises(ValueError, match="itself superseded"):
        index.supersede(ids[3], ids[0])
    with pytest.raises(KeyError):
        index.supersede(ids[0], "0" * 32)


def test_resurrection_spends_its_budget(index):
    chunks = [SimpleNamespace(text=text, n_tokens=n, sentence_id=0) for text, n in
              [("lamp", 5), ("lamp sea", 5), ("lamp sea fog", 5), ("rope", 1)]]  # fmt: skip
    ids = index.append(chunks)
    assert [hit.id for hit in index.resurrect("lamp", budget=11)] == ids[:2]
    assert [record.reference_count for record in index.get_many(ids)] == [1, 1, 0, 0]
    assert next(index.access_log())[1:] == ("lamp", "", ids[:2])
    assert len(index.resurrect("lamp", max_results=1)) == 1
    assert index.resurrect("lamp", budget=4) == []
    with pytest.raises(ValueError, match="budget must be at least 0, not -1"):
        index.resurrect("lamp", budget=-1)


# ---- writers and readers


def test_one_writer_many_readers(tmp_path):
    with SemanticIndex.open(tmp_path, embedder=HashEmbedder(8)) as writer:
        with pytest.raises(StoreLocked, match=rf"written by process {os.getpid()} on ") as caught:
            SemanticIndex.open(tmp_path, embedder=HashEmbedder(8))
        assert caught.value.pid == os.getpid()
        with SemanticIndex.open(tmp_path, embedder=HashEmbedder(8), mode="r") as reader:
            assert reader.count() == 0
            ids = writer.append(TEXTS, metadata={"a": 1})
            assert reader.count() == 4
            assert reader.count({"a": 1}) == 4
            writer.archive(ids[:1], reason="x")
            assert {hit.id for hit in reader.query("lamp")} == set(ids[1:])
            writer.append(["lamp again"], metadata={"a": 1})
            assert reader.query("again", vector=False)[0].text == "lamp again"
            assert reader.count({"a": 1}) == 4
            for write in (lambda: reader.append(["x"]), lambda: reader.delete(ids), lambda: reader.touch(ids)):
                with pytest.raises(PermissionError, match='open with mode "r"'):
                    write()
    with SemanticIndex.open(tmp_path, embedder=HashEmbedder(8), timeout=1.0) as writer:
        assert writer.count() == 4


def test_a_commit_while_a_reader_opens_is_no_damage(tmp_path, monkeypatch):
    """The head is read before the tip: the other way round a commit between the two looks like a lost one."""
    with SemanticIndex.open(tmp_path, embedder=HashEmbedder(32)) as index:
        index.append(["one"])
        true_tip, calls = Catalog.tip, []

        def tip_then_commit(catalog):
            tip = true_tip(catalog)
            if not catalog.write:
                calls.append(tip)
                index.append([f"text {len(calls)}"])
            return tip

        monkeypatch.setattr(Catalog, "tip", tip_then_commit)
        with SemanticIndex.open(tmp_path, embedder=HashEmbedder(32), mode="r") as reader:
            assert reader.count() >= 1
        assert verify_store(tmp_path).ok
    assert len(calls) >= 2


def test_readers_search_text_that_is_not_indexed_yet(tmp_path):
    with SemanticIndex.open(tmp_path, embedder=HashEmbedder(8)) as writer:
        writer.append([f"stone {i}" for i in range(700)])
        with SemanticIndex.open(tmp_path, embedder=HashEmbedder(8), mode="r") as reader:
            assert [hit.sequence for hit in reader.query("699", vector=False)] == [700]
            writer.append(["gull 699"])
            assert {hit.sequence for hit in reader.query("699", vector=False)} == {700, 701}
            writer.query("stone")
            assert {hit.sequence for hit in reader.query("699", vector=False)} == {700, 701}


def test_threads_share_an_index(index):
    errors = []

    def work(name):
        try:
            for i in range(20):
                (id_,) = index.append([f"{name} {i}"])
                assert index.get(id_).text == f"{name} {i}"
                assert index.query(f"{name} {i}", k=3)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("gull", "rope", "net")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert index.count() == 60


# ---- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"chunks": "text"}, "chunks must be a sequence of str or Chunk, not str"),
        ({"chunks": ["a", 3]}, r"chunks\[1\] must be a str or a Chunk, not int"),
        ({"chunks": ["a", "b\ud800"]}, r"chunks\[1\] has the lone surrogate '\\ud800' at 1"),
        ({"chunks": ["a"], "turn_id": "\udfff"}, "turn_id has the lone surrogate"),
        ({"chunks": ["a"], "role": ["a", "b"]}, "role has 2 elements for 1 chunks"),
        ({"chunks": ["a"], "metadata": {"a": {1}}}, "metadata is not JSON"),
        ({"chunks": ["a"], "metadata": {"a": math.nan}}, "metadata is not JSON"),
        ({"chunks": ["a"], "metadata": {1: 2}}, "metadata is not JSON: the key 1 is not a str"),
        ({"chunks": ["a", "b"], "metadata": [{}, {"\ud800": 1}]}, r"metadata\[1\] has a lone surrogate"),
        ({"chunks": ["a"], "metadata": "x"}, "metadata must be a mapping"),
        ({"chunks": ["a", "b"], "timestamps": [1.0, math.inf]}, r"timestamps\[1\] must be finite, not inf"),
        ({"chunks": ["a"], "timestamps": "now"}, "timestamps must be a number, not str"),
        ({"chunks": ["a"], "ids": ["xyz"]}, r"ids\[0\] must be 32 hexadecimal digits"),
        ({"chunks": ["a", "b"], "ids": ["0" * 32] * 2}, r"ids\[1\] is 0+, which is there twice"),
        ({"chunks": ["a"], "embeddings": np.zeros((2, 32))}, "embeddings has 2 rows for 1 chunks"),
        ({"chunks": ["a"], "embeddings": np.full((1, 32), np.nan)}, "embeddings has values that are not finite"),
        ({"chunks": ["a"], "embeddings": np.full((1, 32), 1e20)}, "embeddings has values beyond 1e\\+15 in rows \\[0\\]"),
        ({"chunks": ["a"], "on_conflict": "replace"}, 'on_conflict must be "error" or "skip"'),
    ],
)  # fmt: skip
def test_bad_appends_write_nothing(index, arguments, message):
    index.append(["before"])
    with pytest.raises((ValueError, TypeError), match=message):
        index.append(**arguments)
    assert (index.generation, index.count()) == (1, 1)
    assert index.append(["after"])
    assert [record.text for record in all_records(index)] == ["before", "after"]


def test_other_models_are_refused(tmp_path):
    with SemanticIndex.open(tmp_path, embedder=HashEmbedder(8)) as index:
        with pytest.raises(ModelMismatchError, match=r"hash-8 \(8\), embeddings \(9\): refused"):
            index.append(["a"], embeddings=np.zeros((1, 9)))
        index.append(["a"])
        index.embedder = CallableEmbedder(lambda texts: np.ones((len(texts), 8)), name="hash-8", dim=8)
        for call in (lambda: index.append(["b"]), lambda: index.query("b")):
            with pytest.raises(ModelMismatchError, match=r"ingest model: hash-8 .*query model: hash-8 "):
                call()
        assert index.count() == 1
    for mode in ("a", "r"):
        with pytest.raises(ModelMismatchError, match=r"ingest model: hash-8 \(8\), query model: hash-9 \(9\): refused"):
            SemanticIndex.open(tmp_path, embedder=HashEmbedder(9), mode=mode)
    with SemanticIndex.open(tmp_path, embedder=None) as index:
        index.append(["given"], embeddings=np.ones((1, 8)))
        assert index.query(np.ones(8), k=1)[0].text == "given"
        assert index.query("given", vector=False)[0].text == "given"
        with pytest.raises(ValueError, match="open without an embedder"):
            index.append(["b"])


def test_a_failing_embedder_leaves_the_store_alone(tmp_path):
    def embed(texts):
        if "bad" in texts:
            raise RuntimeError("no model today")
        return np.ones((len(texts), 4))

    with SemanticIndex.open(tmp_path, embedder=CallableEmbedder(embed, name="moody", dim=4)) as index:
        index.append(["good"])
        with pytest.raises(RuntimeError, match="no model today"):
            index.append(["good"] * 5000 + ["bad"])
        assert index.count() == 1
        assert (tmp_path / "seg-000001.vec").stat().st_size == 16
        index.append(["good"])
        assert index.count() == 2


def test_bad_arguments(index, tmp_path):
    index.append(TEXTS)
    with pytest.raises(ValueError, match="k must be at least 0, not -1"):
        index.query("a", k=-1)
    assert index.query("a", k=10**30) == index.query("a", k=index.count())
    with pytest.raises(ValueError, match="both off"):
        index.query("a", lexical=False, vector=False)
    with pytest.raises(ValueError, match="lexical arm needs a text"):
        index.query(np.ones(32), vector=False)
    with pytest.raises(ValueError, match="query has vectors of 3 values; 32 are wanted"):
        index.query([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="context_position must be an int"):
        index.query("a", context_position="end")
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        index.iter_records(0)
    with pytest.raises(TypeError, match="ids must be a sequence of str, not str"):
        index.delete("0" * 32)
    with pytest.raises(ValueError, match='mode must be "a" or "r"'):
        SemanticIndex.open(tmp_path, embedder=None, mode="w")
    with pytest.raises(ValueError, match="neighbour_weight must be a number of at least 0"):
        SearchSettings(neighbour_weight=-1)
    index.close()
    index.close()
    with pytest.raises(ValueError, match="is closed"):
        index.count()


def test_a_clock_that_jumps(tmp_path):
    times = iter([100.0, 50.0, 200.0])
    with SemanticIndex.open(tmp_path, embedder=HashEmbedder(4), clock=lambda: next(times)) as index:
        for text in "abc":
            index.append([text])
        records = all_records(index)
    assert [record.timestamp for record in records] == [100.0, 100.0, 200.0]
    assert [record.sequence for record in records] == [1, 2, 3]


@settings(max_examples=25)
@given(st.data())
def test_any_history_is_kept(tmp_path_factory, data):
    """A plain list is the oracle."""
    path = tmp_path_factory.mktemp("history")
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    oracle = []
    index = SemanticIndex.open(path, embedder=HashEmbedder(4))
    for _ in range(data.draw(st.integers(1, 12))):
        step = data.draw(st.sampled_from(["append", "touch", "archive", "restore", "delete", "reopen"]))
        ids = [record["id"] for record in oracle]
        some = data.draw(st.lists(st.sampled_from(ids), max_size=3)) if ids else []
        if step == "append":
            chunks = data.draw(st.lists(texts, max_size=4))
            oracle += [{"id": id_, "text": text, "count": 0, "status": "live"}
                       for id_, text in zip(index.append(chunks), chunks, strict=True)]  # fmt: skip
        elif step == "touch":
            index.touch(some)
            for id_ in some:
                oracle[ids.index(id_)]["count"] += 1
        elif step == "reopen":
            index.close()
            index = SemanticIndex.open(path, embedder=HashEmbedder(4))
        elif step == "delete":
            index.delete(some)
            for id_ in some:
                oracle[ids.index(id_)]["status"] = "deleted"
        else:
            some = [id_ for id_ in some if oracle[ids.index(id_)]["status"] != "deleted"]
            getattr(index, step)(some, **({"reason": "x"} if step == "archive" else {}))
            for id_ in some:
                oracle[ids.index(id_)]["status"] = "archived" if step == "archive" else "live"
        found = index.get_many([record["id"] for record in oracle])
        assert [(r.id, r.text, r.reference_count, r.status) for r in found] == [
            tuple(record.values()) for record in oracle
        ]
        assert index.count() == sum(record["status"] == "live" for record in oracle)
    index.close()
