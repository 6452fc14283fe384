"""The gating scalar: is a user's turn worth keeping?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import ranking as _native
from hsca_fast._native.inputs import Texts, string_columns, thread_count
from hsca_fast.ranking.columns import count, number, triple


@dataclass(frozen=True, slots=True)
class GatingConfig:
    """Thresholds and weights of the gate.

    Parameters
    ----------
    threshold
        A turn is promoted when its score is at least this; in [0, 1].
    conversational_weights
        Of novelty, repetition and detail; each in [0, 1], and together 1.
    technical_weights
        Of specificity, actionability and structure; likewise.
    technical_norm
        Sum of technical pattern weights that counts as wholly technical; above 0.
    repeat_threshold, repeat_cap
        A turn score from here on is a repetition; so many of them are all that count.
    saturation_threshold, saturation_cap
        A memory score from here on says it is known; so many of them mean it is known for good.

    Examples
    --------
    >>> GatingConfig(threshold=0.5).threshold
    0.5
    """

    threshold: float = 0.35
    conversational_weights: tuple[float, float, float] = (0.35, 0.40, 0.25)
    technical_weights: tuple[float, float, float] = (0.40, 0.35, 0.25)
    technical_norm: float = 1.5
    repeat_threshold: float = 0.80
    repeat_cap: int = 5
    saturation_threshold: float = 0.85
    saturation_cap: int = 3

    def __post_init__(self) -> None:
        for name in ("threshold", "repeat_threshold", "saturation_threshold"):
            number(name, getattr(self, name), 0.0, 1.0)
        number("technical_norm", self.technical_norm, 0.0)
        if self.technical_norm == 0:
            raise ValueError("technical_norm must be above 0, not 0")
        for name in ("repeat_cap", "saturation_cap"):
            count(name, getattr(self, name))
        for name in ("conversational_weights", "technical_weights"):
            weights = triple(name, getattr(self, name), 0.0, 1.0)
            if abs(sum(weights) - 1.0) > 1e-9:
                raise ValueError(f"{name} must add up to 1, not {sum(weights)!r}")


_SIGNALS = (
    "score", "technical", "conversational_score", "technical_score", "novelty", "repetition", "frequency", "saturation",
    "detail", "specificity", "actionability", "structure",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Gating:
    """The gate's answer, one element a text, each signal in [0, 1].

    Attributes
    ----------
    score, promote
        G, and whether it reaches the threshold.
    technical, conversational_score, technical_score
        T, and the two scores that it blends: G = (1 - T)·Gconv + T·Gtech.
    novelty, repetition, detail
        H, R and Dnl; R = `frequency`·(1 - `saturation`).
    specificity, actionability, structure
        P, A and Dtech.
    """

    score: npt.NDArray[np.float64]
    promote: npt.NDArray[np.bool_]
    technical: npt.NDArray[np.float64]
    conversational_score: npt.NDArray[np.float64]
    technical_score: npt.NDArray[np.float64]
    novelty: npt.NDArray[np.float64]
    repetition: npt.NDArray[np.float64]
    frequency: npt.NDArray[np.float64]
    saturation: npt.NDArray[np.float64]
    detail: npt.NDArray[np.float64]
    specificity: npt.NDArray[np.float64]
    actionability: npt.NDArray[np.float64]
    structure: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.score)


def gating_scalar(
    texts: Texts | str,
    *,
    memory_scores: Sequence[Any] | None = None,
    turn_scores: Sequence[Any] | None = None,
    config: GatingConfig | None = None,
    strict: bool = False,
    threads: int = 1,
) -> Gating:
    """G of each turn: a blend of a conversational and a technical score by how technical the text is.

    Parameters
    ----------
    texts
        A str, or a sequence, numpy array or Arrow column of them. A null row is empty text.
    memory_scores, turn_scores
        For each text the similarities of its nearest durable memories and of its nearest earlier turns, any number of
        each; for a single str one sequence. None: there are none (cold start). Clamped to [0, 1].
    config
        Thresholds and weights; the default is `GatingConfig()`.
    strict
        Leave out what the recorded patterns take for technical in plain prose: "and/or" as a path, "easy" as an error
        code, "we go to" as a command, "the main idea" as a branch (docs/ranking.md).
    threads
        Worker threads; 0 takes every usable CPU.

    Examples
    --------
    >>> gate = gating_scalar(["I prefer tea.", "fixed src/a.ts at commit 8a11632"])
    >>> gate.score.round(4).tolist(), gate.promote.tolist()
    ([0.45, 0.4767], [True, True])
    """
    config = GatingConfig() if config is None else config
    if not isinstance(config, GatingConfig):
        raise TypeError(f"config must be a GatingConfig, not {type(config).__name__}")
    n_threads = thread_count(threads)
    if isinstance(texts, str):
        return gating_scalar(
            [texts],
            memory_scores=None if memory_scores is None else [memory_scores],
            turn_scores=None if turn_scores is None else [turn_scores],
            config=config,
            strict=strict,
        )
    n, columns = string_columns(texts)
    memory = _hits("memory_scores", memory_scores, n)
    turns = _hits("turn_scores", turn_scores, n)
    signals = np.empty((n, len(_SIGNALS)))
    terms = asdict(config) | {"strict": bool(strict)}
    for start, column in columns:
        rows = slice(start, start + len(column))
        _native.gating_signals(column, *_part(*memory, rows), *_part(*turns, rows), terms, n_threads, signals[rows])
    by_name = dict(zip(_SIGNALS, np.ascontiguousarray(signals.T), strict=True))
    return Gating(promote=by_name["score"] >= config.threshold, **by_name)


def _hits(name: str, scores: Sequence[Any] | None, n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """All scores in one array, and where those of each text start; no offsets when there are no scores."""
    if scores is None:
        return np.empty(0), np.empty(0, np.int64)
    if len(scores) != n:
        raise ValueError(f"{name} has {len(scores)} elements but there are {n} texts")
    rows = [np.asarray(row, np.float64) for row in scores]
    for i, row in enumerate(rows):
        if row.ndim != 1:
            raise ValueError(f"{name}[{i}] must be a sequence of numbers, not of dimension {row.ndim}")
        if not np.isfinite(row).all():
            bad = int(np.argmin(np.isfinite(row)))
            raise ValueError(f"{name}[{i}][{bad}] is {row[bad]}; every score must be finite")
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return (np.concatenate(rows) if rows else np.empty(0)), offsets


def _part(
    values: npt.NDArray[np.float64], offsets: npt.NDArray[np.int64], rows: slice
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    if not len(offsets):
        return values, offsets
    part = offsets[rows.start : rows.stop + 1]
    return values[part[0] : part[-1]], part - part[0]
