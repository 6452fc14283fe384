"""Recall: the pool of candidates, each with its relevance."""

from __future__ import annotations

from collections import Counter

import numpy as np

from hsca_fast.ranking.relevance import blended_relevance, dealt_relevance
from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.run import Run


class Recall(Phase):
    """k · `candidate_pool_multiplier` candidates, filtered before they are counted.

    The store knows more than a cosine and a BM25 score can say, such as what stands next to a record. So its order holds, and the
    relevances of the pool are dealt out in that order: the best gets the highest."""

    name = "recall"
    vital = True

    def apply(self, run: Run) -> None:
        recalled = run.evidence.recall(run.asked, run.terms)
        run.order = run.add_candidates(recalled)
        if _compares(run.profile):
            run.unit_vectors()  # read here, with the rest
        cosine = np.array([each.cosine or 0.0 for each in recalled])
        lexical = np.array([each.lexical or 0.0 for each in recalled])
        run.move(self.name, "cosine_similarity", blended_relevance(cosine, 0.0 * lexical), "cosine with the query")
        relevance = blended_relevance(cosine, lexical)
        run.move(self.name, "lexical_match", relevance, "words of the query, by BM25")
        own = [row for row, each in enumerate(recalled) if not each.via]
        relevance[own] = dealt_relevance(relevance[own])
        run.move(self.name, "recall_order", relevance, "rank in the store's own search")
        run.order = run.rank(run.order)
        run.trace["total_candidates_in"] = len(recalled)
        run.trace["wing_counts"] = run.evidence.wing_counts()
        run.trace["wings_in_pool"] = dict(Counter(wing for wing in run.pool.wings if wing is not None))
        if run.tracing:
            run.steps += [
                {
                    "phase": self.name,
                    "action": "not_in_pool",
                    "wing": wing,
                    "reason": f"none of the {n} records of wing {wing!r} is in the pool of {len(recalled)}",
                }
                for wing, n in run.trace["wing_counts"].items()
                if wing not in run.trace["wings_in_pool"]
            ]
        run.fire("post_recall", lambda: {"candidates": run.described(run.order.tolist())})


def _compares(profile: RetrievalProfile) -> bool:
    """Whether a later phase compares candidates with each other."""
    return (
        profile.supersede_filter_enabled
        or profile.semantic_dedup_enabled
        or profile.mmr_enabled
        or (profile.candidate_pool_multiplier > 1 and profile.wing_diversity_weight > 0.0)
    )
