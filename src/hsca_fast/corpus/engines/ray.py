"""Partitions as Ray tasks, and Ray datasets.

Tasks, not `ray.data`, run the partitions: a task a file costs milliseconds and its failure names the file, while
`ray.data` takes seconds to plan and cuts and joins the files as it likes. Those who hold a Ray dataset already map it
with `map_dataset`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Generator, Sequence
from typing import Any

from hsca_fast._native.inputs import thread_count
from hsca_fast.corpus.arrow import ArrowScorer
from hsca_fast.corpus.engines import EngineError, failed
from hsca_fast.corpus.partition import Partition, PartitionResult, PartitionScorer

# A worker that dies takes its partition with it: the task is tried again on another.
_RETRIES = 3
_CONNECT_SECONDS = 10.0


def run(
    score: PartitionScorer, partitions: Sequence[Partition], *, workers: int, address: str | None
) -> Generator[PartitionResult, None, None]:
    """One task a partition, on the cluster at `address`, or the one in use, or a new one of `workers` CPUs."""
    import ray

    n_threads = thread_count(score.scorer.threads)
    is_ours = not ray.is_initialized()
    if is_ours:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        _check_reachable(address)
        options: dict[str, Any] = {"address": address} if address else {"num_cpus": workers * n_threads}
        try:
            ray.init(
                **options, include_dashboard=None if address else False, log_to_driver=False, logging_level="error"
            )
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            raise EngineError(f"Ray cannot be started or reached: {error}") from error
    try:
        task = ray.remote(num_cpus=n_threads, max_retries=_RETRIES)(_score)
        shared = ray.put(score)
        # As many tasks as keep every CPU busy; a million at once would weigh on the head node.
        n_at_once = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)) // n_threads)
        waiting = list(reversed(partitions))
        running: dict[Any, Partition] = {}
        while waiting or running:
            while waiting and len(running) < n_at_once:
                partition = waiting.pop()
                running[task.remote(shared, partition)] = partition
            done, _ = ray.wait(list(running))
            for reference in done:
                partition = running.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as error:
                    yield failed(partition, error)
    finally:
        if is_ours:
            ray.shutdown()


def _check_reachable(address: str | None) -> None:
    """Ray itself tries for more than five minutes before it says so."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # "auto", "local", or for Ray to understand
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise EngineError(f"no Ray cluster can be reached at {address!r}: {error}") from error


def _score(score: PartitionScorer, partition: Partition) -> PartitionResult:
    return score(partition)


def map_dataset(dataset: Any, scorer: ArrowScorer | None = None, *, workers: int | None = None) -> Any:
    """A `ray.data.Dataset` with the score columns, made by actors that keep the scorer's tables.

    Parameters
    ----------
    workers
        Actors at a time; None: as many as Ray sees fit.

    Examples
    --------
    `map_dataset(ray.data.read_parquet("s3://bucket/corpus/")).write_parquet("s3://bucket/scored/")`
    """
    import ray

    scorer = ArrowScorer() if scorer is None else scorer
    return dataset.map_batches(
        _Actor,
        fn_constructor_args=(scorer,),
        batch_format="pyarrow",
        batch_size=4096,
        num_cpus=thread_count(scorer.threads),
        compute=ray.data.ActorPoolStrategy(**({"size": workers} if workers else {"min_size": 1})),
    )


class _Actor:
    def __init__(self, scorer: ArrowScorer) -> None:
        self._scorer = scorer

    def __call__(self, table: Any) -> Any:
        return self._scorer(table)
