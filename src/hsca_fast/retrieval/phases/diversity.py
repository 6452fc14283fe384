"""Phases 5 and 11: results that do not repeat each other and do not all come from one wing; then the k best."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.run import Drop, Rows, Run, Scores
from hsca_fast.vectors.mmr import mmr


class Mmr(Phase):
    """Maximal marginal relevance over the scores so far."""

    name = "mmr"

    def wanted(self, profile: RetrievalProfile) -> bool:
        return profile.mmr_enabled

    def apply(self, run: Run) -> None:
        lambda_ = run.profile.mmr_lambda
        run.before_diversity = run.order
        picks = _pick(run, run.order, lambda_, 0.0)
        nearest = _nearest(run, run.order, picks) if run.tracing else {}
        run.keep(picks, self.name, lambda row: (f"similarity to {nearest[row][0]} = {nearest[row][1]:.4f}", {}))
        redundancy = _redundancy(run, picks)
        run.trace["mmr"] = {
            "lambda": lambda_,
            "candidates_before_mmr": len(run.before_diversity),
            "candidates_after_mmr": len(picks),
            "max_internal_similarity": float(redundancy.max(initial=0.0)),
        }
        if not _balances(run):  # otherwise the wings decide what is picked, and with what penalty
            _penalize(run, picks, lambda_, redundancy)
        run.fire("post_mmr", lambda: {"candidates_after": run.described(picks.tolist())})


class CrossWing(Phase):
    """MMR with a penalty on wings that have many results already.

    It works where there is something to choose from: with MMR, or with a pool that `candidate_pool_multiplier` made larger than k,
    and where there is more than one wing."""

    name = "cross_wing_balancing"

    def wanted(self, profile: RetrievalProfile) -> bool:
        return profile.wing_diversity_weight > 0.0 and (profile.mmr_enabled or profile.candidate_pool_multiplier > 1)

    def apply(self, run: Run) -> None:
        if not run.profile.mmr_enabled:
            run.before_diversity = run.order
        if not _balances(run):
            return
        profile, wings = run.profile, run.pool.wings
        lambda_ = profile.mmr_lambda if profile.mmr_enabled else 1.0
        gamma = profile.wing_diversity_weight
        plain, relevance = run.order[: run.k], run.score
        before = run.described(plain.tolist()) if run.hooks.wanted("post_cross_wing") else []
        picks = _pick(run, run.before_diversity, lambda_, gamma)
        taken = Counter(wings[row] for row in picks.tolist())
        displaced = set(plain.tolist())
        nearest = _nearest(run, plain, picks) if run.tracing and lambda_ < 1.0 else {}

        def why(row: int) -> tuple[str, dict[str, Any]]:
            if row not in displaced:
                return f"ranked below the best {run.k}", {}
            share = taken[wings[row]] / len(picks)
            value = lambda_ * float(relevance[row])
            if lambda_ < 1.0:
                value -= (1.0 - lambda_) * nearest[row][1]
            reason = f"wing {wings[row]!r} already saturated ({taken[wings[row]]}/{len(picks)} selected results)"
            return reason, {
                "wing_saturation": share,
                "original_mmr_score": value,
                "penalized_score": value - gamma * share,
            }

        if not profile.mmr_enabled:
            run.keep(picks, self.name, why)
            if run.tracing:
                low = {row: drop for row, drop in run.drops.items() if drop.phase == self.name and not drop.more}
                run.drops |= {row: Drop(TopK.name, drop.reason, {}) for row, drop in low.items()}
        else:
            run.keep(picks, self.name, why)
            for row in picks.tolist():
                run.drops.pop(row, None)
            _penalize(run, picks, lambda_, _redundancy(run, picks))
        saturation = _saturation([wings[row] for row in picks.tolist()])
        after = run.score[picks] - gamma * saturation
        run.move(self.name, "wing_diversity_penalty", after, "results of the same wing", picks)
        run.trace["wing_saturation"] = {str(wing): n / len(picks) for wing, n in taken.items()}
        run.fire(
            "post_cross_wing",
            lambda: {
                "candidates_before": [dict(each) for each in before],
                "candidates_after": run.described(picks.tolist()),
                "wing_saturation_scores": dict(run.trace["wing_saturation"]),
            },
        )


class TopK(Phase):
    """At most k."""

    name = "top_k"
    vital = True

    def apply(self, run: Run) -> None:
        if len(run.order) > run.k:
            run.keep(run.order[: run.k], self.name, lambda row: (f"ranked below the best {run.k}", {}))


def _balances(run: Run) -> bool:
    wings = run.pool.wings
    return (
        CrossWing().wanted(run.profile) and len({wings[row] for row in run.before_diversity.tolist()}) > 1 and run.k > 0
    )


def _pick(run: Run, rows: Rows, lambda_: float, gamma: float) -> Rows:
    wings = [run.pool.wings[row] for row in rows.tolist()] if gamma > 0.0 else None
    picks = mmr(run.score[rows], run.unit_vectors()[rows], run.k, lambda_=lambda_, groups=wings, group_weight=gamma)
    return rows[picks]


def _penalize(run: Run, picks: Rows, lambda_: float, redundancy: Scores) -> None:
    after = lambda_ * run.score[picks] - (1.0 - lambda_) * redundancy
    run.move(Mmr.name, "mmr_penalty", after, "likeness to better results", picks)


def _redundancy(run: Run, picks: Rows) -> Scores:
    """The highest cosine of each pick with an earlier one; 0 for the first."""
    redundancy = np.zeros(len(picks))
    if len(picks) > 1:
        earlier = np.tri(len(picks), k=-1, dtype=bool)[1:]
        redundancy[1:] = np.where(earlier, run.cosines(picks[1:], picks), -np.inf).max(axis=1)
    return redundancy


def _saturation(wings: list[str | None]) -> Scores:
    """The share of earlier picks that each one's wing has; 0 for the first."""
    taken: Counter[str | None] = Counter()
    shares = []
    for n, wing in enumerate(wings):
        shares.append(taken[wing] / n if n else 0.0)
        taken[wing] += 1
    return np.array(shares)


def _nearest(run: Run, rows: Rows, picks: Rows) -> dict[int, tuple[str, float]]:
    """For each row the pick it is most like, and how much."""
    if not len(picks):
        return dict.fromkeys(rows.tolist(), ("nothing", 0.0))
    cosines = run.cosines(rows, picks)
    best = cosines.argmax(axis=1)
    ids = [run.pool.ids[pick] for pick in picks.tolist()]
    pairs = [(ids[i], cosine) for i, cosine in zip(best.tolist(), cosines.max(axis=1).tolist(), strict=True)]
    return dict(zip(rows.tolist(), pairs, strict=True))
