"""One relevance of two kinds of evidence: meaning and words."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from hsca_fast.ranking.columns import float_columns, number, refuse_if_not_finite


def blended_relevance(
    cosine: npt.ArrayLike, lexical: npt.ArrayLike, *, weight: float = 0.5, saturation: float = 10.0
) -> npt.NDArray[np.float64]:
    """w·max(cos, 0) + (1 - w)·b / (b + c), in [0, 1]: it depends on nothing but the document and the query.

    Parameters
    ----------
    cosine
        With the query; held to [0, 1].
    lexical
        BM25 scores b; 0 for a document that the words did not find, negative ones count as 0.
    weight
        w of the cosine, in [0, 1].
    saturation
        c, above 0: the BM25 score that counts one half.

    Examples
    --------
    >>> blended_relevance([0.8, 0.8, -0.1], [0.0, 10.0, 30.0]).round(3).tolist()
    [0.4, 0.65, 0.375]
    """
    weight = number("weight", weight, 0.0, 1.0)
    saturation = number("saturation", saturation, 0.0, math.inf, open_ends=True)
    near, words = float_columns(cosine=cosine, lexical=lexical)
    refuse_if_not_finite(cosine=near, lexical=words)
    near = np.clip(near.astype(np.float64), 0.0, 1.0)
    words = np.maximum(words.astype(np.float64), 0.0)
    relevance: npt.NDArray[np.float64] = weight * near + (1.0 - weight) * (words / (words + saturation))
    return relevance


def dealt_relevance(relevance: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The same numbers, the highest first: what candidates get when they are given in a better order than that of their relevance.

    The order is that of whoever gave them, the scale stays that of the relevance, so scores of two searches can be compared.

    Examples
    --------
    >>> dealt_relevance([0.4, 0.7, 0.1]).tolist()
    [0.7, 0.4, 0.1]
    """
    (values,) = float_columns(relevance=relevance)
    refuse_if_not_finite(relevance=values)
    dealt: npt.NDArray[np.float64] = np.sort(values.astype(np.float64))[::-1]
    return dealt
