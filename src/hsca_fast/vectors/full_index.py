"""The full-width tier as a FAISS index: a cache over the vectors, rebuilt whenever there is a doubt."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native.vectors import NO_ROW
from hsca_fast.vectors.arrays import Float32

# A file may not ask for more than this many times the vectors' own size.
_LIMIT_FACTOR = 8
_LEAST_LIMIT = 1 << 26


_is_forked = False


def _after_fork() -> None:
    global _is_forked
    _is_forked = _is_forked or "faiss" in sys.modules


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def is_usable() -> bool:
    """False in a child of a process that had FAISS loaded: its threads are missing, and a search would wait for ever."""
    return not _is_forked


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise ImportError(
            "a full_factory other than 'Flat' needs FAISS: install the extra, pip install 'hsca_fast[faiss]'"
        ) from None
    return faiss


def _reason(error: BaseException) -> str:
    """The last line of what FAISS says: before it stand names of its functions."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


class _SharedLock:
    """Many may read at a time, or one may write: FAISS indices can be searched by many threads, but not while they grow."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers: set[object] = set()
        self._n_writers = 0

    @contextmanager
    def read(self) -> Iterator[None]:
        reader = object()
        try:
            with self._changed:
                self._changed.wait_for(lambda: not self._n_writers)  # or readers could keep a writer out for ever
                self._readers.add(reader)
            yield
        finally:
            with self._changed:
                self._readers.discard(reader)
                self._changed.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        with self._changed:
            self._n_writers += 1
            try:
                self._changed.wait_for(lambda: not self._readers)
                yield
            finally:
                self._n_writers -= 1
                self._changed.notify_all()


class FaissTier:
    """Candidates at full width from the index a factory string describes. Its numbers are rows."""

    def __init__(self, factory: str, width: int) -> None:
        self.factory = factory
        self.width = width
        self._index: Any = None
        self._lock = _SharedLock()
        self._kind = ""
        faiss = _faiss()
        try:
            self._kind = type(faiss.index_factory(width, factory, faiss.METRIC_INNER_PRODUCT)).__name__
        except (RuntimeError, ValueError, AssertionError) as error:
            raise ValueError(f"full_factory {factory!r} is refused by FAISS: {_reason(error)}") from None
        if self._kind.startswith("IndexIDMap"):
            raise ValueError(f"full_factory {factory!r}: the ids are kept here, leave IDMap out")

    def forget(self) -> None:
        """The rows are no longer what they were."""
        with self._lock.write():
            self._index = None

    def extend(self, rows: Float32) -> None:
        """`rows` are all rows; those beyond the index's are new. What FAISS cannot take is made again at the next search."""
        if self._index is None or not is_usable():
            return
        try:
            with self._lock.write():
                self._append(rows)
        except (RuntimeError, MemoryError) as error:
            self.forget()
            warnings.warn(
                f"full_factory {self.factory!r} could not take new vectors ({_reason(error)}): "
                "the FAISS index is made again at the next search",
                RuntimeWarning,
                stacklevel=3,
            )

    def candidates(
        self, rows: Float32, queries: Float32, k: int, allowed: npt.NDArray[np.uint8] | None
    ) -> npt.NDArray[np.uint32] | None:
        """Rows that may be among the k best of each query, NO_ROW behind; None if FAISS cannot say."""
        if not is_usable():
            warnings.warn(
                "FAISS cannot be used in a forked process: the full-width tier is searched natively (use spawn)",
                RuntimeWarning,
                stacklevel=3,
            )
            return None
        while True:
            with self._lock.read():
                if self._index is not None and self._index.ntotal >= len(rows):
                    found = self._search(queries, k, allowed)
                    break
            with self._lock.write():
                if self._index is not None:
                    self._append(rows)
                elif not self._build(rows):
                    return None
        if found is None:
            return None
        # Rows that another thread added since are not the caller's.
        return np.ascontiguousarray(np.where((found < 0) | (found >= len(rows)), NO_ROW, found), dtype=np.uint32)

    def _append(self, rows: Float32) -> None:
        new = rows[self._index.ntotal :]
        if len(new):
            self._index.add(new)

    def _search(self, queries: Float32, k: int, allowed: npt.NDArray[np.uint8] | None) -> npt.NDArray[np.int64] | None:
        """Numbers of rows, -1 behind; None if this kind of index takes no selector."""
        found: npt.NDArray[np.int64]
        if allowed is None:
            found = self._index.search(queries, k)[1]
            return found
        faiss = _faiss()
        parameters = {"IndexHNSWFlat": "SearchParametersHNSW", "IndexIVFFlat": "SearchParametersIVF"}
        kind = getattr(faiss, parameters.get(self._kind, "SearchParameters"))
        selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        try:
            found = self._index.search(queries, k, params=kind(sel=selector))[1]
        except RuntimeError:
            return None
        return found

    def _build(self, rows: Float32) -> bool:
        faiss = _faiss()
        index = faiss.index_factory(self.width, self.factory, faiss.METRIC_INNER_PRODUCT)
        try:
            if not index.is_trained:
                index.train(rows)
            index.add(rows)
        except RuntimeError as error:
            warnings.warn(
                f"full_factory {self.factory!r} cannot hold these {len(rows)} vectors yet ({_reason(error)}): "
                "the full-width tier is searched natively",
                RuntimeWarning,
                stacklevel=4,
            )
            return False
        self._index = index
        return True

    def to_bytes(self) -> bytes | None:
        """The index as FAISS writes it, if there is one."""
        if not is_usable():
            return None
        with self._lock.read():
            if self._index is None:
                return None
            data: bytes = _faiss().serialize_index(self._index).tobytes()
            return data

    def from_checked_bytes(self, data: bytes, n_rows: int) -> bool:
        """Takes what `to_bytes` gave. The caller has checked that these are the bytes that were written."""
        if not is_usable():
            return False
        faiss = _faiss()
        limit = max(_LEAST_LIMIT, _LIMIT_FACTOR * n_rows * self.width * 4)
        before = faiss.get_deserialization_vector_byte_limit()
        faiss.set_deserialization_vector_byte_limit(limit)
        try:
            index = faiss.deserialize_index(np.frombuffer(data, np.uint8))
        except RuntimeError:
            return False
        finally:
            faiss.set_deserialization_vector_byte_limit(before)
        same = (type(index).__name__, index.d, index.ntotal, index.metric_type) == (
            self._kind,
            self.width,
            n_rows,
            faiss.METRIC_INNER_PRODUCT,
        )
        if same:
            self._index = index
        return same
