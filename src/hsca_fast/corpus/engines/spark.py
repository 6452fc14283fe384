"""Partitions as Spark tasks, and Spark dataframes."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from hsca_fast._native.inputs import thread_count
from hsca_fast.corpus.arrow import ArrowScorer
from hsca_fast.corpus.engines import EngineError, failed
from hsca_fast.corpus.partition import Partition, PartitionResult, PartitionScorer, read_receipt, result_from_json

# A worker that dies fails its task; a local Spark would give up at the first, a cluster has its own setting.
_ATTEMPTS = 4


def run(
    score: PartitionScorer, partitions: Sequence[Partition], *, workers: int, address: str | None
) -> Generator[PartitionResult, None, None]:
    """One task a partition, on the master at `address`, or in the session in use, or on `workers` new processes.

    Spark tells the results of a job when all of it is done. A task that keeps failing fails the job: what its other
    tasks had done is then found by their receipts.
    """
    session, is_ours = _session(score, workers, address)
    try:
        work = session.range(0, len(partitions), 1, len(partitions)).mapInArrow(
            _Tasks(score, partitions), "result string"
        )
        try:
            rows = work.collect()
        except Exception as error:  # py4j's, Spark's or Connect's
            for partition in partitions:
                receipt = read_receipt(partition.target)
                is_done = receipt is not None and receipt.job == score.job and receipt.is_of(partition)
                yield replace(receipt.result) if receipt is not None and is_done else failed(partition, error)
            return
        yield from (result_from_json(json.loads(row.result)) for row in rows)
    finally:
        if is_ours:
            session.stop()


class _Tasks:
    """Row numbers in, results out."""

    def __init__(self, score: PartitionScorer, partitions: Sequence[Partition]) -> None:
        self._score, self._partitions = score, partitions

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for i in batch.column(0).to_pylist():
                yield pa.record_batch({"result": [json.dumps(asdict(self._score(self._partitions[i])))]})


def _session(score: PartitionScorer, workers: int, address: str | None) -> tuple[Any, bool]:
    """The session to use, and whether it is ours to stop."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None and address is None:
        return active, False
    if not (os.environ.get("JAVA_HOME") or shutil.which("java") or (address or "").startswith("sc://")):
        raise EngineError("Spark needs a Java runtime: install one, or set JAVA_HOME")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers must find this package
    builder = SparkSession.builder.appName("hsca score").config("spark.ui.showConsoleProgress", "false")
    if (address or "").startswith("sc://"):
        builder = builder.remote(address)
    else:
        builder = builder.master(address or f"local[{workers},{_ATTEMPTS}]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.task.cpus", thread_count(score.scorer.threads) if address else 1)
    try:
        return builder.getOrCreate(), active is None
    except Exception as error:
        raise EngineError(f"Spark cannot be started or reached: {error}") from error


def map_frame(frame: Any, scorer: ArrowScorer | None = None) -> Any:
    """A Spark DataFrame with the score columns, by `mapInArrow`. Spark has no unsigned types: bits are wider integers.

    Examples
    --------
    `map_frame(spark.read.parquet("s3a://bucket/corpus/")).write.parquet("s3a://bucket/scored/")`
    """
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    rows = _Rows(ArrowScorer() if scorer is None else scorer)
    schema = rows.schema(to_arrow_schema(frame.schema))
    return frame.mapInArrow(rows, from_arrow_schema(schema))


class _Rows:
    """The scorer, in types that Spark has."""

    def __init__(self, scorer: ArrowScorer) -> None:
        self._scorer = scorer

    def schema(self, schema: Any) -> Any:
        import pyarrow as pa

        signed = {pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
        return pa.schema([field.with_type(signed.get(field.type, field.type)) for field in self._scorer.schema(schema)])

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            schema = self.schema(batch.schema)
            for scored in self._scorer.iter_batches([batch]):
                yield scored.cast(schema)
