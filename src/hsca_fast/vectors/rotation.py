"""A rotation that moves a model's energy to the front, so that prefixes of any model's vectors say the most."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hsca_fast._native import vectors as _native
from hsca_fast._native.inputs import thread_count
from hsca_fast.vectors.arrays import Float32, as_rows
from hsca_fast.vectors.storage import DamagedIndexError, read_array, write_array

_BLOCK = 4096  # rows whose products are in memory together


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """An orthogonal matrix; row i is the direction that becomes coordinate i.

    Examples
    --------
    >>> rotation = Rotation(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> rotation.apply([3.0, 4.0]).tolist()
    [4.0, -3.0]
    """

    matrix: Float32

    def __post_init__(self) -> None:
        matrix = as_rows(self.matrix, "matrix", ndim=(2,)).copy()  # the caller's stays the caller's
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"matrix must be square, not {matrix.shape}")
        off = np.abs(matrix.astype(np.float64) @ matrix.astype(np.float64).T - np.eye(len(matrix))).max(initial=0.0)
        if off > 1e-5:
            raise ValueError(f"matrix is not orthogonal: a product of its rows is off by {off:.2g}")
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)

    @property
    def dim(self) -> int:
        """Width of the vectors it takes."""
        return len(self.matrix)

    @property
    def fingerprint(self) -> str:
        """What tells this rotation from others."""
        return hashlib.sha256(self.matrix.tobytes()).hexdigest()[:16]

    def apply(self, vectors: npt.ArrayLike, *, threads: int = 1) -> Float32:
        """The vectors in the new coordinates; inner products stay what they were to about 1e-7 of the lengths."""
        rows = as_rows(vectors, "vectors", width=self.dim)
        turned = np.empty_like(rows)
        for begin in range(0, len(rows), _BLOCK):
            block = rows[begin : begin + _BLOCK]
            turned[begin : begin + _BLOCK] = _native.dot_products(block, self.matrix, thread_count(threads))
        return turned[0] if np.ndim(vectors) == 1 and len(turned) else turned

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the matrix, with its checksum, in one step."""
        write_array(os.fspath(path), self.matrix)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Rotation:
        """Reads what `save` wrote; a damaged file is refused."""
        try:
            return cls(read_array(os.fspath(path)))
        except TypeError as error:
            raise DamagedIndexError(f"{os.fspath(path)}: {error}") from None


def fit_rotation(sample: npt.ArrayLike) -> Rotation:
    """The rotation to the principal directions of `sample` (not centred), greatest energy first.

    A few thousand vectors of a model are enough; rows are weighed alike whatever their length.

    Examples
    --------
    >>> sample = np.array([[0.1, 2.0], [0.1, 1.0], [-0.1, 3.0]])
    >>> fit_rotation(sample).apply([0.0, 1.0]).round(1).tolist()
    [1.0, -0.0]
    """
    rows = as_rows(sample, "sample", ndim=(2,))
    if not rows.size:
        raise ValueError("sample is empty")
    _, directions = np.linalg.eigh(_gram(rows))
    matrix = directions[:, ::-1].T
    # A direction and its opposite are the same; the one that is taken does not depend on the solver.
    signs = np.sign(matrix[np.arange(len(matrix)), np.abs(matrix).argmax(axis=1)])
    return Rotation((matrix * signs[:, None]).astype(np.float32))


def _gram(rows: Float32) -> npt.NDArray[np.float64]:
    """The sum of u uᵀ over the rows' directions u; a block of rows in float64 at a time."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for begin in range(0, len(rows), _BLOCK):
        block = rows[begin : begin + _BLOCK].astype(np.float64)
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        block /= np.where(lengths > 0.0, lengths, 1.0)
        total += block.T @ block
    return total
