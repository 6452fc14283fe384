"""Parquet datasets scored file by file, on one machine or many, so that a run that was stopped can go on."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from hsca_fast._native.inputs import thread_count
from hsca_fast.config import ScoringConfig
from hsca_fast.corpus.arrow import ArrowScorer, require_pyarrow
from hsca_fast.corpus.engines import EngineError
from hsca_fast.corpus.engines import engine as engine_named
from hsca_fast.corpus.partition import Partition, PartitionResult, PartitionScorer, is_parquet, read_receipt
from hsca_fast.corpus.readers import InputError, display_name, find_files
from hsca_fast.files import replacing
from hsca_fast.text.models import nuance_models_of

# Readers of Parquet datasets pass over names that begin with an underscore.
MANIFEST = "_hsca_manifest.json"
_EXTENSION = ".parquet"
_TEMPORARY = re.compile(r"\..+\.\d+\.\d+\.tmp")  # as `replacing` names them
_FOOTERS_AT_ONCE = 16


class OutputExistsError(Exception):
    """An output directory that holds what this run would not have written."""


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """What became of every partition, in order of name.

    Attributes
    ----------
    partitions
        Done and failed; every file of the input is here.
    seconds
        Of this run.
    """

    partitions: tuple[PartitionResult, ...]
    seconds: float

    @property
    def failed(self) -> tuple[PartitionResult, ...]:
        """Partitions of which nothing was written."""
        return tuple(result for result in self.partitions if result.error)

    @property
    def damaged(self) -> tuple[PartitionResult, ...]:
        """Partitions that were written without some damaged row groups."""
        return tuple(result for result in self.partitions if result.damaged)

    @property
    def n_rows(self) -> int:
        """Rows of the output."""
        return sum(result.n_rows for result in self.partitions)

    @property
    def n_null(self) -> int:
        """Rows without a text."""
        return sum(result.n_null for result in self.partitions)

    @property
    def n_replaced(self) -> int:
        """Characters that stand for bytes that were no UTF-8."""
        return sum(result.n_replaced for result in self.partitions)

    def n_text_bytes(self, *, this_run: bool = False) -> int:
        """Bytes of the texts scored, by `this_run` or by all."""
        return sum(result.n_text_bytes for result in self.partitions if not (this_run and result.was_done))


def score_dataset(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    scorer: ArrowScorer | None = None,
    engine: str = "local",
    workers: int = 1,
    address: str | None = None,
    columns: Sequence[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    strict: bool = False,
    progress: Callable[[PartitionResult], None] | None = None,
) -> DatasetReport:
    """Score the Parquet files of `source` into files of the same names below `output`.

    A file is a partition. Its output appears complete or not at all, with a receipt in its footer that says from what
    input and by what settings it was made; by this a later run with `resume` knows what is done. Results do not depend
    on the engine nor on the number of workers.

    Parameters
    ----------
    source
        Directories, of which all .parquet files are taken with their subdirectories, or files.
    output
        A directory, which all workers must be able to write under the same path.
    scorer
        The default is `ArrowScorer()`.
    engine
        "local" (threads), "ray", "dask" or "spark".
    workers
        Partitions at a time, each with the scorer's `threads`; 0: as many as there are CPUs here. A cluster at `address`
        has its own number.
    address
        Of a running cluster; None starts one on this machine, or joins the one this process is connected to.
    columns
        The columns of the input to write beside the scores; None: all.
    resume
        Do what an earlier run with the same settings has not done.
    overwrite
        Remove what earlier runs have written to `output`.
    strict
        Stop at the first partition that fails, a damaged row group included. Else the rest goes on.
    progress
        Called with each result.

    Raises
    ------
    InputError
        There is nothing to read, the first file has no such column, or, with `strict`, the first failure.
    OutputExistsError
        `output` is not empty and neither `resume` nor `overwrite` was given, or holds what cannot be left there.
    EngineError
        The engine is not installed or cannot be started.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> folder = tempfile.TemporaryDirectory()
    >>> os.mkdir(f"{folder.name}/in")
    >>> pq.write_table(pa.table({"text": ["Rain fell. The rain was cold.", None]}), f"{folder.name}/in/a.parquet")
    >>> report = score_dataset(f"{folder.name}/in", f"{folder.name}/out")
    >>> report.n_rows, report.n_null, pq.read_table(f"{folder.name}/out/a.parquet")["n_sentences"].to_pylist()
    (2, 1, [2, None])
    >>> score_dataset(f"{folder.name}/in", f"{folder.name}/out", resume=True).partitions[0].was_done
    True
    >>> folder.cleanup()
    """
    require_pyarrow()
    started = time.monotonic()
    if resume and overwrite:
        raise ValueError("resume and overwrite exclude each other")
    n_workers = thread_count(workers)
    if engine == "local" and address is not None:
        raise EngineError(f"the engine 'local' has no address, so not {address!r}")
    run = engine_named(engine)
    scorer = ArrowScorer() if scorer is None else scorer
    kept = None if columns is None else tuple(columns)
    output = os.path.abspath(output)
    partitions = find_partitions([source] if isinstance(source, (str, os.PathLike)) else source, output)
    settings = _settings(scorer, kept)
    job = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:32]
    score = PartitionScorer(scorer, kept, strict, job)
    _check_first(score, partitions[0])
    done = _prepare(output, partitions, job, resume=resume, overwrite=overwrite)
    # The largest first: what is started last decides when all is done.
    todo = sorted((p for p in partitions if p.name not in done), key=lambda p: (-p.n_bytes, p.name))
    results: dict[str, PartitionResult] = {}
    try:
        with closing(run(score, todo, workers=n_workers, address=address)) if todo else nullcontext(()) as running:
            for result in chain(done.values(), running):
                results[result.name] = result
                if progress is not None:
                    progress(result)
                if result.is_output_error:
                    raise OSError(f"{result.name}: {result.error}")
                if strict and result.problems:
                    raise InputError(result.name, result.problems[0])
        for partition in todo:  # whatever an engine may have swallowed
            results.setdefault(partition.name, PartitionResult(partition.name, error="the engine ended without it"))
    finally:
        _remove_temporary(output)
        if results:  # else the engine did not start, and the directory stays as it was
            _write_manifest(output, settings, results)
    return DatasetReport(tuple(results[name] for name in sorted(results)), time.monotonic() - started)


def find_partitions(sources: Sequence[str | os.PathLike[str]], output: str) -> list[Partition]:
    """The files of `sources` in order, each with its place below `output`."""
    partitions: dict[str, Partition] = {}
    for given in sources:
        path = os.path.abspath(given)
        if os.path.commonpath([path, output]) in (path, output):
            raise ValueError(f"{output!r} and {path!r} lie in one another; the output would be taken for input")
        is_folder = os.path.isdir(path)
        root = path if is_folder else os.path.dirname(path)
        files = [f for f in find_files([path], on_error=_pass_over) if not is_folder or _is_parquet(f)]
        if not files:
            raise InputError(display_name(os.fspath(given)), f"no {_EXTENSION} files in this directory")
        for file in files:
            relative = os.path.relpath(file, root)
            name = display_name(relative)
            if name in partitions:
                raise ValueError(f"{partitions[name].source!r} and {file!r} would both be written to {name!r}")
            try:
                found = os.stat(file)
            except OSError as error:
                raise InputError(display_name(file), error.strerror or str(error)) from error
            partitions[name] = Partition(name, file, os.path.join(output, relative), found.st_size, found.st_mtime_ns)
    if not partitions:
        raise ValueError("source is empty")
    return list(partitions.values())


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(_EXTENSION)


def _pass_over(error: InputError) -> None:
    # What cannot be listed would be a hole in the output; a directory without files is told with our extension.
    if "no files" not in error.reason:
        raise error


def _check_first(score: PartitionScorer, partition: Partition) -> None:
    """A wrong column is better told before a cluster is started."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(partition.source)
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return  # told when its turn comes
    try:
        score.check(schema)
    except (TypeError, ValueError) as error:
        raise InputError(partition.name, str(error)) from error


def _prepare(
    output: str, partitions: Sequence[Partition], job: str, *, resume: bool, overwrite: bool
) -> dict[str, PartitionResult]:
    """Make `output` ready, and find what is done already."""
    try:
        os.makedirs(output, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(error.errno, "it is a file, and a directory is needed", output) from error
    if os.listdir(output) and not (resume or overwrite):
        raise OutputExistsError(f"{output} is not empty: resume to go on with it, overwrite to begin again")
    _remove_temporary(output)
    planned = {partition.target: partition for partition in partitions}
    found = [path for path in _files(output) if _is_parquet(path) or path in planned]
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        receipts = dict(zip(found, pool.map(read_receipt, found), strict=True))
    if overwrite:
        for path, receipt in receipts.items():
            if receipt is None:
                raise OutputExistsError(f"{path} is not the work of an earlier run; remove it first")
        for path in receipts:
            os.unlink(path)
        return {}
    done = {}
    for path, receipt in receipts.items():
        if path not in planned:
            raise OutputExistsError(f"{path} has no file of the input that it could come from; remove it first")
        if receipt is None:
            if is_parquet(path):  # ours are whole only with a receipt
                raise OutputExistsError(f"{path} is not the work of an earlier run; remove it first")
            continue  # half of a file; it will be replaced
        if receipt.job != job:
            raise OutputExistsError(f"{path} was scored with other settings (see {MANIFEST}); overwrite to begin again")
        if receipt.is_of(planned[path]):
            done[receipt.result.name] = replace(receipt.result, was_done=True)
    return done


def _files(folder: str) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(parent, name)


def _remove_temporary(output: str) -> None:
    """What workers left that were killed; one that still writes there would fail at its rename."""
    for path in _files(output):
        if _TEMPORARY.fullmatch(os.path.basename(path)):
            with suppress(OSError):
                os.unlink(path)


def _settings(scorer: ArrowScorer, columns: tuple[str, ...] | None) -> dict[str, Any]:
    """All that the output depends on besides the input."""
    config = ScoringConfig() if scorer.config is None else scorer.config
    return {
        "hsca_fast": version("hsca_fast"),
        "text_column": scorer.text_column,
        "tags": scorer.tags,
        "columns": columns,
        "window": config.window,
        "domain_model": _model_settings(config.domain_model),
        "nuance_models": [_model_settings(model) for model in nuance_models_of(config.nuance_models)],
        "lexicons": [_digest(repr(lexicon).encode()) for lexicon in config.lexicons],
    }


def _model_settings(model: object) -> list[Any]:
    source = getattr(model, "source", model)
    content = ""
    if isinstance(source, Path):
        with suppress(OSError):  # told when texts are scored
            content = _digest(source.read_bytes())
    name = str(source) if isinstance(source, (str, Path)) else getattr(source, "__qualname__", type(source).__name__)
    return [name, content, getattr(model, "flag", None), getattr(model, "threshold", None)]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _write_manifest(output: str, settings: dict[str, Any], results: dict[str, PartitionResult]) -> None:
    """For people; what is done is told by the files themselves."""
    rows = [asdict(results[name]) for name in sorted(results)]
    with replacing(os.path.join(output, MANIFEST)) as stream:
        stream.write(json.dumps({"settings": settings, "partitions": rows}, indent=1).encode())
