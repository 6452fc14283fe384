from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hsca_fast._native.strings import StringColumn

_Real = TypeVar("_Real", np.float32, np.float64)
_Best = tuple[npt.NDArray[np.int64], npt.NDArray[Any]]
_Doubles = npt.NDArray[np.float64]

def isa_levels() -> tuple[str, ...]: ...
def recency(
    age: npt.NDArray[_Real], decay: float, threads: int, out: npt.NDArray[_Real], isa: str | None = None
) -> bool: ...
def log_counts(counts: _Doubles) -> _Doubles: ...
def hybrid_scores(
    cosine: npt.NDArray[_Real],
    age: npt.NDArray[_Real],
    scope: npt.NDArray[np.uint8],
    decay_rate: npt.NDArray[_Real],
    weights: _Doubles,
    delta: float,
    decays: _Doubles,
    scope_weights: _Doubles,
    threads: int,
    out: npt.NDArray[_Real],
    isa: str | None = None,
) -> bool: ...
def hybrid_top_k(
    cosine: npt.NDArray[_Real],
    age: npt.NDArray[_Real],
    scope: npt.NDArray[np.uint8],
    decay_rate: npt.NDArray[_Real],
    weights: _Doubles,
    delta: float,
    decays: _Doubles,
    scope_weights: _Doubles,
    k: int,
    threads: int,
    isa: str | None = None,
) -> _Best | None: ...
def authority_weights(
    age: npt.NDArray[_Real],
    access: npt.NDArray[_Real],
    authored: npt.NDArray[_Real],
    weights: _Doubles,
    decay: float,
    max_access: float,
    out: npt.NDArray[_Real],
    isa: str | None = None,
) -> bool: ...
def second_pass_scores(
    similarity: npt.NDArray[_Real],
    authority: npt.NDArray[_Real],
    coverage: npt.NDArray[_Real],
    kappa: float,
    threads: int,
    out: npt.NDArray[_Real],
    isa: str | None = None,
) -> bool: ...
def second_pass_top_k(
    similarity: npt.NDArray[_Real],
    authority: npt.NDArray[_Real],
    coverage: npt.NDArray[_Real],
    kappa: float,
    k: int,
    threads: int,
    isa: str | None = None,
) -> _Best | None: ...
def top_similarities(similarity: npt.NDArray[_Real], k: int, isa: str | None = None) -> _Best | None: ...
def fit_budget(costs: npt.NDArray[Any], budget: float, policy: str) -> npt.NDArray[np.int64] | None: ...
def fit_budget_scored(
    scores: npt.NDArray[Any], costs: npt.NDArray[Any], budget: float, policy: str
) -> npt.NDArray[np.int64] | None: ...
def estimate_tokens(column: StringColumn, kind: str, threads: int, out: npt.NDArray[np.int32]) -> None: ...
def token_features(column: StringColumn) -> npt.NDArray[np.int64]: ...
def token_coefficients() -> list[float]: ...
def extract_keywords(text: bytes, kind: str, min_length: int) -> list[str]: ...
def keyword_coverage(
    keywords: StringColumn, texts: StringColumn, kind: str, threads: int, out: npt.NDArray[np.float64]
) -> None: ...
def near_copies(texts: StringColumn, size: int, threshold: float) -> tuple[npt.NDArray[np.int64], _Doubles]: ...
def gating_signals(
    texts: StringColumn,
    memory_values: _Doubles,
    memory_offsets: npt.NDArray[np.int64],
    turn_values: _Doubles,
    turn_offsets: npt.NDArray[np.int64],
    terms: dict[str, Any],
    threads: int,
    out: npt.NDArray[np.float64],
) -> None: ...
def gating_patterns(texts: StringColumn, strict: bool) -> npt.NDArray[np.uint32]: ...
def stream_columns(
    first: npt.NDArray[np.float32],
    second: npt.NDArray[np.float32],
    third: npt.NDArray[np.float32],
    scope: npt.NDArray[np.uint8],
    out: npt.NDArray[np.float32],
) -> None: ...
