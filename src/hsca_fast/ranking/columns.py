"""Checks that the functions over candidates share: columns of equal length, and parameters within their domains."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32] | npt.NDArray[np.float64]


def float_columns(**columns: npt.ArrayLike) -> list[Any]:
    """One-dimensional arrays of one length: float32 when all of them are, float64 otherwise. Refuses what is neither."""
    arrays = []
    for name, values in columns.items():
        if isinstance(values, np.ma.MaskedArray) and values.mask.any():
            raise ValueError(f"{name} has masked elements; fill or drop them first")
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            if array.size:
                raise TypeError(f"{name} must hold numbers, not {array.dtype}")
            array = array.astype(np.float64)
        if array.ndim != 1:
            raise ValueError(f"{name} must have one dimension, not {array.ndim}")
        arrays.append(array)
    first = next(iter(columns))
    for name, array in zip(columns, arrays, strict=True):
        if len(array) != len(arrays[0]):
            raise ValueError(f"{name} has {len(array)} elements but {first} has {len(arrays[0])}")
    dtype = np.float32 if all(array.dtype == np.float32 for array in arrays) else np.float64
    return [_as_kernels_take_it(array, dtype) for array in arrays]


def _as_kernels_take_it(array: npt.NDArray[Any], dtype: type[np.floating[Any]]) -> npt.NDArray[Any]:
    flags = array.flags
    if array.dtype == dtype and array.dtype.isnative and flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, dtype, ("C", "A"))


def output(out: Floats | None, like: Floats, inputs: Sequence[npt.NDArray[Any]]) -> Any:
    """`out` checked, or a new array of the kind of `like`. A kernel that refuses an input leaves it half written."""
    if out is None:
        return np.empty_like(like)
    if not isinstance(out, np.ndarray) or out.shape != like.shape or out.dtype != like.dtype:
        raise ValueError(f"out must be an array of shape {like.shape} and {like.dtype}")
    if not (out.flags.c_contiguous and out.flags.writeable and out.flags.aligned):
        raise ValueError("out must be contiguous, aligned and writable")
    if any(np.may_share_memory(out, column) for column in inputs):
        raise ValueError("out must not overlap an input")
    return out


def refuse(**columns: npt.NDArray[Any]) -> NoReturn:
    """Raises for the first element that is not finite; a kernel has said that there is one."""
    refuse_if_not_finite(**columns)
    raise AssertionError("a kernel refused columns that are finite")


def refuse_if_not_finite(**columns: npt.NDArray[Any]) -> None:
    """Raises for the first element that is not finite."""
    for name, array in columns.items():
        finite = np.isfinite(array)
        if not finite.all():
            bad = int(np.argmin(finite))
            raise ValueError(f"{name}[{bad}] is {array[bad]}; every element must be finite")


def number(name: str, value: float, low: float, high: float = math.inf, *, open_ends: bool = False) -> float:
    """A parameter within [low, high], or strictly between."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    try:
        given = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a number that float64 can hold") from None
    inside = low < given < high if open_ends else low <= given <= high
    if not inside or not math.isfinite(given):
        between = "between" if open_ends else "from"
        bounds = "finite" if low == -math.inf else f"at least {low:g}"
        if high != math.inf:
            bounds = f"{between} {low:g} {'and' if open_ends else 'to'} {high:g}"
        raise ValueError(f"{name} must be {bounds}, not {value!r}")
    return given


def count(name: str, value: int) -> int:
    """A whole number of at least 1, and no more than a machine can count to."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    if value > sys.maxsize:
        raise ValueError(f"{name} must be at most {sys.maxsize}")
    return int(value)


def triple(name: str, values: Sequence[float], low: float = -math.inf, high: float = math.inf) -> tuple[float, ...]:
    """Three numbers within [low, high]."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be three numbers, not {type(values).__name__}")
    given = tuple(values)
    if len(given) != 3:
        raise ValueError(f"{name} must be three numbers, not {len(given)}")
    return tuple(number(f"{name}[{i}]", value, low, high) for i, value in enumerate(given))


def normalized_weights(weights: Sequence[float], default: tuple[float, float, float]) -> npt.NDArray[np.float64]:
    """Each of three weights clamped to [0, 1], then divided by their sum; `default` when that is 0."""
    clamped = [min(max(weight, 0.0), 1.0) for weight in triple("weights", weights)]
    total = clamped[0] + clamped[1] + clamped[2]
    return np.array([w / total for w in clamped] if total > 0 else default)
