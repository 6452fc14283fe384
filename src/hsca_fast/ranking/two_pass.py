"""Two-pass discovery: authority, the coarse filter and the second-pass score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import ranking as _native
from hsca_fast._native.inputs import thread_count
from hsca_fast.ranking.columns import (
    Floats,
    count,
    float_columns,
    normalized_weights,
    number,
    output,
    refuse,
)
from hsca_fast.ranking.hybrid import TopK

_DEFAULT_WEIGHTS = (0.5, 0.2, 0.3)


def authority_weights(
    age_seconds: npt.ArrayLike,
    access_count: npt.ArrayLike,
    authored: npt.ArrayLike,
    *,
    weights: Sequence[float] = _DEFAULT_WEIGHTS,
    decay: float = 1e-5,
    max_access: float | None = None,
    out: Floats | None = None,
) -> Any:
    """ω = α_r·r + α_f·f + α_a·a, in [0, 1], with r = e^(-decay·age) and f = ln(1 + acc) / ln(2 + max_access).

    Parameters
    ----------
    age_seconds
        Ages in seconds; negative ones count as 0.
    access_count
        How often each document was used; negative counts count as 0, those above `max_access` as that.
    authored
        a: how much authority its author gave it; clamped to [0, 1].
    weights
        α_r, α_f, α_a: each clamped to [0, 1] and divided by their sum; a sum of 0 means the defaults.
    decay
        λ_r, per second, at least 0.
    max_access
        The largest access count of the whole retrievable corpus, which may be larger than that of these documents; None
        takes the largest here. With 0 (cold start) every f is 0.
    out
        Array to write to, of the result's type: float32 when all columns are, float64 otherwise.

    Examples
    --------
    >>> authority_weights([0.0, 0.0], [0, 5], [False, True], max_access=10).round(6).tolist()
    [0.5, 0.944211]
    """
    decay = number("decay", decay, 0.0)
    normalized = normalized_weights(weights, _DEFAULT_WEIGHTS)
    age, access, given = float_columns(age_seconds=age_seconds, access_count=access_count, authored=authored)
    if max_access is None:
        most = max(float(access.max()), 0.0) if len(access) else 0.0
        if not np.isfinite(most):
            refuse(access_count=access)
    else:
        most = number("max_access", max_access, 0.0)
    result = output(out, age, [age, access, given])
    if not _native.authority_weights(age, access, given, normalized, decay, most, result):
        refuse(age_seconds=age, access_count=access, authored=given)
    return result


def coarse_candidates(similarity: npt.ArrayLike, *, k: int = 16, theta: float = 0.2) -> npt.NDArray[np.int64]:
    """Pass 1: rows of the k highest similarities that reach `theta`, best first.

    Examples
    --------
    >>> coarse_candidates([0.1, 0.9, 0.4, 0.6], k=3, theta=0.5).tolist()
    [1, 3]
    """
    k = count("k", k)
    theta = number("theta", theta, -1.0, 1.0)
    (values,) = float_columns(similarity=similarity)
    best = _native.top_similarities(values, k)
    if best is None:
        refuse(similarity=values)
    rows, found = best
    kept: npt.NDArray[np.int64] = rows[found >= found.dtype.type(theta)]
    return kept


def second_pass_scores(
    similarity: npt.ArrayLike,
    authority: npt.ArrayLike,
    coverage: npt.ArrayLike,
    *,
    kappa: float = 0.3,
    threads: int = 1,
    out: Floats | None = None,
) -> Any:
    """S = ω·max(sim, 0)·(1 + κ·M) / (1 + κ), with 0 ≤ S ≤ ω ≤ 1.

    Parameters
    ----------
    similarity, authority, coverage
        sim, ω and M; clamped to [0, 1].
    kappa
        What full keyword coverage adds, at least 0.
    threads
        Worker threads; 0 takes every usable CPU. The result is the same for every number.
    out
        Array to write to, of the result's type: float32 when all columns are, float64 otherwise.

    Examples
    --------
    >>> second_pass_scores([0.7, 0.7, -0.2], [0.5, 0.5, 1.0], [1.0, 0.0, 1.0]).round(6).tolist()
    [0.35, 0.269231, 0.0]
    """
    kappa = number("kappa", kappa, 0.0)
    n_threads = thread_count(threads)
    columns = float_columns(similarity=similarity, authority=authority, coverage=coverage)
    result = output(out, columns[0], columns)
    if not _native.second_pass_scores(columns[0], columns[1], columns[2], kappa, n_threads, result):
        refuse(similarity=columns[0], authority=columns[1], coverage=columns[2])
    return result


def second_pass_top_k(
    similarity: npt.ArrayLike,
    authority: npt.ArrayLike,
    coverage: npt.ArrayLike,
    k: int,
    *,
    kappa: float = 0.3,
    threads: int = 1,
) -> TopK:
    """The k best of `second_pass_scores` in one pass that stores no score it does not return.

    Examples
    --------
    >>> second_pass_top_k([0.7, 0.9], [0.5, 0.5], [0.0, 0.0], 1).rows.tolist()
    [1]
    """
    k = count("k", k)
    kappa = number("kappa", kappa, 0.0)
    n_threads = thread_count(threads)
    columns = float_columns(similarity=similarity, authority=authority, coverage=coverage)
    best = _native.second_pass_top_k(columns[0], columns[1], columns[2], kappa, k, n_threads)
    if best is None:
        refuse(similarity=columns[0], authority=columns[1], coverage=columns[2])
    return TopK(*best)
