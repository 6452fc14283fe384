"""How the use of a memory moves its score: one factor an axis, each 1 when there is nothing to say."""

import math

from hsca_fast._reference.decay import clamp

LTP_COEFFICIENT = 0.3
DAY = 86_400.0


def age_factor(age: float, half_life_days: float, floor: float = 0.0) -> float:
    """max(floor, 2^(−age / half-life)); 1 for a half-life of 0 and for dates in the future."""
    if half_life_days == 0:
        return 1.0
    return max(floor, math.exp2(-max(age, 0.0) / (half_life_days * DAY)))


def use_factor(count: float, coefficient: float, max_boost: float) -> float:
    """clamp(1 + c·ln(1 + n), 1, max): long-term potentiation of a count of retrievals, association of shared ones."""
    return clamp(1.0 + coefficient * math.log(1.0 + count), 1.0, max_boost)


def novelty_factor(age: float, window_hours: float, max_boost: float) -> float:
    """From max at age 0 down a line to 1 at the end of the window."""
    left = 1.0 - max(age, 0.0) / (window_hours * 3600.0)
    return 1.0 + (max_boost - 1.0) * max(left, 0.0)


def rescaled_ltp(ltp: float, max_boost: float, days_since_access: float = 0.0, decay: float = 0.0) -> float:
    """(ltp − 1) / (max − 1) · e^(−λ·days), in [0, 1]; 0 where the boost has no range."""
    if max_boost == 1.0:
        return 0.0
    return (ltp - 1.0) / (max_boost - 1.0) * math.exp(-decay * max(days_since_access, 0.0))
