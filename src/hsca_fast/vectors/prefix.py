"""Regularised prefixes of vectors: the tiers of a cascade."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from hsca_fast._native import vectors as _native
from hsca_fast._native.inputs import thread_count
from hsca_fast.vectors.arrays import Float32, as_dims, as_matrix, as_number, refuse_infinite

EPS = 1e-8


def prefix_tiers(
    vectors: npt.ArrayLike,
    dims: Sequence[int] = (64, 256, 768),
    *,
    eps: float = EPS,
    out: Sequence[Float32] | None = None,
    threads: int = 1,
) -> tuple[Float32, ...]:
    """``u_k = v[:k] / sqrt(|v[:k]|² + eps²)`` for every k of `dims`, all in one pass.

    Squares are summed in float64. A prefix of zeros stays zero, and one that is small beside `eps` goes smoothly
    to zero; other prefixes have length 1 to float32 precision.

    Parameters
    ----------
    vectors
        One vector or a matrix of them.
    dims
        Strictly increasing widths, none greater than the vectors'.
    out
        float32 matrices to write to, one for each of `dims`; saves the system from finding memory for large batches.

    Returns
    -------
    tuple of float32 arrays
        One for each of `dims`; vectors if `vectors` is one vector, else matrices.

    Examples
    --------
    >>> small, full = prefix_tiers([3.0, 4.0, 0.0, 12.0], (2, 4))
    >>> [round(float(x), 3) for x in small], round(float(full[3]), 3)
    ([0.6, 0.8], 0.923)
    """
    widths = as_dims(dims)
    rows = as_matrix(vectors, "vectors")
    if rows.shape[1] < widths[-1] and len(rows):
        raise ValueError(f"vectors have {rows.shape[1]} values; dims asks for a prefix of {widths[-1]}")
    eps = as_number(eps, "eps", low=0.0, high=1.0)
    if out is not None and (
        len(out) != len(widths) or any(np.shape(t) != (len(rows), w) for t, w in zip(out, widths, strict=True))
    ):
        wanted = ", ".join(f"{len(rows)} x {width}" for width in widths)
        raise ValueError(f"out must be matrices of {wanted}")
    if out is not None:
        _refuse_unwritable(out)
    if out is not None and any(np.may_share_memory(a, b) for a, b in combinations((rows, *out), 2)):
        raise ValueError("out must not overlap vectors or itself")
    tiers = _native.prefix_tiers(rows, widths, eps, thread_count(threads), out=out)
    if tiers is None:
        refuse_infinite(rows, "vectors")
        raise AssertionError("prefix_tiers and finite_rows disagree")
    return tuple(tier[0] for tier in tiers) if np.ndim(vectors) == 1 else tiers


def _refuse_unwritable(out: Sequence[Float32]) -> None:
    for i, tier in enumerate(out):
        if not isinstance(tier, np.ndarray) or tier.dtype != np.float32:
            raise TypeError(f"out[{i}] must be a float32 array, not {getattr(tier, 'dtype', type(tier).__name__)}")
        if not tier.flags.writeable or not tier.flags.c_contiguous:
            raise ValueError(f"out[{i}] must be writeable and in C order")
