"""Partitions in threads of this process; the kernel and Parquet's coders leave the interpreter's lock alone."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from hsca_fast.corpus.engines import EngineError, failed
from hsca_fast.corpus.partition import Partition, PartitionResult, PartitionScorer


def run(
    score: PartitionScorer, partitions: Sequence[Partition], *, workers: int, address: str | None
) -> Generator[PartitionResult, None, None]:
    """`workers` partitions at a time."""
    if address is not None:
        raise EngineError(f"the engine 'local' has no address, so not {address!r}")
    with ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(score, partition): partition for partition in partitions}
        try:
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    partition = running.pop(future)
                    error = future.exception()
                    yield future.result() if error is None else failed(partition, error)
        finally:
            pool.shutdown(cancel_futures=True)
