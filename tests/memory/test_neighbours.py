import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast import smooth_neighbours
from hsca_fast._reference import neighbours as reference


@given(
    st.integers(0, 12), st.integers(1, 5), st.integers(1, 15), st.floats(0, 0.99), st.floats(0, 1),
    st.integers(0, 2**32),
)  # fmt: skip
def test_equals_the_reference(n, dim, reach, weight, decay, seed):
    # Small integers: neighbours cancel exactly or not at all, and zero rows appear.
    rows = np.random.default_rng(seed).integers(-2, 3, (n, dim)).astype(np.float32)
    smooth = smooth_neighbours(rows, reach=reach, weight=weight, decay=decay)
    assert (smooth.shape, smooth.dtype) == ((n, dim), np.float32)
    lengths = np.linalg.norm(smooth, axis=1)
    assert np.allclose(lengths[lengths > 0], 1.0, atol=1e-6)
    # Where neighbours nearly cancel, float32 sees other digits than the definition; there they have no direction.
    units = [reference.unit(row) for row in rows.tolist()]
    expected = reference.smooth_neighbours(rows.tolist(), reach, weight, decay)
    for i, row in enumerate(expected):
        around = np.zeros(dim)
        for d in range(1, reach + 1):
            for j in (i - d, i + d):
                if 0 <= j < n:
                    around += decay ** (d - 1) * np.array(units[j])
        if np.linalg.norm(around) > 1e-3:
            assert smooth[i] == pytest.approx(row, abs=2e-4 / (1 - weight))


def test_no_weight_leaves_the_chunks_alone():
    assert smooth_neighbours([[3.0, 4.0], [0.0, 2.0]], weight=0.0).tolist() == np.float32([[0.6, 0.8], [0, 1]]).tolist()


def test_input_is_not_changed():
    rows = np.ones((3, 2), np.float32)
    smooth_neighbours(rows)
    assert (rows == 1).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"vectors": [1.0]}, ValueError, "vectors must have two dimensions, not 1"),
        ({"vectors": [[1.0], [math.nan]]}, ValueError, r"vectors\[1\] holds a number that is not finite"),
        ({"vectors": [[1.0]], "reach": 0}, ValueError, "reach must be at least 1, not 0"),
        ({"vectors": [[1.0]], "weight": 1.5}, ValueError, "weight must be from 0 to 1, not 1.5"),
        ({"vectors": [[1.0]], "decay": -0.1}, ValueError, "decay must be from 0 to 1, not -0.1"),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    vectors = arguments.pop("vectors")
    with pytest.raises(error, match=message):
        smooth_neighbours(vectors, **arguments)
