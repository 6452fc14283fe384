"""Maximal marginal relevance: the best results that do not repeat each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hsca_fast._native import vectors as _native
from hsca_fast.vectors.arrays import Int64, as_count, as_number, as_rows, as_values


def mmr(
    relevance: npt.ArrayLike,
    embeddings: npt.ArrayLike,
    k: int,
    *,
    lambda_: float = 0.7,
    groups: Sequence[object] | npt.NDArray[np.generic] | None = None,
    group_weight: float = 0.0,
) -> Int64:
    """Row numbers of `k` picks, in order; each maximises

    ``lambda_ · relevance - (1 - lambda_) · max cosine to the picks - group_weight · share of the picks in its group``

    where the last two terms are 0 for the first pick. Exact; ties go to the lowest row. Only candidates that may be
    next are compared again, so most cosines are never computed.

    Parameters
    ----------
    relevance
        One finite number a row.
    embeddings
        Matrix of vectors, of any length; a row of zeros has cosine 0 with everything.
    k
        How many to pick; all rows if there are fewer.
    lambda_
        1 ranks by relevance alone, 0 by novelty alone.
    groups
        Anything hashable for each row; rows of equal value are a group.
    group_weight
        Non-negative; 0 is plain MMR to the last bit.

    Examples
    --------
    >>> vectors = [[1.0, 0.0], [0.99, 0.1], [0.0, 1.0]]
    >>> mmr([0.9, 0.85, 0.5], vectors, 2).tolist()
    [0, 2]
    """
    rows = as_rows(embeddings, "embeddings", ndim=(2,))
    values = as_values(relevance, "relevance", len(rows))
    k = min(as_count(k, "k"), len(rows))
    lambda_ = as_number(lambda_, "lambda_", low=0.0, high=1.0)
    group_weight = as_number(group_weight, "group_weight", low=0.0, high=1e6)
    if groups is None and group_weight > 0.0:
        raise ValueError(f"group_weight is {group_weight}, but there are no groups")
    codes, n_groups = None, 1
    if groups is not None:
        if len(groups) != len(rows):
            raise ValueError(f"groups has {len(groups)} elements; embeddings has {len(rows)} rows")
        if group_weight > 0.0:
            numbers: dict[object, int] = {}
            labels = groups.tolist() if isinstance(groups, np.ndarray) else groups
            codes = np.array([numbers.setdefault(label, len(numbers)) for label in labels], np.uint32)
            n_groups = max(1, len(numbers))
    return _native.mmr(rows, values, codes, n_groups, k, lambda_, group_weight)
