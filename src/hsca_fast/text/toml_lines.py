"""Lines of the entries of a TOML file: `tomllib` does not tell, and errors must."""

from __future__ import annotations

import re
import tomllib
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]  # keys and numbers of elements, from the top

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]*")
_BLANK = re.compile(r"[ \t\r]*")
_BETWEEN = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")


def line_of(source: str, path: Path) -> int:
    """Line of an entry of a file that `tomllib` reads, or of the nearest entry around it."""
    lines = _Lines(source).lines
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


class _Lines:
    """One pass over a valid document, which notes where each entry begins."""

    def __init__(self, source: str) -> None:
        self.lines: dict[Path, int] = {}
        self._source = source
        self._at = self._counted = 0
        self._line = 1
        self._n_tables: dict[Path, int] = {}  # of arrays of tables
        table: Path = ()
        while self._skip(_BETWEEN) < len(source):
            if source[self._at] == "[":
                table = self._header()
            else:
                self._entry(table)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self._source, self._at)
        self._at = match.end() if match else self._at
        return self._at

    def _note(self, path: Path) -> None:
        self._line += self._source.count("\n", self._counted, self._at)
        self._counted = self._at
        for n in range(len(path), 0, -1):  # the tables that a header or a dotted key makes by the way, too
            self.lines.setdefault(path[:n], self._line)

    def _header(self) -> Path:
        n_brackets = 2 if self._source.startswith("[[", self._at) else 1
        begin, self._at = self._at, self._at + n_brackets
        keys = self._keys()
        end, self._at = self._at + n_brackets, begin
        path: Path = ()
        for i, key in enumerate(keys):
            path += (key,)
            if n_brackets == 2 and i + 1 == len(keys):
                self._n_tables[path] = self._n_tables.get(path, 0) + 1
            if path in self._n_tables:
                path += (self._n_tables[path] - 1,)
        self._note(path)
        self._at = end
        return path

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while True:
            self._skip(_BLANK)
            begin = self._at
            if self._source[begin] in "\"'":
                self._string()
                keys.append(tomllib.loads(f"key = {self._source[begin : self._at]}")["key"])
            else:
                keys.append(self._source[begin : self._skip(_BARE_KEY)])
            self._skip(_BLANK)
            if self._source[self._at] != ".":
                return keys
            self._at += 1

    def _entry(self, table: Path) -> None:
        """`key = value`."""
        begin = self._at
        path = (*table, *self._keys())
        end, self._at = self._at + 1, begin
        self._note(path)
        self._at = end
        self._skip(_BLANK)
        self._value(path)

    def _value(self, path: Path) -> None:
        opening = self._source[self._at]
        if opening in "\"'":
            self._string()
        elif opening in "[{":
            self._at += 1
            n = 0
            while self._source[self._skip(_BETWEEN)] not in "]}":
                if opening == "[":
                    self._note((*path, n))
                    self._value((*path, n))
                    n += 1
                else:
                    self._entry(path)
                if self._source[self._skip(_BETWEEN)] == ",":
                    self._at += 1
            self._at += 1
        else:
            self._skip(_SCALAR)

    def _string(self) -> None:
        quote = self._source[self._at]
        closing = quote * 3 if self._source.startswith(quote * 3, self._at) else quote
        self._at += len(closing)
        while not self._source.startswith(closing, self._at):
            self._at += 2 if self._source[self._at] == "\\" and quote == '"' else 1
        self._at += len(closing)
        for _ in range(2 if len(closing) == 3 else 0):  # a long string may end in two quotes of its own
            self._at += self._source.startswith(quote, self._at)
