"""What a retrieval gives back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from hsca_fast.ranking.costs import token_costs
from hsca_fast.retrieval.run import Run


@dataclass(frozen=True, slots=True)
class RetrievedRecord:
    """A result.

    Attributes
    ----------
    score
        What the phases made of its relevance; with MMR, its value when it was picked.
    cosine, lexical
        Scores of the arms of recall, None where an arm did not find it.
    pinned
        It is there because it is asked for so often.
    notes
        What phases have to say: "superseded", "consolidated_sources", "pinning".
    score_breakdown
        What each step added; all but `final_score` sum to `score` exactly. None unless explained.
    """

    id: str
    text: str
    score: float
    metadata: Mapping[str, Any]
    timestamp: float
    wing: str | None
    cosine: float | None
    lexical: float | None
    n_tokens: int
    pinned: bool = False
    notes: Mapping[str, Any] = field(default_factory=dict)
    score_breakdown: dict[str, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True, eq=False)
class RetrievalResult:
    """Results, best first, and an account of how they came about.

    Attributes
    ----------
    pipeline_trace
        `phases_applied`, `phases_skipped`, `phases_failed`, `phase_timing_ms`, `total_candidates_in`, `total_results_out`,
        `elapsed_ms`, `truncated`, `model_guard`, `wings_in_pool`; with a candidate trace also `candidates`, why each is not there.
    warnings
        For people.
    """

    results: list[RetrievedRecord]
    pipeline_trace: dict[str, Any]
    warnings: list[str]
    _make_packet: Callable[[], dict[str, Any]] = field(repr=False)
    _packet: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def truncated(self) -> bool:
        """A result was left out because the budget was spent."""
        return bool(self.pipeline_trace["truncated"])

    @property
    def replay_packet(self) -> dict[str, Any]:
        """All that `RetrievalPipeline.replay` needs, in plain values for JSON; made when first asked for."""
        if self._packet is None:
            self._packet = self._make_packet()
        return self._packet

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without the packet."""
        return {
            "results": [result.to_dict() for result in self.results],
            "pipeline_trace": self.pipeline_trace,
            "warnings": self.warnings,
        }


def result_of(run: Run, *, everything: bool, packet: Callable[[], dict[str, Any]]) -> RetrievalResult:
    """The result of a run that is done; with `everything` an explained run tells the scores of all candidates."""
    rows = run.order.tolist()
    begin = time.perf_counter()
    breakdowns: dict[int, dict[str, float]] = {}
    if run.explain:
        wanted = list(range(len(run.pool))) if everything else [*rows, *run.drops]
        breakdowns = dict(zip(wanted, run.breakdowns(wanted), strict=True))
        run.trace["phase_timing_ms"]["score_explainability"] = (time.perf_counter() - begin) * 1e3
    if run.tracing:
        run.trace["candidate_trace"] = [*run.steps, *_left_out(run, breakdowns)]
    if run.explain and everything:
        run.trace["candidate_scores"] = {run.pool.ids[row]: parts for row, parts in breakdowns.items()}
    run.warnings += run.hook_errors
    pool = run.pool
    costs = token_costs([pool.records[row].text for row in rows], run.count_tokens, "record")
    pinned = set(run.pinned)
    results = [
        RetrievedRecord(
            id=pool.ids[row],
            text=pool.records[row].text,
            score=float(run.score[row]),
            metadata=pool.records[row].metadata,
            timestamp=pool.records[row].timestamp,
            wing=pool.wings[row],
            cosine=pool.recalled[row].cosine,
            lexical=pool.recalled[row].lexical,
            n_tokens=cost,
            pinned=row in pinned,
            notes=run.notes.get(row, {}),
            score_breakdown=breakdowns.get(row),
        )
        for row, cost in zip(rows, costs, strict=True)
    ]
    return RetrievalResult(results, run.trace, run.warnings, packet)


def _left_out(run: Run, breakdowns: Mapping[int, dict[str, float]]) -> list[dict[str, Any]]:
    entries = []
    for row, drop in run.drops.items():
        entry = {"drawer_id": run.pool.ids[row], "dropped_at": drop.phase, "reason": drop.reason, **drop.more}
        if run.explain:
            parts = dict(filter(itemgetter(1), breakdowns[row].items()))
            parts["partial_score"] = parts.pop("final_score", 0.0)
            entry["score_at_drop"] = parts
        entries.append(entry)
    return entries
