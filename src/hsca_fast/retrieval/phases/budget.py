"""Results within a number of tokens."""

from __future__ import annotations

import numpy as np

from hsca_fast.ranking import fit_budget
from hsca_fast.ranking.costs import token_costs
from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.run import Run


class Budget(Phase):
    """The longest beginning of the results that fits `max_tokens`; `truncated` says that something did not."""

    name = "budget"
    vital = True

    def apply(self, run: Run) -> None:
        if run.max_tokens is None:
            return
        texts = [run.pool.records[row].text for row in run.order.tolist()]
        costs = np.array(token_costs(texts, run.count_tokens, "record"), np.int64)
        kept = run.order[fit_budget(costs, run.max_tokens)]
        run.truncated = len(kept) < len(run.order)
        of = dict(zip(run.order.tolist(), costs.tolist(), strict=True))
        run.keep(
            kept, self.name, lambda row: (f"{of[row]} tokens do not fit into {run.max_tokens}", {"tokens": of[row]})
        )
        run.fire("post_budget", lambda: {"truncated": run.truncated, "tokens": sum(of[row] for row in kept.tolist())})
