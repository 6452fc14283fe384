"""Numbers recorded from the system that the mathematics document describes; tests/golden/libravdb."""

import json
import math
from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "golden" / "libravdb"


def _number(value):
    if isinstance(value, dict):
        return math.nan if value == {"$num": "NaN"} else {key: _number(item) for key, item in value.items()}
    return [_number(item) for item in value] if isinstance(value, list) else value


def cases(name):
    """(input, output) by case name; equal names are numbered."""
    found = {}
    for case in json.loads((_FOLDER / f"{name}.json").read_text())["cases"]:
        label = case["name"]
        while label in found:
            label += "'"
        found[label] = (_number(case["input"]), _number(case["output"]))
    return found
