"""`hsca index`: make, search, check, repair and move stores of chunks."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from hsca_fast.cli.exit_codes import CHECK_FAILED, OK, UsageError
from hsca_fast.cli.options import printable, whole_number

if TYPE_CHECKING:
    from hsca_fast import Embedder, Report, SemanticIndex

_DESCRIPTION = """\
A store is a directory that keeps chunks of text for ever, durable when a command returns, and finds them by meaning
and by words. One process writes at a time; others read.
"""
_EXAMPLES = """\
examples:
  hsca index add memory/ notes.txt --metadata wing=work      a chunk a paragraph
  hsca index add memory/ chat.jsonl                          a chunk a line, with its role, turn_id, metadata ...
  hsca index search memory/ "which lamp was broken?" -k 5 --where '{"wing": "work"}'
  hsca index verify memory/ && hsca index export memory/ backup.jsonl
  hsca index import backup.jsonl copy/
  hsca index repair memory/                                  when verify finds damage; the old files are kept

exit codes:
  0    done; with verify: nothing is wrong
  1    verify found damage, or repair could not save everything
  2    usage error: no such store, another model, locked by another process, a file that is no export
  3    the output could not be written
  130  interrupted"""
_BATCH = 1000
_SHOWN = 160
_LINE_FIELDS = ("text", "role", "turn_id", "timestamp", "metadata", "id")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "index",
        help="keep chunks of text in a durable store, and find them again",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(name: str, run: Callable[[argparse.Namespace], int], text: str, *, store: bool = True) -> Any:
        command = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.set_defaults(run=lambda args: store_errors(run, args))
        if store:
            command.add_argument("store", metavar="STORE", help="directory of the store")
        command.add_argument("--json", action="store_true", help="print one JSON object")
        return command

    add = action("add", _add, "append the texts of a file; a missing store is made")
    add.add_argument("source", metavar="FILE", help=".jsonl: a chunk a line (text and optionally role, turn_id, timestamp,"
                     " metadata, id); anything else: a chunk a paragraph; - for standard input")  # fmt: skip
    add.add_argument("--input-format", choices=["txt", "jsonl"], help="default: by the extension; txt for -")
    add.add_argument("--role", default="", help="of chunks that do not say")
    add.add_argument("--turn-id", help="of chunks that do not say")
    add.add_argument(
        "--metadata", action="append", default=[], metavar="KEY=VALUE", help="for every chunk; may be repeated"
    )
    add.add_argument("--skip-known", action="store_true", help="leave out chunks whose id is in the store already")

    search = action("search", _search, "find chunks by meaning and by words")
    search.add_argument("query", metavar="TEXT")
    search.add_argument("-k", type=whole_number, default=10, metavar="N", help="hits (default: 10)")
    search.add_argument("--where", metavar="JSON", help='filter, such as \'{"wing": "work", "n": {"$gte": 3}}\'')
    search.add_argument("--arm", choices=["both", "vector", "lexical"], default="both")
    search.add_argument("--archived", action="store_true", help="archived chunks too")

    action("stats", _stats, "show counts and sizes")
    action("verify", _verify, "hold every byte of a store against its checksum; nothing is written")
    action("repair", _repair, "make a damaged store anew from all that is whole; the old files are kept beside it")
    action("compact", _compact, "merge the full-text index, join small blocks, fold the log into the catalog")

    export = action("export", _export, "write the chunks to a .jsonl or .parquet file")
    export.add_argument("output", metavar="OUT", help="it appears only when complete")
    export.add_argument("--embeddings", action="store_true", help="the vectors too; else an import makes them again")
    export.add_argument("--deleted", action="store_true", help="chunks that are marked as deleted, too")

    import_ = action("import", _import, "make a new store from a file that export wrote", store=False)
    import_.add_argument("source", metavar="FILE", help=".jsonl or .parquet")
    import_.add_argument("store", metavar="STORE", help="directory to make")
    import_.add_argument("--regenerate", action="store_true", help="make the vectors again though the file has some")


def store_errors(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run a command on a store; what is wrong with the store or the arguments is a usage error."""
    from hsca_fast import DamagedIndexError, ModelMismatchError, StoreLocked, StoreVersionError

    try:
        code = run(args)
        print(end="", flush=True)  # an error in writing belongs here
        return code
    except BrokenPipeError:
        raise
    except DamagedIndexError as error:
        raise UsageError(f"{error} (hsca index verify, hsca index repair)") from error
    except (ModelMismatchError, StoreVersionError, StoreLocked, FileNotFoundError, FileExistsError) as error:
        raise UsageError(str(error)) from error
    except (ValueError, TypeError, PermissionError) as error:
        raise UsageError(str(error)) from error


def _embedder() -> Embedder:
    from hsca_fast import default_embedder

    return default_embedder()


def open_store(args: argparse.Namespace, mode: Any, *, embedder: bool = True) -> SemanticIndex:
    """The store that `args` name, with the embedder of the package."""
    from hsca_fast import SemanticIndex

    return SemanticIndex.open(args.store, embedder=_embedder() if embedder else None, mode=mode)


def _tell(args: argparse.Namespace, facts: dict[str, Any]) -> None:
    if args.json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else printable(str(value))
        print(f"{name.replace('_', ' '):{width}}  {shown}")


# ---- actions


def _add(args: argparse.Namespace) -> int:
    shared = {}
    for item in args.metadata:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise UsageError(f"--metadata {item}: it must be KEY=VALUE")
        shared[key] = value
    kind = args.input_format or ("jsonl" if args.source.lower().endswith((".jsonl", ".ndjson")) else "txt")
    if args.source == "-":
        stream: Any = sys.stdin.buffer
    else:
        stream = open(args.source, "rb")  # noqa: SIM115 (closed below)
    n_read, n_before = 0, 0
    with stream, open_store(args, "a") as index:
        n_before = index.stats().records
        chunks = _json_chunks(stream) if kind == "jsonl" else _paragraphs(stream)
        while batch := list(islice(chunks, _BATCH)):
            _append(index, batch, shared, args)
            n_read += len(batch)
        n_added = index.stats().records - n_before
    _tell(args, {"store": os.path.abspath(args.store), "chunks_read": n_read, "chunks_added": n_added})
    return OK


def _append(
    index: SemanticIndex, batch: list[dict[str, Any]], shared: dict[str, str], args: argparse.Namespace
) -> None:
    import time

    ids = [chunk.get("id") for chunk in batch]
    if any(ids) and not all(ids):
        raise UsageError("some chunks have an id and others have none")
    turn = None if args.turn_id is None and not any("turn_id" in chunk for chunk in batch) else args.turn_id or ""
    now = time.time()
    index.append(
        [chunk["text"] for chunk in batch],
        turn_id=None if turn is None else [chunk.get("turn_id", turn) for chunk in batch],
        role=[chunk.get("role", args.role) for chunk in batch],
        metadata=[shared | chunk.get("metadata", {}) for chunk in batch],
        timestamps=[chunk.get("timestamp", now) for chunk in batch],
        ids=ids if all(ids) else None,  # type: ignore[arg-type]
        on_conflict="skip" if args.skip_known else "error",
    )


def _json_chunks(stream: Any) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            chunk = json.loads(line)
        except ValueError as error:
            raise UsageError(f"line {number} is not JSON: {error}") from None
        if isinstance(chunk, str):
            chunk = {"text": chunk}
        if not isinstance(chunk, dict) or not isinstance(chunk.get("text"), str):
            raise UsageError(f"line {number} has no text")
        if not isinstance(chunk.get("metadata", {}), dict):
            raise UsageError(f"line {number}: metadata must be an object")
        yield {name: chunk[name] for name in _LINE_FIELDS if name in chunk}


def _paragraphs(stream: Any) -> Iterator[dict[str, Any]]:
    lines: list[str] = []
    for raw in stream:
        line = raw.decode("utf-8", "replace")
        if line.strip():
            lines.append(line.rstrip("\r\n"))
        elif lines:
            yield {"text": "\n".join(lines)}
            lines = []
    if lines:
        yield {"text": "\n".join(lines)}


def _search(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    where = None
    if args.where is not None:
        try:
            where = json.loads(args.where)
        except ValueError as error:
            raise UsageError(f"--where is not JSON: {error}") from None
    with open_store(args, "r") as index:
        hits = index.query(
            args.query, args.k, where=where, vector=args.arm != "lexical", lexical=args.arm != "vector",
            include_archived=args.archived,
        )  # fmt: skip
    if args.json:
        print(json.dumps({"hits": [asdict(hit) for hit in hits]}, indent=2, ensure_ascii=False))
        return OK
    if not hits:
        print("nothing found", file=sys.stderr)
        return OK
    print(f"{'score':>8} {'cosine':>7} {'bm25':>7}  {'id':32}  text")
    for hit in hits:
        cosine = "" if hit.vector_score is None else f"{hit.vector_score:.3f}"
        words = "" if hit.lexical_score is None else f"{hit.lexical_score:.2f}"
        text = printable(hit.text)
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        print(f"{hit.score:8.5f} {cosine:>7} {words:>7}  {hit.id}  {shown}")
    return OK


def _stats(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    with open_store(args, "r", embedder=False) as index:
        _tell(args, asdict(index.stats()))
    return OK


def _verify(args: argparse.Namespace) -> int:
    from hsca_fast import verify_store

    report = verify_store(args.store)
    _tell_report(args, report)
    return OK if report.ok else CHECK_FAILED


def _repair(args: argparse.Namespace) -> int:
    from hsca_fast import ModelStamp, repair, verify_store
    from hsca_fast.memory.store_files import Manifest

    embedder = None
    if verify_store(args.store).ok is False:
        try:
            if Manifest.read(os.path.abspath(args.store)).model == ModelStamp.of(_embedder()):
                embedder = _embedder()
        except (OSError, ValueError):  # the manifest is what is damaged
            embedder = None
    report = repair(args.store, embedder=embedder)
    _tell_report(args, report)
    return CHECK_FAILED if report.lost or report.vectors_lost else OK


def _tell_report(args: argparse.Namespace, report: Report) -> None:
    from dataclasses import asdict

    if args.json:
        print(json.dumps(asdict(report) | {"ok": report.ok}, indent=2))
        return
    facts: dict[str, Any] = {
        "store": report.path,
        "found": "nothing is wrong" if report.ok else f"{len(report.problems)} problems",
        "records": report.n_records,
        "generation": report.generation,
    }
    if report.n_uncommitted_bytes:
        facts["uncommitted_bytes"] = report.n_uncommitted_bytes
    if report.repaired:
        facts |= {"lost": len(report.lost), "vectors_lost": len(report.vectors_lost), "old_files": report.quarantine}
    _tell(args, facts)
    for problem in report.problems:
        print(f"  {printable(str(problem))}")


def _compact(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    with open_store(args, "a", embedder=False) as index:
        _tell(args, asdict(index.compact()))
    return OK


def _export(args: argparse.Namespace) -> int:
    with open_store(args, "r", embedder=False) as index:
        n = index.export(args.output, embeddings=args.embeddings, include_deleted=args.deleted)
    _tell(args, {"file": os.path.abspath(args.output), "records": n, "bytes": os.path.getsize(args.output)})
    return OK


def _import(args: argparse.Namespace) -> int:
    from hsca_fast import SemanticIndex

    with SemanticIndex.import_(args.source, args.store, embedder=_embedder(), regenerate=args.regenerate) as index:
        _tell(args, {"store": index.path, "records": index.stats().records})
    return OK
