"""Counts over the access log: the same whether they were read at once or as the log grew."""

import numpy as np
import pytest
from retrieval_stores import DAY, NOW, fill, open_index, random_texts

from hsca_fast import RetrievalPipeline, RetrievalProfile
from hsca_fast.retrieval import access
from hsca_fast.retrieval.access import AccessCounts, AccessReader

PROFILE = RetrievalProfile()


def answers(counts, ids, since):
    return (
        counts.retrievals(ids, since).tolist(),
        counts.together(ids, since).tolist(),
        counts.spread(ids, since),
        counts.all_used(since),
        counts.most_used(since, 5),
        counts.past_queries(since),
    )


def plain(entries, ids, since, limit):
    """The same by going through all entries."""
    rows = [row for row in sorted(entries, key=lambda row: row[0])[-limit:] if row[0] >= since]
    held = [set(row[3]) for row in rows]
    used = {each: n for each in sorted({e for row in held for e in row}) if (n := sum(each in row for row in held))}
    latest = {}
    for row in rows:
        latest.pop(row[1], None)
        latest[row[1]] = tuple(row[3])
    return (
        [float(sum(each in row for row in held)) for each in ids],
        [float(sum(len(row & set(ids)) - 1 for row in held if each in row)) for each in ids],
        [len({row[1] for row, inside in zip(rows, held, strict=True) if each in inside}) for each in ids],
        used,
        sorted(used.items(), key=lambda item: (-item[1], item[0]))[:5],
        [access.PastQuery(text, returned) for text, returned in reversed(latest.items())],
    )


@pytest.mark.parametrize("in_order", [True, False])
def test_counts_grow_with_the_log(tmp_path, monkeypatch, in_order):
    monkeypatch.setattr(access, "MAX_ROWS", 25)
    rng = np.random.default_rng(0)
    with open_index(tmp_path / "index") as index:
        ids = fill(index, random_texts(12))
        reader = AccessReader(index)
        for step in range(70):
            at = NOW - DAY + (step if in_order else float(rng.integers(1000)))
            index.touch([ids[i] for i in rng.choice(12, 3, replace=False)], query=f"q{rng.integers(9)}", at=at)
            if step % 3 == 0:
                since = NOW - DAY + step / 2
                expected = plain(list(index.access_log()), ids[:6], since, 25)
                assert answers(reader.counts(NOW, PROFILE), ids[:6], since) == expected
                assert answers(AccessReader(index).counts(NOW, PROFILE), ids[:6], since) == expected


def test_what_was_read_is_not_read_again(tmp_path, monkeypatch):
    with open_index(tmp_path / "index") as index:
        ids = fill(index, random_texts(5))
        for i in range(20):
            index.touch(ids[:2], query=f"q{i}", at=NOW + i)
        run = RetrievalPipeline(index, clock=lambda: NOW + 100)
        run.run("lamp", dry_run=True)
        read = []
        log = type(index).access_log

        def watched(self, *args, **options):
            found = list(log(self, *args, **options))
            read.append(len(found))
            return iter(found)

        monkeypatch.setattr(type(index), "access_log", watched)
        for _ in range(4):
            run.run("lamp")
        assert sum(read) == 3


def test_an_older_question_reads_what_is_older(tmp_path):
    with open_index(tmp_path / "index") as index:
        ids = fill(index, random_texts(3))
        index.touch(ids[:1], query="q", at=NOW - 500 * DAY)
        reader = AccessReader(index)
        assert reader.counts(NOW, PROFILE).all_used(-np.inf) == {}
        assert reader.counts(NOW - 450 * DAY, PROFILE).all_used(-np.inf) == {ids[0]: 1}


def test_no_entries():
    counts = AccessCounts()
    assert answers(counts, ["a"], 0.0) == ([0.0], [0.0], [0], {}, [], [])
    assert len(counts) == 0
