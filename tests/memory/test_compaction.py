import contextlib
import copy
from itertools import chain

import numpy as np
import pytest
from compaction_store import WORDS, CrashError, MemoryStore, embed, session
from hypothesis import given, settings
from hypothesis import strategies as st
from libravdb_vectors import recorded

from hsca_fast._reference import compaction as reference
from hsca_fast.memory.compaction import (
    CompactionError,
    Lineage,
    SummaryRecord,
    compact_session,
    expand_summary,
    partition_chronological,
    summary_id,
)
from hsca_fast.memory.summarizer import Draft, Summarizer
from hsca_fast.memory.turns import Turn
from hsca_fast.ranking import estimate_tokens


def compact(store, **options):
    return compact_session(store, **{"keep_recent": 4, "clock": lambda: 99.0} | options)


# ---- clusters


@recorded("partition_chronological")
def test_recorded_partitions(case):
    turns = range(case["input"]["n"])
    sizes = [len(rows) for rows in partition_chronological(turns, target_size=case["input"]["k"])]
    assert sizes == case["output"]["sizes"]


@given(st.integers(0, 300), st.integers(-3, 60))
def test_partition_equals_the_definition(n, k):
    clusters = partition_chronological(range(n), target_size=k)
    assert list(chain(*clusters)) == list(range(n))
    assert all(reference.cluster_index(i, n, k) == j for j, rows in enumerate(clusters) for i in rows)
    assert len(clusters) == (reference.cluster_count(n, k) if n else 0)
    assert all(1 <= len(rows) <= (k if k > 0 else 20) for rows in clusters)


def test_partition_refuses_disorder():
    with pytest.raises(ValueError, match=r"turns\[1\] is earlier than turns\[0\]"):
        partition_chronological([Turn("a", timestamp=2.0), Turn("b", timestamp=1.0)])
    with pytest.raises(TypeError, match="target_size must be an int, not float"):
        partition_chronological([], target_size=2.0)


def test_ids_with_commas_do_not_collide():
    turns = [
        Turn(" ".join(WORDS) + f" {i}.", id=id, timestamp=float(i)) for i, id in enumerate(["a,b", "c", "a", "b,c"])
    ]
    store = MemoryStore(turns)
    report = compact(store, keep_recent=0, target_size=2)
    assert [cluster.status for cluster in report.clusters] == ["stored", "stored"]
    assert {id: store.summaries[owner].lineage.source_ids for id, owner in store.marks.items()} == {
        "a,b": ("a,b", "c"), "c": ("a,b", "c"), "a": ("a", "b,c"), "b,c": ("a", "b,c")
    }  # fmt: skip
    assert summary_id("s:a", ["b"]) != summary_id("s", ["a:b"])


def test_a_summary_of_other_sources_is_not_replaced():
    store = MemoryStore(session(8))
    taken = summary_id("s1", [turn.id for turn in store.turns])
    store.summaries[taken] = summary(taken, ["elsewhere"])
    store.marks["elsewhere"] = taken
    with pytest.raises(CompactionError, match="is the summary of other sources"):
        compact(store, keep_recent=0)
    assert store.summaries[taken].lineage.source_ids == ("elsewhere",)
    assert store.marks == {"elsewhere": taken}


@recorded("summary_id")
def test_recorded_summary_ids(case):
    assert summary_id(case["input"]["session"], case["input"]["source_ids"]) == case["output"]["id"]


# ---- summaries


def test_summaries_are_views_of_their_sources():
    store = MemoryStore(session(50))
    before = list(store.turns)
    report = compact(store, target_size=10)
    assert store.turns == before
    assert [len(cluster.source_ids) for cluster in report.clusters] == [10, 9, 9, 9, 9]
    assert report.kept_recent == ("t046", "t047", "t048", "t049")
    assert report.n_compacted == 46
    for cluster in report.clusters:
        record = store.summaries[cluster.record.id]
        lineage = record.lineage
        assert cluster.status == "stored"
        assert lineage.source_ids == cluster.source_ids
        assert (lineage.method, lineage.fallback, lineage.decoder_confidence) == ("extractive", "", None)
        assert (lineage.first_timestamp, lineage.last_timestamp) == tuple(
            float(cluster.source_ids[i][1:]) for i in (0, -1)
        )
        assert lineage.created_at == 99.0
        assert record.n_tokens == estimate_tokens(record.text)
        sources = [turn for turn in before if turn.id in lineage.source_ids]
        assert record.n_tokens < sum(estimate_tokens(turn.text) for turn in sources)
        assert record.confidence == pytest.approx((lineage.align + lineage.cover) / 2)
        assert record.decay_rate == 1 - record.confidence
        assert expand_summary(store, record.id) == sources
    assert compact(store, target_size=10).clusters == ()


def test_dry_run_writes_nothing_and_tells_the_same():
    store = MemoryStore(session(30))
    planned = compact(store, dry_run=True)
    assert (store.summaries, store.marks, store.writes) == ({}, {}, 0)
    stored = compact(store)
    assert [cluster.status for cluster in planned.clusters] == ["planned"] * 2
    for plan, done in zip(planned.clusters, stored.clusters, strict=True):
        assert plan.record.same_as(done.record)


@pytest.mark.parametrize("keep_recent", [0, 1, 7, 30, 99])
def test_recent_turns_are_never_touched(keep_recent):
    store = MemoryStore(session(30))
    report = compact(store, keep_recent=keep_recent, target_size=5)
    recent = {turn.id for turn in store.turns[max(0, 30 - keep_recent) :]}
    assert set(report.kept_recent) == recent
    assert not recent & store.marks.keys()
    assert not recent & set(chain(*(record.lineage.source_ids for record in store.summaries.values())))


def test_disordered_sessions_are_sorted():
    turns = session(12)
    store, other = MemoryStore(turns), MemoryStore(turns[::-1])
    assert [c.source_ids for c in compact(store).clusters] == [c.source_ids for c in compact(other).clusters]


def test_single_turns_are_trivial_or_declined():
    long = Turn("The lamp is lit and burns. " * 60, "user", "long", 0.0)
    short = Turn("Yes.", "assistant", "short", 1.0)
    store = MemoryStore([long, short])
    report = compact(store, keep_recent=0, target_size=1)
    assert [cluster.status for cluster in report.clusters] == ["stored", "declined"]
    record = report.clusters[0].record
    assert record.lineage.method == "trivial"
    assert long.text.startswith(record.text)
    assert record.n_tokens <= 256
    assert report.clusters[1].reason == "no whole sentences within 256 tokens are shorter than its 1 source of 1 tokens"
    assert store.marks == {"long": record.id}


@pytest.mark.parametrize("text", ["I do not like tea at all.", "I do not like tea. I like coffee.", "word " * 400])
def test_a_single_turn_is_never_cut_inside_a_sentence(text):
    store = MemoryStore([Turn(text, "user", "t", 0.0)])
    (cluster,) = compact(store, keep_recent=0, min_turns=1).clusters
    assert (cluster.status, cluster.record, store.summaries, store.marks) == ("declined", None, {}, {})


def test_few_turns_wait_for_more():
    turns = session(9)
    store = MemoryStore([])
    for n in range(1, 10):  # compaction after every turn
        store.turns = turns[:n]
        report = compact(store, keep_recent=0, min_turns=4)
        if n % 4:
            assert [cluster.reason for cluster in report.clusters] == [
                f"{n % 4} of at least 4 turns: they wait for more"
            ]
    assert [len(record.lineage.source_ids) for record in store.summaries.values()] == [4, 4]
    assert compact(MemoryStore(turns[:1]), keep_recent=0).clusters[0].status == "declined"


# ---- abstractive summaries


class Fixed:
    name = "fixed"

    def __init__(self, draft):
        self.draft = draft
        self.calls = []

    def summarize(self, texts, *, max_tokens):
        self.calls.append((list(texts), max_tokens))
        if isinstance(self.draft, Exception):
            raise self.draft
        return self.draft


class Unprintable(Exception):  # noqa: N818
    def __str__(self):
        raise RuntimeError


class Nameless:
    def summarize(self, texts, *, max_tokens):
        return Draft("lamp")


def test_good_drafts_are_taken():
    store = MemoryStore([Turn(" ".join(WORDS), id=f"t{i}", timestamp=float(i)) for i in range(6)])
    summarizer = Fixed(Draft(" " + " ".join(WORDS[::-1]) + "\n", 0.5))
    assert isinstance(summarizer, Summarizer)
    (cluster,) = compact(store, keep_recent=0, summarizer=summarizer).clusters
    assert summarizer.calls == [([" ".join(WORDS)] * 6, 256)]
    lineage = cluster.record.lineage
    assert (lineage.method, lineage.fallback, lineage.decoder_confidence) == ("fixed", "", 0.5)
    assert cluster.record.text == " ".join(WORDS[::-1])
    assert lineage.align == pytest.approx(1.0)
    assert cluster.record.confidence == pytest.approx(0.8 * 1.0 + 0.2 * 0.5)


@pytest.mark.parametrize(
    ("draft", "fallback"),
    [
        (RuntimeError("out of memory"), "fixed raised RuntimeError: out of memory"),
        (Draft(""), "fixed returned no text"),
        (Draft(" \n"), "fixed returned no text"),
        (None, "fixed returned NoneType"),
        (Draft("lamp", float("nan")), "fixed: confidence must be finite, not nan"),
        (Draft("lamp", 10**400), "fixed: confidence must be a number that float64 can hold"),
        (Draft("lamp", "high"), "fixed: confidence must be a number, not str"),
        (Draft(None), "fixed returned a text of type NoneType"),
        (Draft(5), "fixed returned a text of type int"),
        (Draft(b"abc"), "fixed returned a text of type bytes"),
        (Unprintable(), "fixed raised Unprintable"),
        (Draft("lamp " * 400), "fixed returned 500 tokens where 256 were asked for"),
        (Draft("lamp " * 160), "fixed returned 200 tokens for sources of"),
        (Draft("zebra quartz"), "align 0."),
    ],
)
def test_bad_drafts_fall_back_to_an_extract(draft, fallback):
    store = MemoryStore(session(8))
    (cluster,) = compact(store, keep_recent=0, summarizer=Fixed(draft)).clusters
    assert cluster.status == "stored"
    assert cluster.record.lineage.method == "extractive"
    assert cluster.record.lineage.fallback.startswith(fallback)
    assert cluster.record.lineage.decoder_confidence is None
    assert cluster.record.text == compact(MemoryStore(session(8)), keep_recent=0).clusters[0].record.text


def test_a_summarizer_without_a_name_is_not_used():
    (cluster,) = compact(MemoryStore(session(8)), keep_recent=0, summarizer=Nameless()).clusters
    assert cluster.record.lineage.fallback.startswith("Nameless raised AttributeError")
    unnamed = Fixed(Draft("lamp"))
    unnamed.name = 3
    (cluster,) = compact(MemoryStore(session(8)), keep_recent=0, summarizer=unnamed).clusters
    assert (cluster.record.lineage.method, unnamed.calls) == ("extractive", [])
    assert cluster.record.lineage.fallback == "Fixed has a name of type int"


def test_confidences_of_numpy_are_stored_as_floats():
    store = MemoryStore([Turn(" ".join(WORDS), id=f"t{i}", timestamp=float(i)) for i in range(6)])
    summarizer = Fixed(Draft(" ".join(WORDS), np.float32(0.5)))
    (cluster,) = compact(store, keep_recent=0, summarizer=summarizer).clusters
    assert type(cluster.record.lineage.decoder_confidence) is float


def test_gate_is_at_its_threshold():
    store = MemoryStore(session(8))
    summarizer = Fixed(Draft("lamp tower"))
    align = (
        compact(store, keep_recent=0, summarizer=summarizer, threshold=-1.0, dry_run=True)
        .clusters[0]
        .record.lineage.align
    )
    for threshold, method in ((align, "fixed"), (np.nextafter(align, 1.0), "extractive")):
        (cluster,) = compact(store, keep_recent=0, summarizer=summarizer, threshold=threshold, dry_run=True).clusters
        assert cluster.record.lineage.method == method


@recorded("strict_progress")
def test_recorded_progress(case):
    """A cluster is replaced only when the summary is shorter, both sides counted the same way."""
    output = case["output"]
    assert output["progress"] == (output["summary_tokens"] < output["source_tokens"])
    if case["input"]["summary_tokens"] or len(case["input"]["turns"]) < 2 or not case["input"]["summary"]:
        return  # the counters were mixed there, or there is nothing to summarise
    turns = [Turn(text, id=f"t{i}", timestamp=float(i)) for i, text in enumerate(case["input"]["turns"])]
    count = lambda text: max(len(text) // 4, 1)  # noqa: E731
    draft = Draft(case["input"]["summary"])
    (cluster,) = compact(
        MemoryStore(turns), keep_recent=0, summarizer=Fixed(draft), threshold=-1.0, count_tokens=count
    ).clusters
    assert (cluster.record is not None and cluster.record.lineage.method == "fixed") == output["progress"]


# ---- crashes


def test_crash_between_any_two_steps():
    whole = MemoryStore(session(44))
    compact(whole, target_size=10)
    assert whole.writes == 16
    for crash_at in range(whole.writes):
        store = MemoryStore(session(44))
        store.crash_at = crash_at
        with pytest.raises(CrashError):
            compact(store, target_size=10)
        assert store.turns == session(44)
        # Nothing stands for a turn that cannot be read.
        assert all(owner in store.summaries for owner in store.marks.values())
        store.crash_at = None
        report = compact(store, target_size=10)
        # Every older turn is covered once, by a summary that names it.
        covered = list(chain(*(record.lineage.source_ids for record in store.summaries.values())))
        assert sorted(covered) == [turn.id for turn in store.turns[:40]]
        assert store.marks == {id: record.id for record in store.summaries.values() for id in record.lineage.source_ids}
        assert len(report.recovered) == (crash_at % 4 in (1, 2))
        assert compact(store, target_size=10).clusters == ()


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6), st.integers(1, 9)), min_size=1, max_size=5), st.data())
def test_any_history_of_crashes_and_new_turns(history, data):
    turns = session(60)
    store = MemoryStore([])
    for grow, keep_recent, target_size in history:
        store.turns = turns[: len(store.turns) + grow]
        store.writes = 0
        store.crash_at = data.draw(st.none() | st.integers(0, 8))
        before = copy.copy(store.marks)
        recent = {turn.id for turn in store.turns[max(0, len(store.turns) - keep_recent) :]}
        with contextlib.suppress(CrashError):
            compact(store, keep_recent=keep_recent, target_size=target_size)
        assert before.items() <= store.marks.items()
        assert not recent & (store.marks.keys() - before.keys())
        covered = list(chain(*(record.lineage.source_ids for record in store.summaries.values())))
        assert len(covered) == len(set(covered))


def test_a_store_that_does_not_keep_what_it_is_given():
    store = MemoryStore(session(20))
    store.garble = True
    with pytest.raises(CompactionError, match="did not read back as written"):
        compact(store)
    assert store.marks == {}


def test_recovery_leaves_recent_turns_alone():
    store = MemoryStore(session(10))
    store.crash_at = 1
    with pytest.raises(CrashError):
        compact(store, keep_recent=2)
    store.crash_at = None
    report = compact(store, keep_recent=5)
    assert (report.recovered, report.clusters, store.marks) == ((), (), {})
    assert len(compact(store, keep_recent=2).recovered) == 1


# ---- expansion


def summary(id, sources):
    return SummaryRecord(id, id, 1.0, 0.0, 1, Lineage(tuple(sources), 0.0, 0.0, 0.0, "extractive", 1.0, 1.0), embed(id))


def test_expansion_is_bounded():
    store = MemoryStore(session(6))
    store.summaries = {
        "a": summary("a", ["t000", "t001"]),
        "b": summary("b", ["a", "t002"]),
        "c": summary("c", ["b", "t003"]),
        "d": summary("d", ["c", "t004", "gone"]),
        "loop": summary("loop", ["loop", "pool", "t005"]),
        "pool": summary("pool", ["loop", "t005"]),
    }
    assert [each.id for each in expand_summary(store, "d", max_depth=9)] == ["t000", "t001", "t002", "t003", "t004"]
    assert [each.id for each in expand_summary(store, "d")] == ["a", "t002", "t003", "t004"]
    assert [each.id for each in expand_summary(store, "d", max_depth=1)] == ["c", "t004"]
    assert [each.id for each in expand_summary(store, "loop")] == ["t005"]
    with pytest.raises(KeyError, match="nowhere"):
        expand_summary(store, "nowhere")
    with pytest.raises(ValueError, match="max_depth must be at least 1, not 0"):
        expand_summary(store, "d", max_depth=0)


def test_long_chains_of_summaries_need_no_stack():
    store = MemoryStore([Turn("x", id="t")])
    store.summaries = {f"s{i}": summary(f"s{i}", [f"s{i + 1}" if i < 4999 else "t"]) for i in range(5000)}
    assert expand_summary(store, "s0", max_depth=10_000) == store.turns


# ---- edges


def test_an_index_is_not_a_session():
    with pytest.raises(TypeError, match=r"index must be the store of one session, as SemanticIndex.session\(name\)"):
        compact_session(object(), keep_recent=0)


def test_nothing_to_compact():
    assert compact(MemoryStore([])).clusters == ()
    assert compact(MemoryStore(session(3))).clusters == ()
    empty = MemoryStore([Turn("", id="a", timestamp=0.0), Turn("", id="b", timestamp=1.0)])
    (cluster,) = compact(empty, keep_recent=0).clusters
    assert cluster.reason == "no whole sentences within 256 tokens are shorter than its 2 sources of 0 tokens"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep_recent": -1}, "keep_recent must be an int of at least 0, not -1"),
        ({"keep_recent": 1.5}, "keep_recent"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, not 0"),
        ({"max_tokens": float("nan")}, "max_tokens must be an int, not float"),
        ({"min_turns": 0}, "min_turns must be at least 1, not 0"),
        ({"threshold": 2}, "threshold must be from -1 to 1, not 2"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        compact(MemoryStore(session(3)), **options)


def test_turns_without_an_id_are_refused():
    with pytest.raises(ValueError, match="turn 1 of the session has no id"):
        compact(MemoryStore([Turn("a", id="x"), Turn("b")]))
