"""`hsca score`: score every text of files, directories or standard input."""

import argparse
import os
import sys
import time
from importlib.util import find_spec
from typing import Any

from hsca_fast.cli import score_dataset
from hsca_fast.cli.exit_codes import EPILOG, INPUTS_FAILED, OK, UsageError
from hsca_fast.cli.options import add_scoring_options, scoring_config, thread_option, warn_of_models, whole_number
from hsca_fast.cli.progress import FailureLog, Progress

_EXAMPLES = """\
examples:
  hsca score essay.txt
  hsca score corpus/ -o scores.parquet --threads 0
  hsca score data.jsonl --text-column body --format csv > scores.csv
  zcat data.jsonl.gz | hsca score - --input-format jsonl -o scores.jsonl
  hsca score corpus/ -o scored/ --engine local --workers 0

Each text is a row: its source, its row within the source (from 0), its scores. A .txt or .md file is one
text (see --chunk-bytes); .jsonl, .ndjson, .csv and .parquet give one text a record; a directory gives its
files with these extensions, subdirectories too, hidden ones not.

"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "score",
        help="score the texts of files, directories or standard input",
        description="Score the texts of files, directories or standard input, in bounded memory.",
        epilog=_EXAMPLES + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, directory, or - for standard input")
    output = parser.add_argument_group("output")
    output.add_argument("-o", "--output", metavar="OUT", help="file to write; it appears only when complete")
    output.add_argument(
        "--format",
        choices=["table", "json", "jsonl", "csv", "parquet"],
        help="default: by the extension of OUT, else table (which elides the middle of long results)",
    )
    output.add_argument("--quiet", action="store_true", help="no progress and no summary on stderr")
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--input-format",
        choices=["txt", "jsonl", "csv"],
        help="format of standard input (default: txt) and of files with another extension",
    )
    reading.add_argument(
        "--text-column", default="text", metavar="NAME", help="column that holds the text (default: text)"
    )
    reading.add_argument(
        "--errors",
        choices=["replace", "strict", "skip"],
        default="replace",
        help="a text with invalid UTF-8: replace the bad bytes (default), strict: it counts as failed, "
        "skip: it is left out; all are counted",
    )
    reading.add_argument(
        "--chunk-bytes",
        type=_chunk_bytes,
        default=4 << 20,
        metavar="N",
        help="cut a longer .txt or .md file into several texts, between paragraphs if it can (default: %(default)s)",
    )
    reading.add_argument("--strict", action="store_true", help="stop at the first input that fails")
    scoring = parser.add_argument_group("scoring")
    scoring.add_argument(
        "--threads", type=thread_option, default=1, metavar="N", help="0: all usable CPUs (default: 1)"
    )
    add_scoring_options(scoring)
    score_dataset.add_options(parser)


def _chunk_bytes(text: str) -> int:
    value = whole_number(text)
    if value < 4:
        raise argparse.ArgumentTypeError(f"{value} is too small: a character can take 4 bytes")
    return value


def run(args: argparse.Namespace) -> int:
    if args.engine is not None:
        return score_dataset.run(args)
    score_dataset.refuse_options(args)
    import numpy as np

    from hsca_fast import NuanceFlag, ScoreBatch
    from hsca_fast.corpus.readers import BATCH_BYTES, CorpusReader, InputError, raise_error
    from hsca_fast.corpus.writers import ScoredRows, named_columns, open_scores
    from hsca_fast.text.scoring import score_silently
    from hsca_fast.text.supervisor import Failures

    def columns_of(scores: ScoreBatch) -> dict[str, Any]:
        columns = named_columns(scores)
        if file_format == "table":  # what was assessed is said once, below it
            del columns["assessed_bits"]
        return columns

    started = time.monotonic()
    if args.paths.count("-") > 1:
        raise UsageError("standard input (-) can be read once only")
    output = None if args.output == "-" else args.output
    file_format = args.format or _format_of(output)
    if file_format == "parquet" and find_spec("pyarrow") is None:
        raise UsageError("Parquet needs pyarrow: pip install 'hsca_fast[arrow]'")
    config = scoring_config(args)
    progress = Progress(sys.stderr, enabled=sys.stderr.isatty() and not args.quiet)
    if progress.enabled or output is not None:
        progress.n_input_bytes_total = _survey(args.paths, output)
    failures = FailureLog(progress)

    reader = CorpusReader(
        args.paths,
        text_column=args.text_column,
        input_format=args.input_format,
        errors=args.errors,
        chunk_bytes=args.chunk_bytes,
        # Enough texts of the default chunk size for four threads, within 200 MB.
        batch_bytes=BATCH_BYTES * min(args.threads or 4, 4),
        on_error=raise_error if args.strict else failures.add,
    )
    of_models = Failures()
    n_texts = n_bytes = n_replaced = 0
    try:
        with open_scores(output, file_format=file_format) as writer:
            nothing = score_silently([], config)
            assessed = nothing.assessed
            writer.write(ScoredRows([], np.empty(0, np.int64), columns_of(nothing), nothing.valid))
            for batch in reader:
                scores = score_silently(batch.texts, config, args.threads)
                of_models.add_all(scores.failures)
                valid = scores.valid.copy()
                valid[batch.nulls] = False
                writer.write(ScoredRows(batch.sources, batch.rows, columns_of(scores), valid))
                assessed = scores.assessed if n_texts == 0 else assessed & scores.assessed
                n_texts += len(batch.sources)
                n_bytes += batch.n_bytes
                n_replaced += scores.replaced
                progress.update(n_bytes, reader.n_input_bytes)
    except InputError as error:
        failures.add(error)
        print("hsca: stopped at the first failure (--strict)", file=sys.stderr)
        return INPUTS_FAILED
    finally:
        progress.clear()
        warn_of_models([str(failure) for failure in of_models.all()])
    failures.close()
    if not args.quiet:
        seconds = time.monotonic() - started
        parts = [
            f"{n_texts:,} texts",
            f"{n_bytes / 1e6:.1f} MB in {seconds:.1f} s ({n_bytes / 1e6 / seconds:.1f} MB/s)",
            f"{failures.count:,} failed",
            f"{reader.n_replaced + n_replaced:,} characters replaced",
        ]
        if args.errors == "skip":
            parts.append(f"{reader.n_skipped:,} texts skipped")
        print(f"hsca: {', '.join(parts)}", file=sys.stderr)
        unknown = [flag.value for flag in NuanceFlag if flag not in assessed]
        print(f"hsca: not assessed, so unknown where missing: {', '.join(unknown) or 'none'}", file=sys.stderr)
    return INPUTS_FAILED if failures.count else OK


def _format_of(output: str | None) -> str:
    from hsca_fast.corpus.writers import FORMAT_BY_EXTENSION

    if output is None:
        return "table"
    extension = os.path.splitext(output)[1].lower()
    if extension not in FORMAT_BY_EXTENSION:
        raise UsageError(f"the format of {output!r} is not clear from its name; give --format")
    return FORMAT_BY_EXTENSION[extension]


def _survey(paths: list[str], output: str | None) -> int | None:
    """Bytes of all inputs, None if that cannot be known; refuses an output that is one of them."""
    from hsca_fast.corpus.readers import STDIN, find_files

    output_stat = os.stat(output) if output is not None and os.path.exists(output) else None
    n_bytes = 0
    for path in find_files(paths, on_error=lambda _: None):
        if path == STDIN:
            return None
        try:
            found = os.stat(path)
        except OSError:
            continue  # the reader will tell
        if output_stat is not None and os.path.samestat(found, output_stat):
            raise UsageError(f"{output!r} is one of the inputs and would be overwritten")
        n_bytes += found.st_size
    return n_bytes
