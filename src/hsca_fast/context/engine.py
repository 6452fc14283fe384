"""The adaptive window: turns go in, snapshots come out."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from hsca_fast._native.inputs import Texts
from hsca_fast.config import MAX_WINDOW, ScoringConfig
from hsca_fast.fields import Fields, at_least_one, finite, unit
from hsca_fast.files import Tear
from hsca_fast.ids import random_id, random_ids
from hsca_fast.text.scoring import ScoreBatch, score_texts
from hsca_fast.types import SHORT_CHUNK, ContextSnapshot, WeightedChunk

SNAPSHOT_COHERENCE_THRESHOLD = 0.72
MAX_BUFFER_CHUNKS = 20
COOCCURRENCE_WINDOW = 5

# Layer 1 judges no text of fewer sentences than this (HSCA 8.4).
MIN_SENTENCES = 3
# Short turns are judged together as paragraphs of one text.
_TURN_BREAK = "\n\n"

_FORMAT = "hsca_fast.engine"
_VERSION = 1

_INFINITY = float("inf")

T = TypeVar("T")


class HSCAEngine:
    """Turns a conversation into snapshots, one for each coherent beat (HSCA 2.4 and 6).

    A turn is scored by layers 1 to 3 and joins the buffer. When the buffer's coherence, weighted by `layer1_score`,
    reaches the threshold, the buffer is frozen into a `ContextSnapshot`; a buffer that is full before that is frozen with
    `forced` set.

    Parameters
    ----------
    snapshot_coherence_threshold
        Aggregate coherence that makes a snapshot; 0 to 1.
    max_buffer_chunks
        So many chunks make a snapshot in any case; at least 1.
    cooccurrence_window
        `ScoringConfig.window` of Layer 1. It may be given here or in `config`; two different values are refused.
    config
        Further options of the scorer.
    short_chunks
        What to do with turns of fewer than three sentences, which Layer 1 cannot judge. "flag" gives them a flat low
        weight and `short_chunk` among their flags. "defer" holds them back until a run of them has three sentences, and
        then gives each the weight, coherence and domains of the run; a run that is cut off by a longer turn, a full buffer or
        `take_snapshot` is flagged as before.
    retain
        "text" keeps the texts in snapshots; "weights" drops them there and keeps the weight map.
    clock
        Seconds since the epoch. A clock that goes back is held at the latest time it gave, so that `created_at` never
        decreases along a conversation.

    Notes
    -----
    `score_layers`, `should_snapshot` and `take_snapshot` may be overridden; every way to ingest turns then goes through them, one
    turn after the other. Turns that are deferred are joined before they are scored, so "defer" needs `score_layers` as it is.

    Examples
    --------
    >>> engine = HSCAEngine(0.5, max_buffer_chunks=2)
    >>> turns = ["The lamp lit the harbour. Boats came into the harbour. Each boat had a lamp.", "ok", "yes"]
    >>> chunks = engine.ingest_turns(turns)
    >>> [(len(s.chunks), s.forced) for s in engine.get_macro_context()]
    [(1, False), (2, True)]
    """

    def __init__(
        self,
        snapshot_coherence_threshold: float = SNAPSHOT_COHERENCE_THRESHOLD,
        max_buffer_chunks: int = MAX_BUFFER_CHUNKS,
        cooccurrence_window: int = COOCCURRENCE_WINDOW,
        *,
        config: ScoringConfig | None = None,
        short_chunks: str = "flag",
        retain: str = "text",
        clock: Callable[[], float] = time.time,
    ) -> None:
        if config is not None and not isinstance(config, ScoringConfig):
            raise TypeError(f"config must be a ScoringConfig, not {type(config).__name__}")
        self._config = ScoringConfig() if config is None else config
        if cooccurrence_window == COOCCURRENCE_WINDOW:
            cooccurrence_window = self._config.window
        elif self._config.window not in (COOCCURRENCE_WINDOW, cooccurrence_window):
            raise ValueError(
                f"cooccurrence_window is {cooccurrence_window}, but config.window is {self._config.window}"
            )
        self.snapshot_coherence_threshold = snapshot_coherence_threshold
        self.max_buffer_chunks = max_buffer_chunks
        self.cooccurrence_window = cooccurrence_window
        self._short_chunks = _one_of("short_chunks", short_chunks, ("flag", "defer"))
        self._retain = _one_of("retain", retain, ("text", "weights"))
        if not callable(clock):
            raise TypeError(f"clock must be callable, not {type(clock).__name__}")
        self._clock = clock
        self._latest = -_INFINITY
        self._buffer: list[WeightedChunk] = []
        self._snapshots: list[ContextSnapshot] = []
        # Short turns that wait for more, with their numbers of sentences.
        self._deferred: list[tuple[WeightedChunk, int]] = []

    @property
    def snapshot_coherence_threshold(self) -> float:
        """Aggregate coherence that makes a snapshot."""
        return self._threshold

    @snapshot_coherence_threshold.setter
    def snapshot_coherence_threshold(self, value: float) -> None:
        self._threshold = unit(value, "snapshot_coherence_threshold")

    @property
    def max_buffer_chunks(self) -> int:
        """So many chunks make a snapshot in any case."""
        return self._max_chunks

    @max_buffer_chunks.setter
    def max_buffer_chunks(self, value: int) -> None:
        self._max_chunks = at_least_one(value, "max_buffer_chunks")

    @property
    def cooccurrence_window(self) -> int:
        """The window of Layer 1."""
        return self._config.window

    @cooccurrence_window.setter
    def cooccurrence_window(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"cooccurrence_window must be an int, not {type(value).__name__}")
        if not 2 <= value <= MAX_WINDOW:
            raise ValueError(f"cooccurrence_window must be between 2 and {MAX_WINDOW}, not {value}")
        if value != self._config.window:
            self._config = replace(self._config, window=value)

    @property
    def config(self) -> ScoringConfig:
        """How turns are scored."""
        return self._config

    @property
    def short_chunks(self) -> str:
        """What is done with turns that are too short to judge."""
        return self._short_chunks

    @property
    def retain(self) -> str:
        """What snapshots keep of their chunks."""
        return self._retain

    def ingest_turn(self, text: str) -> WeightedChunk:
        """Score a turn and add it to the buffer; take a snapshot if it is time to."""
        if not isinstance(text, str):
            raise TypeError(f"text must be str, not {type(text).__name__}")
        return self.ingest_turns([text])[0]

    def ingest_turns(self, texts: Texts, *, threads: int = 1) -> list[WeightedChunk]:
        """The same as `ingest_turn` on each, in one pass of the scorer.

        Parameters
        ----------
        texts
            What `score_texts` takes. A null is refused.
        threads
            Of the scorer; the result is the same for every number.
        """
        if self._overrides("score_layers"):
            return self._ingest_scored_by_override(texts)
        batch = score_texts(texts, config=self._config, threads=threads)
        _check_valid(batch)
        if self._short_chunks == "flag":
            return self._take_in(batch.iter_chunks(clock=self._now), len(batch))
        return self._take_in_deferring(batch)

    def ingest_chunks(self, chunks: Iterable[WeightedChunk] | ScoreBatch) -> list[WeightedChunk]:
        """Add turns that were scored before, as they are; none is deferred.

        A batch gives a new chunk for each of its valid rows. Chunks keep their `created_at`, and must not belong to a
        snapshot yet. After an error nothing was added.

        Examples
        --------
        >>> from hsca_fast import score_texts
        >>> engine = HSCAEngine()
        >>> len(engine.ingest_chunks(score_texts(["One turn.", "Another turn."])))
        2
        """
        if isinstance(chunks, ScoreBatch):
            self._release_deferred()
            return self._take_in(chunks.iter_chunks(clock=self._now), len(chunks))
        owned = list(chunks)
        for i, chunk in enumerate(owned):
            _check_chunk(chunk, i)
        if len({id(chunk) for chunk in owned}) < len(owned):
            raise ValueError("chunks has the same chunk twice")
        self._release_deferred()
        return self._take_in(owned, len(owned))

    def score_layers(self, text: str) -> WeightedChunk:
        """Layers 1 to 3 of a text; the buffer stays as it is."""
        if not isinstance(text, str):
            raise TypeError(f"text must be str, not {type(text).__name__}")
        return next(score_texts([text], config=self._config).iter_chunks(clock=self._now))

    def should_snapshot(self) -> bool:
        """Whether the buffer is coherent enough, or full."""
        return len(self._buffer) >= self._max_chunks or self._is_coherent()

    def take_snapshot(self) -> ContextSnapshot:
        """Freeze the buffer, and turns that wait for more, into a snapshot and start anew.

        Raises
        ------
        ValueError
            There is nothing in the buffer; nothing changes.
        """
        if not self._buffer and not self._deferred:
            raise ValueError("take_snapshot needs at least one chunk, and the buffer is empty")
        now = self._now()
        self._release_deferred()
        return self._freeze(random_id(), now, *_sums(self._buffer))

    def get_macro_context(self) -> list[ContextSnapshot]:
        """All snapshots so far, in order; without what is still in the buffer."""
        return list(self._snapshots)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state, the buffer included, to a file of JSON lines; the file is replaced whole or not at all.

        The clock is not written, nor is a `config` with models or lexicons: give both again to `load`.
        """
        from hsca_fast import jsonl

        plain = ScoringConfig(
            window=self._config.window,
            domain_model=self._config.domain_model if isinstance(self._config.domain_model, str) else "linear",
            model_timeout_seconds=self._config.model_timeout_seconds,
        )
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "snapshot_coherence_threshold": self._threshold,
            "max_buffer_chunks": self._max_chunks,
            "cooccurrence_window": self._config.window,
            "domain_model": plain.domain_model if plain == self._config else None,
            "short_chunks": self._short_chunks,
            "retain": self._retain,
            "latest": None if self._latest == -_INFINITY else self._latest,
            "deferred_sentences": [n for _, n in self._deferred],
            "n_buffer": len(self._buffer),
            "n_snapshots": len(self._snapshots),
        }
        parts = ([chunk for chunk, _ in self._deferred], self._buffer, self._snapshots)
        items = (item.to_dict(digits=None) for part in parts for item in part)
        jsonl.write_lines(path, chain([header], items))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        config: ScoringConfig | None = None,
        clock: Callable[[], float] = time.time,
    ) -> HSCAEngine:
        """The engine that `save` wrote: what it does next is what the saved one would have done.

        Raises
        ------
        ValueError
            The file is not an engine's, or is not whole, or its `config` cannot be written to a file and is not given.
        """
        from hsca_fast import jsonl

        lines = _Lines(jsonl.read_lines(path), os.fspath(path))
        header = lines.header()
        domain_model = header.text_or_none("domain_model")
        window = header.count("cooccurrence_window")
        if config is None:
            if domain_model is None:
                raise ValueError(f"{os.fspath(path)} was saved with models or lexicons; give its config to load")
            config = ScoringConfig(domain_model=domain_model)
        engine = cls(
            header.number("snapshot_coherence_threshold"),
            header.count("max_buffer_chunks"),
            config=replace(config, window=window),
            short_chunks=header.text("short_chunks"),
            retain=header.text("retain"),
            clock=clock,
        )
        if header.any("latest") is not None:
            engine._latest = header.number("latest")
        engine._deferred = [(lines.next(WeightedChunk.from_dict), n) for n in header.counts("deferred_sentences")]
        engine._buffer = [lines.next(WeightedChunk.from_dict) for _ in range(header.count("n_buffer"))]
        engine._snapshots = [lines.next(ContextSnapshot.from_dict) for _ in range(header.count("n_snapshots"))]
        return engine

    def _now(self) -> float:
        now = self._clock()
        if not (type(now) is float and self._latest <= now < _INFINITY):  # the usual case, at a fifth of the price
            now = max(finite(now, "clock()"), self._latest)
        self._latest = now
        return now

    def _freeze(self, snapshot_id: str, now: float, weight: float, moment: float) -> ContextSnapshot:
        """The snapshot of the buffer, whose sums are given."""
        chunks = self._buffer
        weight_of: dict[str, float] = {}
        for chunk in chunks:
            chunk.parent_id = snapshot_id
            for tag in dict.fromkeys(chunk.domain_tags):
                weight_of[tag] = weight_of.get(tag, 0.0) + chunk.layer1_score
        divisor = weight or 1.0
        snapshot = ContextSnapshot(
            snapshot_id,
            # Copies: whoever got a chunk from `ingest_turn` keeps its text.
            [replace(chunk, text="") for chunk in chunks] if self._retain == "weights" else chunks,
            min(weight / len(chunks), 1.0),
            {tag: w / divisor for tag, w in weight_of.items()},
            len(self._snapshots),
            len(chunks) >= self._max_chunks and not (weight > 0 and moment / weight >= self._threshold),
            now,
        )
        self._buffer = []
        self._snapshots.append(snapshot)
        return snapshot

    def _is_coherent(self) -> bool:
        weight, moment = _sums(self._buffer)
        return weight > 0 and moment / weight >= self._threshold

    def _overrides(self, *names: str) -> bool:
        """Whether a subclass, or somebody else on this object, put its own in the place of one of these methods."""
        return any(getattr(getattr(self, name), "__func__", None) is not getattr(HSCAEngine, name) for name in names)

    def _ingest_scored_by_override(self, texts: Texts) -> list[WeightedChunk]:
        if self._short_chunks != "flag":
            raise ValueError(
                "short_chunks must be 'flag' where score_layers is overridden: deferred turns are scored as one"
            )
        batch = score_texts(texts)  # for what it refuses: after an error nothing was added
        _check_valid(batch)
        return self._take_in(map(self.score_layers, batch.texts), len(batch))

    def _take_in(self, chunks: Iterable[WeightedChunk], n: int) -> list[WeightedChunk]:
        """`append`, `should_snapshot`, `take_snapshot` for each of `n`, with the sums carried along."""
        taken = []
        if self._overrides("should_snapshot", "take_snapshot"):
            for chunk in chunks:
                taken.append(chunk)
                self._buffer.append(chunk)
                if self.should_snapshot():
                    self.take_snapshot()
            return taken
        ids = random_ids(n)
        threshold, max_chunks = self._threshold, self._max_chunks
        weight, moment = _sums(self._buffer)
        with _no_collector():
            for chunk in chunks:
                taken.append(chunk)
                self._buffer.append(chunk)
                weight += chunk.layer1_score
                moment += chunk.coherence_score * chunk.layer1_score
                if len(self._buffer) >= max_chunks or (weight > 0 and moment / weight >= threshold):
                    self._freeze(next(ids), self._now(), weight, moment)
                    weight = moment = 0.0
        return taken

    def _take_in_deferring(self, batch: ScoreBatch) -> list[WeightedChunk]:
        taken = []
        joint = _JointScores(self._config)
        joint.foresee(_texts_of(self._deferred), batch)
        for chunk, n_sentences in zip(batch.iter_chunks(clock=self._now), batch.n_sentences.tolist(), strict=True):
            taken.append(chunk)
            if SHORT_CHUNK not in chunk.nuance_flags:
                self._release_deferred()
                self._buffer.append(chunk)
            else:
                self._deferred.append((chunk, n_sentences))
                if scores := joint.of(_texts_of(self._deferred)):
                    for deferred, _ in self._deferred:
                        scores.give_to(deferred)
                elif len(self._buffer) + len(self._deferred) < self._max_chunks:
                    continue
                self._release_deferred()
            if self.should_snapshot():
                self.take_snapshot()
        return taken

    def _release_deferred(self) -> None:
        self._buffer.extend(chunk for chunk, _ in self._deferred)
        self._deferred.clear()


@dataclass(frozen=True, slots=True)
class _RunScores:
    """What a run of short turns scores as one text."""

    layer1: float
    coherence: float
    domain_tags: list[str]

    def give_to(self, chunk: WeightedChunk) -> None:
        chunk.layer1_score = self.layer1
        chunk.coherence_score = self.coherence
        chunk.domain_tags = [*self.domain_tags]
        chunk.nuance_flags.remove(SHORT_CHUNK)


class _JointScores:
    """Scores of runs of short turns, given as (text, number of sentences)."""

    def __init__(self, config: ScoringConfig) -> None:
        self._config = config
        self._known: dict[str, _RunScores | None] = {}

    def foresee(self, run: list[tuple[str, int]], batch: ScoreBatch) -> None:
        """Score the runs that `batch` will probably make in one pass; a run is over as soon as it has enough sentences."""
        joined = []
        for text, n, is_short in zip(batch.texts, batch.n_sentences.tolist(), batch.short_chunk.tolist(), strict=True):
            run = [*run, (text, n)] if is_short else []
            if _n_sentences(run) >= MIN_SENTENCES:
                joined.append(_joined(run))
                run = []
        self._score(joined)

    def of(self, run: list[tuple[str, int]]) -> _RunScores | None:
        """None if the run is too short yet."""
        if _n_sentences(run) < MIN_SENTENCES:
            return None
        text = _joined(run)
        if text not in self._known:
            self._score([text])
        return self._known[text]

    def _score(self, texts: list[str]) -> None:
        batch = score_texts(texts, config=self._config)
        for text, is_short, chunk in zip(texts, batch.short_chunk.tolist(), batch.iter_chunks(), strict=True):
            scores = _RunScores(chunk.layer1_score, chunk.coherence_score, chunk.domain_tags)
            self._known[text] = None if is_short else scores


def _texts_of(deferred: Iterable[tuple[WeightedChunk, int]]) -> list[tuple[str, int]]:
    return [(chunk.text, n) for chunk, n in deferred]


def _n_sentences(run: list[tuple[str, int]]) -> int:
    return sum(n for _, n in run)


def _joined(run: list[tuple[str, int]]) -> str:
    return _TURN_BREAK.join(text for text, _ in run)


def _sums(chunks: Sequence[WeightedChunk]) -> tuple[float, float]:
    """Σ layer1 and Σ coherence · layer1, added in order: `sum` has other bits in other versions of Python."""
    weight = moment = 0.0
    for chunk in chunks:
        weight += chunk.layer1_score
        moment += chunk.coherence_score * chunk.layer1_score
    return weight, moment


@contextmanager
def _no_collector() -> Iterator[None]:
    """The cycle collector off: nothing here makes cycles, and looking for them takes longer than all the rest."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _check_valid(batch: ScoreBatch) -> None:
    if not batch.valid.all():
        raise ValueError(f"texts[{int(np.argmin(batch.valid))}] is null")


def _check_chunk(chunk: object, i: int) -> None:
    if not isinstance(chunk, WeightedChunk):
        raise TypeError(f"chunks[{i}] must be a WeightedChunk, not {type(chunk).__name__}")
    for name in ("layer1_score", "coherence_score"):
        unit(getattr(chunk, name), f"chunks[{i}].{name}")
    if chunk.parent_id is not None:
        raise ValueError(f"chunks[{i}] belongs to the snapshot {chunk.parent_id!r} already")


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, not {value!r}")
    return value


class _Lines:
    """The lines of a saved engine, which has to be whole: it cannot go on from half a state."""

    def __init__(self, lines: Iterator[Any], path: str) -> None:
        self._lines = lines
        self._path = path
        self._number = 1

    def header(self) -> Fields:
        """The first line."""
        header = next(self._lines, None)
        if not isinstance(header, dict) or header.pop("format", None) != _FORMAT:
            raise ValueError(f"{self._path} is not a saved engine")
        if (version := header.pop("version", None)) != _VERSION:
            raise ValueError(f"{self._path} is a saved engine of version {version!r}; this is version {_VERSION}")
        return Fields("HSCAEngine", header, header)

    def next(self, read: Callable[[Any], T]) -> T:
        """What `read` makes of the next line."""
        item = next(self._lines, None)
        if item is None or isinstance(item, Tear):
            raise ValueError(str(item) if item else f"{self._path} is torn: it ends too early")
        self._number += 1
        try:
            return read(item)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self._path}, line {self._number}: {error.args[0]}") from error
