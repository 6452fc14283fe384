import pytest
from hypothesis import given
from hypothesis import strategies as st
from libravdb_vectors import recorded

from hsca_fast._reference import assembly as reference
from hsca_fast.assembly.tail import coupled, recent_tail, tail_start
from hsca_fast.memory.turns import Turn


def recorded_turns(case):
    coupling = case["input"]["coupling"]
    return [
        Turn(
            "x" * item["cost"],
            role=item.get("role") or "" if coupling == "role_or_bundle" else "",
            id=item["id"],
            bundle=item.get("bundle") or "" if coupling != "none" else "",
        )
        for item in case["input"]["items"]
    ]


@recorded("select_recent_tail")
def test_recorded_tails(case):
    options, output = case["input"]["opts"], case["output"]
    budget, min_turns = options.get("tailBudgetTokens", 128), options.get("minTurns", 4)
    if budget < 0 or min_turns < 0 or min_turns != int(min_turns):  # refused here; there they were bent into range
        with pytest.raises((ValueError, TypeError), match=r"min_turns|budget"):
            recent_tail(recorded_turns(case), budget=budget, min_turns=min_turns)
        return
    tail = recent_tail(recorded_turns(case), budget=budget, min_turns=min_turns, count_tokens=len)
    assert tail.base_tokens == output["baseTokens"]
    compare(tail, output, budget, len)


@recorded("sidecar_recent_tail")
def test_recorded_tails_of_the_twin(case):
    turns = [
        Turn(turn["text"], turn.get("role") or "", turn["id"], turn["ts"], turn.get("bundle") or "")
        for turn in case["input"]["turns"]
    ]
    budget = case["input"]["tail_budget"]
    budget = budget if budget > 0 else 128  # there, not here
    tail = recent_tail(turns, budget=budget, min_turns=case["input"]["min_turns"], count_tokens=sidecar_tokens)
    compare(tail, case["output"], budget, sidecar_tokens)


def sidecar_tokens(text):
    return max(len(text) // 4, 1)


def compare(tail, output, budget, count):
    """The recorded tail where it is legal; there bundles ignored the budget and chained in both orders of roles."""
    session = [*tail.older, *tail.recent]
    assert [turn.id for turn in tail.base] == output["base"]
    start = len(session) - len(output["recent"])
    cost = sum(count(turn.text) for turn in session[start:])
    is_safe = not output["recent"] or not coupled(session)[start]
    if is_safe and cost <= max(budget, tail.base_tokens):
        assert [turn.id for turn in tail.recent] == output["recent"]
        assert [turn.id for turn in tail.older] == output["older"]
    else:
        assert tail.recent_tokens <= max(budget, tail.base_tokens) < cost or not is_safe


def test_alternating_dialogue_keeps_a_short_tail():
    turns = [Turn("x" * 30, ("user", "assistant")[i % 2], id=f"{i:02d}") for i in range(40)]
    tail = recent_tail(turns, budget=200, min_turns=3, count_tokens=len)
    assert [turn.id for turn in tail.recent] == [f"{i:02d}" for i in range(34, 40)]
    assert not tail.splits_bundle


def test_bundle_of_the_base():
    turns = [Turn("q" * 10, "user"), Turn("a" * 10, "assistant")]
    assert recent_tail(turns, budget=5, min_turns=1, count_tokens=len).splits_bundle
    whole = recent_tail(turns, budget=5, min_turns=1, limit=20, count_tokens=len)
    assert (len(whole.recent), whole.splits_bundle) == (2, False)
    assert recent_tail(turns, budget=5, min_turns=1, limit=19, count_tokens=len).splits_bundle


def test_order_is_by_time_then_id():
    turns = [Turn("c", id="2", timestamp=2.0), Turn("a", id="0", timestamp=1.0), Turn("b", id="1", timestamp=2.0)]
    assert [turn.text for turn in recent_tail(turns, budget=99).recent] == ["a", "b", "c"]


SESSIONS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(["user", "assistant", "tool"]), st.sampled_from(["", "", "p", "q"])),
    max_size=14,
)


@given(SESSIONS, st.integers(0, 6), st.integers(0, 60), st.none() | st.integers(0, 90))
def test_equals_the_definition(session, min_turns, budget, limit):
    turns = [Turn("x" * cost, role, bundle=bundle) for cost, role, bundle in session]
    costs = [cost for cost, _, _ in session]
    base, start, splits = tail_start(costs, coupled(turns), min_turns, budget, limit)
    assert (start, splits) == reference.tail_start(costs, coupled(turns), min_turns, budget, limit)
    tail = recent_tail(turns, budget=budget, min_turns=min_turns, limit=limit, count_tokens=len)
    assert (*tail.older, *tail.recent) == tuple(turns)
    assert tail.recent[len(tail.recent) - len(tail.base) :] == tail.base
    assert len(tail.base) == min(min_turns, len(turns)) == len(turns) - base
    assert tail.recent_tokens <= max(budget, tail.base_tokens, limit or 0)
    if limit is None:
        assert tail.recent_tokens <= max(budget, tail.base_tokens)


@given(SESSIONS, st.integers(0, 6), st.integers(0, 60), st.integers(0, 20))
def test_more_budget_never_shortens_the_tail(session, min_turns, budget, more):
    turns = [Turn("x" * cost, role, bundle=bundle) for cost, role, bundle in session]
    less, larger = (
        len(recent_tail(turns, budget=b, min_turns=min_turns, count_tokens=len).recent) for b in (budget, budget + more)
    )
    assert less <= larger


@pytest.mark.parametrize(
    ("turns", "options", "message"),
    [
        (["a"], {"budget": -1}, "budget must be at least 0, not -1"),
        (["a"], {"budget": 1.5}, "budget must be an int, not float"),
        (["a"], {"budget": 1, "min_turns": -1}, "min_turns must be at least 0"),
        ("abc", {"budget": 1}, "turns must be a sequence of Turn, not str"),
        ([Turn("a"), 3], {"budget": 1}, r"turns\[1\] must be a Turn"),
        ([{"text": "a", "timestamp": float("nan")}], {"budget": 1}, r"turns\[0\].timestamp must be finite"),
        ([Turn("a", timestamp=1.0), Turn("b")], {"budget": 1}, r"turns\[1\] has no timestamp"),
        ([Turn("a", id="x"), Turn("b", id="x")], {"budget": 1}, r"turns\[1\] has the id 'x' of turns\[0\]"),
        ([{"text": None}], {"budget": 1}, r"turns\[0\].text must be str, not NoneType"),
        ([{"content": "a", "speaker": "me"}], {"budget": 1}, r"turns\[0\] has no field 'speaker'"),
        ([{"role": "user"}], {"budget": 1}, r"turns\[0\] has no text"),
    ],
)
def test_bad_input(turns, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        recent_tail(turns, **options)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": b"a"}, "text must be str, not bytes"),
        ({"text": "a", "bundle": None}, "bundle must be str, not NoneType"),
        ({"text": "a", "timestamp": "now"}, "timestamp must be a number, not str"),
        ({"text": "a", "timestamp": float("inf")}, "timestamp must be finite, not inf"),
    ],
)
def test_bad_turns(fields, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        Turn(**fields)
    with pytest.raises((TypeError, ValueError), match=rf"^turns\[0\].{message}"):
        recent_tail([fields], budget=1)


def test_messages_and_nothing():
    assert recent_tail([{"role": "user", "content": "hello"}], budget=9).recent == (Turn("hello", "user"),)
    assert recent_tail([], budget=9).recent == ()
