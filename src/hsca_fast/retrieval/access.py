"""Who asked for what: counts over the access log, of which every entry is read once."""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hsca_fast.ranking.activity import DAY
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.store import RetrievalStore

ASSOCIATION_DAYS = 90.0
MAX_ROWS = 100_000  # of the log, the latest; what is older has lost its say anyway
MAX_PAST_QUERIES = 1_000

_Entry = tuple[float, str, str, Sequence[str]]


class PastQuery(NamedTuple):
    """A query of before, and what it returned, best first."""

    text: str
    ids: tuple[str, ...]


class AccessCounts:
    """Entries of the log by record, in the order of their times. Only the latest `MAX_ROWS` count.

    A record's entries are a list of ascending row numbers, so that a question about 200 candidates costs what happened to those, and
    not what happened to all.
    """

    def __init__(self, entries: Iterable[_Entry] = ()) -> None:
        self._at = array("d")
        self._queries: list[str] = []
        self._returned: list[tuple[str, ...]] = []
        self._rows: dict[str, array[int]] = {}
        self._most_used: tuple[object, list[tuple[str, int]]] | None = None  # of the last question for them
        self._latest: dict[str, int] = {}  # row of each query text, the latest used last
        for entry in sorted(entries, key=lambda each: each[0]):
            self.add(entry)

    def __len__(self) -> int:
        return len(self._at)

    @property
    def last_time(self) -> float:
        """Of the last entry; entries that are added may not be older."""
        return self._at[-1] if self._at else -np.inf

    def add(self, entry: _Entry) -> None:
        """One more entry."""
        at, text, _, ids = entry
        row = len(self._at)
        for each in dict.fromkeys(ids):
            rows = self._rows.get(each)
            if rows is None:
                rows = self._rows[each] = array("q")
            rows.append(row)
        self._at.append(at)
        self._queries.append(text)
        self._returned.append(tuple(ids))
        if text.strip():
            self._latest.pop(text, None)
            self._latest[text] = row

    def entries(self) -> list[_Entry]:
        """Those that count."""
        return [
            (self._at[row], self._queries[row], "", self._returned[row])
            for row in range(max(len(self) - MAX_ROWS, 0), len(self))
        ]

    def _first(self, since: float) -> int:
        return max(bisect_left(self._at, since), len(self) - MAX_ROWS)

    def _rows_of(self, ids: Sequence[str], since: float) -> list[array[int]]:
        first, none = self._first(since), array("q")
        found = [self._rows.get(each, none) for each in ids]
        return [rows if not rows or rows[0] >= first else rows[bisect_left(rows, first) :] for rows in found]

    def retrievals(self, ids: Sequence[str], since: float) -> npt.NDArray[np.float64]:
        """How often each was returned."""
        return np.array([len(rows) for rows in self._rows_of(ids, since)], np.float64)

    def together(self, ids: Sequence[str], since: float) -> npt.NDArray[np.float64]:
        """For each, Σ over the others of how often both were returned at once."""
        first = self._first(since)
        flat, ends = array("q"), [0]  # rows of all ids
        for rows in self._rows_of(ids, since):
            flat += rows
            ends.append(len(flat))
        row = np.array(flat, np.int64) - first
        total = np.append(0, np.cumsum(np.bincount(row)[row] - 1))
        return np.diff(total[ends]).astype(np.float64)

    def spread(self, ids: Sequence[str], since: float) -> list[int]:
        """How many different queries returned each."""
        return [len({self._queries[row] for row in rows}) for rows in self._rows_of(ids, since)]

    def all_used(self, since: float) -> dict[str, int]:
        """How often each record was returned, for all that were."""
        first = self._first(since)
        return {
            each: len(rows) - bisect_left(rows, first) for each, rows in list(self._rows.items()) if rows[-1] >= first
        }

    def most_used(self, since: float, n: int) -> list[tuple[str, int]]:
        """The n records returned most often, with how often; ties by id."""
        state = len(self), self._first(since), n
        if self._most_used is None or self._most_used[0] != state:
            best = nsmallest(n, self.all_used(since).items(), key=lambda item: (-item[1], item[0]))
            self._most_used = state, best
        return self._most_used[1]

    def past_queries(self, since: float) -> list[PastQuery]:
        """The latest first, each text once, with what it returned last."""
        first = self._first(since)
        found: list[PastQuery] = []
        for text, row in reversed(list(self._latest.items())):
            if row < first or len(found) == MAX_PAST_QUERIES:
                break
            found.append(PastQuery(text, self._returned[row]))
        return found


class AccessReader:
    """The counts of a store, kept up to date by reading what is new."""

    def __init__(self, store: RetrievalStore) -> None:
        self._store = store
        self._counts = AccessCounts()
        self._generation: int | None = None
        self._since = -np.inf
        self._n_read = 0  # entries of the log, counted or not
        self._lock = threading.Lock()

    def counts(self, now: float, profile: RetrievalProfile) -> AccessCounts:
        """As of now; whoever has them may go on with them while others ask for newer ones."""
        days = max(profile.ltp_window_days, profile.query_expansion_lookback_days, ASSOCIATION_DAYS)
        since = now - days * DAY
        with self._lock:
            if self._generation is None or since < self._since:
                self._read_all(since)
            elif self._generation != self._store.generation:
                self._read_new()
            return self._counts

    def _read_all(self, since: float) -> None:
        self._generation, n = self._store.generation, self._store.n_accesses
        self._counts = AccessCounts(self._store.access_log(since, before=n))
        self._since, self._n_read = since, n

    def _read_new(self) -> None:
        self._generation, n = self._store.generation, self._store.n_accesses
        if n > self._n_read:
            new = list(self._store.access_log(self._since, after=self._n_read, before=n))
            self._n_read = n
            in_order = all(earlier[0] <= later[0] for earlier, later in pairwise(new))
            if new and (not in_order or new[0][0] < self._counts.last_time or len(self._counts) > 2 * MAX_ROWS):
                self._counts = AccessCounts([*self._counts.entries(), *new])
            else:
                for entry in new:
                    self._counts.add(entry)
