"""Parameters that move with a system's own history of snapshots and query hits (HSCA 4).

Every query that is answered from snapshots says which chunks it used. The snapshots are faithful to it when the domain
that those chunks are about leads the snapshot-weighted domains of the conversation. `Tuner` replays the history with other
parameters and keeps a change only when queries that it did not look at agree.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from os import PathLike, fspath
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast.config import ScoringConfig
from hsca_fast.context.calibration import split_by_coherence
from hsca_fast.fields import Fields, at_least_one, finite, unit
from hsca_fast.files import Tear, TornFileWarning
from hsca_fast.text.scoring import score_texts
from hsca_fast.types import SHORT_CHUNK, ContextSnapshot, DomainTag, NuanceFlag, WeightedChunk

# Tags that say how the tagger fared, not what a text is about.
NO_TOPIC = frozenset((DomainTag.CROSS_DOMAIN.value, DomainTag.UNCLASSIFIED.value))
_TOPICS = {tag: i for i, tag in enumerate(tag.value for tag in DomainTag if tag.value not in NO_TOPIC)}
WINDOWS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30)
THRESHOLD_BOUNDS = (0.3, 0.95)
NUANCE_BOUNDS = (0.5, 2.0)
# The flat score of a turn that is too short to judge is a guess (HSCA 8.4), so history may lift it to that of other turns.
SHORT_CHUNK_BOUNDS = (0.5, 40.0)
_THRESHOLD_STEP = 0.01
_SOFTNESS = 0.1  # margin of domain weight at which an interaction counts as 73 % faithful
_SHRINKAGE = 0.002  # cost of a nuance weight of e or 1/e
_STANDARD_ERRORS = 1.0  # a rise must be larger than this many of its own
_MIN_INTERACTIONS = 20
_MIN_FLAG_CHUNKS = 20
_INTERACTION_FIELDS = ("query", "snapshots", "hits", "cooccurrence_window")
_FLAGS = (*(flag.value for flag in NuanceFlag), SHORT_CHUNK)


def _bounds(flag: str) -> tuple[float, float]:
    return SHORT_CHUNK_BOUNDS if flag == SHORT_CHUNK else NUANCE_BOUNDS


@dataclass(frozen=True, slots=True)
class TuningParameters:
    """What history may move (HSCA 4: window, threshold, nuance weights).

    Parameters
    ----------
    cooccurrence_window, snapshot_coherence_threshold
        As in `HSCAEngine`.
    max_buffer_chunks
        As in `HSCAEngine`; history does not move it.
    nuance_weights
        A chunk's weight is multiplied by the factor of each of its flags; 0.5 to 2 (`short_chunk`: to 40), and 1 for flags
        that are not named.

    Examples
    --------
    >>> TuningParameters(nuance_weights={"hedged": 0.8}).weight(0.5, ["hedged", "absolute"])
    0.4
    """

    cooccurrence_window: int = 5
    snapshot_coherence_threshold: float = 0.72
    max_buffer_chunks: int = 20
    nuance_weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ScoringConfig(window=self.cooccurrence_window)  # says what is wrong
        unit(self.snapshot_coherence_threshold, "snapshot_coherence_threshold")
        at_least_one(self.max_buffer_chunks, "max_buffer_chunks")
        if not isinstance(self.nuance_weights, Mapping):
            raise TypeError(f"nuance_weights must be a dict, not {type(self.nuance_weights).__name__}")
        for flag, weight in self.nuance_weights.items():
            if flag not in _FLAGS:
                raise ValueError(f"nuance_weights has {flag!r}, which is no nuance flag")
            low, high = _bounds(flag)
            if not low <= finite(weight, f"nuance_weights[{flag!r}]") <= high:
                raise ValueError(f"nuance_weights[{flag!r}] must be between {low:g} and {high:g}, not {weight}")
        object.__setattr__(self, "nuance_weights", dict(self.nuance_weights))

    def weight(self, layer1_score: float, nuance_flags: Sequence[str]) -> float:
        """The weight of a chunk with this score and these flags."""
        return layer1_score * math.prod(self.nuance_weights.get(flag, 1.0) for flag in nuance_flags)


def weighted_domains(
    snapshots: Sequence[ContextSnapshot], parameters: TuningParameters | None = None
) -> dict[str, float]:
    """Domains of a conversation, each snapshot speaking with its mean weight; sums over snapshots, scaled to weights of 1.

    Without nuance weights this is the mean of `domain_summary` weighted by `macro_weight`.

    Examples
    --------
    >>> chunk = WeightedChunk("c", "", 0.5, ["legal"], 0.8, [], None, created_at=0.0)
    >>> weighted_domains([ContextSnapshot("s", [chunk], 0.5, {"legal": 1.0}, 0, False, created_at=0.0)])
    {'legal': 1.0}
    """
    parameters = TuningParameters() if parameters is None else parameters
    found: dict[str, float] = {}
    total = 0.0
    for snapshot in snapshots:
        for chunk in snapshot.chunks:
            standing = parameters.weight(chunk.layer1_score, chunk.nuance_flags) / len(snapshot.chunks)
            total += standing
            for tag in chunk.domain_tags:
                found[tag] = found.get(tag, 0.0) + standing
    return {tag: weight / total for tag, weight in found.items()} if total > 0 else found


# ---- history -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Interaction:
    """A query, the snapshots it was asked of, the ids of the chunks that answered it, and the window that scored them."""

    query: str
    snapshots: tuple[ContextSnapshot, ...]
    hits: frozenset[str]
    cooccurrence_window: int = 5

    def triples(self) -> Iterator[tuple[WeightedChunk, ContextSnapshot, bool]]:
        """(chunk, snapshot, hit), in the order of the conversation."""
        for snapshot in self.snapshots:
            for chunk in snapshot.chunks:
                yield chunk, snapshot, chunk.chunk_id in self.hits


class HistoryLog:
    """The interactions so far; `save` and `load` keep them as JSON lines, every bit of them.

    Attributes
    ----------
    tear
        Where the file was torn that the log was loaded from, or None.

    Examples
    --------
    >>> chunk = WeightedChunk("c", "", 0.5, ["legal"], 0.8, [], None, created_at=0.0)
    >>> snapshot = ContextSnapshot("s", [chunk], 0.5, {"legal": 1.0}, 0, False, created_at=0.0)
    >>> log = HistoryLog()
    >>> log.record("May I sublet?", [snapshot], hits=["c"])
    >>> [(chunk.chunk_id, snapshot.snapshot_id, hit) for chunk, snapshot, hit in log[0].triples()]
    [('c', 's', True)]
    """

    def __init__(self, interactions: Sequence[Interaction] = ()) -> None:
        self._interactions = list(interactions)
        self.tear: Tear | None = None

    def record(
        self,
        query: str,
        snapshots: Sequence[ContextSnapshot],
        *,
        hits: Collection[str],
        cooccurrence_window: int = 5,
    ) -> None:
        """Add one interaction; `hits` are ids of chunks in `snapshots`, which were scored with `cooccurrence_window`."""
        if not isinstance(query, str):
            raise TypeError(f"query must be str, not {type(query).__name__}")
        for i, snapshot in enumerate(snapshots):
            if not isinstance(snapshot, ContextSnapshot):
                raise TypeError(f"snapshots[{i}] must be a ContextSnapshot, not {type(snapshot).__name__}")
        if isinstance(hits, str):
            raise TypeError("hits must be a collection of ids, not str")
        ScoringConfig(window=cooccurrence_window)  # says what is wrong
        known = {chunk.chunk_id for snapshot in snapshots for chunk in snapshot.chunks}
        for hit in hits:
            if hit not in known:
                raise ValueError(f"hits has {hit!r}, which is the id of no chunk in snapshots")
        self._interactions.append(Interaction(query, tuple(snapshots), frozenset(hits), cooccurrence_window))

    def __len__(self) -> int:
        return len(self._interactions)

    def __getitem__(self, i: int) -> Interaction:
        return self._interactions[i]

    def first(self, n: int) -> HistoryLog:
        """The log as it was after `n` interactions."""
        return HistoryLog(self._interactions[:n])

    def save(self, path: str | PathLike[str]) -> None:
        """Write one JSON line an interaction; a file of that name is replaced only when all is written."""
        from hsca_fast import jsonl

        lines = (
            {
                "query": x.query,
                "cooccurrence_window": x.cooccurrence_window,
                "hits": sorted(x.hits),
                "snapshots": [s.to_dict(digits=None) for s in x.snapshots],
            }
            for x in self._interactions
        )
        jsonl.write_lines(path, lines, sealed=True)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> HistoryLog:
        """The log that `save` wrote.

        Raises
        ------
        ValueError
            A line is whole, but is no interaction.

        Warns
        -----
        TornFileWarning
            The file is torn. The log holds all that comes before the tear, and `tear` says where that is.
        """
        from hsca_fast import jsonl

        log = cls()
        for number, line in enumerate(jsonl.read_lines(path, sealed=True), 1):
            if isinstance(line, Tear):
                log.tear = line
                warnings.warn(str(line), TornFileWarning, stacklevel=2)
                break
            try:
                row = Fields("Interaction", line, _INTERACTION_FIELDS)
                log.record(
                    row.text("query"),
                    row.each("snapshots", ContextSnapshot.from_dict),
                    hits=row.texts("hits"),
                    cooccurrence_window=row.count("cooccurrence_window", 5),
                )
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{fspath(path)}, line {number}: {error.args[0]}") from error
        return log


# ---- tuning ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Change:
    """One parameter that was moved, or that was tried and kept.

    Attributes
    ----------
    parameter, old, new
        What, from where to where; a nuance weight is named `nuance_weights.hedged`.
    evidence
        How many interactions were searched, and how many judged.
    expected_gain
        Rise of the mean fidelity on the interactions that were not searched.
    accepted
        False: validation did not agree, and the old value stays.
    """

    parameter: str
    old: float
    new: float
    evidence: str
    expected_gain: float
    accepted: bool


@dataclass(frozen=True, slots=True)
class TuningReport:
    """What `Tuner.tune` did; `before` takes everything back."""

    before: TuningParameters
    parameters: TuningParameters
    changes: tuple[Change, ...]
    fidelity_before: float  # on the validation split
    fidelity_after: float

    def revert(self, parameter: str) -> TuningParameters:
        """The tuned parameters with one of them back at its old value.

        Raises
        ------
        KeyError
            No change of that name was accepted.
        """
        for change in self.changes:
            if change.parameter == parameter and change.accepted:
                return _with(self.parameters, parameter, change.old)
        raise KeyError(parameter)


class Tuner:
    """Moves parameters to what a history supports.

    A third of the interactions, drawn by `seed`, is kept for validation. Window, threshold and nuance weights are searched in
    turn with `scipy.optimize`, within bounds; each change is kept only if the fidelity of the validation interactions rises by
    more than its standard error, so the result is never worse on them than before.

    Parameters
    ----------
    history
        The log; fewer than 20 interactions change nothing. Chunks need their texts for the window to be searched.
    parameters
        Where to start.
    seed
        Draws the validation split.
    """

    def __init__(self, history: HistoryLog, *, parameters: TuningParameters | None = None, seed: int = 0) -> None:
        if not isinstance(history, HistoryLog):
            raise TypeError(f"history must be a HistoryLog, not {type(history).__name__}")
        if parameters is not None and not isinstance(parameters, TuningParameters):
            raise TypeError(f"parameters must be TuningParameters, not {type(parameters).__name__}")
        self.parameters = TuningParameters() if parameters is None else parameters
        self._seed = seed
        self._history = history

    def tune(self) -> TuningReport:
        """Search, and report every change that was tried."""
        from scipy.optimize import brute, minimize

        start = self.parameters
        usable = [x for i in range(len(self._history)) if _topic_of_hits(x := self._history[i]) is not None]
        if len(usable) < _MIN_INTERACTIONS:
            return TuningReport(start, start, (), 0.0, 0.0)
        order = np.random.default_rng(self._seed).permutation(len(usable))
        cut = len(usable) // 3
        judged = _Replay([usable[i] for i in sorted(order[:cut])])
        searched = _Replay([usable[i] for i in sorted(order[cut:])])
        evidence = f"{len(usable) - cut} interactions searched, {cut} judged"
        before = judged.fidelity(start)
        current, changes = start, []

        def consider(name: str, old: float, new: float) -> None:
            nonlocal current
            proposed = _with(current, name, new)
            rise = judged.fidelities(proposed) - judged.fidelities(current)
            gain = float(rise.mean())
            accepted = gain > _STANDARD_ERRORS * float(rise.std()) / math.sqrt(len(rise))
            changes.append(Change(name, old, new, evidence, gain, accepted))
            if accepted:
                current = proposed

        if searched.has_texts and judged.has_texts:
            window = min(
                WINDOWS, key=lambda w: (-searched.fidelity(replace(current, cooccurrence_window=w)), abs(w - 5))
            )
            if window != current.cooccurrence_window:
                consider("cooccurrence_window", current.cooccurrence_window, window)

        low, high = THRESHOLD_BOUNDS
        grid = slice(low, high + _THRESHOLD_STEP / 2, _THRESHOLD_STEP)

        def loss_at(x: npt.NDArray[np.float64], *_: Any, **__: Any) -> float:
            return -searched.fidelity(replace(current, snapshot_coherence_threshold=float(np.clip(x, 0.0, 1.0).max())))

        _, _, places, losses = brute(loss_at, (grid,), full_output=True, finish=None)
        threshold = _middle_of_best(np.ravel(places), np.ravel(losses))
        if threshold != current.snapshot_coherence_threshold:
            consider("snapshot_coherence_threshold", current.snapshot_coherence_threshold, threshold)

        flags = searched.frequent_flags()
        if flags:
            old = np.log([current.nuance_weights.get(flag, 1.0) for flag in flags])
            bounds = np.log([_bounds(flag) for flag in flags])
            laid = searched.lay_out(current)

            def loss(logs: npt.NDArray[np.float64], *_: Any, **__: Any) -> float:
                weights = dict(zip(flags, np.exp(logs), strict=True))
                return _SHRINKAGE * float(logs @ logs) - float(laid.fidelities(weights).mean())

            limits = [(float(low), float(high)) for low, high in bounds]
            new = np.clip(minimize(loss, old, method="L-BFGS-B", bounds=limits).x, bounds[:, 0], bounds[:, 1])
            # The largest effect is judged first.
            for i in np.argsort(-np.abs(new - old) * searched.has_flag.mean(axis=0)[[_FLAGS.index(f) for f in flags]]):
                low, high = _bounds(flags[i])
                weight = min(max(round(math.exp(new[i]), 4), low), high)
                if abs(new[i] - old[i]) > 1e-3:
                    consider(f"nuance_weights.{flags[i]}", math.exp(old[i]), weight)
        return TuningReport(start, current, tuple(changes), before, judged.fidelity(current))


def _with(parameters: TuningParameters, name: str, value: float) -> TuningParameters:
    head, _, flag = name.partition(".")
    if flag:
        return replace(parameters, nuance_weights={**parameters.nuance_weights, flag: value})
    options: dict[str, Any] = {head: int(value) if head == "cooccurrence_window" else value}
    return replace(parameters, **options)


def _middle_of_best(grid: npt.NDArray[np.float64], losses: npt.NDArray[np.float64]) -> float:
    """The middle of the longest run of best values, so that a chance optimum at an edge is not taken."""
    best = np.flatnonzero(losses <= losses.min() + 1e-12)
    runs = np.split(best, np.flatnonzero(np.diff(best) > 1) + 1)
    run = max(runs, key=len)
    return round(float(grid[run[len(run) // 2]]), 4)


class _Layout:
    """Interactions with their snapshots decided: what remains free are the nuance weights."""

    def __init__(self, replay: _Replay, standing: npt.NDArray[np.float64]) -> None:
        self._replay = replay
        self._standing = standing

    def fidelities(self, nuance_weights: Mapping[str, float]) -> npt.NDArray[np.float64]:
        """How far the domain of the hits leads in each interaction, as a number between 0 and 1."""
        r = self._replay
        logs = np.array([math.log(nuance_weights.get(flag, 1.0)) for flag in r.flags])
        standing = self._standing * np.exp(r.has_flag @ logs)
        n = len(r.topic)
        domains = np.zeros((n, r.has_tag.shape[1]))
        np.add.at(domains, r.interaction, r.has_tag * standing[:, None])
        total = np.bincount(r.interaction, standing, minlength=n)
        rows = np.arange(n)
        lead = domains[rows, r.topic].copy()
        domains[rows, r.topic] = -1.0
        margin = (lead - domains.max(axis=1)) / np.where(total > 0, total, 1.0)
        found: npt.NDArray[np.float64] = 1.0 / (1.0 + np.exp(-margin / _SOFTNESS))
        return found


def _topic_of_hits(interaction: Interaction) -> int | None:
    """What the hits are about: the number of the tag that most of them have; None if they have none."""
    counts = [0] * len(_TOPICS)
    for chunk, _, hit in interaction.triples():
        for tag in dict.fromkeys(chunk.domain_tags) if hit else ():
            if tag in _TOPICS:
                counts[_TOPICS[tag]] += 1
    return counts.index(max(counts)) if any(counts) else None


class _Replay:
    """Interactions whose hits have a topic, as arrays to be folded into snapshots again with other parameters."""

    def __init__(self, interactions: Sequence[Interaction]) -> None:
        self.flags = list(_FLAGS)
        kept = [[chunk for chunk, _, _ in interaction.triples()] for interaction in interactions]
        self.chunks = [chunk for chunks in kept for chunk in chunks]
        self.lengths = [len(chunks) for chunks in kept]
        self.interaction = np.repeat(np.arange(len(kept)), self.lengths)
        self.topic = np.array([_topic_of_hits(interaction) for interaction in interactions], np.intp)
        self.has_tag = np.array([[tag in c.domain_tags for tag in _TOPICS] for c in self.chunks], float).reshape(
            -1, len(_TOPICS)
        )
        self.has_flag = np.array([[flag in c.nuance_flags for flag in self.flags] for c in self.chunks], float).reshape(
            -1, len(self.flags)
        )
        self.coherence = np.array([c.coherence_score for c in self.chunks])
        self.has_texts = all(c.text for c in self.chunks)
        self._logged = np.array([c.layer1_score for c in self.chunks])
        self._windows = np.repeat([x.cooccurrence_window for x in interactions], self.lengths)
        self._scores: dict[int, npt.NDArray[np.float64]] = {}

    def frequent_flags(self) -> list[str]:
        """Flags that enough chunks have, and enough have not, to say anything."""
        counts = self.has_flag.sum(axis=0)
        rest = len(self.chunks) - counts
        return [f for f, n, m in zip(self.flags, counts, rest, strict=True) if min(n, m) >= _MIN_FLAG_CHUNKS]

    def layer1(self, window: int) -> npt.NDArray[np.float64]:
        """The weights as logged, each changed as far as another window changes the score of its text; what was judged in a run of
        short turns stays as it is."""
        if not self.has_texts or bool(np.all(self._windows == window)):
            return self._logged
        fresh, factor = self._scored(window), np.ones(len(self.chunks))
        for logged in np.unique(self._windows).tolist():
            base = self._scored(logged)
            usable = (self._windows == logged) & (base > 0) & (base != fresh)
            factor[usable] = fresh[usable] / base[usable]
        return np.asarray(np.minimum(self._logged * factor, 1.0))

    def _scored(self, window: int) -> npt.NDArray[np.float64]:
        if window not in self._scores:
            batch = score_texts([c.text for c in self.chunks], config=ScoringConfig(window=window))
            self._scores[window] = batch.layer1_score
        return self._scores[window]

    def lay_out(self, parameters: TuningParameters) -> _Layout:
        weights = self.layer1(parameters.cooccurrence_window)
        sizes = np.ones(len(self.chunks))
        begin = 0
        for length in self.lengths:
            end = begin + length
            opens = split_by_coherence(
                self.coherence[begin:end],
                weights[begin:end],
                threshold=parameters.snapshot_coherence_threshold,
                max_buffer_chunks=parameters.max_buffer_chunks,
            )
            edges = [0, *opens, length]
            for a, b in pairwise(edges):
                sizes[begin + a : begin + b] = b - a
            begin = end
        return _Layout(self, weights / sizes)

    def fidelities(self, parameters: TuningParameters) -> npt.NDArray[np.float64]:
        return self.lay_out(parameters).fidelities(parameters.nuance_weights)

    def fidelity(self, parameters: TuningParameters) -> float:
        return float(np.mean(self.fidelities(parameters)))
