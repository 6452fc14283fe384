import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from contexts import CHUNKS, chunk
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import MESSY_TEXT, PROSE

from hsca_fast import HSCAEngine, Lexicon, ScoringConfig, score_text, score_texts
from hsca_fast._reference import snapshot as reference

EXAMPLES = Path(__file__).parents[2] / "examples"
TURNS = [json.loads(line)["text"] for line in (EXAMPLES / "conversation.jsonl").read_text().splitlines()]
LONG = "The lamp lit the harbour. Boats came into the harbour. Each boat had a lamp."
CONVERSATIONS = st.lists(
    PROSE | MESSY_TEXT | st.sampled_from(["", "Yes.", "Yes.", "It rains. We wait.", LONG]), max_size=25
)


def ticking():
    """A clock that goes back now and then."""
    return itertools.chain([5.0, 4.0, 9.0], itertools.count(8.0, 0.5)).__next__


def without_ids(item):
    """What an engine made, but for the random ids."""
    if isinstance(item, list):
        return [without_ids(part) for part in item]
    d = item.to_dict(digits=None)
    for random in ("chunk_id", "snapshot_id", "parent_id"):
        d.pop(random, None)
    return {**d, "chunks": without_ids(item.chunks)} if "chunks" in d else d


def state(engine):
    return (
        without_ids(engine.get_macro_context()),
        without_ids(engine._buffer),
        [(without_ids(waiting), n) for waiting, n in engine._deferred],
        engine._latest,
    )


OPTIONS = st.fixed_dictionaries(
    {
        "snapshot_coherence_threshold": st.sampled_from([0.0, 0.5, 0.72, 0.9, 1.0]),
        "max_buffer_chunks": st.integers(1, 8),
        "short_chunks": st.sampled_from(["flag", "defer"]),
        "retain": st.sampled_from(["text", "weights"]),
    }
)


# ---- layer 4


@settings(max_examples=150)
@given(st.lists(CHUNKS, max_size=30), st.sampled_from([0.0, 0.3, 0.72, 1.0]), st.integers(1, 10))
def test_snapshots_are_those_of_the_reference(chunks, threshold, most):
    chunks = [replace(c, parent_id=None) for c in chunks]
    engine = HSCAEngine(threshold, most)
    engine.ingest_chunks(chunks)
    buffer, expected = [], []
    for c in chunks:
        buffer.append(c)
        if reference.should_snapshot(buffer, threshold, most):
            expected.append(buffer)
            buffer = []
    snapshots = engine.get_macro_context()
    assert [s.chunks for s in snapshots] == expected
    assert engine._buffer == buffer
    for position, (made, part) in enumerate(zip(snapshots, expected, strict=True)):
        assert made.macro_weight == reference.macro_weight(part)
        assert made.domain_summary == reference.domain_summary(part)
        assert list(made.domain_summary) == list(reference.domain_summary(part))
        assert made.forced == reference.is_forced(part, threshold, most)
        assert made.conversation_position == position
        assert {c.parent_id for c in made.chunks} == {made.snapshot_id}
        assert 0 <= made.macro_weight <= 1
        assert all(0 <= share <= 1 for share in made.domain_summary.values())


def test_numbers_worked_out_by_hand():
    engine = HSCAEngine(0.72, 3)
    engine.ingest_chunks([chunk(weight=0.5, coherence=0.5, tags=["physics"])])
    engine.ingest_chunks([chunk(weight=0.25, coherence=0.75, tags=["physics", "legal"])])
    assert not engine.should_snapshot()  # (.25 + .1875) / .75 = .5833
    engine.ingest_chunks([chunk(weight=0.25, coherence=1.0, tags=["legal"])])  # .6875 / 1: full, and not coherent
    (made,) = engine.get_macro_context()
    assert made.forced
    assert made.macro_weight == 1 / 3
    assert made.domain_summary == {"physics": 0.75, "legal": 0.5}


def test_a_full_buffer_that_is_coherent_is_not_forced():
    engine = HSCAEngine(0.72, 2)
    engine.ingest_chunks([chunk(coherence=0.5), chunk(coherence=1.0)])
    assert [s.forced for s in engine.get_macro_context()] == [False]  # a mean of .75, reached by the last one


def test_the_threshold_itself_is_enough():
    engine = HSCAEngine(0.75)
    engine.ingest_chunks([chunk(weight=1.0, coherence=0.75)])
    assert len(engine.get_macro_context()) == 1


def test_without_weight_nothing_is_coherent_and_the_macro_weight_is_zero():
    engine = HSCAEngine(0.0, 2)
    engine.ingest_chunks([chunk(weight=0.0, coherence=1.0, tags=["legal"]) for _ in range(2)])
    (made,) = engine.get_macro_context()
    assert (made.macro_weight, made.domain_summary, made.forced) == (0.0, {"legal": 0.0}, True)


def test_a_snapshot_asked_for_is_not_forced():
    engine = HSCAEngine(1.0)
    engine.ingest_turn("One turn.")
    assert not engine.take_snapshot().forced


def test_should_snapshot_looks_at_the_buffer_as_it_is():
    engine = HSCAEngine()
    assert not engine.should_snapshot()
    engine._buffer.append(chunk(coherence=0.9))
    assert engine.should_snapshot()


@pytest.mark.parametrize("short_chunks", ["flag", "defer"])
def test_no_snapshot_of_nothing(short_chunks):
    engine = HSCAEngine(short_chunks=short_chunks, clock=ticking())
    engine.ingest_turns(TURNS)
    while engine._buffer or engine._deferred:
        engine.take_snapshot()
    before = state(engine)
    with pytest.raises(ValueError, match="empty"):
        engine.take_snapshot()
    assert state(engine) == before


def test_macro_context_is_a_copy():
    engine = HSCAEngine(max_buffer_chunks=1)
    engine.ingest_turn("One turn.")
    engine.get_macro_context().clear()
    assert len(engine.get_macro_context()) == 1


# ---- turns


@settings(max_examples=60)
@given(CONVERSATIONS, OPTIONS, st.lists(st.integers(0, 25), max_size=3), st.integers(1, 3))
def test_a_batch_is_the_same_as_one_by_one(texts, options, cuts, threads):
    one, many = HSCAEngine(**options, clock=ticking()), HSCAEngine(**options, clock=ticking())
    chunks = [one.ingest_turn(text) for text in texts]
    cuts = [0, *sorted(cuts), len(texts)]
    batched = [c for a, b in itertools.pairwise(cuts) for c in many.ingest_turns(texts[a:b], threads=threads)]
    assert without_ids(batched) == without_ids(chunks)
    assert state(one) == state(many)


@settings(max_examples=60)
@given(CONVERSATIONS, OPTIONS)
def test_every_turn_is_kept_once_and_in_order(texts, options):
    engine = HSCAEngine(**options)
    chunks = engine.ingest_turns(texts)
    assert [c.text for c in chunks] == texts
    kept = [c for s in engine.get_macro_context() for c in s.chunks]
    kept += engine._buffer + [waiting for waiting, _ in engine._deferred]
    assert [c.chunk_id for c in kept] == [c.chunk_id for c in chunks]
    assert len({c.chunk_id for c in chunks}) == len(chunks)
    times = [c.created_at for c in kept]
    assert times == sorted(times)
    for made in engine.get_macro_context():
        assert len(made.chunks) <= options["max_buffer_chunks"] + 1


def test_turns_are_scored_by_layers_1_to_3():
    engine = HSCAEngine(cooccurrence_window=3)
    scored = score_text(TURNS[1], config=ScoringConfig(window=3))
    ignored = {"chunk_id": "", "created_at": 0.0}
    assert replace(engine.score_layers(TURNS[1]), **ignored) == replace(scored, **ignored)
    assert not engine._buffer
    assert replace(engine.ingest_turn(TURNS[1]), **ignored, parent_id=None) == replace(scored, **ignored)


def test_scored_before():
    batch = score_texts(TURNS * 5)
    engines = [HSCAEngine(clock=lambda: 1.0) for _ in range(3)]
    engines[0].ingest_turns(TURNS * 5)
    engines[1].ingest_chunks(batch)
    engines[2].ingest_chunks(c for c in batch.to_chunks(created_at=1.0))
    assert state(engines[0])[:2] == state(engines[1])[:2] == state(engines[2])[:2]


def test_arrow_turns_and_nulls():
    engine = HSCAEngine()
    assert [c.text for c in engine.ingest_turns(pa.array(["One.", "Two."]))] == ["One.", "Two."]
    before = state(engine)
    with pytest.raises(ValueError, match=r"texts\[1\] is null"):
        engine.ingest_turns(pa.array(["One.", None]))
    assert state(engine) == before
    assert engine.ingest_turns([]) == []
    assert engine.ingest_turns(np.array(["Three."]))[0].text == "Three."


# ---- short turns


def test_short_turns_are_flagged():
    engine = HSCAEngine()
    assert "short_chunk" in engine.ingest_turn("The lamp is lit.").nuance_flags
    assert "short_chunk" not in engine.ingest_turn(LONG).nuance_flags


def test_short_turns_are_judged_together():
    parts = ["The lamp lit the harbour.", "Boats came into the harbour.", "Each boat had a lamp."]
    joint = score_text("\n\n".join(parts))
    engine = HSCAEngine(1.0, short_chunks="defer")
    chunks = engine.ingest_turns(parts[:2])
    assert not engine._buffer
    assert all("short_chunk" in c.nuance_flags for c in chunks)
    chunks.append(engine.ingest_turn(parts[2]))
    assert engine._buffer == chunks
    for c, text in zip(chunks, parts, strict=True):
        assert (c.text, c.layer1_score, c.coherence_score, c.domain_tags) == (
            text, joint.layer1_score, joint.coherence_score, joint.domain_tags,
        )  # fmt: skip
        assert "short_chunk" not in c.nuance_flags


@pytest.mark.parametrize("end", ["long turn", "full buffer", "snapshot", "scored chunk"])
def test_a_run_that_is_cut_off_is_flagged(end):
    engine = HSCAEngine(1.0, 3 if end == "full buffer" else 20, short_chunks="defer")
    short = engine.ingest_turns(["Yes.", "Yes."])
    match end:
        case "long turn":
            engine.ingest_turn(LONG)
        case "full buffer":
            short.append(engine.ingest_turn("Yes."))  # the same sentence again is no third sentence
        case "snapshot":
            engine.take_snapshot()
        case "scored chunk":
            engine.ingest_chunks([chunk()])
    assert not engine._deferred
    kept = [c for s in engine.get_macro_context() for c in s.chunks] + engine._buffer
    assert kept[: len(short)] == short
    assert all("short_chunk" in c.nuance_flags for c in short)


# ---- what is kept


def test_weights_alone():
    engine = HSCAEngine(max_buffer_chunks=2, retain="weights")
    full = HSCAEngine(max_buffer_chunks=2)
    chunks = engine.ingest_turns(TURNS)
    full.ingest_turns(TURNS)
    assert [c.text for c in chunks] == TURNS
    kept = [c for s in engine.get_macro_context() for c in s.chunks]
    assert {c.text for c in kept} == {""}
    assert all(c.parent_id is not None for c in chunks[: len(kept)])
    for a, b in zip(engine.get_macro_context(), full.get_macro_context(), strict=True):
        assert (a.macro_weight, a.domain_summary) == (b.macro_weight, b.domain_summary)
        assert [c.layer1_score for c in a.chunks] == [c.layer1_score for c in b.chunks]


@settings(max_examples=60)
@given(CONVERSATIONS, CONVERSATIONS, OPTIONS)
def test_a_saved_engine_goes_on_as_if_nothing_had_been(tmp_path_factory, before, after, options):
    path = tmp_path_factory.mktemp("engine") / "engine.jsonl"
    clock = ticking()
    engine = HSCAEngine(**options, clock=clock)
    engine.ingest_turns(before)
    engine.save(path)
    tick = clock()
    loaded = HSCAEngine.load(path, clock=lambda: tick)
    assert loaded.get_macro_context() == engine.get_macro_context()
    assert loaded._buffer == engine._buffer
    engine._clock = lambda: tick
    engine.ingest_turns(after)
    loaded.ingest_turns(after)
    assert state(loaded) == state(engine)
    for name in options:
        assert getattr(loaded, name) == options[name]


def test_saving_keeps_the_scorer(tmp_path):
    path = tmp_path / "engine.jsonl"
    HSCAEngine(cooccurrence_window=9, config=ScoringConfig(domain_model="rules")).save(path)
    loaded = HSCAEngine.load(path)
    assert (loaded.cooccurrence_window, loaded.config.domain_model) == (9, "rules")
    own = ScoringConfig(window=4, lexicons=[Lexicon(())])
    HSCAEngine(config=own).save(path)
    with pytest.raises(ValueError, match="give its config to load"):
        HSCAEngine.load(path)
    assert HSCAEngine.load(path, config=own).config == own


def test_a_torn_or_foreign_file_is_refused(tmp_path):
    path = tmp_path / "engine.jsonl"
    engine = HSCAEngine(max_buffer_chunks=2)
    engine.ingest_turns(TURNS)
    engine.save(path)
    whole = path.read_bytes()
    for cut in range(0, len(whole) - 1, 97):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=r"engine\.jsonl"):
            HSCAEngine.load(path)
    path.write_bytes(whole.replace(b'"version":1', b'"version":7', 1))
    with pytest.raises(ValueError, match="version 7"):
        HSCAEngine.load(path)


def test_a_wrong_line_of_an_engine_says_where_it_is(tmp_path):
    path = tmp_path / "engine.jsonl"
    engine = HSCAEngine(max_buffer_chunks=2)
    engine.ingest_turns(TURNS[:3])
    engine.save(path)
    lines = path.read_text().splitlines()
    header = json.loads(lines[0])
    for number, wrong, names in (
        (
            2,
            lines[1].replace('"layer1_score":', '"layer1_score":7'),
            r"engine\.jsonl, line 2: WeightedChunk.layer1_score",
        ),
        (1, json.dumps({**header, "deferred_sentences": ["1"]}), r"HSCAEngine.deferred_sentences\[0\] must be an int"),
    ):
        path.write_text("\n".join([*lines[: number - 1], wrong, *lines[number:]]))
        with pytest.raises((ValueError, TypeError), match=names):
            HSCAEngine.load(path)


# ---- a class of one's own


class Certain(HSCAEngine):
    """Everything is coherent and heavy, and snapshots are noted."""

    def __init__(self, **options):
        super().__init__(**options)
        self.noted = []

    def score_layers(self, text):
        return replace(super().score_layers(text), layer1_score=1.0, coherence_score=1.0)

    def take_snapshot(self):
        made = super().take_snapshot()
        self.noted.append(made.snapshot_id)
        return made


def test_overridden_steps_are_used():
    for ingest in (lambda e: [e.ingest_turn(t) for t in ["a", "b"]], lambda e: e.ingest_turns(["a", "b"])):
        engine = Certain(clock=lambda: 1.0)
        assert [c.layer1_score for c in ingest(engine)] == [1.0, 1.0]
        assert engine.noted == [s.snapshot_id for s in engine.get_macro_context()]
        assert [s.macro_weight for s in engine.get_macro_context()] == [1.0, 1.0]
    engine = Certain()
    engine.ingest_chunks([chunk(weight=0.9, coherence=0.9)])
    assert len(engine.noted) == 1


@pytest.mark.parametrize("short_chunks", ["flag", "defer"])
def test_a_step_that_was_replaced_on_the_object_is_used(short_chunks):
    engine = HSCAEngine(short_chunks=short_chunks)
    engine.should_snapshot = lambda: len(engine._buffer) >= 2
    engine.ingest_turns([LONG] * 5)
    assert [len(s.chunks) for s in engine.get_macro_context()] == [2, 2]


def test_bad_turns_change_nothing_where_scoring_is_overridden():
    engine = Certain()
    for wrong, error in (([LONG, 3], TypeError), (pa.array([LONG, None]), ValueError), ("text", TypeError)):
        with pytest.raises(error, match="texts"):
            engine.ingest_turns(wrong)
    assert (engine._buffer, engine.get_macro_context()) == ([], [])
    with pytest.raises(ValueError, match="short_chunks must be 'flag'"):
        Certain(short_chunks="defer").ingest_turn("a")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "engine.jsonl"
    engine = HSCAEngine()
    engine.save(path)
    before = path.read_bytes()
    engine._buffer.append(chunk())
    engine._buffer[0].created_at = math.nan
    with pytest.raises(ValueError, match="JSON"):
        engine.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["engine.jsonl"]


# ---- bad input


@pytest.mark.parametrize(
    ("options", "error", "names"),
    [
        ({"snapshot_coherence_threshold": 1.01}, ValueError, "snapshot_coherence_threshold.*1.01"),
        ({"snapshot_coherence_threshold": -0.1}, ValueError, "snapshot_coherence_threshold"),
        ({"snapshot_coherence_threshold": math.nan}, ValueError, "snapshot_coherence_threshold"),
        ({"snapshot_coherence_threshold": "0.7"}, TypeError, "snapshot_coherence_threshold"),
        ({"max_buffer_chunks": 0}, ValueError, "max_buffer_chunks must be at least 1, not 0"),
        ({"max_buffer_chunks": 2.0}, TypeError, "max_buffer_chunks"),
        ({"cooccurrence_window": 1}, ValueError, "cooccurrence_window must be between 2 and 1000, not 1"),
        ({"cooccurrence_window": True}, TypeError, "cooccurrence_window"),
        ({"cooccurrence_window": 7, "config": ScoringConfig(window=8)}, ValueError, "config.window is 8"),
        ({"config": {}}, TypeError, "config"),
        ({"short_chunks": "drop"}, ValueError, "short_chunks must be 'flag' or 'defer', not 'drop'"),
        ({"retain": None}, ValueError, "retain"),
        ({"clock": 3.0}, TypeError, "clock"),
    ],
)
def test_options_out_of_range(options, error, names):
    with pytest.raises(error, match=names):
        HSCAEngine(**options)


def test_parameters_can_be_turned_and_stay_in_range():
    engine = HSCAEngine(config=ScoringConfig(window=8))
    assert engine.cooccurrence_window == 8
    engine.cooccurrence_window = 3
    assert engine.config.window == 3
    for name, value in (("snapshot_coherence_threshold", 2), ("max_buffer_chunks", 0), ("cooccurrence_window", 1)):
        with pytest.raises(ValueError, match=name):
            setattr(engine, name, value)


def test_bad_turns_change_nothing():
    engine = HSCAEngine()
    with pytest.raises(TypeError, match="text must be str, not int"):
        engine.ingest_turn(3)
    with pytest.raises(TypeError, match="text must be str"):
        engine.score_layers(b"bytes")
    with pytest.raises(TypeError, match="1"):
        engine.ingest_turns(["fine", 3])
    with pytest.raises(TypeError, match=r"chunks\[1\] must be a WeightedChunk"):
        engine.ingest_chunks([chunk(), "text"])
    with pytest.raises(ValueError, match=r"chunks\[1\]\.layer1_score must be finite"):
        engine.ingest_chunks([chunk(), chunk(weight=math.nan)])
    with pytest.raises(ValueError, match=r"chunks\[0\] belongs to the snapshot 'old'"):
        engine.ingest_chunks([replace(chunk(), parent_id="old")])
    twice = chunk()
    with pytest.raises(ValueError, match="twice"):
        engine.ingest_chunks([twice, twice])
    assert not engine._buffer


def test_a_clock_that_goes_back_is_held():
    times = iter([10.0, 3.0, 7, 11.0])
    engine = HSCAEngine(1.0, clock=lambda: next(times))
    assert [c.created_at for c in engine.ingest_turns(["a", "b", "c", "d"])] == [10.0, 10.0, 10.0, 11.0]


@pytest.mark.parametrize(("time", "error"), [(math.nan, ValueError), (math.inf, ValueError), ("now", TypeError)])
def test_a_clock_that_tells_no_time(time, error):
    with pytest.raises(error, match="clock"):
        HSCAEngine(clock=lambda: time).ingest_turn("a")
