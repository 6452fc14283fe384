"""`hsca mcp`: an index as tools for a language model."""

from __future__ import annotations

import argparse
import os
import sys

from hsca_fast.cli.exit_codes import CHECK_FAILED, EPILOG, OK, UsageError
from hsca_fast.cli.options import whole_number

_EXAMPLES = """\
examples:
  hsca mcp --index talk
  hsca mcp --index talk --http 8765

Speaks the Model Context Protocol over standard input and output, or over HTTP on this machine alone (127.0.0.1).
Nothing is written to the index without --allow-write, and nothing but the protocol goes to standard output.

"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "mcp",
        help="serve an index to a language model (Model Context Protocol)",
        description="Serve an index as tools of the Model Context Protocol.",
        epilog=_EXAMPLES + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("--index", required=True, metavar="DIR", help="the index to serve")
    parser.add_argument(
        "--http", type=_port, metavar="PORT", help="serve on http://127.0.0.1:PORT/mcp (default: standard input)"
    )
    parser.add_argument(
        "--allow-write", action="store_true", help="note what was returned; let compaction be carried out"
    )


def _port(text: str) -> int:
    value = whole_number(text)
    if not 1 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{value} is not between 1 and 65535")
    return value


def run(args: argparse.Namespace) -> int:
    # Whatever a library prints while it is loaded goes to standard error; the server takes the descriptor over afterwards.
    sys.stdout.flush()
    protocol = os.dup(1)
    os.dup2(2, 1)
    try:
        try:
            from hsca_fast.adapters.mcp import mcp_server
        except ImportError as error:
            raise UsageError(str(error)) from error
        from hsca_fast import ModelMismatchError, SemanticIndex, StoreLocked, default_embedder
        from hsca_fast.vectors.storage import DamagedIndexError

        try:
            index = SemanticIndex.open(args.index, embedder=default_embedder(), mode="a" if args.allow_write else "r")
        except (OSError, ValueError, ModelMismatchError, StoreLocked, DamagedIndexError) as error:
            print(f"hsca: cannot open {args.index}: {error}", file=sys.stderr)
            return CHECK_FAILED
    finally:
        os.dup2(protocol, 1)
        os.close(protocol)
    with index:
        server = mcp_server(index, allow_write=args.allow_write)
        if args.http is None:
            server.run("stdio")
        else:
            server.run("streamable-http", host="127.0.0.1", port=args.http, max_request_body_size=1 << 20)
    return OK
