import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast.context.boundaries import matched_boundaries, pk, window_diff


@st.composite
def cuts(draw):
    n = draw(st.integers(2, 40))
    places = st.sets(st.integers(1, n - 1), max_size=n - 1).map(sorted)
    return draw(places), draw(places), n


@given(cuts())
def test_perfect_is_zero_and_all_are_shares(case):
    truth, found, n = case
    assert pk(truth, truth, n) == window_diff(truth, truth, n) == 0.0
    assert 0.0 <= pk(truth, found, n) <= window_diff(truth, found, n) <= 1.0


def by_hand(truth, found, n, same):
    """Both measures as their papers state them: a probe at every place, k = half a beat."""
    k = max(2, round(n / (2 * (len(truth) + 1))))
    probes = range(n - k)
    count = lambda cut, i: sum(i < b <= i + k for b in cut)  # noqa: E731
    wrong = sum(not same(count(truth, i), count(found, i)) for i in probes)
    return wrong / len(probes) if probes else 0.0


@given(cuts())
def test_equal_to_the_definition(case):
    truth, found, n = case
    assert pk(truth, found, n) == pytest.approx(by_hand(truth, found, n, lambda a, b: (a > 0) == (b > 0)))
    assert window_diff(truth, found, n) == pytest.approx(by_hand(truth, found, n, lambda a, b: a == b))


@given(cuts())
def test_matches_are_one_to_one(case):
    truth, found, _ = case
    assert matched_boundaries(truth, found) <= min(len(truth), len(found))
    assert matched_boundaries(truth, truth) == len(truth)


def test_a_boundary_outside_is_refused():
    with pytest.raises(ValueError, match="found has boundary 8"):
        pk([4], [8], 8)
