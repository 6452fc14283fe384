from typing import final

import numpy as np
import numpy.typing as npt

from hsca_fast._native.strings import StringColumn

@final
class WordPiece:
    def __new__(cls, tokens: StringColumn) -> WordPiece: ...
    def __len__(self) -> int: ...
    def encode(self, column: StringColumn) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]: ...

def embed_texts(
    tokenizer: WordPiece,
    rows: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    column: StringColumn,
    threads: int,
    out: npt.NDArray[np.float32],
) -> None: ...
