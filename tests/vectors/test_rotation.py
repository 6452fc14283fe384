import numpy as np
import pytest

from hsca_fast import DamagedIndexError, Rotation, fit_rotation
from hsca_fast.vectors import rotation as rotation_module


def sample(n=400, width=24, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, width)) * 0.8 ** np.arange(width)
    mix = np.linalg.qr(rng.normal(size=(width, width)))[0]
    return (hidden @ mix + 0.1).astype(np.float32)


def test_inner_products_stay():
    x = sample()
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    turned = fit_rotation(x).apply(x)
    np.testing.assert_allclose(turned @ turned.T, x @ x.T, atol=1e-6)


def test_energy_leads_and_no_other_basis_leads_with_more():
    x = sample()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    energy = (fit_rotation(x).apply(unit) ** 2).mean(axis=0)
    assert (np.diff(energy) <= 1e-7).all()
    # The best k-dimensional subspace, from the singular values.
    best = np.cumsum(np.linalg.svd(unit, compute_uv=False) ** 2) / len(x)
    np.testing.assert_allclose(np.cumsum(energy), best, atol=1e-5)


def test_fewer_rows_than_coordinates_and_lengths_do_not_matter():
    x = sample(5)
    rotation = fit_rotation(x)
    np.testing.assert_allclose(rotation.matrix @ rotation.matrix.T, np.eye(24), atol=1e-6)
    many = sample()
    scaled = many * np.random.default_rng(1).uniform(0.1, 9, (400, 1))
    np.testing.assert_allclose(fit_rotation(many).matrix, fit_rotation(scaled).matrix, atol=1e-3)


def test_batch_size_and_threads_do_not_matter():
    x = sample()
    rotation = fit_rotation(x)
    whole = rotation.apply(x)
    assert rotation.apply(x, threads=3).tobytes() == whole.tobytes()
    assert all(rotation.apply(row).tobytes() == line.tobytes() for row, line in zip(x[:20], whole, strict=False))


def test_save_and_load(tmp_path):
    rotation = fit_rotation(sample())
    path = tmp_path / "rotation.bin"
    rotation.save(path)
    assert Rotation.load(path).matrix.tobytes() == rotation.matrix.tobytes()
    assert Rotation.load(path).fingerprint == rotation.fingerprint
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:40], b"", whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
        path.write_bytes(damaged)
        with pytest.raises(DamagedIndexError, match="checksum"):
            Rotation.load(path)


def test_bad_input():
    with pytest.raises(ValueError, match="not orthogonal"):
        Rotation(np.array([[1.0, 0.0], [0.5, 1.0]]))
    with pytest.raises(ValueError, match="square"):
        Rotation(np.ones((2, 3)))
    with pytest.raises(ValueError, match="empty"):
        fit_rotation(np.empty((0, 4)))
    with pytest.raises(ValueError, match="1 row: 1"):
        fit_rotation([[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(ValueError, match="24 are wanted"):
        fit_rotation(sample()).apply([1.0, 2.0])


def test_a_large_sample_takes_a_block_at_a_time(monkeypatch):
    rows = sample()
    rows[3] = 0
    whole = rotation_module._gram(rows)
    unit = np.delete(rows, 3, axis=0).astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    np.testing.assert_allclose(whole, unit.T @ unit, atol=1e-9)
    monkeypatch.setattr(rotation_module, "_BLOCK", 7)
    np.testing.assert_allclose(rotation_module._gram(rows), whole, atol=1e-9)


def test_the_callers_matrix_is_left_alone():
    matrix = np.eye(3, dtype=np.float32)
    rotation = Rotation(matrix)
    matrix[0, 0] = 5.0
    assert rotation.matrix[0, 0] == 1.0
    assert rotation.apply([]).shape == (0, 3)
