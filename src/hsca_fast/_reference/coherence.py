"""Coherence, the second layer's measure of structurally sensible text, from sentences of raw and folded words.

The formula and the reasons for it are in docs/formulas.md; names are the same here and there. The tables are those of
the kernel (csrc/src/text/coherence_tables.inc, order_words.inc) and come in as an argument.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hsca_fast._reference.segmentation import MAX_SENTENCE_WORDS, char_class, fold, segment

PRONOUN, CLAUSE, ANTECEDENT = 1, 2, 4  # properties of a class
LETTER_BYTES = 8  # bytes of a folded word that are looked at, unless it has more than LONG_WORD
LONG_WORD = 16
MEMORY = 16  # a sentence like one of the last so many counted ones is not counted again


@dataclass(frozen=True)
class Tables:
    """What was fitted (tools/fit_coherence.py). Class 0 is the border of a sentence, then come listed words, the pause,
    and the shapes of other words."""

    order_words: Mapping[str, int]
    properties: Sequence[int]  # of each class
    pause: int
    title: int
    endings: npt.NDArray[np.uint8]  # 28 x 28, class by the last two letters
    order: npt.NDArray[np.int8]  # classes x classes, 16 ln of how much likelier a pair is in order than by chance
    letters: npt.NDArray[np.int8]  # 27 x 27, 32 ln of how much likelier a pair is in words than in noise
    constants: Mapping[str, float]


@dataclass
class Counts:
    """What the text is scored by. All integers."""

    sentences: int = 0
    words: int = 0
    unspaced: int = 0  # words of scripts without spaces, two of which make one
    ascii_words: int = 0
    glue: int = 0  # ASCII words that are listed or have at most three letters
    listed: int = 0  # words with a class
    foreign: int = 0  # function words of more than one byte without a class
    pronouns: int = 0
    resolved: int = 0
    clause_words: int = 0
    pauses: int = 0  # gaps between words with a mark in them
    marks: int = 0
    capitals: int = 0  # sentences that do not begin in lower case
    stops: int = 0  # sentences that end in a stop
    pairs: int = 0
    order: int = 0
    accented: int = 0  # words of content with a letter outside ASCII
    letter_pairs: int = 0
    letters: int = 0


@dataclass
class Coherence:
    """The score and its parts, each in [0, 1]."""

    length: float = 0.0
    pronouns: float = 0.0
    punctuation: float = 0.0
    clauses: float = 0.0
    edges: float = 0.0
    extent: float = 0.0
    known: float = 0.0
    letters: float = 0.0
    order: float = 0.0
    score: float = 0.0


def letter_code(byte: int) -> int:
    """1 to 26 for a letter, 27 for a digit, 0 for anything else."""
    lower = byte | 0x20
    if 0x61 <= lower <= 0x7A:
        return lower - 0x60
    return 27 if 0x30 <= byte <= 0x39 else 0


def _is_upper(raw: bytes, at: int) -> bool:
    return at < len(raw) and 0x41 <= raw[at] <= 0x5A


def _count_marks(gap: str) -> int:
    """Everything between words but space."""
    return sum(char_class(ch) not in ("space", "paragraph") for ch in gap)


class Counter:
    """Counts over the sentences of one text."""

    def __init__(self, tables: Tables, function_words: frozenset[str]):
        self.tables = tables
        self.function_words = function_words
        self.counts = Counts()
        self.recent: deque[tuple[str, ...]] = deque(maxlen=MEMORY)
        self.antecedents = [False, False]  # did the last two sentences hold one

    def shape(self, raw: bytes, after_border: bool) -> int:
        """Class of a word that is not listed."""
        if not after_border and _is_upper(raw, 0) and not _is_upper(raw, 1):
            return self.tables.title
        last = letter_code(raw[-1])
        before = letter_code(raw[-2]) if len(raw) > 1 else 0
        return int(self.tables.endings[before, last])

    def add_letters(self, raw: bytes, folded: bytes) -> None:
        seen = raw if len(folded) > LONG_WORD else folded
        self.counts.accented += not seen.isascii()
        for a, b in pairwise(map(letter_code, seen if seen is raw else seen[:LETTER_BYTES])):
            if 1 <= a <= 26 and 1 <= b <= 26:
                self.counts.letter_pairs += 1
                self.counts.letters += int(self.tables.letters[a, b])

    def add_sentence(self, text: str, begin: int, end: int, words: Sequence[tuple[int, int]]) -> None:
        """One sentence and its words, by their places in the text."""
        c, t = self.counts, self.tables
        folded = tuple(fold(text[a:b]) for a, b in words)
        if folded in self.recent:
            return
        self.recent.append(folded)
        c.sentences += 1
        has_antecedent = any(self.antecedents)
        found_one = False
        previous = 0
        last_end = begin
        for (a, b), word in zip(words, folded, strict=True):
            marks = _count_marks(text[last_end:a])
            c.marks += marks
            raw = text[a:b].encode("utf-8", "replace")
            listed = t.order_words.get(word, 0)
            is_function = word in self.function_words or len(word) == 1
            if marks and previous:
                c.pauses += 1
                c.pairs += 1
                c.order += int(t.order[previous, t.pause])
                previous = t.pause
            kind = listed or self.shape(raw, previous == 0)
            c.pairs += 1
            c.order += int(t.order[previous, kind])
            c.words += 1
            c.unspaced += char_class(text[a]) == "unspaced"
            c.listed += listed > 0
            c.foreign += is_function and not listed and len(word.encode("utf-8", "replace")) > 1
            if raw[0] < 0x80:
                c.ascii_words += 1
                c.glue += bool(listed) or is_function or (len(raw) <= 3 and letter_code(raw[-1]) in range(1, 27))
            if not listed and not is_function:
                self.add_letters(raw, word.encode("utf-8", "replace"))
            c.pronouns += t.properties[kind] & PRONOUN != 0
            c.resolved += t.properties[kind] & PRONOUN != 0 and has_antecedent
            c.clause_words += t.properties[kind] & CLAUSE != 0
            if t.properties[kind] & ANTECEDENT:
                has_antecedent = found_one = True
            previous = kind
            last_end = max(last_end, b)
        self.antecedents = [self.antecedents[1], found_one]
        tail = text[last_end:end]
        marks = _count_marks(tail)
        c.marks += marks
        if marks:
            c.pairs += 1
            c.order += int(t.order[previous, 0])
        c.stops += any(char_class(ch) in ("stop", "wide_stop") for ch in tail)
        c.capitals += char_class(text[words[0][0]]) != "lower"


def _trapezoid(x: float, low: float, full: float, falls: float, none: float) -> float:
    """0 up to `low`, 1 from `full` to `falls`, 0 from `none` on."""
    return max(0.0, min(1.0, (x - low) / (full - low), (none - x) / (none - falls)))


def _sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, z))))


def english_share(c: Counts) -> float:
    """Share of the words that are listed English ones, less those of other languages."""
    return (c.listed - c.foreign) / c.words if c.words else 0.0


def finish(c: Counts, k: Mapping[str, float]) -> Coherence:
    """The parts and the score from the counts."""
    if not c.words:
        return Coherence()
    n = c.sentences
    words = c.words - c.unspaced / 2
    r = Coherence()
    r.length = _trapezoid(words / n, k["length_low"], k["length_full"], k["length_falls"], k["length_none"])
    r.pronouns = (c.resolved + 1) / (c.pronouns + 1)
    r.punctuation = _trapezoid(c.marks / words, k["marks_low"], k["marks_full"], k["marks_falls"], k["marks_none"])
    clauses = 1 + (c.clause_words + c.pauses) / n
    r.clauses = _trapezoid(clauses, k["clauses_low"], k["clauses_full"], k["clauses_falls"], k["clauses_none"])
    r.edges = (c.capitals + c.stops) / (2 * n)
    r.extent = words / (words + k["extent_half"])
    share = (c.glue + k["glue_prior"] * k["glue_words"]) / (c.ascii_words + k["glue_words"])
    r.known = _trapezoid(share, k["glue_low"], k["glue_full"], 2.0, 3.0)
    mean = (c.letters / 32 + k["letters_prior"] * k["letters_pairs"]) / (c.letter_pairs + k["letters_pairs"])
    ascii = 1 - _trapezoid(c.accented / c.words, k["accents_low"], k["accents_full"], 2.0, 3.0)
    r.letters = 1 - ascii * (1 - _sigmoid(k["letters_slope"] * (mean - k["letters_middle"])))
    mean = (c.order / 16 + k["order_prior"] * k["order_pairs"]) / (c.pairs + k["order_pairs"])
    english = _trapezoid(english_share(c), k["english_low"], k["english_full"], 2.0, 3.0)
    r.order = 1 - english * (1 - _sigmoid(k["order_slope"] * (mean - k["order_middle"])))
    quality = (
        k["length"] * r.length
        + k["pronouns"] * r.pronouns
        + k["punctuation"] * r.punctuation
        + k["clauses"] * r.clauses
        + k["edges"] * r.edges
        + k["extent"] * r.extent
    )
    r.score = min(1.0, quality * r.known * r.letters * r.order)
    return r


def count(text: str, tables: Tables, function_words: frozenset[str]) -> Counts:
    """The counts of a text."""
    _, sentences, words = segment(text, function_words)
    counter = Counter(tables, function_words)
    at = 0
    for begin, end in sentences:
        first = at
        while at < len(words) and words[at][1] <= end and at - first < MAX_SENTENCE_WORDS:
            at += 1
        counter.add_sentence(text, begin, end, words[first:at])
    return counter.counts


def coherence(text: str, tables: Tables, function_words: frozenset[str]) -> Coherence:
    """The coherence of a text."""
    return finish(count(text, tables, function_words), tables.constants)
