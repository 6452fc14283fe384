"""Phase 6: what was asked for again and again, by different questions, stands in front."""

from __future__ import annotations

import numpy as np

from hsca_fast.ranking import fit_budget
from hsca_fast.ranking.costs import token_costs
from hsca_fast.ranking.relevance import blended_relevance
from hsca_fast.retrieval.evidence import Recalled
from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.run import Run


class Pinned(Phase):
    """Adds at most `pinned_max_items` records of at most `pinned_max_tokens` in front of the results."""

    name = "pinned"

    def wanted(self, profile: RetrievalProfile) -> bool:
        return profile.pinned_memory_enabled

    def apply(self, run: Run) -> None:
        offered = run.evidence.pinned(run.asked)[: run.profile.pinned_max_items]
        texts = [record.text for record in run.records.get_many([each for each, _, _ in offered])]
        costs = token_costs(texts, run.count_tokens, "record")
        fitting = fit_budget(np.array(costs, np.int64), run.profile.pinned_max_tokens).tolist()
        chosen = [offered[i] for i in fitting]
        new = {each: cosine for each, _, cosine in chosen if run.pool.find(each) is None}
        if new:
            relevance = blended_relevance(list(new.values()), np.zeros(len(new)))
            added = run.add_candidates([Recalled(each, cosine, None) for each, cosine in new.items()])
            run.move(self.name, "cosine_similarity", relevance, "cosine with the query", added)
        in_play = set(run.order.tolist())
        run.pinned = []
        for each, pinning, _ in chosen:
            row = run.pool.find(each)
            assert row is not None
            if row not in in_play:
                run.drops.pop(row, None)
                run.only_pinned.add(row)
            run.pinned.append(row)
            run.notes.setdefault(row, {})["pinning"] = pinning
        rows = run.pinned
        run.order = np.array(list(dict.fromkeys([*rows, *run.order.tolist()])), np.int64)
        run.fire("post_pinned", lambda: {"pinned": run.described(rows)})
