"""What fits a budget (section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def fit_budget(
    costs: Sequence[float], budget: float, *, scores: Sequence[float] | None = None, policy: str = "prefix"
) -> list[int]:
    """Rows in rank order: the longest prefix within the budget, or every row that still fits."""
    order = list(range(len(costs)))
    if scores is not None:
        order.sort(key=lambda row: (-scores[row], row))
    used = Fraction(0)
    fitting = []
    for row in order:
        if used + Fraction(costs[row]) <= budget:
            used += Fraction(costs[row])
            fitting.append(row)
        elif policy == "prefix":
            break
    return fitting
