"""The protocol of a retrieval's store over plain lists: what anybody else's store would have to do."""

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hsca_fast.memory.columns import RecordColumns
from hsca_fast.vectors.embedder import unit_rows
from hsca_fast.vectors.guard import ModelStamp


@dataclass(frozen=True)
class MemoryRecord:
    id: str
    sequence: int
    text: str
    timestamp: float
    metadata: dict[str, Any] = field(default_factory=dict)
    role: str = ""
    status: str = "live"
    reference_count: int = 0
    last_access: float | None = None
    superseded_by: str | None = None
    compacted_into: str | None = None


@dataclass(frozen=True)
class MemoryHit:
    id: str
    score: float
    vector_score: float | None
    lexical_score: float | None


class MemoryIndex:
    store_id = "in memory"
    mode = "a"

    def __init__(self, embedder, records, vectors=None):
        self.embedder = embedder
        self.model = ModelStamp.of(embedder)
        self.generation = 0
        self.records = {record.id: record for record in records}
        self.rows = {record.id: row for row, record in enumerate(records)}
        texts = [record.text for record in records]
        self.matrix = unit_rows(embedder.embed_documents(texts) if vectors is None else vectors)
        self.words = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
        self.log = []

    @property
    def last_sequence(self):
        return len(self.rows)

    def _lexical(self, query):
        asked = set(re.findall(r"\w+", query.lower()))
        holders = Counter(word for words in self.words for word in asked & words.keys())
        n = len(self.words)
        return [sum(math.log(1 + n / holders[word]) for word in asked & words.keys()) for words in self.words]

    def _passes(self, record, where):
        return record.status == "live" and all(record.metadata.get(key) == v for key, v in (where or {}).items())

    def passing(self, ids, where=None):
        return [each for each in ids if self._passes(self.records[each], where)]

    def query(self, query, k, *, where=None, lexical=True, vector=True):
        vectors = unit_rows(np.asarray(self.embedder.embed_query(query) if isinstance(query, str) else query)[None])
        cosines = (self.matrix @ vectors[0]).tolist()
        words = self._lexical(query) if lexical and isinstance(query, str) else [0.0] * len(cosines)
        live = [
            (record_id, row) for record_id, row in self.rows.items() if self._passes(self.records[record_id], where)
        ]
        scored = [
            MemoryHit(i, cosines[r] * vector + words[r] / 10, cosines[r] if vector else None, words[r] or None)
            for i, r in live
        ]
        return sorted(scored, key=lambda hit: (-hit.score, hit.id))[:k]

    def get_many(self, ids):
        return [self.records[each] for each in ids]

    def records_at(self, sequences):
        by_sequence = list(self.records.values())
        return [by_sequence[sequence - 1] for sequence in sequences]

    def vectors(self, ids):
        return self.matrix[[self.rows[each] for each in ids]]

    def count(self, where=None):
        return sum(self._passes(record, where) for record in self.records.values())

    def value_counts(self, name):
        values = [record.metadata.get(name) for record in self.records.values() if record.status == "live"]
        return list(Counter(value for value in values if value is not None).items())

    def iter_columns(self, batch_size=5000, *, after=0):
        records = list(self.records.values())[after:]
        for begin in range(0, len(records), batch_size):
            part = records[begin : begin + batch_size]
            used = [math.nan if record.last_access is None else record.last_access for record in part]
            yield RecordColumns(
                np.array([record.sequence for record in part]),
                np.array([record.status == "live" for record in part]),
                np.array([record.timestamp for record in part]),
                np.array(used),
                np.array([record.superseded_by is not None for record in part]),
                np.array([record.compacted_into is not None for record in part]),
            )

    @property
    def n_accesses(self):
        return len(self.log)

    def access_log(self, since=None, *, after=0, before=None):
        return (row for row in self.log[after:before] if since is None or row[0] >= since)

    def touch(self, ids, *, query="", session="", at=None):
        self.log.append((at, query, session, list(ids)))
        self._change(ids, last_access=at)

    def archive(self, ids, *, reason):
        self._change(ids, status="archived")

    def restore(self, ids):
        self._change(ids, status="live")

    def _change(self, ids, **fields):
        self.generation += 1
        self.records |= {each: replace(self.records[each], **fields) for each in ids}
