"""Damage is noticed, named and repaired; it never makes a wrong record.

Every byte instead of every 97th: pytest -m soak tests/memory/test_store_damage.py
"""

import json
import os
import shutil
import zlib
from collections import Counter

import numpy as np
import pytest
from damage import EMBEDDER, content, judge, make_store

from hsca_fast import SemanticIndex, StoreVersionError, repair, verify_store
from hsca_fast.memory.store_files import Manifest, read_head
from hsca_fast.vectors.storage import DamagedIndexError

STRIDE = 97


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "store"
    make_store(path)
    return path, content(path)


@pytest.fixture
def store(sound, tmp_path):
    path = tmp_path / "store"
    shutil.copytree(sound[0], path)
    return path


def forget_log(store):
    """What a reader leaves behind; the log is empty."""
    for name in ("catalog.sqlite3-wal", "catalog.sqlite3-shm"):
        (store / name).unlink(missing_ok=True)


def flip_bytes(store, expected, stride):
    seen = Counter()
    forget_log(store)
    for name in sorted(os.listdir(store)):
        if name.endswith(("-wal", "-shm")):  # a reader's; gone after the first look
            continue
        file = store / name
        data = file.read_bytes()
        for at in range(0 if stride == 1 else zlib.crc32(name.encode()) % stride, len(data), stride):
            flipped = bytearray(data)
            flipped[at] ^= 1 << (at % 8)
            file.write_bytes(flipped)
            seen[name, judge(store, expected)] += 1
            forget_log(store)
        file.write_bytes(data)
    assert judge(store, expected) == "harmless"
    return seen


def test_a_sound_store_is_sound(sound):
    report = verify_store(sound[0])
    assert report.ok, report.problems
    assert report.n_records == 11
    assert repair(sound[0]) == report


def test_flipped_bytes(store, sound):
    seen = flip_bytes(store, sound[1], STRIDE)
    assert seen["seg-000001.vec", "refused"] > 0
    assert seen["catalog.sqlite3", "refused"] > 0
    assert seen["seg-000001.vec", "harmless"] == 0


@pytest.mark.soak
def test_every_flipped_byte(store, sound):
    seen = flip_bytes(store, sound[1], 1)
    assert seen["seg-000001.vec", "refused"] == (store / "seg-000001.vec").stat().st_size
    assert seen["manifest.json", "refused"] > 300


@pytest.mark.parametrize("stride", [1511, pytest.param(1, marks=pytest.mark.soak)])
def test_writers_do_no_harm_to_a_damaged_store(store, sound, stride, tmp_path):
    data = (store / "catalog.sqlite3").read_bytes()
    before = sound[1]["records"]
    for at in range(7, len(data), stride):
        copy = tmp_path / "copy"
        shutil.copytree(store, copy)
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        (copy / "catalog.sqlite3").write_bytes(flipped)
        try:
            with SemanticIndex.open(copy, embedder=EMBEDDER) as index:
                index.append(["a new one"])
                found = [record for batch in index.iter_records(include_archived=True) for record in batch]
                assert found[:-1] == before
                assert found[-1].text == "a new one"
        except (DamagedIndexError, StoreVersionError, OSError):
            pass
        shutil.rmtree(copy)


def test_every_truncation_of_the_last_segment(store, sound):
    file = store / "seg-000001.vec"
    data = file.read_bytes()
    for size in range(len(data)):
        file.write_bytes(data[:size])
        assert judge(store, sound[1]) == "refused"
        with pytest.raises(DamagedIndexError, match=r"seg-000001.vec has \d+ bytes; 176 were committed"):
            SemanticIndex.open(store, embedder=EMBEDDER)
        assert file.read_bytes() == data[:size]
        assert not verify_store(store).ok
    file.unlink()
    assert judge(store, sound[1]) == "refused"
    with pytest.raises(DamagedIndexError, match="has 0 bytes; 176 were committed"):
        SemanticIndex.open(store, embedder=EMBEDDER)


def test_bytes_behind_the_last_commit(store, sound):
    file = store / "seg-000001.vec"
    data = file.read_bytes()
    file.write_bytes(data + b"half a vector")
    (store / "seg-000002.vec").write_bytes(b"another")
    assert judge(store, sound[1]) == "harmless"
    assert verify_store(store).n_uncommitted_bytes == 20
    with SemanticIndex.open(store, embedder=EMBEDDER):
        assert file.read_bytes() == data
    assert not (store / "seg-000002.vec").exists()
    assert content(store) == sound[1]


@pytest.mark.parametrize("name", ["catalog.sqlite3", "manifest.json", "head"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_truncations_of_other_files(store, sound, name, share):
    data = (store / name).read_bytes()
    (store / name).write_bytes(data[: int(len(data) * share)])
    assert judge(store, sound[1]) == ("reported" if name == "head" else "refused")
    assert [problem.derived for problem in verify_store(store).problems] == [name == "head"]


@pytest.mark.parametrize("gone", [["catalog.sqlite3"], ["catalog.sqlite3", "head"]])
@pytest.mark.parametrize("how", ["missing", "empty"])
def test_a_store_without_its_catalog_is_not_begun_anew(store, sound, gone, how):
    for name in gone:
        if how == "empty":
            (store / name).write_bytes(b"")
        else:
            (store / name).unlink()
    vectors = (store / "seg-000001.vec").read_bytes()
    for mode in ("r", "a"):
        with pytest.raises(DamagedIndexError, match=r"catalog\.sqlite3 is "):
            SemanticIndex.open(store, embedder=EMBEDDER, mode=mode)
    assert not verify_store(store).ok
    assert (store / "seg-000001.vec").read_bytes() == vectors


def test_a_damaged_log_is_noticed(tmp_path):
    """SQLite forgets the commits behind a bad frame of its log without a word; the head remembers."""
    store, copy = tmp_path / "store", tmp_path / "copy"
    with SemanticIndex.open(store, embedder=EMBEDDER) as index:
        index.append(["one"])
        index.append(["two"])
        shutil.copytree(store, copy)  # as a crash would leave it
    log = copy / "catalog.sqlite3-wal"
    data = bytearray(log.read_bytes())
    with SemanticIndex.open(copy, embedder=EMBEDDER, mode="r") as index:
        assert index.count() == 2
    log.write_bytes(data[:-2000])
    for mode in ("r", "a"):
        with pytest.raises(DamagedIndexError, match="1 commits are missing from the catalog, up to record 2"):
            SemanticIndex.open(copy, embedder=EMBEDDER, mode=mode)
    report = repair(copy)
    assert report.repaired
    assert report.lost == (2,)


# ---- repair


def test_repair_of_vectors(store, sound):
    file = store / "seg-000001.vec"
    data = bytearray(file.read_bytes())
    data[3] ^= 8
    file.write_bytes(data)
    report = repair(store)
    ids = [record.id for record in sound[1]["records"]]
    assert report.repaired
    assert report.lost == ()
    assert set(report.vectors_lost) == set(ids[:5])
    assert os.path.isdir(report.quarantine)
    after = content(store)
    assert after["records"] == sound[1]["records"]
    assert after["vectors"][80:] == sound[1]["vectors"][80:]
    with SemanticIndex.open(store, embedder=EMBEDDER) as index:
        assert not index.vectors(ids[:5]).any()
        assert {hit.sequence for hit in index.query("lamps", vector=False)} >= {1, 2, 3, 4, 5}
        index.append(["and on"])


def test_repair_with_the_embedder_makes_vectors_again(store, sound):
    (store / "seg-000001.vec").write_bytes(b"")
    report = repair(store, embedder=EMBEDDER)
    assert report.vectors_lost == ()
    assert verify_store(store).ok
    assert content(store)["vectors"] == sound[1]["vectors"]


@pytest.mark.parametrize("name", ["manifest.json", "head"])
def test_repair_of_small_files(store, sound, name):
    (store / name).write_bytes(b"{}")
    before = Manifest.read(sound[0])
    assert repair(store).repaired
    after = content(store)
    assert after.pop("counts")[:3] == sound[1]["counts"][:3]
    assert all(after[key] == sound[1][key] for key in after)
    assert Manifest.read(store).store_id == before.store_id


def test_repair_saves_all_that_is_whole(store, sound, tmp_path):
    """Flips all over the catalog: what repair gives back is what was written, and what is lost is named."""
    data = (store / "catalog.sqlite3").read_bytes()
    rng = np.random.default_rng(5)
    before = {record.sequence: record for record in sound[1]["records"]}
    repaired = 0
    used = [at for at in range(4096, len(data)) if data[at]]
    for at in rng.choice(used, 25).tolist():
        copy = tmp_path / "copy"
        shutil.copytree(store, copy)
        flipped = bytearray(data)
        flipped[at] ^= 0xFF
        (copy / "catalog.sqlite3").write_bytes(flipped)
        try:
            report = repair(copy)
        except DamagedIndexError:
            continue  # not a database any more
        finally:
            if os.path.isdir(copy):
                found = verify_store(copy)
        assert found.ok, found.problems
        repaired += report.repaired
        with SemanticIndex.open(copy, embedder=EMBEDDER) as index:
            for batch in index.iter_records(include_archived=True):
                for record in batch:
                    assert record.text == before[record.sequence].text
                    assert record.id == before[record.sequence].id
            kept = {record.sequence for batch in index.iter_records(include_archived=True) for record in batch}
            assert before.keys() - kept <= set(report.lost)
        for name in os.listdir(tmp_path):
            if name.startswith("copy"):
                shutil.rmtree(tmp_path / name)
    assert repaired > 5


def test_a_lost_record_leaves_a_mark(store, sound):
    file = store / "catalog.sqlite3"
    data = file.read_bytes()
    file.write_bytes(data.replace(b"The gull of", b"The gill of"))
    report = repair(store)
    assert report.lost == (3,)
    with SemanticIndex.open(store, embedder=EMBEDDER) as index:
        records = [record for batch in index.iter_records(include_archived=True) for record in batch]
        assert [record.sequence for record in records] == [1, 2, 4, 5, 6, 7, 8, 9, 11]
        assert index.append(["next"])
        assert index.query("next", vector=False)[0].sequence == 12
    with SemanticIndex.open(report.quarantine, embedder=EMBEDDER, mode="r") as index, pytest.raises(DamagedIndexError):
        list(index.iter_records())


def test_a_stopped_repair_goes_on(store, sound):
    (store / "head").write_bytes(b"x")
    os.rename(store, f"{store}.damaged-1")
    shutil.copytree(sound[0], f"{store}.repaired")
    for mode in ("a", "r"):  # an empty store in its place would look like a loss of everything
        with pytest.raises(DamagedIndexError, match="a repair was stopped"):
            SemanticIndex.open(store, embedder=EMBEDDER, mode=mode)
    assert repair(store).ok
    assert content(store) == sound[1]


def test_repair_needs_something(store, tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a store"):
        repair(tmp_path / "nothing")
    (store / "manifest.json").unlink()
    (store / "catalog.sqlite3").write_bytes(b"x" * 8192)
    with pytest.raises(DamagedIndexError):
        repair(store)
    assert (store / "catalog.sqlite3").read_bytes() == b"x" * 8192


# ---- other people's files


def test_foreign_and_newer_stores(store, sound, tmp_path):
    manifest = json.loads((store / "manifest.json").read_text())
    for change in ({"format": "chroma"}, {"version": 2}):
        (store / "manifest.json").write_text(json.dumps(manifest | change))
        with pytest.raises(DamagedIndexError, match=r"manifest\.json"):
            SemanticIndex.open(store, embedder=EMBEDDER)
    from hsca_fast.memory import store_files

    newer = {**manifest, "version": 2}
    newer["sha256"] = store_files._digest(newer)
    (store / "manifest.json").write_text(json.dumps(newer))
    for call in (
        lambda: SemanticIndex.open(store, embedder=EMBEDDER),
        lambda: verify_store(store),
        lambda: repair(store),
    ):
        with pytest.raises(StoreVersionError, match="format version 2; this release reads 1"):
            call()
    (store / "manifest.json").unlink()
    with pytest.raises(DamagedIndexError, match=r"has no manifest\.json but is not empty"):
        SemanticIndex.open(store, embedder=EMBEDDER)
    with pytest.raises(FileNotFoundError, match="is not a store"):
        SemanticIndex.open(store, embedder=EMBEDDER, mode="r")
    with pytest.raises(FileNotFoundError, match="is not a store"):
        SemanticIndex.open(tmp_path / "nothing", embedder=EMBEDDER, mode="r")
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(FileNotFoundError, match="needs an embedder"):
        SemanticIndex.open(tmp_path / "nothing", embedder=None)


def test_a_catalog_of_another_store(store, tmp_path):
    with SemanticIndex.open(tmp_path / "other", embedder=EMBEDDER) as other:
        other.append(["foreign"])
    shutil.copy(tmp_path / "other" / "catalog.sqlite3", store / "catalog.sqlite3")
    with pytest.raises(DamagedIndexError, match="belongs to the store"):
        SemanticIndex.open(store, embedder=EMBEDDER)
    os.unlink(store / "catalog.sqlite3")
    assert read_head(store) is not None
    with pytest.raises(DamagedIndexError, match="is missing"):
        SemanticIndex.open(store, embedder=EMBEDDER)
