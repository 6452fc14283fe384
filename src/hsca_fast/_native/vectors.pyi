from collections.abc import Sequence
from typing import final

import numpy as np
import numpy.typing as npt

NO_ROW: int

_Float32 = npt.NDArray[np.float32]
_Found = tuple[npt.NDArray[np.uint32], _Float32]

def isa_levels() -> tuple[str, ...]: ...
def dot_products(queries: _Float32, rows: _Float32, threads: int = 1, isa: str | None = None) -> _Float32: ...
def prefix_tiers(
    rows: _Float32,
    dims: Sequence[int],
    eps: float,
    threads: int = 1,
    isa: str | None = None,
    out: Sequence[_Float32] | None = None,
) -> tuple[_Float32, ...] | None: ...
def move_rows(
    records: object,
    vectors: _Float32,
    ids: npt.NDArray[np.int64],
    holes: npt.NDArray[np.int64],
    movers: npt.NDArray[np.int64],
    n: int,
) -> None: ...
def finite_rows(rows: _Float32) -> npt.NDArray[np.bool_]: ...
def prefix_inverse(rows: _Float32, width: int, eps: float, isa: str | None = None) -> _Float32: ...
def leading_segments(rows: _Float32, width: int, share: float) -> int: ...

@final
class TierCodes:
    inverse: _Float32
    scale: _Float32
    error: _Float32
    lead_residual: _Float32
    residual: _Float32
    lead_codes: npt.NDArray[np.uint8]
    tail_codes: npt.NDArray[np.uint8]
    def __init__(self, width: int, lead: int) -> None: ...
    @property
    def width(self) -> int: ...
    @property
    def lead(self) -> int: ...
    @property
    def segments(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def encode(self, rows: _Float32, begin: int, end: int, eps: float, isa: str | None = None) -> None: ...
    def search(
        self,
        rows: _Float32,
        queries: _Float32,
        k: int,
        *,
        ids: npt.NDArray[np.int64] | None = None,
        allowed: npt.NDArray[np.uint8] | None = None,
        candidates: bool = False,
        threads: int = 1,
        isa: str | None = None,
        work: dict[str, int] | None = None,
    ) -> _Found: ...

def scan(
    rows: _Float32,
    inverse: _Float32,
    queries: _Float32,
    k: int,
    *,
    ids: npt.NDArray[np.int64] | None = None,
    allowed: npt.NDArray[np.uint8] | None = None,
    threads: int = 1,
    isa: str | None = None,
) -> _Found: ...
def narrow(
    rows: _Float32,
    inverse: _Float32,
    ids: npt.NDArray[np.int64] | None,
    queries: _Float32,
    candidates: npt.NDArray[np.uint32],
    keep: int,
    candidates_only: bool = False,
    threads: int = 1,
    isa: str | None = None,
) -> _Found: ...
def mmr(
    rows: _Float32,
    relevance: npt.NDArray[np.float64],
    groups: npt.NDArray[np.uint32] | None,
    n_groups: int,
    k: int,
    lambda_: float,
    group_weight: float,
    isa: str | None = None,
) -> npt.NDArray[np.int64]: ...
def connected_components(
    rows: _Float32, threshold: float, threads: int = 1, isa: str | None = None
) -> npt.NDArray[np.uint32]: ...
