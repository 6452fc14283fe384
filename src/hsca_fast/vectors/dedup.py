"""Near-duplicates: clusters of vectors that are connected by high cosines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hsca_fast._native import vectors as _native
from hsca_fast._native.inputs import thread_count
from hsca_fast.vectors.arrays import MAX_WIDTH, Int64, as_count, as_number, as_rows, as_values


@dataclass(frozen=True, slots=True, eq=False)
class Dedup:
    """What is left, and what belonged together.

    Attributes
    ----------
    keep
        Row numbers of the representatives, best score first (ties: lowest row).
    labels
        For each row the position in `keep` of the row that stands for it.
    clusters_merged
        Clusters with more than one member.
    removed
        Rows that are not kept.
    """

    keep: Int64
    labels: Int64
    clusters_merged: int
    removed: int


def deduplicate(
    embeddings: npt.ArrayLike, scores: npt.ArrayLike, *, threshold: float = 0.85, threads: int = 1
) -> Dedup:
    """One row for each connected component of the graph that joins rows with cosine ≥ `threshold`.

    Exact: every pair is compared or proven to be below the threshold. The best score represents a component, ties go to
    the lowest row. Memory is that of the vectors and a quarter more. Cosines are float32: they count from threshold -
    1e-6 on. A row of zeros is like no other.

    Examples
    --------
    >>> result = deduplicate([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]], [0.5, 0.6, 0.7])
    >>> result.keep.tolist(), result.labels.tolist(), result.removed
    ([2, 1], [0, 1, 0], 1)
    """
    rows = as_rows(embeddings, "embeddings", ndim=(2,))
    as_count(rows.shape[1], "the width of embeddings", most=MAX_WIDTH)
    values = as_values(scores, "scores", len(rows))
    threshold = as_number(threshold, "threshold", low=1e-3, high=1.0)
    component = _native.connected_components(rows, threshold, thread_count(threads))
    best_first = np.lexsort((np.arange(len(rows)), -values))
    _, first, inverse, counts = np.unique(
        component[best_first], return_index=True, return_inverse=True, return_counts=True
    )
    # Components in the order of their best rows.
    order = np.argsort(first)
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    labels = np.empty(len(rows), np.int64)
    labels[best_first] = position[inverse]
    return Dedup(best_first[first[order]], labels, int((counts > 1).sum()), len(rows) - len(first))
