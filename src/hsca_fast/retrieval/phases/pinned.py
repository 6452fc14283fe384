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
        rows = []
        for each, pinning, cosine in (offered[i] for i in fitting):
            row = run.pool.find(each)
            if row is None or row not in run.order:
                if row is None:
                    (row,) = run.add_candidates([Recalled(each, cosine, None)]).tolist()
                    relevance = blended_relevance([cosine], [0.0])
                    run.move(self.name, "cosine_similarity", relevance, "cosine with the query", np.array([row]))
                run.drops.pop(row, None)
                run.only_pinned.add(row)
            rows.append(row)
            run.notes.setdefault(row, {})["pinning"] = pinning
        run.pinned = rows
        run.order = np.array(list(dict.fromkeys([*rows, *run.order.tolist()])), np.int64)
        run.fire("post_pinned", lambda: {"pinned": run.described(rows)})
