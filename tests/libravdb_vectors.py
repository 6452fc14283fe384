"""A test for each recorded input and output of the system that the document describes (tests/golden/libravdb)."""

import pytest
from golden import cases


def recorded(name: str):
    """Parametrise a test with `case`: its name, input and output."""
    found = [{"name": label, "input": given, "output": output} for label, (given, output) in cases(name).items()]
    return pytest.mark.parametrize("case", found, ids=[case["name"] or "unnamed" for case in found])
