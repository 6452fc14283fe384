import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast._reference import activity as reference
from hsca_fast.ranking import age_factor, novelty_factor, rescaled_ltp, use_factor

ages = st.floats(-1e6, 1e9)


@given(st.lists(ages, max_size=20), st.sampled_from([0.0, 0.5, 90.0, 1e4]), st.floats(0, 1))
def test_age(values, half_life, floor):
    found = age_factor(values, half_life_days=half_life, floor=floor)
    wanted = [reference.age_factor(age, half_life, floor) for age in values]
    assert found.tolist() == pytest.approx(wanted, rel=1e-13, abs=1e-200)


@given(st.lists(st.integers(0, 10**9), max_size=20), st.floats(0, 2), st.floats(1, 5))
def test_use(counts, coefficient, max_boost):
    found = use_factor(counts, coefficient=coefficient, max_boost=max_boost)
    assert found.tolist() == pytest.approx([reference.use_factor(n, coefficient, max_boost) for n in counts], rel=1e-14)
    assert ((found >= 1) & (found <= max_boost)).all()


@given(st.lists(ages, max_size=20), st.floats(0.1, 1e4), st.floats(1, 5))
def test_novelty(values, window, max_boost):
    found = novelty_factor(values, window_hours=window, max_boost=max_boost)
    wanted = [reference.novelty_factor(age, window, max_boost) for age in values]
    assert found.tolist() == pytest.approx(wanted, rel=1e-14)


@given(st.lists(st.tuples(st.floats(1, 3), st.floats(0, 1e4)), max_size=20), st.floats(1, 3), st.floats(0, 0.1))
def test_rescaled(rows, max_boost, decay):
    ltp = [min(value, max_boost) for value, _ in rows]
    days = [day for _, day in rows]
    found = rescaled_ltp(ltp, max_boost=max_boost, days_since_access=days, decay=decay)
    wanted = [reference.rescaled_ltp(x, max_boost, day, decay) for x, day in zip(ltp, days, strict=True)]
    assert found.tolist() == pytest.approx(wanted, rel=1e-12, abs=1e-200)
    assert ((found >= 0) & (found <= 1)).all()


def test_numbers_from_outside():
    # The boost of 2.0 is reached at 28 retrievals; an unboosted memory passes 0.3 after 121 days, a full one after 190.
    assert use_factor([27, 28]).tolist() == [pytest.approx(1.99966, abs=1e-5), 2.0]
    assert np.exp(-0.01 * 121) < 0.3 < np.exp(-0.01 * 120)
    assert rescaled_ltp([2.0, 2.0], days_since_access=[120, 121], decay=0.01).tolist() == pytest.approx(
        [0.3012, 0.2982], abs=1e-4
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: age_factor([np.nan]), r"age_seconds\[0\] is nan"),
        (lambda: age_factor([1.0], half_life_days=-1), "half_life_days must be at least 0"),
        (lambda: use_factor([1.0], max_boost=0.5), "max_boost must be at least 1"),
        (lambda: novelty_factor([1.0], window_hours=0.0), "window_hours must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
