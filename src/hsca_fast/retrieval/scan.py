"""Phase 14: a pass over all records, in batches, that can stop anywhere and go on from there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast.fields import Fields
from hsca_fast.files import replacing
from hsca_fast.memory.columns import RecordColumns
from hsca_fast.ranking.activity import DAY, use_factor
from hsca_fast.retrieval.access import AccessCounts
from hsca_fast.retrieval.hooks import Hooks
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.store import RetrievalStore

Scores = npt.NDArray[np.float64]
Visit = Callable[[RecordColumns, Scores], None]


@dataclass(slots=True)
class ScanState:
    """How far scans of a store have come.

    Attributes
    ----------
    watermark
        Every record up to this sequence was scanned. It never passes a batch that failed.
    retrievals
        How often each record was returned, by sequence, as of the last scan; records that never were are not in it.

    Examples
    --------
    >>> ScanState.from_dict(ScanState(7, {3: 2}).to_dict())
    ScanState(watermark=7, retrievals={3: 2})
    """

    watermark: int = 0
    retrievals: dict[int, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"watermark": self.watermark, "retrievals": {str(key): n for key, n in self.retrievals.items()}}

    @classmethod
    def from_dict(cls, values: object) -> ScanState:
        """What `to_dict` gave."""
        read = Fields("ScanState", values, ("watermark", "retrievals"))
        counts = read.mapping("retrievals")
        return cls(read.count("watermark"), {int(key): int(n) for key, n in counts.items()})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Whole or not at all."""
        with replacing(path) as stream:
            stream.write(json.dumps(self.to_dict()).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ScanState:
        """What `save` wrote."""
        with open(path, "rb") as stream:
            return cls.from_dict(json.load(stream))


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What a scan saw.

    Attributes
    ----------
    total
        Live records of the store.
    scanned
        Records looked at now, archived and deleted ones too.
    first_sequence, last_sequence
        The stretch of them; equal numbers mean nothing.
    scan_depth_reached
        There is more, but `max_scan_depth` was scanned.
    ltp_updated
        Records whose count of retrievals is another than at the last scan, wherever they are.
    supersede_candidates
        Live records that a later one corrects, among those scanned.
    batches
        One entry each: index, offset, records, what changed and how long it took; `error` for one that failed.
    warnings
        Batches that failed, hooks that raised, a profile that is not there.
    """

    total: int
    scanned: int
    first_sequence: int
    last_sequence: int
    watermark: int
    scan_depth_reached: bool
    ltp_updated: int
    supersede_candidates: int
    batches: tuple[dict[str, Any], ...]
    elapsed_ms: float
    warnings: tuple[str, ...] = ()

    def timing(self) -> dict[str, Any]:
        """For `phase_timing_ms`."""
        times = [batch["ms"] for batch in self.batches]
        slowest = max(self.batches, key=lambda batch: float(batch["ms"]), default=None)
        return {
            "total_ms": self.elapsed_ms,
            "batches": len(times),
            "batch_timings_ms": times,
            "avg_batch_ms": sum(times) / len(times) if times else 0.0,
            "slowest_batch": slowest
            and {"index": slowest["batch_index"], "ms": slowest["ms"], "offset": slowest["offset"]},
        }

    def pagination_state(self) -> dict[str, Any]:
        """For a replay packet."""
        return {
            "total": self.total,
            "batches_processed": len(self.batches),
            "last_offset": self.last_sequence,
            "scan_depth_reached": self.scan_depth_reached,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"batches": list(self.batches)}


def scan_records(
    store: RetrievalStore,
    profile: RetrievalProfile,
    counts: AccessCounts,
    *,
    now: float,
    state: ScanState,
    hooks: Hooks,
    errors: list[str],
    visit: Visit | None = None,
) -> tuple[ScanReport, ScanState]:
    """Scan the records after the state's watermark; the state itself is left as it is, and a new one returned.

    `visit` is handed each batch and the ltp of its records. A batch that it fails on is reported, and the watermark stays before it.
    Memory is that of one batch and of the access log.
    """
    started = time.perf_counter()
    retrievals = _by_sequence(store, counts.all_used(now - profile.ltp_window_days * DAY))
    changed = np.array(
        sorted(
            sequence
            for sequence in retrievals.keys() | state.retrievals.keys()
            if retrievals.get(sequence) != state.retrievals.get(sequence)
        ),
        np.int64,
    )
    used = np.array(sorted(retrievals), np.int64)
    times_used = np.array([retrievals[sequence] for sequence in used.tolist()], np.float64)
    batch_size = profile.batch_size if profile.paginated_scoring else profile.max_scan_depth
    batches: list[dict[str, Any]] = []
    watermark, scanned, n_superseded, reached = state.watermark, 0, 0, False
    for number, columns in enumerate(store.iter_columns(batch_size, after=state.watermark)):
        left = profile.max_scan_depth - scanned
        if left <= 0:
            reached = True
            break
        if len(columns.sequence) > left:
            columns, reached = _cut(columns, left), True
        begin = time.perf_counter()
        first, last = int(columns.sequence[0]), int(columns.sequence[-1])
        n = np.zeros(len(columns.sequence))
        among = slice(*np.searchsorted(used, [first, last + 1]).tolist())
        n[used[among] - first] = times_used[among]
        error = None
        try:
            if visit is not None:
                visit(columns, use_factor(n, max_boost=profile.ltp_max_boost))
            if watermark + 1 == first:
                watermark = last
        except Exception as failure:  # one bad batch must not hide the others
            error = f"{type(failure).__name__}: {failure}"
        updated = int(np.diff(np.searchsorted(changed, [first, last + 1]))[0])
        superseded = int((columns.superseded & columns.live).sum())
        scanned += len(n)
        n_superseded += superseded
        entry: dict[str, Any] = {
            "batch_index": number,
            "offset": first - 1,
            "drawers_in_batch": len(n),
            "ltp_updated": updated,
            "ltp_skipped_unchanged": len(n) - updated,
            "supersede_candidates_found": superseded,
            "ms": (time.perf_counter() - begin) * 1e3,
        }
        if error is not None:
            entry["error"] = error
            errors.append(f"batch {number} at offset {first - 1} failed: {error}")
        batches.append(entry)
        if hooks.wanted("post_batch"):
            context = {"batch_index": number, "offset": first - 1, "batch_size": len(n), "ltp_updates": updated}
            hooks.fire("post_batch", context.copy, errors)
        if reached:
            break
    report = ScanReport(
        total=store.count(),
        scanned=scanned,
        first_sequence=state.watermark,
        last_sequence=state.watermark + scanned,
        watermark=watermark,
        scan_depth_reached=reached,
        ltp_updated=len(changed),
        supersede_candidates=n_superseded,
        batches=tuple(batches),
        elapsed_ms=(time.perf_counter() - started) * 1e3,
        warnings=tuple(errors),
    )
    return report, ScanState(watermark, retrievals)


def _by_sequence(store: RetrievalStore, counts: dict[str, int]) -> dict[int, int]:
    ids = list(counts)
    found: dict[int, int] = {}
    for begin in range(0, len(ids), 1000):
        part = ids[begin : begin + 1000]
        found |= {record.sequence: counts[record.id] for record in store.get_many(part)}
    return found


def _cut(columns: RecordColumns, n: int) -> RecordColumns:
    return RecordColumns(*(getattr(columns, name)[:n] for name in RecordColumns.__slots__))
