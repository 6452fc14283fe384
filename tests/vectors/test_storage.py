import json
import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

from hsca_fast import (
    CascadeIndex,
    DamagedIndexError,
    ModelMismatchError,
    ModelStamp,
    calibrate_thresholds,
    fit_rotation,
)
from hsca_fast.vectors import storage

DIMS = (8, 32)


def made(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 32)).astype(np.float32)


def index_of(n=200, **options):
    index = CascadeIndex(DIMS, **options)
    index.add(made(n), ids=np.arange(n) * 3)
    return index


def same_answers(a, b):
    queries = made(7, seed=1)
    for mode in ("exact", "funnel", "early_exit"):
        x, y = (index.search(queries, 5, mode=mode) for index in (a, b))
        assert x.ids.tolist() == y.ids.tolist()
        assert x.scores.tobytes() == y.scores.tobytes()
        assert x.tier.tolist() == y.tier.tolist()


@pytest.mark.parametrize("mmap", [False, True])
def test_round_trip(tmp_path, mmap):
    rotation = fit_rotation(made(500, seed=2))
    model = {"name": "m", "dim": 32, "fingerprint": "f"}
    calibration = calibrate_thresholds(made(200), made(40, seed=3), dims=DIMS, rotation=rotation, model=model)
    index = index_of(rotation=rotation, model=model, calibration=calibration)
    index.save(tmp_path / "i")
    loaded = CascadeIndex.load(tmp_path / "i", mmap=mmap)
    same_answers(index, loaded)
    assert loaded.model == model
    assert loaded.calibration == calibration
    assert loaded.thresholds == calibration.thresholds
    assert loaded.rotation.fingerprint == rotation.fingerprint
    # A mapped index may be changed; the file stays as it was.
    before = {p.name: p.read_bytes() for p in (tmp_path / "i").iterdir()}
    for each in (index, loaded):
        each.remove([3, 6])
        each.add(made(4, seed=5))
    same_answers(index, loaded)
    assert loaded.ids.max() == 601
    assert {p.name: p.read_bytes() for p in (tmp_path / "i").iterdir()} == before
    loaded.save(tmp_path / "i")
    same_answers(index, CascadeIndex.load(tmp_path / "i"))
    assert len(list((tmp_path / "i").iterdir())) == 4  # what is no longer named is gone


def test_empty_index(tmp_path):
    CascadeIndex(DIMS).save(tmp_path / "i")
    assert CascadeIndex.load(tmp_path / "i", mmap=True).ntotal == 0


def test_without_backfill_search_is_right_and_slow(tmp_path):
    index = index_of()
    index.save(tmp_path / "i")
    loaded = CascadeIndex.load(tmp_path / "i", mmap=True, backfill=False)
    assert loaded.dirty == {8: 200, 32: 200}
    queries = made(5, seed=1)
    result = loaded.search(queries, 5)
    assert result.ids.tolist() == index.search(queries, 5, mode="exact").ids.tolist()
    assert (result.tier == 1).all()
    assert loaded.backfill().rebuilt == {8: 200, 32: 200}
    same_answers(index, loaded)


def damaged_copies(data):
    rng = np.random.default_rng(0)
    yield b""
    for cut in rng.integers(1, len(data), 6):
        yield data[:cut]
    yield data + b"\0"
    for place in rng.integers(0, len(data), 12):
        yield data[:place] + bytes([data[place] ^ (1 << int(rng.integers(8)))]) + data[place + 1 :]


@pytest.mark.parametrize("kind", ["manifest", "vectors", "ids", "rotation"])
def test_damage_is_refused(tmp_path, kind):
    index_of(rotation=fit_rotation(made(100))).save(tmp_path)
    (path,) = [p for p in tmp_path.iterdir() if p.name.startswith(kind)]
    data = path.read_bytes()
    for damaged in damaged_copies(data):
        path.write_bytes(damaged)
        with pytest.raises(DamagedIndexError, match=path.name):
            CascadeIndex.load(tmp_path)
    path.unlink()
    with pytest.raises((DamagedIndexError, FileNotFoundError), match=path.name):
        CascadeIndex.load(tmp_path)


def test_another_indexes_file_is_refused(tmp_path):
    index_of().save(tmp_path / "a")
    other = CascadeIndex(DIMS)
    other.add(made(200, seed=9), ids=np.arange(200) * 3)
    other.save(tmp_path / "b")
    (own,) = (tmp_path / "a").glob("vectors-*")
    (others,) = (tmp_path / "b").glob("vectors-*")
    own.write_bytes(others.read_bytes())
    with pytest.raises(DamagedIndexError, match="checksum does not match"):
        CascadeIndex.load(tmp_path / "a")


def test_unknown_format_is_refused(tmp_path):
    index_of().save(tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["format"] = 99
    manifest["sha256"] = storage._digest(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(DamagedIndexError, match="format 99 is not known"):
        CascadeIndex.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        CascadeIndex.load(tmp_path / "nowhere")


def test_a_failed_save_leaves_the_old_index(tmp_path, monkeypatch):
    index = index_of()
    index.save(tmp_path)
    bigger = index_of(300)
    real = os.replace
    for allowed in range(3):
        left = [allowed]

        def replace(a, b, left=left):
            if not left[0]:
                raise OSError(28, "No space left on device")
            left[0] -= 1
            real(a, b)

        monkeypatch.setattr(storage.os, "replace", replace)
        with pytest.raises(OSError, match="No space"):
            bigger.save(tmp_path)
        monkeypatch.setattr(storage.os, "replace", real)
        same_answers(index, CascadeIndex.load(tmp_path))
        assert not list(tmp_path.glob(".*.tmp"))
    bigger.save(tmp_path)
    assert CascadeIndex.load(tmp_path).ntotal == 300


def test_new_folders_are_synced_too(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(storage, "_sync_folder", synced.append)
    index_of().save(tmp_path / "a" / "b")
    assert str(tmp_path) in synced  # which names a
    assert str(tmp_path / "a") in synced
    assert str(tmp_path / "a" / "b") in synced


WRITER = """
import sys, numpy as np
from hsca_fast import CascadeIndex
index = CascadeIndex((8, 32))
index.add(np.random.default_rng(int(sys.argv[2])).normal(size=(4000, 32)))
print("ready", flush=True)
while True:
    index.remove([int(index.ids[0])])
    index.add(np.random.default_rng(index.ntotal).normal(size=(1, 32)))
    index.save(sys.argv[1])
"""


@pytest.mark.parametrize("round_", range(4))
def test_killed_writers_leave_a_whole_index(tmp_path, round_):
    index_of().save(tmp_path)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path), str(round_)], stdout=subprocess.PIPE, text=True
    )
    with writer:
        assert writer.stdout.readline() == "ready\n"
        time.sleep(0.02 + 0.017 * round_)
        writer.send_signal(signal.SIGKILL)
    assert CascadeIndex.load(tmp_path).ntotal in (200, 4000)


def test_a_reader_beside_a_writer(tmp_path, monkeypatch):
    index = index_of()
    index.save(tmp_path)
    real, saves = storage.Folder.array, []

    def array(self, kind, *arguments, **options):
        if kind == "vectors" and not saves:  # the writer comes between the manifest and the file
            saves.append(1)
            index.add(made(5, seed=4))
            index.save(tmp_path)
        return real(self, kind, *arguments, **options)

    monkeypatch.setattr(storage.Folder, "array", array)
    loaded = CascadeIndex.load(tmp_path)
    assert saves
    assert loaded.ntotal == 205
    same_answers(index, loaded)


def test_the_model_is_compared(tmp_path):
    a, b = ModelStamp("a", 32, "x:1"), ModelStamp("a", 32, "x:2")
    index = index_of(model=a)
    assert index.model == {"name": "a", "dim": 32, "fingerprint": "x:1"}
    index.save(tmp_path)
    query = made(1, seed=1)
    for use in (partial(CascadeIndex.load, tmp_path), partial(index.search, query)):
        use(model=a, strict=True)
        use(model=index.model, strict=True)
        with pytest.warns(RuntimeWarning, match="ingest model: a .*x:1.*, query model: a .*x:2"):
            use(model=b)
        with pytest.raises(ModelMismatchError, match="refused"):
            use(model=b, strict=True)
    unknown = index_of()
    with pytest.warns(RuntimeWarning, match="does not say which model"):
        unknown.search(query, model=a)
    with pytest.raises(ValueError, match="does not say which model"):
        unknown.search(query, model=a, strict=True)
    assert index_of(model={"name": "a", "dim": np.int64(32), "fingerprint": "f"}).model["dim"] == 32
    for bad, message in [
        ("m", "must be a ModelStamp"),
        ({"name": "m"}, "must have name, dim and fingerprint"),
        (ModelStamp("a", 16, "f"), "makes vectors of 16 values; the last of dims is 32"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            CascadeIndex(DIMS, model=bad)
