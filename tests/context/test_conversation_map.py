import itertools

import numpy as np
import pytest
from contexts import SNAPSHOTS, chunk, snapshot
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast import ContextSnapshot, ConversationMap, DomainTag, HSCAEngine, leading_domain, merge_maps

TALK = ConversationMap(
    [
        snapshot("a", ["The keeper lit the lamp.", "The LAMP burned."], domains={"narrative": 1.0}, position=0),
        snapshot("b", ["Statute law says so."], domains={"legal": 1.0, "narrative": 0.25}, position=1),
        snapshot(
            "c", ["Lamps and statutes."], domains={"legal": 0.5, "narrative": 0.5, "cross_domain": 0.5}, position=2
        ),
        snapshot("d", ["The keeper slept."], domains={"narrative": 0.75, "unclassified": 1.0}, position=3),
    ]
)


def test_it_is_a_sequence():
    assert len(TALK) == 4
    assert [s.snapshot_id for s in TALK] == ["a", "b", "c", "d"]
    assert TALK[-1].snapshot_id == "d"
    assert TALK[1:3] == ConversationMap([TALK[1], TALK[2]])
    assert ConversationMap([]) == ConversationMap([])


# ---- questions


@pytest.mark.parametrize(
    ("concept", "before"),
    [
        ("statute", "a"),
        ("STATUTE", "a"),
        ("law says", "a"),
        ("lamps and", "b"),
        ("slept", "c"),
        ("keeper", None),
        ("lam", None),
        ("nowhere", None),
        (DomainTag.LEGAL, "a"),
        (DomainTag.CROSS_DOMAIN, "b"),
        (DomainTag.NARRATIVE, None),
        (DomainTag.POETRY, None),
    ],
)
def test_state_before(concept, before):
    found = TALK.state_before(concept)
    assert (found.snapshot_id if found else None) == before


def test_the_first_mention_tells_never_from_at_once():
    assert TALK.first_mention("keeper") == 0
    assert TALK.first_mention("nowhere") is None


def test_words_that_a_part_without_text_may_hold_first():
    kept, bare = snapshot("a", ["the lamp"]), snapshot("b", [""], position=1, created_at=1.0)
    later = snapshot("c", ["the harbour"], position=2, created_at=2.0)
    talk = ConversationMap([kept, bare, later])
    assert talk.first_mention("lamp") == 0
    for word in ("harbour", "nowhere"):
        with pytest.raises(ValueError, match=rf"'{word}' cannot be looked for: snapshots\[1\] kept weights"):
            talk.first_mention(word)
    said_nothing = snapshot("b", [""], weight=0.0, position=1)
    assert ConversationMap([kept, said_nothing, later]).first_mention("harbour") == 2


def test_the_snapshots_that_hold_a_word():
    assert [s.snapshot_id for s in TALK.holding(["keeper"])] == [
        s.snapshot_id for s in TALK if any("keeper" in c.text.casefold() for c in s.chunks)
    ]
    assert len(TALK.holding([])) == 0
    merged = merge_maps([TALK], namespaces=["n"], decay=[0.5])
    assert set(merged.holding(["keeper"]).decay.tolist()) == {0.5}


def test_words_cannot_be_looked_for_without_text():
    engine = HSCAEngine(max_buffer_chunks=1, retain="weights")
    engine.ingest_turns(["The lamp.", "The law."])
    bare = ConversationMap(engine.get_macro_context())
    with pytest.raises(ValueError, match="no text"):
        bare.state_before("lamp")
    assert bare.first_mention(DomainTag.POETRY) is None
    for wrong, error in ((" .", ValueError), (3, TypeError)):
        with pytest.raises(error, match="concept"):
            TALK.state_before(wrong)


def test_domain_evolution():
    labels, matrix = TALK.domain_evolution()
    assert labels == ["legal", "narrative", "cross_domain", "unclassified"]
    assert matrix.tolist() == [[0, 1, 0, 0], [1, 0.25, 0, 0], [0.5, 0.5, 0.5, 0], [0, 0.75, 0, 1]]
    labels, matrix = ConversationMap([]).domain_evolution()
    assert (labels, matrix.shape) == ([], (0, 0))


def test_domain_summary_counts_by_weight():
    talk = ConversationMap(
        [
            snapshot("a", ["", ""], weight=0.5, domains={"legal": 1.0}, position=0),
            snapshot("b", [""], weight=1.0, domains={"legal": 0.5, "poetry": 1.0}, position=1),
        ]
    )
    assert talk.domain_summary() == {"legal": 0.75, "poetry": 0.5}
    assert ConversationMap([snapshot("a", weight=0.0, domains={"legal": 0.0})]).domain_summary() == {"legal": 0.0}


def test_transitions():
    assert [leading_domain(s) for s in TALK] == ["narrative", "legal", "cross_domain", "narrative"]
    found = TALK.transitions()
    assert [(t.position, t.before, t.after) for t in found] == [
        (1, "narrative", "legal"),
        (2, "legal", "cross_domain"),
        (3, "cross_domain", "narrative"),
    ]
    # (0, 1, 0, 0) and (.8, .2, 0, 0) are .8 apart
    assert found[0].shift == pytest.approx(0.8)
    assert leading_domain(snapshot("x")) == "unclassified"


@given(SNAPSHOTS)
def test_transitions_are_where_the_leading_domain_changes(snapshots):
    talk = ConversationMap(snapshots)
    found = {t.position: t for t in talk.transitions()}
    for before, after in itertools.pairwise(snapshots):
        changed = leading_domain(before) != leading_domain(after)
        assert (after.conversation_position in found) == changed
    assert all(0 <= t.shift <= 1 for t in found.values())


def test_regions():
    assert [s.snapshot_id for s in TALK.region(last=3)] == ["b", "c", "d"]
    assert len(TALK.region(last=9)) == 4
    assert len(TALK.region(last=0)) == 0
    assert [s.snapshot_id for s in TALK.region(1, 3)] == ["b", "c"]
    assert [s.snapshot_id for s in TALK.region(start=-1)] == ["d"]
    assert TALK.region() == TALK
    assert TALK.region(1, 3)[0].conversation_position == 1
    with pytest.raises(ValueError, match="not both"):
        TALK.region(1, last=2)
    with pytest.raises(ValueError, match="last must not be negative, not -1"):
        TALK.region(last=-1)
    with pytest.raises(TypeError, match="start"):
        TALK.region(1.0)


# ---- several sessions


def sessions():
    first = [snapshot("a", ["x"], position=0, created_at=1.0), snapshot("b", ["y"], position=1, created_at=5.0)]
    second = [snapshot("c", ["z"], position=0, created_at=3.0)]
    return [ConversationMap(first), ConversationMap(second)]


def test_merged_in_order_of_time_under_stable_names():
    merged = merge_maps(sessions(), namespaces=["mon", "tue"])
    assert [s.snapshot_id for s in merged] == ["mon/a", "tue/c", "mon/b"]
    assert [s.conversation_position for s in merged] == [0, 1, 2]
    assert [s.chunks[0].chunk_id for s in merged] == ["mon/a.0", "tue/c.0", "mon/b.0"]
    assert [(p.namespace, p.snapshot_id, p.conversation_position) for p in merged.provenance] == [
        ("mon", "a", 0),
        ("tue", "c", 0),
        ("mon", "b", 1),
    ]
    assert merged.decay.tolist() == [1.0, 1.0, 1.0]
    assert merge_maps(sessions()[::-1], namespaces=["tue", "mon"]) == merged


def test_merging_leaves_the_sessions_as_they_were():
    maps = sessions()
    merge_maps(maps, namespaces=["mon", "tue"])[0].chunks[0].domain_tags.append("new")
    assert maps == sessions()


def test_a_session_stays_in_order_when_its_clock_went_back():
    back = ConversationMap([snapshot("a", position=0, created_at=9.0), snapshot("b", position=1, created_at=2.0)])
    other = ConversationMap([snapshot("c", position=0, created_at=5.0)])
    assert [s.snapshot_id for s in merge_maps([back, other], namespaces=["x", "y"])] == ["y/c", "x/a", "x/b"]


def test_decay_by_session():
    maps = [
        ConversationMap([snapshot(name, ["lamp"], created_at=when)])
        for name, when in (("a", 2.0), ("b", 1.0), ("c", 3.0))
    ]
    merged = merge_maps(maps, namespaces=["a", "b", "c"], decay=0.5)
    assert dict(zip([p.namespace for p in merged.provenance], merged.decay.tolist(), strict=True)) == {
        "a": 0.5, "b": 0.25, "c": 1.0,
    }  # fmt: skip
    relevance = merged.relevance("lamp")
    assert (relevance / relevance[-1]).tolist() == [0.25, 0.5, 1.0]
    stale = merge_maps(maps, namespaces=["a", "b", "c"], decay=[0.0, 1.0, 1.0])
    assert stale.relevance("lamp")[1] == 0
    again = merge_maps([merged], namespaces=["all"], decay=[0.5])
    assert again.decay.tolist() == [0.125, 0.25, 0.5]
    assert again[0].snapshot_id == "all/b/b"


def test_decayed_sessions_weigh_less_in_the_summary():
    old = ConversationMap([snapshot("a", ["x"], domains={"legal": 1.0}, created_at=1.0)])
    new = ConversationMap([snapshot("b", ["y"], domains={"poetry": 1.0}, created_at=2.0)])
    merged = merge_maps([old, new], namespaces=["old", "new"], decay=[0.25, 1.0])
    assert merged.domain_summary() == {"legal": 0.2, "poetry": 0.8}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"namespaces": ["x", "x"]}, r"namespaces\[1\] 'x' is there already"),
        ({"namespaces": ["x"]}, "namespaces must name each of 2 maps"),
        ({"namespaces": "xy"}, "namespaces"),
        ({"namespaces": ["x", ""]}, r"namespaces\[1\]"),
        ({"namespaces": ["x", "a/b"]}, "without '/'"),
        ({"namespaces": ["x", "y"], "decay": 1.5}, "decay"),
        ({"namespaces": ["x", "y"], "decay": [1.0]}, "decay must have a value for each"),
        ({"namespaces": ["x", "y"], "decay": [1.0, -1]}, r"decay\[1\]"),
    ],
)
def test_merges_that_are_refused(options, names):
    with pytest.raises(ValueError, match=names):
        merge_maps(sessions(), **options)


def test_the_same_snapshot_under_two_names_is_refused():
    first, _ = sessions()
    with pytest.raises(ValueError, match="snapshot 'a' is in 'x' and in 'y'"):
        merge_maps([first, first], namespaces=["x", "y"])


def test_nothing_merged_is_nothing():
    assert len(merge_maps([], namespaces=[])) == 0


@given(st.lists(SNAPSHOTS, max_size=3), st.none() | st.floats(0, 1))
def test_merging_keeps_every_snapshot_and_its_weights(parts, decay):
    taken = set()
    maps = []
    for part in parts:
        maps.append(ConversationMap([s for s in part if s.snapshot_id not in taken]))
        taken |= {s.snapshot_id for s in part}
    merged = merge_maps(maps, namespaces=[f"n{i}" for i in range(len(maps))], decay=decay)
    assert len(merged) == sum(map(len, maps))
    for i, (made, origin) in enumerate(zip(merged, merged.provenance, strict=True)):
        old = maps[int(origin.namespace[1:])]
        (source,) = (s for s in old if s.snapshot_id == origin.snapshot_id)
        assert made.conversation_position == i
        assert made.snapshot_id == f"{origin.namespace}/{source.snapshot_id}"
        assert [c.layer1_score for c in made.chunks] == [c.layer1_score for c in source.chunks]
        assert (made.macro_weight, made.domain_summary) == (source.macro_weight, source.domain_summary)
        assert 0 <= origin.decay <= 1
    for m, old in enumerate(maps):
        kept = [o.conversation_position for o in merged.provenance if o.namespace == f"n{m}"]
        assert kept == [s.conversation_position for s in old]


# ---- bad input


def test_maps_that_are_refused():
    with pytest.raises(ValueError, match=r"snapshots\[1\]\.snapshot_id 'a' is there already"):
        ConversationMap([snapshot("a", position=0), snapshot("a", position=1)])
    with pytest.raises(ValueError, match=r"snapshots\[1\]\.conversation_position is 0, after 0"):
        ConversationMap([snapshot("a"), snapshot("b")])
    with pytest.raises(TypeError, match=r"snapshots\[0\] must be a ContextSnapshot"):
        ConversationMap([chunk()])


def test_it_takes_what_an_engine_made():
    engine = HSCAEngine(max_buffer_chunks=2)
    engine.ingest_turns(["One.", "Two.", "Three.", "Four."])
    talk = ConversationMap(engine.get_macro_context())
    assert isinstance(talk[0], ContextSnapshot)
    assert np.isfinite(talk.relevance("One")).all()
