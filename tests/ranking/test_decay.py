import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast import RECENCY_DECAY, recency
from hsca_fast._native import ranking as native
from hsca_fast._reference import decay as reference

AGES = st.lists(st.floats(-1e6, 1e12), max_size=70)


@given(AGES, st.floats(0, 1e3))
def test_reference(ages, decay):
    expected = [reference.recency(age, decay) for age in ages]
    assert recency(ages, decay).tolist() == pytest.approx(expected, rel=1e-12)
    # float32: the exponent itself is rounded to seven digits.
    single = recency(np.array(ages, np.float32), decay)
    assert single.dtype == np.float32
    assert single.tolist() == pytest.approx(expected, abs=1e-6)


def test_half_lives_of_the_document():
    hours = {"session": 1.9, "user": 19.0, "global": 4 * 24.0}
    for scope, decay in RECENCY_DECAY.items():
        half_life = math.log(2) / decay
        assert half_life / 3600 == pytest.approx(hours[scope], rel=0.03)
        assert recency([half_life], decay)[0] == pytest.approx(0.5, rel=1e-12)


def test_seconds_not_milliseconds():
    assert recency([10_000.0], 1e-4)[0] == pytest.approx(math.exp(-1), rel=1e-12)


@given(AGES)
def test_range_and_monotony(ages):
    for dtype in (np.float64, np.float32):
        values = recency(np.sort(np.array(ages, dtype)), 1e-4)
        assert ((values > 0) & (values <= 1)).all()
        assert (np.diff(values) <= 0).all()


def test_extreme_decays_give_no_nan():
    for dtype in (np.float32, np.float64):
        for decay in (0.0, 5e-324, 1e39, 1.7e308):
            values = recency(np.array([0.0, 1e-30, 1e30], dtype), decay)
            assert values[0] == 1.0
            assert ((values > 0) & (values <= 1)).all()


def test_the_future_is_age_0():
    assert recency([-1.0, -1e300, -0.0, 0.0], 1.0).tolist() == [1.0] * 4


def test_every_instruction_set_gives_the_same_bits():
    rng = np.random.default_rng(7)
    for dtype in (np.float32, np.float64):
        for n in (0, 1, 3, 4, 15, 16, 17, 63, 1000):
            ages = (rng.random(n) * 10.0 ** rng.integers(-9, 9, n)).astype(dtype)
            results = set()
            for isa in native.isa_levels():
                out = np.empty_like(ages)
                assert native.recency(ages, 3e-4, 1, out, isa)
                results.add(out.tobytes())
            assert len(results) == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: recency([1.0, math.nan], 1.0), ValueError, r"age_seconds\[1\] is nan"),
        (lambda: recency([1.0, 2.0, math.inf], 1.0), ValueError, r"age_seconds\[2\] is inf"),
        (lambda: recency([1.0], -1.0), ValueError, "decay must be at least 0, not -1.0"),
        (lambda: recency([1.0], math.nan), ValueError, "decay must be at least 0, not nan"),
        (lambda: recency([1.0], "x"), TypeError, "decay must be a number, not str"),
        (lambda: recency([[1.0]], 1.0), ValueError, "age_seconds must have one dimension, not 2"),
        (lambda: recency(["a"], 1.0), TypeError, "age_seconds must hold numbers"),
        (lambda: recency([1.0], 1.0, out=np.empty(2)), ValueError, "out must be an array of shape"),
        (lambda: recency([1.0], 1.0, out=np.empty(1, np.float32)), ValueError, "out must be an array of shape"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_out_is_written_and_may_not_overlap():
    ages = np.array([0.0, 10.0])
    out = np.empty(2)
    assert recency(ages, 0.1, out=out) is out
    with pytest.raises(ValueError, match="out must not overlap an input"):
        recency(ages, 0.1, out=ages)
    frozen = np.empty(2)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        recency(ages, 0.1, out=frozen)


def test_empty_in_empty_out():
    assert recency([], 1.0).shape == (0,)
