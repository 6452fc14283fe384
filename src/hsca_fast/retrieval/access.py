"""Who asked for what: counts over the access log, read once for each state of the store."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hsca_fast.ranking.activity import DAY
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.store import RetrievalStore

ASSOCIATION_DAYS = 90.0
MAX_ROWS = 100_000  # of the log, the latest; what is older has lost its say anyway
MAX_PAST_QUERIES = 1_000


@dataclass(frozen=True, slots=True)
class PastQuery:
    """A query of before, and what it returned, best first."""

    text: str
    ids: tuple[str, ...]


class AccessCounts:
    """The log from `since` on, by record."""

    def __init__(self, store: RetrievalStore, since: float) -> None:
        self.generation = store.generation
        self.since = since
        rows = sorted(store.access_log(since), key=lambda row: row[0])[-MAX_ROWS:]
        self._at = [row[0] for row in rows]
        self._queries = [row[1] for row in rows]
        ids = [dict.fromkeys(row[3]) for row in rows]
        self._ids = sorted({each for row in ids for each in row})
        self._code = {each: code for code, each in enumerate(self._ids)}
        self._codes = np.array([self._code[each] for row in ids for each in row], np.int64)
        self._starts = np.cumsum([0, *map(len, ids)])
        self._rows: dict[str, list[int]] = {}
        for number, row in enumerate(ids):
            for each in row:
                self._rows.setdefault(each, []).append(number)
        past: dict[str, tuple[float, PastQuery]] = {}
        for at, text, _, returned in reversed(rows):
            if text.strip() and text not in past and len(past) < MAX_PAST_QUERIES:
                past[text] = at, PastQuery(text, tuple(returned))
        self._past = list(past.values())

    def _first(self, since: float) -> int:
        return bisect_left(self._at, since)

    def _counts(self, since: float) -> npt.NDArray[np.int64]:
        """Retrievals by code."""
        return np.bincount(self._codes[self._starts[self._first(since)] :], minlength=len(self._ids))

    def retrievals(self, ids: Sequence[str], since: float) -> npt.NDArray[np.float64]:
        """How often each was returned."""
        counts = np.append(self._counts(since), 0)  # the last is that of strangers
        return counts[[self._code.get(each, -1) for each in ids]].astype(np.float64)

    def together(self, ids: Sequence[str], since: float) -> npt.NDArray[np.float64]:
        """For each, Σ over the others of how often both were returned at once."""
        first = self._first(since)
        mine = [[row for row in self._rows.get(each, ()) if row >= first] for each in ids]
        size = Counter(row for rows in mine for row in rows)
        return np.array([sum(size[row] - 1 for row in rows) for rows in mine], float)

    def spread(self, ids: Sequence[str], since: float) -> list[int]:
        """How many different queries returned each."""
        first = self._first(since)
        return [len({self._queries[row] for row in self._rows.get(each, ()) if row >= first}) for each in ids]

    def all_used(self, since: float) -> dict[str, int]:
        """How often each record was returned, for all that were."""
        counts = self._counts(since)
        return {self._ids[code]: int(counts[code]) for code in np.flatnonzero(counts).tolist()}

    def most_used(self, since: float, n: int) -> list[tuple[str, int]]:
        """The n records returned most often, with how often; ties by id."""
        counts = self._counts(since)
        best = np.argsort(-counts, kind="stable")[:n].tolist()
        return [(self._ids[code], int(counts[code])) for code in best if counts[code]]

    def past_queries(self, since: float) -> list[PastQuery]:
        """The latest first, each text once, with what it returned last."""
        return [query for at, query in self._past if at >= since]


class AccessReader:
    """Keeps the counts of the last state that was asked for."""

    def __init__(self, store: RetrievalStore) -> None:
        self._store = store
        self._last: AccessCounts | None = None

    def counts(self, now: float, profile: RetrievalProfile) -> AccessCounts:
        days = max(profile.ltp_window_days, profile.query_expansion_lookback_days, ASSOCIATION_DAYS)
        since = now - days * DAY
        last = self._last
        if last is None or last.generation != self._store.generation or last.since > since:
            self._last = last = AccessCounts(self._store, since)
        return last
