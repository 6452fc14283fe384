"""Scores of many texts at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import arrow as _arrow
from hsca_fast._native import text as _native
from hsca_fast._native.inputs import Texts, string_columns, thread_count
from hsca_fast._native.strings import StringColumn
from hsca_fast.config import ScoringConfig


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBatch:
    """Scores of a batch, one row a text, as numpy columns; also an Arrow table through `__arrow_c_stream__`.

    Attributes
    ----------
    layer1_score
        Relational weight in [0, 1].
    n_sentences, n_words
        What the segmenter found.
    short_chunk
        Fewer than three distinct sentences: too little structure to judge, so `layer1_score` is a flat low value.
    valid
        False where an Arrow input row was null; its scores are 0 and come out of Arrow as nulls.
    replaced
        How many lone surrogates were read as U+FFFD.
    """

    layer1_score: npt.NDArray[np.float64]
    n_sentences: npt.NDArray[np.int32]
    n_words: npt.NDArray[np.int32]
    short_chunk: npt.NDArray[np.bool_]
    valid: npt.NDArray[np.bool_]
    replaced: int = 0

    def __len__(self) -> int:
        return len(self.layer1_score)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The score columns by name, in output order."""
        return {
            "layer1_score": self.layer1_score,
            "n_sentences": self.n_sentences,
            "n_words": self.n_words,
            "short_chunk": self.short_chunk,
        }

    def to_dict(self) -> dict[str, list[Any]]:
        """Plain lists by column name; None in the rows that are not valid."""
        rows = {name: column.tolist() for name, column in self.columns().items()}
        for i in np.flatnonzero(~self.valid).tolist():
            for values in rows.values():
                values[i] = None
        return rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """One record batch; numeric columns are handed over in place."""
        validity = None if self.valid.all() else np.packbits(self.valid, bitorder="little")
        formats = {"f": b"g", "i": b"i", "b": b"b"}
        columns: list[tuple[bytes, bytes, list[Any], list[Any], int]] = []
        for name, column in self.columns().items():
            data = np.packbits(column, bitorder="little") if column.dtype == np.bool_ else column
            columns.append((name.encode(), formats[column.dtype.kind], [validity, data], [], len(self)))
        return _arrow.export_stream(columns, len(self))


def score_texts(texts: Texts, *, config: ScoringConfig | None = None, threads: int = 1) -> ScoreBatch:
    """Score every text of a batch.

    Parameters
    ----------
    texts
        A sequence of str, a numpy array of strings, or an Arrow string column (anything with `__arrow_c_stream__` or
        `__arrow_c_array__`: pyarrow, polars, pandas, DuckDB), which is read in place.
    config
        Options of the scorer; the default is `ScoringConfig()`.
    threads
        Worker threads; 0 takes every usable CPU. The result is the same for every number.

    Raises
    ------
    TypeError
        A row is not a str, or an Arrow column holds no strings.

    Examples
    --------
    >>> batch = score_texts(["A cat sat. The cat ate fish. Fish feed every cat.", ""])
    >>> len(batch), batch.n_sentences.tolist(), batch.layer1_score[1]
    (2, [3, 0], np.float64(0.0))
    """
    config = ScoringConfig() if config is None else config
    if not isinstance(config, ScoringConfig):
        raise TypeError(f"config must be a ScoringConfig, not {type(config).__name__}")
    n_threads = thread_count(threads)
    n, columns = string_columns(texts)
    return _score(columns, n, config, n_threads)


def _score(slices: Iterable[tuple[int, StringColumn]], n: int, config: ScoringConfig, threads: int) -> ScoreBatch:
    """One batch of `n` rows from consecutive slices, each given with the number of its first row."""
    layer1_score = np.zeros(n, np.float64)
    n_sentences = np.zeros(n, np.int32)
    n_words = np.zeros(n, np.int32)
    is_short = np.zeros(n, np.uint8)
    valid = np.ones(n, np.bool_)
    replaced = 0
    for start, column in slices:
        rows = slice(start, start + len(column))
        _native.score_texts(
            column, config.window, threads, layer1_score[rows], n_sentences[rows], n_words[rows], is_short[rows]
        )
        if column.has_nulls:
            valid[rows] = np.frombuffer(column.validity(), np.uint8)
        replaced += column.replaced
    return ScoreBatch(layer1_score, n_sentences, n_words, is_short.view(np.bool_), valid, replaced)
