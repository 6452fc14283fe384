"""Boundaries of beats against marked conversations: snapshots by threshold, `find_beats`, even splits and TextTiling."""

from __future__ import annotations

import hashlib
import json
import math
import tarfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from hsca_fast._native.text import function_words
from hsca_fast.context.beats import BeatConfig, best_cut, word_change
from hsca_fast.context.boundaries import matched_boundaries, pk, window_diff
from hsca_fast.context.calibration import calibrate_snapshot_threshold, split_by_coherence
from hsca_fast.evals.report import EvalReport, Figure
from hsca_fast.text.scoring import score_texts

Marked = tuple[list[str], list[int]]  # turns, and those that open a beat
Splitter = Callable[[Sequence[str]], list[int]]
CRITERION = "find_beats has a lower Pk than TextTiling and than even splits on the held-out half of every set"
SETS = ("tiage", "choi", "qmsum", "beam_100k")
MOST = 100  # conversations of a half
CALIBRATED = 30  # conversations of the dev half that parameters are fitted to


def load(name: str, data: Path) -> dict[str, list[Marked]]:
    """The conversations of one set by half."""
    halves: dict[str, list[Marked]] = {"dev": [], "held-out": []}
    if name == "tiage":
        for part, half in (("train", "dev"), ("dev", "dev"), ("test", "held-out")):
            for talk in json.loads((data / f"tiage/anno_{part}.json").read_text()).values():
                halves[half].append(
                    ([t for t, _ in talk], [i for i, (_, mark) in enumerate(talk) if i and mark == "1"])
                )
    else:
        with tarfile.open(data / f"{name}.tar.xz") as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is None or not member.name.endswith((".ref", ".jsonl", "chat.json")):
                    continue
                text = content.read().decode("utf-8", "replace")
                if name == "qmsum":
                    halves["held-out" if "val" in member.name else "dev"] += map(_meeting, text.splitlines())
                else:
                    half = ("dev", "held-out")[hashlib.sha256(member.name.encode()).digest()[0] % 2]
                    halves[half].append(_choi(text) if name == "choi" else _chat(text))
    return {half: [(t, b) for t, b in found if b and len(t) >= 8][:MOST] for half, found in halves.items()}


def _choi(text: str) -> Marked:
    turns: list[str] = []
    opens: list[int] = []
    for part in text.split("=========="):
        lines = [line.strip() for line in part.splitlines() if line.strip()]
        if lines and turns:
            opens.append(len(turns))
        turns += lines
    return turns, opens


def _meeting(line: str) -> Marked:
    row = json.loads(line)
    turns = [f"{t['speaker']}: {t['content']}" for t in row["meeting_transcripts"]]
    spans = [span for topic in row["topic_list"] for span in topic["relevant_text_span"]]
    return turns, sorted({int(begin) for begin, _ in spans if 0 < int(begin) < len(turns)})


def _chat(text: str) -> Marked:
    """A long chat: a question with its answers and what is asked about them is a beat."""
    beats = [beat for batch in json.loads(text) for beat in batch["turns"] if beat]
    opens = np.cumsum([len(beat) for beat in beats])[:-1].tolist()
    return [message["content"] for beat in beats for message in beat], opens


def even_splits(turns: Sequence[str], length: float) -> list[int]:
    """Beats of equal length, as near to `length` as the turns allow."""
    n = max(1, round(len(turns) / length))
    return sorted({round(i * len(turns) / n) for i in range(1, n)} - {0, len(turns)})


def text_tiling(turns: Sequence[str], w: int, k: int) -> list[int]:
    """Hearst's TextTiling as nltk has it, each turn a paragraph; none where it finds the text too short."""
    stop = sorted(function_words())
    text = "\n\n".join(turn.replace("\n", " ") for turn in turns)
    starts = np.cumsum([0, *(len(turn) + 2 for turn in turns)])[:-1]
    try:
        tiles = _tokenizer()(w=w, k=k, stopwords=stop).tokenize(text)
    except ValueError:
        return []
    at, found = 0, set()
    for tile in tiles[:-1]:
        at += len(tile)
        found.add(int(np.argmin(np.abs(starts - at))))
    return sorted(found - {0})


@cache
def _tokenizer() -> Any:
    """nltk's class, with the same comparison of blocks from sums: its own counts every word of the text anew at every gap."""
    from nltk.tokenize import TextTilingTokenizer

    class Tokenizer(TextTilingTokenizer):  # type: ignore[misc]
        def _block_comparison(self, tokseqs: Sequence[Any], token_table: Mapping[str, Any]) -> list[float]:
            place = {sequence.index: i for i, sequence in enumerate(tokseqs)}
            counts = np.zeros((len(tokseqs) + 1, len(token_table)))
            for column, entry in enumerate(token_table.values()):
                for sequence, n in entry.ts_occurences:
                    counts[place[sequence] + 1, column] += n
            total = np.cumsum(counts, axis=0)
            n_gaps = len(tokseqs) - 1
            scores = []
            for gap in range(n_gaps):
                # The sizes of nltk's windows at both ends, as they are there.
                size = gap + 1 if gap < self.k - 1 else n_gaps - gap if gap > n_gaps - self.k else self.k
                before = total[gap + 1] - total[gap + 1 - size]
                after = total[min(gap + 1 + size, n_gaps + 1)] - total[gap + 1]
                norm = math.sqrt(float(before @ before) * float(after @ after))
                scores.append(float(before @ after) / norm if norm else 0.0)
            return scores

    return Tokenizer


def quality(conversations: Sequence[Marked], splitter: Splitter) -> dict[str, float]:
    """Mean Pk and WindowDiff, and F1 within one turn over all boundaries."""
    pks, diffs, hits, n_true, n_found = [], [], 0, 0, 0
    for turns, truth in conversations:
        found = splitter(turns)
        pks.append(pk(truth, found, len(turns)))
        diffs.append(window_diff(truth, found, len(turns)))
        hits += matched_boundaries(truth, found)
        n_true += len(truth)
        n_found += len(found)
    return {"pk": float(np.mean(pks)), "window_diff": float(np.mean(diffs)), "f1": 2 * hits / max(1, n_true + n_found)}


def calibrate_beats(conversations: Sequence[Marked]) -> BeatConfig:
    """The configuration with the lowest mean Pk; the usual length is that of the marked beats."""
    mean = float(np.mean([len(turns) / (len(truth) + 1) for turns, truth in conversations]))
    best: tuple[float, BeatConfig] | None = None
    for share, question in product((0.3, 0.6, 1.0), (0.0, 0.3)):
        block = max(1, round(mean * share))
        changes = [word_change(turns, BeatConfig(block, question_weight=question)) for turns, _ in conversations]
        for scale, weight in product((0.7, 1.0, 1.2), (0.2, 0.5, 1.0, 3.0)):
            config = BeatConfig(block, round(mean * scale, 1), weight, question)
            loss = float(
                np.mean([pk(b, best_cut(c, config), len(t)) for c, (t, b) in zip(changes, conversations, strict=True)])
            )
            if best is None or loss < best[0]:
                best = loss, config
    assert best is not None
    return best[1]


def splitters(dev: Sequence[Marked]) -> tuple[dict[str, Splitter], list[str]]:
    """Every way of splitting with its parameters from the dev half, and notes of them."""
    some = dev[:: max(1, len(dev) // CALIBRATED)][:CALIBRATED]
    mean = float(np.mean([len(turns) / (len(truth) + 1) for turns, truth in dev]))
    w, k = min(product((10, 20), (3, 10)), key=lambda p: quality(some[:10], lambda turns: text_tiling(turns, *p))["pk"])
    threshold = calibrate_snapshot_threshold(some).preset
    beats = calibrate_beats(some)

    def by_threshold(turns: Sequence[str], limit: float, most: int) -> list[int]:
        batch = score_texts(turns)
        return split_by_coherence(batch.coherence_score, batch.layer1_score, threshold=limit, max_buffer_chunks=most)

    found: dict[str, Splitter] = {
        "even splits": lambda turns: even_splits(turns, mean),
        "TextTiling": lambda turns: text_tiling(turns, w, k),
        "threshold 0.72": lambda turns: by_threshold(turns, 0.72, 20),
        "threshold calibrated": lambda turns: by_threshold(
            turns, threshold.snapshot_coherence_threshold, threshold.max_buffer_chunks
        ),
        "find_beats": lambda turns: best_cut(word_change(turns, beats), beats),
    }
    return found, [f"mean beat {mean:.1f} turns; TextTiling w={w} k={k}; {threshold}; {beats}"]


def run(data: Path | None) -> EvalReport:
    """Every splitter on every set in `data`; parameters come from the dev halves."""
    if data is None:
        raise ValueError("the boundaries eval needs the marked conversations in data")
    figures: dict[str, tuple[Figure, ...]] = {"held-out": ()}
    notes: list[str] = []
    better = cases = 0
    for name in SETS:
        halves = load(name, data)
        ways, chosen = splitters(halves["dev"])
        notes += [f"{name}: {note}" for note in chosen]
        measured = {way: quality(halves["held-out"], split) for way, split in ways.items()}
        for way, q in measured.items():
            notes.append(f"{name}: {way:21} Pk {q['pk']:.3f}  WindowDiff {q['window_diff']:.3f}  F1 +-1 {q['f1']:.3f}")
        beaten = all(measured["find_beats"]["pk"] < measured[way]["pk"] for way in ("even splits", "TextTiling"))
        better, cases = better + beaten, cases + 1
    figures = {"held-out": (Figure("sets where find_beats is best", better, cases, 1.0),)}
    return EvalReport("boundaries", "Beat boundaries", CRITERION, figures, (), tuple(notes), passed=better == cases)
