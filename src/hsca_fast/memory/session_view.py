"""One session of an index, as compaction wants it: its records are turns, its summaries are records with lineage."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hsca_fast.memory.catalog import State, Tip
from hsca_fast.memory.compaction import Lineage, SummaryRecord
from hsca_fast.memory.records import Record, id_bytes, incoming
from hsca_fast.memory.turns import Turn

if TYPE_CHECKING:
    from hsca_fast.memory.index import SemanticIndex

SUMMARY_ROLE = "summary"


class SessionView:
    """What `compact_session` reads and writes of one session of a `SemanticIndex`.

    A turn is a record whose metadata has the session; its id is the record's. A summary is a record of role "summary" whose
    metadata tells where it comes from. Every write is one commit.
    """

    def __init__(self, index: SemanticIndex, session_id: str) -> None:
        self._index = index
        self._session_id = session_id

    @property
    def session_id(self) -> str:
        """Part of the ids of summaries."""
        return self._session_id

    def session_turns(self) -> list[Turn]:
        """Every record of the session that is no summary and not deleted, in order."""
        return [
            Turn(record.text, record.role, record.id, record.timestamp, record.turn_id)
            for record in self._raw_records()
        ]

    def _raw_records(self) -> list[Record]:
        index, store = self._index, self._index._store
        with store.reading() as tip:
            of_summaries = {sequence for _, sequence in store.catalog.summaries(tip).values()}
        batches = index.iter_records(where={"session": self._session_id}, include_archived=True)
        return [record for batch in batches for record in batch if record.sequence not in of_summaries]

    def compacted_ids(self) -> Collection[str]:
        """Ids of turns that a summary stands for; one that was deleted stands for nothing."""
        marked = {record.id: record.compacted_into for record in self._raw_records() if record.compacted_into}
        summaries = self._index.get_many(sorted(set(marked.values())))
        there = {summary.id for summary in summaries if summary.status != "deleted"}
        return [id_ for id_, summary in marked.items() if summary in there]

    def turn_vectors(self, ids: Sequence[str]) -> npt.NDArray[np.float32]:
        """As they are stored."""
        return self._index.vectors(ids)

    def embed_summary(self, text: str) -> npt.NDArray[np.float32]:
        """By the index's embedder."""
        return self._index._check_embedder().embed_documents([text]).reshape(-1)

    def insert_summary(self, record: SummaryRecord) -> None:
        """Append a summary; one of the same id is replaced: it is marked as deleted, and superseded by the new one."""
        index, store = self._index, self._index._store
        with store.mutex:
            store.check_open(write=True)
            new = incoming(
                [record.text],
                turn_id=record.id,
                role=SUMMARY_ROLE,
                metadata={"session": self._session_id, "summary": _described(record)},
                timestamps=record.lineage.created_at,
                ids=None,
                now=0.0,
                this_turn="",
            )
            new = replace(new, n_tokens=[record.n_tokens])
            vectors = index._given_vectors(np.asarray(record.vector)[None], 1, "the summary's vector")

            def also(tip: Tip, first: int) -> dict[str, int]:
                before = store.catalog.summaries(tip).get(record.id)
                changed = store.catalog.put_summary(record.id, self._session_id, first)
                changes = {"summaries_digest": tip.summaries_digest ^ changed}
                if before is not None:
                    (row,) = store.catalog.rows_at([first])
                    states = self._replaced(before[1], row.id)
                    digest = store.catalog.put_states(states, tip.generation + 1)
                    changes["states_digest"] = tip.states_digest ^ digest
                return changes

            store.append(store.view.refresh(), new, [vectors], also)

    def _replaced(self, sequence: int, by: bytes) -> list[State]:
        """The old summary's state, and those of the turns that it stood for."""
        catalog = self._index._store.catalog
        (old,) = catalog.rows_at([sequence])
        state = catalog.states([sequence]).get(sequence, State(sequence))
        changed = [replace(state, status=2, superseded_by=by)]
        changed += [
            replace(each, compacted_into=by) for each in catalog.states_since(0) if each.compacted_into == old.id
        ]
        return changed

    def get_summary(self, summary_id: str) -> SummaryRecord | None:
        """A summary of this session, read from the disk."""
        index, store = self._index, self._index._store
        with store.reading() as tip:
            session, sequence = store.catalog.summaries(tip).get(summary_id, (None, 0))
            if session != self._session_id:
                return None
            (record,) = index._records([sequence])
            (vector,) = store.view.segments().take(np.array([sequence]))
        if record.status == "deleted":
            return None
        told = record.metadata["summary"]
        lineage = Lineage(**told["lineage"] | {"source_ids": tuple(told["lineage"]["source_ids"])})
        return SummaryRecord(
            summary_id, record.text, told["confidence"], told["decay_rate"], record.n_tokens, lineage, vector
        )

    def summary_ids(self) -> list[str]:
        """Of this session, in the order they were made."""
        store = self._index._store
        with store.reading() as tip:
            own = [
                (sequence, summary_id)
                for summary_id, (session, sequence) in store.catalog.summaries(tip).items()
                if session == self._session_id
            ]
            status = store.view.status()
            return [summary_id for sequence, summary_id in sorted(own) if status[sequence - 1] != 2]

    def mark_compacted(self, ids: Sequence[str], summary_id: str) -> None:
        """Say of all these turns, in one commit, that the summary stands for them."""
        index, store = self._index, self._index._store
        with store.writing() as tip:
            session, sequence = store.catalog.summaries(tip).get(summary_id, (None, 0))
            if session != self._session_id:
                raise KeyError(summary_id)
            (row,) = store.catalog.rows_at([sequence])
            store.change(
                tip, index._sequences(ids), lambda state: replace(state, compacted_into=id_bytes(row.id.hex()))
            )


def _described(record: SummaryRecord) -> dict[str, Any]:
    """What of a summary is not in a record's own fields."""
    lineage = asdict(record.lineage)
    return {
        "confidence": record.confidence,
        "decay_rate": record.decay_rate,
        "lineage": lineage | {"source_ids": list(record.lineage.source_ids)},
    }
