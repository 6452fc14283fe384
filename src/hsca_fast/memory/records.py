"""What a store gives back, and what it takes: records, hits, and the checks of everything that comes in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from hsca_fast.memory.catalog import STATUSES, Row, State, Status
from hsca_fast.ranking import estimate_tokens

T = TypeVar("T")
_ID = re.compile(r"[0-9a-f]{32}")
_MAX_INT = 2**63 - 1
MAX_RECORD_BYTES = 10 << 20
"""Of a record's text, turn_id, role and metadata together: escaped in JSON they are still short enough for an import."""


@runtime_checkable
class ChunkLike(Protocol):
    """A piece of a turn with its place in it."""

    @property
    def text(self) -> str: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def sentence_id(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Record:
    """A chunk in a store.

    Attributes
    ----------
    id
        32 hexadecimal digits, for ever this record's.
    sequence
        1, 2, ... in the order of appending; never used again.
    turn_id, sentence_id, role
        Where the chunk comes from.
    timestamp
        Seconds since the epoch.
    reference_count, last_access
        How often it was used (`touch`), and when last.
    status
        "live", "archived" (left out unless asked for) or "deleted" (left out).
    superseded_by
        Id of the record that corrects this one.
    compacted_into
        Id of the summary that stands for this one.
    reason
        Of its being archived; empty for a live one.
    """

    id: str
    sequence: int
    text: str
    turn_id: str
    sentence_id: int
    role: str
    timestamp: float
    metadata: dict[str, Any]
    n_tokens: int
    reference_count: int = 0
    last_access: float | None = None
    status: Status = "live"
    superseded_by: str | None = None
    compacted_into: str | None = None
    reason: str = ""

    @classmethod
    def of(cls, row: Row, state: State | None) -> Record:
        state = state or State(row.sequence)
        return cls(
            id=row.id.hex(),
            sequence=row.sequence,
            text=row.text,
            turn_id=row.turn_id,
            sentence_id=row.sentence_id,
            role=row.role,
            timestamp=row.timestamp,
            metadata=json.loads(row.metadata),
            n_tokens=row.n_tokens,
            reference_count=state.reference_count,
            last_access=state.last_access,
            status=STATUSES[state.status],
            superseded_by=None if state.superseded_by is None else state.superseded_by.hex(),
            compacted_into=None if state.compacted_into is None else state.compacted_into.hex(),
            reason=state.reason,
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that answers a query.

    Attributes
    ----------
    score
        What the hits are ordered by: the fused score of both arms, or the score of the only arm.
    vector_score
        Cosine with the query, whichever arm found the record; None without a vector arm.
    lexical_score
        BM25, higher is better; None when the lexical arm did not find it.
    vector_rank, lexical_rank
        Its place in each arm, from 0; None where an arm did not bring it.
    """

    id: str
    text: str
    score: float
    vector_score: float | None
    lexical_score: float | None
    metadata: dict[str, Any]
    timestamp: float
    turn_id: str
    sentence_id: int
    role: str
    vector_rank: int | None
    lexical_rank: int | None
    sequence: int
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Incoming:
    """What an append brings, checked."""

    texts: list[str]
    turn_ids: list[str]
    sentence_ids: list[int]
    roles: list[str]
    timestamps: list[float]
    metadata: list[str]
    n_tokens: list[int]
    ids: list[bytes] | None

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, first: int, ids: Sequence[bytes]) -> Iterator[Row]:
        """One at a time: a million of them would need a few hundred megabytes."""
        columns = zip(
            range(first, first + len(self)), ids, self.texts, self.turn_ids, self.sentence_ids, self.roles, self.timestamps, self.metadata, self.n_tokens,
            strict=True,
        )  # fmt: skip
        return map(Row._make, columns)

    def too_large(self) -> Iterator[int]:
        """Rows that are larger than a record may be."""
        columns = self.texts, self.turn_ids, self.roles, self.metadata
        if 4 * sum(max(map(len, column), default=0) for column in columns) <= MAX_RECORD_BYTES:  # at most 4 a character
            return
        for i, parts in enumerate(zip(*columns, strict=True)):
            if sum(len(part.encode()) for part in parts) > MAX_RECORD_BYTES:
                yield i

    def without(self, rows: set[int]) -> Incoming:
        """All but these."""

        def left(values: list[T]) -> list[T]:
            return [value for i, value in enumerate(values) if i not in rows]

        return Incoming(
            left(self.texts), left(self.turn_ids), left(self.sentence_ids), left(self.roles), left(self.timestamps),
            left(self.metadata), left(self.n_tokens), None if self.ids is None else left(self.ids),
        )  # fmt: skip


def incoming(
    chunks: Iterable[str | ChunkLike],
    *,
    turn_id: str | Sequence[str] | None,
    role: str | Sequence[str] | None,
    metadata: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None,
    timestamps: float | Sequence[float] | None,
    ids: Sequence[str] | None,
    now: float,
    this_turn: str,
) -> Incoming:
    """The arguments of an append as columns; the first fault is named with its row."""
    if isinstance(chunks, (str, bytes)) or not isinstance(chunks, Iterable):
        raise TypeError(f"chunks must be a sequence of str or Chunk, not {type(chunks).__name__}")
    pieces = list(chunks)
    n = len(pieces)
    texts, sentence_ids, counts = [], [], []
    for i, piece in enumerate(pieces):
        if isinstance(piece, str):
            texts.append(piece if piece.isascii() else _text(piece, f"chunks[{i}]"))
            sentence_ids.append(i)
            counts.append(-1)
        elif isinstance(piece, ChunkLike):
            texts.append(_text(piece.text, f"chunks[{i}].text"))
            sentence_ids.append(whole(piece.sentence_id, f"chunks[{i}].sentence_id"))
            counts.append(whole(piece.n_tokens, f"chunks[{i}].n_tokens"))
        else:
            raise TypeError(f"chunks[{i}] must be a str or a Chunk, not {type(piece).__name__}")
    uncounted = [i for i, count in enumerate(counts) if count < 0]
    if uncounted:
        estimated = estimate_tokens([texts[i] for i in uncounted])
        for i, count in zip(uncounted, np.asarray(estimated).tolist(), strict=True):
            counts[i] = count
    new = Incoming(
        texts,
        _per_row(this_turn if turn_id is None else turn_id, n, "turn_id", _text),
        sentence_ids,
        _per_row("" if role is None else role, n, "role", _text),
        _per_row(now if timestamps is None else timestamps, n, "timestamps", finite),
        _metadata({} if metadata is None else metadata, n),
        counts,
        None if ids is None else _ids(ids, n),
    )
    for i in new.too_large():
        raise ValueError(f"chunks[{i}] has more than {MAX_RECORD_BYTES} bytes with its metadata")
    return new


def _per_row(value: Any, n: int, name: str, check: Any) -> list[Any]:
    """One value for all, or one for each."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        return [check(value, name)] * n
    if len(value) != n:
        raise ValueError(f"{name} has {len(value)} elements for {n} chunks")
    return [check(each, f"{name}[{i}]") for i, each in enumerate(value)]


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be str, not {type(value).__name__}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{name} has the lone surrogate {value[error.start]!r} at {error.start}: it cannot be stored"
            ) from None
    return value


checked_text = _text


def finite(value: Any, name: str) -> float:
    """`value` as a finite float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, not {value}")
    return number


def whole(value: Any, name: str) -> int:
    """`value` as an int of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not 0 <= value <= _MAX_INT:
        raise ValueError(f"{name} must be at least 0, not {value}")
    return int(value)


def _ids(ids: Any, n: int) -> list[bytes]:
    if isinstance(ids, (str, bytes)) or not isinstance(ids, (Sequence, np.ndarray)):
        raise TypeError(f"ids must be a sequence of str, not {type(ids).__name__}")
    if len(ids) != n:
        raise ValueError(f"ids has {len(ids)} elements for {n} chunks")
    found = [id_bytes(id_, f"ids[{i}]") for i, id_ in enumerate(ids)]
    if len(set(found)) != n:
        seen: set[bytes] = set()
        for i, id_ in enumerate(found):
            if id_ in seen:
                raise ValueError(f"ids[{i}] is {id_.hex()}, which is there twice")
            seen.add(id_)
    return found


def id_bytes(id_: Any, name: str = "id") -> bytes:
    """The 16 bytes of an id."""
    if not isinstance(id_, str):
        raise TypeError(f"{name} must be str, not {type(id_).__name__}")
    if not _ID.fullmatch(id_):
        raise ValueError(f"{name} must be 32 hexadecimal digits in lower case, not {id_!r}")
    return bytes.fromhex(id_)


def _metadata(metadata: Any, n: int) -> list[str]:
    if isinstance(metadata, Mapping):
        return [as_json(metadata, "metadata")] * n
    if isinstance(metadata, (str, bytes)) or not isinstance(metadata, Sequence):
        raise TypeError(f"metadata must be a mapping or a sequence of them, not {type(metadata).__name__}")
    if len(metadata) != n:
        raise ValueError(f"metadata has {len(metadata)} elements for {n} chunks")
    known: dict[int, str] = {}  # rows often share one mapping
    return [known.get(id(each)) or known.setdefault(id(each), as_json(each, f"metadata[{i}]")) for i, each in enumerate(metadata)]  # fmt: skip


def as_json(value: Any, name: str) -> str:
    """A mapping as one line of JSON that gives it back, key by key in order."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, not {type(value).__name__}")
    if not value:
        return "{}"
    try:
        _check_keys(value)
        text = json.dumps(dict(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} has a lone surrogate: it cannot be stored") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not JSON: {error}") from None
    return text


def _check_keys(value: Any) -> None:
    """json would turn other keys into str, and the mapping would not come back as it was."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not a str")
            _check_keys(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _check_keys(each)
