import hashlib
import io
import math
import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsca_fast import MEMORY_PRESETS, ActiveContext, HashEmbedder, MemoryPreset, SemanticIndex, resurrect_from
from hsca_fast._reference import brightness as reference
from hsca_fast.memory.presets import LIMIT


def talk(*chunks, preset="seed", ended=True):
    """A context of (id, tokens, turn, role)."""
    context = ActiveContext(preset=preset)
    for chunk_id, n_tokens, turn_id, role in chunks:
        context.append_chunk(chunk_id, n_tokens, turn_id=turn_id, role=role)
    if ended:
        context.end_turn()
    return context


def state(context):
    """Everything that can be seen of a context."""
    return [(context.chunk(id), context.brightness(id).tolist()) for id in context._ids]


# ---- numbers worked out by hand


def test_a_step_of_the_seed():
    context = talk(("a", 3, "1", "user"), ("b", 2, "1", "assistant"))
    # threshold = (1 - 0.5) / 4 = 0.125; 0.375 is three times that, 0.125 is not above it
    assert context.score_step([0.5, 0.375, 0.125, 0.0, 0.25])
    assert context.brightness("a").tolist() == [255, 258, 254]  # the first token is the sink and is left alone
    assert context.brightness("b").tolist() == [254, 257]
    assert (context.chunk("a").peak, context.chunk("b").peak) == (258, 257)


def test_a_step_of_the_later_preset():
    context = talk(("a", 2, "1", "user"), ("b", 3, "2", "assistant"), preset="halo_final", ended=False)
    context._brightness.values[:] = [9_999, 5, 5, 9_998, 5]
    # The largest is 0.5: the threshold is 0.125 again. All tokens are scored, the sink and the current turn too.
    assert context.score_step([0.25, 0.0, 0.5, 0.375, 0.125])
    assert context.brightness("a").tolist() == [10_000, 4]
    assert context.brightness("b").tolist() == [9, 10_000, 4]


def test_tokens_before_the_conversation_count_but_are_not_kept():
    context = talk(("a", 2, "1", "user"), preset="halo_final")
    context._brightness.values[:] = 0
    assert context.score_step([0.5, 0.0, 0.125, 0.25, 0.125], prefix=3)  # threshold 0.125
    assert context.brightness("a").tolist() == [2, -1]


def test_the_current_turn_is_not_scored_and_not_pruned():
    context = talk(("a", 2, "1", "user"), ("b", 2, "2", "user"), ("c", 2, "2", "assistant"), ended=False)
    context.score_step([0.1, 0.0, 0.3, 0.3, 0.3, 0.0])
    assert [context.chunk(id).peak for id in "abc"] == [255, 255, 255]
    assert context.brightness("a").tolist() == [255, 254]
    report = context.prune(0)
    assert (report.pruned, report.n_tokens, report.n_live_tokens, report.fits) == (("a",), 2, 4, False)
    context.end_turn()
    assert context.prune(0).fits


@pytest.mark.parametrize("attention", [[1.0, 0.0], [1.5, 0.2]])
def test_a_step_that_says_nothing(attention):
    context = talk(("a", 2, "1", "user"))
    assert not context.score_step(attention)
    assert context.brightness("a").tolist() == [255, 255]
    assert not talk(("a", 1, "1", "user")).score_step([0.3])
    assert not ActiveContext().score_step([])


def test_lowest_peak_goes_first_and_the_oldest_of_equals():
    context = talk(*((id, 2, "1", "user") for id in "abcde"))
    context.score_step(np.array([2, 2, 1, 0, 1, 0, 0, 4, 0, 0]) / 10)  # threshold (1 - .2) / 9
    assert [context.chunk(id).peak for id in "abcde"] == [257, 256, 256, 259, 254]
    before = state(context)
    assert context.prune(3, dry_run=True).pruned == ("e", "b", "c", "a")
    assert state(context) == before
    assert context.prune(8).pruned == ("e",)
    context.pin(["b"])
    assert context.prune(4).pruned == ("c", "a")
    assert context.live_chunks() == ["b", "d"]
    assert context.prune(3).pruned == ("d",)
    context.unpin(["b"])
    assert context.prune(0).pruned == ("b",)
    assert context.prune(0).pruned == ()


def test_the_system_is_never_pruned():
    context = talk(("s", 5, "0", "system"), ("a", 5, "1", "user"))
    report = context.prune(3)
    assert (report.pruned, report.fits) == (("a",), False)


def test_questions_and_answers_go_together_in_the_later_preset():
    chunks = [("u0", 5, "1", "user"), ("u1", 5, "1", "user"), ("a0", 5, "2", "assistant"), ("a1", 5, "2", "assistant")]
    last = ("z", 5, "3", "user")
    context = talk(*chunks, last, preset="halo_final")
    context._peaks.values[:] = [1, 4, 2, 5, 9]
    # u1, then a1; only then u0 and a0, both. One of what may go is kept: z.
    assert context.prune(0).pruned == ("u1", "a1", "u0", "a0")
    context.revive(["u0", "a0"])
    context.pin(["a0"])
    assert context.prune(0).pruned == ()  # u0 cannot go without a0


def test_what_comes_back_is_where_it_was():
    context = talk(("a", 2, "1", "user"), ("b", 3, "1", "user"), ("c", 2, "1", "user"))
    context.score_step([0.1] * 6 + [0.4])
    context.prune(2)
    assert context.live_positions().tolist() == [5, 6]
    assert context.brightness("b").tolist() == [254, 254, 254]  # as it left
    assert context.revive(["b", "c"]) == ["b"]
    assert context.live_positions().tolist() == [2, 3, 4, 5, 6]
    assert context.brightness("b").tolist() == [255, 255, 255]
    assert context.chunk("b").peak == 255
    context.append_chunk("d", 1, turn_id="2")
    assert context.chunk("d").start == 7


def test_resurrection_of_the_seed():
    context = talk(("a", 400, "1", "user"), ("b", 300, "1", "user"), ("c", 400, "1", "user"), ("d", 10, "1", "user"))
    context.prune(0)
    context.revive(["b"])
    found = context.resurrect(["a", "b", "elsewhere", "c", "d"])
    # b is live and spends its 300 all the same; c does not fit into 1,024 and ends it, though d would fit.
    assert found.revived == ("a",)
    assert found.referenced == ("a", "b")
    assert found.overflowed == ("c",)
    assert found.unknown == ("elsewhere",)
    assert found.n_tokens == 700
    assert context.resurrect(["d", "d"], budget=10).n_tokens == 10
    assert context.resurrect(["c"], max_results=0).referenced == ()
    many = talk(*((str(i), 1, "1", "user") for i in range(30)))
    many.prune(0)
    assert len(many.resurrect(map(str, range(30))).revived) == 20


def test_resurrection_of_the_later_preset():
    context = talk(
        ("a", 400, "1", "user"), ("b", 300, "1", "user"), ("c", 400, "1", "user"), ("d", 10, "1", "user"),
        preset=replace(MEMORY_PRESETS["halo_final"], anchors=False, keep_prunable=0),
    )  # fmt: skip
    context._brightness.values[:] = 77
    context._peaks.values[:] = 77
    context.prune(0)
    context.revive(["b"])
    assert context.brightness("b").tolist() == [10_000] * 300
    found = context.resurrect(["a", "b", "c", "d"], budget=500)
    assert (found.revived, found.referenced, found.overflowed, found.n_tokens) == (("a", "d"), ("a", "d"), ("c",), 410)
    assert context.brightness("a").tolist() == [77] * 400  # no gifts
    with pytest.raises(ValueError, match="budget must be given: the preset has none"):
        context.resurrect(["a"])


def test_hits_are_known_by_id_or_by_turn_sentence_and_role():
    context = talk(("x", 3, "2", "user"), ("y", 4, "2", "assistant"), ("z", 5, "2", "assistant"))
    context.prune(0)
    hits = [
        SimpleNamespace(id="f00", turn_id="2", sentence_id=1, role="assistant"),
        SimpleNamespace(id="x", turn_id="9", sentence_id=0, role="user"),
        SimpleNamespace(id="f01", turn_id="2", sentence_id=5, role="user"),
        SimpleNamespace(id="f02", turn_id=["2"], sentence_id=0, role="user"),
        SimpleNamespace(id="f03"),
    ]
    found = context.resurrect(hits)
    assert found.revived == ("z", "x")
    assert found.referenced == ("f00", "x")
    assert found.unknown == ("f01", "f02", "f03")


class FakeIndex:
    """The part of a SemanticIndex that is asked."""

    def __init__(self, hits):
        self.hits = sorted(hits, key=lambda hit: -hit.score)
        self.touched = []

    def query(self, query, k=10, *, where=None, lexical=True):
        def passes(hit, where):
            if where is None:
                return True
            if "$and" in where:
                return all(passes(hit, each) for each in where["$and"])
            return all(getattr(hit, name) == value for name, value in where.items())

        return [hit for hit in self.hits if passes(hit, where)][:k]

    def touch(self, ids, *, query=""):
        self.touched.append((ids, query))


def hit(id, score, role, turn_id="1"):
    return SimpleNamespace(id=id, score=score, role=role, turn_id=turn_id, sentence_id=99)


def test_an_index_and_a_context_joined():
    context = talk(("a", 4, "1", "user"), ("b", 4, "1", "assistant"), ("c", 4, "1", "assistant"))
    context.prune(0)
    index = FakeIndex([hit("a", 0.3, "user"), hit("b", 0.9, "assistant"), hit("c", 0.5, "assistant")])
    assert resurrect_from(index, context, "lamp?", budget=8).revived == ("b", "c")
    assert index.touched == [(["b", "c"], "lamp?")]
    assert resurrect_from(index, context, "lamp?", max_results=0).referenced == ()
    assert resurrect_from(index, context, "lamp?", budget=0).referenced == ()
    assert len(index.touched) == 1  # nothing to count


@pytest.mark.parametrize("name", sorted(MEMORY_PRESETS))
def test_with_the_index_itself(name, tmp_path):
    texts = ["The lamp stands in the tower.", "Gulls cry over the harbour.", "The oil of the lamp is in the cellar."]
    context = ActiveContext(preset=replace(MEMORY_PRESETS[name], anchors=False, keep_prunable=0))
    with SemanticIndex.open(tmp_path / "store", embedder=HashEmbedder(64)) as index:
        ids = index.append(texts, turn_id="1", role="user")
        stranger = index.append(["A lamp of another talk."], turn_id="7", role="user")
        for chunk_id in ids:
            context.append_chunk(chunk_id, 8, turn_id="1", role="user")
        context.end_turn()
        context.prune(0)
        found = resurrect_from(index, context, "the lamp in the tower", budget=16, max_results=4)
        assert set(found.revived) == {ids[0], ids[2]}
        assert set(found.unknown) <= set(stranger)  # the seed may stop before it gets there
        assert found.n_tokens == 16
        assert [index.get(id).reference_count for id in ids] == [1, 0, 1]


def test_what_the_user_said_counts_more_in_the_later_preset():
    preset = replace(MEMORY_PRESETS["halo_final"], anchors=False, keep_prunable=0)
    hits = [hit("a", 0.5, "assistant"), hit("b", 0.45, "assistant"), hit("c", 0.4, "user"), hit("d", 0.6, "user", "2")]
    context = talk(("a", 4, "1", "assistant"), ("b", 4, "1", "assistant"), ("c", 4, "1", "user"), preset=preset)
    context.prune(0)
    index = FakeIndex(hits)
    # 0.4 * 1.5 is more than 0.5, and found though it is not among the two best as they come.
    found = resurrect_from(index, context, "lamp?", budget=100, max_results=2, where={"turn_id": "1"})
    assert found.revived == ("c", "a")


def test_the_budget_that_a_model_leaves():
    preset = replace(MEMORY_PRESETS["halo_final"], anchors=False, keep_prunable=0)
    context = talk(("a", 10, "1", "user"), ("b", 6, "1", "user"), preset=preset)
    context.prune(10)
    assert context.live_chunks() == ["b"]
    index = FakeIndex([hit("a", 0.9, "user")])
    # 6 live, 5 characters are 2 tokens, 20 to write
    assert resurrect_from(index, context, "lamp?", max_context=37, max_new_tokens=20).overflowed == ("a",)
    assert resurrect_from(index, context, "lamp?", max_context=3, max_new_tokens=20).overflowed == ("a",)
    assert resurrect_from(index, context, "lamp?", max_context=38, max_new_tokens=20).revived == ("a",)


def test_a_chunk_grows_while_it_is_written():
    context = talk(("a", 2, "1", "user"), ended=False)
    assert context.append_chunk("b", 1, turn_id="1", role="assistant") == range(2, 3)
    assert context.extend_chunk(3) == range(3, 6)
    assert (context.n_tokens, context.n_live_tokens, context.chunk("b").stop) == (6, 6, 6)
    context.end_turn()
    context.prune(0)
    with pytest.raises(ValueError, match="no live last chunk"):
        context.extend_chunk(1)


def test_empty():
    context = ActiveContext()
    assert (len(context), context.n_tokens, context.n_live_tokens, context.live_chunks()) == (0, 0, 0, [])
    assert context.prune(0).fits
    assert context.resurrect([]).revived == ()
    assert context.revive([]) == []
    assert context.live_positions().tolist() == []


# ---- the oracle


@st.composite
def conversations(draw):
    """(messages as (role, chunk lengths), two to a turn or one)"""
    messages = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["user", "assistant", "user", "assistant", "system"]),
                st.lists(st.integers(1, 9), min_size=1, max_size=3),
            ),
            max_size=7,
        )
    )
    return messages, draw(st.integers(1, 2)), draw(st.booleans())


def build(conversation, preset):
    messages, per_turn, ended = conversation
    context, chunks = ActiveContext(preset=preset), []
    n_messages, last = -1, None
    for i, (role, lengths) in enumerate(messages):
        turn = str(i // per_turn)
        n_messages += (turn, role) != last
        for j, n in enumerate(lengths):
            context.append_chunk(f"{i}.{j}", n, turn_id=turn, role=role)
            chunks.append({
                "tokens": [preset.new_brightness] * n, "live": True, "pinned": False, "turn": turn, "role": role,
                "message": n_messages, "first": j == 0 and (turn, role) != last,
            })  # fmt: skip
        last = (turn, role)
    if ended:
        context.end_turn()
    return context, chunks, None if ended or not messages else turn


def assert_equal(context, chunks):
    assert [context.brightness(id).tolist() for id in context._ids] == [chunk["tokens"] for chunk in chunks]
    assert [context.chunk(id).is_live for id in context._ids] == [chunk["live"] for chunk in chunks]
    assert [context.chunk(id).peak for id in context._ids] == [reference.peak(chunk) for chunk in chunks]
    assert context.n_live_tokens == reference.n_live_tokens(chunks)


@settings(max_examples=150)
@given(conversations(), st.sampled_from(sorted(MEMORY_PRESETS)), st.booleans(), st.data())
def test_equals_the_reference(conversation, name, single, data):
    preset = MEMORY_PRESETS[name]
    context, chunks, current = build(conversation, preset)
    for _ in range(data.draw(st.integers(1, 5))):
        what = data.draw(st.sampled_from(["score", "score", "prune", "resurrect", "pin", "save"]))
        if what == "score":
            prefix = data.draw(st.integers(0, 2))
            n = prefix + context.n_live_tokens
            weights = data.draw(st.lists(st.floats(0, 1, width=32), min_size=n, max_size=n))
            attention = np.array(weights, np.float32 if single else np.float64)
            attention /= max(1.0, attention.sum())
            scored = context.score_step(attention, prefix=prefix)
            assert scored == reference.score_step(
                chunks, attention.tolist(), prefix=prefix, sink=preset.sink, most=preset.max_brightness,
                skipped_turn=current if not preset.scores_current_turn else object(),
            )  # fmt: skip
        elif what == "prune":
            budget = data.draw(st.integers(0, 1 + context.n_tokens))
            gone = reference.prune(
                chunks, budget, current_turn=current, anchors=preset.anchors, keep=preset.keep_prunable
            )
            assert context.prune(budget).pruned == tuple(context._ids[i] for i in gone)
        elif what == "resurrect" and chunks:
            matches = data.draw(st.lists(st.integers(0, len(chunks) - 1), unique=True))
            budget = data.draw(st.integers(0, 30))
            revived, referenced, spent = reference.resurrect(
                chunks, matches[: preset.max_results], budget=budget, brightness=preset.revived_brightness,
                live_hits_count=preset.live_hits_count, stops_at_overflow=preset.stops_at_overflow,
            )  # fmt: skip
            found = context.resurrect([context._ids[i] for i in matches], budget=budget)
            assert found.revived == tuple(context._ids[i] for i in revived)
            assert (len(found.referenced), found.n_tokens) == (len(referenced), spent)
            assert found.n_tokens <= budget
        elif what == "pin" and chunks:
            i = data.draw(st.integers(0, len(chunks) - 1))
            if not chunks[i]["live"]:
                chunks[i]["tokens"] = [preset.manual_brightness] * len(chunks[i]["tokens"])
            chunks[i].update(live=True, pinned=True)
            context.pin([context._ids[i]])
        assert_equal(context, chunks)


@given(st.integers(1, 70), st.floats(1e-6, 0.999), st.integers(0, 2**32))
def test_more_attention_is_never_darker_and_positions_do_not_matter(n, first, seed):
    attention = np.random.default_rng(seed).random(n + 1)
    attention *= (1 - first) / attention[1:].sum()
    attention[0] = first
    one = talk(("a", n + 1, "1", "user"))
    one.score_step(attention)
    order = np.argsort(attention[1:], kind="stable")
    assert (np.diff(one.brightness("a")[1:][order]) >= 0).all()
    # The same tokens in chunks of one.
    many = talk(*((str(i), 1, "1", "user") for i in range(n + 1)))
    many.score_step(attention)
    assert [int(many.brightness(str(i))[0]) for i in range(n + 1)] == one.brightness("a").tolist()


def test_brightness_stays_within_its_limits():
    context = talk(("a", 2, "1", "user"))
    for _ in range(3):
        context.score_step([math.nextafter(1.0, 0.0), 1e300])
    assert context.brightness("a").tolist() == [255, LIMIT]
    context._brightness.values[:] = -LIMIT
    context.score_step([0.5, 0.0])
    assert context.brightness("a").tolist() == [-LIMIT, -LIMIT]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_any_float_in_any_layout(dtype):
    attention = np.array([0.5, 0.375, 0.125, 0.0], dtype)
    for values in (attention, np.repeat(attention, 2)[::2], attention.tolist()):
        context = talk(("a", 4, "1", "user"))
        context.score_step(values)
        assert context.brightness("a").tolist() == [255, 257, 254, 254]
    frozen = attention.copy()
    frozen.setflags(write=False)
    assert talk(("a", 4, "1", "user")).score_step(frozen)


# ---- bad input


def one():
    return talk(("a", 3, "1", "user"))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: one().score_step([0.1, math.nan, 0.1]), ValueError, r"attention\[1\] is nan"),
        (lambda: one().score_step([0.1, 0.1, -0.5]), ValueError, r"attention\[2\] is -0.5"),
        (lambda: one().score_step([math.inf, 0.1, 0.1]), ValueError, r"attention\[0\] is inf"),
        (lambda: one().score_step([0.1, 0.1]), ValueError, "attention has 2 elements but the context 3 tokens"),
        (lambda: one().score_step([[0.1, 0.1, 0.1]]), ValueError, "attention must have one dimension, not 2"),
        (lambda: one().score_step(["a", "b", "c"]), TypeError, "attention must hold numbers"),
        (lambda: one().score_step([0.1] * 3, prefix=-1), ValueError, "prefix must be at least 0, not -1"),
        (lambda: one().prune(-1), ValueError, "budget must be at least 0, not -1"),
        (lambda: one().prune(1.0), TypeError, "budget must be an int, not float"),
        (lambda: one().resurrect([], budget=-1), ValueError, "budget must be at least 0, not -1"),
        (lambda: one().resurrect([], max_results=-1), ValueError, "max_results must be at least 0, not -1"),
        (lambda: one().resurrect([3]), TypeError, r"hits\[0\] must be a str or have an id, not int"),
        (lambda: one().revive(["b"]), KeyError, "there is no chunk 'b'"),
        (lambda: one().revive("a"), TypeError, "chunk_ids must be a list of str, not str"),
        (lambda: one().append_chunk("a", 1, turn_id="2"), ValueError, "chunk_id 'a' is there already"),
        (lambda: one().append_chunk("b", 1, turn_id="1"), ValueError, "turn_id '1' has ended"),
        (lambda: one().append_chunk("b", 0, turn_id="2"), ValueError, "n_tokens must be at least 1, not 0"),
        (lambda: one().append_chunk("b", 2**70, turn_id="2"), ValueError, "n_tokens must be at most"),
        (lambda: one().append_chunk("b\ud800", 1), ValueError, r"chunk_id has the lone surrogate U\+D800"),
        (lambda: one().append_chunk("b", 1, turn_id="\udc00"), ValueError, "turn_id has the lone surrogate"),
        (lambda: one().append_chunk("b", 1, role=3), TypeError, "role must be str, not int"),
        (lambda: one().append_chunk("b", 1, sentence_id=-1), ValueError, "sentence_id must be at least 0"),
        (lambda: one().chunk("b"), KeyError, "there is no chunk 'b'"),
        (lambda: ActiveContext(preset="x"), ValueError, "preset must be one of"),
        (lambda: resurrect_from(FakeIndex([]), one(), "\ud800"), ValueError, "query has the lone surrogate"),
        (lambda: resurrect_from(FakeIndex([]), one(), "a", budget=1, max_context=1), ValueError, "not both"),
        (lambda: resurrect_from(FakeIndex([]), one(), "a", max_context=-1), ValueError, "max_context must be"),
        (lambda: resurrect_from(FakeIndex([]), one(), "a", max_results=-1), ValueError, "max_results must be"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_what_is_refused_changes_nothing():
    context = talk(("a", 3, "1", "user"), ("b", 2, "1", "user"), ended=False)
    context.prune(0)
    before = state(context)
    for call in (
        lambda: context.score_step([0.1, 0.2, 0.9, 0.1, math.nan]),
        lambda: context.append_chunk("c", 1, turn_id="1", role="user", sentence_id=0),
        lambda: context.append_chunk("a", 1, turn_id="2"),
        lambda: context.pin(["b", "none"]),
        lambda: context.resurrect(["a", 3]),
    ):
        with pytest.raises((ValueError, KeyError, TypeError)):
            call()
        assert state(context) == before
    context.append_chunk("c", 1, turn_id="1", role="user")
    assert context.chunk("c").sentence_id == 2


# ---- files


def saved_context():
    context = talk(("ä", 3, "1", "user"), ("b", 2, "1", "assistant"), ("c", 4, "2", "user"), ended=False)
    context.score_step(np.full(9, 0.1))
    context.pin(["b"])
    context.prune(7)
    return context


@pytest.mark.parametrize("make", [saved_context, ActiveContext, one])
@pytest.mark.parametrize("preset", [None, MemoryPreset(min_tokens=3, user_boost=2.5)])
def test_a_file_holds_everything(make, preset, tmp_path):
    context = make()
    if preset:
        context._preset = preset
    context.save(tmp_path / "context")
    again = ActiveContext.load(tmp_path / "context")
    assert (state(again), again.preset) == (state(context), context.preset)
    for each in (context, again):  # and goes on alike, the current turn included
        each.append_chunk("new", 2, turn_id="2" if make is saved_context else "9", role="user")
        each.score_step(np.linspace(0, 0.1, each.n_live_tokens))
        each.prune(3)
    assert state(again) == state(context)
    assert [path.name for path in tmp_path.iterdir()] == ["context"]


def test_every_damage_is_noticed(tmp_path):
    path = tmp_path / "context"
    context = saved_context()
    context.save(path)
    data = path.read_bytes()
    damaged = [data[:i] for i in range(0, len(data), 5)]
    damaged += [data[:i] + bytes([data[i] ^ 0x41]) + data[i + 1 :] for i in range(0, len(data), 3)]
    for content in [*damaged, data + b"x", b"", data[:-1] + b"\0\0"]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not an active context"):
            ActiveContext.load(path)
    path.write_bytes(data)
    assert state(ActiveContext.load(path)) == state(context)
    with pytest.raises(FileNotFoundError):
        ActiveContext.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": np.array([0, 3, 2**60, 9])}, "offsets do not fit"),
        ({"offsets": np.array([0, 3, 3, 9])}, "offsets do not fit"),
        ({"offsets": np.array([], np.int64)}, "offsets do not fit"),
        ({"live": np.array([1, 1, 2], np.uint8)}, "live and pinned must be 0 or 1"),
        ({"live": np.array([1], np.uint8)}, "live has 1 elements, not 3"),
        ({"brightness": np.full(9, 2**31 - 1, np.int32)}, "brightness is out of range"),
        ({"brightness": np.zeros(9)}, "brightness must be a row of int32"),
        ({"message_of": np.array([0, 1, 7])}, "not an active context"),
        ({"message_of": np.array([0, 1, -1])}, "message_of does not fit"),
        ({"header": np.frombuffer(b"[]", np.uint8)}, "header must be read from a dict"),
        ({"header": np.frombuffer(b'{"format": "x"}', np.uint8)}, "header has no field 'format'"),
        ({"header": np.frombuffer(b'{}', np.uint8)}, "header.preset is missing"),
        ({"header": np.array([object()])}, "pickle"),
        ({"brightness": None}, "not an active context"),
    ],
)  # fmt: skip
def test_a_file_that_somebody_made_is_checked(change, message, tmp_path):
    path = tmp_path / "context"
    saved_context().save(path)
    data = path.read_bytes()
    head = data.index(b"\n") + 1
    with np.load(io.BytesIO(data[head + 32 :])) as arrays:
        columns = {**dict(arrays), **change}
    stream = io.BytesIO()
    np.savez(stream, **{name: column for name, column in columns.items() if column is not None})
    path.write_bytes(data[:head] + hashlib.sha256(stream.getvalue()).digest() + stream.getvalue())
    with pytest.raises(ValueError, match=message) as caught:
        ActiveContext.load(path)
    assert str(path) in str(caught.value)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "context"
    context = saved_context()
    context.save(path)
    before = path.read_bytes()

    def fails(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fails)
    context.unpin(["b"])
    with pytest.raises(OSError, match="disk full"):
        context.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["context"]
