"""Recency: how much of a memory is left."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from hsca_fast._native import ranking as _native
from hsca_fast.ranking.columns import Floats, float_columns, number, output, refuse

#: λ by scope, per second: half-lives of about 1.9 hours, 19 hours and 4 days.
RECENCY_DECAY = MappingProxyType({"session": 1e-4, "user": 1e-5, "global": 2e-6})


def recency(age_seconds: npt.ArrayLike, decay: float, *, out: Floats | None = None) -> Any:
    """R = e^(-decay·age), in (0, 1].

    Parameters
    ----------
    age_seconds
        Ages in seconds; a negative age (a date in the future) counts as 0.
    decay
        λ, per second, at least 0; `RECENCY_DECAY` holds those of the scopes.
    out
        Array to write to, of the result's type.

    Returns
    -------
    numpy.ndarray
        float32 for float32 ages, float64 otherwise. λ·age counts at most 64 (float32) or 600 (float64): R is never 0.

    Examples
    --------
    >>> recency([0.0, 3600.0, -5.0], RECENCY_DECAY["session"]).round(4).tolist()
    [1.0, 0.6977, 1.0]
    """
    decay = number("decay", decay, 0.0)
    (age,) = float_columns(age_seconds=age_seconds)
    result = output(out, age, [age])
    if not _native.recency(age, decay, 1, result):
        refuse(age_seconds=age)
    return result
