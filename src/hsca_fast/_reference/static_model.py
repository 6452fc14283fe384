"""A text's vector as the weighted mean of its tokens' vectors."""

import math
from collections.abc import Sequence


def static_vector(
    tokens: Sequence[int], rows: Sequence[Sequence[int]], scales: Sequence[float], dim: int
) -> list[float]:
    """v = sum_t s_t q_t over the first `dim` dimensions, divided by its length; zero stays zero.

    The weighted mean is v over the sum of weights, which the division by the length makes irrelevant.
    """
    v = [sum(scales[t] * rows[t][i] for t in tokens) for i in range(dim)]
    length = math.sqrt(sum(x * x for x in v))
    return [x / length for x in v] if length > 0.0 else v
