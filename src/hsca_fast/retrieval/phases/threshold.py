"""What is not relevant is left out, on scores as they are."""

from __future__ import annotations

import numpy as np

from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.run import Run


class Threshold(Phase):
    """Scores below `min_score` and cosines below `min_similarity` go."""

    name = "threshold"

    def wanted(self, profile: RetrievalProfile) -> bool:
        return profile.min_score is not None or profile.min_similarity is not None

    def apply(self, run: Run) -> None:
        rows = run.order
        before = run.described(rows[:1].tolist())
        if (least := run.profile.min_score) is not None:
            low = run.profile.min_score
            kept = rows[run.score[rows] >= least]
            run.keep(kept, self.name, lambda row: (f"score {run.score[row]} < {low}", {}))
            if before and not len(kept):
                run.warnings.append(f"nothing found: the best score, {before[0]['score']}, is below {low}")
        if (nearest := run.profile.min_similarity) is not None and len(run.order):
            cosine = np.array([each.cosine or 0.0 for each in run.pool.recalled])
            best = float(cosine[run.order].max())
            run.keep(
                run.order[cosine[run.order] >= nearest],
                self.name,
                lambda row: (f"similarity {cosine[row]} < {nearest}", {}),
            )
            if not len(run.order):
                run.warnings.append(f"nothing found: the best similarity, {best}, is below {nearest}")
        run.fire("post_threshold", lambda: {"candidates": run.described(run.order.tolist())})
