"""Texts with planted near-duplicates, from the prose of the package."""

import random
import re
from dataclasses import dataclass
from importlib.resources import files

from hsca_fast import ChunkResult, segment


@dataclass(frozen=True)
class Planted:
    results: list[ChunkResult]
    groups: list[set[str]]  # near-duplicates of each other
    distinct: set[str]  # duplicates of nothing


def passages(size=5):
    """Runs of sentences of one text, none overlapping another."""
    text = (files("hsca_fast") / "data" / "sample.txt").read_text(encoding="utf-8")
    spans = segment(text).sentences.tolist()
    found = [" ".join(text[a:b] for a, b in spans[i : i + size]) for i in range(0, len(spans) - size, size)]
    return [re.sub(r"\s+", " ", each) for each in found if len(each) > 300]


def near_duplicate(text, rng):
    """The same passage as it comes back: another case, a word less, a clause in front, other blanks."""
    words = text.split(" ")
    way = rng.randrange(4)
    if way == 0:
        return text.upper() if rng.random() < 0.3 else text.lower()
    if way == 1:
        del words[rng.randrange(len(words))]
        return " ".join(words)
    if way == 2:
        return f"As was said before: {text}"
    return "  ".join(words)


def planted_duplicates(seed, n_groups=100, n_distinct=200, copies=3):
    rng = random.Random(seed)
    texts = passages()
    rng.shuffle(texts)
    assert len(texts) >= n_groups + n_distinct
    results = []

    def add(text):
        results.append(ChunkResult(f"r{len(results)}", "d", round(rng.uniform(0.3, 1.0), 3), "", "", text))
        return results[-1].chunk_id

    groups = [{add(text), *(add(near_duplicate(text, rng)) for _ in range(copies))} for text in texts[:n_groups]]
    distinct = {add(text) for text in texts[n_groups : n_groups + n_distinct]}
    rng.shuffle(results)
    return Planted(results, groups, distinct)
