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
        self._ids = [tuple(row[3]) for row in rows]
        self._rows: dict[str, list[int]] = {}
        for number, ids in enumerate(self._ids):
            for each in dict.fromkeys(ids):
                self._rows.setdefault(each, []).append(number)

    def retrievals(self, ids: Sequence[str], since: float) -> npt.NDArray[np.float64]:
        """How often each was returned."""
        if not self._rows:
            return np.zeros(len(ids))
        first = bisect_left(self._at, since)
        return np.array(
            [len(rows) - bisect_left(rows, first) if (rows := self._rows.get(i)) else 0 for i in ids], float
        )

    def together(self, ids: Sequence[str], since: float) -> npt.NDArray[np.float64]:
        """For each, Σ over the others of how often both were returned at once."""
        if not self._rows:
            return np.zeros(len(ids))
        first = bisect_left(self._at, since)
        mine = [[row for row in self._rows.get(each, ()) if row >= first] for each in ids]
        size = Counter(row for rows in mine for row in rows)
        return np.array([sum(size[row] - 1 for row in rows) for rows in mine], float)

    def spread(self, ids: Sequence[str], since: float) -> list[int]:
        """How many different queries returned each."""
        first = bisect_left(self._at, since)
        return [len({self._queries[row] for row in self._rows.get(each, ()) if row >= first}) for each in ids]

    def all_used(self, since: float) -> dict[str, int]:
        """How often each record was returned, for all that were."""
        first = bisect_left(self._at, since)
        counts = {each: len(rows) - bisect_left(rows, first) for each, rows in self._rows.items()}
        return {each: count for each, count in counts.items() if count}

    def most_used(self, since: float, n: int) -> list[tuple[str, int]]:
        """The n records returned most often, with how often."""
        return sorted(self.all_used(since).items(), key=lambda item: (-item[1], item[0]))[:n]

    def past_queries(self, since: float) -> list[PastQuery]:
        """The latest first, each text once, with what it returned last."""
        first = bisect_left(self._at, since)
        found: dict[str, PastQuery] = {}
        for row in range(len(self._at) - 1, first - 1, -1):
            text = self._queries[row]
            if text.strip() and text not in found:
                found[text] = PastQuery(text, self._ids[row])
                if len(found) == MAX_PAST_QUERIES:
                    break
        return list(found.values())


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
