"""Phase 8: what a later record corrects is marked, or left out where the profile says so."""

from __future__ import annotations

import numpy as np

from hsca_fast.ranking.activity import DAY
from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.run import Run

_LEVELS = ("explicit", "high", "medium", "low")


class Supersede(Phase):
    """Marks of the store are always shown. With `supersede_filter_enabled` candidates that say nearly the same are told apart by
    their dates, too, and `supersede_action` "filter" leaves the older out."""

    name = "supersede"

    def apply(self, run: Run) -> None:
        found = {
            row: (_LEVELS[0], 1.0, newer, f"superseded by {newer}")
            for row in run.order.tolist()
            if (newer := run.pool.recalled[row].superseded_by) is not None
        }
        if run.profile.supersede_filter_enabled:
            for row, how in self._by_likeness(run).items():
                found.setdefault(row, how)
        for row, (confidence, similarity, newer, _) in found.items():
            run.notes.setdefault(row, {})["superseded"] = {
                "by": newer, "confidence": confidence, "similarity": similarity,
            }  # fmt: skip
        if run.profile.supersede_filter_enabled and run.profile.supersede_action == "filter":
            kept = np.array([row for row in run.order.tolist() if row not in found], np.int64)
            run.keep(kept, self.name, lambda row: (found[row][3], {"superseded_by": found[row][2]}))
        run.fire(
            "post_supersede",
            lambda: {
                "superseded": [
                    {"drawer_id": run.pool.ids[row], "by": how[2], "confidence": how[0], "similarity": how[1]}
                    for row, how in found.items()
                ]
            },
        )

    def _by_likeness(self, run: Run) -> dict[int, tuple[str, float, str, str]]:
        """The older of each pair that is near in meaning and far enough apart in time."""
        profile = run.profile
        rows = run.order
        if len(rows) < 2:
            return {}
        ids, timestamps = run.pool.ids, run.pool.timestamps()[rows]
        older, newer, cosine = run.near_pairs(rows, profile.supersede_similarity_threshold)
        gap = (timestamps[newer] - timestamps[older]) // DAY  # whole days
        apart = (timestamps[older] < timestamps[newer]) & (gap >= profile.supersede_min_age_gap_days)
        older, newer, gap, cosine = older[apart], newer[apart], gap[apart], cosine[apart]
        if not len(older):
            return {}
        level = np.where((cosine >= 0.93) & (gap >= 30), 1, np.where((cosine >= 0.86) & (gap >= 14), 2, 3))
        place = np.argsort(np.argsort([ids[row] for row in rows.tolist()]))  # in the order of ids
        best = np.lexsort((rows[older], place[newer], -cosine, level))
        found: dict[int, tuple[str, float, str, str]] = {}
        for pair in best.tolist():
            if len(found) == profile.supersede_max_candidates:
                break
            newer_id, near = ids[rows[newer[pair]]], float(cosine[pair])
            reason = f"similarity to {newer_id} = {near:.4f}, which is {gap[pair]:.0f} days newer"
            found.setdefault(int(rows[older[pair]]), (_LEVELS[level[pair]], near, newer_id, reason))
        return found
