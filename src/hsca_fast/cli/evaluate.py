"""`hsca eval`: the five evals of the specification, and the boundaries of beats."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from hsca_fast.cli.exit_codes import CHECK_FAILED, OK, UsageError

NUMBERS = ("1", "2", "3", "4", "5")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "eval",
        help="run the evals of the specification",
        description="Run the five evals of the HSCA specification on passages that come with the package, or on the full sets in "
        "DIR. Exit code 1 says that one did not pass on the held-out half. `boundaries` needs DIR and nltk; `retrieval` compares ways to search.",
    )
    parser.add_argument(
        "which", nargs="?", default="all", choices=[*NUMBERS, "boundaries", "retrieval", "all"], metavar="WHICH"
    )
    parser.add_argument("--data", metavar="DIR", help="folder of the full data sets (docs/data.md)")
    parser.add_argument("--json", action="store_true", help="print JSON, with every case that failed")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from hsca_fast.evals import adversarial, bridging, fidelity, improvement, macro, retrieval, segmentation

    data = None if args.data is None else Path(args.data)
    if data is not None and not data.is_dir():
        raise UsageError(f"--data {args.data} is no folder")
    evals = {
        "1": fidelity.run,
        "2": macro.run,
        "3": improvement.run,
        "4": adversarial.run,
        "5": bridging.run,
        "boundaries": segmentation.run,
        "retrieval": retrieval.run,
    }
    if args.which == "boundaries" and data is None:
        raise UsageError("boundaries needs --data: marked conversations are not ours to ship")
    reports = []
    try:
        for which in NUMBERS if args.which == "all" else (args.which,):
            report = evals[which](data)
            reports.append(report)
            if not args.json:
                print(report.to_text(), end="\n\n", flush=True)
    except FileNotFoundError as error:
        raise UsageError(f"--data {args.data}: {error.filename} is missing") from None
    except ImportError as error:
        raise UsageError(f"{error}; install it with: pip install 'hsca_fast[bench]'") from None
    if args.json:
        print(json.dumps([report.to_dict() for report in reports], indent=2), flush=True)
    return OK if all(report.passed for report in reports) else CHECK_FAILED
