"""Replay packets: a retrieval with everything it learned from outside, in plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

from hsca_fast.fields import finite
from hsca_fast.memory.records import checked_text
from hsca_fast.retrieval.evidence import Notebook
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.run import Run
from hsca_fast.retrieval.scan import ScanReport
from hsca_fast.retrieval.store import RetrievalStore
from hsca_fast.vectors.arrays import as_count
from hsca_fast.vectors.guard import ModelStamp

VERSION = 2
_FIELDS = ("version", "store_id", "model", "query", "profile", "k", "max_tokens", "now", "evidence", "results")


class PacketError(ValueError):
    """A packet that cannot be replayed here."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that was checked."""

    query: str
    profile: RetrievalProfile
    k: int
    max_tokens: int | None
    now: float
    evidence: Mapping[str, Any]
    results: list[list[Any]]


def made_packet(
    run: Run, notebook: Notebook, store: RetrievalStore, generation: int, scan: ScanReport | None
) -> dict[str, Any]:
    """The packet of a run that is done."""
    written = dict(notebook.written)
    if "recalled" in written:
        written["recalled"] = [list(astuple(each)) for each in written["recalled"]]
    if "pinned" in written:
        written["pinned"] = [list(each) for each in written["pinned"]]
    if "use" in written:
        written["use"] = [list(column) for column in written["use"]]
    rows = run.order.tolist()
    return {
        "version": VERSION,
        "store_id": store.store_id,
        "path": getattr(store, "path", None),
        "model": asdict(store.model),
        "generation": generation,
        "query": run.asked.text,
        "profile": run.profile.to_dict(),
        "k": run.k,
        "max_tokens": run.max_tokens,
        "now": run.asked.now,
        "evidence": written,
        "model_guard_result": run.trace.get("model_guard"),
        "wing_counts_at_query_time": run.trace.get("wing_counts", {}),
        "pagination_state": None if scan is None else scan.pagination_state(),
        "results": [[run.pool.ids[row], float(run.score[row])] for row in rows],
        "score_events": {run.pool.ids[row]: [asdict(event) for event in run.events(row)] for row in rows},
    }


def check_packet(packet: Mapping[str, Any], store: RetrievalStore) -> Packet:
    """The packet, if it is whole and of this store and model."""
    if not isinstance(packet, Mapping):
        raise PacketError(f"a replay packet is a dict, not {type(packet).__name__}")
    missing = [name for name in _FIELDS if name not in packet]
    if missing:
        raise PacketError(f"a replay packet has {', '.join(missing)}, which this one has not")
    if packet["version"] != VERSION:
        raise PacketError(f"the packet is of version {packet['version']!r}; this is version {VERSION}")
    if packet["store_id"] != store.store_id:
        raise PacketError(f"the packet is of store {packet['store_id']}, not of {store.store_id}")
    try:
        model = ModelStamp(**packet["model"])
        profile = RetrievalProfile(**packet["profile"])
        results = [[str(each), float(score)] for each, score in packet["results"]]
        limit = packet["max_tokens"]
        read = Packet(
            checked_text(packet["query"], "query"),
            profile,
            as_count(packet["k"], "k"),
            None if limit is None else as_count(limit, "max_tokens"),
            finite(packet["now"], "now"),
            _checked_evidence(packet["evidence"]),
            results,
        )
    except (TypeError, ValueError) as error:
        raise PacketError(f"the packet is damaged: {error}") from error
    if model != store.model:
        mine, other = (f"{stamp.name} ({stamp.dim}, {stamp.fingerprint})" for stamp in (store.model, model))
        raise PacketError(f"the packet is of model {other}, not of {mine}")
    return read


def _checked_evidence(evidence: object) -> Mapping[str, Any]:
    if not isinstance(evidence, Mapping) or not isinstance(evidence.get("recalled", []), list):
        raise TypeError("evidence must be a dict with a list of what was recalled")
    return evidence
