import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast import fuse_ranks, fuse_scores
from hsca_fast._reference import fusion as reference

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.floats(-3, 3)), max_size=10)


@given(st.lists(st.tuples(PAIRS, st.floats(0, 2)), max_size=4), st.floats(0.5, 100), st.none() | st.floats(0, 2))
def test_reference(weighted, k, damping):
    rankings, weights = [r for r, _ in weighted], [w for _, w in weighted]
    found = fuse_ranks(rankings, weights=weights, k=k, damping=damping)
    expected = reference.fuse_ranks(rankings, weights=weights, k=k, damping=damping)
    assert dict(found) == pytest.approx(expected, rel=1e-12)
    assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))


def test_by_hand():
    found = dict(fuse_ranks([["a", "b"], ["b"]], weights=(0.6, 0.3)))
    assert found == pytest.approx({"a": 0.6 / 60, "b": 0.6 / 61 + 0.3 / 60}, rel=1e-15)


def test_damping_by_hand():
    # Variances 0.25 and 0.01: the second weighs max(0.5, 0.1) of 0.4, and both are rescaled from 0.8 to 1.
    rankings = [[("a", 1.0), ("b", 0.0)], [("b", 0.6), ("a", 0.4)]]
    found = dict(fuse_ranks(rankings, weights=(0.6, 0.4), damping=0.1))
    assert found == pytest.approx({"a": 0.75 / 60 + 0.25 / 61, "b": 0.75 / 61 + 0.25 / 60}, rel=1e-12)


def test_the_forms_of_a_ranking():
    expected = fuse_ranks([["b", "a"]])
    assert fuse_ranks([[("b", 0.9), ("a", 0.2)]]) == expected
    assert fuse_ranks([{"a": 0.2, "b": 0.9}]) == expected
    assert fuse_ranks([["b", "a", "b"]]) == expected
    assert fuse_ranks([iter(["b", "a"])]) == expected
    assert fuse_ranks([]) == fuse_ranks([[]]) == fuse_ranks([[]], damping=0.1) == []


@given(st.lists(st.permutations(range(6)), min_size=1, max_size=4), st.randoms())
def test_order_of_the_rankings_does_not_matter(rankings, random):
    shuffled = rankings.copy()
    random.shuffle(shuffled)
    assert dict(fuse_ranks(shuffled)) == pytest.approx(dict(fuse_ranks(rankings)), rel=1e-12)


def test_no_input_leads_out_of_the_numbers():
    huge = [[("a", 1e308), ("b", -1e308), ("c", 1e308)], [("a", 1.0), ("b", 1.0)]]
    found = fuse_ranks(iter(huge), weights=(1e9, 1e9), k=1e-9, damping=1e308)
    assert all(math.isfinite(score) for _, score in found)
    assert [item for item, _ in found] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fuse_ranks([["a"]], k=0), ValueError, "k must be at least 1e-09, not 0"),
        (lambda: fuse_ranks([["a"]], k=-1), ValueError, "k must be at least 1e-09"),
        (lambda: fuse_ranks([["a"]], weights=[1, 1]), ValueError, "weights has 2 elements but there are 1 rankings"),
        (lambda: fuse_ranks([["a"]], weights=[-1]), ValueError, r"weights\[0\] must be from 0 to 1e\+09, not -1"),
        (lambda: fuse_ranks([["a"]], weights=[1e308]), ValueError, r"weights\[0\] must be from 0 to 1e\+09"),
        (lambda: fuse_ranks([["a"]], k=5e-324), ValueError, "k must be at least 1e-09"),
        (lambda: fuse_ranks([["a"]], damping=0.1), ValueError, r"damping needs scores, but rankings\[0\]"),
        (lambda: fuse_ranks([[("a", math.nan)]]), ValueError, "the score of 'a' is nan"),
        (lambda: fuse_ranks([[("a", 1.0), "b"]]), TypeError, r"rankings\[0\]\[1\] must be an \(id, score\) pair"),
        (lambda: fuse_ranks(["ab"]), TypeError, r"rankings\[0\] must be a sequence of ids, not str"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


@given(
    st.lists(
        st.dictionaries(st.integers(0, 9), st.floats(-100, 100).map(lambda x: round(x, 3)), max_size=8),
        min_size=1,
        max_size=3,
    ),
    st.data(),
)
def test_fuse_scores_against_the_oracle(rankings, data):
    weights = data.draw(st.lists(st.floats(0.1, 2), min_size=len(rankings), max_size=len(rankings)))
    found = fuse_scores(rankings, weights=weights)
    wanted = reference.fuse_scores(rankings, weights=weights)
    assert dict(found) == pytest.approx(wanted, rel=1e-9)
    assert all(0.0 < score < 1.0 for _, score in found)
    assert found == sorted(found, key=lambda item: (-item[1], item[0]))


def test_fuse_scores_bad_input():
    assert fuse_scores([]) == []
    assert fuse_scores([{"a": 1.0}]) == [("a", 0.5)]
    with pytest.raises(ValueError, match="weights must not all be 0"):
        fuse_scores([{"a": 1.0}], weights=[0.0])
    with pytest.raises(ValueError, match="weights has 1 elements but there are 2 rankings"):
        fuse_scores([{}, {}], weights=[1.0])
