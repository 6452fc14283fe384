"""Eval 3: do parameters tuned on a system's own history make snapshots more faithful?"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hsca_fast.context.tuning import HistoryLog, Tuner, TuningParameters
from hsca_fast.evals.fidelity import CASES, Beat, fold, make_beats, measure
from hsca_fast.evals.passages import HALVES, in_half, load_passages
from hsca_fast.evals.report import SEED, EvalReport, Figure

STEPS = (0, 100, 1000)
CRITERION = "Eval 1 on the held-out half rises at each step of N = 0, 100, 1000 interactions with the dev half"


def interactions(beats: list[Beat]) -> HistoryLog:
    """A history: each beat is asked about once, and its central turns answer."""
    log = HistoryLog()
    for beat in beats:
        snapshots = fold(beat.turns)
        ids = [chunk.chunk_id for snapshot in snapshots for chunk in snapshot.chunks]
        log.record(
            f"What was said about {beat.label}?", snapshots, hits=[x for i, x in enumerate(ids) if i != beat.aside]
        )
    return log


def run(data: Path | None = None) -> EvalReport:
    """Eval 3: the history is made of the dev half, and only of beats that Eval 1 does not use."""
    passages = load_passages(data)
    history = interactions(make_beats(in_half(passages, "dev"), STEPS[-1], SEED + 1))
    beats = {half: make_beats(in_half(passages, half), CASES, SEED) for half in HALVES}
    parameters = TuningParameters()
    figures: dict[str, list[Figure]] = {half: [] for half in HALVES}
    notes: list[str] = []
    failures: list[str] = []
    for n in STEPS:
        if n:
            report = Tuner(history.first(n), parameters=parameters, seed=SEED).tune()
            parameters = report.parameters
            notes += [
                f"N = {n}: {c.parameter} {c.old:g} -> {c.new:g} ({c.evidence}; expected gain {c.expected_gain:+.4f})"
                for c in report.changes
                if c.accepted
            ]
        for half in HALVES:
            missed, _ = measure(beats[half], parameters)
            figures[half].append(Figure(f"Eval 1 after N = {n}", CASES - len(missed), CASES))
            failures = [beat.name for beat in missed]
    shares = [figure.share for figure in figures[HALVES[1]]]
    passed = all(a < b for a, b in pairwise(shares))
    return EvalReport(
        "3",
        "Self-improvement signal",
        CRITERION,
        {half: tuple(found) for half, found in figures.items()},
        tuple(failures),
        tuple(notes),
        passed=passed,
    )
