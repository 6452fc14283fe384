"""`hsca doctor`: what is installed, what this machine offers, and whether scoring works here."""

import argparse
import json
import platform
from typing import Any

from hsca_fast.cli.exit_codes import CHECK_FAILED, OK

# Distribution, what it is for, how to get it.
_PARTS = (
    ("numpy", "arrays everywhere", "pip install numpy"),
    ("scipy", "sparse weight maps", "pip install scipy"),
    ("pyarrow", "Parquet files and Arrow tables", "pip install 'hsca_fast[arrow]'"),
)
_CHECK_TEXTS = [
    "The river rose in the night. By morning the river had reached the bridge, and the bridge held. "
    "People came to the bridge to watch the river fall again.",
    "Ein Satz. Noch ein Satz, länger als der erste.",
    "",
]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="show versions and optional parts, and check that scoring works",
        description="Show versions and optional parts, and check that scoring works. Exits 1 if it does not.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    from importlib.metadata import version

    from hsca_fast._native import text as native
    from hsca_fast._native.inputs import usable_cpus

    problem = self_check()
    facts: dict[str, Any] = {
        "hsca_fast": version("hsca_fast"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "simd": native.simd_level(),
        "unicode": native.unicode_version(),
        "threads": usable_cpus(),
        "parts": {name: _version_of(name) for name, _, _ in _PARTS},
        "self_check": problem or "ok",
    }
    if args.json:
        print(json.dumps(facts, indent=2))
    else:
        _print_table(facts)
    print(end="", flush=True)  # an error in writing belongs here, and a closed output is none
    return CHECK_FAILED if problem else OK


def self_check() -> str | None:
    """Score fixed texts; None if the scores are what they must be, else what is wrong with them."""
    import numpy as np

    from hsca_fast import score_texts
    from hsca_fast.evals.speed import reference_layer1

    one, two = score_texts(_CHECK_TEXTS, threads=1), score_texts(_CHECK_TEXTS, threads=2)
    scores = one.columns()["layer1_score"]
    if not np.all((scores >= 0) & (scores <= 1)):
        return f"scores {scores.tolist()} are not all between 0 and 1"
    if not np.allclose(scores, reference_layer1(_CHECK_TEXTS), rtol=1e-12, atol=0):
        return f"scores {scores.tolist()} differ from the reference's"
    for name, column in one.columns().items():
        if not np.array_equal(column, two.columns()[name]):
            return f"{name} differs between one thread and two"
    return None


def _version_of(distribution: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _print_table(facts: dict[str, Any]) -> None:
    for name in ("hsca_fast", "python", "platform", "simd", "unicode", "threads"):
        print(f"{name:12} {facts[name]}")
    for name, purpose, remedy in _PARTS:
        print(f"{name:12} {facts['parts'][name] or f'not installed: for {purpose}: {remedy}'}")
    print(f"{'self check':12} {facts['self_check']}")
