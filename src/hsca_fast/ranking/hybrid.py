"""The hybrid rank: similarity, recency and scope in one score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from hsca_fast._native import ranking as _native
from hsca_fast._native.inputs import thread_count
from hsca_fast.ranking.columns import (
    Floats,
    count,
    float_columns,
    normalized_weights,
    number,
    output,
    refuse,
)
from hsca_fast.ranking.decay import RECENCY_DECAY

#: S by scope.
SCOPE_WEIGHT = MappingProxyType({"session": 1.0, "user": 0.6, "global": 0.3})

_Numbers = npt.NDArray[np.float64]

_DEFAULT_WEIGHTS = (0.7, 0.2, 0.1)
_MAX_SCOPES = 256


class TopK(NamedTuple):
    """The best rows, by (score descending, row ascending)."""

    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[Any]


def hybrid_scores(
    cosine: npt.ArrayLike,
    age_seconds: npt.ArrayLike,
    scope: str | Sequence[str] | npt.NDArray[Any],
    *,
    decay_rate: npt.ArrayLike | None = None,
    weights: Sequence[float] = _DEFAULT_WEIGHTS,
    delta: float = 0.5,
    decays: Mapping[str, float] = RECENCY_DECAY,
    scope_weights: Mapping[str, float] = SCOPE_WEIGHT,
    threads: int = 1,
    out: Floats | None = None,
) -> Any:
    """score = (α·cos + β·R + γ·S)·Q, in [0, 1], for every candidate.

    R is the recency with its scope's λ, S the scope's weight, and Q = 1 - delta·decay_rate.

    Parameters
    ----------
    cosine
        Similarities; clamped to [0, 1].
    age_seconds
        Ages in seconds; negative ones count as 0.
    scope
        One name for all, a name each, or integers that number the keys of `decays`.
    decay_rate
        Of summaries, clamped to [0, 1]; 0 for everything else. None: no summaries, Q = 1.
    weights
        α, β, γ: each clamped to [0, 1] and divided by their sum; a sum of 0 means the defaults.
    delta
        Share of the score that a summary of decay rate 1 loses, in [0, 1].
    decays, scope_weights
        λ per second and S for each scope, of the same keys; at least 0, and in [0, 1].
    threads
        Worker threads; 0 takes every usable CPU. The result is the same for every number.
    out
        Array to write to, of the result's type.

    Returns
    -------
    numpy.ndarray
        float32 when every column of floats is float32, float64 otherwise.

    Raises
    ------
    ValueError
        A column has another length or an element that is not finite, a scope is unknown, a parameter is outside its domain.

    Examples
    --------
    >>> hybrid_scores([0.8, 0.8, 0.8], [3600.0] * 3, ["session", "user", "global"]).round(6).tolist()
    [0.799535, 0.812928, 0.788565]
    """
    call = _Call(cosine, age_seconds, scope, decay_rate, weights, delta, decays, scope_weights, threads)
    result = output(out, call.columns[0], call.columns)
    if not _native.hybrid_scores(*call.columns, *call.terms, call.threads, result):
        call.refuse()
    return result


def hybrid_top_k(
    cosine: npt.ArrayLike,
    age_seconds: npt.ArrayLike,
    scope: str | Sequence[str] | npt.NDArray[Any],
    k: int,
    *,
    decay_rate: npt.ArrayLike | None = None,
    weights: Sequence[float] = _DEFAULT_WEIGHTS,
    delta: float = 0.5,
    decays: Mapping[str, float] = RECENCY_DECAY,
    scope_weights: Mapping[str, float] = SCOPE_WEIGHT,
    threads: int = 1,
) -> TopK:
    """The k best of `hybrid_scores` in one pass that stores no score it does not return.

    Examples
    --------
    >>> best = hybrid_top_k([0.2, 0.9, 0.9], [0.0, 60.0, 60.0], "user", 2)
    >>> best.rows.tolist(), best.scores.round(4).tolist()
    ([1, 2], [0.8899, 0.8899])
    """
    k = count("k", k)
    call = _Call(cosine, age_seconds, scope, decay_rate, weights, delta, decays, scope_weights, threads)
    best = _native.hybrid_top_k(*call.columns, *call.terms, k, call.threads)
    if best is None:
        call.refuse()
    return TopK(*best)


def _terms(
    weights: Sequence[float], decays: Mapping[str, float], scope_weights: Mapping[str, float]
) -> tuple[_Numbers, _Numbers, _Numbers]:
    """α, β, γ; λ by scope; S by scope: checked, as the kernels take them."""
    if set(decays) != set(scope_weights):
        raise ValueError(f"decays and scope_weights must name the same scopes, not {[*decays]} and {[*scope_weights]}")
    if not 1 <= len(decays) <= _MAX_SCOPES:
        raise ValueError(f"decays must name 1 to {_MAX_SCOPES} scopes, not {len(decays)}")
    return (
        normalized_weights(weights, _DEFAULT_WEIGHTS),
        np.array([number(f"decays[{s!r}]", decays[s], 0.0) for s in decays]),
        np.array([number(f"scope_weights[{s!r}]", scope_weights[s], 0.0, 1.0) for s in decays]),
    )


_DEFAULT_TERMS = _terms(_DEFAULT_WEIGHTS, RECENCY_DECAY, SCOPE_WEIGHT)


class _Call:
    """The arguments of one call, checked, in the form the kernels take."""

    def __init__(
        self,
        cosine: npt.ArrayLike,
        age_seconds: npt.ArrayLike,
        scope: str | Sequence[str] | npt.NDArray[Any],
        decay_rate: npt.ArrayLike | None,
        weights: Sequence[float],
        delta: float,
        decays: Mapping[str, float],
        scope_weights: Mapping[str, float],
        threads: int,
    ) -> None:
        self.threads = thread_count(threads)
        # A third of the time of a short call is spent on them, and hardly anybody changes them.
        is_default = weights is _DEFAULT_WEIGHTS and decays is RECENCY_DECAY and scope_weights is SCOPE_WEIGHT
        normalized, rates, scales = _DEFAULT_TERMS if is_default else _terms(weights, decays, scope_weights)
        self.names = list(decays)
        self.terms = (normalized, number("delta", delta, 0.0, 1.0), rates, scales)
        given = {"cosine": cosine, "age_seconds": age_seconds}
        if decay_rate is not None:
            given["decay_rate"] = decay_rate
        floats = float_columns(**given)
        codes = scope_codes(scope, len(floats[0]), self.names)
        of_summaries = floats[2] if decay_rate is not None else np.empty(0, floats[0].dtype)
        self.columns = (floats[0], floats[1], codes, of_summaries)

    def refuse(self) -> NoReturn:
        cosine, age, codes, rates = self.columns
        unknown = np.flatnonzero(codes >= len(self.names))
        if len(unknown):
            raise _unknown_code(unknown[0], codes, self.names)
        refuse(cosine=cosine, age_seconds=age, decay_rate=rates)


def _unknown_code(row: int, codes: npt.NDArray[Any], names: list[str]) -> ValueError:
    return ValueError(f"scope[{row}] is {codes[row]}, but there are {len(names)} scopes: {names}")


def scope_codes(scope: str | Sequence[str] | npt.NDArray[Any], n: int, names: list[str]) -> npt.NDArray[np.uint8]:
    """Scopes as numbers of `names`. Codes above the last name are left to the kernel to find."""
    if isinstance(scope, str):
        if scope not in names:
            raise ValueError(f"scope must be one of {names}, not {scope!r}")
        return np.full(n, names.index(scope), np.uint8)
    array = np.asarray(scope)
    if array.shape != (n,):
        raise ValueError(f"scope has shape {array.shape} but cosine has {n} elements")
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if array.dtype.kind in "iu":
        wrong = np.flatnonzero((array < 0) | (array >= len(names)))
        if len(wrong):
            raise _unknown_code(wrong[0], array, names)
        return array.astype(np.uint8)
    codes = np.full(n, 255, np.uint8)
    known = np.zeros(n, np.bool_)
    for code, name in enumerate(names):
        same = array == name
        codes[same] = code
        known |= same
    if not known.all():
        row = int(np.argmin(known))
        raise ValueError(f"scope[{row}] must be one of {names}, not {array.tolist()[row]!r}")
    return codes
