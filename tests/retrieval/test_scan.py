"""Scans of a whole store: every record once, in batches, and on from where the last one stopped."""

import numpy as np
import pytest
from retrieval_stores import DAY, NOW, fill, folder_bytes, open_index, random_texts

from hsca_fast import RetrievalPipeline, RetrievalProfile, ScanState
from hsca_fast.retrieval.access import AccessReader
from hsca_fast.retrieval.hooks import Hooks
from hsca_fast.retrieval.scan import scan_records


@pytest.fixture
def index(tmp_path):
    with open_index(tmp_path / "index") as opened:
        fill(opened, random_texts(250))
        yield opened


def pipeline(index, **fields):
    return RetrievalPipeline(index, RetrievalProfile(**fields), clock=lambda: NOW)


@pytest.mark.parametrize("batch_size", [1, 7, 50, 250, 5000])
def test_pagination_covers_every_record(index, batch_size):
    batches = []
    run = pipeline(index, batch_size=batch_size)
    run.register_hook("post_batch", batches.append)
    report = run.scan()
    assert sum(batch["batch_size"] for batch in batches) == index.count() == report.total == report.scanned == 250
    assert [batch["offset"] for batch in batches] == list(range(0, 250, batch_size))
    assert [batch["batch_index"] for batch in batches] == list(range(len(batches)))
    timing = report.timing()
    assert timing["batches"] == len(timing["batch_timings_ms"]) == len(batches)
    assert timing["slowest_batch"]["ms"] == max(timing["batch_timings_ms"])
    assert report.pagination_state() == {
        "total": 250,
        "batches_processed": len(batches),
        "last_offset": 250,
        "scan_depth_reached": False,
    }


def test_without_pages_there_is_one_batch(index):
    assert len(pipeline(index, paginated_scoring=False).scan().batches) == 1


def test_depth_is_a_limit_that_is_told_and_the_next_scan_goes_on(index):
    run = pipeline(index, batch_size=40, max_scan_depth=100)
    first = run.scan()
    assert (first.scanned, first.scan_depth_reached, first.watermark) == (100, True, 100)
    second = run.scan()
    assert (second.first_sequence, second.watermark, second.scan_depth_reached) == (100, 200, True)
    third = run.scan()
    assert (third.scanned, third.watermark, third.scan_depth_reached) == (50, 250, False)
    assert run.scan().scanned == 0
    exact = pipeline(index, max_scan_depth=250).scan()
    assert (exact.scanned, exact.scan_depth_reached) == (250, False)


def test_incremental_scans_see_what_changed(index):
    run = pipeline(index, batch_size=100)
    assert run.scan().ltp_updated == 0
    ids = [record.id for record in index.records_at([3, 4, 150])]
    index.touch(ids, query="lamp", at=NOW - DAY)
    new = fill(index, random_texts(5, seed=9))
    again = run.scan()
    assert (again.scanned, again.ltp_updated) == (5, 3)  # the used ones lie before the watermark
    assert run.scan_state.retrievals == {3: 1, 4: 1, 150: 1}
    index.touch(new[:1], query="sea", at=NOW)
    third = run.scan()
    assert (third.scanned, third.ltp_updated) == (0, 1)
    whole = pipeline(index, batch_size=100)
    batches = whole.scan().batches
    assert [batch["ltp_updated"] for batch in batches] == [2, 1, 1]
    assert [batch["ltp_skipped_unchanged"] for batch in batches] == [98, 99, 54]


def test_dry_scan_moves_nothing(index, tmp_path):
    index.touch([index.records_at([3])[0].id], at=NOW)
    run = pipeline(index)
    run.register_hook("post_batch", lambda context: None)
    before = folder_bytes(tmp_path / "index")
    report = run.scan(dry_run=True)
    assert (report.scanned, report.ltp_updated) == (250, 1)
    assert run.scan_state == ScanState()
    assert folder_bytes(tmp_path / "index") == before


def test_the_watermark_never_passes_a_gap(index):
    profile = RetrievalProfile(batch_size=50)
    seen = []

    def visit(columns, ltp):
        if columns.sequence[0] == 101:
            raise RuntimeError("bad batch")
        seen.extend(columns.sequence.tolist())

    def scan(state, visit):
        errors = []
        counts = AccessReader(index).counts(NOW, profile)
        found = scan_records(index, profile, counts, now=NOW, state=state, hooks=Hooks(), errors=errors, visit=visit)
        return (*found, errors)

    report, state, errors = scan(ScanState(), visit)
    assert (report.scanned, state.watermark) == (250, 100)
    assert errors == ["batch 2 at offset 100 failed: RuntimeError: bad batch"]
    assert report.batches[2]["error"] == "RuntimeError: bad batch"
    assert seen == [*range(1, 101), *range(151, 251)]
    report, state, errors = scan(state, lambda columns, ltp: None)
    assert (report.first_sequence, state.watermark, errors) == (100, 250, [])


def test_ltp_of_each_record(index):
    record = index.records_at([42])[0]
    for i in range(5):
        index.touch([record.id], at=NOW - i)
    index.touch([record.id], at=NOW - 31 * DAY)  # out of the window
    found = {}
    profile = RetrievalProfile(batch_size=20)
    scan_records(
        index,
        profile,
        AccessReader(index).counts(NOW, profile),
        now=NOW,
        state=ScanState(),
        hooks=Hooks(),
        errors=[],
        visit=lambda columns, ltp: found.update(zip(columns.sequence.tolist(), ltp.tolist(), strict=True)),
    )
    assert found.pop(42) == pytest.approx(1 + 0.3 * np.log(6))
    assert set(found.values()) == {1.0}


def test_archived_and_deleted_records_leave_no_gap(index):
    ids = [record.id for record in index.records_at(range(10, 20))]
    index.archive(ids[:5], reason="r")
    index.delete(ids[5:])
    report = pipeline(index, batch_size=30).scan()
    assert (report.total, report.scanned, report.watermark) == (240, 250, 250)


def test_a_state_is_kept_in_a_file(index, tmp_path):
    state = ScanState(12, {3: 1})
    state.save(tmp_path / "state.json")
    assert ScanState.load(tmp_path / "state.json") == state
    with pytest.raises(ValueError, match=r"ScanState.watermark must not be negative"):
        ScanState.from_dict({"watermark": -1, "retrievals": {}})


def test_an_empty_store(tmp_path):
    with open_index(tmp_path / "empty") as empty:
        report = pipeline(empty).scan()
        assert (report.total, report.scanned, report.timing()["slowest_batch"]) == (0, 0, None)


def test_packets_tell_how_far_the_last_scan_came(index):
    run = pipeline(index, max_scan_depth=100)
    assert run.run("lamp", dry_run=True).replay_packet["pagination_state"] is None
    run.scan()
    state = run.run("lamp", dry_run=True).replay_packet["pagination_state"]
    assert (state["total"], state["last_offset"], state["scan_depth_reached"]) == (250, 100, True)
