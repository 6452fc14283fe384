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
        cosines = run.cosines(rows, rows)
        timestamps = run.pool.timestamps()[rows]
        days = np.floor(np.abs(timestamps[:, None] - timestamps) / DAY)
        near = (cosines >= profile.supersede_similarity_threshold) & (days >= profile.supersede_min_age_gap_days)
        older, newer = np.nonzero(near & (timestamps[:, None] < timestamps))
        pairs = []
        for i, j in zip(older.tolist(), newer.tolist(), strict=True):
            cosine, gap = float(cosines[i, j]), float(days[i, j])
            level = 1 if cosine >= 0.93 and gap >= 30 else 2 if cosine >= 0.86 and gap >= 14 else 3
            pairs.append((level, -cosine, run.pool.ids[rows[j]], int(rows[i]), gap))
        found: dict[int, tuple[str, float, str, str]] = {}
        for level, negative, newer_id, row, gap in sorted(pairs):
            if row not in found and len(found) < profile.supersede_max_candidates:
                reason = f"similarity to {newer_id} = {-negative:.4f}, which is {gap:.0f} days newer"
                found[row] = _LEVELS[level], -negative, newer_id, reason
        return found
