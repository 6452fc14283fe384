"""A program written against the specification's module, and nothing else."""

import json
import sys
import types

import pytest

from hsca_fast import HSCAEngine as OwnEngine
from hsca_fast.adapters import omega as stand_in

PROGRAM = '''
from omega.hsca import ContextSnapshot, DomainTag, HSCAEngine, NuanceFlag, WeightedChunk

engine = HSCAEngine(snapshot_coherence_threshold=0.72, max_buffer_chunks=3, cooccurrence_window=5)
chunks = [engine.ingest_turn(text) for text in TURNS]
snapshots = engine.get_macro_context()
patient = HSCAEngine(1.0)
patient.ingest_turn(TURNS[0])
waits = not patient.should_snapshot()
last = patient.take_snapshot()
again = [ContextSnapshot.from_dict(snapshot.to_dict()) for snapshot in snapshots]
unscored = engine.score_layers(TURNS[0])
after = engine.get_macro_context()
'''  # fmt: skip

TURNS = [
    "The keeper lit the lamp. The lamp burned all night. Ships saw the lamp from the sea.",
    "ok",
    "You must always oil the lamp before dusk. First trim the wick, then fill the lamp.",
    "yes",
    "It might rain, perhaps.",
]


@pytest.fixture
def names(monkeypatch):
    package = types.ModuleType("omega")
    monkeypatch.setitem(sys.modules, "omega", package)
    monkeypatch.setitem(sys.modules, "omega.hsca", stand_in)
    scope = {"TURNS": TURNS}
    exec(compile(PROGRAM, "program", "exec"), scope)
    return scope


def test_the_program_runs(names):
    assert all(isinstance(chunk, names["WeightedChunk"]) for chunk in names["chunks"])
    assert [chunk.text for chunk in names["chunks"]] == TURNS
    tags, flags = {tag.value for tag in names["DomainTag"]}, {flag.value for flag in names["NuanceFlag"]}
    for chunk in names["chunks"]:
        assert set(chunk.domain_tags) <= tags
        assert set(chunk.nuance_flags) <= flags | {"short_chunk"}
        assert 0 <= chunk.layer1_score <= 1
        assert 0 <= chunk.coherence_score <= 1
    assert names["waits"]
    assert names["patient"].get_macro_context() == [names["last"]]
    assert names["snapshots"]
    assert len(names["after"]) == len(names["snapshots"])
    assert [s.conversation_position for s in names["snapshots"]] == list(range(len(names["snapshots"])))
    assert [s.to_dict() for s in names["again"]] == [s.to_dict() for s in names["snapshots"]]
    assert json.dumps([s.to_dict() for s in names["snapshots"]])


def test_dictionaries_have_the_fields_of_the_specification(names):
    snapshot = names["snapshots"][0].to_dict()
    assert list(snapshot) == (
        "snapshot_id chunks macro_weight domain_summary conversation_position forced created_at".split()
    )
    assert list(snapshot["chunks"][0]) == (
        "chunk_id text layer1_score domain_tags coherence_score nuance_flags parent_id created_at".split()
    )


@pytest.mark.parametrize("short_chunks", ["flag", "defer"])
def test_equals_our_own_engine_to_the_bit(short_chunks):
    own, other = (
        engine(0.8, 3, short_chunks=short_chunks, clock=lambda: 1.0) for engine in (OwnEngine, stand_in.HSCAEngine)
    )
    for text in TURNS * 4:
        own.ingest_turn(text)
        other.ingest_turn(text)

    def plain(engine):
        snapshots = [snapshot.to_dict(digits=None) for snapshot in engine.get_macro_context()]
        for snapshot in snapshots:
            del snapshot["snapshot_id"]
            for chunk in snapshot["chunks"]:
                del chunk["chunk_id"], chunk["parent_id"]
        return snapshots

    assert plain(own) == plain(other)
    assert len(plain(own)) > 2


def test_a_subclass_may_score_in_its_own_way():
    class Fixed(stand_in.HSCAEngine):
        def score_layers(self, text):
            return stand_in.WeightedChunk("c", text, 1.0, ["physics"], 0.9, [], None)

    engine = Fixed()
    engine.ingest_turn("one")
    assert [snapshot.domain_summary for snapshot in engine.get_macro_context()] == [{"physics": 1.0}]
