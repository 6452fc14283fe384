"""`hsca score --engine`: Parquet datasets, file by file, on one machine or a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hsca_fast.cli.exit_codes import INPUTS_FAILED, OK, UsageError
from hsca_fast.cli.options import scoring_config, thread_option, warn_of_models
from hsca_fast.cli.progress import FailureLog, Progress

if TYPE_CHECKING:
    from hsca_fast.corpus.partition import PartitionResult

_ENGINES = ("local", "ray", "dask", "spark")
# What is said only of a dataset, and only of single outputs.
_OF_DATASETS = {"workers": None, "address": None, "tags": None, "columns": None, "resume": False, "overwrite": False}
_OF_STREAMS = {"format": None, "input_format": None, "errors": "replace", "chunk_bytes": 4 << 20}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `run` reads."""
    group = parser.add_argument_group(
        "datasets",
        "With --engine, every .parquet file below PATH becomes a file of the same name below the directory OUT, with the "
        "score columns appended. Each appears there complete or not at all, and a run that was stopped can go on.",
    )
    group.add_argument("--engine", choices=_ENGINES, help="who does the work; all give the same output")
    group.add_argument(
        "--workers",
        type=thread_option,
        metavar="N",
        help="files at a time, each with --threads; 0: all usable CPUs (default: 1, or all CPUs of a cluster)",
    )
    group.add_argument("--address", metavar="URL", help="of a running cluster (default: start one on this machine)")
    group.add_argument("--tags", choices=["list", "bits"], help="domains and flags as names (default) or bit masks")
    group.add_argument(
        "--columns",
        metavar="NAMES",
        help="input columns to write beside the scores, with commas between (default: all)",
    )
    group.add_argument(
        "--resume", action="store_true", help="do what an earlier run with the same options has not done"
    )
    group.add_argument("--overwrite", action="store_true", help="remove what earlier runs have written to OUT")


def refuse_options(args: argparse.Namespace) -> None:
    """Without an engine, its options mean nothing."""
    _refuse(args, _OF_DATASETS, "needs --engine")


def _refuse(args: argparse.Namespace, defaults: Mapping[str, object], why: str) -> None:
    for name, default in defaults.items():
        if getattr(args, name) != default:
            raise UsageError(f"--{name.replace('_', '-')} {why}")


def run(args: argparse.Namespace) -> int:
    """Score a dataset as `args` say, and return the exit code."""
    from hsca_fast.corpus.arrow import ArrowScorer
    from hsca_fast.corpus.dataset import OutputExistsError, score_dataset
    from hsca_fast.corpus.engines import EngineError
    from hsca_fast.corpus.readers import InputError

    _refuse(args, _OF_STREAMS, "is not for --engine, which reads and writes Parquet")
    if "-" in args.paths:
        raise UsageError("--engine reads files, not standard input")
    if args.output in (None, "-"):
        raise UsageError("--engine needs an output directory: -o OUT")
    workers = args.workers if args.workers is not None else int(args.engine == "local")
    progress = Progress(sys.stderr, enabled=sys.stderr.isatty() and not args.quiet)
    failures = FailureLog(progress)
    warnings: dict[str, None] = {}
    n_bytes = 0

    def tell(result: PartitionResult) -> None:
        nonlocal n_bytes
        n_bytes += 0 if result.was_done else result.n_text_bytes
        warnings.update(dict.fromkeys(result.warnings))
        if not args.strict:
            for problem in result.problems:
                failures.add(InputError(result.name, problem))
        progress.update(n_bytes, 0)

    try:
        report = score_dataset(
            args.paths,
            args.output,
            scorer=ArrowScorer(
                scoring_config(args), text_column=args.text_column, tags=args.tags or "list", threads=args.threads
            ),
            engine=args.engine,
            workers=workers,
            address=args.address,
            columns=None if args.columns is None else [name for name in args.columns.split(",") if name],
            resume=args.resume,
            overwrite=args.overwrite,
            strict=args.strict,
            progress=tell,
        )
    except InputError as error:
        failures.add(error)
        if args.strict:
            print("hsca: stopped at the first failure (--strict)", file=sys.stderr)
        return INPUTS_FAILED
    except (ImportError, EngineError, OutputExistsError, ValueError) as error:
        raise UsageError(str(error)) from error
    finally:
        progress.clear()
        warn_of_models(list(warnings))
    failures.close()
    if not args.quiet:
        n_done = sum(result.was_done for result in report.partitions)
        parts = [
            f"{len(report.partitions):,} files",
            *([f"{n_done:,} of them done before"] if n_done else []),
            f"{report.n_rows:,} rows",
            f"{report.n_null:,} without a text",
            f"{n_bytes / 1e6:.1f} MB in {report.seconds:.1f} s ({n_bytes / 1e6 / report.seconds:.1f} MB/s)",
            f"{len(report.failed):,} failed",
            *([f"{len(report.damaged):,} damaged"] if report.damaged else []),
            f"{report.n_replaced:,} characters replaced",
        ]
        print(f"hsca: {', '.join(parts)}", file=sys.stderr)
    return INPUTS_FAILED if failures.count else OK
