"""Eval 4: can text that is full of a query's words, but says nothing, fool the weights?"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hsca_fast._native.text import function_words
from hsca_fast.evals.passages import HALVES, Passage, in_half, load_passages, long_turn, sentences_of
from hsca_fast.evals.report import SEED, EvalReport, Figure
from hsca_fast.text.scoring import score_texts
from hsca_fast.text.segmentation import segment

CASES = 300
DOCUMENTS = 30
LOW = 0.35
TARGET = 0.95
KINDS = ("stuffed", "planted", "list", "repeated")
CRITERION = (
    ">= 95 % of adversaries have layer1_score <= 0.35 (specification: 90 %); among 30 documents, >= 95 % are in the top 3 "
    "by TF-IDF, and >= 95 % in the bottom third by layer1_score"
)
_FUNCTION_WORDS = frozenset(function_words())


@dataclass(frozen=True, slots=True)
class Attack:
    """A query, real documents, and one more (the last) that was made to match the query."""

    query: tuple[str, ...]
    documents: tuple[str, ...]
    name: str


def words_of(text: str) -> list[str]:
    """The words of a text in lower case."""
    return [text[a:b].lower() for a, b in segment(text).words.tolist()]


def tf_idf(query: Sequence[str], documents: Sequence[str]) -> npt.NDArray[np.float64]:
    """Cosine of the query and each document; idf = ln((1 + n) / (1 + df)) + 1, as scikit-learn has it.

    Examples
    --------
    >>> tf_idf(["cat"], ["A cat.", "A dog."]).round(3).tolist()
    [0.815, 0.0]
    """
    counts = [Counter(words_of(document)) for document in documents]
    df = Counter(word for count in counts for word in count)

    def idf(word: str) -> float:
        return math.log((1 + len(documents)) / (1 + df[word])) + 1

    asked = {word: n * idf(word) for word, n in Counter(query).items() if word in df}
    norm = math.sqrt(sum(x * x for x in asked.values()))
    scores = np.zeros(len(documents))
    for i, count in enumerate(counts):
        weights = {word: n * idf(word) for word, n in count.items()}
        length = math.sqrt(sum(x * x for x in weights.values()))
        if norm and length:
            scores[i] = sum(x * weights.get(word, 0.0) for word, x in asked.items()) / (norm * length)
    return scores


def make_attacks(passages: Mapping[str, Sequence[Passage]], n: int, seed: int) -> list[Attack]:
    """`n` attacks of the four kinds, of the size of the documents that they hide among."""
    rng = random.Random(seed)
    everything = [p for group in passages.values() for p in group]
    df = Counter(word for p in everything for word in set(words_of(p.text)))
    sentences = [p.text[a:b] for p in everything for a, b in sentences_of(p.text) if 40 <= b - a <= 300]
    attacks: list[Attack] = []
    while len(attacks) < n:
        kind = KINDS[len(attacks) % len(KINDS)]
        chosen = rng.sample(everything, DOCUMENTS - 1)
        size = rng.randint(1800, 3200)
        asked = chosen[0]
        counts = Counter(w for w in words_of(asked.text) if w not in _FUNCTION_WORDS and len(w) > 3 and w.isalpha())
        best = sorted(counts, key=lambda w: (-counts[w] * math.log(len(everything) / df[w]), w))
        query = best[: rng.randint(4, 8)]
        adversary = ""
        for line in _lines(kind, query, sentences, rng):
            adversary += line + " "
            if len(adversary) >= size:
                break
        documents = (*(long_turn(p.text, size) for p in chosen), adversary.strip())
        attacks.append(Attack(tuple(query), documents, f"{len(attacks)}: {kind}, {' '.join(query)}"))
    return attacks


def _lines(kind: str, query: Sequence[str], sentences: Sequence[str], rng: random.Random) -> Iterator[str]:
    """Sentences without end: strangers with the query's words put in, one phrase put in, words of lists, or a list repeated."""
    while True:
        words = rng.choice(sentences).split()
        if kind == "stuffed":
            for word in rng.sample(query, rng.randint(3, len(query))):
                words.insert(rng.randrange(len(words)), word)
        elif kind == "planted":
            at = rng.randrange(len(words))
            words[at:at] = query[:3]
        elif kind == "list":
            stray = [w.strip(".,;:!?\"'()") for w in words[:6]]
            words = rng.sample([*query, *rng.sample(query, len(query) // 2), *stray], len(query))
            words[-1] += "."
        else:
            words = [*query[:-1], f"{query[-1]}."]
        yield " ".join(words)


def run(data: Path | None = None) -> EvalReport:
    """Eval 4 on both halves."""
    passages = load_passages(data)
    figures: dict[str, tuple[Figure, ...]] = {}
    failures: list[str] = []
    for half in HALVES:
        attacks = make_attacks(in_half(passages, half), CASES, SEED)
        low = top = bottom = 0
        failures = []
        for attack in attacks:
            layer1 = score_texts(attack.documents).layer1_score
            matches = tf_idf(attack.query, attack.documents)
            found = (
                bool(layer1[-1] <= LOW),
                int(np.sum(matches[:-1] > matches[-1])) < 3,
                int(np.sum(layer1[:-1] < layer1[-1])) < DOCUMENTS // 3,
            )
            low, top, bottom = low + found[0], top + found[1], bottom + found[2]
            if not all(found):
                failures.append(f"{attack.name} (layer1 {layer1[-1]:.2f}; low, TF-IDF top 3, bottom third: {found})")
        figures[half] = (
            Figure(f"layer1_score <= {LOW}", low, CASES, TARGET),
            Figure("top 3 by TF-IDF", top, CASES, TARGET),
            Figure("bottom third by layer1_score", bottom, CASES, TARGET),
        )
    passed = all(figure.passed for figure in figures[HALVES[1]])
    return EvalReport("4", "Adversarial shallow content", CRITERION, figures, tuple(failures), passed=passed)
