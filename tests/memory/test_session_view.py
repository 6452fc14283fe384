"""Compaction on a store on disk, with crashes between any two of its writes."""

import numpy as np
import pytest
from compaction_store import CrashError, session

from hsca_fast import HashEmbedder, SemanticIndex, compact_session, expand_summary


@pytest.fixture
def index(tmp_path):
    with SemanticIndex.open(tmp_path / "store", embedder=HashEmbedder(32)) as index:
        yield index


def fill(index, n, name="s1"):
    turns = session(n)
    ids = []
    for turn in turns:
        ids += index.append([turn.text], role=turn.role, timestamps=turn.timestamp, metadata={"session": name})
    return ids


def compact(view, **options):
    return compact_session(view, **{"keep_recent": 4, "target_size": 10, "clock": lambda: 99.0} | options)


def test_compaction_on_disk(index):
    other = fill(index, 5, "other")
    ids = fill(index, 50)
    view = index.session("s1")
    assert [turn.id for turn in view.session_turns()] == ids
    report = compact(view)
    assert [cluster.status for cluster in report.clusters] == ["stored"] * 5
    assert sorted(view.compacted_ids()) == ids[:46]
    assert view.summary_ids() == [cluster.record.id for cluster in report.clusters]
    for cluster in report.clusters:
        assert view.get_summary(cluster.record.id).same_as(cluster.record)
        sources = [turn for turn in view.session_turns() if turn.id in cluster.source_ids]
        assert expand_summary(view, cluster.record.id) == sources
        owners = {record.compacted_into for record in index.get_many(cluster.source_ids)}
        (owner,) = map(index.get, owners)
        assert (owner.text, owner.role, owner.n_tokens) == (cluster.record.text, "summary", cluster.record.n_tokens)
        assert np.array_equal(index.vectors([owner.id])[0], cluster.record.vector)
    assert compact(view).clusters == ()
    assert index.session("other").summary_ids() == []
    assert index.session("other").get_summary(view.summary_ids()[0]) is None
    assert not any(record.compacted_into for record in index.get_many(other))
    assert index.count() == 60


def test_a_summary_is_replaced(index):
    ids = fill(index, 20)
    view = index.session("s1")
    record = compact(view, target_size=20).clusters[0].record
    old = index.get(ids[0]).compacted_into
    view.insert_summary(record)
    new = index.get(ids[0]).compacted_into
    assert new != old
    assert (index.get(old).status, index.get(old).superseded_by) == ("deleted", new)
    assert view.get_summary(record.id).same_as(record)
    assert view.summary_ids() == [record.id]
    assert compact(view).clusters == ()


def test_turns_of_a_deleted_summary_are_free_again(index):
    ids = fill(index, 20)
    view = index.session("s1")
    compact(view, target_size=20)
    index.delete([index.get(ids[0]).compacted_into])
    assert view.compacted_ids() == []
    assert view.summary_ids() == []
    assert [cluster.status for cluster in compact(view, target_size=20).clusters] == ["stored"]
    assert len(view.compacted_ids()) == 16


def test_marks_need_their_summary(index):
    ids = fill(index, 3)
    with pytest.raises(KeyError, match="nothing"):
        index.session("s1").mark_compacted(ids, "nothing")
    assert index.get(ids[0]).compacted_into is None


class Crashing:
    """A view whose writes stop before or after they are done."""

    def __init__(self, view, crash_at):
        self._view, self._left = view, crash_at

    def __getattr__(self, name):
        return getattr(self._view, name)

    def _step(self):
        self._left -= 1
        if self._left < 0:
            raise CrashError

    def insert_summary(self, record):
        self._step()
        self._view.insert_summary(record)
        self._step()

    def mark_compacted(self, ids, summary_id):
        self._step()
        self._view.mark_compacted(ids, summary_id)
        self._step()


@pytest.mark.parametrize("crash_at", range(16))
def test_crash_between_any_two_writes(tmp_path, crash_at):
    with SemanticIndex.open(tmp_path, embedder=HashEmbedder(32)) as index:
        ids = fill(index, 44)
        with pytest.raises(CrashError):
            compact(Crashing(index.session("s1"), crash_at))
    with SemanticIndex.open(tmp_path, embedder=HashEmbedder(32)) as index:
        view = index.session("s1")
        report = compact(view)
        assert len(report.recovered) == (crash_at % 4 in (1, 2))
        records = [view.get_summary(name) for name in view.summary_ids()]
        assert sorted(id_ for record in records for id_ in record.lineage.source_ids) == ids[:40]
        assert sorted(view.compacted_ids()) == ids[:40]
        assert compact(view).clusters == ()
