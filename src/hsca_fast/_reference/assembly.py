"""Section 7 of the document in plain Python, by definition and not by algorithm: try everything, keep the longest that is legal."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


def longest_prefix(costs: Sequence[int], budget: float) -> int:
    """Pref: j = max { r | sum of the first r costs <= b }."""
    return max((r for r in range(len(costs) + 1) if sum(costs[:r]) <= budget), default=0)


def is_bundle_safe(start: int, coupled: Sequence[bool]) -> bool:
    """A suffix is whole bundles when its first turn does not belong to the one before it."""
    return start == len(coupled) or not coupled[start]


def tail_start(
    costs: Sequence[int], coupled: Sequence[bool], min_turns: int, target: float, room: float | None
) -> tuple[int, bool]:
    """Start of the longest bundle-safe suffix that holds the base within min(max(target, base), room).

    With none, the shortest bundle-safe suffix that holds the base, if that fits the room; with none either, the base, which cuts
    a bundle (True).
    """
    n = len(costs)
    if min_turns == 0:
        return n, False
    base = max(0, n - min_turns)
    safe = [s for s in range(base + 1) if is_bundle_safe(s, coupled)]
    bound = max(target, sum(costs[base:]))
    if room is not None:
        bound = min(bound, max(room, sum(costs[base:])))
    if fitting := [s for s in safe if sum(costs[s:]) <= bound]:
        return min(fitting), False
    if room is not None and sum(costs[max(safe) :]) <= room:
        return max(safe), False
    return base, True


@dataclass(frozen=True, slots=True)
class Plan:
    """How many soft rules and variants go in and where the tail starts; None when no legal assembly exists."""

    n_soft: int
    tail_start: int
    splits_bundle: bool
    n_variant: int


def plan(
    hard: Sequence[int],
    soft: Sequence[int],
    turns: Sequence[int],
    coupled: Sequence[bool],
    variants: Sequence[int],
    *,
    budget: int,
    fractions: tuple[float, float, float],
    min_turns: int,
) -> Plan | None:
    """Section 7.8 over costs; `variants` are in the merged order."""
    alpha1, alpha2, beta = (math.floor(fraction * budget + 1e-9) for fraction in fractions)
    base = sum(turns[max(0, len(turns) - min_turns) :]) if min_turns else 0
    if sum(hard) > alpha1 or sum(hard) + base > budget:
        return None
    n_soft = longest_prefix(soft, min(alpha2, budget - sum(hard) - base))
    room = budget - sum(hard) - sum(soft[:n_soft])
    start, splits = tail_start(turns, coupled, min_turns, beta, room)
    return Plan(n_soft, start, splits, longest_prefix(variants, room - sum(turns[start:])))


def authority(age: float, access: float, authored: float, max_access: float) -> float:
    """omega(d) with the shipped weights and decay."""
    recency = math.exp(-1e-5 * max(age, 0.0))
    frequency = math.log(1 + access) / math.log(1 + max_access + 1)
    return 0.5 * recency + 0.2 * frequency + 0.3 * authored


def final_score(similarity: float, authority: float, coverage: float, kappa: float) -> float:
    """S_final(d)."""
    return authority * max(similarity, 0.0) * (1 + kappa * coverage) / (1 + kappa)


def hop_scores(
    scores: Mapping[str, float], edges: Mapping[str, Sequence[str]], eligible: Collection[str], eta: float, theta: float
) -> dict[str, float]:
    """S_hop(d') = eta * max over parents of S_final, kept from theta on; depth one."""
    reached = {
        target: eta * max(score for parent, score in scores.items() if target in edges.get(parent, ()))
        for targets in (edges.get(parent, ()) for parent in scores)
        for target in targets
        if target not in scores and target in eligible
    }
    return {target: score for target, score in reached.items() if score >= theta}
