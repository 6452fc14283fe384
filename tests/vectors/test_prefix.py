import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsca_fast import prefix_tiers
from hsca_fast._native import vectors as native
from hsca_fast._reference import prefix_tiers as reference

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/libravdb/matryoshka.json").read_text())
VECTORS = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=90)


@settings(max_examples=200)
@given(VECTORS, st.data())
def test_equal_to_reference(v, data):
    dims = sorted(data.draw(st.sets(st.integers(1, len(v)), min_size=1, max_size=4)))
    eps = data.draw(st.sampled_from([1e-8, 1e-3, 0.0]))
    for found, expected in zip(prefix_tiers(v, dims, eps=eps), reference.prefix_tiers(v, dims, eps), strict=True):
        # Two roundings to float32: of the factor and of the product.
        np.testing.assert_allclose(found, expected, rtol=1.3e-7, atol=2e-45)
        assert np.linalg.norm(found.astype(np.float64)) < 1 + 1e-6


@pytest.mark.parametrize("case", [c for c in GOLDEN["cases"] if "dims" in c["input"]], ids=lambda c: c["name"])
def test_recorded(case):
    v, dims = case["input"]["v"], case["input"]["dims"]
    norm = np.linalg.norm(v[: max(dims, 0)])
    if not 0 < dims <= len(v):
        with pytest.raises(ValueError, match="dims"):
            prefix_tiers(v, (dims,))
    elif norm > 1e-3 or norm == 0:
        np.testing.assert_allclose(prefix_tiers(v, (dims,))[0], case["output"]["u"], rtol=2e-7)
    else:
        # Recorded code divides by the plain norm; the document's ε of 1e-8 halves a prefix about as small as itself.
        assert np.linalg.norm(prefix_tiers(v, (dims,))[0]) < 1


def test_recorded_tiers():
    (case,) = [c for c in GOLDEN["cases"] if "tiers" in c["input"]]
    for name, tier in zip(("l1", "l2", "l3"), prefix_tiers(case["input"]["v"]), strict=True):
        np.testing.assert_allclose(tier, case["output"][name], rtol=3e-7)


@pytest.mark.parametrize("scale", [1e-45, 1e-39, 1e-30, 1e30, 1e37])
@pytest.mark.parametrize("isa", native.isa_levels())
def test_any_length_becomes_one(scale, isa):
    v = (np.arange(1, 41) % 7 * np.float64(scale)).astype(np.float32)
    (unit,) = native.prefix_tiers(v[None, :], (40,), 0.0, 1, isa)
    np.testing.assert_allclose(unit[0], v / np.linalg.norm(v.astype(np.float64)), rtol=1.3e-7)


def test_small_prefixes_go_to_zero_smoothly():
    lengths = [np.linalg.norm(prefix_tiers([x, 1.0], (1, 2))[0]) for x in (0.0, 1e-12, 1e-9, 1e-8, 1e-6, 1e-3)]
    assert lengths == sorted(lengths)
    assert lengths[0] == 0.0
    assert lengths[3] == pytest.approx(2**-0.5)


@pytest.mark.parametrize("isa", native.isa_levels())
@pytest.mark.parametrize("width", [1, 7, 8, 9, 31, 32, 33, 64, 100, 768])
def test_same_bits_at_every_level_and_thread_count(isa, width):
    rows = np.random.default_rng(width).normal(size=(40, width)).astype(np.float32)
    dims = tuple(sorted({1, max(1, width // 3), width}))
    expected = native.prefix_tiers(rows, dims, 1e-8, 1, "baseline")
    for threads in (1, 3):
        for a, b in zip(native.prefix_tiers(rows, dims, 1e-8, threads, isa), expected, strict=True):
            assert a.tobytes() == b.tobytes()
    for i in (0, 39):
        for a, b in zip(prefix_tiers(rows[i], dims), expected, strict=True):
            assert a.tobytes() == b[i].tobytes()


def test_layouts():
    v = np.random.default_rng(0).normal(size=(12, 20))
    expected = prefix_tiers(v, (4, 10))
    strided = np.asfortranarray(np.repeat(v, 2, axis=1))[:, ::2]
    strided.setflags(write=False)
    for a, b in zip(prefix_tiers(strided, (4, 10)), expected, strict=True):
        assert (a == b).all()
    assert [t.shape for t in prefix_tiers(np.empty((0, 20)), (4, 10))] == [(0, 4), (0, 10)]
    assert [t.shape for t in prefix_tiers(v[0], (4, 10))] == [(4,), (10,)]


def test_given_memory_is_filled():
    # Large enough to be written past the caches; the odd width makes rows that no register is aligned with.
    rows = np.random.default_rng(0).normal(size=(60_000, 75)).astype(np.float32)
    expected = prefix_tiers(rows, (7, 75))
    out = [np.full((60_000, width), np.nan, np.float32) for width in (7, 75)]
    for a, b, given_ in zip(prefix_tiers(rows, (7, 75), out=out), expected, out, strict=True):
        assert a is given_
        assert a.tobytes() == b.tobytes()
    with pytest.raises(ValueError, match="out must be matrices of 60000 x 7, 60000 x 75"):
        prefix_tiers(rows, (7, 75), out=out[:1])
    with pytest.raises(ValueError, match="out must be matrices of 2 x 7"):
        prefix_tiers(rows[:2], (7,), out=[np.empty((2, 8), np.float32)])


@pytest.mark.parametrize(
    ("vectors", "dims", "message"),
    [
        ([[1.0, 2.0]], (2, 2), "greater than the one before"),
        ([[1.0, 2.0]], (), "one or more widths"),
        ([[1.0, 2.0]], (0, 1), "at least 1"),
        ([[1.0, 2.0]], (1, 3), "have 2 values; dims asks for a prefix of 3"),
        ([[1.0, 2.0], [1.0, np.nan], [np.inf, 1.0]], (1, 2), "2 rows: 1, 2"),
        ([[1.0, 1e300]], (1, 2), "1 row: 0"),
        ([[[1.0]]], (1,), "1 or 2 dimensions, not 3"),
    ],
)
def test_bad_values(vectors, dims, message):
    with pytest.raises(ValueError, match=message):
        prefix_tiers(vectors, dims)


def test_bad_types():
    with pytest.raises(TypeError, match="real numbers"):
        prefix_tiers([["a", "b"]], (1, 2))
    with pytest.raises(TypeError, match="must be an int, not float"):
        prefix_tiers([[1.0, 2.0]], (1, 2.0))
    with pytest.raises(TypeError, match="sequence"):
        prefix_tiers([[1.0, 2.0]], 2)
    with pytest.raises(ValueError, match="eps must be between"):
        prefix_tiers([[1.0, 2.0]], (1, 2), eps=-1)


def test_out_must_not_overlap():
    rows = np.ones((4, 8), np.float32)
    for out in ([rows[:, :8]], [np.empty((4, 8), np.float32)] * 1):
        if np.may_share_memory(out[0], rows):
            with pytest.raises(ValueError, match="must not overlap"):
                prefix_tiers(rows, (8,), out=out)
        else:
            assert prefix_tiers(rows, (8,), out=out)[0] is out[0]


def test_out_must_be_written_to():
    rows, good = np.ones((4, 8), np.float32), np.empty((4, 8), np.float32)
    fixed = good.copy()
    fixed.flags.writeable = False
    for bad, error, message in (
        (good.astype(float), TypeError, r"out\[0\] must be a float32 array, not float64"),
        (good.tolist(), TypeError, r"out\[0\] must be a float32 array, not list"),
        (fixed, ValueError, r"out\[0\] must be writeable"),
        (np.empty((8, 4), np.float32).T, ValueError, r"out\[0\] must be writeable and in C order"),
    ):
        with pytest.raises(error, match=message):
            prefix_tiers(rows, (8,), out=[bad])


def test_masked_values_are_refused():
    with pytest.raises(TypeError, match="vectors has masked values"):
        prefix_tiers(np.ma.masked_array([[1.0, 2.0]], mask=[[0, 1]]), (2,))
