"""What every batch function takes: texts in their many forms, and a number of threads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, overload, runtime_checkable

import numpy as np
import numpy.typing as npt

from hsca_fast._native.strings import StringColumn

# Python strings are taken in slices of this many bytes: copies of non-ASCII text stay small whatever the batch.
_SLICE_BYTES = 16 << 20


@runtime_checkable
class ArrowStream(Protocol):
    """Anything with the Arrow PyCapsule stream method."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@runtime_checkable
class ArrowArray(Protocol):
    """Anything with the Arrow PyCapsule array method."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


Texts = Sequence[str] | Iterable[str] | npt.NDArray[Any] | ArrowStream | ArrowArray


def usable_cpus() -> int:
    """CPUs this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: int) -> int:
    """`threads` checked; 0 means every usable CPU."""
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise TypeError(f"threads must be an int, not {type(threads).__name__}")
    if not 0 <= threads <= 1024:
        raise ValueError(f"threads must be between 0 (all usable CPUs) and 1024, not {threads}")
    return threads or usable_cpus()


def string_columns(texts: Texts) -> tuple[int, Iterable[tuple[int, StringColumn]]]:
    """Number of texts, and the texts as consecutive columns, each with the number of its first row.

    Arrow columns are read in place and in one piece, Python strings in slices.
    """
    rows, columns = text_rows(texts)
    return len(rows), columns


def text_rows(texts: Texts) -> tuple[Sequence[str], Iterable[tuple[int, StringColumn]]]:
    """The texts one by one, and as `string_columns` has them."""
    # Asking a protocol takes longer than a short list does.
    if not isinstance(texts, (list, tuple)) and isinstance(texts, (ArrowStream, ArrowArray)):
        column = StringColumn.from_arrow(texts)
        return _ColumnTexts(column), [(0, column)]
    rows = _rows(texts)
    return rows, _slices(rows)


class _ColumnTexts(Sequence[str]):
    """The rows of an Arrow column as str, made when asked for."""

    def __init__(self, column: StringColumn) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self._column.text(j) for j in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(f"row {i} of {len(self)}")
        return self._column.text(i % len(self))


def _rows(texts: Texts) -> tuple[Any, ...]:
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a sequence of str, not {type(texts).__name__}")
    if isinstance(texts, np.ndarray):
        if texts.ndim != 1:
            raise ValueError(f"texts must have one dimension, not {texts.ndim}")
        return tuple(texts.tolist())
    return tuple(texts)


def _slices(rows: tuple[Any, ...]) -> Iterator[tuple[int, StringColumn]]:
    start = 0
    while start < len(rows):
        column = StringColumn.from_sequence(rows, start, _SLICE_BYTES)
        yield start, column
        start += len(column)
