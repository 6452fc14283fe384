"""VADER's compound score of a text (Hutto & Gilbert 2014), from the published rules.

The rules are listed at the head of hsca/text/sentiment.hpp. Numbers are those of the vaderSentiment package, 3.3.2, which
rounds the compound to four decimals at the end; here it is not rounded. Valences and emoji descriptions are data and
come with the call; the words of the rules are below.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

BOOST = 0.293
CAPITALS = 0.733
NEGATION = -0.74
NEVER_SO = 1.25
FADING = (1.0, 0.95, 0.9)  # of a booster one, two and three tokens before
NORMALISATION = 15

STRENGTHENING = frozenset(
    "absolutely amazingly awfully completely considerable considerably decidedly deeply effing enormous enormously "
    "entirely especially exceptional exceptionally extreme extremely fabulously flipping flippin frackin fracking "
    "fricking frickin frigging friggin fully fuckin fucking fuggin fugging greatly hella highly hugely incredible "
    "incredibly intensely major majorly more most particularly purely quite really remarkably so substantially "
    "thoroughly total totally tremendous tremendously uber unbelievably unusually utter utterly very".split()
)
WEAKENING = frozenset(
    "almost barely hardly kinda kindof kind-of less little marginal marginally occasional occasionally partly scarce "
    "scarcely slight slightly somewhat sorta sortof sort-of".split()
)
WEAKENING_PAIRS = frozenset({("just", "enough"), ("kind", "of"), ("sort", "of")})
_CONTRACTED = "ain aren can couldn daren didn doesn don hadn hasn haven isn mightn mustn needn oughtn shan shouldn wasn weren won wouldn"
NEGATIONS = frozenset(
    "cannot neither never none nope nor not nothing nowhere uhuh uh-uh without rarely seldom despite".split()
    + [stem + ending for stem in _CONTRACTED.split() for ending in ("'t", "t")]
)
IDIOMS = {
    ("the", "shit"): 3.0,
    ("the", "bomb"): 3.0,
    ("bad", "ass"): 1.5,
    ("bus", "stop"): 0.0,
    ("yeah", "right"): -2.0,
    ("kiss", "of", "death"): -1.5,
    ("to", "die", "for"): 3.0,
    ("beating", "heart"): 3.5,
}


@dataclass(frozen=True)
class Lexicon:
    """Valence of words and emoticons; description of the emoji that are one character."""

    valences: Mapping[str, float]
    emoji: Mapping[str, str]

    @classmethod
    def from_tables(cls, source: str) -> Lexicon:
        """The lexicon in the text of csrc/src/text/sentiment_lexicon.inc."""

        def rows(name: str) -> list[tuple[str, str]]:
            body = source.split(f" {name}[] = {{\n")[1].split("\n};")[0]
            return re.findall(r"\{([^\s,]+|\"(?:[^\"\\]|\\.)*\"), ([^\s,}]+|\"(?:[^\"\\]|\\.)*\")\}", body)

        def text(literal: str) -> str:
            return re.sub(rb"\\(\d{3}|.)", _unescape, literal[1:-1].encode()).decode()

        return cls(
            {text(word): int(tenths) / 10 for word, tenths in rows("kValences")},
            {chr(int(code_point, 16)): text(words) for code_point, words in rows("kEmoji")},
        )


def _unescape(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8)]) if len(match[1]) == 3 else match[1]


@dataclass(frozen=True)
class Sentiment:
    """A text's compound and what it was made of."""

    compound: float
    tokens: list[str]
    valences: list[float]  # one a token, after "but"
    emphasis: float  # of '!' and '?'

    @property
    def rounded(self) -> float:
        """The compound as the package gives it."""
        return round(self.compound, 4)


def describe_emoji(text: str, emoji: Mapping[str, str]) -> str:
    """The text with descriptions for emoji, a space before each unless there is one; none after."""
    parts: list[str] = []
    after_space = True
    for ch in text:
        if ch in emoji:
            parts.append(emoji[ch] if after_space else " " + emoji[ch])
            after_space = False
        else:
            parts.append(ch)
            after_space = ch == " "
    return "".join(parts)


def tokenize(text: str) -> list[str]:
    """What white space separates, without punctuation around it unless that leaves at most two characters."""
    found = []
    for raw in text.split():
        word = raw.strip(string.punctuation)
        found.append(word if len(word) > 2 else raw)
    return found


def is_negation(word: str) -> bool:
    return word in NEGATIONS or "n't" in word


def emphasis(text: str) -> float:
    """What '!' and '?' add to the sum's size."""
    questions = text.count("?")
    by_questions = 0.0 if questions < 2 else questions * 0.18 if questions <= 3 else 0.96
    return min(text.count("!"), 4) * 0.292 + by_questions


def contrast(valences: Sequence[float], at: int) -> list[float]:
    """The values around the "but" at `at`: each in turn changes the first one that is equal to it."""
    changed = list(valences)
    for k in range(len(changed)):
        first = changed.index(changed[k])
        if first != at:
            changed[first] *= 0.5 if first < at else 1.5
    return changed


class _Sentence:
    """Tokens with what the rules ask of them."""

    def __init__(self, tokens: list[str], valences: Mapping[str, float]) -> None:
        self.tokens = tokens
        self.words = [token.lower() for token in tokens]
        self.lexicon = valences
        capitals = sum(token.isupper() for token in tokens)
        self.has_emphasis = 0 < capitals < len(tokens)

    def word(self, at: int) -> str | None:
        return self.words[at] if 0 <= at < len(self.words) else None

    def is_listed(self, at: int) -> bool:
        return self.word(at) in self.lexicon

    def capitals(self, at: int, valence: float) -> float:
        if not (self.has_emphasis and self.tokens[at].isupper()):
            return 0.0
        return CAPITALS if valence > 0 else -CAPITALS

    def boost(self, at: int, valence: float) -> float:
        word = self.words[at]
        if word not in STRENGTHENING and word not in WEAKENING:
            return 0.0
        by = BOOST if word in STRENGTHENING else -BOOST
        return (-by if valence < 0 else by) + self.capitals(at, valence)

    def negation(self, i: int, distance: int) -> float:
        """Factor that the token `distance` before i multiplies with."""
        word, between = self.words[i - distance], self.words[i - distance + 1 : i]
        so = [w in ("so", "this") for w in between]
        # Three before, "so" or "this" right before the word are enough: the published program has it so.
        if any(so) and (word == "never" or (distance == 3 and so[-1])):
            return NEVER_SO
        if word == "without" and "doubt" in between:
            return 1.0
        return NEGATION if is_negation(word) else 1.0

    def phrases(self, i: int, valence: float) -> float:
        def run(begin: int, end: int) -> tuple[str, ...]:
            return tuple(self.words[i + begin : i + end]) if i + end <= len(self.words) else ()

        earlier = [run(-1, 1), run(-2, 1), run(-2, 0), run(-3, 0), run(-3, -1)]
        valence = next((IDIOMS[phrase] for phrase in earlier if phrase in IDIOMS), valence)
        for phrase in (run(0, 2), run(0, 3)):
            valence = IDIOMS.get(phrase, valence)
        for pair in (run(-3, -1), run(-2, 0)):
            if pair in WEAKENING_PAIRS:
                valence -= BOOST
        return valence

    def valence(self, i: int) -> float:
        word = self.words[i]
        if not self.is_listed(i) or (word == "kind" and self.word(i + 1) == "of"):
            return 0.0
        listed = self.lexicon[word]
        valence = 0.0 if word == "no" and self.is_listed(i + 1) else listed
        if "no" in (self.word(i - 1), self.word(i - 2)) or (
            self.word(i - 3) == "no" and self.word(i - 1) in ("or", "nor")
        ):
            valence = listed * NEGATION
        valence += self.capitals(i, valence)
        for distance in (1, 2, 3):
            before = i - distance
            if before < 0 or self.is_listed(before):
                continue
            valence += self.boost(before, valence) * FADING[distance - 1]
            valence *= self.negation(i, distance)
            if distance == 3:
                valence = self.phrases(i, valence)
        if self.word(i - 1) == "least" and self.word(i - 2) not in ("at", "very"):
            valence *= NEGATION
        return valence


def sentiment(text: str, lexicon: Lexicon) -> Sentiment:
    text = describe_emoji(text, lexicon.emoji)
    sentence = _Sentence(tokenize(text), lexicon.valences)
    valences = [sentence.valence(i) for i in range(len(sentence.tokens))]
    if "but" in sentence.words:
        valences = contrast(valences, sentence.words.index("but"))
    total = 0.0
    for valence in valences:  # not sum(): since Python 3.12 it rounds otherwise
        total += valence
    by_marks = emphasis(text)
    if total:
        total += math.copysign(by_marks, total)
    compound = total / math.sqrt(total * total + NORMALISATION)
    return Sentiment(max(-1.0, min(1.0, compound)), sentence.tokens, valences, by_marks)


def compound(text: str, lexicon: Lexicon) -> float:
    """In [-1, 1], not rounded; 0 for a text without a word of the lexicon."""
    return sentiment(text, lexicon).compound


def text_sentiment(text: str, sentences: Sequence[tuple[int, int]], lexicon: Lexicon) -> float:
    """Mean over the sentences, which are given by their places. What has no words belongs to the sentence before it, or
    at the beginning to the first; a text without words is one piece."""
    borders = [0, *(begin for begin, _ in sentences[1:]), len(text)]
    total = 0.0
    for begin, end in pairwise(borders):
        total += compound(text[begin:end], lexicon)
    return total / (len(borders) - 1)
