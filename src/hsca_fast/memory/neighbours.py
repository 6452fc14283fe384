"""Vectors of chunks that know what was said around them, from vectors that do not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hsca_fast.ranking.columns import count, number
from hsca_fast.vectors.embedder import unit_rows


def smooth_neighbours(
    vectors: npt.ArrayLike, *, reach: int = 4, weight: float = 0.5, decay: float = 0.7
) -> npt.NDArray[np.float32]:
    """Unit vectors of successive chunks, each drawn towards its neighbours.

    s_i = unit(v_i + weight · unit(Σ_d decay^(d-1) (v_{i-d} + v_{i+d}))), d = 1 … reach; what is beyond either end counts nothing.

    Parameters
    ----------
    vectors
        [n, dim], one row a chunk of one conversation or document, in order. Rows are scaled to length 1 first.
    reach
        How many chunks on either side count; at least 1.
    weight
        Of all neighbours together; 0 leaves the chunks alone. From 0 to 1.
    decay
        How much less a chunk counts than the one before it. From 0 to 1.

    Examples
    --------
    >>> smooth_neighbours([[1, 0], [0, 1]], reach=1, weight=0.75)
    array([[0.8, 0.6],
           [0.6, 0.8]], dtype=float32)
    """
    reach = count("reach", reach)
    weight, decay = number("weight", weight, 0.0, 1.0), number("decay", decay, 0.0, 1.0)
    given = np.asarray(vectors, np.float32)
    if given.ndim != 2:
        raise ValueError(f"vectors must have two dimensions, not {given.ndim}")
    bad = np.flatnonzero(~np.isfinite(given).all(axis=1))
    if len(bad):
        raise ValueError(f"vectors[{bad[0]}] holds a number that is not finite")
    rows = unit_rows(given)
    around = np.zeros(rows.shape, np.float64)
    for distance in range(1, min(reach, len(rows) - 1) + 1):
        share = decay ** (distance - 1)
        around[distance:] += share * rows[:-distance]
        around[:-distance] += share * rows[distance:]
    return unit_rows(rows + np.float32(weight) * unit_rows(around.astype(np.float32)))
