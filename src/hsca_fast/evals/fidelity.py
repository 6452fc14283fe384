"""Eval 1: does a snapshot hold the thread of its beat, or only the longest turn?"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hsca_fast.context.engine import HSCAEngine
from hsca_fast.context.tuning import TuningParameters, weighted_domains
from hsca_fast.evals.passages import HALVES, Passage, in_half, load_passages, long_turn, turns_of
from hsca_fast.evals.report import SEED, EvalReport, Figure
from hsca_fast.types import ContextSnapshot

CASES = 300
TARGET = 0.9
# Tags that say how the tagger fared, not what a text is about.
_NO_TOPIC = ("cross_domain", "unclassified")


@dataclass(frozen=True, slots=True)
class Beat:
    """One beat: short turns about one thing, and one long turn about another."""

    turns: tuple[str, ...]
    peripheral: int  # which turn is the long one
    label: str
    unsure: tuple[str, ...]
    name: str


def make_beats(passages: Mapping[str, Sequence[Passage]], n: int, seed: int) -> list[Beat]:
    """`n` beats: five to eight turns of two to four sentences of one passage, around a long turn of a source with another label."""
    rng = random.Random(seed)
    labels = list(passages)
    beats: list[Beat] = []
    while len(beats) < n:
        label = labels[len(beats) % len(labels)]
        central = rng.choice(passages[label])
        others = [x for x in labels if x != label and x not in central.unsure]
        aside = rng.choice(passages[rng.choice(others)])
        turns = turns_of(central.text, rng, sentences=(2, 4), most=rng.randint(5, 8))
        if len(turns) < 5 or label in aside.unsure:
            continue
        at = rng.randint(1, len(turns) - 1)
        turns.insert(at, long_turn(aside.text, rng.randint(1200, 3000)))
        name = f"{label} ({central.group}) around {aside.label} ({aside.group})"
        beats.append(Beat(tuple(turns), at, label, central.unsure, name))
    return beats
