"""The scores as features of a scikit-learn pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native.inputs import Texts
from hsca_fast.config import ScoringConfig
from hsca_fast.text.scoring import ScoreBatch, score_texts
from hsca_fast.types import DomainTag, NuanceFlag

try:
    from sklearn.base import BaseEstimator, TransformerMixin
except ImportError as error:
    raise ImportError("hsca_fast.adapters.sklearn needs scikit-learn: pip install 'hsca_fast[sklearn]'") from error

_NUMBERS = ("layer1_score", "coherence_score", "sentiment_score", "n_sentences", "n_words", "short_chunk")
_TAGS = tuple(f"domain_{tag.value}" for tag in DomainTag)
_FLAGS = tuple(f"nuance_{flag.value}" for flag in NuanceFlag)


class HSCAScorer(TransformerMixin, BaseEstimator):
    """Texts to features: scores, counts, and one column of 0 or 1 for each domain and each nuance flag.

    There is nothing to fit. A flag that was not assessed (`ScoreBatch.assessed`) is 0 in every row.

    Parameters
    ----------
    config
        Options of the scorer; None is `ScoringConfig()`.
    threads
        Worker threads; 0 takes every usable CPU.

    Examples
    --------
    >>> features = HSCAScorer().fit_transform(["You might wait. Perhaps it rains. Rain might stop.", "Rain."])
    >>> features.shape, features[0, list(HSCAScorer().get_feature_names_out()).index("nuance_hedged")]
    ((2, 34), np.float64(1.0))
    """

    def __init__(self, config: ScoringConfig | None = None, *, threads: int = 1) -> None:
        self.config = config
        self.threads = threads

    def fit(self, X: Texts, y: object = None) -> HSCAScorer:  # noqa: N803 (scikit-learn's name)
        """Nothing to learn."""
        return self

    def transform(self, X: Texts) -> npt.NDArray[np.float64]:  # noqa: N803
        """One row a text; X is whatever `score_texts` takes."""
        batch = score_texts(X, config=self.config, threads=self.threads)
        numbers = [getattr(batch, name) for name in _NUMBERS]
        return np.column_stack([*numbers, *_bits(batch)]).astype(np.float64)

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """The names of the columns."""
        return np.array([*_NUMBERS, *_TAGS, *_FLAGS], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def _bits(batch: ScoreBatch) -> list[npt.NDArray[np.integer[Any]]]:
    return [batch.domain_bits >> i & 1 for i in range(len(_TAGS))] + [
        batch.nuance_bits >> i & 1 for i in range(len(_FLAGS))
    ]
