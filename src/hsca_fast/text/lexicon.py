"""Lists of cues: words and phrases that show a category, such as a nuance flag."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Literal

AT = ("any", "start", "end")
IN = ("any", "question", "statement")
MAX_CUE_WORDS = 8
_PLAIN = re.compile(r"[a-z]+(?: [a-z]+)*")


class LexiconError(ValueError):
    """A lexicon that cannot be used; the message names the entry and, of a file, the line."""

    def __init__(self, message: str, category: int | None = None, cue: int | None = None) -> None:
        super().__init__(message)
        self.category = category  # the numbers of the wrong entry
        self.cue = cue


@dataclass(frozen=True, slots=True)
class Cue:
    """Words that count for a category.

    Parameters
    ----------
    text
        One to eight words; case and the kind of apostrophe do not matter.
    weight
        What it adds to its sentence, read to three decimals; 0 only hides the shorter cues inside this one.
    at
        "start" or "end": only as the first or last words of a sentence.
    within
        "question" or "statement": only in such sentences (`in` in a file).
    """

    text: str
    weight: float = 1.0
    at: Literal["any", "start", "end"] = "any"
    within: Literal["any", "question", "statement"] = "any"


@dataclass(frozen=True, slots=True)
class Category:
    """Cues and what it takes: a sentence shows the category when their weights add up to `threshold`, a text has it when
    at least `share` of its sentences show it. None leaves what the built-in category of that name has, or 1.0 and 0.0.
    """

    name: str
    cues: tuple[Cue, ...]
    threshold: float | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Categories of cues, from a file or made by hand; give it to `ScoringConfig(lexicons=[...])`.

    A category with the name of a nuance flag adds to that flag's built-in cues (a cue that is there already gets the new
    weight); any other name is counted and shown by `explain_text`.

    Examples
    --------
    >>> lexicon = Lexicon((Category("jargon", (Cue("deep dive"), Cue("synergy", weight=0.5))),))
    >>> [category.name for category in lexicon.categories]
    ['jargon']
    """

    categories: tuple[Category, ...]

    def __post_init__(self) -> None:
        names: set[str] = set()
        for i, category in enumerate(self.categories):
            _check_category(category, i)
            if category.name in names:
                raise LexiconError(f"category {category.name!r} is there already", i)
            names.add(category.name)
            for j, cue in enumerate(category.cues):
                if problem := _problem(cue):
                    raise LexiconError(f"category {category.name!r}: {problem}", i, j)

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Lexicon:
        """Read a TOML file of `[[category]]` tables with `name`, `cues`, and optionally `threshold` and `share`.

        Raises
        ------
        LexiconError
            The file cannot be read or an entry is wrong; the message names the file and the line.
        """
        name = os.fspath(path)
        try:
            with open(path, encoding="utf-8") as file:
                source = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise LexiconError(f"{name}: {error}") from error
        return _parse(source, name)


def _parse(source: str, name: str) -> Lexicon:
    try:
        document = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise LexiconError(f"{name}: {error}") from error
    try:
        unknown = set(document) - {"category"}
        tables = document.get("category", [])
        if unknown or not isinstance(tables, list):
            raise LexiconError("a lexicon holds [[category]] tables and nothing else", 0)
        return Lexicon(tuple(_category(table, i) for i, table in enumerate(tables)))
    except LexiconError as error:
        line = _Places(source).line_of(error.category or 0, error.cue)
        raise LexiconError(f"{name}:{line}: {error}", error.category, error.cue) from None


class _Places:
    """Lines of the categories and cues in a lexicon file: tomllib does not tell, and errors must."""

    def __init__(self, source: str) -> None:
        self._categories: list[int] = []
        self._cues: list[list[int]] = []
        depth, line, at = 0, 1, 0
        fresh = False  # an element of the array may start here
        while at < len(source):
            rest = source[at : at + 12]
            if rest.startswith("#"):
                at = end if (end := source.find("\n", at)) >= 0 else len(source)
                continue
            if depth == 0 and rest.startswith("[") and source[:at].rpartition("\n")[2].strip() == "":
                self._categories.append(line)
                self._cues.append([])
                at = end if (end := source.find("\n", at)) >= 0 else len(source)
                continue
            if source[at] in "[{":
                if fresh and depth == 1 and self._cues:
                    self._cues[-1].append(line)
                    fresh = False
                depth += 1
                fresh = fresh or (source[at] == "[" and depth == 1)
            elif source[at] in "]}":
                depth -= 1
            elif source[at] == "," and depth == 1:
                fresh = True
            elif source[at] == "\n":
                line += 1
            elif not source[at].isspace():
                if fresh and depth == 1 and self._cues:
                    self._cues[-1].append(line)
                    fresh = False
                if source[at] in "\"'":
                    quote = source[at] * 3 if source.startswith(source[at] * 3, at) else source[at]
                    end = at + len(quote)
                    while not source.startswith(quote, end):
                        end += 2 if source[end] == "\\" and quote[0] == '"' else 1
                    line += source.count("\n", at, end)
                    at = end + len(quote) - 1
            at += 1

    def line_of(self, category: int, cue: int | None) -> int:
        """Line of a cue, or of its category where that is not known."""
        if category >= len(self._categories):
            return 1
        cues = self._cues[category]
        return cues[cue] if cue is not None and cue < len(cues) else self._categories[category]


def _category(table: object, i: int) -> Category:
    if not isinstance(table, dict):
        raise LexiconError("write [[category]], then name and cues", i)
    unknown = set(table) - {"name", "cues", "threshold", "share"}
    if unknown:
        raise LexiconError(f"unknown key {min(unknown)!r}; a category has name, cues, threshold and share", i)
    if not isinstance(table.get("cues"), list):
        raise LexiconError(f"category {table.get('name')!r} needs an array of cues", i)
    cues = tuple(_cue(entry, i, j) for j, entry in enumerate(table["cues"]))
    return Category(table.get("name", ""), cues, table.get("threshold"), table.get("share"))


def _cue(entry: object, i: int, j: int) -> Cue:
    if isinstance(entry, str):
        return Cue(entry)
    if not isinstance(entry, dict) or "text" not in entry:
        raise LexiconError(f"cue {entry!r} is neither a string nor a table with a text", i, j)
    unknown = set(entry) - {"text", "weight", "at", "in"}
    if unknown:
        raise LexiconError(f"unknown key {min(unknown)!r}; a cue has text, weight, at and in", i, j)
    return Cue(entry["text"], entry.get("weight", 1.0), entry.get("at", "any"), entry.get("in", "any"))


def _problem(cue: Cue) -> str | None:
    """What is wrong with a cue."""
    if not isinstance(cue.text, str):
        return f"the text of a cue must be a string, not {cue.text!r}"
    n_words = _count_words(cue.text)
    if not 1 <= n_words <= MAX_CUE_WORDS:
        return f"cue {cue.text!r} has {n_words or 'no'} words; it must have one to {MAX_CUE_WORDS}"
    if not _is_number(cue.weight) or not -1000 <= cue.weight <= 1000:
        return f"cue {cue.text!r}: weight must be a number from -1000 to 1000, not {cue.weight!r}"
    if cue.at not in AT:
        return f"cue {cue.text!r}: at must be one of {', '.join(AT)}, not {cue.at!r}"
    if cue.within not in IN:
        return f"cue {cue.text!r}: in must be one of {', '.join(IN)}, not {cue.within!r}"
    return None


def _count_words(text: str) -> int:
    if _PLAIN.fullmatch(text):  # nearly all cues; segmenting thousands would take longer than all the rest
        return text.count(" ") + 1
    from hsca_fast.text.segmentation import segment

    return len(segment(text).words)


def _check_category(category: Category, i: int) -> None:
    name = category.name
    if not isinstance(name, str) or not name:
        raise LexiconError("a category needs a name", i)
    if category.threshold is not None and not (_is_number(category.threshold) and 0 < category.threshold <= 1e6):
        raise LexiconError(f"category {name!r}: threshold must be a number above 0, not {category.threshold!r}", i)
    if category.share is not None and not (_is_number(category.share) and 0 <= category.share <= 1):
        raise LexiconError(f"category {name!r}: share must be a number from 0 to 1, not {category.share!r}", i)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


@cache
def builtin(name: str) -> Lexicon:
    """A lexicon of the package: "nuance" or "domain_rules"."""
    path = files("hsca_fast") / "data" / f"{name}.toml"
    return _parse(path.read_text(encoding="utf-8"), f"{name}.toml")


def merge(lexicons: Iterable[Lexicon]) -> Lexicon:
    """One lexicon of all categories; later ones add to earlier ones of the same name."""
    merged: dict[str, Category] = {}
    for lexicon in lexicons:
        for new in lexicon.categories:
            old = merged.get(new.name)
            if old is None:
                merged[new.name] = new
                continue
            cues = {_key(cue): cue for cue in (*old.cues, *new.cues)}
            merged[new.name] = replace(
                old,
                cues=tuple(cues.values()),
                threshold=old.threshold if new.threshold is None else new.threshold,
                share=old.share if new.share is None else new.share,
            )
    return Lexicon(tuple(merged.values()))


def _key(cue: Cue) -> tuple[str, str, str]:
    return " ".join(cue.text.casefold().split()), cue.at, cue.within
