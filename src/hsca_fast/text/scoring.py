"""Scores of many texts at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast._native import arrow as _arrow
from hsca_fast._native import text as _native
from hsca_fast._native.inputs import Texts, text_rows, thread_count
from hsca_fast._native.strings import StringColumn
from hsca_fast.config import ScoringConfig
from hsca_fast.ids import random_ids
from hsca_fast.text import models
from hsca_fast.text.kernel import native_scorer
from hsca_fast.text.supervisor import Failures, ModelFailure, warn_of
from hsca_fast.types import SHORT_CHUNK, DomainTag, NuanceFlag, WeightedChunk

# What the kernel always looks for; the rest needs a model.
ASSESSED = (
    NuanceFlag.EMOTIONAL_TONE_POSITIVE,
    NuanceFlag.EMOTIONAL_TONE_NEGATIVE,
    NuanceFlag.EMOTIONAL_TONE_URGENT,
    NuanceFlag.EMOTIONAL_TONE_NEUTRAL,
    NuanceFlag.RHETORICAL_QUESTION,
    NuanceFlag.ANALOGY,
    NuanceFlag.HEDGED,
    NuanceFlag.ABSOLUTE,
    NuanceFlag.INSTRUCTIONAL,
)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBatch:
    """Scores of a batch, one row a text, as numpy columns; also an Arrow table through `__arrow_c_stream__`.

    Attributes
    ----------
    layer1_score
        Relational weight in [0, 1].
    coherence_score
        Whether the text reads as intended text, in [0, 1].
    domain_bits
        Bit i is the i-th `DomainTag`; `domain_tags(i)` has the names.
    nuance_bits
        Bit i is the i-th `NuanceFlag`; `nuance_flags(i)` has the names.
    assessed_bits
        The flags that were looked for, row by row. A flag outside of them is unknown, not false.
    sentiment_score
        Mean of the sentences' VADER compounds, in [-1, 1].
    n_sentences, n_words
        What the segmenter found.
    short_chunk
        Fewer than three distinct sentences: too little structure to judge, so `layer1_score` is a flat low value.
    valid
        False where an Arrow input row was null; its scores are 0 and come out of Arrow as nulls.
    replaced
        How many lone surrogates were read as U+FFFD.
    failures
        What went wrong inside of models, with the number of texts that it left without an answer.
    """

    layer1_score: npt.NDArray[np.float64]
    coherence_score: npt.NDArray[np.float64]
    domain_bits: npt.NDArray[np.uint16]
    nuance_bits: npt.NDArray[np.uint32]
    assessed_bits: npt.NDArray[np.uint32]
    sentiment_score: npt.NDArray[np.float64]
    n_sentences: npt.NDArray[np.int32]
    n_words: npt.NDArray[np.int32]
    short_chunk: npt.NDArray[np.bool_]
    valid: npt.NDArray[np.bool_]
    texts: Sequence[str]
    replaced: int = 0
    failures: tuple[ModelFailure, ...] = ()

    def __len__(self) -> int:
        return len(self.layer1_score)

    def domain_tags(self, i: int) -> list[str]:
        """Names of row i's domains."""
        return bit_names(DomainTag, self.domain_bits[i])

    def nuance_flags(self, i: int) -> list[str]:
        """Names of row i's nuance flags; see `assessed` before taking a missing one for false."""
        return bit_names(NuanceFlag, self.nuance_bits[i])

    @property
    def assessed(self) -> frozenset[NuanceFlag]:
        """The flags that were looked for in every valid row; others are unknown."""
        rows = self.assessed_bits[self.valid]
        bits = int(np.bitwise_and.reduce(rows)) if len(rows) else flag_bits(ASSESSED)
        return frozenset(flag for i, flag in enumerate(NuanceFlag) if bits >> i & 1)

    @property
    def warnings(self) -> tuple[str, ...]:
        """`failures` in words."""
        return tuple(map(str, self.failures))

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The score columns by name, in output order."""
        return {
            "layer1_score": self.layer1_score,
            "coherence_score": self.coherence_score,
            "domain_bits": self.domain_bits,
            "nuance_bits": self.nuance_bits,
            "assessed_bits": self.assessed_bits,
            "sentiment_score": self.sentiment_score,
            "n_sentences": self.n_sentences,
            "n_words": self.n_words,
            "short_chunk": self.short_chunk,
        }

    def to_chunks(self, *, created_at: float | None = None) -> list[WeightedChunk]:
        """A `WeightedChunk` of every valid row, with a new random id; `created_at` None is now."""
        now = time.time() if created_at is None else created_at
        return list(self.iter_chunks(clock=lambda: now))

    def iter_chunks(self, *, clock: Callable[[], float] = time.time) -> Iterator[WeightedChunk]:
        """The chunks of `to_chunks` one after the other; `clock` is asked for the time of each."""
        rows = np.flatnonzero(self.valid).tolist()
        domains, nuances = _NamesOfBits(DomainTag), _NamesOfBits(NuanceFlag)
        layer1, coherence = self.layer1_score.tolist(), self.coherence_score.tolist()
        domain_bits, nuance_bits = self.domain_bits.tolist(), self.nuance_bits.tolist()
        is_short, texts = self.short_chunk.tolist(), self.texts
        for i, chunk_id in zip(rows, random_ids(len(rows)), strict=True):
            flags = [*nuances[nuance_bits[i]], SHORT_CHUNK] if is_short[i] else [*nuances[nuance_bits[i]]]
            yield WeightedChunk(
                chunk_id, texts[i], layer1[i], [*domains[domain_bits[i]]], coherence[i], flags, None, clock()
            )

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
        formats = {"f8": b"g", "i4": b"i", "u4": b"I", "u2": b"S", "b1": b"b"}
        columns: list[tuple[bytes, bytes, list[Any], list[Any], int]] = []
        for name, column in self.columns().items():
            data = np.packbits(column, bitorder="little") if column.dtype == np.bool_ else column
            columns.append((name.encode(), formats[column.dtype.str[1:]], [validity, data], [], len(self)))
        return _arrow.export_stream(columns, len(self))


def bit_names(names: type[Enum], bits: int | np.unsignedinteger[Any]) -> list[str]:
    """The values of the members whose bit is set."""
    return [member.value for i, member in enumerate(names) if int(bits) >> i & 1]


class _NamesOfBits(dict[int, list[str]]):
    """`bit_names`, worked out once for each value of the bits."""

    def __init__(self, names: type[Enum]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, bits: int) -> list[str]:
        self[bits] = names = bit_names(self._names, bits)
        return names


def flag_bits(flags: Iterable[NuanceFlag]) -> int:
    """The bits of `flags`."""
    order = list(NuanceFlag)
    return sum(1 << order.index(flag) for flag in flags)


def score_texts(texts: Texts, *, config: ScoringConfig | None = None, threads: int = 1) -> ScoreBatch:
    """Score every text of a batch: layers 1 to 3.

    Parameters
    ----------
    texts
        A sequence of str, a numpy array of strings, or an Arrow string column (anything with `__arrow_c_stream__` or
        `__arrow_c_array__`: pyarrow, polars, pandas, DuckDB), which is read in place.
    config
        Options of the scorer; the default is `ScoringConfig()`.
    threads
        Worker threads; 0 takes every usable CPU. The result is the same for every number. Models run in one.

    Raises
    ------
    TypeError
        A row is not a str, or an Arrow column holds no strings.

    Warns
    -----
    ModelWarning
        A model given in `config` failed; what it left out is unclassified or not assessed.

    Examples
    --------
    >>> batch = score_texts(["A cat sat. The cat ate fish. Fish feed every cat.", ""])
    >>> len(batch), batch.n_sentences.tolist(), batch.layer1_score[1], batch.domain_tags(1)
    (2, [3, 0], np.float64(0.0), ['unclassified'])
    """
    batch = score_silently(texts, config, threads)
    warn_of(batch.failures)
    return batch


def score_silently(texts: Texts, config: ScoringConfig | None = None, threads: int = 1) -> ScoreBatch:
    """`score_texts` for callers that tell of the failures of models themselves."""
    config = ScoringConfig() if config is None else config
    if not isinstance(config, ScoringConfig):
        raise TypeError(f"config must be a ScoringConfig, not {type(config).__name__}")
    n_threads = thread_count(threads)
    rows, columns = text_rows(texts)
    return _score(columns, rows, config, n_threads)


def score_text(text: str, *, config: ScoringConfig | None = None) -> WeightedChunk:
    """Score one text.

    Examples
    --------
    >>> chunk = score_text("You might want to wait. Perhaps the rain will stop.")
    >>> "hedged" in chunk.nuance_flags
    True
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be str, not {type(text).__name__}")
    batch = score_silently([text], config)
    warn_of(batch.failures)
    return batch.to_chunks()[0]


def _score(
    slices: Iterable[tuple[int, StringColumn]], texts: Sequence[str], config: ScoringConfig, threads: int
) -> ScoreBatch:
    """One batch of all `texts` from consecutive slices, each given with the number of its first row."""
    n = len(texts)
    layer1, coherence, sentiment = np.zeros(n), np.zeros(n), np.zeros(n)
    domain_bits, nuance_bits = np.zeros(n, np.uint16), np.zeros(n, np.uint32)
    n_sentences, n_words = np.zeros(n, np.int32), np.zeros(n, np.int32)
    is_short = np.zeros(n, np.uint8)
    valid = np.ones(n, np.bool_)
    replaced = 0
    scorer = native_scorer(config)
    for start, column in slices:
        rows = slice(start, start + len(column))
        _native.score_texts(
            scorer,
            column,
            threads,
            layer1[rows],
            coherence[rows],
            sentiment[rows],
            domain_bits[rows],
            nuance_bits[rows],
            n_sentences[rows],
            n_words[rows],
            is_short[rows],
        )
        if column.has_nulls:
            valid[rows] = np.frombuffer(column.validity(), np.uint8)
        replaced += column.replaced
    assessed_bits = np.full(n, flag_bits(ASSESSED), np.uint32)
    failures = Failures()
    _ask_models(config, texts, valid, domain_bits, nuance_bits, assessed_bits, failures)
    for bits in (domain_bits, nuance_bits, assessed_bits):
        bits[~valid] = 0
    return ScoreBatch(
        layer1,
        coherence,
        domain_bits,
        nuance_bits,
        assessed_bits,
        sentiment,
        n_sentences,
        n_words,
        is_short.view(np.bool_),
        valid,
        texts,
        replaced,
        failures.all(),
    )


def _ask_models(
    config: ScoringConfig,
    texts: Sequence[str],
    valid: npt.NDArray[np.bool_],
    domain_bits: npt.NDArray[np.uint16],
    nuance_bits: npt.NDArray[np.uint32],
    assessed_bits: npt.NDArray[np.uint32],
    failures: Failures,
) -> None:
    """Adds what the user's models say."""
    if not config.nuance_models and not isinstance(config.domain_model, models.DomainModel):
        return
    where = np.flatnonzero(valid)
    rows = [texts[i] for i in where.tolist()]
    timeout = config.model_timeout_seconds
    if isinstance(config.domain_model, models.DomainModel):
        domain_bits[where], _ = models.predict_domains(
            config.domain_model,
            rows,
            timeout_seconds=timeout,
            failures=failures,
            add_cross_domain=_native.with_cross_domain,
        )
    if config.nuance_models:
        heads = models.nuance_models_of(config.nuance_models)
        told = models.predict_nuance(heads, rows, timeout_seconds=timeout, failures=failures)
        for i, name in enumerate(models.NUANCE_MODEL_FLAGS):
            bit = np.uint32(flag_bits([NuanceFlag(name)]))
            nuance_bits[where[told.present >> i & 1 == 1]] |= bit
            assessed_bits[where[told.assessed >> i & 1 == 1]] |= bit
