"""How the use of memories moves their scores: factors of age, retrievals, shared retrievals and novelty."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from hsca_fast._native import ranking as _native
from hsca_fast.ranking.columns import float_columns, number, refuse_if_not_finite
from hsca_fast.ranking.decay import recency

LTP_COEFFICIENT = 0.3
DAY = 86_400.0
HOUR = 3_600.0
LN_2 = 0.6931471805599453

Scores = npt.NDArray[np.float64]


def age_factor(age_seconds: npt.ArrayLike, *, half_life_days: float = 90.0, floor: float = 0.0) -> Scores:
    """max(floor, 2^(-age / half-life)), in [floor, 1]; a half-life of 0 means that nothing ages.

    Examples
    --------
    >>> age_factor([0.0, 90 * 86_400.0, -5.0]).tolist()
    [1.0, 0.5, 1.0]
    """
    half_life_days = number("half_life_days", half_life_days, 0.0)
    floor = number("floor", floor, 0.0, 1.0)
    age = _column(age_seconds=age_seconds)
    if half_life_days == 0.0:
        return np.ones_like(age)
    factor: Scores = np.maximum(recency(age, LN_2 / (half_life_days * DAY)), floor)
    return factor


def use_factor(counts: npt.ArrayLike, *, coefficient: float = LTP_COEFFICIENT, max_boost: float = 2.0) -> Scores:
    """1 + c·ln(1 + n) held to [1, max_boost]; negative counts count as 0.

    With a document's retrievals for n this is long-term potentiation; with its retrievals beside the other hits, association.

    Examples
    --------
    >>> use_factor([0, 3, 28]).round(4).tolist()
    [1.0, 1.4159, 2.0]
    """
    coefficient = number("coefficient", coefficient, 0.0)
    max_boost = number("max_boost", max_boost, 1.0)
    n = np.maximum(_column(counts=counts), 0.0)
    factor: Scores = np.clip(1.0 + coefficient * _native.log_counts(n), 1.0, max_boost)
    return factor


def novelty_factor(age_seconds: npt.ArrayLike, *, window_hours: float = 24.0, max_boost: float = 1.5) -> Scores:
    """`max_boost` at age 0, then down a line to 1 at the end of the window.

    Examples
    --------
    >>> novelty_factor([0.0, 43_200.0, 1e9]).tolist()
    [1.5, 1.25, 1.0]
    """
    window_hours = number("window_hours", window_hours, 0.0, math.inf, open_ends=True)
    max_boost = number("max_boost", max_boost, 1.0)
    left = 1.0 - np.maximum(_column(age_seconds=age_seconds), 0.0) / (window_hours * HOUR)
    factor: Scores = 1.0 + (max_boost - 1.0) * np.maximum(left, 0.0)
    return factor


def rescaled_ltp(
    ltp: npt.ArrayLike, *, max_boost: float = 2.0, days_since_access: npt.ArrayLike | None = None, decay: float = 0.0
) -> Scores:
    """`use_factor` on a scale from 0 to 1, forgotten by e^(-decay·days): (ltp - 1) / (max_boost - 1)·e^(-λt).

    The factor itself is never below 1, so no bound below 1 could ever be undercut.

    Examples
    --------
    >>> rescaled_ltp([1.0, 1.5, 2.0]).tolist()
    [0.0, 0.5, 1.0]
    >>> rescaled_ltp([2.0], days_since_access=[100.0], decay=0.01).round(4).tolist()
    [0.3679]
    """
    max_boost = number("max_boost", max_boost, 1.0)
    decay = number("decay", decay, 0.0)
    factor = np.clip(_column(ltp=ltp), 1.0, max_boost)
    scaled: Scores = (factor - 1.0) / (max_boost - 1.0) if max_boost > 1.0 else np.zeros_like(factor)
    return (
        scaled if days_since_access is None else scaled * recency(_column(days_since_access=days_since_access), decay)
    )


def _column(**named: npt.ArrayLike) -> Scores:
    (column,) = float_columns(**named)
    refuse_if_not_finite(**dict.fromkeys(named, column))
    return np.asarray(column, np.float64)
