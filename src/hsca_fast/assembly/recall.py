"""Two-pass ranking of what may be recalled (sections 7.3 to 7.7 of the document)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from hsca_fast._native.records import number_columns
from hsca_fast.ranking import (
    authority_weights,
    estimate_tokens,
    expand_hops,
    extract_keywords,
    keyword_coverage,
    second_pass_scores,
)
from hsca_fast.ranking.columns import count, number, triple

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Key = tuple[str, str]  # (collection, id): the same id in two collections is two documents


@dataclass(slots=True)
class Candidate:
    """A document that may be recalled.

    Parameters
    ----------
    id, collection
        What it is called; the pair is its identity.
    text
        What would be injected.
    score
        Cosine similarity with the query, in [-1, 1]; with `RecallConfig(rank="given")` the final score, in [0, 1].
    role
        Who said it, if anybody.
    timestamp
        Seconds since the epoch; None counts as now, the future too.
    access_count
        How often it was recalled before.
    authority
        a(d) in [0, 1]; 1 for variants of authored documents.
    hop_targets
        Related documents: ids in the same collection, or (collection, id) pairs.
    """

    id: str
    text: str
    score: float = 0.0
    collection: str = ""
    role: str = ""
    timestamp: float | None = None
    access_count: int = 0
    authority: float = 0.0
    hop_targets: Sequence[str | Key] = ()

    def __post_init__(self) -> None:
        if not type(self.id) is type(self.text) is type(self.collection) is type(self.role) is str:
            for field in ("id", "text", "collection", "role"):
                if not isinstance(getattr(self, field), str):
                    raise TypeError(f"{field} must be str, not {type(getattr(self, field)).__name__}")
        if self.hop_targets != ():
            _check_hop_targets(self.hop_targets)


def _check_hop_targets(targets: object) -> None:
    if isinstance(targets, (str, bytes)) or not isinstance(targets, Collection):
        raise TypeError(f"hop_targets must be a sequence of ids, not {type(targets).__name__}")
    for i, target in enumerate(targets):
        is_pair = isinstance(target, tuple) and len(target) == 2 and all(isinstance(part, str) for part in target)
        if not isinstance(target, str) and not is_pair:
            raise TypeError(f"hop_targets[{i}] must be an id or a (collection, id) pair, not {target!r}")


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """How candidates are ranked and packed.

    Parameters
    ----------
    k1, k2
        How many candidates pass the first and the second pass; None for all, so that the budget alone decides.
    theta1
        Least similarity, in [-1, 1].
    kappa
        Weight of keyword coverage, at least 0.
    eta_hop, theta_hop
        What a hop keeps of its parent's score, in (0, 1), and the least score of a hop, in [0, 1].
    authority_weights
        Weights of recency, access and authored authority.
    authority_decay
        Decay of recency per second.
    rank
        "two_pass", or "given" when the scores are final already.
    policy
        "prefix" stops at the first document that does not fit, "first_fit" passes over it.

    Examples
    --------
    >>> RecallConfig(kappa=0.5).theta1
    0.2
    """

    k1: int | None = None
    k2: int | None = None
    theta1: float = 0.2
    kappa: float = 0.3
    eta_hop: float = 0.5
    theta_hop: float = 0.15
    authority_weights: tuple[float, float, float] = (0.5, 0.2, 0.3)
    authority_decay: float = 1e-5
    rank: Literal["two_pass", "given"] = "two_pass"
    policy: Literal["prefix", "first_fit"] = "prefix"

    def __post_init__(self) -> None:
        for name in ("k1", "k2"):
            if getattr(self, name) is not None:
                count(name, getattr(self, name))
        if self.k1 is not None and self.k2 is not None and self.k2 > self.k1:
            raise ValueError(f"k2 must be at most k1 = {self.k1}, not {self.k2}")
        number("theta1", self.theta1, -1.0, 1.0)
        number("kappa", self.kappa, 0.0)
        number("authority_decay", self.authority_decay, 0.0)
        number("eta_hop", self.eta_hop, 0.0, 1.0, open_ends=True)
        number("theta_hop", self.theta_hop, 0.0, 1.0)
        triple("authority_weights", self.authority_weights)
        for name, allowed in (("rank", ("two_pass", "given")), ("policy", ("prefix", "first_fit"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}")


class Ranked(NamedTuple):
    """A document in the merged order; `via` is the best parent of one that was reached by a hop."""

    candidate: Candidate
    score: float
    via: Key | None = None


_LARGEST = float(np.finfo(np.float64).max)
_CANDIDATE_FIELDS = frozenset(field.name for field in fields(Candidate))


def as_candidates(items: Iterable[Candidate | Mapping[str, Any]], name: str) -> list[Candidate]:
    """`items` as a list of `Candidate`s; mappings have its fields as keys."""
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise TypeError(f"{name} must be a sequence of Candidate, not {type(items).__name__}")
    candidates = list(items)
    if {Candidate}.issuperset(map(type, candidates)):
        return cast("list[Candidate]", candidates)
    return [_as_candidate(item, name, row) for row, item in enumerate(candidates)]


def _as_candidate(item: object, name: str, row: int) -> Candidate:
    if isinstance(item, Candidate):
        return item
    where = f"{name}[{row}]"
    if not isinstance(item, Mapping):
        raise TypeError(f"{where} must be a Candidate or a mapping, not {type(item).__name__}")
    try:
        return Candidate(**item)
    except TypeError as error:
        if unknown := item.keys() - _CANDIDATE_FIELDS:
            raise ValueError(f"{where} has no field {min(map(str, unknown))!r}") from None
        if missing := {"id", "text"} - item.keys():
            raise ValueError(f"{where} has no {min(missing)}") from None
        raise TypeError(f"{where}.{error}") from None


class Recall:
    """The merged ranking of candidates and hops, worked out as far as it is asked for.

    Coverage reads every word of a text, so it is counted only for candidates that can still be among the first: no score is above
    its ceiling, authority * similarity.
    """

    def __init__(
        self,
        query: str,
        candidates: list[Candidate],
        linked: Sequence[Candidate],
        config: RecallConfig,
        *,
        now: float,
        max_access: int | None,
        excluded: Collection[Key],
    ) -> None:
        self.config = config
        self._keywords = extract_keywords(query)
        similarity, timestamp, access, authority = _columns(candidates, now, is_final=config.rank == "given")
        self._candidates = candidates
        self._linked = {key: each for each in linked if (key := (each.collection, each.id)) not in excluded}
        self._row_of_id = dict(zip(map(attrgetter("id"), candidates), range(len(candidates)), strict=True))
        self._has_unique_ids = len(self._row_of_id) == len(candidates)
        self._is_rest = np.full(len(candidates), self._has_unique_ids)
        if not self._has_unique_ids:
            self._is_rest[list(self._row_of_key.values())] = True
        self._is_rest[[row for key in excluded if (row := self._find(key)) is not None]] = False
        rest = np.flatnonzero(self._is_rest)
        self._similarity = similarity
        self._passed = rest
        if config.rank == "given":
            self._ceiling = similarity
            return
        if config.k1 is not None:
            self._passed = rest[self._best(rest, similarity[rest], config.k1)]
        self._passed = self._passed[similarity[self._passed] >= config.theta1]
        # The largest access count is that of all that may be recalled, not only of what passed.
        known = rest if max_access is None else self._passed
        largest = access[known].max(initial=max_access or 0)
        self._weight = np.zeros(len(candidates))
        self._weight[self._passed] = authority_weights(
            np.maximum(now - timestamp[self._passed], 0.0),
            access[self._passed],
            authority[self._passed],
            weights=config.authority_weights,
            decay=config.authority_decay,
            max_access=float(largest),
        )
        self._ceiling = self._weight * np.maximum(similarity, 0.0)

    def __len__(self) -> int:
        """At most this many documents can be ranked."""
        return int(self._is_rest.sum()) + len(self._linked)

    def ranked(self, k: int, *, room: int | None = None) -> list[Ranked]:
        """The first `k` of the merged order, by (score descending, key ascending).

        With `room` candidates may be left out whose text alone costs more by `estimate_tokens`, as if they were not there.
        """
        k2 = self.config.k2
        rows, scores, least = self._second_pass(k if k2 is None else k2, None if k2 else room)
        # A hop below the k-th document of the second pass cannot be among the first k.
        hops, parents = self._hops(self._passed, least) if k2 is None else self._hops(rows, 0.0)
        found = [
            Ranked(self._candidates[row], score) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
        ]
        if hops:
            found += [Ranked(self._target(key), score, parents[key]) for key, score in hops.items()]
            found.sort(key=lambda each: (-each.score, each.candidate.collection, each.candidate.id))
        return found[:k]

    def _second_pass(self, k: int, room: int | None) -> tuple[Rows, Scores, float]:
        """Rows of the best `k` of the first pass, best first, their scores, and a score that at least `k` documents reach."""
        rows = self._passed
        if room is not None:
            rows = rows[self._text_costs[rows] <= room]
        kth = 0.0
        if k < len(rows):
            ceiling = self._ceiling[rows]
            highest = rows[np.argpartition(ceiling, len(rows) - k)[len(rows) - k :]]
            # A score may pass its ceiling by a rounding.
            kth = float(self._scores(highest).min()) * (1.0 - 1e-12)
            rows = rows[ceiling >= kth]
        scores = self._scores(rows)
        order = self._best(rows, scores, k)
        return rows[order], scores[order], kth

    @cached_property
    def _text_costs(self) -> npt.NDArray[np.int32]:
        return estimate_tokens([each.text for each in self._candidates])

    def _scores(self, rows: Rows) -> Scores:
        if self.config.rank == "given":
            return self._similarity[rows]
        texts = [self._candidates[row].text for row in rows.tolist()]
        coverage = keyword_coverage(self._keywords, texts)
        scores: Scores = second_pass_scores(
            self._similarity[rows], self._weight[rows], coverage, kappa=self.config.kappa
        )
        return scores

    def _hops(self, passed: Rows, least: float) -> tuple[dict[Key, float], dict[Key, Key]]:
        """Scores of documents one hop away from those in `passed`, and the best parent of each; those below `least` may lack."""
        reach = self.config.eta_hop * self._ceiling[passed] * (1.0 + 1e-12)
        near = passed[reach >= max(least, self.config.theta_hop)].tolist()
        rows = np.array([row for row in near if self._candidates[row].hop_targets], np.int64)
        if not len(rows):
            return {}, {}
        scores = self._scores(rows)
        order = self._best(rows, scores, len(rows))
        edges: dict[Key, list[Key]] = {}
        parents: dict[Key, Key] = {}
        for row in rows[order].tolist():
            parent, targets = self._key(row), self._candidates[row].hop_targets
            edges[parent] = [(parent[0], target) if isinstance(target, str) else target for target in targets]
            for target in edges[parent]:
                parents.setdefault(target, parent)
        free = self._is_rest.copy()
        free[passed] = False
        reached = expand_hops(
            dict(zip(edges, scores[order].tolist(), strict=True)),
            edges,
            eta=self.config.eta_hop,
            theta=self.config.theta_hop,
            eligible={
                key for key in parents if (key in self._linked if (row := self._find(key)) is None else free[row])
            },
        )
        return reached, {target: parents[target] for target in reached}

    def _key(self, row: int) -> Key:
        return self._candidates[row].collection, self._candidates[row].id

    def _find(self, key: Key) -> int | None:
        if not self._has_unique_ids:
            return self._row_of_key.get(key)
        row = self._row_of_id.get(key[1])
        return row if row is not None and self._candidates[row].collection == key[0] else None

    @cached_property
    def _row_of_key(self) -> dict[Key, int]:
        """The first row under each key; ten thousand tuples that are made only when ids repeat."""
        keys: list[Key] = list(map(attrgetter("collection", "id"), self._candidates))
        return dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))

    def _target(self, key: Key) -> Candidate:
        row = self._find(key)
        return self._linked[key] if row is None else self._candidates[row]

    def _best(self, rows: Rows, scores: Scores, k: int) -> Rows:
        """Positions in `rows` of the `k` highest of `scores`, by (score descending, key ascending)."""
        positions = np.arange(len(rows))
        if k < len(rows):
            kth = np.partition(scores, len(rows) - k)[len(rows) - k]
            positions = positions[scores >= kth]
        order = positions[np.argsort(-scores[positions], kind="stable")]
        bounds = np.flatnonzero(np.diff(scores[order], prepend=np.inf, append=-np.inf))
        lengths = np.diff(bounds)
        # Keys are compared only within runs of equal scores that reach the first k.
        for run in np.flatnonzero((lengths > 1) & (bounds[:-1] < k)).tolist():
            tied = order[bounds[run] : bounds[run + 1]]
            documents = [self._candidates[row] for row in rows[tied].tolist()]
            by_key = sorted(range(len(tied)), key=list(map(attrgetter("id"), documents)).__getitem__)
            by_key.sort(key=list(map(attrgetter("collection"), documents)).__getitem__)
            tied[:] = tied[by_key]
        return order[:k]


def _columns(candidates: list[Candidate], now: float, *, is_final: bool) -> Iterator[Scores]:
    """Score, timestamp, access count and authority as arrays; the first row outside of its range is named."""
    # Cosines of float32 vectors may pass 1 by a rounding.
    ranges = {
        "score": (0.0 if is_final else -1.0, 1.0, 1e-6),
        "timestamp": (-_LARGEST, _LARGEST, 0.0),
        "access_count": (0.0, _LARGEST, 0.0),
        "authority": (0.0, 1.0, 0.0),
    }
    try:
        columns = number_columns(candidates, tuple(ranges))
    except (TypeError, ValueError, OverflowError):
        for row, each in enumerate(candidates):
            for field in ranges:
                if (value := getattr(each, field)) is not None:
                    number(f"candidates[{row}].{field}", value, -math.inf)
        raise
    for (field, (low, high, slack)), column in zip(ranges.items(), columns, strict=True):
        good = (column >= low - slack) & (column <= high + slack)
        for row in np.flatnonzero(~good).tolist():
            value = getattr(candidates[row], field)
            if field == "timestamp" and value is None:
                column[row] = now
                continue
            bounds = (
                f"between {low:g} and {high:g}" if high < _LARGEST else "finite" if low else "finite and at least 0"
            )
            raise ValueError(f"candidates[{row}].{field} must be {bounds}, not {value}")
        yield column.clip(low, high)
