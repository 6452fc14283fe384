"""`hsca query`, `hsca compress` and `hsca replay`: retrieval that says why."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hsca_fast.cli.exit_codes import CHECK_FAILED, OK, UsageError
from hsca_fast.cli.index import open_store, store_errors
from hsca_fast.cli.options import printable, whole_number

if TYPE_CHECKING:
    from hsca_fast import ChunkResult, RetrievalResult, RetrievedRecord

_EXAMPLES = """\
examples:
  hsca query memory/ "which lamp was broken?" --explain
  hsca query memory/ "which lamp was broken?" --profile decide --trace --packet why.json
  hsca replay why.json
  hsca compress memory/ "which lamp was broken?" --max-tokens 500
  hsca compress memory/ "which lamp was broken?" --sentences 200

exit codes:
  0    done; with replay: ids, order and scores came out as in the packet
  1    replay: they did not
  2    usage error: no such store, another store or model than the packet's, a bad profile
  3    the output could not be written
  130  interrupted"""
_SHOWN = 100


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        parser = subparsers.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            epilog=_EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.set_defaults(run=lambda args: store_errors(run, args))
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        return parser

    query = command("query", _query, "search a store by a retrieval profile, and say why results rank where they do")
    compress = command("compress", _compress, "search a store for few tokens: relevant results that do not repeat")
    for parser in (query, compress):
        parser.add_argument("store", metavar="STORE", help="directory of the store")
        parser.add_argument("query", metavar="TEXT")
        parser.add_argument("--profile", metavar="NAME", help="act, decide, observe, orient, or one of --profiles")
        parser.add_argument("--profiles", action="append", default=[], metavar="FILE", help="TOML; may be repeated")
        parser.add_argument("--where", metavar="JSON", help='filter, such as \'{"wing": "work"}\'')
        parser.add_argument("--max-tokens", type=whole_number, metavar="N", help="hard limit on all results together")
    query.add_argument("-k", type=whole_number, metavar="N", help="results (default: the profile's mmr_final_k, 5)")
    query.add_argument("--explain", action="store_true", help="show what each score is made of")
    query.add_argument("--trace", action="store_true", help="show where and why other candidates were left out")
    query.add_argument("--record", action="store_true", help="note the access in the store; otherwise it is only read")
    query.add_argument("--packet", metavar="FILE", help="write a replay packet")
    compress.add_argument("--top-n", type=whole_number, default=5, metavar="N", help="results at most (default: 5)")
    compress.add_argument(
        "--candidates", type=whole_number, default=25, metavar="N", help="to start from (default: 25)"
    )
    compress.add_argument("--min-score", type=float, default=0.3, metavar="X", help="least score (default: 0.3)")
    compress.add_argument(
        "--similarity", type=float, default=0.85, metavar="X", help="cosine from which results are one (default: 0.85)"
    )
    how = compress.add_mutually_exclusive_group()
    how.add_argument("--sentences", type=whole_number, metavar="N", help="the sentences that answer, in N tokens")
    how.add_argument("--previews", action="store_true", help="a line for each result")

    replay = command("replay", _replay, "run a retrieval again from its packet, and compare")
    replay.add_argument("packet", metavar="FILE", help="that `hsca query --packet` wrote")
    replay.add_argument("--store", metavar="STORE", help="default: where the store was then")


def _where(args: argparse.Namespace) -> Mapping[str, Any] | None:
    if args.where is None:
        return None
    try:
        found = json.loads(args.where)
    except ValueError as error:
        raise UsageError(f"--where is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError("--where must be an object")
    return found


def _search(args: argparse.Namespace, mode: str, **options: Any) -> tuple[RetrievalResult, Any]:
    """The result, and the vectors of its records."""
    from hsca_fast import ProfileBook, RetrievalPipeline

    with open_store(args, mode) as index:
        pipeline = RetrievalPipeline(index, args.profile, book=ProfileBook(*args.profiles))
        found = pipeline.run(args.query, where=_where(args), max_tokens=args.max_tokens, dry_run=mode == "r", **options)
        vectors = index.vectors([result.id for result in found.results])
    for warning in found.warnings:
        print(f"hsca: warning: {printable(warning)}", file=sys.stderr)
    return found, vectors


def _query(args: argparse.Namespace) -> int:
    mode = "a" if args.record else "r"
    found, _ = _search(args, mode, k=args.k, explain=args.explain, candidate_trace=args.trace)
    if args.packet:
        from hsca_fast.files import replacing

        with replacing(args.packet) as stream:
            stream.write(json.dumps(found.replay_packet).encode())
    _show(found, args.json)
    return OK


def _replay(args: argparse.Namespace) -> int:
    from hsca_fast import PacketError, RetrievalPipeline

    try:
        with open(args.packet, encoding="utf-8") as stream:
            packet = json.load(stream)
    except OSError as error:
        raise UsageError(f"cannot read {args.packet}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{args.packet} is no packet: {error}") from None
    args.store = args.store or (packet.get("path") if isinstance(packet, dict) else None)
    if args.store is None:
        raise UsageError("the packet does not say where its store is: --store")
    with open_store(args, "r") as index:
        try:
            found = RetrievalPipeline(index).replay(packet)
        except PacketError as error:
            raise UsageError(str(error)) from error
    _show(found, args.json)
    reproduced = bool(found.pipeline_trace["reproduced"])
    print(f"hsca: the retrieval {'came' if reproduced else 'DID NOT come'} out as in the packet", file=sys.stderr)
    return OK if reproduced else CHECK_FAILED


def _show(found: RetrievalResult, as_json: bool) -> None:
    if as_json:
        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return
    for line in _lines(found):
        print(line)


def _lines(found: RetrievalResult) -> Iterator[str]:
    trace = found.pipeline_trace
    for rank, result in enumerate(found.results, 1):
        marks = " ".join(["pinned"] * result.pinned + [name for name in result.notes if name != "pinning"])
        wing = f" [{result.wing}]" if result.wing else ""
        yield f"{rank:3}  {result.score:.4f}  {result.id}{wing} {marks}".rstrip()
        yield f"     {_cut(result.text)}"
        if result.score_breakdown is not None:
            for name, value in result.score_breakdown.items():
                if value or name == "final_score":
                    yield f"       {value:+.4f}  {name.replace('_', ' ')}"
    for entry in trace.get("candidate_trace", ()):
        yield (
            f"  -  {entry.get('drawer_id', entry.get('wing', ''))}  {entry.get('dropped_at', entry.get('phase'))}: "
            + printable(str(entry.get("reason", entry.get("action"))))
        )
    slow = sorted(trace["phase_timing_ms"].items(), key=lambda item: -item[1])[:3]
    times = ", ".join(f"{name} {ms:.1f}" for name, ms in slow)
    cut = "; truncated to the budget" if found.truncated else ""
    yield f"{len(found.results)} of {trace['total_candidates_in']} candidates in {trace['elapsed_ms']:.1f} ms ({times}){cut}"


def _cut(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."


def _compress(args: argparse.Namespace) -> int:
    from hsca_fast import Previews, compress, default_embedder, estimate_tokens, extract_sentences

    limit, args.max_tokens = args.max_tokens, None  # of what is left in the end, not of what is found
    found, vectors = _search(args, "r", k=args.candidates)
    kept, stats = compress(
        [_chunk(result) for result in found.results],
        vectors,
        min_score=args.min_score,
        similarity_threshold=args.similarity,
        top_n=args.top_n,
        max_tokens=limit,
    )
    told: list[dict[str, Any]]
    if args.sentences is not None:
        extracts = extract_sentences(args.query, kept, max_tokens=args.sentences, embedder=default_embedder())
        told = [
            {"chunk_id": each.result.chunk_id, "score": each.result.score, "spans": each.spans, "text": each.text}
            for each in extracts
        ]
        stats = replace(stats, returned=len(extracts), tokens_after=sum(each.n_tokens for each in extracts))
    elif args.previews:
        previews = Previews(kept)
        told = [each.to_dict() for each in previews]
        stats = replace(stats, tokens_after=int(estimate_tokens([each.preview for each in previews]).sum()))
    else:
        told = [{"chunk_id": each.chunk_id, "score": each.score, "text": each.content} for each in kept]
    if args.json:
        print(json.dumps({"results": told, "compression_stats": stats.to_dict()}, indent=2, ensure_ascii=False))
        return OK
    for rank, each in enumerate(told, 1):
        print(f"{rank:3}  {each['score']:.4f}  {each['chunk_id']}")
        print(f"     {printable(' '.join(str(each.get('text', each.get('preview'))).split()))}")
    print(
        f"{stats.original_count} found, {stats.after_threshold} relevant, {stats.removed} repeated, {stats.returned} left; "
        f"{stats.tokens_before} tokens before, {stats.tokens_after} after{'; truncated to the budget' * stats.truncated}"
    )
    return OK


def _chunk(result: RetrievedRecord) -> ChunkResult:
    from hsca_fast import ChunkResult

    told = {name: str(result.metadata.get(name, "")) for name in ("doc_id", "header_path", "file_path")}
    return ChunkResult(result.id, score=min(max(result.score, 0.0), 1.0), content=result.text, **told)
