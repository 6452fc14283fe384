from typing import TypedDict

import numpy as np
import numpy.typing as npt

from hsca_fast._native.strings import StringColumn

class _RelationalDetail(TypedDict):
    layer1_score: float
    is_short: bool
    sentence_scores: npt.NDArray[np.float64]
    token_words: npt.NDArray[np.int64]
    token_sentences: npt.NDArray[np.int64]
    token_stems: npt.NDArray[np.int64]
    stem_scores: npt.NDArray[np.float64]
    blocks: list[tuple[int, int, float, float, float, float, float]]

def simd_level() -> str: ...
def unicode_version() -> str: ...
def char_class(code_point: int) -> int: ...
def function_words() -> tuple[str, ...]: ...
def segment(
    text: bytes, simd: str = "baseline"
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
def score_texts(
    column: StringColumn,
    window: int,
    threads: int,
    layer1_score: npt.NDArray[np.float64],
    n_sentences: npt.NDArray[np.int32],
    n_words: npt.NDArray[np.int32],
    is_short: npt.NDArray[np.uint8],
    simd: str = "baseline",
) -> None: ...
def relational_detail(text: bytes, window: int) -> _RelationalDetail: ...
def split_and_hash(column: StringColumn) -> int: ...
def segment_rows(column: StringColumn) -> tuple[int, int, int]: ...
