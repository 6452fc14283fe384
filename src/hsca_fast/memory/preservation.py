"""How much of its sources a summary keeps, measured in the space that retrieval searches (section 5 of the document)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

PRESERVATION_THRESHOLD = 0.65
CONFIDENCE_WEIGHT = 0.8


@dataclass(frozen=True, slots=True)
class Preservation:
    """Alignment with the centre of the sources, cover of the single sources, and the confidence that follows.

    Attributes
    ----------
    align
        Cosine of the summary with the mean of its sources, in [-1, 1].
    cover
        Mean over the sources of the cosine with the summary, negative ones counted as 0; in [0, 1].
    confidence
        (align + cover) / 2, clamped to [0, 1].
    """

    align: float
    cover: float

    @property
    def confidence(self) -> float:
        return min(1.0, max(0.0, (self.align + self.cover) / 2))

    def passes(self, threshold: float = PRESERVATION_THRESHOLD) -> bool:
        """The gate of section 5.3: an abstractive summary is accepted when align >= threshold."""
        return self.align >= _unit("threshold", threshold, low=-1.0)


def preservation(summary_vector: npt.ArrayLike, source_vectors: npt.ArrayLike) -> Preservation:
    """Compare a summary's embedding with those of its sources.

    A zero vector has cosine 0 with everything; no sources give 0 for both terms. Sums run in float64 in one fixed order.

    Parameters
    ----------
    summary_vector
        [d] numbers.
    source_vectors
        [n, d] numbers, one row a source.

    Raises
    ------
    ValueError
        Shapes differ, or a value is not finite (the row is named).

    Examples
    --------
    >>> kept = preservation([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> round(kept.align, 4), kept.cover, kept.passes()
    (0.7071, 0.5, True)
    """
    summary = _finite("summary_vector", summary_vector, 1)
    sources = _finite("source_vectors", source_vectors, 2)
    if not len(sources):
        return Preservation(0.0, 0.0)
    if sources.shape[1] != len(summary):
        raise ValueError(f"source_vectors have {sources.shape[1]} dims but summary_vector has {len(summary)}")
    align = float(cosines(sources.mean(axis=0)[None], summary)[0])
    cover = float(np.maximum(cosines(sources, summary), 0.0).mean())
    return Preservation(align, min(1.0, cover))


def summary_confidence(
    preservation: Preservation, *, decoder_confidence: float | None = None, weight: float = CONFIDENCE_WEIGHT
) -> float:
    """The confidence stored with a summary, in [0, 1].

    An extractive summary has the confidence of its preservation; one that a decoder wrote has
    weight * preservation + (1 - weight) * decoder_confidence.

    Parameters
    ----------
    decoder_confidence
        Geometric mean probability of the decoder's tokens, clamped to [0, 1]; None for an extractive summary.

    Examples
    --------
    >>> summary_confidence(Preservation(0.9183, 0.8342), decoder_confidence=0.8501)  # doctest: +ELLIPSIS
    0.87102...
    """
    weight = _unit("weight", weight)
    if decoder_confidence is None:
        return preservation.confidence
    if not math.isfinite(decoder_confidence):
        raise ValueError(f"decoder_confidence must be finite, not {decoder_confidence}")
    decoder = min(1.0, max(0.0, decoder_confidence))
    return min(1.0, weight * preservation.confidence + (1.0 - weight) * decoder)


def decay_rate(confidence: float) -> float:
    """1 - confidence: what lowers a summary's retrieval score (the multiplier of `hybrid_scores`).

    Examples
    --------
    >>> decay_rate(0.75)
    0.25
    """
    return 1.0 - _unit("confidence", confidence)


def cosines(rows: npt.NDArray[np.float64], vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Cosine of every row with `vector`, 0 where a norm is 0."""
    # Scaled first, so that squares neither overflow nor vanish; products then summed by numpy's own fixed order, not by
    # BLAS, whose order changes with the machine.
    rows = _scaled(rows)
    vector = _scaled(vector)
    dots = (rows * vector).sum(axis=1)
    norms = np.sqrt((rows * rows).sum(axis=1)) * math.sqrt(float((vector * vector).sum()))
    found: npt.NDArray[np.float64] = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
    return found.clip(-1.0, 1.0)


def _scaled(array: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    largest = np.abs(array).max(axis=-1, keepdims=True, initial=0.0)
    # A power of two changes no mantissa.
    scaled: npt.NDArray[np.float64] = np.ldexp(array, -np.frexp(largest)[1])
    return scaled


def _finite(name: str, values: npt.ArrayLike, ndim: int) -> npt.NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    if ndim == 2 and array.size == 0:
        return array.reshape(0, 0)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' * (ndim > 1)}, not {array.ndim}")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"{name}{bad[0].tolist()} is {array[tuple(bad[0])]}")
    return array


def _unit(name: str, value: float, *, low: float = 0.0) -> float:
    if not low <= value <= 1.0:
        raise ValueError(f"{name} must be between {low:g} and 1, not {value}")
    return value
