"""`hsca report`: a corpus or a conversation as one HTML page to look at."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hsca_fast.cli.exit_codes import EPILOG, INPUTS_FAILED, OK, UsageError
from hsca_fast.cli.options import whole_number
from hsca_fast.cli.progress import FailureLog, Progress

if TYPE_CHECKING:
    from hsca_fast.context.conversation_map import ConversationMap
    from hsca_fast.corpus.readers import TextBatch
    from hsca_fast.report.page import Page

_EXAMPLES = """\
examples:
  hsca report corpus/ -o corpus.html
  hsca report data.parquet -o data.html --text-column body
  hsca report talk.jsonl -o talk.html --as conversation
  hsca report turns.txt -o talk.html --as turns
  hsca report index/ -o index.html
  hsca report index/ -o lamp.html --query "who broke the lamp?"

The page is one file that needs no network: open it in a browser. A saved engine or conversation map is shown as a
conversation, and so are the records of an index; other files as a corpus, unless --as says otherwise. With "turns",
every text of the input is a turn of a conversation: lines of plain text, whole records of .jsonl, .csv and .parquet;
empty ones and nulls are left out.

"""
_RECORDS = (".jsonl", ".ndjson", ".csv", ".parquet")
_ENGINE, _MAP = b'{"format":"hsca_fast.engine"', b'{"snapshot_id"'  # how saved ones begin


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "report",
        help="show a corpus or a conversation as an HTML page",
        description="Write one self-contained HTML page about a corpus or a conversation.",
        epilog=_EXAMPLES + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "paths", nargs="+", metavar="INPUT", help="files or directories as for `hsca score`, or one saved map or engine"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="the page to write; it appears only when complete"
    )
    parser.add_argument(
        "--as",
        dest="kind",
        choices=["auto", "corpus", "conversation", "turns", "index"],
        default="auto",
        help="what the input is (default: told from its first line)",
    )
    parser.add_argument(
        "--text-column", default="text", metavar="NAME", help="column that holds the text (default: text)"
    )
    parser.add_argument("--query", metavar="TEXT", help="with an index: show what it finds, and why")
    parser.add_argument("--title", help="heading of the page (default: the name of the input)")
    parser.add_argument("--threads", type=whole_number, default=1, metavar="N", help="0: all usable CPUs (default: 1)")


def run(args: argparse.Namespace) -> int:
    if find_spec("plotly") is None:
        raise UsageError("a report needs plotly: pip install 'hsca_fast[viz]'")
    if os.path.exists(args.output) and any(
        os.path.exists(path) and os.path.samefile(path, args.output) for path in args.paths
    ):
        raise UsageError(f"{args.output!r} is one of the inputs and would be overwritten")
    title = args.title or ", ".join(os.path.basename(path.rstrip("/")) or path for path in args.paths)
    kind = _kind_of(args.paths) if args.kind == "auto" else args.kind
    if args.query is not None and kind != "index":
        raise UsageError("--query needs an index")
    failures = FailureLog(Progress(sys.stderr, enabled=False))
    if kind == "corpus":
        page = _corpus(args, title, failures)
    elif kind == "index":
        made = _index(args, title)
        if made is None:
            return INPUTS_FAILED
        page = made
    else:
        from hsca_fast.report.conversation import conversation_report

        talk = _of_turns(args, failures) if kind == "turns" else _saved(args.paths)
        if talk is None:
            return INPUTS_FAILED
        page = conversation_report(talk, title=title)
    page.write(args.output)
    failures.close()
    print(f"hsca: {args.output}: {os.path.getsize(args.output) / 1e6:.1f} MB", file=sys.stderr)
    return INPUTS_FAILED if failures.count else OK


def _kind_of(paths: list[str]) -> str:
    """A saved engine or map says so in its first line."""
    if len(paths) == 1 and os.path.isfile(os.path.join(paths[0], "manifest.json")):
        return "index"
    if len(paths) != 1 or not os.path.isfile(paths[0]):
        return "corpus"
    if paths[0].endswith(".npz"):
        return "conversation"
    return "conversation" if _first_bytes(paths[0]).startswith((_ENGINE, _MAP)) else "corpus"


def _first_bytes(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read(64).replace(b" ", b"")


def _saved(paths: list[str]) -> ConversationMap | None:
    from hsca_fast import ConversationMap, HSCAEngine, TornFileWarning

    if len(paths) != 1:
        raise UsageError("a conversation is one file")
    (path,) = paths
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TornFileWarning)
            if _first_bytes(path).startswith(_ENGINE):
                talk = ConversationMap(HSCAEngine.load(path).get_macro_context())
            else:
                talk = ConversationMap.load(path)
        for warning in caught:
            print(f"hsca: warning: {warning.message}", file=sys.stderr)
        return talk
    except (OSError, ValueError) as error:
        print(f"hsca: cannot read {path}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return None


def _corpus(args: argparse.Namespace, title: str, failures: FailureLog) -> Page:
    from hsca_fast.corpus.readers import CorpusReader
    from hsca_fast.report.corpus import CorpusSummary
    from hsca_fast.text.scoring import score_silently

    summary = CorpusSummary()
    for batch in CorpusReader(args.paths, text_column=args.text_column, on_error=failures.add):
        scores = score_silently(batch.texts, None, args.threads)
        scores.valid[batch.nulls] = False
        names = [f"{source}, row {row}" for source, row in zip(batch.sources, batch.rows, strict=True)]
        summary.add(scores, names)
    return summary.page(title=title)


def _of_turns(args: argparse.Namespace, failures: FailureLog) -> ConversationMap:
    from hsca_fast import ConversationMap, HSCAEngine
    from hsca_fast.corpus.readers import CorpusReader

    engine = HSCAEngine()
    for batch in CorpusReader(args.paths, text_column=args.text_column, on_error=failures.add):
        engine.ingest_turns(list(_turns(batch)), threads=args.threads)
    with suppress(ValueError):  # nothing is left over
        engine.take_snapshot()
    return ConversationMap(engine.get_macro_context())


def _turns(batch: TextBatch) -> Iterator[str]:
    """The lines of plain texts and the records of other files, those left out that say nothing."""
    texts = batch.texts if isinstance(batch.texts, list) else batch.texts.to_pylist()
    for source, text in zip(batch.sources, texts, strict=True):
        has_records = source.lower().endswith(_RECORDS)
        for turn in [text or ""] if has_records else text.splitlines():
            if turn.strip():
                yield turn


def _index(args: argparse.Namespace, title: str) -> Page | None:
    """The page of an index's records as a conversation, or of what it finds."""
    from hsca_fast import (
        ConversationMap,
        HSCAEngine,
        ModelMismatchError,
        RetrievalPipeline,
        SemanticIndex,
        StoreLocked,
        default_embedder,
    )
    from hsca_fast.report.conversation import conversation_report
    from hsca_fast.report.query import query_report
    from hsca_fast.vectors.storage import DamagedIndexError

    if len(args.paths) != 1:
        raise UsageError("an index is one directory")
    (path,) = args.paths
    try:
        with SemanticIndex.open(path, embedder=default_embedder() if args.query else None, mode="r") as index:
            if args.query is not None:
                run = RetrievalPipeline(index).run(args.query, explain=True, candidate_trace=True, dry_run=True)
                return query_report(run, query=args.query)
            engine = HSCAEngine()
            for records in index.iter_records():
                engine.ingest_turns([record.text for record in records], threads=args.threads)
    except (OSError, ValueError, ModelMismatchError, StoreLocked, DamagedIndexError) as error:
        print(f"hsca: cannot read {path}: {error}", file=sys.stderr)
        return None
    with suppress(ValueError):  # nothing is left over
        engine.take_snapshot()
    return conversation_report(ConversationMap(engine.get_macro_context()), title=title)
