"""Drawers over a semantic index: replaced, deleted, filtered, and the same to every process."""

import numpy as np
import pytest

from hsca_fast import CascadeIndex, SemanticIndex, StoreLocked
from hsca_fast.adapters import drawers
from hsca_fast.adapters.drawers import DrawerStore

RNG = np.random.default_rng(5)


def vectors(n, dim=8):
    return RNG.standard_normal((n, dim)).astype(np.float32)


@pytest.fixture
def store(tmp_path):
    store = DrawerStore(tmp_path / "store")
    yield store
    store.close()


def fill(store, n=20):
    rows = vectors(n)
    store.put(
        [f"d{i}" for i in range(n)],
        [f"text {i}" for i in range(n)],
        [{"wing": f"w{i % 3}", "i": i} for i in range(n)],
        rows,
    )
    return rows


def test_empty_store_is_empty_and_makes_no_files(store, tmp_path):
    assert len(store) == 0
    assert store.dim is None
    assert store.get(["a"]) == {}
    assert store.page(0, 5) == []
    assert list(store.matching({"a": 1})) == []
    assert store.nearest([1.0], 3) == []
    assert store.with_words("a", 3) == []
    store.remove(["a"])
    assert not (tmp_path / "store").exists()


def test_nearest_equals_an_exact_search_to_the_bit(store):
    rows = fill(store)
    query = vectors(1)[0]
    index = CascadeIndex((8,))
    index.add(rows)
    own = index.search(query[None], 7, mode="exact")
    found = store.nearest(query, 7)
    assert [each.drawer.id for each in found] == [f"d{i}" for i in own.ids[0]]
    assert [each.score for each in found] == own.scores[0].tolist()


def test_filtered_results_are_those_of_the_index(store):
    fill(store)
    query = vectors(1)[0]
    found = store.nearest(query, 4, where={"wing": "w1"})
    with SemanticIndex.open(
        store.folder, embedder=None, mode="r", settings=drawers.SearchSettings(neighbour_weight=0.0)
    ) as index:
        own = index.query(query, 4, where={"wing": "w1"}, lexical=False)
    assert [(each.drawer.record, each.score) for each in found] == [(hit.id, hit.score) for hit in own]


def test_put_replaces_and_remove_deletes_for_every_reader(store, tmp_path):
    rows = fill(store)
    with_reader = DrawerStore(tmp_path / "store", read_only=True)
    assert len(with_reader) == 20
    assert with_reader.nearest(rows[3], 1)[0].drawer.id == "d3"
    store.put(["d3", "new"], ["changed", "added"], [{"i": 33}, {}], -rows[3:5])
    store.remove(["d5", "d6", "unknown"])
    for each in (store, with_reader):
        assert len(each) == 19
        assert each.get(["d3"])["d3"].text == "changed"
        assert each.get(["d3"])["d3"].metadata == {"i": 33}
        assert {"d5", "d6"}.isdisjoint(found.drawer.id for found in each.nearest(rows[5], 19))
        assert each.nearest(-rows[3], 1)[0].drawer.id == "d3"
        assert each.nearest(rows[3], 1)[0].drawer.id != "d3"
        assert [drawer.id for drawer in each.page(2, 3)] == ["d2", "d4", "d7"]
        assert [drawer.id for drawer in each.page(16, None)] == ["d19", "d3", "new"]
        assert [drawer.id for drawer in each.page(0, None)] == [drawer.id for drawer in each.matching()]
        assert [found.drawer.id for found in each.with_words("changed", 5)] == ["d3"]
    with pytest.raises(PermissionError, match="open to read"):
        with_reader.put(["x"], ["x"], [{}], rows[:1])
    with_reader.close()


def test_a_second_writer_is_refused_by_name(store, tmp_path):
    rows = fill(store, 2)
    other = DrawerStore(tmp_path / "store", timeout=0.0)
    with pytest.raises(StoreLocked, match="is written by process"):
        other.put(["x"], ["x"], [{}], rows[:1])
    assert len(other) == 2
    store.close()
    other.put(["x"], ["x"], [{}], rows[:1])
    assert len(other) == len(store) == 3
    other.close()


def test_a_crash_between_append_and_delete_leaves_the_newer_one(store, tmp_path, monkeypatch):
    rows = fill(store, 5)
    monkeypatch.setattr(SemanticIndex, "delete", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        store.put(["d1"], ["newer"], [{"wing": "w1"}], rows[1:2])
    monkeypatch.undo()
    store.close()
    reader = DrawerStore(tmp_path / "store", read_only=True)
    for each in (reader, store):
        assert len(each) == 5
        assert [drawer.text for drawer in each.matching({"wing": "w1"})] == ["text 4", "newer"]
        assert [found.drawer.text for found in each.nearest(rows[1], 1)] == ["newer"]
        assert [found.drawer.text for found in each.nearest(rows[1], 1, where={"wing": "w1"})] == ["newer"]
    reader.close()
    store.put(["d9"], ["nine"], [{}], rows[:1])  # the first write clears up
    assert store._index.count() == len(store) == 6


def refuse_to_delete(*_):
    raise OSError("disk full")


def test_a_replaced_record_that_could_not_be_deleted_never_comes_back(store, monkeypatch):
    rows = fill(store, 5)
    with monkeypatch.context() as patch:
        patch.setattr(SemanticIndex, "delete", refuse_to_delete)
        with pytest.raises(OSError, match="disk full"):
            store.put(["d1"], ["newer"], [{}], rows[1:2])
    store.remove(["d1"])
    store.close()
    assert "d1" not in store
    assert [found.drawer.id for found in store.nearest(rows[1], 5, where={"wing": {"$exists": True}})].count("d1") == 0


def test_a_reader_sees_a_deletion_beside_a_replacement_that_was_cut_off(store, tmp_path, monkeypatch):
    rows = fill(store, 5)
    reader = DrawerStore(tmp_path / "store", read_only=True)
    assert len(reader) == 5
    with monkeypatch.context() as patch:
        patch.setattr(SemanticIndex, "delete", refuse_to_delete)
        with pytest.raises(OSError, match="disk full"):
            store.put(["d1"], ["newer"], [{}], rows[1:2])
        patch.undo()
        index = store._index
        index.delete([store._records["d2"][0]])  # as many records as drawers that the reader knows
    assert len(reader) == 4
    assert "d2" not in reader
    assert reader.get(["d1"])["d1"].text == "newer"
    assert [drawer.text for drawer in reader.page(0, None)] == ["text 0", "text 3", "text 4", "newer"]
    reader.close()


def test_a_reader_reads_on_after_deletions_of_others(store, tmp_path, monkeypatch):
    rows = fill(store)
    reader = DrawerStore(tmp_path / "store", read_only=True)
    assert [found.drawer.id for found in reader.nearest(rows[4], 1)] == ["d4"]
    begun = []
    iter_records = SemanticIndex.iter_records
    monkeypatch.setattr(
        SemanticIndex, "iter_records", lambda *a, **k: begun.append(k.get("after", 0)) or iter_records(*a, **k)
    )
    store.remove(["d4", "d5"])
    store.put(["d6", "new"], ["six", "new"], [{}, {}], rows[6:8])
    assert len(reader) == 19
    assert [found.drawer.id for found in reader.nearest(rows[4], 19)].count("d4") == 0
    assert {found.drawer.text for found in reader.nearest(rows[6], 1)} == {"six"}
    assert begun == [20]
    reader.close()


def test_keys_that_the_index_has_itself(store):
    metadata = {"role": "user", "turn_id": "7", "timestamp": "2026", "hsca:x": 1, "$odd": 2}
    store.put(["a", "b"], ["a", "b"], [metadata, {}], vectors(2))
    assert store.get(["a"])["a"].metadata == metadata
    assert [drawer.id for drawer in store.matching({"role": "user"})] == ["a"]
    assert [drawer.id for drawer in store.matching({"timestamp": {"$gte": "2025"}})] == ["a"]
    assert [drawer.id for drawer in store.matching({"role": None})] == ["b"]


FILTERS = [
    ({"wing": "w1"}, lambda m, _: m["wing"] == "w1"),
    ({"wing": "w1", "i": {"$gte": 5, "$lt": 12}}, lambda m, _: m["wing"] == "w1" and 5 <= m["i"] < 12),
    ({"i": {"$in": [1, 2, 40]}}, lambda m, _: m["i"] in (1, 2, 40)),
    ({"i": {"$nin": [1, 2]}}, lambda m, _: m["i"] not in (1, 2)),
    ({"nothing": {"$ne": 1}}, lambda m, _: True),
    ({"$or": [{"i": 1}, {"$and": [{"wing": "w2"}, {"i": {"$gt": 9}}]}]}, lambda m, _: m["i"] == 1 or (m["wing"] == "w2" and m["i"] > 9)),
    ({"wing": {"$contains": "2"}}, lambda m, _: "2" in m["wing"]),
    ({"wing": {"$contains": "w", "$ne": "w0"}}, lambda m, _: m["wing"] != "w0"),
    ({"$or": [{"wing": {"$contains": "2"}}, {"i": 3}], "i": {"$lte": 10}}, lambda m, _: ("2" in m["wing"] or m["i"] == 3) and m["i"] <= 10),
    ({"nothing": {"$contains": "x"}}, lambda m, _: False),
]  # fmt: skip


@pytest.mark.parametrize(("where", "accepts"), FILTERS)
@pytest.mark.parametrize(
    "text", [None, {"$contains": "1"}, {"$not_contains": "1"}, {"$or": [{"$contains": "2"}, {"$contains": "3"}]}]
)
def test_filters_before_ranking(store, where, accepts, text):
    rows = fill(store)
    passes = {
        None: lambda t: True,
        "$contains": lambda t: "1" in t,
        "$not_contains": lambda t: "1" not in t,
        "$or": lambda t: "2" in t or "3" in t,
    }[next(iter(text)) if text else None]
    wanted = [f"d{i}" for i in range(20) if accepts({"wing": f"w{i % 3}", "i": i}, None) and passes(f"text {i}")]
    assert [drawer.id for drawer in store.matching(where, text)] == wanted
    assert sorted(found.drawer.id for found in store.nearest(rows[0], 20, where=where, text=text)) == sorted(wanted)
    if text is None:
        assert sorted(found.drawer.id for found in store.with_words("text", 20, where=where)) == sorted(wanted)
