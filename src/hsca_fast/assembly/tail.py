"""The recent tail: the last turns of a session, word for word (section 7.8 of the document)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from hsca_fast.memory.turns import Turn, chronological
from hsca_fast.ranking.costs import CountTokens, token_costs

MIN_TURNS = 4


@dataclass(frozen=True, slots=True)
class Tail:
    """A session cut in two: what stays as it is and what may be condensed or recalled.

    Attributes
    ----------
    base
        The mandatory end of `recent`: the last `min_turns` turns.
    recent
        The tail, a suffix of the session that holds `base`.
    older
        All turns before it.
    base_tokens, recent_tokens
        What they cost.
    splits_bundle
        The tail starts inside a bundle, because the whole bundle did not fit.
    """

    base: tuple[Turn, ...]
    recent: tuple[Turn, ...]
    older: tuple[Turn, ...]
    base_tokens: int
    recent_tokens: int
    splits_bundle: bool


def recent_tail(
    turns: Iterable[Turn | Mapping[str, object] | str],
    *,
    budget: int,
    min_turns: int = MIN_TURNS,
    limit: int | None = None,
    count_tokens: CountTokens | None = None,
) -> Tail:
    """The longest suffix of whole bundles within the budget, and never less than the last `min_turns` turns.

    A user's turn and the assistant's turn after it are a bundle, and so are neighbours with the same `bundle`. The base wins over
    the budget; nothing else does.

    Parameters
    ----------
    turns
        The session; sorted by (timestamp, id) where there are timestamps.
    budget
        Tokens for the tail.
    min_turns
        Size of the mandatory base; 0 means no tail at all.
    limit
        Up to here the first bundle of the base may be completed even over the budget. The default is not to.
    count_tokens
        Cost of a text; the default is `estimate_tokens`.

    Examples
    --------
    >>> talk = [Turn("Hello there", "user"), Turn("Hello", "assistant"), Turn("Rain?", "user"), Turn("Yes, at noon", "assistant")]
    >>> tail = recent_tail(talk, budget=6, min_turns=1)
    >>> [turn.text for turn in tail.recent], [turn.text for turn in tail.older]
    (['Rain?', 'Yes, at noon'], ['Hello there', 'Hello'])
    """
    budget = whole_number("budget", budget)
    min_turns = whole_number("min_turns", min_turns)
    if limit is not None:
        limit = whole_number("limit", limit)
    session = chronological(turns)
    costs = token_costs([turn.text for turn in session], count_tokens, "turn")
    base, start, splits = tail_start(costs, coupled(session), min_turns, budget, limit)
    return Tail(
        base=tuple(session[base:]),
        recent=tuple(session[start:]),
        older=tuple(session[:start]),
        base_tokens=sum(costs[base:]),
        recent_tokens=sum(costs[start:]),
        splits_bundle=splits,
    )


def whole_number(name: str, value: int) -> int:
    """`value` as an int of at least 0, and below 2**53: shares of it are taken in float64."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must be at least 0, not {value}")
    if value >= 2**53:
        raise ValueError(f"{name} must be below 2**53")
    return int(value)


def coupled(session: Sequence[Turn]) -> list[bool]:
    """For every turn: does it belong to the turn before it?"""
    return [False] * bool(session) + [
        bool(before.bundle and before.bundle == turn.bundle) or (before.role, turn.role) == ("user", "assistant")
        for before, turn in pairwise(session)
    ]


def tail_start(
    costs: Sequence[int], coupled: Sequence[bool], min_turns: int, budget: float, limit: float | None
) -> tuple[int, int, bool]:
    """Row where the base starts, row where the tail starts, and whether that cuts a bundle."""
    n = len(costs)
    if min_turns == 0:
        return n, n, False
    base = max(0, n - min_turns)
    before = [0, *accumulate(costs)]

    def cost(start: int) -> int:
        return before[n] - before[start]

    room = max(budget, cost(base))
    if limit is not None:
        room = min(room, max(limit, cost(base)))
    best = None
    start = base
    while cost(start) <= room:
        if start == n or not coupled[start]:
            best = start
        if start == 0:
            break
        start -= 1
    if best is not None:
        return base, best, False
    # Costs are not negative, so only the first bundle of the base is left to try.
    start = base
    while start > 0 and coupled[start]:
        start -= 1
    if limit is not None and cost(start) <= limit:
        return base, start, False
    return base, base, True
