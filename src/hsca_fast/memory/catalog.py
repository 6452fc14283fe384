"""The catalog of a store: SQLite in WAL mode, every row with a checksum of its own.

    records     what was appended, in order; never changed          states      what became of a record since
    blocks      which rows of which segment hold which vectors      accesses    which records were used, when, for what
    given_ids   where a record is whose id the caller chose         summaries   which record is the summary of that name
    tip         how far all of them go                              lexical     full-text index, derived from records

A row that vanishes is noticed as well as one that changes: records, blocks and accesses are numbered without gaps, and the
tip holds the exclusive or of the checksums of all rows of the other three.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NamedTuple

from hsca_fast.memory.segments import Block, segment_numbers
from hsca_fast.memory.store_files import CATALOG, FORMAT_VERSION, HEAD, StoreLocked, StoreVersionError
from hsca_fast.vectors.guard import ModelStamp
from hsca_fast.vectors.storage import DamagedIndexError

Status = Literal["live", "archived", "deleted"]
STATUSES: tuple[Status, ...] = ("live", "archived", "deleted")
APPLICATION_ID = 0x48534341  # "HSCA"
_INDEXED_AT_ONCE = 20_000
_PAGE_CACHE_KIB = 16 << 10
_CHECKPOINT_PAGES = 4000
_MOST_ENDS = 10_000

SCHEMA = (
    "CREATE TABLE records (sequence INTEGER PRIMARY KEY, id BLOB NOT NULL, text TEXT NOT NULL, turn_id TEXT NOT NULL,"
    " sentence_id INTEGER NOT NULL, role TEXT NOT NULL, timestamp REAL NOT NULL, metadata TEXT NOT NULL,"
    " n_tokens INTEGER NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE blocks (first INTEGER PRIMARY KEY, n INTEGER NOT NULL, segment INTEGER NOT NULL,"
    " start INTEGER NOT NULL, vectors_crc INTEGER NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE states (sequence INTEGER PRIMARY KEY, reference_count INTEGER NOT NULL, last_access REAL,"
    " status INTEGER NOT NULL, reason TEXT NOT NULL, superseded_by BLOB, compacted_into BLOB,"
    " generation INTEGER NOT NULL, crc INTEGER NOT NULL)",
    "CREATE INDEX states_by_generation ON states (generation)",
    "CREATE TABLE accesses (number INTEGER PRIMARY KEY, at REAL NOT NULL, query TEXT NOT NULL, session TEXT NOT NULL,"
    " sequences BLOB NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE given_ids (id BLOB PRIMARY KEY, sequence INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE summaries (summary_id TEXT PRIMARY KEY, session TEXT NOT NULL, sequence INTEGER NOT NULL,"
    " crc INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE tip (one INTEGER PRIMARY KEY CHECK (one = 1), store_id TEXT NOT NULL, model TEXT NOT NULL,"
    " generation INTEGER NOT NULL,"
    " layout INTEGER NOT NULL, last_sequence INTEGER NOT NULL, segment INTEGER NOT NULL, segment_rows INTEGER NOT NULL,"
    " n_accesses INTEGER NOT NULL, states_digest INTEGER NOT NULL, given_digest INTEGER NOT NULL,"
    " summaries_digest INTEGER NOT NULL, indexed INTEGER NOT NULL, crc INTEGER NOT NULL)",
    "CREATE VIRTUAL TABLE lexical USING fts5(text, content='records', content_rowid='sequence',"
    " tokenize='porter unicode61 remove_diacritics 2')",
)


@dataclass(frozen=True, slots=True)
class Tip:
    """How far a store goes.

    Attributes
    ----------
    generation
        Grows with every commit.
    layout
        Grows when vectors move to other segments.
    model
        What made the vectors, as JSON, so that a manifest can be made again.
    segment, segment_rows
        The segment that is written to, and its committed rows.
    indexed
        Records up to this one are in the full-text index.
    """

    store_id: str
    model: str
    generation: int = 0
    layout: int = 0
    last_sequence: int = 0
    segment: int = 1
    segment_rows: int = 0
    n_accesses: int = 0
    states_digest: int = 0
    given_digest: int = 0
    summaries_digest: int = 0
    indexed: int = 0


class Row(NamedTuple):
    """A record as it was appended."""

    sequence: int
    id: bytes
    text: str
    turn_id: str
    sentence_id: int
    role: str
    timestamp: float
    metadata: str
    n_tokens: int


_ROW_NUMBERS = struct.Struct("<qqqdIIII")
_Ends = dict[tuple[str, str, str], tuple[bytes, int, int, int]]


def _row_crc(row: Row, ends: _Ends) -> int:
    """Of every field; `ends` keeps the bytes of those that rows of one batch mostly share."""
    sequence, id_, text, turn_id, sentence_id, role, timestamp, metadata, n_tokens = row
    shared = turn_id, role, metadata
    end = ends.get(shared)
    if end is None:
        if len(ends) > _MOST_ENDS:
            ends.clear()
        parts = [part.encode() for part in shared]
        end = ends[shared] = b"".join(parts), len(parts[0]), len(parts[1]), len(parts[2])
    data = text.encode()
    numbers = _ROW_NUMBERS.pack(sequence, sentence_id, n_tokens, timestamp, len(data), end[1], end[2], end[3])
    return zlib.crc32(b"".join((numbers, id_, data, end[0])))


@dataclass(frozen=True, slots=True)
class State:
    """What became of a record; one without a row is live and was never used."""

    sequence: int
    reference_count: int = 0
    last_access: float | None = None
    status: int = 0
    reason: str = ""
    superseded_by: bytes | None = None
    compacted_into: bytes | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """One use of some records, oldest first in the log."""

    at: float
    query: str
    session: str
    sequences: tuple[int, ...]


_TIP_FIELDS = tuple(field.name for field in fields(Tip))
_STATE_FIELDS = tuple(field.name for field in fields(State))
_ROW_COLUMNS = ", ".join(Row._fields)


def checksum(*values: object) -> int:
    """Of a row with few, small values."""
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


@contextmanager
def sqlite_errors(path: str) -> Iterator[None]:
    """SQLite's errors as what they mean to a store."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # ours
    except UnicodeDecodeError as error:  # of SQLite's own message, which quotes what it found
        raise DamagedIndexError(f"{path} is damaged; see `hsca index repair`") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path) from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise OSError(errno.EROFS, f"cannot be written: {error}", path) from error
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
            raise OSError(errno.EIO, str(error), path) from error
        if code == sqlite3.SQLITE_BUSY:
            raise StoreLocked(path, None, None) from error
        if code == sqlite3.SQLITE_INTERRUPT:
            raise KeyboardInterrupt from error
        raise DamagedIndexError(f"{path} is damaged ({error}); see `hsca index repair`") from error


class Catalog:
    """A connection to the catalog; one that cannot write cannot checkpoint either."""

    def __init__(self, folder: str, *, write: bool) -> None:
        self.path = os.path.join(folder, CATALOG)
        self.write = write
        if not write and not os.path.exists(self.path):
            raise DamagedIndexError(f"{self.path} is missing")
        with sqlite_errors(self.path):
            self._connection = self._connect(write)
        self.in_transaction = False

    def _connect(self, write: bool) -> sqlite3.Connection:
        uri = "file:" + self.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        if write:
            connection = _open(uri + "?mode=rwc")
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            except BaseException:
                connection.close()
                raise
            return connection
        connection = _open(uri + "?mode=ro")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            # A folder that cannot be written has no place for SQLite's shared memory; without a log none is needed.
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            if os.path.exists(self.path + "-wal") and os.path.getsize(self.path + "-wal"):
                raise
            return _open(uri + "?mode=ro&immutable=1")
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def is_blank(self) -> bool:
        """It has no tables."""
        return not self._one("SELECT count(*) FROM sqlite_master")[0]

    def create(self, store_id: str, model: ModelStamp) -> None:
        """A catalog without records, unless there is one."""
        with self.transaction():
            if not self.is_blank:
                return
            self._run(f"PRAGMA application_id = {APPLICATION_ID}")
            self._run(f"PRAGMA user_version = {FORMAT_VERSION}")
            for statement in SCHEMA:
                self._run(statement)
            self._write_tip(Tip(store_id, json.dumps(asdict(model))))

    def check(self, store_id: str, model: ModelStamp) -> None:
        """Refuses a catalog that is not this store's."""
        (application,), (version,) = self._one("PRAGMA application_id"), self._one("PRAGMA user_version")
        if application != APPLICATION_ID:
            raise DamagedIndexError(f"{self.path} is not the catalog of a store: damaged, or another's")
        if version != FORMAT_VERSION:
            raise StoreVersionError(f"{self.path}: format version {version}; this release reads {FORMAT_VERSION}")
        statements = self._all(
            "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND name NOT LIKE 'lexical_%' ORDER BY rowid"
        )
        if tuple(sql for (sql,) in statements) != SCHEMA:
            raise DamagedIndexError(f"{self.path}: its tables are not those of a store; see `hsca index repair`")
        tip = self.tip()
        if (tip.store_id, tip.model) != (store_id, json.dumps(asdict(model))):
            raise DamagedIndexError(
                f"{self.path} belongs to the store {tip.store_id} ({tip.model}); the manifest says {store_id} ({model})"
            )

    def close(self) -> None:
        with sqlite_errors(self.path):
            self._connection.close()

    def abandon(self) -> None:
        """Closes whatever state it is in."""
        with suppress(sqlite3.Error):
            self._connection.close()

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[None]:
        """All of the block or nothing; a reading one sees one state of the store. Inside another, part of it."""
        if self.in_transaction:
            yield
            return
        with sqlite_errors(self.path):
            if self._connection.in_transaction:  # an interrupt came between BEGIN and here
                self._connection.execute("ROLLBACK")
            self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        self.in_transaction = True
        try:
            yield
            with sqlite_errors(self.path):
                self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            raise
        finally:
            self.in_transaction = False

    def _run(self, sql: str, values: Sequence[Any] = ()) -> int:
        with sqlite_errors(self.path):
            return self._connection.execute(sql, values).rowcount

    def _one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        with sqlite_errors(self.path):
            return self._connection.execute(sql, values).fetchone()

    def _all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with sqlite_errors(self.path):
            return self._connection.execute(sql, values).fetchall()

    def _damaged(self, what: str) -> DamagedIndexError:
        return DamagedIndexError(f"{self.path}: {what} is damaged; see `hsca index repair`")

    # ---- tip

    def tip(self) -> Tip:
        rows = self._all(f"SELECT one, {', '.join(_TIP_FIELDS)}, crc FROM tip")
        if len(rows) == 1:
            one, *values, crc = rows[0]
            if one == 1 and checksum(*values) == crc:
                return Tip(*values)
        raise self._damaged("the tip")

    def advance(self, tip: Tip, **changes: int) -> Tip:
        """The next tip, written."""
        after = replace(tip, generation=tip.generation + 1, **changes)  # type: ignore[arg-type]
        self._write_tip(after)
        return after

    def _write_tip(self, tip: Tip) -> None:
        values = tuple(getattr(tip, name) for name in _TIP_FIELDS)
        marks = ", ".join("?" * (len(values) + 2))
        self._run(f"INSERT OR REPLACE INTO tip VALUES ({marks})", (1, *values, checksum(*values)))

    # ---- records

    def insert(self, rows: Iterable[Row], blocks: Sequence[Block], given: Mapping[bytes, int]) -> int:
        """Appends; returns what the digest of given ids changes by."""
        ends: _Ends = {}
        with sqlite_errors(self.path):
            self._connection.executemany(
                "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                ((*row, _row_crc(row, ends)) for row in rows),
            )
            self._insert_blocks(blocks)
            self._connection.executemany(
                "INSERT INTO given_ids VALUES (?, ?, ?)",
                ((id_, sequence, checksum(id_, sequence)) for id_, sequence in given.items()),
            )
        change = 0
        for item in given.items():
            change ^= checksum(*item)
        return change

    def _insert_blocks(self, blocks: Sequence[Block]) -> None:
        self._connection.executemany(
            "INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)",
            ((*values, checksum(*values)) for values in ((b.first, b.n, b.segment, b.start, b.crc) for b in blocks)),
        )

    def replace_blocks(self, blocks: Sequence[Block]) -> None:
        """Other entries for the same vectors."""
        with sqlite_errors(self.path):
            self._connection.execute("DELETE FROM blocks")
            self._insert_blocks(blocks)

    def blocks(self, after: int, last: int) -> list[Block]:
        """Those with rows in (after, last], without a gap."""
        found: list[Block] = []
        expected = after + 1
        for *values, crc in self._all(
            "SELECT * FROM blocks WHERE first > ? AND first <= ? ORDER BY first", (after, last)
        ):
            block = Block(*values)
            if checksum(*values) != crc or block.first != expected:
                raise self._damaged(f"the entry of the vectors from record {expected}")
            found.append(block)
            expected += block.n
        if expected != last + 1:
            raise self._damaged(f"the entry of the vectors from record {expected}")
        return found

    def rows(self, after: int, last: int) -> list[Row]:
        """Records with sequences in (after, last], every one of them."""
        found = self._all(
            f"SELECT {_ROW_COLUMNS}, crc FROM records WHERE sequence > ? AND sequence <= ? ORDER BY sequence",
            (after, last),
        )
        ends: _Ends = {}
        return [
            self._checked(values, after + 1 + i, ends)
            for i, values in enumerate(found + [None] * (last - after - len(found)))
        ]

    def timestamps(self, after: int, last: int) -> list[float]:
        """Of the records with sequences in (after, last], unchecked: whoever acts on one reads the record itself."""
        found = self._all(
            "SELECT timestamp FROM records WHERE sequence > ? AND sequence <= ? ORDER BY sequence", (after, last)
        )
        if len(found) != last - after:
            raise self._damaged(f"a record between {after + 1} and {last}")
        return [timestamp for (timestamp,) in found]

    def rows_at(self, sequences: Sequence[int]) -> list[Row]:
        """Records of these sequences, in the order asked for."""
        found = {}
        for begin in range(0, len(sequences), 500):
            part = sequences[begin : begin + 500]
            marks = ", ".join("?" * len(part))
            for values in self._all(f"SELECT {_ROW_COLUMNS}, crc FROM records WHERE sequence IN ({marks})", part):
                found[values[0]] = values
        ends: _Ends = {}
        return [self._checked(found.get(sequence), sequence, ends) for sequence in sequences]

    def _checked(self, values: Any, sequence: int, ends: _Ends) -> Row:
        try:
            row = Row._make(values[:-1])
            if row.sequence == sequence and _row_crc(row, ends) == values[-1]:
                return row
        except (TypeError, ValueError, AttributeError, struct.error):
            pass
        raise self._damaged(f"record {sequence}")

    def find(self, ids: Sequence[bytes], last: int) -> list[int | None]:
        """Sequences of ids, None for those that are not there. An id of ours begins with its sequence."""
        own = {id_: int.from_bytes(id_[:8]) for id_ in ids}
        own = {id_: sequence for id_, sequence in own.items() if 1 <= sequence <= last}
        found: dict[bytes, int] = {}
        for id_, sequence in own.items():
            row = self._one("SELECT id FROM records WHERE sequence = ?", (sequence,))
            if row is None:
                raise self._damaged(f"record {sequence}")
            if row[0] == id_:
                found[id_] = sequence
        for id_ in ids:
            if id_ not in found:
                row = self._one("SELECT sequence, crc FROM given_ids WHERE id = ?", (id_,))
                if row is not None:
                    if checksum(id_, row[0]) != row[1]:
                        raise self._damaged("the table of given ids")
                    found[id_] = row[0]
        return [found.get(id_) for id_ in ids]

    def check_given_ids(self, tip: Tip) -> None:
        digest = 0
        for *values, crc in self._each("SELECT id, sequence, crc FROM given_ids"):
            if checksum(*values) != crc:
                raise self._damaged("the table of given ids")
            digest ^= crc
        if digest != tip.given_digest:
            raise self._damaged("the table of given ids")

    def _each(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        with sqlite_errors(self.path):
            cursor = self._connection.execute(sql, values)
            while part := cursor.fetchmany(2000):
                yield from part

    # ---- states

    def states_since(self, generation: int) -> Iterator[State]:
        """States that changed in a later generation."""
        sql = f"SELECT {', '.join(_STATE_FIELDS)}, generation, crc FROM states"
        rows = self._each(sql) if generation <= 0 else self._each(sql + " WHERE generation > ?", (generation,))
        for *values, _, crc in rows:
            yield self._state(values, crc)

    def states_digest(self) -> int:
        digest = 0
        for state in self.states_since(0):
            digest ^= _state_crc(state)
        return digest

    def states(self, sequences: Sequence[int]) -> dict[int, State]:
        """States of these records, without those that have none."""
        found = {}
        for begin in range(0, len(sequences), 500):
            part = sequences[begin : begin + 500]
            marks = ", ".join("?" * len(part))
            sql = f"SELECT {', '.join(_STATE_FIELDS)}, crc FROM states WHERE sequence IN ({marks})"
            for *values, crc in self._all(sql, part):
                found[values[0]] = self._state(values, crc)
        return found

    def _state(self, values: Sequence[Any], crc: int) -> State:
        state = State(*values)
        if _state_crc(state) != crc:
            raise self._damaged(f"the state of record {values[0]}")
        return state

    def put_states(self, states: Sequence[State], generation: int) -> int:
        """Writes states; returns what their digest changes by."""
        before = self.states([state.sequence for state in states])
        change = 0
        with sqlite_errors(self.path):
            for state in states:
                crc = _state_crc(state)
                change ^= crc ^ (_state_crc(before[state.sequence]) if state.sequence in before else 0)
                self._connection.execute(
                    "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*(getattr(state, name) for name in _STATE_FIELDS), generation, crc),
                )
        return change

    # ---- accesses

    def log_access(self, number: int, access: Access) -> None:
        packed = struct.pack(f"<{len(access.sequences)}q", *access.sequences)
        values = (number, access.at, access.query, access.session, packed)
        self._run("INSERT INTO accesses VALUES (?, ?, ?, ?, ?, ?)", (*values, checksum(*values)))

    def accesses(self, after: int, last: int) -> list[Access]:
        """Uses with numbers in (after, last]."""
        found: list[Access] = []
        for number, at, query, session, packed, crc in self._all(
            "SELECT * FROM accesses WHERE number > ? AND number <= ? ORDER BY number", (after, last)
        ):
            if checksum(number, at, query, session, packed) != crc or number != after + len(found) + 1:
                raise self._damaged(f"access {after + len(found) + 1}")
            found.append(Access(at, query, session, struct.unpack(f"<{len(packed) // 8}q", packed)))
        if len(found) != last - after:
            raise self._damaged(f"access {after + len(found) + 1}")
        return found

    # ---- summaries

    def summaries(self, tip: Tip) -> dict[str, tuple[str, int]]:
        """Session and sequence by name, all of them."""
        found: dict[str, tuple[str, int]] = {}
        digest = 0
        for *values, crc in self._each("SELECT summary_id, session, sequence, crc FROM summaries"):
            if checksum(*values) != crc:
                raise self._damaged("the table of summaries")
            found[values[0]] = (values[1], values[2])
            digest ^= crc
        if digest != tip.summaries_digest:
            raise self._damaged("the table of summaries")
        return found

    def put_summary(self, summary_id: str, session: str, sequence: int) -> int:
        """Names a record; returns what the digest changes by."""
        before = self._one("SELECT crc FROM summaries WHERE summary_id = ?", (summary_id,))
        crc = checksum(summary_id, session, sequence)
        self._run("INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?)", (summary_id, session, sequence, crc))
        return crc ^ (before[0] if before else 0)

    # ---- full text

    def index_text(self, tip: Tip, *, through: int | None = None) -> Tip:
        """Brings the full-text index up to a record (None: the last), in steps; records are not touched."""
        last = tip.last_sequence if through is None else through
        while tip.indexed < last:
            with self.transaction():
                stop = min(last, tip.indexed + _INDEXED_AT_ONCE)
                self._run(
                    "INSERT INTO lexical (rowid, text) SELECT sequence, text FROM records"
                    " WHERE sequence > ? AND sequence <= ?",
                    (tip.indexed, stop),
                )
                self._write_tip(replace(tip, indexed=stop))
            tip = replace(tip, indexed=stop)
        return tip

    def merge_text(self) -> None:
        """One tree instead of many: quicker to search."""
        with self.transaction():
            self._run("INSERT INTO lexical (lexical) VALUES ('optimize')")

    def checkpoint(self) -> None:
        """Fold the log into the database, as far as no reader needs it."""
        self._all("PRAGMA wal_checkpoint(TRUNCATE)")

    def match(self, expression: str, limit: int, *, among: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """(sequence, BM25 score) of the best matches, best first; only of `among` if given."""
        sql = "SELECT rowid, -rank FROM lexical WHERE lexical MATCH ?"
        values: list[Any] = [expression]
        if among is not None:
            sql += " AND +rowid IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(among)))
        return self._all(sql + " ORDER BY rank, rowid LIMIT ?", [*values, limit])

    def match_tail(self, expression: str, limit: int, tip: Tip) -> list[tuple[int, float]]:
        """As `match`, among the records that the full-text index has yet to take in, through one of this connection's own."""
        self._run("CREATE VIRTUAL TABLE IF NOT EXISTS temp.tail USING fts5(text, content='', tokenize='porter unicode61 remove_diacritics 2')")  # fmt: skip
        done = self._one("SELECT coalesce(max(rowid), 0) FROM temp.tail_docsize")[0]
        self._run(
            "INSERT INTO temp.tail (rowid, text) SELECT sequence, text FROM records WHERE sequence > ? AND sequence <= ?",
            (max(done, tip.indexed), tip.last_sequence),
        )
        return self._all(
            "SELECT rowid, -rank FROM temp.tail WHERE tail MATCH ? AND rowid > ? ORDER BY rank, rowid LIMIT ?",
            (expression, tip.indexed, limit),
        )

    # ---- what is whole of a damaged one

    def greatest_sequence(self) -> int:
        found: int = self._one("SELECT coalesce(max(sequence), 0) FROM records")[0]
        return found

    def greatest_access(self) -> int:
        with suppress(DamagedIndexError):
            found: int = self._one("SELECT coalesce(max(number), 0) FROM accesses")[0]
            return found
        return 0

    def whole_blocks(self, after: int, last: int) -> list[Block]:
        """Entries of vectors that begin in (after, last]; those that are damaged are left out."""
        rows = self._all("SELECT * FROM blocks WHERE first > ? AND first <= ?", (after, last))
        return [Block(*values) for *values, crc in rows if checksum(*values) == crc]

    def states_between(self, after: int, last: int) -> list[State]:
        sql = f"SELECT {', '.join(_STATE_FIELDS)}, crc FROM states WHERE sequence > ? AND sequence <= ?"
        return [self._state(values, crc) for *values, crc in self._all(sql, (after, last))]

    def whole_summaries(self) -> list[tuple[str, str, int]]:
        with suppress(DamagedIndexError):
            rows = self._all("SELECT summary_id, session, sequence, crc FROM summaries")
            return [(a, b, c) for a, b, c, crc in rows if checksum(a, b, c) == crc]
        return []

    # ---- checking

    def integrity(self) -> list[str]:
        """What SQLite itself finds wrong."""
        found = [str(row[0]) for row in self._all("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found

    def beyond(self, tip: Tip) -> Iterator[tuple[str, int]]:
        """Rows that no tip counts."""
        for table, key, last in (
            ("records", "sequence", tip.last_sequence),
            ("blocks", "first", tip.last_sequence),
            ("states", "sequence", tip.last_sequence),
            ("accesses", "number", tip.n_accesses),
        ):
            n = self._one(f"SELECT count(*) FROM {table} WHERE {key} > ? OR {key} < 1", (last,))[0]
            if n:
                yield table, n

    def size(self) -> int:
        """Bytes on disk, the log included."""
        return sum(os.path.getsize(path) for path in (self.path, self.path + "-wal") if os.path.exists(path))

    def copy_to(self, other: sqlite3.Connection) -> None:
        """The whole catalog, as it is now."""
        self._connection.backup(other)


def is_unfinished(folder: str) -> bool:
    """Whoever began the store has not come to make its catalog, so there cannot be anything in it."""
    if os.path.exists(os.path.join(folder, HEAD)) or segment_numbers(folder):
        return False
    if not os.path.exists(os.path.join(folder, CATALOG)):
        return True
    catalog = Catalog(folder, write=False)
    try:
        return catalog.is_blank
    finally:
        catalog.abandon()


def _state_crc(state: State) -> int:
    return checksum(*(getattr(state, name) for name in _STATE_FIELDS))


def _open(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=30.0)
    with suppress(sqlite3.OperationalError):  # what cannot be read is told by the first statement
        connection.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KIB}")
    return connection
