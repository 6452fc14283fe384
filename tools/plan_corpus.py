"""How long a corpus takes on N nodes, what decides that, and what it costs, from measured figures.

    python tools/plan_corpus.py --terabytes 1 --nodes 4
    python tools/plan_corpus.py --terabytes 1000 --nodes 250 --storage-gb-per-second 100

The defaults are the figures of docs/scale.md; measure your own with `pytest bench/test_corpus.py` and `hsca score --engine`.
Files are drawn at random with the given spread of sizes and handed, largest first, to whichever worker is free, as
`score_dataset` does.
"""

from __future__ import annotations

import argparse
import heapq
import random
from dataclasses import dataclass

# A simulation of more files than this is done on so much of the corpus and so many of the workers.
MAX_FILES = 200_000


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured, and what is to be planned; sizes are of the texts, uncompressed.

    Attributes
    ----------
    mb_per_second
        Of one worker, Parquet to Parquet.
    stored_share
        Bytes read plus bytes written, compressed, for a byte of text.
    skew
        Standard deviation of the logarithm of the files' sizes: 0 all alike, 1 a long tail.
    file_seconds
        What a file costs however small it is: task, footer, receipt, rename.
    """

    terabytes: float
    nodes: int
    workers: int
    mb_per_second: float
    file_mb: float
    skew: float
    file_seconds: float
    start_seconds: float
    stored_share: float
    storage_gb_per_second: float
    worker_mb: float
    price: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What comes of it, in seconds unless said."""

    n_files: int
    largest_mb: float
    seconds: float
    compute: float
    storage: float
    files: float
    tail: float
    start: float
    node_memory_gb: float
    cost: float

    @property
    def dominant(self) -> str:
        """What most of the time goes to."""
        parts = {
            "scoring": self.compute,
            "storage": self.storage,
            "small files": self.files,
            "skew": self.tail,
            "start": self.start,
        }
        return max(parts, key=lambda name: parts[name])


def plan(figures: Figures, *, seed: int = 0) -> Plan:
    """Simulate the job.

    Workers read and write while they score, so the storage shows only where moving the whole corpus takes longer than
    all else.
    """
    n_files = max(1, round(figures.terabytes * 1e6 / figures.file_mb))
    n_workers = figures.nodes * figures.workers
    scale = min(n_workers, -(-n_files // MAX_FILES))
    n_shown, n_at_work = max(1, n_files // scale), n_workers // scale
    sizes = _sizes(n_shown, figures, seed)
    free = [0.0] * n_at_work
    for size in sizes:
        heapq.heapreplace(free, free[0] + figures.file_seconds + size / figures.mb_per_second)
    busy = max(free)
    compute = sum(sizes) / figures.mb_per_second / n_at_work
    files = n_shown * figures.file_seconds / n_at_work
    moving = figures.terabytes * 1e3 * figures.stored_share / figures.storage_gb_per_second
    seconds = max(busy, moving) + figures.start_seconds
    return Plan(
        n_files,
        sizes[0],
        seconds,
        compute,
        storage=max(0.0, moving - busy),
        files=files,
        tail=busy - compute - files,
        start=figures.start_seconds,
        node_memory_gb=figures.workers * figures.worker_mb / 1e3,
        cost=figures.nodes * figures.price * seconds / 3600,
    )


def _sizes(n: int, figures: Figures, seed: int) -> list[float]:
    """In MB, largest first; their sum is that of the corpus, or of the part that is simulated."""
    draw = random.Random(seed)
    weights = [draw.lognormvariate(0.0, figures.skew) for _ in range(n)]
    factor = n * figures.file_mb / sum(weights)
    return sorted((weight * factor for weight in weights), reverse=True)


def main() -> None:
    """Print the plan."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terabytes", type=float, default=1.0, help="text, uncompressed")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--workers", type=int, default=16, help="of a node: one for each core")
    parser.add_argument("--mb-per-second", type=float, default=33.5, help="of a worker")
    parser.add_argument("--file-mb", type=float, default=512.0, help="text of a file, on average")
    parser.add_argument("--skew", type=float, default=0.5, help="standard deviation of the logarithm of the sizes")
    parser.add_argument("--file-seconds", type=float, default=0.02)
    parser.add_argument("--start-seconds", type=float, default=30.0)
    parser.add_argument("--stored-share", type=float, default=1.05, help="bytes read and written for a byte of text")
    parser.add_argument("--storage-gb-per-second", type=float, default=10.0, help="of all nodes together")
    parser.add_argument("--worker-mb", type=float, default=350.0, help="memory of a worker")
    parser.add_argument("--price", type=float, default=0.70, help="of a node for an hour: an assumption, put in yours")
    args = vars(parser.parse_args())
    node_counts = args.pop("nodes")
    print(f"{args['terabytes']:g} TB in files of {args['file_mb']:g} MB, {args['workers']} workers a node")
    print(
        "nodes    hours  efficiency    scoring  storage  files   skew  start  largest MB  GB a node   price  most goes to"
    )
    for nodes in node_counts:
        found = plan(Figures(nodes=nodes, **args))
        shares = [found.compute, found.storage, found.files, found.tail, found.start]
        print(
            f"{nodes:5} {found.seconds / 3600:8.2f} {found.compute / found.seconds:10.0%}  ",
            "  ".join(f"{part / found.seconds:7.0%}" for part in shares),
            f" {found.largest_mb:10,.0f} {found.node_memory_gb:9.1f} {found.cost:8,.2f}  {found.dominant}",
        )


if __name__ == "__main__":
    main()
