import pytest
from near_ties import assert_same_ranking


def test_takes_swaps_of_near_ties_only():
    assert_same_ranking([[2, 1]], [[0.5, 0.5]], [[1, 2]], [[0.5, 0.5]])
    assert_same_ranking([[1, 3]], [[0.9, 0.5]], [[1, 2]], [[0.9, 0.5]])
    with pytest.raises(AssertionError):
        assert_same_ranking([[2, 1]], [[0.9, 0.5]], [[1, 2]], [[0.9, 0.5]])
    with pytest.raises(AssertionError):
        assert_same_ranking([[1, 2]], [[0.9, 0.6]], [[1, 2]], [[0.9, 0.5]])
    with pytest.raises(AssertionError):
        assert_same_ranking([[1, 1]], [[0.5, 0.5]], [[1, 2]], [[0.5, 0.5]])
