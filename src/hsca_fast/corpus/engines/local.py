"""Partitions in threads of this process; the kernel and Parquet's coders leave the interpreter's lock alone."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from hsca_fast.corpus.engines import EngineError, failed
from hsca_fast.corpus.partition import Partition, PartitionResult, PartitionScorer


def run(
    score: PartitionScorer, partitions: Sequence[Partition], *, workers: int, address: str | None
) -> Generator[PartitionResult, None, None]:
    """`workers` partitions at a time; when the caller leaves, those under way stop at their next batch."""
    if address is not None:
        raise EngineError(f"the engine 'local' has no address, so not {address!r}")
    waiting = list(reversed(partitions))
    running: dict[Future[PartitionResult], Partition] = {}
    stop = threading.Event()
    with ThreadPoolExecutor(workers) as pool:
        try:
            while waiting or running:
                # As many as keep every worker busy: to wait for some of a million takes long each time.
                while waiting and len(running) < 2 * workers:
                    partition = waiting.pop()
                    running[pool.submit(score, partition, stop)] = partition
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    partition = running.pop(future)
                    error = future.exception()
                    yield future.result() if error is None else failed(partition, error)
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
