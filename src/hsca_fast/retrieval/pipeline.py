"""The retrieval pipeline: from a query to results that say why they are there.

guard ─► expansion ─► recall ─► score ─► supersede ─► consolidation ─► threshold ─► duplicates ─► diversity ─► pinned ─► budget
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, cast

from hsca_fast.fields import finite
from hsca_fast.memory.records import checked_text
from hsca_fast.memory.summarizer import Summarizer
from hsca_fast.ranking.costs import CountTokens
from hsca_fast.retrieval.access import AccessReader
from hsca_fast.retrieval.compaction import (
    CompactableStore,
    CompactionPlan,
    compact,
    compaction_wanted,
    nothing_to_compact,
    take_back,
)
from hsca_fast.retrieval.evidence import Asked, Evidence, LiveEvidence, Notebook, QueryEmbedder, RecordedEvidence
from hsca_fast.retrieval.hooks import Hook, Hooks
from hsca_fast.retrieval.packet import PacketError, check_packet, made_packet
from hsca_fast.retrieval.phases.budget import Budget
from hsca_fast.retrieval.phases.consolidation import Consolidation
from hsca_fast.retrieval.phases.diversity import CrossWing, Mmr, TopK
from hsca_fast.retrieval.phases.duplicates import ExactDuplicates, NgramDuplicates, SemanticDuplicates
from hsca_fast.retrieval.phases.expansion import QueryExpansion
from hsca_fast.retrieval.phases.guard import ModelGuard
from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.phases.pinned import Pinned
from hsca_fast.retrieval.phases.recall import Recall
from hsca_fast.retrieval.phases.score import Score
from hsca_fast.retrieval.phases.supersede import Supersede
from hsca_fast.retrieval.phases.threshold import Threshold
from hsca_fast.retrieval.profile import ProfileBook, ResolvedProfile, RetrievalProfile
from hsca_fast.retrieval.results import RetrievalResult, result_of
from hsca_fast.retrieval.run import Run
from hsca_fast.retrieval.scan import ScanReport, ScanState, scan_records
from hsca_fast.retrieval.store import RecordCache, RetrievalStore
from hsca_fast.vectors.arrays import as_count
from hsca_fast.vectors.embedder import Embedder

PHASES: tuple[type[Phase], ...] = (
    ModelGuard,
    QueryExpansion,
    Recall,
    Score,
    Supersede,
    Consolidation,
    Threshold,
    ExactDuplicates,
    NgramDuplicates,
    SemanticDuplicates,
    Mmr,
    CrossWing,
    TopK,
    Pinned,
    Budget,
)


class RetrievalError(RuntimeError):
    """A phase without which there is no retrieval has failed; `phase` names it."""

    def __init__(self, phase: str, error: BaseException) -> None:
        super().__init__(f"phase {phase} failed: {type(error).__name__}: {error}")
        self.phase = phase


class RetrievalPipeline:
    """Retrieval over a store, by a profile.

    Parameters
    ----------
    index
        A `SemanticIndex`, or anything with the methods of `RetrievalStore`.
    profile
        A profile, the name of one in `book`, or None for the defaults.
    book
        Where names are looked up; the profiles that come with the package when not given.
    embedder
        What embeds queries; the index's own when not given.
    count_tokens
        Cost of a text for budgets; the default is `estimate_tokens`.
    clock
        For ages.

    Examples
    --------
    >>> import tempfile
    >>> from hsca_fast import SemanticIndex, default_embedder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SemanticIndex.open(f"{folder}/talk", embedder=default_embedder()) as index:
    ...         _ = index.append(["The lamp is broken.", "We sail at dawn.", "Oil for the lamp is in the shed."])
    ...         found = RetrievalPipeline(index).run("who broke the lamp?", k=2, explain=True)
    >>> [each.text for each in found.results]
    ['The lamp is broken.', 'Oil for the lamp is in the shed.']
    >>> first = found.results[0]
    >>> sum(delta for part, delta in first.score_breakdown.items() if part != "final_score") == first.score
    True
    """

    def __init__(
        self,
        index: RetrievalStore,
        profile: RetrievalProfile | str | None = None,
        *,
        book: ProfileBook | None = None,
        embedder: Embedder | None = None,
        count_tokens: CountTokens | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.index = index
        self.hooks = Hooks()
        self._book = book or ProfileBook()
        self._profile = profile
        used = index.embedder if embedder is None else embedder
        self._embedder = None if used is None else QueryEmbedder(used)
        self._count_tokens = count_tokens
        self._clock = clock
        self._reader = AccessReader(index)
        self._phases = [phase() for phase in PHASES]
        self.scan_state = ScanState()
        self._last_scan: ScanReport | None = None

    def register_hook(self, name: str, hook: Hook) -> None:
        """Call `hook` with a dict whenever the step of that name is done. It sees copies; if it raises, a warning says so."""
        self.hooks.register(name, hook)

    def resolve(
        self, profile: RetrievalProfile | str | None = None, overrides: Mapping[str, Any] | None = None
    ) -> ResolvedProfile:
        """The profile that a run with these arguments would use, and where each value comes from."""
        chosen = self._profile if profile is None else profile
        if chosen is not None and not isinstance(chosen, (str, RetrievalProfile)):
            raise TypeError(f"profile must be a RetrievalProfile, a name or None, not {type(chosen).__name__}")
        if isinstance(chosen, RetrievalProfile):
            values = {name: value for name, value in (overrides or {}).items() if value is not None}
            sources = dict.fromkeys(chosen.__slots__, "profile") | dict.fromkeys(values, "this query")
            return ResolvedProfile(replace(chosen, **values) if values else chosen, sources)
        return self._book.resolve(chosen, overrides)

    def run(
        self,
        query: str,
        *,
        profile: RetrievalProfile | str | None = None,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
        explain: bool = False,
        candidate_trace: bool = False,
        dry_run: bool = False,
        max_tokens: int | None = None,
        session: str = "",
        now: float | None = None,
    ) -> RetrievalResult:
        """Search.

        Parameters
        ----------
        query
            What is asked. An empty one finds nothing.
        profile
            Instead of the pipeline's own. A name that is not known gives the default profile and a warning.
        k
            How many results, beside pinned ones; the profile's `mmr_final_k` when not given.
        where
            Filter, applied before anything is counted.
        explain
            Give every result its `score_breakdown`; in a dry run every candidate.
        candidate_trace
            Say of every candidate that is not returned where and why it was left out.
        dry_run
            Write nothing. Otherwise what is returned is noted in the store's access log.
        max_tokens
            Hard limit on the cost of all results; the profile's own when not given.
        session
            For the access log.
        now
            Instead of the clock.

        Raises
        ------
        RetrievalError
            The store did not answer. Any other phase that fails is left out: the trace and a warning name it.
        """
        query = checked_text(query, "query")
        resolved = self.resolve(profile)
        records = RecordCache(self.index)
        evidence = Notebook(LiveEvidence(self.index, self._embedder, self._reader, records))
        chosen = resolved.profile
        run = self._start(
            query,
            chosen,
            evidence,
            records,
            k=chosen.mmr_final_k if k is None else as_count(k, "k"),
            where=where,
            explain=explain or chosen.explain,
            tracing=candidate_trace or chosen.candidate_trace,
            max_tokens=chosen.max_tokens if max_tokens is None else as_count(max_tokens, "max_tokens"),
            now=self._clock() if now is None else finite(now, "now"),
        )
        run.warnings += resolved.warnings
        generation = self.index.generation
        name = profile if profile is not None else self._profile
        run.trace["profile_used"] = name if isinstance(name, str) and not resolved.warnings else "default"
        if isinstance(name, RetrievalProfile):
            run.trace["profile_used"] = "given"
        self._execute(run)
        scan = self._last_scan
        if not dry_run and len(run.order):
            self._note_access(run, session)
        return result_of(
            run, everything=dry_run, packet=lambda: made_packet(run, evidence, self.index, generation, scan)
        )

    def replay(self, packet: Mapping[str, Any]) -> RetrievalResult:
        """Run a retrieval again as it was: what the store said then is in the packet, texts and vectors are read again.

        `pipeline_trace["reproduced"]` says whether ids, order and scores are those of the packet. Nothing is written.

        Raises
        ------
        PacketError
            The packet is of another store or model, or damaged.
        """
        read = check_packet(packet, self.index)
        evidence = RecordedEvidence(read.evidence)
        run = self._start(
            read.query,
            read.profile,
            evidence,
            RecordCache(self.index),
            k=read.k,
            where=None,
            explain=True,
            tracing=True,
            max_tokens=read.max_tokens,
            now=read.now,
            pool_size=max(len(read.evidence.get("recalled", ())), 1) if read.evidence else 0,
        )
        run.trace["profile_used"] = "packet"
        try:
            self._execute(run)
        except RetrievalError as error:
            raise PacketError(f"the packet is damaged, or its records are gone: {error}") from error
        found = [[run.pool.ids[row], float(run.score[row])] for row in run.order.tolist()]
        run.trace["reproduced"] = found == read.results
        if found != read.results:
            run.warnings.append("the retrieval did not come out as in the packet")
        return result_of(run, everything=True, packet=lambda: dict(packet))

    # ---- the whole store

    def scan(
        self, *, profile: RetrievalProfile | str | None = None, dry_run: bool = False, now: float | None = None
    ) -> ScanReport:
        """Look at every record after `scan_state.watermark`: counts of retrievals, corrected records, in batches.

        Unless it is a dry run, `scan_state` moves on, so that the next scan sees only what is new. At most `max_scan_depth`
        records are looked at; the report says so when there are more.
        """
        resolved = self.resolve(profile)
        chosen = resolved.profile
        at = self._clock() if now is None else finite(now, "now")
        errors = list(resolved.warnings)
        report, state = scan_records(
            self.index,
            chosen,
            self._reader.counts(at, chosen),
            now=at,
            state=self.scan_state,
            hooks=self.hooks,
            errors=errors,
        )
        if not dry_run:
            self.scan_state = state
        self._last_scan = report
        return report

    def run_compaction(
        self,
        profile: RetrievalProfile | str | None = None,
        *,
        dry_run: bool = True,
        after: int = 0,
        context_usage: float | None = None,
        summarizer: Summarizer | None = None,
        now: float | None = None,
    ) -> CompactionPlan:
        """Put summaries in the place of records that are corrected, unused and old, and archive those.

        A record is a candidate when a later one supersedes it, its ltp (rescaled to 0 to 1, decayed if the profile says so) is
        below `compaction_threshold`, and it was last returned more than `compaction_age_days` ago.

        Parameters
        ----------
        dry_run
            Only plan. Archiving is suggested; somebody has to decide.
        after
            Begin behind this sequence: `plan.scan.last_sequence` of a run that reached `max_scan_depth`.
        context_usage
            Share of a context window that is in use. With it nothing happens below 80 %, or when `adaptive_compaction` is off.
        summarizer
            As for `compact_session`.
        """
        resolved = self.resolve(profile)
        chosen = resolved.profile
        if (reason := compaction_wanted(chosen, context_usage)) is not None:
            return nothing_to_compact(reason, dry_run=dry_run)
        at = self._clock() if now is None else finite(now, "now")
        return compact(
            cast(CompactableStore, self.index),
            chosen,
            self._reader.counts(at, chosen),
            now=at,
            after=as_count(after, "after"),
            dry_run=dry_run,
            hooks=self.hooks,
            summarizer=summarizer,
            warnings=resolved.warnings,
        )

    def start_compaction(self, **options: Any) -> Future[CompactionPlan]:
        """`run_compaction` in a thread of its own, so that nobody waits for a summariser."""
        future: Future[CompactionPlan] = Future()

        def work() -> None:
            try:
                future.set_result(self.run_compaction(**options))
            except BaseException as error:  # for whoever asks for the result
                future.set_exception(error)

        threading.Thread(target=work, name="hsca-compaction", daemon=True).start()
        return future

    def restore_compaction(self, plan: CompactionPlan) -> None:
        """Take a compaction back: its sources are found again, its summaries are not."""
        take_back(self.index, plan)

    # ---- the run

    def _start(
        self,
        query: str,
        profile: RetrievalProfile,
        evidence: Evidence,
        records: RecordCache,
        *,
        k: int,
        where: Mapping[str, Any] | None,
        explain: bool,
        tracing: bool,
        max_tokens: int | None,
        now: float,
        pool_size: int | None = None,
    ) -> Run:
        if pool_size is None:
            pool_size = min(k * profile.candidate_pool_multiplier, self.index.count(where)) if k else 0
        asked = Asked(query, pool_size, where, now, profile)
        return Run(
            store=self.index,
            records=records,
            profile=profile,
            asked=asked,
            k=k,
            evidence=evidence,
            hooks=self.hooks,
            explain=explain,
            tracing=tracing,
            max_tokens=max_tokens,
            count_tokens=self._count_tokens,
        )

    def _execute(self, run: Run) -> None:
        """All phases in order. One that fails leaves no mark but its name; a vital one fails the run."""
        applied: list[str] = []
        skipped: list[str] = []
        failed: list[dict[str, str]] = []
        timing: dict[str, float] = {}
        started = time.perf_counter()
        if not run.asked.text.strip():
            run.warnings.append("the query is empty: nothing was looked for")
            run.stopped = True
        elif run.asked.pool_size == 0:
            if run.k:
                run.warnings.append("the store has no live record" + " that passes the filter" * bool(run.asked.where))
            run.stopped = True
        for phase in self._phases:
            if run.stopped or not phase.wanted(run.profile):
                skipped.append(phase.name)
                continue
            undo = run.undo()
            begin = time.perf_counter()
            try:
                phase.apply(run)
                applied.append(phase.name)
            except Exception as error:
                if phase.vital:
                    raise RetrievalError(phase.name, error) from error
                undo()
                failed.append({"phase": phase.name, "error": f"{type(error).__name__}: {error}"})
                run.warnings.append(f"phase {phase.name} failed and was left out: {type(error).__name__}: {error}")
            finally:
                timing[phase.name] = (time.perf_counter() - begin) * 1e3
        run.trace |= {
            "phases_applied": applied,
            "phases_skipped": skipped,
            "phases_failed": failed,
            "phase_timing_ms": timing,
            "total_candidates_in": run.trace.get("total_candidates_in", 0),
            "total_results_out": len(run.order),
            "truncated": run.truncated,
            "elapsed_ms": (time.perf_counter() - started) * 1e3,
        }

    def _note_access(self, run: Run, session: str) -> None:
        if getattr(self.index, "mode", "a") == "r":
            return
        # What is only pinned was not asked for; counting it would pin it for ever.
        ids = [run.pool.ids[row] for row in run.order.tolist() if row not in run.only_pinned]
        if not ids:
            return
        try:
            self.index.touch(ids, query=run.asked.text, session=session, at=run.asked.now)
        except OSError as error:  # the answer is there all the same
            run.warnings.append(f"the access could not be noted: {error}")
