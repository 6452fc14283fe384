"""Files of JSON lines: written whole or not at all, read up to the first line that is damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from hsca_fast.files import Tear, replacing


def write_lines(path: str | os.PathLike[str], items: Iterable[dict[str, Any]]) -> None:
    """One line an item. Plain ASCII, so that every str survives, lone surrogates included."""
    with replacing(path) as stream:
        for item in items:
            stream.write(json.dumps(item, allow_nan=False, separators=(",", ":")).encode() + b"\n")


def read_lines(path: str | os.PathLike[str]) -> Iterator[Any | Tear]:
    """What each line holds; after the first line that is no JSON comes a `Tear`, and nothing more."""
    offset = 0
    with open(path, "rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                item = json.loads(line)
            except ValueError:
                size = os.fstat(stream.fileno()).st_size
                yield Tear(os.fspath(path), f"line {number}", offset, size - offset)
                return
            yield item
            offset += len(line)
