import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsca_fast import mmr
from hsca_fast._native import vectors as native
from hsca_fast._reference import mmr as reference

# Small integers: products are exact, so that ties are ties.
ROWS = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=n, max_size=n)
)


def assert_greedy(picks, relevance, rows, lambda_, groups, group_weight):
    """Every pick is the reference's best, up to the rounding of float32 cosines."""
    assert len(set(picks)) == len(picks)
    for step, pick in enumerate(picks):
        left = [i for i in range(len(rows)) if i not in picks[:step]]
        values = {i: reference.marginal(i, picks[:step], relevance, rows, lambda_, groups, group_weight) for i in left}
        assert values[pick] >= max(values.values()) - 1e-6


@settings(max_examples=300)
@given(ROWS, st.data())
def test_equal_to_reference(rows, data):
    n = len(rows)
    relevance = data.draw(st.lists(st.integers(0, 4).map(lambda x: x / 4), min_size=n, max_size=n))
    groups = data.draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    lambda_ = data.draw(st.sampled_from([0.0, 0.5, 0.7, 1.0]))
    weight = data.draw(st.sampled_from([0.0, 0.3, 2.0]))
    k = data.draw(st.integers(0, n + 2))
    picks = mmr(relevance, rows, k, lambda_=lambda_, groups=groups, group_weight=weight).tolist()
    assert len(picks) == min(k, n)
    assert_greedy(picks, relevance, rows, lambda_, groups, weight)


def test_by_hand():
    # After 0: row 1 is 0.7*0.8 - 0.3*1 = 0.26, row 2 is 0.7*0.5 - 0 = 0.35, row 3 is 0.7*0.1 + 0.3 = 0.37.
    rows = [[1, 0], [2, 0], [0, 1], [-1, 0]]
    assert mmr([1.0, 0.8, 0.5, 0.1], rows, 4).tolist() == [0, 3, 2, 1]
    # The saturated group gives way: b at 0.7*0.5 - 0 against a at 0.7*0.6 - 0.3*1.
    assert mmr([1.0, 0.6, 0.5], np.eye(3), 2, groups=list("aab"), group_weight=0.3).tolist() == [0, 2]
    assert mmr([1.0, 0.6, 0.5], np.eye(3), 2, groups=list("aab")).tolist() == [0, 1]


def test_many_rows_with_groups():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(300, 24))
    relevance = rng.random(300)
    groups = rng.integers(0, 7, 300)
    picks = mmr(relevance, rows, 25, groups=groups, group_weight=0.3).tolist()
    assert_greedy(picks, relevance, rows.tolist(), 0.7, groups, 0.3)
    plain = mmr(relevance, rows, 25)
    assert mmr(relevance, rows, 25, groups=groups).tolist() == plain.tolist()
    assert plain.tolist() == mmr(relevance, rows * 3.7, 25).tolist()  # lengths do not matter
    assert mmr(relevance, rows, 10).tolist() == plain[:10].tolist()


def test_lengths_beyond_float32_products():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(80, 24))
    relevance = rng.random(80)
    scaled = (rows * 10.0 ** rng.integers(-36, 37, (80, 1))).astype(np.float32)
    assert mmr(relevance, scaled, 20).tolist() == mmr(relevance, rows, 20).tolist()


@pytest.mark.parametrize("isa", native.isa_levels())
def test_same_picks_at_every_level(isa):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(500, 50)).astype(np.float32)
    relevance = rng.random(500)
    expected = native.mmr(rows, relevance, None, 1, 60, 0.7, 0.0, "baseline")
    assert native.mmr(rows, relevance, None, 1, 60, 0.7, 0.0, isa).tolist() == expected.tolist()


def test_edges():
    assert mmr([], np.empty((0, 4)), 3).tolist() == []
    assert mmr([0.5, 0.5], np.zeros((2, 4)), 5).tolist() == [0, 1]
    assert mmr([-1.0, -2.0], [[1, 0], [0, 1]], 1).tolist() == [0]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1.0], [[1.0], [2.0]], 1), {}, r"relevance has shape \(1,\); embeddings has 2 rows"),
        (([1.0, np.nan], [[1.0], [2.0]], 1), {}, r"relevance\[1\] is not finite"),
        (([1.0], [[np.nan]], 1), {}, "1 row: 0"),
        (([1.0], [[1.0]], -1), {}, "k must be at least 0"),
        (([1.0], [[1.0]], 1), {"lambda_": 1.5}, "lambda_ must be between"),
        (([1.0], [[1.0]], 1), {"group_weight": -0.1}, "group_weight must be between"),
        (([1.0], [[1.0]], 1), {"groups": ["a", "b"]}, "groups has 2 elements"),
        (([1.0], [1.0], 1), {}, "must have 2 dimensions"),
    ],
)
def test_bad_values(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        mmr(*arguments, **options)


def test_bad_types():
    with pytest.raises(TypeError, match="k must be an int"):
        mmr([1.0], [[1.0]], 1.0)
    with pytest.raises(TypeError, match="relevance must hold real numbers"):
        mmr(["a"], [[1.0]], 1)
    with pytest.raises(ValueError, match=r"group_weight is 0\.5, but there are no groups"):
        mmr([1.0], [[1.0]], 1, group_weight=0.5)


def test_a_great_penalty_makes_ties():
    # 1e6 swallows the difference of rows 1 and 2: the lower row comes first, as the definition says.
    rows, relevance, groups = np.eye(4), [1.0, 0.0, 1e-11, 0.5], [0, 0, 0, 1]
    expected = reference.mmr(relevance, rows.tolist(), 4, lambda_=0.7, groups=groups, group_weight=1e6)
    assert mmr(relevance, rows, 4, groups=groups, group_weight=1e6).tolist() == expected == [0, 3, 1, 2]


def test_more_than_there_are():
    assert sorted(mmr([1.0, 0.5], np.eye(2), 2**70).tolist()) == [0, 1]
