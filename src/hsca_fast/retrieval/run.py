"""One retrieval under way: its candidates, their scores, and an account of everything that moved or left.

Scores are multiples of 2⁻⁴⁰. Sums and differences of such numbers are exact, so what the phases added to a score sums to
it to the last bit, in any order, and watching a retrieval cannot change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hsca_fast._native.vectors import dot_products
from hsca_fast.ranking.costs import CountTokens
from hsca_fast.retrieval.evidence import Asked, Evidence, Recalled
from hsca_fast.retrieval.hooks import Hooks
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.store import Float32, RecordCache, RetrievalStore, StoredRecord
from hsca_fast.vectors.embedder import unit_rows

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
_STEPS = 2.0**40

#: What may be part of a score, in the order of the pipeline.
COMPONENTS = (
    "cosine_similarity",
    "lexical_match",
    "recall_order",
    "keyword_coverage",
    "age_decay",
    "ltp_boost",
    "association_boost",
    "tagging_boost",
    "query_expansion_penalty",
    "supersede_penalty",
    "consolidation_boost",
    "mmr_penalty",
    "wing_diversity_penalty",
    "pinned_boost",
)
_BREAKDOWN = (*COMPONENTS, "final_score")


def on_grid(values: Scores) -> Scores:
    """The nearest multiples of 2⁻⁴⁰."""
    rounded: Scores = np.rint(values * _STEPS) / _STEPS
    return rounded


@dataclass(frozen=True, slots=True)
class ScoreEvent:
    """A phase changed the score of a record by `delta`."""

    phase: str
    component: str
    delta: float
    reason: str


@dataclass(frozen=True, slots=True)
class _Move:
    """Score events of many records at once."""

    phase: str
    component: str
    rows: Rows | None  # None: all
    deltas: Scores
    reason: str


class Drop(NamedTuple):
    """Why a candidate is not among the results."""

    phase: str
    reason: str
    more: Mapping[str, Any]


class Pool:
    """Candidates, a row each. Rows are added, never removed."""

    def __init__(self) -> None:
        self.recalled: list[Recalled] = []
        self.records: list[StoredRecord] = []
        self.ids: list[str] = []
        self.wings: list[str | None] = []
        self._row: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, recalled: Iterable[Recalled], records: Iterable[StoredRecord]) -> None:
        for each, record in zip(recalled, records, strict=True):
            self._row[record.id] = len(self.ids)
            self.recalled.append(each)
            self.records.append(record)
            self.ids.append(record.id)
            wing = record.metadata.get("wing")
            self.wings.append(wing if wing is None or isinstance(wing, str) else str(wing))

    def cut(self, n: int) -> None:
        """Forget all rows from `n` on."""
        for record_id in self.ids[n:]:
            del self._row[record_id]
        for column in (self.recalled, self.records, self.ids, self.wings):
            del column[n:]

    def find(self, record_id: str) -> int | None:
        return self._row.get(record_id)

    def timestamps(self) -> Scores:
        return np.array([record.timestamp for record in self.records], np.float64)


@dataclass(slots=True, eq=False)
class Run:
    """The state that phases read and change. Arrays are replaced, never written to."""

    store: RetrievalStore
    records: RecordCache
    profile: RetrievalProfile
    asked: Asked
    k: int
    evidence: Evidence
    hooks: Hooks
    explain: bool
    tracing: bool
    max_tokens: int | None = None
    count_tokens: CountTokens | None = None
    pool: Pool = field(default_factory=Pool)
    score: Scores = field(default_factory=lambda: np.empty(0))
    order: Rows = field(default_factory=lambda: np.empty(0, np.int64))  # rows still in play, best first
    before_diversity: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    terms: list[str] = field(default_factory=list)  # of past queries
    pinned: list[int] = field(default_factory=list)  # rows, in front of all others
    only_pinned: set[int] = field(default_factory=set)  # of them, those that the query itself did not bring
    stopped: bool = False  # there is nothing to go on with
    truncated: bool = False
    warnings: list[str] = field(default_factory=list)
    trace: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)  # of the trace, that are not about one candidate
    notes: dict[int, dict[str, Any]] = field(default_factory=dict)
    drops: dict[int, Drop] = field(default_factory=dict)
    hook_errors: list[str] = field(default_factory=list)
    _moves: list[_Move] = field(default_factory=list)
    _vectors: Float32 | None = None
    _cosines: Float32 | None = None  # of all candidates with each other

    def undo(self) -> Callable[[], None]:
        """What brings back everything that a phase may change, as it is now; warnings stay."""
        plain = {name: getattr(self, name) for name in ("score", "order", "before_diversity", "stopped", "truncated")}
        copied = {name: getattr(self, name).copy() for name in ("terms", "pinned", "only_pinned", "trace", "drops")}
        copied["notes"] = {row: dict(note) for row, note in self.notes.items()}
        n_candidates, n_steps, n_moves = len(self.pool), len(self.steps), len(self._moves)

        def restore() -> None:
            for name, value in (plain | copied).items():
                setattr(self, name, value)
            if len(self.pool) > n_candidates:
                self.pool.cut(n_candidates)
                self._vectors = self._cosines = None
            del self.steps[n_steps:], self._moves[n_moves:]

        return restore

    # ---- candidates

    def add_candidates(self, recalled: Sequence[Recalled]) -> Rows:
        """New rows with a score of 0, not yet in play."""
        first = len(self.pool)
        self.pool.add(recalled, self.records.get_many([each.id for each in recalled]))
        self.score = np.concatenate([self.score, np.zeros(len(recalled))])
        self._vectors = self._cosines = None
        return np.arange(first, len(self.pool))

    def unit_vectors(self) -> Float32:
        """Of all candidates, of length 1."""
        if self._vectors is None:
            self._vectors = (
                unit_rows(self.store.vectors(self.pool.ids)) if len(self.pool) else np.empty((0, 1), np.float32)
            )
        return self._vectors

    def cosines(self, rows: Rows, others: Rows) -> Float32:
        """[rows, others], the same bits on every machine."""
        if self._cosines is not None:
            return self._cosines[rows[:, None], others]
        units = self.unit_vectors()
        return dot_products(units[rows], units[others])

    def near_pairs(self, rows: Rows, threshold: float) -> tuple[Rows, Rows, Float32]:
        """Positions in `rows` of pairs with a cosine of `threshold` or more, both ways round, and their cosines."""
        if self._cosines is None:
            units = self.unit_vectors()
            self._cosines = dot_products(units, units)
        place = np.full(len(self._cosines), -1)
        place[rows] = np.arange(len(rows))
        near = np.flatnonzero(self._cosines >= threshold)  # in two dimensions it takes ten times as long
        one, other = (place[found] for found in np.divmod(near, len(self._cosines)))
        kept = (one >= 0) & (other >= 0) & (one != other)
        return one[kept], other[kept], self._cosines.ravel()[near[kept]]

    def rank(self, rows: Rows) -> Rows:
        """By (score descending, id ascending)."""
        order = rows[np.argsort(-self.score[rows], kind="stable")]
        ranked = self.score[order]
        if (ranked[1:] == ranked[:-1]).any():
            by_id = np.array(sorted(rows.tolist(), key=self.pool.ids.__getitem__), np.int64)
            order = by_id[np.argsort(-self.score[by_id], kind="stable")]
        return order

    # ---- scores

    def move(self, phase: str, component: str, after: Scores, reason: str, rows: Rows | None = None) -> None:
        """Give rows (None: all) new scores, and note what changed."""
        after = on_grid(after)
        if rows is None:
            deltas, score = after - self.score, after
        else:
            deltas, score = after - self.score[rows], self.score.copy()
            score[rows] = after
        self.score = score
        self._moves.append(_Move(phase, component, rows, deltas, reason))
        if self.hooks.wanted("post_score_event"):
            ids = self.pool.ids
            for row, delta in zip(range(len(ids)) if rows is None else rows.tolist(), deltas.tolist(), strict=True):
                event = {
                    "phase": phase,
                    "component": component,
                    "delta": delta,
                    "reason": reason,
                    "drawer_id": ids[row],
                }
                self.fire("post_score_event", event.copy)

    def breakdowns(self, rows: Sequence[int]) -> list[dict[str, float]]:
        """What the score of each row is made of; the parts sum to `final_score` exactly."""
        parts = {"final_score": self.score}
        for move in self._moves:
            of_component = parts.setdefault(move.component, np.zeros(len(self.pool)))
            if move.rows is None:
                of_component[: len(move.deltas)] += move.deltas
            else:
                of_component[move.rows] += move.deltas
        wanted = np.array(rows, np.int64)
        unmoved = dict.fromkeys(_BREAKDOWN, 0.0)
        found = [unmoved.copy() for _ in rows]
        for name, values in parts.items():
            for breakdown, value in zip(found, values[wanted].tolist(), strict=True):
                breakdown[name] = value
        return found

    def events(self, row: int) -> list[ScoreEvent]:
        """Everything that moved the score of a row."""
        found = []
        for move in self._moves:
            at = row if move.rows is None else next(iter(np.flatnonzero(move.rows == row).tolist()), None)
            if at is not None and at < len(move.deltas):
                found.append(ScoreEvent(move.phase, move.component, float(move.deltas[at]), move.reason))
        return found

    # ---- what leaves, and who watches

    def keep(self, kept: Rows, phase: str, why: Callable[[int], tuple[str, Mapping[str, Any]]]) -> None:
        """Only `kept` stay in play, in that order; `why` is asked about the others if somebody wants to know."""
        if self.tracing:
            staying = set(kept.tolist())
            for row in self.order.tolist():
                if row not in staying:
                    self.drops[row] = Drop(phase, *why(row))
        self.order = kept

    def fire(self, name: str, context: Callable[[], dict[str, Any]]) -> None:
        if self.hooks.wanted(name):
            self.hooks.fire(name, context, self.hook_errors)

    def described(self, rows: Iterable[int]) -> list[dict[str, Any]]:
        """Candidates for the contexts of hooks."""
        pool = self.pool
        return [{"drawer_id": pool.ids[row], "wing": pool.wings[row], "score": float(self.score[row])} for row in rows]
