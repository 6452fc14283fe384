"""What repeats a better candidate is left out: by its text, by its letters, by its meaning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hsca_fast.ranking.near_copies import near_copies
from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.run import Run
from hsca_fast.vectors.dedup import deduplicate


class ExactDuplicates(Phase):
    """Of equal texts, blanks around them apart, the first stays."""

    name = "exact_dedup"

    def wanted(self, profile: RetrievalProfile) -> bool:
        return profile.exact_dedup_enabled

    def apply(self, run: Run) -> None:
        rows, records = run.order.tolist(), run.pool.records
        texts = [records[row].text.strip() for row in rows]
        first = dict(zip(reversed(texts), reversed(rows), strict=True))
        of = {}
        if len(first) < len(rows):
            of = {row: first[text] for row, text in zip(rows, texts, strict=True) if first[text] != row}
        _drop_copies(run, self.name, of, lambda row: f"same text as {run.pool.ids[of[row]]}")


class NgramDuplicates(Phase):
    """Of texts that share most of their letters' n-grams the first stays."""

    name = "ngram_dedup"

    def wanted(self, profile: RetrievalProfile) -> bool:
        return profile.ngram_dedup_enabled

    def apply(self, run: Run) -> None:
        rows = run.order.tolist()
        profile = run.profile
        texts = [run.pool.records[row].text for row in rows]
        copies = near_copies(texts, size=profile.ngram_dedup_size, threshold=profile.ngram_dedup_threshold)
        of = {rows[copy]: rows[first] for copy, (first, _) in copies.items()}
        share = {rows[copy]: share for copy, (_, share) in copies.items()}
        _drop_copies(
            run,
            self.name,
            of,
            lambda row: f"{profile.ngram_dedup_size}-grams like {run.pool.ids[of[row]]}: {share[row]:.4f}",
        )


class SemanticDuplicates(Phase):
    """Of candidates connected by high cosines the best stays."""

    name = "semantic_dedup"

    def wanted(self, profile: RetrievalProfile) -> bool:
        return profile.semantic_dedup_enabled

    def apply(self, run: Run) -> None:
        # A little below the threshold, since `deduplicate` makes its own unit vectors.
        near, _, _ = run.near_pairs(run.order, run.profile.semantic_dedup_threshold - 1e-3)
        of: dict[int, int] = {}
        if len(near):
            rows = run.order[np.unique(near)]
            vectors, scores = run.unit_vectors()[rows], run.score[rows]
            found = deduplicate(vectors, scores, threshold=run.profile.semantic_dedup_threshold)
            heads = rows[found.keep]
            of = {
                int(row): int(heads[label])
                for row, label in zip(rows, found.labels, strict=True)
                if row != heads[label]
            }
        _drop_copies(run, self.name, of, lambda row: f"in the cluster of {run.pool.ids[of[row]]}")


def _drop_copies(run: Run, phase: str, of: dict[int, int], why: Callable[[int], str]) -> None:
    kept = run.order if not of else np.array([row for row in run.order.tolist() if row not in of], np.int64)
    run.keep(kept, phase, lambda row: (why(row), {"duplicate_of": run.pool.ids[of[row]]}))
    run.fire(
        "post_dedup",
        lambda: {"phase": phase, "duplicates": {run.pool.ids[row]: run.pool.ids[head] for row, head in of.items()}},
    )
