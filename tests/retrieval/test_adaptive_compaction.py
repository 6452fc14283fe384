"""Adaptive compaction: the right candidates, every reason told, nothing lost, everything taken back."""

import threading

import pytest
from retrieval_stores import DAY, NOW, folder_bytes, open_index, random_texts

from hsca_fast import Draft, RetrievalPipeline, RetrievalProfile
from hsca_fast.memory import compaction as memory_compaction


@pytest.fixture
def index(tmp_path):
    """Thirty old records of two sessions and none, each corrected by one of thirty newer ones; ten that nobody corrects."""
    with open_index(tmp_path / "index") as opened:
        old = opened.append(
            random_texts(40, words=14),
            metadata=[{"session": ("a", "b")[i % 2]} if i % 3 else {} for i in range(40)],
            timestamps=[NOW - 100 * DAY + i for i in range(40)],
        )
        new = opened.append(random_texts(30, seed=1), timestamps=[NOW - 10 * DAY + i for i in range(30)])
        for each, newer in zip(old[:30], new, strict=True):
            opened.supersede(each, newer)
        opened.old, opened.new = old, new
        yield opened


def pipeline(index, **fields):
    return RetrievalPipeline(index, RetrievalProfile(**fields), clock=lambda: NOW)


def live(index):
    return {record.id for batch in index.iter_records() for record in batch}


def test_candidates_meet_every_criterion(index):
    for n, i in ((1, 0), (2, 1), (9, 2)):
        for t in range(n):
            index.touch([index.old[i]], query=f"q{t}", at=NOW - 29 * DAY)
    index.touch([index.old[3]], at=NOW - 40 * DAY)  # old enough, outside of the window of ltp
    captured = {}
    run = pipeline(index, compaction_age_days=28)
    run.register_hook("post_compaction_plan", captured.update)
    plan = run.run_compaction()
    ids = {each.drawer_id for each in plan.candidates}
    # (ltp - 1) / (max - 1) = 0.3 ln(1 + n): .21, .33, .69 for 1, 2 and 9 retrievals
    assert ids == set(index.old[:30]) - {index.old[1], index.old[2]}
    for each in captured["candidates"]:
        assert each["ltp_score"] < 0.3
        assert each["is_superseded"] is True
        assert each["days_since_access"] > 28
    assert captured["would_archive"] == plan.would_archive
    assert captured["would_create_summaries"] == plan.would_create_summaries == len(plan.groups) == 3
    (first,) = [each for each in plan.candidates if each.drawer_id == index.old[0]]
    assert first.reason == f"ltp=0.2079 < 0.3, superseded_by={index.new[0]}, last_accessed=29 days ago"
    assert first.consolidated_into in {group["summary"] for group in plan.groups}
    assert {"ltp_scan_ms", "supersede_check_ms", "consolidation_plan_ms", "total_ms"} == plan.timing_ms.keys()
    assert plan.replay_packet()["compaction_plan"]["summary_count"] == 3
    assert plan.replay_packet()["pagination_state"]["total"] == 70


def test_decay_makes_candidates(index):
    for t in range(9):
        index.touch([index.old[2]], query=f"q{t}", at=NOW - 29 * DAY)
    common = {"compaction_age_days": 28}
    assert index.old[2] not in {c.drawer_id for c in pipeline(index, **common).run_compaction().candidates}
    plan = pipeline(index, **common, decay_enabled=True, decay_lambda=0.03).run_compaction()
    (found,) = [each for each in plan.candidates if each.drawer_id == index.old[2]]
    assert (found.ltp_score, found.decayed_ltp) == (pytest.approx(0.6908, abs=1e-4), pytest.approx(0.2894, abs=1e-4))
    assert "ltp=0.6908 decayed to 0.2894 < 0.3" in found.reason


def test_recent_records_and_those_nobody_corrects_stay(index):
    assert pipeline(index, compaction_age_days=101).run_compaction().candidates == ()
    index.delete([index.new[0]])  # what corrected it is gone
    ids = {each.drawer_id for each in pipeline(index).run_compaction().candidates}
    assert ids == set(index.old[1:30])


def test_dry_run_writes_nothing(index, tmp_path):
    index.query("lamp")  # brings the full-text index up to date
    before = folder_bytes(tmp_path / "index")
    plan = pipeline(index).run_compaction(dry_run=True)
    assert plan.candidates
    assert plan.archived == plan.summaries == ()
    assert folder_bytes(tmp_path / "index") == before


def test_compaction_archives_and_can_be_taken_back(index):
    before = live(index)
    run = pipeline(index)
    planned = run.run_compaction(dry_run=True)
    plan = run.run_compaction(dry_run=False)
    assert [each.drawer_id for each in plan.candidates] == [each.drawer_id for each in planned.candidates]
    assert set(plan.archived) == set(index.old[:30])
    assert live(index) == before - set(plan.archived) | set(plan.summaries)
    for record in index.get_many(plan.archived):
        assert (record.status, record.compacted_into in plan.summaries) == ("archived", True)
    assert run.run_compaction().candidates == ()
    query = index.get(index.old[0]).text
    assert plan.archived[0] not in {each.id for each in run.run(query, k=70, dry_run=True).results}
    run.restore_compaction(plan)
    assert live(index) == before
    assert index.old[0] in {each.id for each in run.run(query, k=5, dry_run=True).results}


def test_what_was_taken_back_is_not_archived_again(index):
    """Its summaries are archived: without the sources nothing would be left to find."""
    run = pipeline(index)
    run.restore_compaction(run.run_compaction(dry_run=False))
    before = live(index)
    again = run.run_compaction(dry_run=False)
    assert (again.would_archive, again.archived, again.summaries) == (0, (), ())
    assert {each.action for each in again.candidates} == {"keep"}
    assert all("the compaction was taken back" in each.reason for each in again.candidates)
    assert live(index) == before


def test_a_profile_that_is_not_there_and_a_hook_that_raises_are_told(index):
    run = pipeline(index)
    run.register_hook("post_batch", lambda context: 1 / 0)
    for found in (run.scan(profile="nobody", dry_run=True), run.run_compaction("nobody")):
        assert found.warnings[0].startswith("there is no retrieval profile 'nobody'")
        assert found.warnings[1] == "hook post_batch raised ZeroDivisionError: division by zero"


@pytest.mark.parametrize(("usage", "error"), [(float("nan"), ValueError), ("full", TypeError)])
def test_context_usage_is_a_number(index, usage, error):
    with pytest.raises(error, match="context_usage must be"):
        pipeline(index, adaptive_compaction=True).run_compaction(context_usage=usage)


def test_a_crash_between_summary_and_archive_is_finished_by_the_next_run(index, monkeypatch):
    run = pipeline(index)

    def crash(*args, **options):
        raise OSError("disk")

    with monkeypatch.context() as patch:
        patch.setattr(type(index), "archive", crash)
        with pytest.raises(OSError, match="disk"):
            run.run_compaction(dry_run=False)
    assert set(index.old) <= live(index)
    plan = run.run_compaction(dry_run=False)
    assert "archive" in {each.action for each in plan.candidates}
    assert set(plan.archived) == set(index.old[:30])
    summaries = [r for batch in index.iter_records() for r in batch if r.role == "summary"]
    assert len(summaries) == 3


def test_one_source_waits_for_more(tmp_path):
    with open_index(tmp_path / "index") as index:
        old, new = index.append(["Yes.", "No."], timestamps=[NOW - 90 * DAY, NOW])
        index.supersede(old, new)
        plan = pipeline(index).run_compaction(dry_run=False)
        assert [each.action for each in plan.candidates] == ["keep"]
        assert "wait for more" in plan.candidates[0].reason
        assert (plan.archived, live(index)) == ((), {old, new})


def test_nobody_waits_for_a_summariser(index):
    asked, may_go_on = threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        def summarize(self, texts, *, max_tokens):
            asked.set()
            assert may_go_on.wait(30)
            return Draft(" ".join(texts)[:200])

    run = pipeline(index)
    future = run.start_compaction(dry_run=False, summarizer=Slow())
    assert asked.wait(30)
    assert run.run("lamp").results  # reads and writes while the summariser thinks
    index.append(["a new record"])
    assert not future.done()
    may_go_on.set()
    assert len(future.result(timeout=60).archived) == 30


def test_an_error_in_the_background_is_kept_for_whoever_asks(index, monkeypatch):
    monkeypatch.setattr(memory_compaction, "extractive_summary", lambda *args, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pipeline(index).start_compaction().result(timeout=60)


@pytest.mark.parametrize(
    ("fields", "usage", "warning"),
    [
        ({}, 0.95, "adaptive_compaction is off"),
        ({"adaptive_compaction": True}, 0.5, "context usage 50% is below 80%"),
        ({"adaptive_compaction": True}, 0.8, None),
        ({}, None, None),
    ],
)
def test_trigger_by_context_usage(index, fields, usage, warning):
    plan = pipeline(index, **fields).run_compaction(context_usage=usage)
    assert plan.warnings == ((warning,) if warning else ())
    assert bool(plan.candidates) == (warning is None)


def test_depth_is_told_and_the_next_run_goes_on(index):
    run = pipeline(index, max_scan_depth=20)
    first = run.run_compaction()
    assert first.scan.scan_depth_reached
    second = run.run_compaction(after=first.scan.last_sequence)
    ids = [each.drawer_id for plan in (first, second) for each in plan.candidates]
    assert ids == index.old[:30]
