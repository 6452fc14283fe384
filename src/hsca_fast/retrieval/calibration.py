"""Scores that mean something by themselves: the chance that a result is relevant."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hsca_fast.ranking import recency
from hsca_fast.ranking.columns import float_columns, number, refuse_if_not_finite

_STEPS = 100


@dataclass(frozen=True, slots=True)
class ScoreCalibration:
    """1 / (1 + e^(-steepness·(score - midpoint))): raw scores in, shares of relevant results out.

    Fused ranks have no scale of their own: the best result of a hopeless search scores like that of a good one. A
    calibration is fitted once, to scores of a system and to what people judged of them, and from then on a threshold
    of 0.3 means three relevant results out of ten.

    Parameters
    ----------
    midpoint
        The score at which half of the results are relevant.
    steepness
        Above 0.

    Examples
    --------
    >>> ScoreCalibration(0.5, 10.0)([0.2, 0.5, 0.9]).round(3).tolist()
    [0.047, 0.5, 0.982]
    """

    midpoint: float
    steepness: float

    def __post_init__(self) -> None:
        number("midpoint", self.midpoint, -math.inf)
        number("steepness", self.steepness, 0.0, math.inf, open_ends=True)

    def __call__(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Calibrated scores, between 0 and 1; the order stays."""
        (raw,) = float_columns(scores=scores)
        refuse_if_not_finite(scores=raw)
        return _logistic(self.steepness * (np.asarray(raw, np.float64) - self.midpoint))

    @classmethod
    def fit(cls, scores: npt.ArrayLike, relevant: npt.ArrayLike) -> ScoreCalibration:
        """The calibration under which the judgements are likeliest (Platt scaling with his softened targets).

        Parameters
        ----------
        scores
            Raw scores of results, of several searches together.
        relevant
            For each whether it was relevant; there must be both kinds, and the relevant ones must score higher on average.

        Examples
        --------
        >>> fitted = ScoreCalibration.fit([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
        >>> round(fitted.midpoint, 2)
        0.5
        """
        raw, judged = float_columns(scores=scores, relevant=relevant)
        refuse_if_not_finite(scores=raw)
        raw, good = raw.astype(np.float64), judged != 0
        n_good, n_bad = int(good.sum()), int((~good).sum())
        if not n_good or not n_bad:
            raise ValueError(f"relevant must hold both kinds, not {n_good} relevant and {n_bad} others")
        spread = float(raw.std())
        if spread == 0.0:
            raise ValueError("scores are all the same: nothing can be told from them")
        x = (raw - raw.mean()) / spread
        target = np.where(good, (n_good + 1.0) / (n_good + 2.0), 1.0 / (n_bad + 2.0))
        slope, offset = 0.0, 0.0
        for _ in range(_STEPS):
            share = _logistic(slope * x + offset)
            weight = share * (1.0 - share) + 1e-12
            gradient = np.array([((target - share) * x).sum(), (target - share).sum()])
            curvature = np.array([[(weight * x * x).sum(), (weight * x).sum()], [(weight * x).sum(), weight.sum()]])
            step = np.linalg.solve(curvature, gradient)
            slope, offset = slope + float(step[0]), offset + float(step[1])
            if np.abs(step).max() < 1e-10:
                break
        if slope <= 0.0:
            raise ValueError(
                "relevant results do not score higher than others; a calibration would turn the order round"
            )
        return cls(float(raw.mean()) - offset / slope * spread, slope / spread)


def _logistic(z: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    tail = recency(np.abs(z), 1.0)
    share: npt.NDArray[np.float64] = np.where(z >= 0.0, 1.0, tail) / (1.0 + tail)
    return share
