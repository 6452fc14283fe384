"""Eval 1: does a snapshot hold the thread of its beat, or only the longest turn?"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hsca_fast.config import ScoringConfig
from hsca_fast.context.engine import HSCAEngine
from hsca_fast.context.tuning import NO_TOPIC, TuningParameters, weighted_domains
from hsca_fast.evals.passages import HALVES, Passage, in_half, load_passages, long_turn, turns_from
from hsca_fast.evals.report import SEED, EvalReport, Figure
from hsca_fast.types import ContextSnapshot

CASES = 500
TARGET = 0.9
SENTENCES = (2, 5)  # of a short turn
CRITERION = "the snapshot-weighted domain summary names the central topic in >= 90 % of beats (specification: 80 %)"


@dataclass(frozen=True, slots=True)
class Beat:
    """Short turns about one thing, and one long turn about another."""

    turns: tuple[str, ...]
    aside: int  # which turn is the long one
    label: str
    unsure: tuple[str, ...]
    name: str


def make_beats(passages: Mapping[str, Sequence[Passage]], n: int, seed: int) -> list[Beat]:
    """`n` beats: seven to ten turns of two to five sentences from sources of one label, and between two of them one turn of
    1,200 to 3,000 characters from a source that is labelled otherwise."""
    rng = random.Random(seed)
    labels = list(passages)
    beats: list[Beat] = []
    while len(beats) < n:
        label = labels[len(beats) % len(labels)]
        central = rng.choice(passages[label])
        length = rng.randint(7, 10)
        turns = turns_from(central, passages[label], rng, length, sentences=SENTENCES)
        aside = rng.choice(passages[rng.choice([x for x in labels if x != label and x not in central.unsure])])
        if label in aside.unsure:
            continue
        at = rng.randint(1, length - 1)
        turns.insert(at, long_turn(aside.text, rng.randint(1200, 3000)))
        name = f"{len(beats)}: {label} ({central.group}) around {aside.label} ({aside.group})"
        beats.append(Beat(tuple(turns), at, label, central.unsure, name))
    return beats


def fold(
    turns: Sequence[str], parameters: TuningParameters | None = None, *, config: ScoringConfig | None = None
) -> list[ContextSnapshot]:
    """The snapshots of a conversation; what is left in the buffer at its end is one more."""
    p = TuningParameters() if parameters is None else parameters
    engine = HSCAEngine(
        p.snapshot_coherence_threshold,
        p.max_buffer_chunks,
        p.cooccurrence_window,
        config=config,
        short_chunks="defer",
    )
    engine.ingest_turns(list(turns))
    if sum(len(snapshot.chunks) for snapshot in engine.get_macro_context()) < len(turns):
        engine.take_snapshot()
    return engine.get_macro_context()


def topic_of(domains: Mapping[str, float], unsure: Sequence[str]) -> str | None:
    """The domain with most weight, among those that the source says yes or no to."""
    topics = {tag: weight for tag, weight in domains.items() if tag not in NO_TOPIC and tag not in unsure}
    return min(topics, key=lambda tag: (-topics[tag], tag)) if topics else None


def central_weight_leads(beat: Beat, snapshots: Sequence[ContextSnapshot]) -> bool:
    """Whether the short turns together weigh more than the long one."""
    weights = [chunk.layer1_score for snapshot in snapshots for chunk in snapshot.chunks]
    return sum(weights) - weights[beat.aside] > weights[beat.aside]


def measure(beats: Sequence[Beat], parameters: TuningParameters | None = None) -> tuple[list[Beat], list[Beat]]:
    """The beats whose topic was missed, and those where the long turn outweighs the rest."""
    missed, outweighed = [], []
    for beat in beats:
        snapshots = fold(beat.turns, parameters)
        if topic_of(weighted_domains(snapshots, parameters), beat.unsure) != beat.label:
            missed.append(beat)
        if not central_weight_leads(beat, snapshots):
            outweighed.append(beat)
    return missed, outweighed


def run(data: Path | None = None) -> EvalReport:
    """Eval 1 on both halves, with the engine's defaults."""
    passages = load_passages(data)
    figures: dict[str, tuple[Figure, ...]] = {}
    failures: list[str] = []
    for half in HALVES:
        beats = make_beats(in_half(passages, half), CASES, SEED)
        missed, outweighed = measure(beats)
        figures[half] = (
            Figure("central topic leads the domain summary", CASES - len(missed), CASES, TARGET),
            Figure("short turns outweigh the long one", CASES - len(outweighed), CASES),
        )
        failures = [beat.name for beat in missed]
    passed = all(figure.passed for figure in figures[HALVES[1]])
    return EvalReport("1", "Snapshot fidelity", CRITERION, figures, tuple(failures), passed=passed)
