"""Every byte of a store that says something, held against its checksum."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from hsca_fast.memory.catalog import Catalog, Tip, is_unfinished
from hsca_fast.memory.segments import Segment, SegmentReader, segment_numbers, segment_path
from hsca_fast.memory.store_files import CATALOG, HEAD, Manifest, StoreVersionError, read_head
from hsca_fast.vectors.storage import DamagedIndexError

_ROWS_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it was written.

    Attributes
    ----------
    file
        Where, within the store.
    what
        A sentence.
    derived
        It can be made again from the rest: no record is touched.
    """

    file: str
    what: str
    derived: bool = False

    def __str__(self) -> str:
        return f"{self.file}: {self.what}{' (derived)' if self.derived else ''}"


@dataclass(frozen=True, slots=True)
class Report:
    """What `verify` or `repair` found.

    Attributes
    ----------
    problems
        Empty for a store that is as it was written.
    n_records
        Records that were appended, deleted ones included.
    n_uncommitted_bytes
        Of vectors behind the last commit: of a writer that is at work or was stopped; harmless.
    repaired
        `repair` made the store anew.
    lost
        Sequence numbers of records that could not be saved; deleted, empty records stand in their place.
    vectors_lost
        Ids of records whose vector could not be saved and was not made again: only words find them.
    quarantine
        Where the damaged files are now.
    """

    path: str
    problems: tuple[Problem, ...]
    n_records: int = 0
    generation: int = 0
    n_uncommitted_bytes: int = 0
    repaired: bool = False
    lost: tuple[int, ...] = ()
    vectors_lost: tuple[str, ...] = ()
    quarantine: str | None = None

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return not self.problems


def verify_store(path: str | os.PathLike[str]) -> Report:
    """Check every checksum of a store, without opening it for writing; damage is reported, never raised.

    Raises
    ------
    FileNotFoundError
        There is no store.
    StoreVersionError
        A newer format.
    """
    folder = os.path.abspath(os.fspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{folder} is not a store: there is no such folder")
    try:
        manifest = Manifest.read(folder)
    except FileNotFoundError:
        if not os.path.exists(os.path.join(folder, CATALOG)):
            raise FileNotFoundError(f"{folder} is not a store: it has neither manifest nor catalog") from None
        return Report(folder, (Problem("manifest.json", "is missing"),))
    except DamagedIndexError as error:
        return Report(folder, (Problem("manifest.json", str(error)),))
    try:
        if is_unfinished(folder):
            return Report(folder, ())
        catalog = Catalog(folder, write=False)
    except (DamagedIndexError, OSError) as error:
        return Report(folder, (Problem(CATALOG, str(error)),))
    try:
        with catalog.transaction(write=False):
            return _verify(folder, manifest, catalog)
    except DamagedIndexError as error:
        return Report(folder, (Problem(CATALOG, str(error)),))
    finally:
        catalog.abandon()


def _verify(folder: str, manifest: Manifest, catalog: Catalog) -> Report:
    head = read_head(folder)  # before the tip: a writer may commit between the two
    try:
        catalog.check(manifest.store_id, manifest.model)
        tip = catalog.tip()
    except StoreVersionError:
        raise
    except DamagedIndexError as error:
        return Report(folder, (Problem(CATALOG, str(error)),))
    problems = [*_catalog_problems(folder, catalog, tip, head)]
    segments = SegmentReader(folder, manifest.model.dim)
    uncommitted = 0
    try:
        segments.extend(catalog.blocks(0, tip.last_sequence))
    except DamagedIndexError as error:
        problems.append(Problem(CATALOG, str(error)))
    else:
        problems += _segment_problems(segments)
        uncommitted = _uncommitted(folder, segments.segments, manifest.model.dim)
    if not any(problem.file == CATALOG for problem in problems):
        problems += _lexical_problems(catalog, tip)
    return Report(folder, tuple(problems), tip.last_sequence, tip.generation, uncommitted)


def _catalog_problems(folder: str, catalog: Catalog, tip: Tip, head: tuple[int, int] | None) -> Iterator[Problem]:
    for what in catalog.integrity():
        yield Problem(CATALOG, what)
    if head is None and os.path.exists(os.path.join(folder, HEAD)):
        yield Problem(HEAD, "is damaged", derived=True)
    if head is not None and head[0] > tip.generation:
        yield Problem(CATALOG, f"{head[0] - tip.generation} commits are missing, up to record {head[1]}")
    for after in range(0, tip.last_sequence, _ROWS_AT_ONCE):
        try:
            catalog.rows(after, min(tip.last_sequence, after + _ROWS_AT_ONCE))
        except DamagedIndexError as error:
            yield Problem(CATALOG, str(error))
    for after in range(0, tip.n_accesses, _ROWS_AT_ONCE):
        try:
            catalog.accesses(after, min(tip.n_accesses, after + _ROWS_AT_ONCE))
        except DamagedIndexError as error:
            yield Problem(CATALOG, str(error))
    try:
        catalog.check_given_ids(tip)
        catalog.summaries(tip)
        if catalog.states_digest() != tip.states_digest:
            yield Problem(CATALOG, "states of records are missing")
    except DamagedIndexError as error:
        yield Problem(CATALOG, str(error))
    for what, n in catalog.beyond(tip):
        yield Problem(CATALOG, f"{n} {what} behind the tip")


def _segment_problems(segments: SegmentReader) -> Iterator[Problem]:
    for segment in segments.segments:
        name = os.path.basename(segment.path)
        try:
            for block in segment.check_all():
                yield Problem(name, f"the vectors of records {block.first} to {block.first + block.n - 1} are damaged")
        except DamagedIndexError as error:
            yield Problem(name, str(error))


def _uncommitted(folder: str, segments: list[Segment], dim: int) -> int:
    committed = {segment.number: segment.n * dim * 4 for segment in segments}
    return sum(
        max(0, os.path.getsize(segment_path(folder, number)) - committed.get(number, 0))
        for number in segment_numbers(folder)
    )


def _lexical_problems(catalog: Catalog, tip: Tip) -> Iterator[Problem]:
    """On a copy, since even the check is a write to SQLite, and what is not indexed yet is a difference to it."""
    with tempfile.TemporaryDirectory(prefix="hsca-verify-") as folder:
        copy = sqlite3.connect(os.path.join(folder, "copy"), isolation_level=None)
        try:
            catalog.copy_to(copy)
            copy.execute("PRAGMA synchronous = OFF")
            copy.execute(
                "INSERT INTO lexical (rowid, text) SELECT sequence, text FROM records WHERE sequence > ?",
                (tip.indexed,),
            )
            copy.execute("INSERT INTO lexical (lexical, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            yield Problem(CATALOG, f"the full-text index is damaged ({error})", derived=True)
        finally:
            copy.close()
