"""Dot products: sums in sixteen lanes that are folded in a fixed order, the same bits whichever way they are asked for."""

import numpy as np
import pytest

from hsca_fast._native import vectors as native
from hsca_fast._native.vectors import dot_products


def in_lanes(one, other):
    """Element j belongs to lane j % 16; lanes j + 8, j + 4, j + 2 and j + 1 are added to lane j."""
    products = np.zeros(-(-len(one) // 16) * 16, np.float32)
    products[: len(one)] = one * other
    lanes = np.zeros(16, np.float32)
    for part in products.reshape(-1, 16):
        lanes = lanes + part
    for half in (8, 4, 2, 1):
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]


@pytest.mark.parametrize("isa", native.isa_levels())
@pytest.mark.parametrize("dims", [1, 16, 40, 64, 256])
@pytest.mark.parametrize(("n_queries", "n_rows"), [(1, 3), (4, 4), (5, 70), (9, 18)])
def test_lanes(isa, dims, n_queries, n_rows):
    rng = np.random.default_rng(dims)
    queries, rows = (rng.standard_normal((n, dims), np.float32) for n in (n_queries, n_rows))
    expected = [[in_lanes(query, row) for row in rows] for query in queries]
    assert (dot_products(queries, rows, isa=isa) == np.array(expected, np.float32)).all()


@pytest.mark.parametrize("isa", native.isa_levels())
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("n", "dims"), [(0, 4), (1, 16), (5, 7), (67, 256), (130, 48)])
def test_rows_with_themselves(isa, threads, n, dims):
    rows = np.random.default_rng(n).standard_normal((n, dims), np.float32)
    assert (dot_products(rows, rows, threads, isa=isa) == dot_products(rows, rows.copy(), isa="baseline")).all()
