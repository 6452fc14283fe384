"""Parameters and columns that no function takes: refused by name, whatever is odd about them."""

import math

import numpy as np
import pytest

from hsca_fast import (
    GatingConfig,
    authority_weights,
    coarse_candidates,
    expand_hops,
    extract_keywords,
    hybrid_scores,
    hybrid_top_k,
    merge_ranked,
    recency,
    recent_tail,
    second_pass_scores,
)

COLUMNS = ([0.5], [0.0], "user")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: recency([1], 10**400), ValueError, "decay must be a number that float64 can hold"),
        (lambda: hybrid_top_k(*COLUMNS, 2**70), ValueError, "k must be at most"),
        (lambda: coarse_candidates([0.5], k=2**70), ValueError, "k must be at most"),
        (lambda: extract_keywords("a", min_length=2**70), ValueError, "min_length must be at most"),
        (
            lambda: hybrid_scores(*COLUMNS, weights=(math.inf, 0, 0)),
            ValueError,
            r"weights\[0\] must be finite, not inf",
        ),
        (lambda: hybrid_scores(*COLUMNS, weights=None), TypeError, "weights must be three numbers, not NoneType"),
        (lambda: authority_weights([1], [1], [1], weights="abc"), TypeError, "weights must be three numbers, not str"),
        (lambda: GatingConfig(conversational_weights=None), TypeError, "conversational_weights must be three numbers"),
        (lambda: expand_hops({"a": 1.0}, None), TypeError, "edges must be a mapping, not NoneType"),
        (
            lambda: expand_hops({"a": 1.0}, {"a": b"xy"}),
            TypeError,
            r"edges\['a'\] must be a sequence of ids, not bytes",
        ),
        (lambda: expand_hops({"a": 1.0}, {"a": None}), TypeError, r"edges\['a'\] must be a sequence of ids"),
        (lambda: merge_ranked([("a", 10**400)]), ValueError, "the score of 'a' is beyond float64"),
        (lambda: recent_tail([], budget=5, limit="x"), TypeError, "limit must be an int, not str"),
        (lambda: recent_tail([], budget=10**400), ValueError, r"budget must be below 2\*\*53"),
        (lambda: recency(np.ma.array([1.0, 2.0], mask=[0, 1]), 1e-4), ValueError, "age_seconds has masked elements"),
    ],
)
def test_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_arrays_at_odd_addresses():
    n = 1000
    odd = np.zeros(4 * n + 1, np.uint8)[1:].view(np.float32)
    assert not odd.flags.aligned
    odd[:] = np.linspace(0, 1, n)
    even = odd.copy()
    assert np.array_equal(second_pass_scores(odd, odd, odd), second_pass_scores(even, even, even))
    with pytest.raises(ValueError, match="out must be contiguous, aligned and writable"):
        second_pass_scores(even, even, even, out=odd)


def test_masks_that_hide_nothing():
    assert recency(np.ma.array([0.0], mask=[False]), 1e-4).tolist() == [1.0]
