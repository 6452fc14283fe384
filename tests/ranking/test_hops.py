import math

import pytest
from golden import cases
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast import expand_hops, merge_ranked
from hsca_fast._reference import hops as reference

HOPS = cases("expand_hops")
REFUSED = {"eta 2": "eta", "theta 2": "theta"}
MERGES = cases("merge_variants")


def hopped(given_):
    ranked, opts = given_["ranked"], given_["opts"]
    edges = {}
    for item in ranked:
        targets = item["metadata"].get("hop_targets", [])
        # The recorded system also takes a string of names; splitting metadata is not a ranking's work.
        edges[item["id"]] = (
            [t.strip() for t in targets.split(",") if t.strip()] if isinstance(targets, str) else targets
        )
    return expand_hops(
        {item["id"]: item.get("finalScore", 0.0) for item in ranked},
        edges,
        eta=opts.get("etaHop", 0.5),
        theta=opts.get("thetaHop", 0.15),
        eligible={item["id"] for item in given_["authored"]},
    )


@pytest.mark.parametrize("name", HOPS.keys() - REFUSED.keys())
def test_recorded(name):
    given_, expected = HOPS[name]
    assert hopped(given_) == pytest.approx({item["id"]: item["finalScore"] for item in expected}, abs=1e-12)


@pytest.mark.parametrize("name", REFUSED)
def test_recorded_but_outside_the_domain(name):
    with pytest.raises(ValueError, match=f"{REFUSED[name]} must be"):
        hopped(HOPS[name][0])


@pytest.mark.parametrize("name", MERGES)
def test_recorded_merges(name):
    given_, expected = MERGES[name]
    rankings = [[(i["id"], i.get("finalScore", 0.0)) for i in given_[part]] for part in ("ranked", "hop")]
    found = merge_ranked(*rankings)
    assert dict(found) == {i["id"]: i.get("finalScore", 0.0) for i in expected}
    assert [score for _, score in found] == [i.get("finalScore", 0.0) for i in expected]
    assert found == reference.merge_ranked(rankings)


IDS = st.integers(0, 12)


@given(
    st.dictionaries(IDS, st.floats(-1, 2), max_size=8),
    st.dictionaries(IDS, st.lists(IDS, max_size=6), max_size=13),
    st.floats(0.001, 0.999),
    st.floats(0, 1),
    st.none() | st.sets(IDS),
)
def test_reference(scores, edges, eta, theta, eligible):
    found = expand_hops(scores, edges, eta=eta, theta=theta, eligible=eligible)
    assert found == reference.expand_hops(scores, edges, eta=eta, theta=theta, eligible=eligible)
    assert list(found.items()) == sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    assert all(theta <= score < 1 for score in found.values())
    assert not found.keys() & scores.keys()


@given(st.lists(st.lists(st.tuples(IDS, st.floats(-5, 5)), max_size=10), max_size=4))
def test_merge_reference(rankings):
    assert merge_ranked(*rankings) == reference.merge_ranked(rankings)


def test_cycles_and_dangling_targets():
    edges = {"a": ["b", "a"], "b": ["c"], "c": ["a", "nowhere"]}
    assert expand_hops({"a": 0.8}, edges) == {"b": 0.4}
    assert expand_hops({"c": 0.8}, edges, eligible={"a"}) == {"a": 0.4}
    assert expand_hops({"c": 0.8}, edges, eligible=()) == {}


def test_ids_of_two_collections_stay_apart():
    merged = merge_ranked([(("user", 1), 0.4)], [(("global", 1), 0.9)])
    assert merged == [(("global", 1), 0.9), (("user", 1), 0.4)]


def test_empty():
    assert expand_hops({}, {}) == {}
    assert expand_hops({"a": 1.0}, {}) == {}
    assert merge_ranked() == []
    assert merge_ranked([], {}) == []


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: expand_hops({"a": math.nan}, {}), ValueError, "the score of 'a' is nan"),
        (lambda: expand_hops({"a": "high"}, {}), TypeError, "the score of 'a' must be a number, not str"),
        (lambda: expand_hops({"a": 1.0}, {"a": "bc"}), TypeError, r"edges\['a'\] must be a sequence of ids, not str"),
        (lambda: expand_hops({}, {}, eta=0.0), ValueError, "eta must be between 0 and 1, not 0.0"),
        (lambda: expand_hops({}, {}, eta=1.0), ValueError, "eta must be between 0 and 1, not 1.0"),
        (lambda: expand_hops({}, {}, theta=-0.1), ValueError, "theta must be from 0 to 1, not -0.1"),
        (lambda: merge_ranked([("a", math.inf)]), ValueError, "the score of 'a' is inf"),
        (lambda: merge_ranked([], ["a"]), TypeError, r"rankings\[1\]\[0\] must be an \(id, score\) pair, not 'a'"),
        (lambda: merge_ranked([("a", 1.0), (1, 1.0)]), TypeError, "use ids of one type"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
