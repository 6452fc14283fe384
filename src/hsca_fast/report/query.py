"""The page of a query: what was found, what each phase added to its score, and what was left out and why."""

from __future__ import annotations

from hsca_fast.report.figures import plot_breakdown
from hsca_fast.report.marked import short
from hsca_fast.report.page import Page
from hsca_fast.retrieval.results import RetrievalResult

_LABEL = 48  # characters of a text beside its bar
_SHOWN = 400


def query_report(found: RetrievalResult, *, query: str) -> Page:
    """A page of a retrieval; run it with `explain=True, candidate_trace=True` to see all.

    Examples
    --------
    >>> import tempfile
    >>> from hsca_fast import RetrievalPipeline, SemanticIndex, default_embedder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SemanticIndex.open(f"{folder}/talk", embedder=default_embedder()) as index:
    ...         _ = index.append(["The lamp is broken.", "We sail at dawn."])
    ...         found = RetrievalPipeline(index).run("lamp", explain=True, candidate_trace=True)
    >>> query_report(found, query="lamp").write("lamp.html")  # doctest: +SKIP
    """
    trace = found.pipeline_trace
    page = Page(query, subtitle="What was found, and why")
    page.facts(
        {
            "results": len(found.results),
            "candidates": trace["total_candidates_in"],
            "milliseconds": f"{trace['elapsed_ms']:.1f}",
            "profile": trace["profile_used"],
        }
    )
    for warning in found.warnings:
        page.section("Warning", warning)
    page.section("Results", "Scores with what each phase added; parts to the left of 0 were taken away.")
    explained = [
        (
            f"{rank}. {short(each.text, _LABEL)}",
            {k: v for k, v in each.score_breakdown.items() if v and k != "final_score"},
        )
        for rank, each in enumerate(found.results, 1)
        if each.score_breakdown is not None
    ]
    if explained:
        page.figure(plot_breakdown(explained), label="Score of each result by phase")
    page.table(
        ["rank", "score", "cosine", "lexical", "wing", "text"],
        [
            (
                rank,
                each.score,
                _or_said(each.cosine),
                _or_said(each.lexical),
                each.wing or "",
                short(each.text, _SHOWN),
            )
            for rank, each in enumerate(found.results, 1)
        ],
    )
    left_out = [entry for entry in trace.get("candidate_trace", []) if "dropped_at" in entry]
    if left_out:
        page.section("Left out", "Candidates that are not among the results.")
        page.table(
            ["chunk", "left out at", "reason"],
            [(entry["drawer_id"], entry["dropped_at"], entry["reason"]) for entry in left_out],
        )
    page.section("Phases")
    timing = trace["phase_timing_ms"]
    page.table(["phase", "milliseconds"], [(name, f"{timing[name]:.3f}") for name in timing])
    return page


def _or_said(value: float | None) -> object:
    return "not found" if value is None else value
