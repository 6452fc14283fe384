from typing import TypedDict, final

import numpy as np
import numpy.typing as npt

from hsca_fast._native.strings import StringColumn

class _TextDetail(TypedDict):
    layer1_score: float
    is_short: bool
    n_sentences: int
    n_words: int
    sentence_scores: npt.NDArray[np.float64]
    token_words: npt.NDArray[np.int64]
    token_sentences: npt.NDArray[np.int64]
    token_stems: npt.NDArray[np.int64]
    stem_scores: npt.NDArray[np.float64]
    blocks: list[tuple[int, int, float, float, float, float, float]]
    coherence: tuple[float, ...]
    domain_scores: list[float]
    domain_bits: int
    nuance_bits: int
    cues: list[tuple[int, int, int, int]]
    categories: list[tuple[int, int, int]]
    sentiment: float
    sentiment_tokens: list[tuple[int, int, float]]
    sentence_compounds: npt.NDArray[np.float64]

class _CoherenceTables(TypedDict):
    properties: list[int]
    pause: int
    title: int
    endings: npt.NDArray[np.uint8]
    order: npt.NDArray[np.int8]
    letters: npt.NDArray[np.int8]
    constants: dict[str, float]

def cue_words(texts: list[bytes]) -> list[tuple[tuple[int, int], ...]]: ...

@final
class Lexicon:
    def __init__(
        self,
        cues: list[tuple[bytes, int, int, int, int]],
        categories: list[tuple[int, float, int]],
        tones: tuple[int, int, int],
        domain_rules: list[tuple[int, int, float]],
    ) -> None: ...

@final
class DomainModel:
    def __init__(self, content: bytes) -> None: ...
    @property
    def half_length(self) -> float: ...
    @property
    def margins(self) -> npt.NDArray[np.float64]: ...

@final
class Scorer:
    def __init__(
        self,
        window: int,
        lexicon: Lexicon | None = None,
        domain_model: DomainModel | None = None,
        simd: str = "baseline",
    ) -> None: ...

def simd_level() -> str: ...
def unicode_version() -> str: ...
def char_class(code_point: int) -> int: ...
def function_words() -> tuple[str, ...]: ...
def order_words() -> dict[str, int]: ...
def coherence_tables() -> _CoherenceTables: ...
def segment(
    text: bytes, simd: str = "baseline"
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
def score_texts(
    scorer: Scorer,
    column: StringColumn,
    threads: int,
    layer1_score: npt.NDArray[np.float64],
    coherence_score: npt.NDArray[np.float64],
    sentiment_score: npt.NDArray[np.float64],
    domain_bits: npt.NDArray[np.uint16],
    nuance_bits: npt.NDArray[np.uint32],
    n_sentences: npt.NDArray[np.int32],
    n_words: npt.NDArray[np.int32],
    is_short: npt.NDArray[np.uint8],
) -> None: ...
def text_detail(scorer: Scorer, text: bytes) -> _TextDetail: ...
def domain_sums(scorer: Scorer, column: StringColumn) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]: ...
def sentiment_compounds(column: StringColumn) -> npt.NDArray[np.float64]: ...
def hashed_features(column: StringColumn, dim: int) -> npt.NDArray[np.float32]: ...
def with_cross_domain(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint16]: ...
def split_and_hash(column: StringColumn) -> int: ...
def segment_rows(column: StringColumn) -> tuple[int, int, int]: ...
