"""One Parquet file of a corpus, scored into another: the unit of work of every engine."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from hsca_fast._native.inputs import thread_count
from hsca_fast.corpus.arrow import ArrowScorer, listing
from hsca_fast.corpus.readers import BATCH_BYTES, InputError, rows_per_batch
from hsca_fast.files import replacing
from hsca_fast.text.supervisor import Failures

if TYPE_CHECKING:
    import pyarrow as pa

# A row group of the output: rows wait for it in memory, and it is the least that readers of the output can take.
GROUP_BYTES = 48 << 20
GROUP_ROWS = 131_072
# The footer of a file that is complete says so under this key: it is written last, and the file is renamed after it.
_RECEIPT = b"hsca_fast"


@dataclass(frozen=True, slots=True)
class Partition:
    """A file of the input, and the file of the output that it becomes.

    Attributes
    ----------
    name
        The path below both directories.
    n_bytes, modified_ns
        Of the input file, by which a change is seen.
    """

    name: str
    source: str
    target: str
    n_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """What became of a partition.

    Attributes
    ----------
    n_rows, n_null, n_replaced
        Rows written, those of them without a text, and characters that stand for bytes that were no UTF-8.
    n_text_bytes
        Bytes of all texts.
    damaged
        Row groups of the input that could not be read and are not in the output, with their rows and the reason.
    warnings
        Of models that failed.
    error
        Why nothing was written; empty if the partition is complete.
    is_output_error
        The error is one of writing, which the next partition would meet too.
    was_done
        An earlier run had written it.
    """

    name: str
    n_rows: int = 0
    n_null: int = 0
    n_replaced: int = 0
    n_text_bytes: int = 0
    seconds: float = 0.0
    damaged: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str = ""
    is_output_error: bool = False
    was_done: bool = False

    @property
    def problems(self) -> tuple[str, ...]:
        """The error, or the damage."""
        return (self.error,) if self.error else self.damaged


class _DamagedGroupError(Exception):
    pass


class _OutputError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class PartitionScorer:
    """Scores partitions one at a time; holds options only, so that engines can send it to their workers.

    Attributes
    ----------
    columns
        The columns of the input that are written before the scores; None: all.
    strict
        A damaged row group fails its partition instead of being left out.
    job
        Names the settings; kept in the output, so that another run can tell whether it would have written the same.
    """

    scorer: ArrowScorer
    columns: tuple[str, ...] | None = None
    strict: bool = False
    job: str = ""

    def __call__(self, partition: Partition, stop: threading.Event | None = None) -> PartitionResult:
        """Write the scored partition: all of it under its name, or nothing. What went wrong is told in the result.

        Once `stop` is set, nothing more is scored.
        """
        import pyarrow as pa

        started = time.monotonic()
        try:
            try:
                result = self._run(partition, {}, stop)
            except _DamagedGroupError:
                if self.strict:
                    raise
                # Some rows of the damaged group may be written already. Damage is rare, so begin again without it.
                result = self._run(partition, self._damaged_groups(partition), stop)
        except _OutputError as error:
            return PartitionResult(partition.name, error=f"cannot write it: {error}", is_output_error=True)
        except InputError as error:
            return PartitionResult(partition.name, error=error.reason)
        except (_DamagedGroupError, pa.ArrowException, OSError, TypeError, ValueError, KeyError) as error:
            return PartitionResult(partition.name, error=_reason(error))
        return replace(result, seconds=time.monotonic() - started)

    def check(self, schema: pa.Schema) -> None:
        """Raises if data of this `schema` cannot be scored so."""
        self._written(schema)

    def _run(self, partition: Partition, damaged: Mapping[int, str], stop: threading.Event | None) -> PartitionResult:
        n_rows = n_null = n_replaced = n_text_bytes = 0
        failures = Failures()
        with _open(partition.source) as file:
            schema = self._written(file.schema_arrow)
            groups = [group for group in range(file.num_row_groups) if group not in damaged]
            batches = self._read(file, partition.source, groups)
            with _writing(partition.target, schema, self.scorer.text_column) as writer, ThreadPoolExecutor(1) as reader:
                coming = reader.submit(next, batches, None)
                while (batch := coming.result()) is not None:
                    if stop is not None and stop.is_set():
                        raise InputError(partition.source, "the run was stopped before it was done")
                    coming = reader.submit(next, batches, None)
                    scored, scores = self.scorer.score_batch(batch)
                    writer.write(scored if self.columns is None else scored.select(schema.names))
                    n_rows += len(scores)
                    n_null += len(scores) - int(scores.valid.sum())
                    n_replaced += scores.replaced
                    n_text_bytes += _text_bytes(batch.column(self.scorer.text_column))
                    failures.add_all(scores.failures)
                result = PartitionResult(
                    partition.name,
                    n_rows,
                    n_null,
                    n_replaced,
                    n_text_bytes,
                    damaged=tuple(damaged.values()),
                    warnings=tuple(map(str, failures.all())),
                )
                writer.finish(Receipt(self.job, partition.n_bytes, partition.modified_ns, result))
        return result

    def _written(self, schema: pa.Schema) -> pa.Schema:
        """What is written of data with this `schema`, scores included."""
        import pyarrow as pa

        scored = self.scorer.schema(schema)
        if self.columns is None:
            return scored
        missing = [name for name in self.columns if name not in schema.names]
        if missing:
            raise ValueError(f"no column {missing[0]!r} to keep; it has {listing(schema.names)}")
        fields = [f for f in scored if f.name in self.columns or f.name not in schema.names]
        return pa.schema(fields, scored.metadata)

    def _read(self, file: Any, source: str, groups: Iterable[int]) -> Iterator[pa.RecordBatch]:
        batch_rows = rows_per_batch(file.metadata, BATCH_BYTES * min(thread_count(self.scorer.threads), 8))
        columns = None if self.columns is None else sorted({*self.columns, self.scorer.text_column})
        for group in groups:
            yield from _read_group(file, group, source, batch_rows, columns)

    def _damaged_groups(self, partition: Partition) -> dict[int, str]:
        damaged = {}
        with _open(partition.source) as file:
            for group in range(file.num_row_groups):
                try:
                    for _ in self._read(file, partition.source, [group]):
                        pass
                except _DamagedGroupError as error:
                    damaged[group] = str(error)
            if len(damaged) == file.num_row_groups:
                raise _DamagedGroupError(f"no row group can be read; {damaged[0]}")
        return damaged


def _open(path: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # By default a whole column chunk is read at once, which is often the whole file.
        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False, page_checksum_verification=True)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise InputError(path, f"cannot read it as Parquet: {_reason(error)}") from error


def _read_group(
    file: Any, group: int, source: str, batch_rows: int, columns: list[str] | None
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    n_rows = file.metadata.row_group(group).num_rows
    n_read = 0
    try:
        for batch in file.iter_batches(batch_rows, row_groups=[group], columns=columns, use_threads=False):
            n_read += batch.num_rows
            yield batch
        if n_read != n_rows:
            raise ValueError(f"it holds {n_read:,} rows")
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:  # whatever damage makes pyarrow raise
        if isinstance(error, OSError) and error.errno:
            raise InputError(source, _reason(error)) from error  # the file may be whole; another run may tell
        raise _DamagedGroupError(f"row group {group} ({n_rows:,} rows): {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or " ".join(str(error).split())


def _text_bytes(texts: Any) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        texts = texts.cast(pa.large_string())
    return pc.sum(pc.binary_length(texts)).as_py() or 0


# ---- the output


@dataclass(frozen=True, slots=True)
class Receipt:
    """In the footer of a complete file: what made it."""

    job: str
    n_input_bytes: int
    input_modified_ns: int
    result: PartitionResult

    def is_of(self, partition: Partition) -> bool:
        """Made from the input as it is now."""
        return (self.n_input_bytes, self.input_modified_ns) == (partition.n_bytes, partition.modified_ns)


def read_receipt(path: str) -> Receipt | None:
    """What made this file; None if it is not there, not complete, or not ours."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        fields = json.loads((pq.read_metadata(path).metadata or {})[_RECEIPT])
        return Receipt(**{**fields, "result": result_from_json(fields["result"])})
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException):
        return None


def is_parquet(path: str) -> bool:
    """Whether a Parquet file ends here as it should, whoever wrote it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.read_metadata(path)
    except (OSError, ValueError, pa.ArrowException):
        return False
    return True


def result_from_json(fields: Mapping[str, Any]) -> PartitionResult:
    """The result that `asdict` took apart."""
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    return PartitionResult(**values)


class _Writer:
    """Row groups, each written while the next one is filled."""

    def __init__(self, file: Any, schema: pa.Schema, pool: ThreadPoolExecutor) -> None:
        self._file = file
        self._schema = schema
        self._pool = pool
        self._waiting: list[pa.RecordBatch] = []
        self._n_rows = self._n_bytes = 0
        self._written: Future[None] | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._n_rows += batch.num_rows
        self._n_bytes += batch.nbytes
        if self._n_rows >= GROUP_ROWS or self._n_bytes >= GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        import pyarrow as pa

        group = pa.Table.from_batches(self._waiting, self._schema)
        if self._written is not None:
            self._written.result()
        self._written = self._pool.submit(self._file.write_table, group, row_group_size=group.num_rows or None)
        self._waiting, self._n_rows, self._n_bytes = [], 0, 0

    def finish(self, receipt: Receipt) -> None:
        if self._waiting:
            self._write_group()
        if self._written is not None:
            self._written.result()
        self._file.add_key_value_metadata({_RECEIPT: json.dumps(asdict(receipt))})


@contextmanager
def _writing(path: str, schema: pa.Schema, text_column: str) -> Iterator[_Writer]:
    """A writer to `path`, where a file appears when the block ends without an exception."""
    import pyarrow.parquet as pq

    # Texts hardly repeat: a dictionary of them is built, found too large, and thrown away.
    options = {"use_dictionary": [name for name in schema.names if name != text_column], "write_page_checksum": True}
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with replacing(path) as stream:
            file = pq.ParquetWriter(stream, schema, compression="zstd", **options)
            try:
                with ThreadPoolExecutor(1) as pool:
                    yield _Writer(file, schema, pool)
            except BaseException:
                with suppress(Exception):  # else it would try when it is collected, and complain
                    file.close()
                raise
            file.close()
    except OSError as error:
        raise _OutputError(_reason(error)) from error
