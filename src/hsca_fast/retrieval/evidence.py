"""Everything a retrieval learns from outside that may be otherwise tomorrow: asked live, or read from a packet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Protocol

import numpy as np

from hsca_fast._native.vectors import dot_products
from hsca_fast.ranking.activity import DAY, HOUR, use_factor
from hsca_fast.ranking.relevance import blended_relevance
from hsca_fast.retrieval.access import ASSOCIATION_DAYS, MAX_PAST_QUERIES, AccessReader
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.store import Float32, RecordCache, RetrievalStore
from hsca_fast.vectors.embedder import Embedder, unit_rows
from hsca_fast.vectors.guard import ModelStamp

PINNED_POOL = 10
_EXPANSION_RESULTS = 5
_EXPANSION_CHARACTERS = 240
_WORD = re.compile(r"\w{2,}")


@dataclass(frozen=True, slots=True)
class Recalled:
    """A record that recall brought, and its state then.

    Attributes
    ----------
    cosine, lexical
        Scores of the arms, None where an arm did not say.
    via
        The term of a past query that led to it; "" for the query itself.
    """

    id: str
    cosine: float | None
    lexical: float | None
    via: str = ""
    references: int = 0
    superseded_by: str | None = None
    compacted_into: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as recall puts it."""

    text: str
    pool_size: int
    where: Mapping[str, Any] | None
    now: float
    profile: RetrievalProfile


class Evidence(Protocol):
    """Answers may differ from one day to the next; whoever wants to replay a retrieval keeps them."""

    def models(self) -> tuple[ModelStamp, ModelStamp | None]:
        """What made the store's vectors, and what embeds the query (None: nothing does)."""

    def terms(self, asked: Asked) -> list[str]:
        """Words that go with past queries like this one."""

    def recall(self, asked: Asked, terms: Sequence[str]) -> list[Recalled]:
        """Candidates, each once; those of the query itself in the order of the store's search."""

    def wing_counts(self) -> dict[str, int]:
        """Live records of each wing."""

    def use(self, ids: Sequence[str], asked: Asked) -> tuple[Sequence[float], Sequence[float]]:
        """How often each was returned, and how often together with the others."""

    def pinned(self, asked: Asked) -> list[tuple[str, float, float]]:
        """(id, pinning, cosine with the query), by pinning."""


class LiveEvidence:
    """Asks the store."""

    def __init__(
        self, store: RetrievalStore, embedder: QueryEmbedder | None, reader: AccessReader, records: RecordCache
    ) -> None:
        self._store = store
        self._records = records
        self._embedder = embedder
        self._reader = reader

    def models(self) -> tuple[ModelStamp, ModelStamp | None]:
        return self._store.model, None if self._embedder is None else self._embedder.stamp

    def terms(self, asked: Asked) -> list[str]:
        profile = asked.profile
        past = [
            each
            for each in self._reader.counts(asked.now, profile).past_queries(
                asked.now - profile.query_expansion_lookback_days * DAY
            )
            if each.text != asked.text
        ]
        if not past or self._embedder is None:
            return []
        vectors = np.concatenate([self._embedder(each.text) for each in past]).reshape(len(past), -1)
        cosines = dot_products(self._embedder(asked.text)[None], vectors)[0]
        ids = dict.fromkeys(
            each_id
            for each, cosine in zip(past, cosines.tolist(), strict=True)
            if cosine >= profile.query_expansion_similarity_threshold
            for each_id in each.ids[:_EXPANSION_RESULTS]
        )
        counts: Counter[str] = Counter()
        for record in self._records.get_many(list(ids)):
            head = [record.metadata.get(key, "") for key in ("title", "room", "wing")]
            words = _WORD.findall(" ".join([*map(str, head), record.text[:_EXPANSION_CHARACTERS]]).casefold())
            counts.update(words)
        known = set(_WORD.findall(asked.text.casefold()))
        ranked = sorted((word for word in counts if word not in known), key=lambda word: (-counts[word], word))
        return ranked[: profile.query_expansion_max_terms]

    def recall(self, asked: Asked, terms: Sequence[str]) -> list[Recalled]:
        found: dict[str, Recalled] = {}
        for term in ("", *terms):
            text = f"{asked.text} {term}" if term else asked.text
            for record_id, cosine, lexical in self._arms(text, asked.pool_size, asked.where):
                found.setdefault(record_id, Recalled(record_id, cosine, lexical, term))
        states = self._records.get_many(list(found))
        summaries = dict.fromkeys(state.compacted_into for state in states if state.compacted_into is not None)
        live = set(self._store.passing(list(summaries), asked.where)) if summaries else set()
        return [
            Recalled(
                each.id, each.cosine, each.lexical, each.via, state.reference_count, state.superseded_by,
                state.compacted_into if state.compacted_into in live else None,
            )
            for each, state in zip(found.values(), states, strict=True)
        ]  # fmt: skip

    def _arms(self, text: str, n: int, where: Mapping[str, Any] | None) -> list[tuple[str, float | None, float | None]]:
        stored, asking = self.models()
        own = self._store.embedder
        if own is not None and asking == ModelStamp.of(own):
            hits = self._store.query(text, n, where=where)
            return [(hit.id, hit.vector_score, hit.lexical_score) for hit in hits]
        # An embedder that is not the store's own asks with vectors, if they are of its width at all.
        cosines: dict[str, float | None] = {}
        if self._embedder is not None and self._embedder.stamp.dim == stored.dim:
            hits = self._store.query(self._embedder(text), n, where=where, lexical=False)
            cosines = {hit.id: hit.vector_score for hit in hits}
        words = {hit.id: hit.lexical_score for hit in self._store.query(text, n, where=where, vector=False)}
        found = [(each, cosines.get(each), words.get(each)) for each in dict.fromkeys([*cosines, *words])]
        relevance = blended_relevance([cosine or 0.0 for _, cosine, _ in found], [bm25 or 0.0 for _, _, bm25 in found])
        return [found[row] for row in np.argsort(-relevance, kind="stable").tolist()]

    def wing_counts(self) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for wing, n in self._store.value_counts("wing"):
            counts[str(wing)] += n
        return counts

    def use(self, ids: Sequence[str], asked: Asked) -> tuple[Sequence[float], Sequence[float]]:
        counts = self._reader.counts(asked.now, asked.profile)
        return (
            counts.retrievals(ids, asked.now - asked.profile.ltp_window_days * DAY).tolist(),
            counts.together(ids, asked.now - ASSOCIATION_DAYS * DAY).tolist(),
        )

    def pinned(self, asked: Asked) -> list[tuple[str, float, float]]:
        profile = asked.profile
        counts = self._reader.counts(asked.now, profile)
        since = asked.now - profile.ltp_window_days * DAY
        used = counts.most_used(since, PINNED_POOL)
        ltp = use_factor([n for _, n in used], max_boost=profile.ltp_max_boost).tolist()
        strength = {
            each: boost for (each, _), boost in zip(used, ltp, strict=True) if boost >= profile.pinned_ltp_threshold
        }
        if profile.pinned_include_tagged:
            last, new = self._store.last_sequence, asked.now - profile.pinned_tagged_window_hours * HOUR
            for record in self._store.records_at(range(max(last - PINNED_POOL, 0) + 1, last + 1)):
                if record.timestamp >= new:
                    strength.setdefault(record.id, 1.0)
        ids = self._store.passing(list(strength), asked.where)
        spread = counts.spread(ids, since)
        pinning = {each: strength[each] * (1.0 + 0.2 * min(max(n, 1), 10)) for each, n in zip(ids, spread, strict=True)}
        ranked = sorted(pinning, key=lambda each: (-pinning[each], each))
        return [
            (each, pinning[each], cosine) for each, cosine in zip(ranked, self._cosines(asked, ranked), strict=True)
        ]

    def _cosines(self, asked: Asked, ids: Sequence[str]) -> list[float]:
        if not ids or self._embedder is None or self._embedder.stamp.dim != self._store.model.dim:
            return [0.0] * len(ids)
        found: list[float] = dot_products(self._embedder(asked.text)[None], unit_rows(self._store.vectors(list(ids))))[
            0
        ].tolist()
        return found


class QueryEmbedder:
    """Unit vectors of queries; those of before are kept, since expansion looks at them again and again."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.stamp = ModelStamp.of(embedder)
        self._vectors: dict[str, Float32] = {}

    def __call__(self, text: str) -> Float32:
        vector = self._vectors.get(text)
        if vector is None:
            if len(self._vectors) >= 2 * MAX_PAST_QUERIES:
                self._vectors.clear()
            vector = self._vectors[text] = unit_rows(self._embedder.embed_query(text)[None])[0]
        return vector


class Notebook:
    """Evidence that is written down as it is given."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.written: dict[str, Any] = {}

    def models(self) -> tuple[ModelStamp, ModelStamp | None]:
        stored, asking = self._evidence.models()
        self.written["models"] = [list(astuple(stored)), None if asking is None else list(astuple(asking))]
        return stored, asking

    def terms(self, asked: Asked) -> list[str]:
        terms = self._evidence.terms(asked)
        self.written["terms"] = terms
        return terms

    def recall(self, asked: Asked, terms: Sequence[str]) -> list[Recalled]:
        recalled = self._evidence.recall(asked, terms)
        self.written["recalled"] = recalled
        return recalled

    def wing_counts(self) -> dict[str, int]:
        counts = self._evidence.wing_counts()
        self.written["wing_counts"] = counts
        return counts

    def use(self, ids: Sequence[str], asked: Asked) -> tuple[Sequence[float], Sequence[float]]:
        use = self._evidence.use(ids, asked)
        self.written["use"] = use
        return use

    def pinned(self, asked: Asked) -> list[tuple[str, float, float]]:
        pinned = self._evidence.pinned(asked)
        self.written["pinned"] = pinned
        return pinned


class RecordedEvidence:
    """Gives what was written down."""

    def __init__(self, written: Mapping[str, Any]) -> None:
        self._written = written

    def models(self) -> tuple[ModelStamp, ModelStamp | None]:
        stored, asking = self._written["models"]
        return ModelStamp(*stored), None if asking is None else ModelStamp(*asking)

    def terms(self, asked: Asked) -> list[str]:
        return list(self._written["terms"])

    def recall(self, asked: Asked, terms: Sequence[str]) -> list[Recalled]:
        return [Recalled(*values) for values in self._written["recalled"]]

    def wing_counts(self) -> dict[str, int]:
        return dict(self._written["wing_counts"])

    def use(self, ids: Sequence[str], asked: Asked) -> tuple[Sequence[float], Sequence[float]]:
        retrievals, together = self._written["use"]
        return retrievals, together

    def pinned(self, asked: Asked) -> list[tuple[str, float, float]]:
        return [(each, pinning, cosine) for each, pinning, cosine in self._written["pinned"]]
