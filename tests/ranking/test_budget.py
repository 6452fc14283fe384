import math
from fractions import Fraction

import numpy as np
import pytest
from golden import cases
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast import estimate_tokens, fit_budget
from hsca_fast._reference import budget as reference

BUDGETS = cases("fit_prompt_budget")
POLICIES = ("prefix", "first_fit")


@pytest.mark.parametrize("name", BUDGETS)
def test_recorded(name):
    given_, expected = BUDGETS[name]
    costs = estimate_tokens(given_["texts"])
    if not given_["budget"] >= 0:  # negative, or not a number
        with pytest.raises(ValueError, match="budget must be at least 0"):
            fit_budget(costs, given_["budget"])
        return
    rows = fit_budget(costs, given_["budget"])
    assert [f"d{row}" for row in rows] == expected["ids"]
    assert costs[rows].sum() == expected["used"]


COSTS = st.lists(st.integers(0, 20), max_size=60) | st.lists(st.floats(0, 20), max_size=60)


@given(COSTS, st.floats(0, 300), st.data())
def test_reference(costs, budget, data):
    scores = data.draw(
        st.lists(st.sampled_from([0.0, -0.0, 0.5]) | st.floats(-2, 2), min_size=len(costs), max_size=len(costs))
    )
    for policy in POLICIES:
        for dtype in (np.float64, np.int32, np.int64):
            typed = np.array(costs).astype(dtype)
            rows = fit_budget(typed, budget, policy=policy)
            assert rows.tolist() == reference.fit_budget(typed.tolist(), budget, policy=policy)
            for score_type in (np.float64, np.float32):
                ranked = np.array(scores, score_type)
                rows = fit_budget(typed, budget, scores=ranked, policy=policy)
                assert rows.tolist() == reference.fit_budget(
                    typed.tolist(), budget, scores=ranked.tolist(), policy=policy
                )
                assert sum(map(Fraction, typed[rows].tolist())) <= budget


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("share", [0.0, 1e-4, 0.01, 0.3, 0.9, 2.0])
@pytest.mark.parametrize("kind", ["random", "ties", "sorted", "equal", "negative"])
def test_many_rows(policy, share, kind):
    rng = np.random.default_rng(5)
    n = 20_000
    scores = rng.random(n)
    if kind == "ties":
        scores = scores.round(2)
    elif kind == "sorted":
        scores.sort()
    elif kind == "equal":
        scores[:] = 0.5
    elif kind == "negative":
        scores = rng.normal(0, 1e3, n)
    costs = rng.integers(0, 400, n, np.int32)
    budget = float(costs.sum()) * share
    order = np.lexsort((np.arange(n), -scores))
    expected = order[reference.fit_budget(costs[order].tolist(), budget, policy=policy)]
    for score_type in (np.float64, np.float32):
        if score_type is np.float32:
            single = scores.astype(np.float32)
            order = np.lexsort((np.arange(n), -single))
            expected = order[reference.fit_budget(costs[order].tolist(), budget, policy=policy)]
        found = fit_budget(costs, budget, scores=scores.astype(score_type), policy=policy)
        assert found.tolist() == expected.tolist()


def test_first_fit_takes_turns_with_large_items():
    # Each large item just misses what is left: the rounds must not grow with the budget.
    n = 30_000
    costs = np.where(np.arange(n) % 2 == 0, 1, n - np.arange(n)).astype(np.int64)
    scores = -np.arange(n, dtype=np.float64)
    expected = reference.fit_budget(costs.tolist(), n // 2, policy="first_fit")
    assert fit_budget(costs, n // 2, scores=scores, policy="first_fit").tolist() == expected


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_small_costs_do_not_slip_under_a_large_one(policy, dtype):
    costs = np.array([2**53] + [1] * 10, dtype)
    for scores in (None, np.arange(11)[::-1]):
        assert fit_budget(costs, 2**53, scores=scores, policy=policy).tolist() == [0]
        assert len(fit_budget(costs, 2**53 + 4, scores=scores, policy=policy)) == 5
    assert len(fit_budget(np.array([2**62] * 3), 2**62 + 2**61, policy=policy)) == 1
    assert sum(np.array([2**53, 1, 1])[fit_budget([2**53, 1, 1, 1], 2**53 + 3)[:3]].tolist()) <= 2**53 + 3
    tenths = [0.1] * 10
    assert len(fit_budget(tenths, 1.0, policy=policy)) == len(reference.fit_budget(tenths, 1.0))


def test_empty_and_zero():
    assert fit_budget([], 10).tolist() == []
    assert fit_budget([], 10, scores=[]).tolist() == []
    assert fit_budget([0, 0, 1, 0], 0).tolist() == [0, 1]
    assert fit_budget([0, 0, 1, 0], 0, policy="first_fit").tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fit_budget([1, -2], 5), ValueError, r"costs\[1\] is -2; a cost is at least 0"),
        (lambda: fit_budget([1.0, math.nan], 5), ValueError, r"costs\[1\] is nan"),
        (lambda: fit_budget([1.0, math.inf], 5), ValueError, r"costs\[1\] is inf"),
        (lambda: fit_budget([1, 2], 5, scores=[0.1, math.nan]), ValueError, r"scores\[1\] is nan"),
        (lambda: fit_budget([1, 2], 5, scores=[0.1]), ValueError, "scores has 1 elements but costs has 2"),
        (lambda: fit_budget([1, -2], 5, scores=[0.1, 0.2]), ValueError, r"costs\[1\] is -2"),
        (lambda: fit_budget([1], -1), ValueError, "budget must be at least 0, not -1"),
        (lambda: fit_budget([1], 10**400), ValueError, "budget must be a number that float64 can hold"),
        (lambda: fit_budget([1], math.nan), ValueError, "budget must be at least 0, not nan"),
        (lambda: fit_budget([1], 5, policy="best"), ValueError, "policy must be 'prefix' or 'first_fit'"),
        (lambda: fit_budget(["a"], 5), TypeError, "costs must hold numbers"),
        (lambda: fit_budget([[1]], 5), ValueError, "costs must have one dimension"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
