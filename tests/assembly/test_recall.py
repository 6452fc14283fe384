import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from libravdb_vectors import recorded

from hsca_fast._reference import assembly as reference
from hsca_fast.assembly.recall import Candidate, Recall, RecallConfig, as_candidates

NOW = 1_775_000_000.0


def recall(query, candidates, *, linked=(), config=None, max_access=None, excluded=()):
    return Recall(
        query,
        candidates,
        linked,
        config or RecallConfig(),
        now=NOW,
        max_access=max_access,
        excluded=frozenset(excluded),
    )


def recorded_candidates(case):
    for item in case["input"]["items"]:
        data = item["metadata"]
        ts = data.get("ts")
        authority = data.get("authority", 1.0 if data.get("authored") is True else 0.0)
        yield Candidate(
            item["id"],
            item["text"],
            item["score"],
            collection=data.get("collection", ""),
            timestamp=ts / 1000 if isinstance(ts, (int, float)) else None,
            access_count=data.get("access_count", 0),
            authority=authority,
        )


# Each function falls back to its own weights, and values outside a domain are refused.
DIFFERENT = {
    "k1 < k2": "k2 must be at most k1",
    "k values floor and clamp to 1": "k1 must be an int, not float",
    "lambda_r negative clamps to 0": "authority_decay must be at least 0",
    "score above 1 clamps": r"candidates\[0\].score must be between -1 and 1",
    "authority weights all zero fall back to 0.7/0.2/0.1": None,
}


def recorded_config(options, case_name):
    names = {"k1": "k1", "k2": "k2", "theta1": "theta1", "kappa": "kappa", "authorityRecencyLambda": "authority_decay"}
    chosen = {"k1": 16, "k2": 8} | {names[name]: value for name, value in options.items() if name in names}
    if not case_name.startswith("k"):  # the document asks for k2 <= k1
        chosen["k2"] = min(chosen["k1"], chosen["k2"])
    weights = [
        options.get(f"authority{name}Weight", default)
        for name, default in (("Recency", 0.5), ("Frequency", 0.2), ("Authored", 0.3))
    ]
    return RecallConfig(**chosen, authority_weights=tuple(weights))


@recorded("rank_two_pass")
def test_recorded_rankings(case):
    options, name = case["input"]["opts"], case["name"]
    candidates = list(recorded_candidates(case))
    if message := DIFFERENT.get(name, ""):
        with pytest.raises((TypeError, ValueError), match=message):
            recall(options["queryText"], candidates, config=recorded_config(options, name))
        return
    config = recorded_config(options, name)
    outside = [row for row, each in enumerate(candidates) if abs(each.score) > 1]
    if outside:  # refused here; there they were ranked
        with pytest.raises(ValueError, match=rf"candidates\[{outside[0]}\].score must be between -1 and 1"):
            recall(options["queryText"], candidates, config=config)
    # There the largest access count is taken over the first pass only; the document says over all of V_rest.
    first = sorted(candidates, key=lambda each: -each.score)[: config.k1]
    largest = max((each.access_count for each in first if each.score >= config.theta1), default=0)
    candidates = [each for each in candidates if abs(each.score) <= 1]
    ranked = recall(options["queryText"], candidates, config=config, max_access=largest).ranked(99)
    found = [(each.candidate.id, each.score) for each in ranked]
    expected = [(each["id"], each["finalScore"]) for each in case["output"]]
    if outside:  # their places are taken by others
        known = {each.id for each in candidates}
        expected = [each for each in expected if each[0] in known]
        found = [each for each in found if each[0] in dict(expected)]
    if name in DIFFERENT:
        assert sorted(found) != sorted(expected)
        return
    # Ties there keep the order of arrival.
    expected.sort(key=lambda each: (-each[1], each[0]))
    assert [id for id, _ in found] == [id for id, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-12)
    if name == "max access taken only over top-k1":
        over_all = recall(options["queryText"], candidates, config=config).ranked(99)
        assert [each.score for each in over_all] != [each.score for each in ranked]


WORDS = ["lamp", "tower", "sea", "stone", "wind", "gull"]
CANDIDATES = st.lists(
    st.builds(
        Candidate,
        id=st.sampled_from([f"d{i}" for i in range(12)]),
        text=st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
        score=st.floats(-1, 1) | st.sampled_from([0.2, 0.5, 1.0]),
        timestamp=st.none() | st.floats(NOW - 1e6, NOW + 10),
        access_count=st.integers(0, 50),
        authority=st.sampled_from([0.0, 0.5, 1.0]),
        hop_targets=st.lists(st.sampled_from([f"d{i}" for i in range(12)] + ["l1", "l2", "nowhere"]), max_size=3),
    ),
    max_size=14,
)
LINKED = [Candidate("l1", "linked one"), Candidate("l2", "linked two")]
QUERIES = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


def by_definition(query, candidates, theta1=0.2, kappa=0.3, k1=None, k2=None, eta=0.5, theta_hop=0.15):
    """Sections 7.3 to 7.8 over a dictionary."""
    rest = {}
    for each in candidates:
        rest.setdefault(each.id, each)
    largest = max((each.access_count for each in rest.values()), default=0)
    keywords = set(query.split())
    first = sorted(rest.values(), key=lambda each: (-each.score, each.id))[:k1]
    scores = {}
    for each in (each for each in first if each.score >= theta1):
        age = 0.0 if each.timestamp is None else NOW - each.timestamp
        weight = reference.authority(age, each.access_count, each.authority, largest)
        coverage = len(keywords & set(each.text.split())) / max(len(keywords), 1)
        scores[each.id] = reference.final_score(each.score, weight, coverage, kappa)
    scores = dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k2])
    edges = {each.id: list(each.hop_targets) for each in rest.values()}
    hops = reference.hop_scores(scores, edges, {*rest, "l1", "l2"} - set(scores), eta, theta_hop)
    return {**scores, **hops}, hops


@given(QUERIES, CANDIDATES, st.sampled_from([None, 1, 3, 8]), st.sampled_from([None, 1, 3]), st.integers(1, 20))
def test_equals_the_definition(query, candidates, k1, k2, k):
    if k1 is not None and k2 is not None:
        k2 = min(k1, k2)
    ranked = recall(query, candidates, linked=LINKED, config=RecallConfig(k1=k1, k2=k2)).ranked(k)
    expected, hops = by_definition(query, candidates, k1=k1, k2=k2)
    assert len(ranked) == min(k, len(expected))
    best = sorted(expected.values(), reverse=True)
    assert [each.score for each in ranked] == pytest.approx(best[:k], rel=1e-12, abs=1e-300)
    for each in ranked:
        assert each.score == pytest.approx(expected[each.candidate.id], rel=1e-12, abs=1e-300)
        assert 0.0 <= each.score <= 1.0
        assert (each.via is not None) == (each.candidate.id in hops)
        if each.via:
            assert each.candidate.id in {c.id: c for c in reversed(candidates)}[each.via[1]].hop_targets
    keys = [(-each.score, each.candidate.id) for each in ranked]
    assert keys == sorted(keys)


@given(QUERIES, CANDIDATES, st.integers(1, 20))
def test_looking_at_fewer_gives_the_same_beginning(query, candidates, k):
    everything = recall(query, candidates, linked=LINKED).ranked(99)
    assert recall(query, candidates, linked=LINKED).ranked(k) == everything[:k]


@given(QUERIES, CANDIDATES)
def test_order_of_arrival_does_not_matter(query, candidates):
    unique = list({each.id: each for each in candidates}.values())
    assert recall(query, unique).ranked(99) == recall(query, unique[::-1]).ranked(99)


def test_same_id_in_two_collections_is_two_documents():
    twins = [
        Candidate("x", "one", 0.9, "user"),
        Candidate("x", "two", 0.8, "global"),
        Candidate("x", "again", 1.0, "user"),
    ]
    assert [each.candidate.text for each in recall("", twins).ranked(9)] == ["one", "two"]
    assert [each.candidate.text for each in recall("", twins, excluded=[("user", "x")]).ranked(9)] == ["two"]


def test_hops_stay_in_their_collection_unless_told():
    parent = Candidate("p", "parent", 1.0, "a", authority=1.0, hop_targets=["x", ("b", "x")])
    linked = [
        Candidate("x", "in a", collection="a"),
        Candidate("x", "in b", collection="b"),
        Candidate("x", "in c", collection="c"),
    ]
    ranked = recall("", [parent], linked=linked).ranked(9)
    assert [each.candidate.text for each in ranked] == ["parent", "in a", "in b"]
    assert [each.via for each in ranked] == [None, ("a", "p"), ("a", "p")]


def test_cycles_end_and_dangling_targets_are_nothing():
    ring = [Candidate(f"d{i}", "", 1.0, hop_targets=[f"d{(i + 1) % 3}", "nowhere", f"d{i}"]) for i in range(3)]
    assert [each.candidate.id for each in recall("", ring).ranked(9)] == ["d0", "d1", "d2"]
    below = [
        Candidate("top", "", 1.0, authority=1.0, hop_targets=["low"]),
        Candidate("low", "", 0.1, hop_targets=["lower"]),
    ]
    ranked = recall("", [*below, Candidate("lower", "", 0.0)]).ranked(9)
    assert [(each.candidate.id, each.via) for each in ranked] == [("top", None), ("low", ("", "top"))]


def test_given_scores_are_kept():
    config = RecallConfig(rank="given")
    ranked = recall("lamp", [Candidate("a", "lamp", 0.1), Candidate("b", "", 0.9)], config=config).ranked(9)
    assert [(each.candidate.id, each.score) for each in ranked] == [("b", 0.9), ("a", 0.1)]
    with pytest.raises(ValueError, match=r"candidates\[0\].score must be between 0 and 1, not -0.5"):
        recall("", [Candidate("a", "", -0.5)], config=config)


def test_cold_start_and_empty():
    assert recall("", []).ranked(5) == []
    (only,) = recall("?!", [Candidate("a", "text", 1.0)]).ranked(5)
    assert only.score == pytest.approx(0.5 / 1.3, rel=1e-12)
    (popular,) = recall("", [Candidate("a", "", 1.0, access_count=3)], max_access=8).ranked(5)
    assert popular.score == pytest.approx((0.5 + 0.2 * math.log(4) / math.log(10)) / 1.3, rel=1e-12)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("score", float("nan"), "must be between -1 and 1, not nan"),
        ("score", float("inf"), "must be between -1 and 1, not inf"),
        ("score", 1.1, "must be between -1 and 1, not 1.1"),
        ("score", "high", "must be a number, not str"),
        ("timestamp", float("nan"), "must be finite, not nan"),
        ("timestamp", "today", "must be a number, not str"),
        ("access_count", -1, "must be finite and at least 0, not -1"),
        ("authority", 2.0, "must be between 0 and 1, not 2.0"),
        ("authority", None, "must be between 0 and 1, not None"),
        ("text", 3, "must be str, not int"),
        ("id", None, "must be str, not NoneType"),
        ("access_count", 10**400, "must be a number that float64 can hold"),
        ("hop_targets", "abc", "must be a sequence of ids, not str"),
        ("hop_targets", b"abc", "must be a sequence of ids, not bytes"),
        ("hop_targets", None, "must be a sequence of ids, not NoneType"),
    ],
)
def test_bad_rows_are_named(field, value, message):
    rows = [Candidate("a", "fine", 0.5), {"id": "b", "text": "", field: value}]
    with pytest.raises((TypeError, ValueError), match=rf"candidates\[1\].{field} {message}"):
        recall("", as_candidates(rows, "candidates"))


@pytest.mark.parametrize("target", [3, None, ["c", "d"], ("a", "b", "c"), ("a", 3)])
def test_bad_hop_targets_are_named(target):
    with pytest.raises(TypeError, match=r"candidates\[0\].hop_targets\[1\] must be an id or a \(collection, id\) pair"):
        as_candidates([{"id": "a", "text": "", "hop_targets": ["fine", target]}], "candidates")


@given(st.integers(0, 40), st.integers(1, 40), st.integers(1, 5))
def test_ties_at_the_cut_go_by_key(n, k, n_values):
    rng = np.random.default_rng(n)
    scores = rng.integers(1, n_values + 1, n) / n_values
    tied = [Candidate(str(i % 7), "", score, f"c{i // 7}") for i, score in zip(rng.permutation(n), scores, strict=True)]
    ranked = recall("", tied, config=RecallConfig(rank="given")).ranked(k)
    expected = sorted(tied, key=lambda each: (-each.score, each.collection, each.id))[:k]
    assert [each.candidate for each in ranked] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k1": 0}, "k1"),
        ({"k2": 2.5}, "k2"),
        ({"k1": 2, "k2": 3}, "k2 must be at most k1 = 2"),
        ({"theta1": -1.5}, "theta1"),
        ({"theta1": float("nan")}, "theta1"),
        ({"kappa": -1}, "kappa"),
        ({"kappa": float("inf")}, "kappa"),
        ({"eta_hop": 1.0}, "eta_hop"),
        ({"eta_hop": 0.0}, "eta_hop"),
        ({"k1": 2**70}, "k1 must be at most"),
        ({"authority_weights": (1, 2)}, "authority_weights must be three numbers, not 2"),
        ({"authority_weights": (math.inf, 0, 0)}, r"authority_weights\[0\] must be finite, not inf"),
        ({"theta1": "high"}, "theta1 must be a number, not str"),
        ({"theta_hop": 1.5}, "theta_hop"),
        ({"rank": "best"}, "rank must be one of two_pass, given"),
        ({"policy": "knapsack"}, "policy must be one of prefix, first_fit"),
    ],
)
def test_bad_configuration(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        RecallConfig(**options)


def test_bad_containers():
    with pytest.raises(TypeError, match="candidates must be a sequence of Candidate, not str"):
        as_candidates("abc", "candidates")
    with pytest.raises(TypeError, match=r"linked\[0\] must be a Candidate or a mapping, not int"):
        as_candidates([1], "linked")
    with pytest.raises(ValueError, match=r"candidates\[0\] has no field 'txt'"):
        as_candidates([{"id": "a", "txt": "b"}], "candidates")
    with pytest.raises(ValueError, match=r"candidates\[0\] has no text"):
        as_candidates([{"id": "a"}], "candidates")
    assert as_candidates([{"id": "a", "text": "b", "score": 0.5}], "candidates") == [Candidate("a", "b", 0.5)]
