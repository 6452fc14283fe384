"""Partitions as Dask tasks, and Dask dataframes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from typing import Any

from hsca_fast.corpus.arrow import ArrowScorer, listing
from hsca_fast.corpus.engines import EngineError, failed
from hsca_fast.corpus.partition import Partition, PartitionResult, PartitionScorer


def run(
    score: PartitionScorer, partitions: Sequence[Partition], *, workers: int, address: str | None
) -> Generator[PartitionResult, None, None]:
    """One task a partition, on the cluster at `address`, or on the client in use, or on `workers` new processes.

    A partition whose worker dies is tried again on another, as often as the cluster's `allowed-failures` says.
    """
    from distributed import as_completed

    with ExitStack() as stack:
        client = _client(stack, workers, address)
        n_threads = sum(client.nthreads().values())
        n_at_once = 2 * max(1, n_threads, workers)
        coming = as_completed([])
        waiting = list(reversed(partitions))
        running: dict[str, Partition] = {}
        while waiting or running:
            while waiting and len(running) < n_at_once:
                partition = waiting.pop()
                future = client.submit(score, partition, pure=False)
                running[future.key] = partition
                coming.add(future)
            future = next(coming)
            partition = running.pop(future.key)
            error = future.exception()
            yield failed(partition, error) if error is not None else future.result()


def _client(stack: ExitStack, workers: int, address: str | None) -> Any:
    from distributed import Client, LocalCluster, get_client

    if address is not None:
        try:
            return stack.enter_context(Client(address, timeout="10s"))
        except (OSError, ValueError) as error:
            raise EngineError(f"no Dask scheduler can be reached at {address!r}: {error}") from error
    try:
        return get_client()
    except ValueError:  # there is none
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None)
        return stack.enter_context(Client(stack.enter_context(cluster)))


def map_frame(frame: Any, scorer: ArrowScorer | None = None) -> Any:
    """A `dask.dataframe.DataFrame` with the score columns, partition by partition.

    Examples
    --------
    `map_frame(dask.dataframe.read_parquet("s3://bucket/corpus/")).to_parquet("s3://bucket/scored/")`
    """
    scorer = ArrowScorer() if scorer is None else scorer
    return frame.map_partitions(score_frame, scorer, meta=score_frame(frame._meta, scorer))


def score_frame(frame: Any, scorer: ArrowScorer) -> Any:
    """A pandas DataFrame with the score columns, in pandas' Arrow types, which know nulls."""
    import pandas as pd
    import pyarrow as pa

    if scorer.text_column not in frame.columns:
        raise ValueError(f"no column {scorer.text_column!r}; it has {listing(map(str, frame.columns))}")
    texts = pa.table({scorer.text_column: pa.array(frame[scorer.text_column], pa.large_string(), from_pandas=True)})
    scores = scorer(texts).drop_columns([scorer.text_column])
    return frame.assign(**scores.to_pandas(types_mapper=pd.ArrowDtype).set_index(frame.index))
