"""Files of JSON lines: written whole or not at all, read up to the first line that is damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from hsca_fast.files import Tear, replacing

_SEAL = b" "


def write_lines(path: str | os.PathLike[str], items: Iterable[dict[str, Any]], *, sealed: bool = False) -> None:
    """One line an item. Plain ASCII, so that every str survives, lone surrogates included.

    A sealed file begins with a space, and its last line ends with one: JSON means the same, and a file that was cut between
    two lines can be told from a whole one.
    """
    lines = (json.dumps(item, allow_nan=False, separators=(",", ":")).encode() for item in items)
    with replacing(path) as stream:
        if not sealed:
            stream.writelines(line + b"\n" for line in lines)
            return
        line = next(lines, b"")
        stream.write(_SEAL)
        for following in lines:
            stream.write(line + b"\n")
            line = following
        stream.write(line + _SEAL + b"\n")


def read_lines(path: str | os.PathLike[str], *, sealed: bool = False) -> Iterator[Any | Tear]:
    """What each line holds; after the first line that is no JSON comes a `Tear`, and nothing more.

    Of a file that `write_lines` sealed, there is also a `Tear` where its last lines are missing. Other files are taken as they
    are, but an empty one was cut.
    """
    offset = number = 0
    awaits_seal = sealed
    with open(path, "rb") as stream:
        for number, line in enumerate(stream, 1):
            if sealed and (line.rstrip(b"\n").endswith(_SEAL) or (number == 1 and not line.startswith(_SEAL))):
                awaits_seal = False
            if sealed and number == 1 and line == _SEAL + _SEAL + b"\n":  # whole, and of no items
                return
            try:
                item = json.loads(line)
            except ValueError:
                size = os.fstat(stream.fileno()).st_size
                yield Tear(os.fspath(path), f"line {number}", offset, size - offset)
                return
            yield item
            offset += len(line)
    if awaits_seal:
        yield Tear(os.fspath(path), f"line {number + 1}", offset, 0)
