"""Cue lexicons: which categories a sentence shows by its words, and which flags a text gets.

The file format and what the flags mean are in docs/nuance.md. The rules, all of them:

* A cue is one to eight folded words with conditions: `at` (start, end, any) and `in` (question, statement, any).
* In a sentence, at each word from left to right, a category takes the longest of its cues that starts there and whose
  conditions hold, and goes on after its last word. Weights may be zero or negative: such a cue keeps a shorter one
  inside it from being counted. A category may list a text once for each pair of conditions; all that hold count.
* Categories do not see each other's cues.
* `start` means that only list markers stand before the cue: at most two words, each a number ("2", "1.3") or one ASCII
  letter other than "a" and "i", which begin too many sentences as words. `end` means that its last word is the
  sentence's last.
* A sentence is a question when a question mark follows its last word.
* A sentence shows a category when the weights of its cues reach the threshold; both are read to three decimals, so that
  sums are exact. A text gets the flag when at least one sentence and at least `share` of its sentences show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hsca_fast._reference import segmentation

MAX_CUE_WORDS = 8
MAX_MARKERS = 2
QUESTION_MARKS = "?\u061f\uff1f"
SLACK = 1e-9  # a share is a decimal: 7 of 100 sentences are 0.07 of them


@dataclass(frozen=True)
class Cue:
    """What one category says about a cue text."""

    category: int
    weight: int = 1000  # thousandths
    at: str = "any"
    form: str = "any"  # `in` of the file: question, statement, any


@dataclass(frozen=True)
class Category:
    name: str
    threshold: int = 1000  # thousandths
    share: float = 0.0


@dataclass
class Lexicon:
    categories: list[Category] = field(default_factory=list)
    cues: dict[tuple[str, ...], list[Cue]] = field(default_factory=dict)


@dataclass
class Flags:
    """Of one text: per category, how many sentences show it, and whether they are enough."""

    n_sentences: int
    counts: dict[str, int]
    names: set[str]


def cue_words(text: str) -> tuple[str, ...]:
    """The folded words of a cue as written in a file."""
    return tuple(segmentation.fold(text[begin:end]) for begin, end in segmentation.words(text))


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} must be a number, not {value!r}")
    number = float(value)
    if not abs(number) <= 1000:
        raise ValueError(f"{what} must be between -1000 and 1000, not {value!r}")
    return number


def parse(document: Mapping[str, Any]) -> Lexicon:
    """A lexicon from the dictionary that a TOML file gives. Raises ValueError with the place of a mistake."""
    lexicon = Lexicon()
    names: set[str] = set()
    for key in document:
        if key != "category":
            raise ValueError(f"unknown key {key!r}: a lexicon holds [[category]] tables only")
    for index, table in enumerate(document.get("category", [])):
        name = table.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"category {index + 1} has no name")
        if name in names:
            raise ValueError(f"category {name!r} is there twice")
        names.add(name)
        if unknown := set(table) - {"name", "threshold", "share", "cues"}:
            raise ValueError(f"category {name!r}: unknown key {min(unknown)!r}")
        threshold = _number(table.get("threshold", 1.0), f"category {name!r}: threshold")
        share = _number(table.get("share", 0.0), f"category {name!r}: share")
        if threshold <= 0:
            raise ValueError(f"category {name!r}: threshold must be above 0")
        if not 0 <= share <= 1:
            raise ValueError(f"category {name!r}: share must be between 0 and 1")
        lexicon.categories.append(Category(name, round(threshold * 1000), share))
        for entry in table.get("cues", []):
            _add_cue(lexicon, index, name, entry)
    return lexicon


def _add_cue(lexicon: Lexicon, category: int, name: str, entry: object) -> None:
    fields = {"text": entry} if isinstance(entry, str) else entry
    if not isinstance(fields, dict) or not isinstance(fields.get("text"), str):
        raise ValueError(f"category {name!r}: a cue is a string or a table with a text, not {entry!r}")
    text = fields["text"]
    what = f"category {name!r}, cue {text!r}"
    if unknown := set(fields) - {"text", "weight", "at", "in"}:
        raise ValueError(f"{what}: unknown key {min(unknown)!r}")
    at, form = fields.get("at", "any"), fields.get("in", "any")
    if at not in ("start", "end", "any"):
        raise ValueError(f'{what}: at must be "start", "end" or "any"')
    if form not in ("question", "statement", "any"):
        raise ValueError(f'{what}: in must be "question", "statement" or "any"')
    words = cue_words(text)
    if not 1 <= len(words) <= MAX_CUE_WORDS:
        raise ValueError(f"{what}: a cue has 1 to {MAX_CUE_WORDS} words")
    listed = lexicon.cues.setdefault(words, [])
    if any((cue.category, cue.at, cue.form) == (category, at, form) for cue in listed):
        raise ValueError(f"{what}: there twice")
    weight = _number(fields.get("weight", 1.0), f"{what}: weight")
    listed.append(Cue(category, round(weight * 1000), at, form))


def is_marker(word: str) -> bool:
    """Whether a word may number an entry of a list."""
    if len(word) == 1 and "a" <= word <= "z":
        return word not in "ai"
    return len(word) <= 16 and set(word) <= set("0123456789.,")


def is_question(after_last_word: str) -> bool:
    """Whether a sentence is a question, by what follows its last word."""
    return any(mark in after_last_word for mark in QUESTION_MARKS)


def first_words(words: Sequence[str]) -> int:
    """The last place at which a cue still starts the sentence: markers before it do not count."""
    n = 0
    while n < min(MAX_MARKERS, len(words)) and is_marker(words[n]):
        n += 1
    return n


def match(words: Sequence[str], asks: bool, lexicon: Lexicon) -> list[tuple[str, int, int, float]]:
    """Cues of one sentence of folded words, in text order: (category, first word, last word, weight)."""
    found: list[tuple[str, int, int, float]] = []
    start = first_words(words)
    free_from = [0] * len(lexicon.categories)

    def holds(cue: Cue, first: int, last: int) -> bool:
        at = cue.at == "any" or (first <= start if cue.at == "start" else last + 1 == len(words))
        return at and (cue.form == "any" or asks == (cue.form == "question"))

    for first in range(len(words)):
        longest: dict[int, list[tuple[int, Cue]]] = {}  # by category: its longest cue here, once a condition
        for last in range(first, min(first + MAX_CUE_WORDS, len(words))):
            here: dict[int, list[tuple[int, Cue]]] = {}
            for cue in lexicon.cues.get(tuple(words[first : last + 1]), []):
                if free_from[cue.category] <= first and holds(cue, first, last):
                    here.setdefault(cue.category, []).append((last, cue))
            longest |= here
        for category, uses in sorted(longest.items()):
            for last, cue in uses:
                found.append((lexicon.categories[category].name, first, last, cue.weight / 1000))
                free_from[category] = last + 1
    return found


def shown(words: Sequence[str], asks: bool, lexicon: Lexicon) -> set[str]:
    """The categories that one sentence shows."""
    totals = {c.name: 0 for c in lexicon.categories}
    for category, _, _, weight in match(words, asks, lexicon):
        totals[category] += round(weight * 1000)
    return {c.name for c in lexicon.categories if totals[c.name] >= c.threshold}


def flags(sentences: Sequence[tuple[Sequence[str], bool]], lexicon: Lexicon) -> Flags:
    """Flags of a text given as (folded words, is a question) per sentence."""
    counts = {c.name: 0 for c in lexicon.categories}
    for words, asks in sentences:
        for name in shown(words, asks, lexicon):
            counts[name] += 1
    n = len(sentences)
    names = {c.name for c in lexicon.categories if counts[c.name] >= max(1.0, c.share * n - SLACK)}
    return Flags(n, counts, names)


def sentences_of(text: str, function_words: frozenset[str]) -> list[tuple[list[str], bool]]:
    """The sentences of a text as `flags` takes them."""
    _, sentences, words = segmentation.segment(text, function_words)
    found: list[tuple[list[str], bool]] = []
    at = 0
    for _, sentence_end in sentences:
        folded: list[str] = []
        last_end = 0
        while at < len(words) and words[at][1] <= sentence_end:
            folded.append(segmentation.fold(text[words[at][0] : words[at][1]]))
            last_end = words[at][1]
            at += 1
        found.append((folded, is_question(text[last_end:sentence_end])))
    return found
