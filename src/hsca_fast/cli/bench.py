"""`hsca bench`: speed beside other tools, measured here and now."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from hsca_fast.cli.exit_codes import OK, UsageError


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "bench",
        help="measure speed beside other tools",
        description="Measure the text layers beside a plain C++ loop and the other tools that are installed, in one run. "
        "Install the peers with: pip install 'hsca_fast[bench]'",
    )
    parser.add_argument(
        "--corpus", metavar="FILE", help="a UTF-8 text file (default: prose that comes with the package)"
    )
    parser.add_argument("--megabytes", type=float, default=20.0, help="size of the corpus made from it (default 20)")
    parser.add_argument("--rounds", type=int, default=5, help="best of this many rounds (default 5)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from hsca_fast.evals import speed

    if not 0 < args.megabytes <= 10_000:
        raise UsageError(f"--megabytes must be between 0 and 10000, not {args.megabytes:g}")
    if args.rounds < 1:
        raise UsageError(f"--rounds must be at least 1, not {args.rounds}")
    try:
        text = Path(args.corpus).read_text(encoding="utf-8", errors="replace") if args.corpus else speed.sample_text()
    except OSError as error:
        raise UsageError(f"cannot read {args.corpus}: {error.strerror}") from None
    if not text.strip():
        raise UsageError(f"{args.corpus} is empty")
    found = speed.measure(speed.make_corpus(text, args.megabytes), rounds=args.rounds)
    if args.json:
        print(
            json.dumps(
                [{"name": m.name, "mb_per_second": m.mb_per_second, "ratio_to_floor": m.ratio_to_floor} for m in found],
                indent=2,
            )
        )
    else:
        print(f"{'job':36} {'MB/s':>8} {'x floor':>8}")
        for m in found:
            print(f"{m.name:36} {m.mb_per_second:8.1f} {m.ratio_to_floor:8.3f}")
    print(end="", flush=True)  # an error in writing belongs here, and a closed output is none
    return OK
