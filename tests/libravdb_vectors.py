"""Recorded input/output pairs of the system that the document describes (tests/golden/libravdb)."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest


@cache
def vectors(name: str) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads((Path(__file__).parent / "golden" / "libravdb" / f"{name}.json").read_text())["cases"])


def recorded(name: str):
    """Parametrise a test with `case`, one of the recorded pairs."""
    return pytest.mark.parametrize(
        "case", vectors(name), ids=[case["name"] or str(i) for i, case in enumerate(vectors(name))]
    )
