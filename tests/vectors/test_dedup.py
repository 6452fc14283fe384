import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsca_fast import deduplicate
from hsca_fast._native import vectors as native
from hsca_fast._reference import dedup as reference

ROWS = st.integers(0, 14).flatmap(
    lambda n: st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=n, max_size=n)
)


@settings(max_examples=300)
@given(ROWS, st.sampled_from([0.3, 0.61, 0.85, 0.97, 1.0]), st.data())
def test_equal_to_reference(rows, threshold, data):
    scores = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    # The reference's cosines of parallel vectors may be a last place below 1.
    keep, labels = reference.deduplicate(rows, scores, threshold - 1e-9)
    found = deduplicate(np.reshape(rows, (-1, 3)), scores, threshold=threshold)
    assert found.keep.tolist() == keep
    assert found.labels.tolist() == labels
    assert found.removed == len(rows) - len(keep)
    assert found.clusters_merged == sum(labels.count(label) > 1 for label in set(labels))


def gram_components(rows, threshold):
    from scipy.sparse.csgraph import connected_components

    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return connected_components(unit @ unit.T >= threshold, directed=False)[1]


def made(n, width, *, flat, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, width)) * (1.0 if flat else 1.0 / np.sqrt(np.arange(width) + 4.0))
    copies = rng.integers(0, n, n // 2)
    spread = rng.normal(size=(n // 2, width)) * (rng.random((n // 2, 1)) * 0.8) * np.abs(rows[copies]).mean()
    return np.concatenate([rows, rows[copies] + spread]).astype(np.float32)


@pytest.mark.parametrize("isa", native.isa_levels())
@pytest.mark.parametrize(("width", "flat"), [(20, True), (64, False), (200, True), (384, False), (384, True)])
def test_components_of_many(isa, width, flat):
    rows = made(1200, width, flat=flat)
    expected = gram_components(rows.astype(np.float64), 0.85)
    first = {label: i for i, label in reversed(list(enumerate(expected)))}
    for threads in (1, 3):
        found = native.connected_components(rows, 0.85, threads, isa)
        assert found.tolist() == [first[label] for label in expected]


def test_chains_join():
    angles = np.linspace(0, np.pi, 50)  # neighbours at cosine 0.998, ends at -1
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found = deduplicate(rows, np.arange(50), threshold=0.99)
    assert found.keep.tolist() == [49]
    assert (found.clusters_merged, found.removed) == (1, 49)


def test_order_of_rows_does_not_matter():
    rows = made(300, 32, flat=True)
    rng = np.random.default_rng(1)
    scores = rng.random(len(rows))
    order = rng.permutation(len(rows))
    expected = deduplicate(rows, scores, threshold=0.7)
    found = deduplicate(rows[order], scores[order], threshold=0.7)
    assert order[found.keep].tolist() == expected.keep.tolist()
    assert found.labels.tolist() == expected.labels[order].tolist()


def test_lengths_beyond_float32_products():
    rows = made(200, 40, flat=True)
    scaled = rows * (10.0 ** np.random.default_rng(1).integers(-36, 37, (300, 1))).astype(np.float32)
    scores = np.arange(300)
    expected, found = deduplicate(rows, scores, threshold=0.8), deduplicate(scaled, scores, threshold=0.8)
    assert expected.removed > 0
    assert found.labels.tolist() == expected.labels.tolist()


def test_edges():
    assert deduplicate(np.empty((0, 5)), []).keep.tolist() == []
    zeros = deduplicate(np.zeros((3, 5)), [1.0, 3.0, 2.0])
    assert zeros.keep.tolist() == [1, 2, 0]
    assert zeros.clusters_merged == 0
    same = deduplicate(np.full((3, 7), 0.1), [1.0, 1.0, 1.0], threshold=1.0)
    assert same.keep.tolist() == [0]


@pytest.mark.parametrize(
    ("rows", "scores", "options", "message"),
    [
        ([[1.0]], [1.0, 2.0], {}, r"scores has shape \(2,\)"),
        ([[1.0]], [np.inf], {}, r"scores\[0\] is not finite"),
        ([[np.nan]], [1.0], {}, "1 row: 0"),
        ([[1.0]], [1.0], {"threshold": 0.0}, "threshold must be between"),
        ([[1.0]], [1.0], {"threshold": 1.1}, "threshold must be between"),
        ([[1.0]], [1.0], {"threads": -1}, "threads must be between"),
    ],
)
def test_bad_values(rows, scores, options, message):
    with pytest.raises(ValueError, match=message):
        deduplicate(rows, scores, **options)


def test_vectors_of_no_width_and_of_too_much():
    result = deduplicate(np.empty((3, 0)), [1.0, 2.0, 3.0])
    assert result.keep.tolist() == [2, 1, 0]
    with pytest.raises(ValueError, match="width of embeddings must be at most 65536"):
        deduplicate(np.ones((2, 65537), np.float32), [1.0, 2.0])
