"""Phase 9: summaries in the place of what they stand for."""

from __future__ import annotations

import numpy as np

from hsca_fast.retrieval.evidence import Recalled
from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.run import Run

SUMMARY_ROLE = "summary"


class Consolidation(Phase):
    """A source gives way to its summary, which takes its score if that is better. Without `include_consolidated_summaries` it is
    the other way round. With `include_consolidated_sources` a summary names the sources that were found."""

    name = "consolidation"

    def apply(self, run: Run) -> None:
        if run.profile.include_consolidated_summaries:
            self._summaries_for_sources(run)
        else:
            rows = [row for row in run.order.tolist() if run.pool.records[row].role != SUMMARY_ROLE]
            run.keep(np.array(rows, np.int64), self.name, lambda row: ("a summary; its sources were asked for", {}))
        run.fire("post_consolidation", lambda: {"candidates": run.described(run.order.tolist())})

    def _summaries_for_sources(self, run: Run) -> None:
        into = {
            row: summary for row in run.order.tolist() if (summary := run.pool.recalled[row].compacted_into) is not None
        }
        if not into:
            return
        missing = [each for each in dict.fromkeys(into.values()) if run.pool.find(each) is None]
        run.add_candidates([Recalled(each, None, None) for each in missing])
        best: dict[int, float] = {}
        for row, summary_id in into.items():
            summary = run.pool.find(summary_id)
            assert summary is not None
            best[summary] = max(best.get(summary, float(run.score[summary])), float(run.score[row]))
            if run.profile.include_consolidated_sources:
                run.notes.setdefault(summary, {}).setdefault("consolidated_sources", []).append(run.pool.ids[row])
        rows = np.array(list(best), np.int64)
        run.move(self.name, "consolidation_boost", np.array(list(best.values())), "score of its best source", rows)
        in_play = dict.fromkeys([*run.order.tolist(), *best])
        kept = run.rank(np.array([row for row in in_play if row not in into], np.int64))
        run.keep(kept, self.name, lambda row: (f"consolidated into {into[row]}", {"consolidated_into": into[row]}))
