"""The full-width tier as a FAISS index: a cache over the vectors, rebuilt whenever there is a doubt."""

from __future__ import annotations

import os
import sys
import warnings
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


class FaissTier:
    """Candidates at full width from the index a factory string describes. Its numbers are rows."""

    def __init__(self, factory: str, width: int) -> None:
        self.factory = factory
        self.width = width
        self._index: Any = None
        self._kind = ""
        faiss = _faiss()
        try:
            self._kind = type(faiss.index_factory(width, factory, faiss.METRIC_INNER_PRODUCT)).__name__
        except (RuntimeError, ValueError, AssertionError) as error:
            reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
            raise ValueError(f"full_factory {factory!r} is refused by FAISS: {reason}") from None
        if self._kind.startswith("IndexIDMap"):
            raise ValueError(f"full_factory {factory!r}: the ids are kept here, leave IDMap out")

    def forget(self) -> None:
        """The rows are no longer what they were."""
        self._index = None

    def extend(self, rows: Float32) -> None:
        """`rows` are all rows; those beyond the index's are new."""
        if self._index is not None and is_usable():
            new = rows[self._index.ntotal :]
            if len(new):
                self._index.add(new)

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
        faiss = _faiss()
        if (self._index is None or self._index.ntotal != len(rows)) and not self._build(rows):
            return None
        if allowed is None:
            found = self._index.search(queries, k)[1]
        else:
            parameters = {"IndexHNSWFlat": "SearchParametersHNSW", "IndexIVFFlat": "SearchParametersIVF"}
            kind = getattr(faiss, parameters.get(self._kind, "SearchParameters"))
            selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
            try:
                found = self._index.search(queries, k, params=kind(sel=selector))[1]
            except RuntimeError:  # this type takes no selector
                return None
        return np.ascontiguousarray(np.where(found < 0, NO_ROW, found), dtype=np.uint32)

    def _build(self, rows: Float32) -> bool:
        faiss = _faiss()
        index = faiss.index_factory(self.width, self.factory, faiss.METRIC_INNER_PRODUCT)
        try:
            if not index.is_trained:
                index.train(rows)
            index.add(rows)
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1]
            warnings.warn(
                f"full_factory {self.factory!r} cannot hold these {len(rows)} vectors yet ({reason}): "
                "the full-width tier is searched natively",
                RuntimeWarning,
                stacklevel=4,
            )
            return False
        self._index = index
        return True

    def to_bytes(self) -> bytes | None:
        """The index as FAISS writes it, if there is one."""
        if self._index is None or not is_usable():
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
