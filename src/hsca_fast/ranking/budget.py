"""What fits a budget."""

from __future__ import annotations

import math
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from hsca_fast._native import ranking as _native
from hsca_fast.ranking.columns import float_columns, number, refuse_if_not_finite


def fit_budget(
    costs: npt.ArrayLike,
    budget: float,
    *,
    scores: npt.ArrayLike | None = None,
    policy: Literal["prefix", "first_fit"] = "prefix",
) -> npt.NDArray[np.int64]:
    """Rows whose costs fit the budget together, in rank order.

    Parameters
    ----------
    costs
        Finite and not negative. Without `scores` they are in rank order already.
    budget
        At least 0. The costs of the rows never add up to more (integers are summed exactly, floats with compensation).
    scores
        Ranks the rows by (score descending, row ascending). Only as many are sorted as the budget asks for.
    policy
        ``"prefix"``: the longest prefix of the ranking that fits; the first overflow stops. ``"first_fit"``: every row in rank
        order that still fits.

    Examples
    --------
    >>> fit_budget([4, 5, 2], 7).tolist(), fit_budget([4, 5, 2], 7, policy="first_fit").tolist()
    ([0], [0, 2])
    >>> fit_budget([4, 5, 2], 7, scores=[0.1, 0.9, 0.5]).tolist()
    [1, 2]
    """
    if policy not in ("prefix", "first_fit"):
        raise ValueError(f"policy must be 'prefix' or 'first_fit', not {policy!r}")
    limit = number("budget", budget, 0.0)
    if limit > budget:  # an int that float64 rounds up
        limit = math.nextafter(limit, 0.0)
    given = _costs(costs)
    if scores is None:
        rows = _native.fit_budget(given, limit, policy)
        if rows is None:
            _refuse(given)
        return rows
    (ranked,) = float_columns(scores=scores)
    if len(ranked) != len(given):
        raise ValueError(f"scores has {len(ranked)} elements but costs has {len(given)}")
    rows = _native.fit_budget_scored(ranked, given, limit, policy)
    if rows is None:
        refuse_if_not_finite(scores=ranked)
        _refuse(given)
    return rows


def _costs(costs: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asanyarray(costs)
    if type(array) is np.ndarray and array.ndim == 1 and array.dtype in (np.int32, np.int64):
        return np.require(array, requirements=("C", "A"))
    (floats,) = float_columns(costs=array)
    return np.ascontiguousarray(floats, np.float64)


def _refuse(costs: npt.NDArray[Any]) -> NoReturn:
    refuse_if_not_finite(costs=costs)
    row = int(np.argmax(costs < 0))
    raise ValueError(f"costs[{row}] is {costs[row]}; a cost is at least 0")
