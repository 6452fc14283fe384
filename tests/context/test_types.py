import dataclasses

import pytest
from contexts import CHUNKS, SNAPSHOTS
from hypothesis import given

from hsca_fast import ContextSnapshot, WeightedChunk

CHUNK = WeightedChunk("c", "text", 0.123456, ["physics"], 0.654321, ["hedged"], None, 1.5)
SNAPSHOT = ContextSnapshot("s", [CHUNK], 0.123456, {"physics": 0.999999}, 3, True, 2.5)


def test_fields_are_those_of_the_specification_in_its_order():
    assert [f.name for f in dataclasses.fields(ContextSnapshot)] == [
        "snapshot_id", "chunks", "macro_weight", "domain_summary", "conversation_position", "forced", "created_at",
    ]  # fmt: skip
    assert [f.name for f in dataclasses.fields(WeightedChunk)] == [
        "chunk_id", "text", "layer1_score", "domain_tags", "coherence_score", "nuance_flags", "parent_id", "created_at",
    ]  # fmt: skip


def test_to_dict_rounds_to_four_digits():
    assert SNAPSHOT.to_dict() == {
        "snapshot_id": "s",
        "chunks": [
            {
                "chunk_id": "c",
                "text": "text",
                "layer1_score": 0.1235,
                "domain_tags": ["physics"],
                "coherence_score": 0.6543,
                "nuance_flags": ["hedged"],
                "parent_id": None,
                "created_at": 1.5,
            }
        ],
        "macro_weight": 0.1235,
        "domain_summary": {"physics": 1.0},
        "conversation_position": 3,
        "forced": True,
        "created_at": 2.5,
    }


def test_defaults_of_missing_fields():
    chunk = WeightedChunk.from_dict({"chunk_id": "c", "text": "", "layer1_score": 0, "coherence_score": 1})
    assert chunk == WeightedChunk("c", "", 0.0, ["unclassified"], 1.0, [], None, 0.0)
    assert ContextSnapshot.from_dict({"snapshot_id": "s", "macro_weight": 0.5}) == ContextSnapshot(
        "s", [], 0.5, {}, 0, False, 0.0
    )


@given(SNAPSHOTS)
def test_every_bit_survives_without_rounding(snapshots):
    for snapshot in snapshots:
        assert ContextSnapshot.from_dict(snapshot.to_dict(digits=None)) == snapshot
        rounded = ContextSnapshot.from_dict(snapshot.to_dict())
        assert rounded.to_dict() == snapshot.to_dict()


@given(CHUNKS)
def test_a_read_chunk_shares_no_list(chunk):
    written = chunk.to_dict()
    read = WeightedChunk.from_dict(written)
    read.domain_tags.append("x")
    assert "x" not in written["domain_tags"]


@pytest.mark.parametrize(
    ("change", "error", "names"),
    [
        ({"layer1_score": ...}, KeyError, "WeightedChunk.layer1_score is missing"),
        ({"chunk_id": ...}, KeyError, "chunk_id"),
        ({"layer1_score": "0.5"}, TypeError, "layer1_score must be a number, not str"),
        ({"layer1_score": True}, TypeError, "layer1_score"),
        ({"layer1_score": float("nan")}, ValueError, "layer1_score must be finite"),
        ({"coherence_score": 1.5}, ValueError, "coherence_score must be between 0 and 1, not 1.5"),
        ({"text": None}, TypeError, "text must be a str, not NoneType"),
        ({"domain_tags": "physics"}, TypeError, "domain_tags must be a list"),
        ({"nuance_flags": ["hedged", 3]}, TypeError, r"nuance_flags\[1\]"),
        ({"parent_id": 7}, TypeError, "parent_id"),
        ({"created_at": float("inf")}, ValueError, "created_at"),
        ({"weight": 1.0}, ValueError, "no field 'weight'"),
    ],
)
def test_a_wrong_chunk_names_its_field(change, error, names):
    d = {**CHUNK.to_dict(), **change}
    d = {name: value for name, value in d.items() if value is not ...}
    with pytest.raises(error, match=names):
        WeightedChunk.from_dict(d)


@pytest.mark.parametrize(
    ("change", "error", "names"),
    [
        ({"macro_weight": ...}, KeyError, "ContextSnapshot.macro_weight"),
        ({"conversation_position": -1}, ValueError, "conversation_position"),
        ({"conversation_position": 1.0}, TypeError, "conversation_position"),
        ({"forced": 1}, TypeError, "forced must be a bool"),
        ({"domain_summary": {"physics": 2}}, ValueError, r"domain_summary\['physics'\]"),
        ({"domain_summary": [1]}, TypeError, "domain_summary must be a dict"),
        ({"chunks": {}}, TypeError, "chunks must be a list"),
        ({"chunks": [3]}, TypeError, r"ContextSnapshot.chunks\[0\]: WeightedChunk must be read from a dict"),
        (
            {"chunks": [CHUNK.to_dict(), {}]},
            KeyError,
            r"ContextSnapshot.chunks\[1\]: WeightedChunk.chunk_id is missing",
        ),
        ({"extra": 1}, ValueError, "'extra'"),
    ],
)
def test_a_wrong_snapshot_names_its_field(change, error, names):
    d = {**SNAPSHOT.to_dict(), **change}
    d = {name: value for name, value in d.items() if value is not ...}
    with pytest.raises(error, match=names):
        ContextSnapshot.from_dict(d)


def test_only_a_dict_can_be_read():
    with pytest.raises(TypeError, match="dict, not list"):
        ContextSnapshot.from_dict([])
