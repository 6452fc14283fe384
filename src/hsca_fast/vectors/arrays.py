"""Vectors as the kernels take them, and what is wrong with those they cannot take."""

from __future__ import annotations

from collections.abc import Iterable, Set
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import records as _records
from hsca_fast._native import vectors as _native

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]

MAX_WIDTH = 65536
"""Of vectors whose codes are compared: sums of more could leave 32 bits."""


def as_rows(values: npt.ArrayLike, name: str, *, width: int | None = None, ndim: tuple[int, ...] = (1, 2)) -> Float32:
    """`values` as a float32 matrix in C order, one vector as one row. Every value is finite."""
    rows = as_matrix(values, name, width=width, ndim=ndim)
    refuse_infinite(rows, name)
    return rows


def as_matrix(values: npt.ArrayLike, name: str, *, width: int | None = None, ndim: tuple[int, ...] = (1, 2)) -> Float32:
    """As `as_rows`, but values may be infinite or not a number."""
    array = _as_array(values, name)
    if array.dtype.kind not in "fiu" and array.size:
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    if array.ndim not in ndim:
        wanted = " or ".join(map(str, ndim))
        raise ValueError(f"{name} must have {wanted} dimensions, not {array.ndim}")
    if array.ndim == 1:
        array = array[None, :]
        if not array.size and width is not None:
            return np.empty((0, width), np.float32)
    if width is not None and array.shape[1] != width:
        if not len(array):
            return np.empty((0, width), np.float32)
        raise ValueError(f"{name} has vectors of {array.shape[1]} values; {width} are wanted")
    if array.dtype == np.float32:
        return np.ascontiguousarray(array)
    with np.errstate(over="ignore"):  # beyond float32 is infinite
        return np.ascontiguousarray(array, dtype=np.float32)


def _as_array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """As `np.asarray`, but lists of lists at a tenth of the price, and columns of vectors, as data frames have them."""
    if isinstance(values, list) and _are_lists(values) and values and values[0] and type(values[0][0]) is float:
        return _records.float_rows(values, len(values[0]), name)
    if type(values) is not np.ndarray and isinstance(values, np.ndarray) and np.ma.is_masked(values):
        raise TypeError(f"{name} has masked values: fill them first")
    array = np.asarray(values)
    if array.dtype == np.object_ and array.ndim == 1 and array.size:
        return stack_rows(array.tolist(), name)
    return array


def stack_rows(vectors: list[Any], name: str) -> Float32:
    """One row for each vector, an array or a list of numbers; names the row that is neither, or of another length."""
    if not vectors:
        return np.empty((0, 0), np.float32)
    if _are_lists(vectors):
        return _records.float_rows(vectors, len(vectors[0]), name)
    rows = [np.asarray(vector) for vector in vectors]
    for i, row in enumerate(rows):
        if row.ndim != 1 or row.dtype.kind not in "fiu":
            raise TypeError(f"{name}[{i}] must be a vector of numbers, not {type(vectors[i]).__name__}")
        if len(row) != len(rows[0]):
            raise ValueError(f"{name}[{i}] has {len(row)} numbers; {name}[0] has {len(rows[0])}")
    with np.errstate(over="ignore"):  # beyond float32 is infinite
        return np.stack(rows, dtype=np.float32, casting="unsafe")


def _are_lists(vectors: list[Any]) -> bool:
    return set(map(type, vectors)) <= {list}


def refuse_infinite(rows: Float32, name: str) -> None:
    """Names the rows with values that are infinite or not a number."""
    bad = np.flatnonzero(~_native.finite_rows(rows)).tolist()
    if bad:
        shown = ", ".join(map(str, bad[:10])) + (", ..." if len(bad) > 10 else "")
        count = f"{len(bad)} rows" if len(bad) > 1 else "1 row"
        raise ValueError(f"{name} has values that are not finite float32 numbers in {count}: {shown}")


def as_values(values: npt.ArrayLike, name: str, n_rows: int) -> npt.NDArray[np.float64]:
    """`values` as one finite float64 number for each row of embeddings."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" and array.size:
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    if array.shape != (n_rows,):
        raise ValueError(f"{name} has shape {array.shape}; embeddings has {n_rows} rows")
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name}[{int(np.argmin(np.isfinite(numbers)))}] is not finite")
    return numbers


def as_ids(values: npt.ArrayLike | Set[int], name: str) -> Int64:
    """`values`, a set if need be, as int64 ids, none negative."""
    array = np.asarray(list(values) if isinstance(values, (set, frozenset)) else values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {array.ndim}")
    if not array.size:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, not {array.dtype}")
    if array.dtype.kind == "u" and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{name}: {int(array.max())} is too large for an id")
    ids = np.ascontiguousarray(array, dtype=np.int64)
    if int(ids.min()) < 0:
        row = int(np.argmin(ids))
        raise ValueError(f"{name}[{row}] is {int(ids[row])}; ids are not negative")
    return ids


def as_dims(dims: object, name: str = "dims") -> tuple[int, ...]:
    """Strictly increasing widths of at least 1."""
    if not isinstance(dims, Iterable):
        raise TypeError(f"{name} must be a sequence of int, not {type(dims).__name__}")
    widths = tuple(dims)
    for width in widths:
        if type(width) is not int or not 1 <= width <= MAX_WIDTH:  # what is wrong with it, or an int of numpy
            as_count(width, f"{name}: a width", least=1, most=MAX_WIDTH)
    if not widths or any(a >= b for a, b in pairwise(widths)):
        raise ValueError(f"{name} must be one or more widths, each greater than the one before, not {widths}")
    return tuple(int(width) for width in widths)


def as_count(value: object, name: str, *, least: int = 0, most: int | None = None) -> int:
    """An int of at least `least` and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, not {value}")
    return int(value)


def as_number(value: object, name: str, *, low: float, high: float) -> float:
    """A real number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low} and {high}, not {value}")
    return float(value)
