"""A damaged store made anew from whatever of it is whole.

Only records, states, accesses, summaries and vectors are read, each against its checksum; nothing that is derived is
opened. The new store is built beside the old one and takes its name; the old one is kept.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import numpy as np

from hsca_fast.files import sync_directory
from hsca_fast.memory.catalog import Access, Catalog, Row, State, Tip
from hsca_fast.memory.segments import BLOCK_ROWS, Block, Float32, SegmentWriter, segment_path
from hsca_fast.memory.store_files import MANIFEST, REPAIRED, Manifest, WriterLock, read_head
from hsca_fast.memory.verification import Report, verify_store
from hsca_fast.vectors.embedder import Embedder
from hsca_fast.vectors.guard import ModelStamp, check_model
from hsca_fast.vectors.storage import DamagedIndexError

T = TypeVar("T")
_PART = 4096


def repair(path: str | os.PathLike[str], *, embedder: Embedder | None = None, timeout: float = 0.0) -> Report:
    """Make a damaged store whole again from its own records; one without damage is left as it is.

    Records keep their ids and sequence numbers. Where one is lost, a deleted, empty one stands in its place.

    Parameters
    ----------
    embedder
        The store's model, to make vectors again that are damaged. Without it they become zero, and the report names them.

    Returns
    -------
    Report
        `repaired` says whether anything was done; `lost`, `vectors_lost` and `quarantine` tell the rest.
    """
    folder = os.path.abspath(os.fspath(path))
    beside = folder + REPAIRED
    if not os.path.isdir(folder) and os.path.exists(os.path.join(beside, MANIFEST)):
        os.rename(beside, folder)  # a repair was stopped between its last two steps
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{folder} is not a store: there is no such folder")
    lock = WriterLock(folder, timeout)
    try:
        found = verify_store(folder)
        if found.ok:
            return found
        shutil.rmtree(beside, ignore_errors=True)
        os.mkdir(beside)
        try:
            report = _rebuild(folder, beside, embedder, found)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        quarantine = _free_name(folder + ".damaged")
        os.rename(folder, quarantine)
        os.rename(beside, folder)
        sync_directory(os.path.dirname(folder))
        return replace(report, quarantine=quarantine)
    finally:
        lock.release()


def _free_name(stem: str) -> str:
    number = 1
    while os.path.exists(f"{stem}-{number}"):
        number += 1
    return f"{stem}-{number}"


def _rebuild(folder: str, beside: str, embedder: Embedder | None, found: Report) -> Report:
    source = Catalog(folder, write=False)
    target: Catalog | None = None
    try:
        tip = _readable_tip(source)
        manifest = _readable_manifest(folder, tip)
        if embedder is not None:
            check_model(manifest.model, ModelStamp.of(embedder), strict=True)
        target = Catalog(beside, write=True)
        target.create(manifest.store_id, manifest.model)
        last, lost = _copy_records(source, target, _last_sequence(source, tip, folder))
        vectors_lost = _copy_vectors(folder, beside, source, target, last, manifest.model.dim, embedder)
        _copy_the_rest(source, target, tip, lost, last)
        target.index_text(target.tip())
        target.close()
        target = None
    finally:
        source.abandon()
        if target is not None:
            target.abandon()
    manifest.write(beside)  # last: what has one is complete
    return replace(
        found, n_records=last, generation=tip.generation + 1 if tip else 1, repaired=True, lost=tuple(lost),
        vectors_lost=tuple(vectors_lost),
    )  # fmt: skip


def _readable_tip(source: Catalog) -> Tip | None:
    try:
        return source.tip()
    except DamagedIndexError:
        return None


def _readable_manifest(folder: str, tip: Tip | None) -> Manifest:
    try:
        return Manifest.read(folder)
    except (DamagedIndexError, FileNotFoundError):
        if tip is None:
            raise DamagedIndexError(
                f"{folder}: manifest and catalog are both damaged; nothing says what its vectors are"
            ) from None
        return Manifest(tip.store_id, ModelStamp(**json.loads(tip.model)), 0.0)


def _last_sequence(source: Catalog, tip: Tip | None, folder: str) -> int:
    head = read_head(folder)
    known = [tip.last_sequence if tip else 0, head[1] if head else 0]
    with suppress(DamagedIndexError):
        known.append(source.greatest_sequence())
    return max(known)


def whole_parts(
    read: Callable[[int, int], Sequence[T]], after: int, last: int
) -> Iterator[tuple[int, Sequence[T] | None]]:
    """(after, items) of each part of (after, last] that can be read; single items that cannot have None."""
    try:
        yield after, read(after, last)
    except (DamagedIndexError, OSError, ValueError, TypeError):
        if last - after <= 1:
            yield after, None
            return
        middle = (after + last) // 2
        yield from whole_parts(read, after, middle)
        yield from whole_parts(read, middle, last)


def _copy_records(source: Catalog, target: Catalog, last: int) -> tuple[int, list[int]]:
    """Records with their sequence numbers; behind the last whole one nothing is made up."""
    lost: list[int] = []
    waiting: list[int] = []  # lost, unless nothing follows
    stored = 0
    digest = 0
    for begin in range(0, last, _PART):
        for after, rows in whole_parts(source.rows, begin, min(last, begin + _PART)):
            if rows is None:
                waiting.append(after + 1)
                continue
            fillers = [_filler(sequence) for sequence in waiting]
            lost += waiting
            waiting = []
            both = [*fillers, *rows]
            given = {row.id: row.sequence for row in both if int.from_bytes(row.id[:8]) != row.sequence}
            with target.transaction():
                digest ^= target.insert(both, [], given)
            stored = both[-1].sequence if both else stored
    with target.transaction():
        target.advance(target.tip(), last_sequence=stored, given_digest=digest)
    return stored, lost + waiting


def _filler(sequence: int) -> Row:
    return Row(sequence, sequence.to_bytes(8) + os.urandom(8), "", "", 0, "", 0.0, "{}", 0)


def _copy_vectors(
    folder: str, beside: str, source: Catalog, target: Catalog, last: int, dim: int, embedder: Embedder | None
) -> list[str]:
    known: list[Block] = []
    for begin in range(0, last, _PART):
        for _, blocks in whole_parts(source.whole_blocks, begin, min(last, begin + _PART)):
            known += blocks or []
    known.sort(key=lambda block: block.first)
    have = np.zeros(last + 1, bool)
    vectors_lost: list[str] = []

    def pieces() -> Iterator[Float32]:
        for begin in range(0, last, BLOCK_ROWS):
            stop = min(last, begin + BLOCK_ROWS)
            rows = np.zeros((stop - begin, dim), np.float32)
            at = max(0, bisect_right(known, begin + 1, key=lambda block: block.first) - 1)
            end = bisect_right(known, stop, key=lambda block: block.first)
            for block in known[at:end]:
                low, high = max(block.first, begin + 1), min(block.first + block.n, stop + 1)
                if low < high and (whole := _block_rows(folder, block, dim)) is not None:
                    rows[low - begin - 1 : high - begin - 1] = whole[low - block.first : high - block.first]
                    have[low:high] = True
            missing = [row for row in target.rows(begin, stop) if not have[row.sequence] and row.text]
            if missing and embedder is not None:
                made = embedder.embed_documents([row.text for row in missing])
                rows[[row.sequence - begin - 1 for row in missing]] = made
            else:
                vectors_lost.extend(row.id.hex() for row in missing)
            yield rows

    writer = SegmentWriter(beside, dim)
    try:
        blocks = writer.append(1, 0, 1, pieces()) if last else []
    finally:
        writer.close()
    if blocks:
        with target.transaction():
            target.insert([], blocks, {})
            in_last = sum(block.n for block in blocks if block.segment == blocks[-1].segment)
            target.advance(target.tip(), segment=blocks[-1].segment, segment_rows=in_last)
    return vectors_lost


def _block_rows(folder: str, block: Block, dim: int) -> Float32 | None:
    """The vectors of a block, None if they are not those that were committed."""
    try:
        with open(segment_path(folder, block.segment), "rb") as stream:
            stream.seek(block.start * dim * 4)
            data = stream.read(block.n * dim * 4)
    except OSError:
        return None
    if len(data) != block.n * dim * 4 or zlib.crc32(data) != block.crc:
        return None
    return np.frombuffer(data, "<f4").reshape(block.n, dim)


def _copy_the_rest(source: Catalog, target: Catalog, tip: Tip | None, lost: list[int], last: int) -> None:
    """States, accesses and names of summaries that are whole, and marks on the records that are not."""
    gone = {sequence for sequence in lost if sequence <= last}
    n_accesses = 0
    for begin in range(0, last, _PART):
        found: list[State] = []
        for _, states in whole_parts(source.states_between, begin, min(last, begin + _PART)):
            found += states or []
        kept = [state for state in found if state.sequence not in gone]
        kept += [State(s, status=2, reason="lost") for s in gone if begin < s <= begin + _PART]
        if kept:
            with target.transaction():
                now = target.tip()
                digest = target.put_states(kept, now.generation + 1)
                target.advance(now, states_digest=now.states_digest ^ digest)
    known = tip.n_accesses if tip else source.greatest_access()
    for begin in range(0, known, _PART):
        for _, accesses in whole_parts(source.accesses, begin, min(known, begin + _PART)):
            with target.transaction():
                for access in accesses or []:
                    sequences = tuple(s for s in access.sequences if s <= last)
                    n_accesses += 1
                    target.log_access(n_accesses, Access(access.at, access.query, access.session, sequences))
    with target.transaction():
        now = target.tip()
        digest = now.summaries_digest
        for summary_id, session, sequence in source.whole_summaries():
            if sequence <= last and sequence not in gone:
                digest ^= target.put_summary(summary_id, session, sequence)
        generation = max(now.generation, tip.generation if tip else 0)
        target.advance(replace(now, generation=generation), n_accesses=n_accesses, summaries_digest=digest)
