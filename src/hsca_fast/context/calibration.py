"""The snapshot threshold, fitted to conversations whose beats a person has marked (HSCA 8.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hsca_fast.config import ScoringConfig
from hsca_fast.context.boundaries import pk
from hsca_fast.fields import at_least_one
from hsca_fast.text.scoring import score_texts

THRESHOLDS = tuple(round(0.30 + 0.02 * i, 2) for i in range(36))
BUFFER_SIZES = (2, 3, 4, 5, 6, 8, 10, 14, 20, 40, 80, 120, 200)


@dataclass(frozen=True, slots=True)
class SnapshotPreset:
    """Parameters of `HSCAEngine` for one kind of conversation.

    Examples
    --------
    >>> SNAPSHOT_PRESETS["spec"].snapshot_coherence_threshold
    0.72
    """

    snapshot_coherence_threshold: float
    max_buffer_chunks: int


@dataclass(frozen=True, slots=True)
class ThresholdCalibration:
    """The parameters with the lowest mean Pk, and what every threshold gave with that buffer."""

    preset: SnapshotPreset
    pk: float
    pk_by_threshold: dict[float, float]


def split_by_coherence(
    coherence: npt.NDArray[np.float64],
    layer1: npt.NDArray[np.float64],
    *,
    threshold: float,
    max_buffer_chunks: int,
) -> list[int]:
    """Where `HSCAEngine` would open a new snapshot, given the scores of a conversation's turns.

    Examples
    --------
    >>> split_by_coherence(np.array([0.6, 0.9, 0.8, 0.5]), np.ones(4), threshold=0.72, max_buffer_chunks=20)
    [2, 3]
    """
    opens: list[int] = []
    weight = weighted = 0.0
    size = 0
    pairs = zip(coherence.tolist(), layer1.tolist(), strict=True)
    for i, (score, share) in enumerate(pairs):
        weight += share
        weighted += score * share
        size += 1
        if size >= max_buffer_chunks or (weight > 0 and weighted / weight >= threshold):
            opens.append(i + 1)
            weight = weighted = 0.0
            size = 0
    return opens[:-1] if opens and opens[-1] == len(coherence) else opens


def calibrate_snapshot_threshold(
    conversations_with_boundaries: Sequence[tuple[Sequence[str], Sequence[int]]],
    *,
    config: ScoringConfig | None = None,
    max_buffer_chunks: int | None = None,
) -> ThresholdCalibration:
    """Find the threshold whose snapshots agree best with marked beats.

    Parameters
    ----------
    conversations_with_boundaries
        Turns, and the numbers of the turns that open a new beat (1 to n - 1).
    config
        How turns are scored.
    max_buffer_chunks
        Fixed, or None to fit it as well; real talk often stays below any threshold, and then it is what decides.

    Examples
    --------
    >>> talk = ["Good. Yes.", "The lamp lit the harbour. Boats came into the harbour. Each boat had a lamp."] * 4
    >>> found = calibrate_snapshot_threshold([(talk, [2, 4, 6])])
    >>> found.pk
    0.0
    """
    if not conversations_with_boundaries:
        raise ValueError("conversations_with_boundaries is empty")
    scored = []
    for i, (turns, truth) in enumerate(conversations_with_boundaries):
        for boundary in truth:
            if isinstance(boundary, bool) or not isinstance(boundary, (int, np.integer)):
                raise TypeError(
                    f"conversations_with_boundaries[{i}] has the boundary {boundary!r}, which must be an int, "
                    f"not {type(boundary).__name__}"
                )
            if not 0 < boundary < len(turns):
                raise ValueError(
                    f"conversations_with_boundaries[{i}] has boundary {boundary}, outside of 1 to {len(turns) - 1}"
                )
        batch = score_texts(turns, config=config)
        scored.append((batch.coherence_score, batch.layer1_score, truth))
    buffers = BUFFER_SIZES if max_buffer_chunks is None else (at_least_one(max_buffer_chunks, "max_buffer_chunks"),)

    def mean_pk(threshold: float, buffer: int) -> float:
        return float(
            np.mean(
                [
                    pk(truth, split_by_coherence(c, w, threshold=threshold, max_buffer_chunks=buffer), len(c))
                    for c, w, truth in scored
                ]
            )
        )

    # Ties go to the threshold nearest to the specification's.
    cells = {(t, b): mean_pk(t, b) for b in buffers for t in THRESHOLDS}
    threshold, buffer = min(cells, key=lambda cell: (cells[cell], abs(cell[0] - 0.72), cell[1]))
    by_threshold = {t: cells[t, buffer] for t in THRESHOLDS}
    return ThresholdCalibration(SnapshotPreset(threshold, buffer), cells[threshold, buffer], by_threshold)


# "spec" is the specification's guess. The others were calibrated by `hsca eval boundaries` on the dev halves (docs/evals.md).
SNAPSHOT_PRESETS = {
    "spec": SnapshotPreset(0.72, 20),
    "chat": SnapshotPreset(0.4, 5),
    "turns": SnapshotPreset(0.3, 20),  # nearly every turn of prose is a snapshot: for following topics
}
