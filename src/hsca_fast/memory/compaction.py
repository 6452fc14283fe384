"""Old turns condensed into summaries that are views of them: nothing is deleted, every step can be repeated.

    turns ─► partition_chronological ─► summarise ─► gate ─► insert ─► verify ─► mark the sources

A crash between any two steps loses nothing. Before the sources are marked both they and the summary can be found; the
next run finishes the marking before it plans anything new.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from hsca_fast.memory.preservation import (
    PRESERVATION_THRESHOLD,
    Preservation,
    decay_rate,
    preservation,
    summary_confidence,
)
from hsca_fast.memory.summarizer import DENSITY, Draft, Summarizer, extractive_summary
from hsca_fast.memory.turns import Turn, chronological
from hsca_fast.ranking import estimate_tokens
from hsca_fast.ranking.columns import count as checked_count
from hsca_fast.ranking.columns import number

TARGET_SIZE = 20
MIN_TURNS = 2
MAX_SUMMARY_TOKENS = 256  # one embedding window: a longer summary would be embedded only in part
RETRY_DENSITY = 0.25
MAX_EXPANSION_DEPTH = 3


Status = Literal["stored", "planned", "declined"]


class CompactionError(RuntimeError):
    """A store did not give back what was written to it, or holds another summary under the id; the sources stay unmarked."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a summary comes from.

    Attributes
    ----------
    source_ids
        What it stands for, in time order: ids of turns, or of summaries when a store condenses those again.
    first_timestamp, last_timestamp
        Time span of the sources, None without timestamps.
    created_at
        When it was made.
    method
        "extractive", "trivial" (one source), or the name of the summariser.
    align, cover
        Its preservation.
    decoder_confidence
        What the summariser said about itself, None for an extract.
    fallback
        Why the summariser's draft was not taken; "" when it was, or when there is no summariser.
    """

    source_ids: tuple[str, ...]
    first_timestamp: float | None
    last_timestamp: float | None
    created_at: float
    method: str
    align: float
    cover: float
    decoder_confidence: float | None = None
    fallback: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SummaryRecord:
    """A summary as it is stored."""

    id: str
    text: str
    confidence: float
    decay_rate: float
    n_tokens: int
    lineage: Lineage
    vector: npt.NDArray[np.float32] = field(repr=False)

    def same_as(self, other: SummaryRecord) -> bool:
        """Equal in every field, the vector bit for bit."""
        return (self.id, self.text, self.confidence, self.decay_rate, self.n_tokens, self.lineage) == (
            other.id, other.text, other.confidence, other.decay_rate, other.n_tokens, other.lineage
        ) and np.array_equal(self.vector, other.vector)  # fmt: skip


class CompactionStore(Protocol):
    """What compaction needs of a store. Every write is durable when it returns, and harmless when repeated."""

    @property
    def session_id(self) -> str:
        """Part of the ids of summaries."""
        ...

    def session_turns(self) -> Sequence[Turn]:
        """Every raw turn of the session, compacted or not; ids are unique and not empty."""
        ...

    def compacted_ids(self) -> Collection[str]:
        """Ids that a summary stands for."""
        ...

    def turn_vectors(self, ids: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embeddings of these turns, [n, d]."""
        ...

    def embed_summary(self, text: str) -> npt.NDArray[np.float32]:
        """Embedding [d] of a text in the space of the turns."""
        ...

    def insert_summary(self, record: SummaryRecord) -> None:
        """Write a summary; one with the same id is replaced."""
        ...

    def get_summary(self, summary_id: str) -> SummaryRecord | None:
        """A summary, read back from where it was written."""
        ...

    def summary_ids(self) -> Sequence[str]:
        """Ids of all summaries of the session."""
        ...

    def mark_compacted(self, ids: Sequence[str], summary_id: str) -> None:
        """Say, for all `ids` or for none, that the summary stands for these turns. The turns stay."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """What became of one cluster.

    Attributes
    ----------
    source_ids
        The turns of the cluster.
    status
        "stored", "planned" (dry run) or "declined".
    reason
        Why it was declined, "" otherwise.
    record
        The summary; None when declined.
    """

    source_ids: tuple[str, ...]
    status: Status
    reason: str = ""
    record: SummaryRecord | None = None


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What a compaction did, or would do.

    Attributes
    ----------
    clusters
        One entry a cluster, in time order.
    recovered
        Summaries of an interrupted run whose sources were marked now.
    kept_recent
        Ids of the turns that were left alone because they are recent.
    """

    clusters: tuple[ClusterResult, ...]
    recovered: tuple[str, ...]
    kept_recent: tuple[str, ...]
    dry_run: bool

    @property
    def n_compacted(self) -> int:
        """Turns that a new summary stands for."""
        return sum(len(cluster.source_ids) for cluster in self.clusters if cluster.record)


def partition_chronological(turns: Sequence[object], *, target_size: int = TARGET_SIZE) -> list[range]:
    """Cut a session into contiguous clusters of nearly equal size.

    With n turns and target size k there are c = ceil(max(n, 1) / k) clusters and turn i goes to floor(i * c / max(n, 1)).

    Parameters
    ----------
    turns
        In time order; items of type `Turn` are checked for it. Anything with a length will do.
    target_size
        At most this many turns in a cluster; 0 and below mean the default of 20.

    Returns
    -------
    list of range
        Row numbers, every turn in exactly one range; empty for no turns.

    Examples
    --------
    >>> partition_chronological(["a", "b", "c", "d", "e"], target_size=2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    if isinstance(target_size, bool) or not isinstance(target_size, int):
        raise TypeError(f"target_size must be an int, not {type(target_size).__name__}")
    last: tuple[float, str] | None = None
    for row, turn in enumerate(turns):
        if isinstance(turn, Turn) and turn.timestamp is not None:
            if last is not None and (turn.timestamp, turn.id) < last:
                raise ValueError(f"turns[{row}] is earlier than turns[{row - 1}]: sort them by (timestamp, id) first")
            last = (turn.timestamp, turn.id)
    n = len(turns)
    if n == 0:
        return []
    c = math.ceil(n / (target_size if target_size > 0 else TARGET_SIZE))
    # Cluster j starts at the smallest i with floor(i * c / n) = j.
    starts = [-(-j * n // c) for j in range(c + 1)]
    return [range(start, stop) for start, stop in itertools.pairwise(starts)]


def summary_id(session_id: str, source_ids: Iterable[str]) -> str:
    """The id of the summary of these sources: the same sources give the same id, so a repeated run replaces itself.

    Examples
    --------
    >>> summary_id("s1", ["a"])
    'summary:e34d1fb77f49bbb6'
    """
    ids = list(source_ids)
    key = f"{session_id}:{','.join(ids)}"
    if ":" in session_id or any("," in each for each in ids):  # the plain form would not tell ["a,b"] from ["a", "b"]
        key = json.dumps([session_id, *ids])
    return "summary:" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def compact_session(
    index: CompactionStore,
    *,
    keep_recent: int,
    target_size: int = TARGET_SIZE,
    min_turns: int = MIN_TURNS,
    summarizer: Summarizer | None = None,
    dry_run: bool = False,
    max_tokens: int = MAX_SUMMARY_TOKENS,
    threshold: float = PRESERVATION_THRESHOLD,
    count_tokens: Callable[[str], int] | None = None,
    clock: Callable[[], float] = time.time,
) -> CompactionReport:
    """Put summaries in front of the older turns of a session; the turns themselves stay and can be reached again.

    Each cluster is summarised by `summarizer` if there is one. Its draft must not be empty, must cost less than its
    sources, and must keep align >= threshold; otherwise, and when it raises, the cluster is summarised by extraction and the
    lineage says why. A cluster whose best summary is not shorter than its sources is declined.

    Parameters
    ----------
    index
        The session's store: `SemanticIndex.session(name)`, or anything that offers `CompactionStore`.
    keep_recent
        This many of the latest turns are never touched; pass at least the length of the recent tail.
    target_size
        Turns in a cluster; 0 and below mean 20.
    min_turns
        While fewer turns than this are left to condense they wait for more, so that compaction after every turn does not
        make a summary of each; at least 1.
    dry_run
        Plan and summarise, write nothing.
    max_tokens
        Cap on the cost of a summary.
    threshold
        Of the preservation gate.
    count_tokens
        Cost of a text, for sources and summaries alike; the default is `estimate_tokens`.

    Raises
    ------
    CompactionError
        A summary did not read back as written, or its id belongs to other sources. Its sources stay unmarked.
    """
    if not hasattr(index, "session_turns"):
        raise TypeError(
            f"index must be the store of one session, as SemanticIndex.session(name) is, not {type(index).__name__}"
        )
    if isinstance(keep_recent, bool) or not isinstance(keep_recent, int) or keep_recent < 0:
        raise ValueError(f"keep_recent must be an int of at least 0, not {keep_recent!r}")
    max_tokens = checked_count("max_tokens", max_tokens)
    min_turns = checked_count("min_turns", min_turns)
    threshold = number("threshold", threshold, -1.0, 1.0)
    count = count_tokens or estimate_tokens
    turns = chronological(index.session_turns())
    for row, turn in enumerate(turns):
        if not turn.id:
            raise ValueError(f"turn {row} of the session has no id")
    older = turns[: max(0, len(turns) - keep_recent)]
    done = set(index.compacted_ids())
    kept = tuple(turn.id for turn in turns[len(older) :])
    recovered = []
    for record in _unmarked_summaries(index, done):
        sources = record.lineage.source_ids
        done.update(sources)
        if not set(kept) & set(sources):
            recovered.append(record.id)
            if not dry_run:
                index.mark_compacted(sources, record.id)

    eligible = [turn for turn in older if turn.id not in done]
    clusters = []
    if 0 < len(eligible) < min_turns:
        reason = f"{len(eligible)} of at least {min_turns} turns: they wait for more"
        clusters.append(ClusterResult(tuple(turn.id for turn in eligible), "declined", reason))
        eligible = []
    for rows in partition_chronological(eligible, target_size=target_size):
        cluster = eligible[rows.start : rows.stop]
        summary, reason = _summarize(index, cluster, summarizer, max_tokens, threshold, count, clock)
        if summary is not None and not dry_run:
            store_summary(index, summary)
        status: Status = "declined" if summary is None else "planned" if dry_run else "stored"
        clusters.append(ClusterResult(tuple(turn.id for turn in cluster), status, reason, summary))
    return CompactionReport(tuple(clusters), tuple(recovered), kept, dry_run)


def expand_summary(
    index: CompactionStore, summary_id: str, *, max_depth: int = MAX_EXPANSION_DEPTH
) -> list[Turn | SummaryRecord]:
    """What a summary stands for, in time order: turns, and summaries that lie deeper than `max_depth`.

    Each summary is opened once, so summaries that name each other end too. Raises KeyError when there is no such summary.
    """
    max_depth = checked_count("max_depth", max_depth)
    root = index.get_summary(summary_id)
    if root is None:
        raise KeyError(summary_id)
    turns = {turn.id: turn for turn in index.session_turns()}
    opened = {summary_id}
    found: list[Turn | SummaryRecord] = []
    stack = [(source, 1) for source in reversed(root.lineage.source_ids)]
    while stack:
        source, depth = stack.pop()
        if source in turns:
            found.append(turns.pop(source))
        elif source not in opened and (record := index.get_summary(source)) is not None:
            opened.add(source)
            if depth < max_depth:
                stack.extend((below, depth + 1) for below in reversed(record.lineage.source_ids))
            else:
                found.append(record)
    return found


def _unmarked_summaries(index: CompactionStore, done: set[str]) -> list[SummaryRecord]:
    """Summaries that an interrupted run wrote without marking all of their sources."""
    records = []
    for each in index.summary_ids():
        record = index.get_summary(each)
        if record is not None and not done.issuperset(record.lineage.source_ids):
            records.append(record)
    return records


def store_summary(index: CompactionStore, record: SummaryRecord) -> None:
    """Write a summary, read it back, then mark its sources; CompactionError if it is not what was written."""
    there = index.get_summary(record.id)
    if there is not None and there.lineage.source_ids != record.lineage.source_ids:
        raise CompactionError(f"{record.id} is the summary of other sources, from {there.lineage.source_ids[:1]} on")
    index.insert_summary(record)
    written = index.get_summary(record.id)
    if written is None or not written.same_as(record):
        raise CompactionError(f"{record.id} did not read back as written; its sources stay as they were")
    index.mark_compacted(record.lineage.source_ids, record.id)


@dataclass(frozen=True, slots=True)
class _Candidate:
    text: str
    method: str
    vector: npt.NDArray[np.float32]
    kept: Preservation
    decoder_confidence: float | None = None


def _summarize(
    index: CompactionStore,
    sources: Sequence[Turn],
    summarizer: Summarizer | None,
    max_tokens: int,
    threshold: float,
    count: Callable[[str], int],
    clock: Callable[[], float],
) -> tuple[SummaryRecord | None, str]:
    """The summary of a cluster, or None and why there is none."""
    ids = tuple(turn.id for turn in sources)
    texts = [turn.text for turn in sources]
    vectors = index.turn_vectors(ids)
    cost = sum(count(text) for text in texts)

    def judged(text: str, method: str, decoder_confidence: float | None = None) -> _Candidate:
        vector = np.asarray(index.embed_summary(text), np.float32)
        return _Candidate(text, method, vector, preservation(vector, vectors), decoder_confidence)

    chosen: _Candidate | None = None
    fallback = ""
    if summarizer is not None and len(sources) > 1:
        draft, note = _draft(summarizer, texts, max_tokens, cost, count)
        if draft is None:
            fallback = note
        else:
            chosen = judged(draft.text, note, draft.confidence)
            if not chosen.kept.passes(threshold):
                fallback = f"align {chosen.kept.align:.4f} is below {threshold:g}"
                chosen = None
    # The second try is for clusters that 0.4 of the turns do not shorten; half of one turn would not be its summary.
    tries = [(DENSITY, max_tokens)]
    if len(sources) > 1:
        tries.append((RETRY_DENSITY, min(max_tokens, cost // 2)))
    for density, cap in tries:
        if chosen is None and cap >= 1:
            text = extractive_summary(texts, vectors, density=density, max_tokens=cap, count_tokens=count).text
            if text and count(text) < cost:
                chosen = judged(text, "extractive" if len(sources) > 1 else "trivial")
    if chosen is None:
        them = f"its {len(sources)} source{'s' * (len(sources) > 1)} of {cost} tokens"
        reason = f"no whole sentences within {max_tokens} tokens are shorter than {them}"
        return None, f"{fallback}; {reason}" if fallback else reason
    decoder = chosen.decoder_confidence
    confidence = summary_confidence(chosen.kept, decoder_confidence=decoder)
    lineage = Lineage(
        source_ids=ids,
        first_timestamp=sources[0].timestamp,
        last_timestamp=sources[-1].timestamp,
        created_at=clock(),
        method=chosen.method,
        align=chosen.kept.align,
        cover=chosen.kept.cover,
        decoder_confidence=decoder,
        fallback=fallback,
    )
    summary = SummaryRecord(
        id=summary_id(index.session_id, ids),
        text=chosen.text,
        confidence=confidence,
        decay_rate=decay_rate(confidence),
        n_tokens=count(chosen.text),
        lineage=lineage,
        vector=chosen.vector,
    )
    return summary, ""


def _draft(
    summarizer: Summarizer, texts: Sequence[str], max_tokens: int, cost: int, count: Callable[[str], int]
) -> tuple[Draft | None, str]:
    """The summariser's draft if it can be used, and the summariser's name; else None and why not."""
    name = type(summarizer).__name__
    try:  # a model may fail in any way; compaction goes on without it
        if not isinstance(summarizer.name, str):
            return None, f"{name} has a name of type {type(summarizer.name).__name__}"
        name = summarizer.name
        draft = summarizer.summarize(texts, max_tokens=max_tokens)
    except Exception as error:
        return None, f"{name} raised {_told(error)}"
    if not isinstance(draft, Draft):
        return None, f"{name} returned {type(draft).__name__}"
    if not isinstance(draft.text, str):
        return None, f"{name} returned a text of type {type(draft.text).__name__}"
    text = draft.text.strip()
    if not text:
        return None, f"{name} returned no text"
    try:
        confidence = None if draft.confidence is None else number("confidence", draft.confidence, -math.inf)
    except (TypeError, ValueError) as error:
        return None, f"{name}: {error}"
    if count(text) > max_tokens:
        return None, f"{name} returned {count(text)} tokens where {max_tokens} were asked for"
    if count(text) >= cost:
        return None, f"{name} returned {count(text)} tokens for sources of {cost}"
    return Draft(text, confidence), name


def _told(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # an exception that cannot be printed is still one
        return type(error).__name__
