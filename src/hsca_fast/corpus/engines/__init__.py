"""Who runs the partitions of a corpus: this process, or a cluster.

Each module has `run(score, partitions, *, workers, address)`, which yields a result for each partition as it is done,
and for what a cluster's own tables need, a function that maps them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from importlib import import_module
from importlib.util import find_spec

from hsca_fast.corpus.partition import Partition, PartitionResult

ENGINES = ("local", "ray", "dask", "spark")
_MODULES = {"ray": ("ray",), "dask": ("dask", "distributed"), "spark": ("pyspark",)}

Run = Callable[..., Generator[PartitionResult, None, None]]


class EngineError(RuntimeError):
    """An engine that is not installed or cannot be started."""


def engine(name: str) -> Run:
    """The `run` of an engine; raises `EngineError` that names the extra if it is not installed."""
    if name not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {name!r}")
    missing = [module for module in _MODULES.get(name, ()) if find_spec(module) is None]
    if missing:
        raise EngineError(f"the engine {name!r} needs {missing[0]}: pip install 'hsca_fast[{name}]'")
    run: Run = import_module(f"hsca_fast.corpus.engines.{name}").run
    return run


def failed(partition: Partition, error: BaseException) -> PartitionResult:
    """The result of a partition whose worker raised or died."""
    reason = " ".join(str(error).split())[:500]
    return PartitionResult(partition.name, error=f"its worker failed: {type(error).__name__}: {reason}")
