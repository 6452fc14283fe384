"""Lists of cues: words and phrases that show a category, such as a nuance flag."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from math import isfinite
from typing import Literal

from hsca_fast._native import text as _native
from hsca_fast._native.strings import encode
from hsca_fast.data import PACKAGED
from hsca_fast.text.toml_lines import Path, line_of
from hsca_fast.types import DomainTag, NuanceFlag

AT = ("any", "start", "end")
IN = ("any", "question", "statement")
MAX_CUE_WORDS = 8
MAX_OWN_CATEGORIES = 48  # the kernel holds 64: six flags, ten domains, and these
MAX_WORDS = 65_535
DOMAIN_PREFIX = "domain."
# The flags that cues set. No other flag can be had by a list of words, so that its absence never means less.
CUE_FLAGS = ("emotional_tone_urgent", "rhetorical_question", "analogy", "hedged", "absolute", "instructional")
_FLAGS = frozenset(flag.value for flag in NuanceFlag)
_DOMAINS = tuple(tag.value for tag in DomainTag)[:10]
_PLAIN = re.compile(r"[a-z]+(?: [a-z]+)*")
_MANY_DIGITS = re.compile(r"\d[\d_]{4000}")
_MANY_BRACKETS = re.compile(r"(?:[\[{][^\]}]*?){100}")


class LexiconError(ValueError):
    """A lexicon that cannot be used; the message names the entry and, of a file, the file and the line."""

    def __init__(self, message: str, where: Path = ()) -> None:
        super().__init__(message)
        self.where = where  # the wrong entry: ("category", 0, "cues", 3) and the like


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

    def __post_init__(self) -> None:
        if isinstance(self.cues, str) or not isinstance(self.cues, Iterable):
            raise TypeError(f"cues must be a sequence of Cue, not {type(self.cues).__name__}")
        cues = tuple(Cue(cue) if isinstance(cue, str) else cue for cue in self.cues)
        for i, cue in enumerate(cues):
            if not isinstance(cue, Cue):
                raise TypeError(f"cues[{i}] must be a Cue or a str, not {type(cue).__name__}")
        object.__setattr__(self, "cues", cues)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Categories of cues, from a file or made by hand; give it to `ScoringConfig(lexicons=[...])`.

    A category with the name of a flag that has cues (`CUE_FLAGS`) adds to them (a cue that is there already gets the new
    weight), one called `domain.` and a domain's name adds to the rules of that domain; any other name is counted and
    shown by `explain_text`.

    Raises
    ------
    LexiconError
        An entry is wrong.
    TypeError
        Something is no category or no cue.

    Examples
    --------
    >>> lexicon = Lexicon((Category("jargon", (Cue("deep dive"), Cue("synergy", weight=0.5))),))
    >>> [category.name for category in lexicon.categories]
    ['jargon']
    """

    categories: tuple[Category, ...]
    source: str = field(default="", compare=False, repr=False)  # the file
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.categories, (str, Category)) or not isinstance(self.categories, Iterable):
            raise TypeError(f"categories must be a sequence of Category, not {type(self.categories).__name__}")
        object.__setattr__(self, "categories", tuple(self.categories))
        names: set[str] = set()
        for i, category in enumerate(self.categories):
            if not isinstance(category, Category):
                raise TypeError(f"categories[{i}] must be a Category, not {type(category).__name__}")
            _check_category(category, ("category", i))
            if category.name in names:
                raise LexiconError(f"category {_shown(category.name)} is there already", ("category", i, "name"))
            names.add(category.name)
            for j, cue in enumerate(category.cues):
                if problem := _problem(cue):
                    raise LexiconError(f"category {_shown(category.name)}: {problem}", ("category", i, "cues", j))
        object.__setattr__(self, "_hash", hash(self.categories))

    def __hash__(self) -> int:  # once: thousands of cues, looked up by every call
        return self._hash

    def __reduce__(self) -> tuple[type[Lexicon], tuple[tuple[Category, ...], str]]:
        return Lexicon, (self.categories, self.source)  # another process hashes otherwise

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Lexicon:
        """Read a TOML file of `[[category]]` tables with `name`, `cues`, and optionally `threshold` and `share`.

        Raises
        ------
        LexiconError
            The file cannot be read or an entry is wrong; the message names the file and the line.
        """
        name = os.fsdecode(path)
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise LexiconError(f"{name}: {error.strerror or error}") from error
        try:
            source = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise LexiconError(f"{name}:{line}: byte {content[error.start]:#04x} is no UTF-8") from error
        return _parse(source, name)


def _parse(source: str, name: str) -> Lexicon:
    try:
        document = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        message, place, _ = str(error).partition(" (at ")
        number = re.match(r"line (\d+)", _.strip()) if place else None
        line = int(number[1]) if number else source.rstrip().count("\n") + 1  # else the end of the document
        raise LexiconError(f"{name}:{line}: {message}") from error
    except (ValueError, RecursionError) as error:
        # Digits that int() refuses, or more brackets than the parser can follow.
        what, pattern = ("a number of too many digits", _MANY_DIGITS)
        if isinstance(error, RecursionError):
            what, pattern = ("too many brackets inside each other", _MANY_BRACKETS)
        found = pattern.search(source)
        line = source.count("\n", 0, found.start() if found else 0) + 1
        raise LexiconError(f"{name}:{line}: {what}") from None
    try:
        for key in document:
            if key != "category" or not isinstance(document[key], list):
                raise LexiconError("a lexicon holds [[category]] tables and nothing else", (key,))
        tables = document.get("category", [])
        return Lexicon(tuple(_category(table, ("category", i)) for i, table in enumerate(tables)), name)
    except LexiconError as error:
        raise LexiconError(f"{name}:{line_of(source, error.where)}: {error}", error.where) from None


def _category(table: object, where: Path) -> Category:
    if not isinstance(table, dict):
        raise LexiconError("write [[category]], then name and cues", where)
    for key in table:
        if key not in ("name", "cues", "threshold", "share"):
            raise LexiconError(
                f"unknown key {_shown(key)}; a category has name, cues, threshold and share", (*where, key)
            )
    if not isinstance(table.get("cues"), list):
        raise LexiconError(f"category {_shown(table.get('name'))} needs an array of cues", (*where, "cues"))
    cues = tuple(_cue(entry, (*where, "cues", j)) for j, entry in enumerate(table["cues"]))
    return Category(table.get("name", ""), cues, table.get("threshold"), table.get("share"))


def _cue(entry: object, where: Path) -> Cue:
    if isinstance(entry, str):
        return Cue(entry)
    if not isinstance(entry, dict) or "text" not in entry:
        raise LexiconError(f"cue {_shown(entry)} is neither a string nor a table with a text", where)
    for key in entry:
        if key not in ("text", "weight", "at", "in"):
            raise LexiconError(f"unknown key {_shown(key)}; a cue has text, weight, at and in", (*where, key))
    return Cue(entry["text"], entry.get("weight", 1.0), entry.get("at", "any"), entry.get("in", "any"))


def _shown(value: object) -> str:
    """A value in a message, however long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an int of too many digits; lists in lists in lists
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _problem(cue: Cue) -> str | None:
    """What is wrong with a cue."""
    if not isinstance(cue.text, str):
        return f"the text of a cue must be a string, not {_shown(cue.text)}"
    n_words = _count_words(cue.text)
    if not 1 <= n_words <= MAX_CUE_WORDS:
        return f"cue {_shown(cue.text)} has {n_words or 'no'} words; it must have one to {MAX_CUE_WORDS}"
    if not _is_number(cue.weight) or not -1000 <= cue.weight <= 1000:
        return f"cue {_shown(cue.text)}: weight must be a number from -1000 to 1000, not {_shown(cue.weight)}"
    if not isinstance(cue.at, str) or cue.at not in AT:
        return f"cue {_shown(cue.text)}: at must be one of {', '.join(AT)}, not {_shown(cue.at)}"
    if not isinstance(cue.within, str) or cue.within not in IN:
        return f"cue {_shown(cue.text)}: in must be one of {', '.join(IN)}, not {_shown(cue.within)}"
    return None


def _count_words(text: str) -> int:
    if _PLAIN.fullmatch(text):  # nearly all cues; segmenting thousands would take longer than all the rest
        return text.count(" ") + 1
    from hsca_fast.text.segmentation import segment

    return len(segment(text).words)


def _check_category(category: Category, where: Path) -> None:
    name = category.name
    if not isinstance(name, str) or not name:
        raise LexiconError("a category needs a name", (*where, "name"))
    if name in _FLAGS and name not in CUE_FLAGS:
        raise LexiconError(
            f"category {name!r}: no cues can set this flag, only {', '.join(CUE_FLAGS)}", (*where, "name")
        )
    if name.startswith(DOMAIN_PREFIX) and name.removeprefix(DOMAIN_PREFIX) not in _DOMAINS:
        raise LexiconError(
            f"category {_shown(name)}: after {DOMAIN_PREFIX!r} comes one of {', '.join(_DOMAINS)}", (*where, "name")
        )
    threshold, share = category.threshold, category.share
    if threshold is not None and not (_is_number(threshold) and 0 < threshold <= 1e6):
        raise LexiconError(
            f"category {_shown(name)}: threshold must be a number above 0, not {_shown(threshold)}",
            (*where, "threshold"),
        )
    if share is not None and not (_is_number(share) and 0 <= share <= 1):
        raise LexiconError(
            f"category {_shown(name)}: share must be a number from 0 to 1, not {_shown(share)}", (*where, "share")
        )


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


@cache
def builtin(name: str) -> Lexicon:
    """A lexicon of the package: "nuance" or "domain_rules"."""
    path = PACKAGED / f"{name}.toml"
    return _parse(path.read_text(encoding="utf-8"), f"{name}.toml")


def merge(lexicons: Iterable[Lexicon]) -> Lexicon:
    """One lexicon of all categories; later ones add to earlier ones of the same name. Of cues with the same words and
    conditions, the last counts."""
    merged: dict[str, Category] = {}
    for lexicon in lexicons:
        for new in lexicon.categories:
            old = merged.get(new.name, Category(new.name, ()))
            cues = (*old.cues, *new.cues)
            keys = zip(_words_of(cues), cues, strict=True)
            merged[new.name] = Category(
                new.name,
                tuple({(words, cue.at, cue.within): cue for words, cue in keys}.values()),
                old.threshold if new.threshold is None else new.threshold,
                old.share if new.share is None else new.share,
            )
    return Lexicon(tuple(merged.values()))


def _words_of(cues: Sequence[Cue]) -> list[tuple[tuple[int, int], ...]]:
    """The words of each cue as the kernel sees them."""
    return _native.cue_words([encode(cue.text)[0] for cue in cues])


def check_together(lexicons: Sequence[Lexicon]) -> None:
    """Whether the kernel can hold these lexicons and all that are built in, so that it does not depend on what is asked
    of it. Raises `LexiconError`."""
    if not lexicons:
        return  # most calls; what is built in fits
    built_in = [builtin("nuance"), builtin("domain_rules")]
    names = {category.name for lexicon in built_in for category in lexicon.categories}
    own: set[str] = set()
    words = {word for lexicon in built_in for word in _distinct_words(lexicon)}
    for lexicon in lexicons:
        place = f"{lexicon.source}: " if lexicon.source else ""
        own |= {category.name for category in lexicon.categories} - names
        if len(own) > MAX_OWN_CATEGORIES:
            raise LexiconError(f"{place}{len(own)} categories of your own; there can be {MAX_OWN_CATEGORIES}")
        words |= _distinct_words(lexicon)
        if len(words) > MAX_WORDS:
            raise LexiconError(f"{place}{len(words)} different words with the built-in cues; there can be {MAX_WORDS}")


@lru_cache(maxsize=16)
def _distinct_words(lexicon: Lexicon) -> frozenset[tuple[int, int]]:
    return frozenset(word for category in lexicon.categories for words in _words_of(category.cues) for word in words)
