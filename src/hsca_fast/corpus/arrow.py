"""The scorer over Arrow tables, as an object that any engine can send to its workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from hsca_fast._native.inputs import ArrowStream, thread_count
from hsca_fast.config import ScoringConfig
from hsca_fast.text.scoring import ScoreBatch, bit_names, score_silently
from hsca_fast.text.supervisor import warn_of
from hsca_fast.types import DomainTag, NuanceFlag

if TYPE_CHECKING:
    import pyarrow as pa

_NAMED: dict[str, tuple[str, type[Enum]]] = {
    "domain_bits": ("domain_tags", DomainTag),
    "nuance_bits": ("nuance_flags", NuanceFlag),
}


@dataclass(frozen=True, slots=True)
class ArrowScorer:
    """Appends the score columns to Arrow data; the same rows come out, in the same order.

    It holds its options only, so it is cheap to pickle; each process builds the kernel's tables when it first scores.
    A null text has null scores.

    Parameters
    ----------
    config
        Options of the scorer; the default is `ScoringConfig()`.
    text_column
        The column of texts: any string type, plain or dictionary-encoded, or nothing but nulls.
    tags
        "list": columns `domain_tags` and `nuance_flags`, list<string>; "bits": `domain_bits` and `nuance_bits`, bit masks.
    threads
        Threads inside one call; 0 takes every usable CPU. Engines run many workers, so 1 is right there.

    Raises
    ------
    ValueError
        There is no such column (the message lists those there are), or a score column is there already.
    TypeError
        The column holds no text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> scored = ArrowScorer()(pa.table({"id": [7, 8], "text": ["A cat sat. The cat ate. Cats eat fish.", None]}))
    >>> scored.column_names[:4], scored["n_sentences"].to_pylist()
    (['id', 'text', 'layer1_score', 'coherence_score'], [3, None])
    """

    config: ScoringConfig | None = None
    _: KW_ONLY
    text_column: str = "text"
    tags: Literal["list", "bits"] = "list"
    threads: int = 1

    def __post_init__(self) -> None:
        if self.config is not None and not isinstance(self.config, ScoringConfig):
            raise TypeError(f"config must be a ScoringConfig, not {type(self.config).__name__}")
        if not isinstance(self.text_column, str):
            raise TypeError(f"text_column must be a str, not {type(self.text_column).__name__}")
        if self.tags not in ("list", "bits"):
            raise ValueError(f"tags must be 'list' or 'bits', not {self.tags!r}")
        thread_count(self.threads)

    def __call__(self, data: ArrowStream | pa.RecordBatch) -> pa.Table:
        """`data` (a table, a record batch, or anything with `__arrow_c_stream__`) as a table with the score columns."""
        table = _table(data)
        columns, scores = self._score(table.schema, table.__getitem__)
        warn_of(scores.failures)
        for name, column in columns.items():
            table = table.append_column(name, column)
        return table

    def iter_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Each record batch with the score columns."""
        for batch in batches:
            scored, scores = self.score_batch(batch)
            warn_of(scores.failures)
            yield scored

    def score_batch(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, ScoreBatch]:
        """A record batch with the score columns, and its scores, without a warning of models that failed."""
        import pyarrow as pa

        columns, scores = self._score(batch.schema, batch.column)
        arrays = [*batch.columns, *columns.values()]
        fields = [*batch.schema, *(pa.field(name, column.type) for name, column in columns.items())]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, batch.schema.metadata)), scores

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of what becomes of data with this `schema`."""
        return self(schema.empty_table()).schema

    def _score(self, schema: pa.Schema, column_of: Any) -> tuple[dict[str, pa.Array], ScoreBatch]:
        import pyarrow as pa

        check_text_column(schema, self.text_column)
        texts = column_of(self.text_column)
        if pa.types.is_dictionary(texts.type):
            texts = texts.cast(texts.type.value_type)
        if pa.types.is_null(texts.type):
            texts = texts.cast(pa.string())
        texts, n_replaced = _valid_utf8(texts)
        scores = score_silently(texts, self.config, self.threads)
        columns = self._columns(scores)
        taken = [name for name in columns if name in schema.names]
        if taken:
            raise ValueError(f"the data has a column {taken[0]!r} already; rename or drop it first")
        return columns, replace(scores, replaced=scores.replaced + n_replaced)

    def _columns(self, scores: ScoreBatch) -> dict[str, pa.Array]:
        import pyarrow as pa

        batch = pa.RecordBatchReader.from_stream(scores).read_next_batch()
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if self.tags == "bits":
            return columns
        return dict(
            (_NAMED[name][0], _name_lists(_NAMED[name][1], getattr(scores, name), scores.valid))
            if name in _NAMED
            else (name, column)
            for name, column in columns.items()
        )


def require_pyarrow() -> None:
    """Raises `ImportError` that names the extra."""
    if find_spec("pyarrow") is None:
        raise ImportError("Arrow data needs pyarrow: pip install 'hsca_fast[arrow]'")


def check_text_column(schema: pa.Schema, name: str) -> None:
    """Raises if `name` is not one column of text."""
    import pyarrow.types as types

    if name not in schema.names:
        raise ValueError(f"no column {name!r}; it has {listing(schema.names)}")
    if schema.names.count(name) > 1:
        raise ValueError(f"more than one column {name!r}")
    kind = schema.field(name).type
    text_type = kind.value_type if types.is_dictionary(kind) else kind
    is_text = types.is_string(text_type) or types.is_large_string(text_type) or types.is_string_view(text_type)
    if not (is_text or types.is_null(text_type)):  # a file whose texts are all null has lost their type
        raise TypeError(f"column {name!r} has type {kind}, expected text")


def listing(names: Iterable[str]) -> str:
    """The first ten names."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:10])
    return f"{shown}, ..." if len(names) > 10 else shown or "no columns"


def decode_replacing(data: bytes) -> tuple[str, int]:
    """The text, and how many characters stand for bytes that are no UTF-8."""
    text = data.decode(errors="replace")
    return text, text.count("\ufffd") - data.count("\ufffd".encode())


def _table(data: ArrowStream | pa.RecordBatch) -> pa.Table:
    require_pyarrow()
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if not isinstance(data, ArrowStream):
        raise TypeError(f"data must be Arrow data (have __arrow_c_stream__), not {type(data).__name__}")
    return pa.table(data)


def _valid_utf8(texts: Any) -> tuple[Any, int]:
    """The column, with bad bytes replaced if it has any, and their number; Parquet does not promise UTF-8."""
    import pyarrow as pa

    try:
        texts.validate(full=True)
        return texts, 0
    except pa.ArrowInvalid:
        rows = [None if row is None else decode_replacing(row) for row in texts.cast(pa.large_binary()).to_pylist()]
    clean = pa.array([row and row[0] for row in rows], pa.large_string())
    return clean, sum(row[1] for row in rows if row is not None)


def _name_lists(names: type[Enum], bits: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> pa.Array:
    import pyarrow as pa

    patterns, where = np.unique(bits, return_inverse=True)  # few patterns, many rows
    lists = pa.array([bit_names(names, pattern) for pattern in patterns], pa.list_(pa.string()))
    return lists.take(pa.array(where, mask=None if valid.all() else ~valid))
