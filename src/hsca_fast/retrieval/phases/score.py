"""Phases 1 to 4: relevance, weighed by authority and words, moved by age and use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hsca_fast.ranking import (
    age_factor,
    authority_weights,
    extract_keywords,
    keyword_coverage,
    novelty_factor,
    second_pass_scores,
    use_factor,
)
from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.run import Run


class Score(Phase):
    """second pass · age · ltp · association · novelty; a factor whose axis is off is 1."""

    name = "score"

    def apply(self, run: Run) -> None:
        if not len(run.pool):
            return
        profile, pool, now = run.profile, run.pool, run.asked.now
        age = np.maximum(now - pool.timestamps(), 0.0)
        authority = authority_weights(
            age,
            np.array([each.references for each in pool.recalled], np.float64),
            np.array([_authority(record.metadata) for record in pool.records]),
            weights=profile.authority_weights,
            decay=profile.authority_decay,
        )
        coverage = keyword_coverage(extract_keywords(run.asked.text), [record.text for record in pool.records])
        second = second_pass_scores(run.score, authority, coverage, kappa=profile.kappa)
        run.move(self.name, "keyword_coverage", second, "authority and keyword coverage")
        if profile.axis("decay"):
            factor = age_factor(age, half_life_days=profile.half_life_days, floor=profile.decay_floor)
            run.move(self.name, "age_decay", run.score * factor, "age")
        retrievals, together = run.evidence.use(pool.ids, run.asked)
        if profile.axis("ltp"):
            factor = use_factor(retrievals, max_boost=profile.ltp_max_boost)
            run.move(self.name, "ltp_boost", run.score * factor, "retrievals before")
        if profile.axis("association"):
            factor = use_factor(
                together, coefficient=profile.association_coefficient, max_boost=profile.association_max_boost
            )
            run.move(self.name, "association_boost", run.score * factor, "retrievals together with other candidates")
        if profile.axis("tagging"):
            factor = novelty_factor(age, window_hours=profile.tagging_window_hours, max_boost=profile.tagging_max_boost)
            run.move(self.name, "tagging_boost", run.score * factor, "new")
        expanded = np.array([row for row, each in enumerate(pool.recalled) if each.via], np.int64)
        if len(expanded):
            after = run.score[expanded] * profile.query_expansion_boost
            run.move(self.name, "query_expansion_penalty", after, "found by a term of past queries", expanded)
        run.order = run.rank(run.order)
        run.fire("post_score", lambda: {"candidates": run.described(run.order.tolist())})


def _authority(metadata: Mapping[str, Any]) -> float:
    """What the author gave a record, 1 where nothing was said."""
    value = metadata.get("authority")
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= 1.0:
        return 1.0
    return float(value)
