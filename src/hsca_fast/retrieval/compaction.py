"""Phase 13: what is old, unused and corrected makes room for a summary of it; everything can be taken back.

    scan ─► corrected, unused, forgotten ─► groups by session ─► summaries (compact_session) ─► archive the sources

Until the last step sources and summary can both be found, so a crash anywhere loses nothing and the next run goes on.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, cast

import numpy as np

from hsca_fast.fields import finite
from hsca_fast.memory.columns import RecordColumns
from hsca_fast.memory.compaction import (
    ClusterResult,
    CompactionStore,
    SummaryRecord,
    compact_session,
    store_summary,
)
from hsca_fast.memory.summarizer import Summarizer
from hsca_fast.memory.turns import Turn
from hsca_fast.ranking.activity import DAY, rescaled_ltp
from hsca_fast.retrieval.access import AccessCounts
from hsca_fast.retrieval.hooks import Hooks
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.scan import ScanReport, ScanState, Scores, scan_records
from hsca_fast.retrieval.store import Float32, RetrievalStore, StoredRecord

CONTEXT_TRIGGER = 0.8
UNFILED = "unfiled"  # the session of records that have none


class CompactableStore(RetrievalStore, Protocol):
    """A store whose sessions can be compacted."""

    def session(self, session_id: str) -> CompactionStore:
        """One session, as compaction wants it."""


@dataclass(frozen=True, slots=True)
class CompactionCandidate:
    """A record that may go, and every reason for it.

    Attributes
    ----------
    action
        "compact": a summary takes its place; "archive": one stands for it already; "keep": no summary is shorter.
    ltp_score, decayed_ltp
        From 0 to 1: the boost of its retrievals, and what time has left of it.
    days_since_access
        Since it was last returned, or since it was written if it never was.
    """

    drawer_id: str
    action: Literal["compact", "archive", "keep"]
    reason: str
    ltp_score: float
    decayed_ltp: float
    superseded_by: str
    days_since_access: float
    consolidated_into: str | None
    is_superseded: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What a compaction would do, or did.

    Attributes
    ----------
    candidates
        Every record that meets all criteria.
    groups
        One entry for each cluster of them: session, sources, summary, and why there is none.
    archived, summaries
        Ids of what was archived and written; empty for a dry run.
    timing_ms
        ltp_scan_ms, supersede_check_ms, consolidation_plan_ms, total_ms.
    """

    dry_run: bool
    candidates: tuple[CompactionCandidate, ...]
    groups: tuple[dict[str, Any], ...]
    scan: ScanReport | None
    timing_ms: dict[str, float]
    warnings: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()

    @property
    def would_archive(self) -> int:
        """Records that leave the live search."""
        return sum(candidate.action != "keep" for candidate in self.candidates)

    @property
    def would_create_summaries(self) -> int:
        """Summaries that take their place."""
        return sum(group["status"] == "planned" for group in self.groups)

    def context(self) -> dict[str, Any]:
        """For hooks."""
        return {
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "groups": [dict(group) for group in self.groups],
            "would_archive": self.would_archive,
            "would_create_summaries": self.would_create_summaries,
        }

    def replay_packet(self) -> dict[str, Any]:
        """For looking at it later: were they all rightly chosen?"""
        return {
            "compaction_candidates": [candidate.to_dict() for candidate in self.candidates],
            "compaction_plan": {
                "groups": [dict(group) for group in self.groups],
                "summary_count": self.would_create_summaries,
            },
            "pagination_state": None if self.scan is None else self.scan.pagination_state(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "dry_run": self.dry_run,
            **self.context(),
            "archived": list(self.archived),
            "summaries": list(self.summaries),
            "scan": None if self.scan is None else self.scan.to_dict(),
            "timing_ms": dict(self.timing_ms),
            "warnings": list(self.warnings),
        }


def nothing_to_compact(reason: str, *, dry_run: bool) -> CompactionPlan:
    """A plan without candidates, and why."""
    return CompactionPlan(dry_run, (), (), None, {}, (reason,))


def compact(
    store: CompactableStore,
    profile: RetrievalProfile,
    counts: AccessCounts,
    *,
    now: float,
    after: int,
    dry_run: bool,
    hooks: Hooks,
    summarizer: Summarizer | None,
    warnings: Sequence[str] = (),
) -> CompactionPlan:
    """Select, plan, tell, and unless it is a dry run, do it."""
    warnings = list(warnings)
    started = time.perf_counter()
    chosen = _Selection(profile, now)
    report, _ = scan_records(
        store, profile, counts, now=now, state=ScanState(after), hooks=hooks, errors=warnings, visit=chosen.visit
    )
    scanned = time.perf_counter()
    found = _still_superseded(store, chosen)
    standing = _live_summaries(store, found)
    checked = time.perf_counter()
    sessions: dict[str, list[StoredRecord]] = {}
    for record in found:
        if record.compacted_into is None:
            sessions.setdefault(str(record.metadata.get("session", UNFILED)), []).append(record)
    planned: list[tuple[_Candidates, ClusterResult]] = []
    for session, records in sorted(sessions.items()):
        view = _Candidates(store.session(session), records)
        clusters = compact_session(view, keep_recent=0, summarizer=summarizer, dry_run=True, clock=lambda: now).clusters
        planned += [(view, cluster) for cluster in clusters]
    plan = CompactionPlan(
        dry_run=dry_run,
        candidates=tuple(_justified(record, chosen, profile, planned, standing) for record in found),
        groups=tuple(_group(view, cluster) for view, cluster in planned),
        scan=report,
        timing_ms={
            "ltp_scan_ms": (scanned - started) * 1e3,
            "supersede_check_ms": (checked - scanned) * 1e3,
            "consolidation_plan_ms": (time.perf_counter() - checked) * 1e3,
            "total_ms": (time.perf_counter() - started) * 1e3,
        },
        warnings=tuple(warnings),
    )
    hooks.fire("post_compaction_plan", plan.context, warnings)
    done: tuple[list[str], list[str]] = ([], []) if dry_run else _carry_out(store, plan, planned)
    return CompactionPlan(
        plan.dry_run, plan.candidates, plan.groups, plan.scan, plan.timing_ms, tuple(warnings), *map(tuple, done)
    )


class _Selection:
    """Sequences that meet the criteria, with their numbers."""

    def __init__(self, profile: RetrievalProfile, now: float) -> None:
        self._profile = profile
        self._now = now
        self.numbers: dict[int, tuple[float, float, float]] = {}  # ltp, decayed ltp, days since access

    def visit(self, columns: RecordColumns, ltp: Scores) -> None:
        profile = self._profile
        last_use = np.where(np.isnan(columns.last_access), columns.timestamp, columns.last_access)
        days = np.maximum(self._now - last_use, 0.0) / DAY
        decay = profile.decay_lambda if profile.decay_enabled else 0.0
        scaled = rescaled_ltp(ltp, max_boost=profile.ltp_max_boost)
        decayed = rescaled_ltp(ltp, max_boost=profile.ltp_max_boost, days_since_access=days, decay=decay)
        meets = columns.live & columns.superseded & (decayed < profile.compaction_threshold)
        meets &= days > profile.compaction_age_days
        for row in np.flatnonzero(meets).tolist():
            self.numbers[int(columns.sequence[row])] = float(scaled[row]), float(decayed[row]), float(days[row])


def _still_superseded(store: RetrievalStore, chosen: _Selection) -> list[StoredRecord]:
    """The records themselves, where the newer one is still there to stand for them."""
    records = list(store.records_at(list(chosen.numbers)))
    newer = dict.fromkeys(record.superseded_by for record in records if record.superseded_by is not None)
    live = {record.id for record in store.get_many(list(newer)) if record.status == "live"}
    return [record for record in records if record.superseded_by in live]


def _live_summaries(store: RetrievalStore, records: Sequence[StoredRecord]) -> set[str]:
    """Summaries that stand for some of the records and can be found."""
    into = dict.fromkeys(record.compacted_into for record in records if record.compacted_into is not None)
    return set(store.passing(list(into))) if into else set()


def _justified(
    record: StoredRecord,
    chosen: _Selection,
    profile: RetrievalProfile,
    planned: Sequence[tuple[_Candidates, ClusterResult]],
    standing: Collection[str],
) -> CompactionCandidate:
    ltp, decayed, days = chosen.numbers[record.sequence]
    assert record.superseded_by is not None
    shown = f"{ltp:.4g}" if decayed == ltp else f"{ltp:.4g} decayed to {decayed:.4g}"
    reason = (
        f"ltp={shown} < {profile.compaction_threshold:g}, superseded_by={record.superseded_by}, "
        f"last_accessed={days:.0f} days ago"
    )
    action: Literal["compact", "archive", "keep"] = "archive"
    into = record.compacted_into
    if into is None:
        (cluster,) = [cluster for _, cluster in planned if record.id in cluster.source_ids]
        action = "keep" if cluster.record is None else "compact"
        into = None if cluster.record is None else cluster.record.id
        reason += f"; {cluster.reason}" if cluster.record is None else ""
    elif into not in standing:  # archiving this as well would leave nothing to be found
        action, reason = "keep", f"{reason}; its summary {into} is archived: the compaction was taken back"
    return CompactionCandidate(record.id, action, reason, ltp, decayed, record.superseded_by, days, into)


def _group(view: _Candidates, cluster: ClusterResult) -> dict[str, Any]:
    return {
        "session": view.session_id,
        "sources": list(cluster.source_ids),
        "status": cluster.status,
        "reason": cluster.reason,
        "summary": None if cluster.record is None else cluster.record.id,
        "n_tokens": None if cluster.record is None else cluster.record.n_tokens,
    }


def _carry_out(
    store: RetrievalStore, plan: CompactionPlan, planned: Sequence[tuple[_Candidates, ClusterResult]]
) -> tuple[list[str], list[str]]:
    archived: list[str] = []
    summaries: list[str] = []
    for view, cluster in planned:
        if cluster.record is not None:
            store_summary(view, cluster.record)
            store.archive(list(cluster.source_ids), reason=f"compacted into {cluster.record.id}")
            archived += cluster.source_ids
            (source,) = store.get_many(list(cluster.source_ids[:1]))
            summaries.append(cast(str, source.compacted_into))
    left = [candidate.drawer_id for candidate in plan.candidates if candidate.action == "archive"]
    if left:  # of a run that was interrupted
        store.archive(left, reason="compacted before")
        archived += left
    return archived, summaries


def take_back(store: RetrievalStore, plan: CompactionPlan) -> None:
    """Bring back what a compaction archived, and archive its summaries instead."""
    if plan.archived:
        store.restore(list(plan.archived))
    if plan.summaries:
        store.archive(list(plan.summaries), reason="compaction was taken back")


class _Candidates:
    """A session of which only some records are to be compacted."""

    def __init__(self, session: CompactionStore, records: Sequence[StoredRecord]) -> None:
        self._session = session
        self._records = records

    @property
    def session_id(self) -> str:
        return self._session.session_id

    def session_turns(self) -> list[Turn]:
        return [Turn(record.text, record.role, record.id, record.timestamp) for record in self._records]

    def compacted_ids(self) -> Collection[str]:
        return ()

    def turn_vectors(self, ids: Sequence[str]) -> Float32:
        return self._session.turn_vectors(ids)

    def embed_summary(self, text: str) -> Float32:
        return self._session.embed_summary(text)

    def insert_summary(self, record: SummaryRecord) -> None:
        self._session.insert_summary(record)

    def get_summary(self, summary_id: str) -> SummaryRecord | None:
        return self._session.get_summary(summary_id)

    def summary_ids(self) -> Sequence[str]:
        return ()

    def mark_compacted(self, ids: Sequence[str], summary_id: str) -> None:
        self._session.mark_compacted(ids, summary_id)


def compaction_wanted(profile: RetrievalProfile, context_usage: float | None) -> str | None:
    """Why a compaction that was asked for by context usage should not run; None if it should."""
    if context_usage is None:
        return None
    context_usage = finite(context_usage, "context_usage")
    if not profile.adaptive_compaction:
        return "adaptive_compaction is off"
    if context_usage < CONTEXT_TRIGGER:
        return f"context usage {context_usage:.0%} is below {CONTEXT_TRIGGER:.0%}"
    return None
