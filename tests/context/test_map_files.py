import itertools
import json
import os

import numpy as np
import pytest
from contexts import SNAPSHOTS, snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from hsca_fast import ConversationMap, TornFileWarning, merge_maps
from hsca_fast.context import map_files

FORMATS = ("map.jsonl", "map.npz")


def long_map(n, namespace=None):
    domains = [{"legal": 1 / 3}, {"physics": 0.1, "cross_domain": 0.7}, {}]
    talk = ConversationMap(
        [
            snapshot(
                f"s{i}",
                [f"Turn {i} «é»", "\ud800"][: i % 3],
                weight=(i * 7919 % 1000) / 999,
                domains=domains[i % 3],
                position=i,
            )
            for i in range(n)
        ]
    )
    return talk if namespace is None else merge_maps([talk], namespaces=[namespace], decay=[0.5])


@settings(max_examples=60)
@given(SNAPSHOTS, st.booleans())
def test_every_bit_comes_back(tmp_path_factory, snapshots, merged):
    talk = ConversationMap(snapshots)
    if merged:
        talk = merge_maps([talk], namespaces=["n"], decay=0.3)
    for name in FORMATS:
        path = tmp_path_factory.mktemp("map") / name
        talk.save(path)
        loaded = ConversationMap.load(path)
        assert loaded == talk
        assert loaded.tear is None
        assert loaded.decay.tolist() == talk.decay.tolist()


@pytest.mark.parametrize("name", FORMATS)
def test_several_blocks(tmp_path, name):
    talk = long_map(2500, "mon")
    talk.save(tmp_path / name)
    assert ConversationMap.load(tmp_path / name) == talk
    first = (tmp_path / name).read_bytes()
    talk.save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", FORMATS)
def test_ten_thousand_snapshots(tmp_path, name):
    talk = long_map(10_000)
    talk.save(tmp_path / name)
    assert ConversationMap.load(tmp_path / name) == talk


def test_lines_can_be_read_by_anything(tmp_path):
    talk = long_map(3)
    talk.save(tmp_path / "map.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "map.jsonl").read_text("ascii").splitlines()]
    assert lines == [s.to_dict(digits=None) for s in talk]


def test_columns_can_be_read_by_numpy_without_pickle(tmp_path):
    talk = long_map(3)
    talk.save(tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz", allow_pickle=False) as arrays:
        assert arrays["000000.macro_weight"].tolist() == [s.macro_weight for s in talk]
        assert all(arrays[name].dtype != object for name in arrays.files)


# ---- torn files


@pytest.mark.parametrize("ending", [b"", b'{"snapshot_id": "x", "ma', b"\x00\x00\xff", b"\n"])
def test_torn_lines(tmp_path, ending):
    talk = long_map(4)
    path = tmp_path / "map.jsonl"
    talk.save(path)
    lines = path.read_bytes().splitlines(keepends=True)
    for kept, cut in itertools.product(range(4), (1, 10, -3)):
        torn = b"".join(lines[:kept]) + lines[kept][:cut] + ending
        path.write_bytes(torn)
        with pytest.warns(TornFileWarning, match=f"torn at line {kept + 1}"):
            loaded = ConversationMap.load(path)
        assert loaded == talk[:kept]
        offset = sum(map(len, lines[:kept]))
        assert (loaded.tear.offset, loaded.tear.n_lost) == (offset, len(torn) - offset)


def test_lines_torn_between_two_of_them(tmp_path):
    talk = long_map(4)
    path = tmp_path / "map.jsonl"
    talk.save(path)
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in range(4):
        path.write_bytes(b"".join(lines[:kept]))
        with pytest.warns(TornFileWarning, match=f"torn at line {kept + 1}"):
            loaded = ConversationMap.load(path)
        assert loaded == talk[:kept]
        assert (loaded.tear.offset, loaded.tear.n_lost) == (len(path.read_bytes()), 0)


def test_lines_of_others_and_lines_that_were_added_are_no_tear(tmp_path):
    talk = long_map(4)
    path = tmp_path / "map.jsonl"
    plain = [json.dumps(s.to_dict(digits=None)) + "\n" for s in talk]
    path.write_text("".join(plain))
    assert ConversationMap.load(path) == talk
    for kept in (0, 1, 3):
        talk[:kept].save(path)
        if kept:
            with path.open("a") as stream:
                stream.writelines(plain[kept:])
            assert ConversationMap.load(path) == talk
        else:
            assert ConversationMap.load(path) == talk[:0]


def test_a_last_line_without_its_end_is_whole(tmp_path):
    talk = long_map(2)
    path = tmp_path / "map.jsonl"
    talk.save(path)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert ConversationMap.load(path) == talk


def test_columns_torn_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr(map_files, "BLOCK_SNAPSHOTS", 2)
    talk = long_map(5)
    path = tmp_path / "map.npz"
    talk.save(path)
    whole = path.read_bytes()
    blocks = [whole.index(f"{i:06d}.snapshot_id".encode()) - 30 for i in range(3)]
    directory = whole.index(b"PK\x01\x02")
    for cut in range(0, directory + 4, 61):
        path.write_bytes(whole[:cut])
        n_blocks = sum(cut >= start for start in [*blocks[1:], directory])
        with pytest.warns(TornFileWarning, match=f"torn at block {n_blocks}"):
            loaded = ConversationMap.load(path)
        assert loaded == talk[: 2 * n_blocks]
        assert loaded.tear.n_lost == cut - loaded.tear.offset
    path.write_bytes(whole[: directory + 40])
    assert ConversationMap.load(path) == talk  # only the list of contents is missing


def test_columns_with_a_flipped_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(map_files, "BLOCK_SNAPSHOTS", 2)
    talk = long_map(6)
    path = tmp_path / "map.npz"
    talk.save(path)
    damaged = bytearray(path.read_bytes())
    second = damaged.index(b"000001.chunk.text.bytes.npy")
    damaged[second + 40] ^= 4
    path.write_bytes(damaged)
    with pytest.warns(TornFileWarning, match="block 1"):
        assert ConversationMap.load(path) == talk[:2]


# ---- bad input


def test_a_wrong_field_is_no_tear(tmp_path):
    path = tmp_path / "map.jsonl"
    long_map(2).save(path)
    lines = path.read_text().splitlines()
    for wrong, names in (
        (lines[1].replace('"macro_weight"', '"macro"'), "line 2: ContextSnapshot has no field 'macro'"),
        (lines[1].replace('"forced":false', '"forced":0'), "line 2: ContextSnapshot.forced"),
        ("[1]", "line 2: ContextSnapshot must be read from a dict"),
    ):
        path.write_text(f"{lines[0]}\n{wrong}\n")
        with pytest.raises(ValueError, match=names):
            ConversationMap.load(path)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\.jsonl or \.npz, not '.*map\.pickle'"):
        long_map(1).save(tmp_path / "map.pickle")
    with pytest.raises(FileNotFoundError):
        ConversationMap.load(tmp_path / "map.jsonl")
    (tmp_path / "map.npz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"not an \.npz file"):
        ConversationMap.load(tmp_path / "map.npz")
    np.savez(tmp_path / "map.npz", **{"000000.labels.bytes": np.zeros(0, np.uint8)})
    with pytest.warns(TornFileWarning):
        assert len(ConversationMap.load(tmp_path / "map.npz")) == 0
