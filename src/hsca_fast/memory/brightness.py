"""Which part of a conversation is in the model's context: what attention keeps bright stays, the rest can come back.

append_chunk ─► score_step, step after step ─► prune(budget) ─► [still in the index] ─► resurrect(hits) ─► at the old place
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hsca_fast._native import memory as _native
from hsca_fast.fields import Fields
from hsca_fast.files import replacing
from hsca_fast.memory.chunking import check_text, paired_message, whole_number
from hsca_fast.memory.presets import LIMIT, PRESET_FIELDS, MemoryPreset, as_preset

SYSTEM = "system"
"""Chunks of this role are never pruned."""

_MAGIC = b"hsca active context 1\n"
_Key = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class ChunkState:
    """A chunk of an `ActiveContext` as it is now; its tokens are at positions `start` to `stop`."""

    id: str
    turn_id: str
    sentence_id: int
    role: str
    start: int
    stop: int
    is_live: bool
    is_pinned: bool
    peak: int


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What left the context.

    Attributes
    ----------
    pruned
        Chunk ids, in the order they went.
    n_tokens
        Their tokens.
    n_live_tokens
        What is left.
    fits
        Whether that is within the budget; not when pinned, system and current chunks alone are more.
    """

    pruned: tuple[str, ...]
    n_tokens: int
    n_live_tokens: int
    fits: bool


@dataclass(frozen=True, slots=True)
class Resurrection:
    """What a query brought back.

    Attributes
    ----------
    revived
        Chunk ids that are live again, best first.
    referenced
        Ids of the hits that counted, as the index names them; `SemanticIndex.touch` takes them.
    overflowed
        Ids of hits that did not fit the budget; only the first where that stops everything.
    unknown
        Ids of hits that are not of this conversation.
    n_tokens
        Budget spent.
    """

    revived: tuple[str, ...]
    referenced: tuple[str, ...]
    overflowed: tuple[str, ...]
    unknown: tuple[str, ...]
    n_tokens: int


class HitLike(Protocol):
    """What resurrection needs of a hit; `turn_id`, `sentence_id` and `role` are looked at when the id is not known."""

    @property
    def id(self) -> str: ...


class SearchableIndex(Protocol):
    """What `resurrect_from` needs of a `SemanticIndex`."""

    def query(self, query: str, k: int = 10, *, where: Any = None, lexical: bool = True) -> Sequence[Any]: ...
    def touch(self, ids: Sequence[str], *, query: str = "") -> object: ...


class ActiveContext:
    """The tokens of a conversation with their brightness; chunks of them are live, in the context, or not.

    A token's position is its number in the conversation and never changes, so what comes back is where it was. One thread
    at a time.

    Parameters
    ----------
    preset
        ``"seed"``, ``"halo_final"`` or a `MemoryPreset`.

    Examples
    --------
    >>> context = ActiveContext()
    >>> for chunk_id, n_tokens in [("a", 3), ("b", 2)]:
    ...     _ = context.append_chunk(chunk_id, n_tokens, turn_id="1", role="user")
    >>> context.end_turn()
    >>> context.score_step([0.2, 0.1, 0.1, 0.5, 0.1])
    True
    >>> context.brightness("a").tolist(), context.brightness("b").tolist()
    ([255, 254, 254], [257, 254])
    >>> context.prune(4).pruned
    ('a',)
    >>> context.resurrect(["a", "b"]).revived, context.live_positions().tolist()
    (('a',), [0, 1, 2, 3, 4])
    """

    def __init__(self, *, preset: str | MemoryPreset = "seed") -> None:
        self._preset = as_preset(preset)
        self._ids: list[str] = []
        self._sentence_ids: list[int] = []
        self._next_sentence: dict[tuple[str, str], int] = {}
        self._number_of: dict[str, int] = {}
        self._number_of_key: dict[_Key, int] = {}
        self._messages: list[tuple[str, str]] = []  # (turn_id, role)
        self._turns: set[str] = set()
        self._is_turn_open = False
        self._current_from = 0  # first chunk of the current turn
        self._first_chunk = _Column(np.int64)
        self._message_of = _Column(np.int64)
        self._offsets = _Column(np.int64)
        self._offsets.extend(1, 0)
        self._live = _Column(np.uint8)
        self._pinned = _Column(np.uint8)
        self._peaks = _Column(np.int32)
        self._brightness = _Column(np.int32)

    # ---- what is there

    @property
    def preset(self) -> MemoryPreset:
        """The rules."""
        return self._preset

    @property
    def n_tokens(self) -> int:
        """All tokens, live or not."""
        return self._brightness.n

    @property
    def n_live_tokens(self) -> int:
        """Tokens in the context."""
        return int((np.diff(self._offsets.values) * self._live.values).sum())

    def __len__(self) -> int:
        """Number of chunks, live or not."""
        return len(self._ids)

    def __contains__(self, chunk_id: object) -> bool:
        return chunk_id in self._number_of

    def chunk(self, chunk_id: str) -> ChunkState:
        """One chunk as it is now."""
        c = self._number(chunk_id)
        turn_id, role = self._messages[int(self._message_of.values[c])]
        start, stop = self._span(c)
        return ChunkState(
            chunk_id, turn_id, self._sentence_ids[c], role, start, stop,
            bool(self._live.values[c]), bool(self._pinned.values[c]), int(self._peaks.values[c]),
        )  # fmt: skip

    def live_chunks(self) -> list[str]:
        """Ids of the chunks in the context, in order."""
        return [self._ids[c] for c in np.flatnonzero(self._live.values)]

    def live_positions(self) -> npt.NDArray[np.int64]:
        """Positions of the tokens in the context, in order; attention comes in this order."""
        return np.flatnonzero(np.repeat(self._live.values, np.diff(self._offsets.values)))

    def brightness(self, chunk_id: str) -> npt.NDArray[np.int32]:
        """Brightness of each token of a chunk; for one that is not live, when it left."""
        start, stop = self._span(self._number(chunk_id))
        return self._brightness.values[start:stop].copy()

    # ---- growth

    def append_chunk(
        self, chunk_id: str, n_tokens: int, *, turn_id: str = "", role: str = "", sentence_id: int | None = None
    ) -> range:
        """Put a chunk at the end; its tokens are new. Returns their positions.

        Parameters
        ----------
        chunk_id
            What hits call it, such as the id that `SemanticIndex.append` gave it. Not one that is there.
        n_tokens
            At least 1.
        turn_id
            A new one starts a turn, which is the current one until `end_turn` or the next. A turn that has ended does not go on.
        role
            ``"user"``, ``"assistant"``, ``"system"`` (never pruned), or another. Chunks of one turn and role in a row are a message.
        sentence_id
            Its number within turn and role; the next one when not given.
        """
        for name, value in (("chunk_id", chunk_id), ("turn_id", turn_id), ("role", role)):
            check_text(value, name)
        n_tokens = whole_number("n_tokens", n_tokens, 1, LIMIT)
        if chunk_id in self._number_of:
            raise ValueError(f"chunk_id {chunk_id!r} is there already")
        is_new_turn = not self._is_turn_open or turn_id != self._messages[-1][0]
        if is_new_turn and turn_id in self._turns:
            raise ValueError(f"turn_id {turn_id!r} has ended")
        c = len(self._ids)
        if sentence_id is None:
            sentence_id = self._next_sentence.get((turn_id, role), 0)
        key = (turn_id, whole_number("sentence_id", sentence_id, 0), role)
        if key in self._number_of_key:
            raise ValueError(f"sentence_id {sentence_id} of turn {turn_id!r} and role {role!r} is there already")
        self._offsets.reserve(1)  # what can fail for want of memory comes first
        self._brightness.reserve(n_tokens)
        start = self._brightness.n
        if is_new_turn:
            self._turns.add(turn_id)
            self._is_turn_open = True
            self._current_from = c
        if not self._messages or self._messages[-1] != (turn_id, role):
            self._messages.append((turn_id, role))
            self._first_chunk.extend(1, c)
        self._number_of[chunk_id] = self._number_of_key[key] = c
        self._ids.append(chunk_id)
        self._sentence_ids.append(sentence_id)
        self._next_sentence[turn_id, role] = max(sentence_id + 1, self._next_sentence.get((turn_id, role), 0))
        self._message_of.extend(1, len(self._messages) - 1)
        self._live.extend(1, 1)
        self._pinned.extend(1, 0)
        self._peaks.extend(1, self._preset.new_brightness)
        self._offsets.extend(1, start + n_tokens)
        self._brightness.extend(n_tokens, self._preset.new_brightness)
        return range(start, start + n_tokens)

    def extend_chunk(self, n_tokens: int) -> range:
        """Let the last chunk grow, as while a model writes it. Returns the positions of the new tokens."""
        n_tokens = whole_number("n_tokens", n_tokens, 1, LIMIT)
        if not self._ids or not self._live.values[-1]:
            raise ValueError("there is no live last chunk to extend")
        start = self._brightness.n
        self._brightness.extend(n_tokens, self._preset.new_brightness)
        self._offsets.values[-1] = start + n_tokens
        self._peaks.values[-1] = max(int(self._peaks.values[-1]), self._preset.new_brightness)
        return range(start, start + n_tokens)

    def end_turn(self) -> None:
        """The current turn is complete and from now on like the others."""
        self._is_turn_open = False
        self._current_from = len(self._ids)

    # ---- brightness

    def score_step(self, attention: npt.ArrayLike, *, prefix: int = 0) -> bool:
        """Score live tokens by one step of attention.

        Parameters
        ----------
        attention
            [prefix + live tokens]: what each token of the context got, as the mean over layers and heads; at least 0 and finite.
        prefix
            Tokens before the first of this conversation, such as a system prompt kept elsewhere.

        Returns
        -------
        bool
            False when the step says nothing and changes nothing: fewer than two tokens, or all attention on the sink.
        """
        prefix = whole_number("prefix", prefix, 0)
        given = np.asarray(attention)
        if given.dtype.kind not in "fiu" and given.size:
            raise TypeError(f"attention must hold numbers, not {given.dtype}")
        if given.ndim != 1:
            raise ValueError(f"attention must have one dimension, not {given.ndim}")
        n_expected = prefix + self.n_live_tokens
        if len(given) != n_expected:
            raise ValueError(f"attention has {len(given)} elements but the context {n_expected} tokens")
        is_single = given.dtype in (np.float16, np.float32)
        column: Any = np.ascontiguousarray(given, np.float32 if is_single else np.float64)
        scored = _native.score_step(
            column, prefix, self._offsets.values, self._live.values,
            len(self._ids) if self._preset.scores_current_turn else self._current_from,
            self._preset.sink, self._preset.max_brightness, self._brightness.values, self._peaks.values,
        )  # fmt: skip
        if scored is None:
            bad = int(np.argmax(~(np.isfinite(column) & (column >= 0))))
            raise ValueError(f"attention[{bad}] is {given[bad]}; every element must be finite and at least 0")
        return scored

    # ---- leaving and coming back

    def prune(self, budget: int, *, dry_run: bool = False) -> PruneReport:
        """Let chunks go, the one with the lowest peak first and the oldest of equals, until the live tokens fit `budget`.

        A chunk's peak is the brightness of its brightest token now. Pinned chunks, the system's and those of the current turn
        stay whatever the budget, and `PruneReport.fits` says whether it holds. With `dry_run` nothing goes.
        """
        budget = whole_number("budget", budget, 0)
        exempt = self._pinned.values.copy()
        exempt[self._current_from :] = 1
        roles = [role for _, role in self._messages]
        is_system = np.array([role == SYSTEM for role in roles], bool)
        exempt |= is_system[self._message_of.values]
        partners = np.full(len(roles), -1, np.int64)
        if self._preset.anchors:
            for message in range(len(roles)):
                other = paired_message(roles, message)
                partners[message] = -1 if other is None else other
        gone = _native.plan_prune(
            self._offsets.values, self._live.values, exempt, self._peaks.values, self._message_of.values,
            self._first_chunk.values, partners, min(budget, self.n_tokens), self._preset.anchors,
            self._preset.keep_prunable,
        )  # fmt: skip
        n_tokens = int(np.diff(self._offsets.values)[gone].sum())
        n_left = self.n_live_tokens - n_tokens
        if not dry_run:
            self._live.values[gone] = 0
        return PruneReport(tuple(self._ids[c] for c in gone), n_tokens, n_left, n_left <= budget)

    def revive(self, chunk_ids: Iterable[str]) -> list[str]:
        """Bring chunks back, every token at its position, with the brightness of what somebody asked for by hand.

        Returns the ids of those that were not live; the others stay as they are.
        """
        numbers = self._numbers(chunk_ids)
        return [self._ids[c] for c in numbers if self._bring_back(c, self._preset.manual_brightness)]

    def pin(self, chunk_ids: Iterable[str]) -> None:
        """Never prune these; those that are not live come back."""
        for c in self._numbers(chunk_ids):
            self._bring_back(c, self._preset.manual_brightness)
            self._pinned.values[c] = 1

    def unpin(self, chunk_ids: Iterable[str]) -> None:
        """Let these compete again."""
        self._pinned.values[self._numbers(chunk_ids)] = 0

    def resurrect(
        self, hits: Iterable[HitLike | str], *, budget: int | None = None, max_results: int | None = None
    ) -> Resurrection:
        """Bring back what a query found, best first, until the budget is spent.

        A hit that is live already changes nothing but spends its tokens (in ``"seed"``) or is passed over (in
        ``"halo_final"``). The first hit that does not fit ends it (``"seed"``) or is passed over (``"halo_final"``).

        Parameters
        ----------
        hits
            In order of similarity: ids of chunks, or objects with an `id`, such as the hits of `SemanticIndex.query`. When there is no
            chunk of that id, `turn_id`, `sentence_id` and `role` say which it is. Those of other conversations are reported as unknown.
        budget
            Tokens; the preset's when not given.
        max_results
            Hits looked at; the preset's when not given.
        """
        if budget is None:
            budget = self._preset.resurrection_budget
            if budget is None:
                raise ValueError("budget must be given: the preset has none")
        budget = whole_number("budget", budget, 0)
        limit = self._preset.max_results if max_results is None else whole_number("max_results", max_results, 0)
        revived: list[str] = []
        referenced: list[str] = []
        overflowed: list[str] = []
        unknown: list[str] = []
        spent = 0
        seen: set[int] = set()
        for hit_id, c in [self._found(hit, row) for row, hit in enumerate(islice(hits, limit))]:
            if c is None:
                unknown.append(hit_id)
                continue
            is_live = bool(self._live.values[c])
            if c in seen or (is_live and not self._preset.live_hits_count):
                continue
            seen.add(c)
            start, stop = self._span(c)
            if spent + stop - start > budget:
                overflowed.append(hit_id)
                if self._preset.stops_at_overflow:
                    break
                continue
            if self._bring_back(c, self._preset.revived_brightness):
                revived.append(self._ids[c])
            referenced.append(hit_id)
            spent += stop - start
        return Resurrection(tuple(revived), tuple(referenced), tuple(overflowed), tuple(unknown), spent)

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file, which is replaced whole or not at all."""
        header = {
            "preset": asdict(self._preset),
            "ids": self._ids,
            "sentence_ids": self._sentence_ids,
            "messages": self._messages,
            "is_turn_open": self._is_turn_open,
        }
        columns = {name: getattr(self, f"_{name}").values for name in _COLUMNS}
        content = io.BytesIO()
        np.savez(content, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **columns)
        with replacing(path) as stream:
            stream.write(_MAGIC + hashlib.sha256(content.getbuffer()).digest())
            stream.write(content.getbuffer())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ActiveContext:
        """Read what `save` wrote. What is damaged, or no such file, is a ValueError that names the path."""
        with open(path, "rb") as stream:
            magic, digest, content = stream.read(len(_MAGIC)), stream.read(32), stream.read()
        try:
            if magic != _MAGIC:
                raise ValueError(f"it does not begin with {_MAGIC!r}")
            if hashlib.sha256(content).digest() != digest:  # before anything is parsed
                raise ValueError("it is damaged or cut off")
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                header = json.loads(arrays["header"].tobytes().decode())
                columns = {name: arrays[name] for name in _COLUMNS}
            return cls._restored(header, columns)
        except (KeyError, TypeError, ValueError, IndexError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{os.fspath(path)} is not an active context: {error}") from error

    @classmethod
    def _restored(cls, header: object, columns: dict[str, npt.NDArray[Any]]) -> ActiveContext:
        """Replays the chunks, so that a file can hold nothing that calls could not have made, then takes the columns over."""
        fields = Fields("header", header, ("preset", "ids", "sentence_ids", "messages", "is_turn_open"))
        for name, column in columns.items():
            if column.ndim != 1 or column.dtype != _COLUMNS[name]:
                raise ValueError(f"{name} must be a row of {np.dtype(_COLUMNS[name])}")
        preset = fields.mapping("preset")
        Fields("preset", preset, PRESET_FIELDS)
        context = cls(preset=MemoryPreset(**preset))
        ids, sentence_ids, messages = (fields.items(name) for name in ("ids", "sentence_ids", "messages"))
        offsets, brightness = columns["offsets"], columns["brightness"]
        is_rising = len(offsets) and offsets[0] == 0 and (offsets[1:] > offsets[:-1]).all()
        if not is_rising or offsets[-1] != len(brightness):  # before anything of that size is made
            raise ValueError("offsets do not fit the tokens")
        lengths = np.diff(offsets).tolist()
        for chunk_id, sentence_id, n_tokens, message in zip(
            ids, sentence_ids, lengths, columns["message_of"].tolist(), strict=True
        ):
            turn_id, role = messages[message]
            context.append_chunk(chunk_id, n_tokens, turn_id=turn_id, role=role, sentence_id=sentence_id)
        if not fields.truth("is_turn_open"):
            context.end_turn()
        for name in ("offsets", "message_of"):
            if not np.array_equal(getattr(context, f"_{name}").values, columns[name]):
                raise ValueError(f"{name} does not fit the chunks")
        if len(brightness) and not -LIMIT <= brightness.min() <= brightness.max() <= context.preset.max_brightness:
            raise ValueError("brightness is out of range")
        for name in ("live", "pinned", "brightness"):
            values = getattr(context, f"_{name}").values
            if len(values) != len(columns[name]):
                raise ValueError(f"{name} has {len(columns[name])} elements, not {len(values)}")
            values[:] = columns[name]
        if max(columns["live"].max(initial=0), columns["pinned"].max(initial=0)) > 1:
            raise ValueError("live and pinned must be 0 or 1")
        if len(ids):
            context._peaks.values[:] = np.maximum.reduceat(brightness, offsets[:-1])
        return context

    # ---- within

    def _number(self, chunk_id: str) -> int:
        try:
            return self._number_of[chunk_id]
        except KeyError:
            raise KeyError(f"there is no chunk {chunk_id!r}") from None

    def _numbers(self, chunk_ids: Iterable[str]) -> list[int]:
        if isinstance(chunk_ids, str):
            raise TypeError("chunk_ids must be a list of str, not str")
        return [self._number(chunk_id) for chunk_id in chunk_ids]

    def _span(self, c: int) -> tuple[int, int]:
        return int(self._offsets.values[c]), int(self._offsets.values[c + 1])

    def _found(self, hit: HitLike | str, row: int) -> tuple[str, int | None]:
        hit_id = hit if isinstance(hit, str) else getattr(hit, "id", None)
        if not isinstance(hit_id, str):
            raise TypeError(f"hits[{row}] must be a str or have an id, not {type(hit).__name__}")
        c = self._number_of.get(hit_id)
        if c is None and not isinstance(hit, str):
            turn_id, sentence_id, role = (getattr(hit, name, None) for name in ("turn_id", "sentence_id", "role"))
            if isinstance(turn_id, str) and isinstance(sentence_id, int) and isinstance(role, str):
                c = self._number_of_key.get((turn_id, sentence_id, role))
        return hit_id, c

    def _bring_back(self, c: int, brightness: int | None) -> bool:
        if self._live.values[c]:
            return False
        self._live.values[c] = 1
        if brightness is not None:
            start, stop = self._span(c)
            self._brightness.values[start:stop] = brightness
            self._peaks.values[c] = brightness
        return True


_COLUMNS = {
    "offsets": np.int64,
    "message_of": np.int64,
    "live": np.uint8,
    "pinned": np.uint8,
    "brightness": np.int32,
}


class _Column:
    """An array that grows at its end."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._room = np.empty(16, dtype)
        self.n = 0

    @property
    def values(self) -> npt.NDArray[Any]:
        """What is there; writes go through."""
        return self._room[: self.n]

    def reserve(self, n: int) -> None:
        """Make room for `n` more."""
        if self.n + n > len(self._room):
            room = np.empty(max(2 * len(self._room), self.n + n), self._room.dtype)
            room[: self.n] = self.values
            self._room = room

    def extend(self, n: int, value: int) -> None:
        """Add `value` `n` times."""
        self.reserve(n)
        self._room[self.n : self.n + n] = value
        self.n += n


def resurrect_from(
    index: SearchableIndex,
    context: ActiveContext,
    query: str,
    *,
    budget: int | None = None,
    max_context: int | None = None,
    max_new_tokens: int = 0,
    max_results: int | None = None,
    where: Any = None,
    lexical: bool = False,
) -> Resurrection:
    """Ask an index what a message is about, bring that back into the context, and count the references in the index.

    Parameters
    ----------
    index
        A `SemanticIndex`, or anything with its `query` and `touch`.
    query
        The user's message.
    budget
        Tokens that may come back; the preset's when neither this nor `max_context` is given.
    max_context, max_new_tokens
        Instead of `budget`: what the model takes, and what it is to write. The budget is what live tokens, the message (a
        quarter of its characters) and the new ones leave.
    max_results
        Hits looked at; the preset's when not given.
    where
        A filter, such as that of this conversation.
    lexical
        Rank by words as well as by vectors.

    Examples
    --------
    >>> class Index:
    ...     def query(self, query, k=10, *, where=None, lexical=True):
    ...         from types import SimpleNamespace
    ...         return [SimpleNamespace(id="lamp", score=0.9, role="user")]
    ...     def touch(self, ids, *, query=""):
    ...         print("touched", *ids)
    >>> context = ActiveContext()
    >>> _ = context.append_chunk("lamp", 5, turn_id="1", role="user")
    >>> context.end_turn()
    >>> _ = context.prune(0)
    >>> resurrect_from(Index(), context, "Where is the lamp?").revived
    touched lamp
    ('lamp',)
    """
    check_text(query, "query")
    if max_context is not None:
        if budget is not None:
            raise ValueError("budget and max_context must not both be given")
        used = context.n_live_tokens + -(-len(query) // 4) + whole_number("max_new_tokens", max_new_tokens, 0)
        budget = max(0, whole_number("max_context", max_context, 0) - used)
    preset = context.preset
    k = preset.max_results if max_results is None else whole_number("max_results", max_results, 0)
    if k == 0:
        return context.resurrect([], budget=budget, max_results=0)
    hits = list(index.query(query, k, where=where, lexical=lexical))
    if preset.user_boost != 1.0:
        hits = _boosted(index, hits, query, k, where, lexical, preset.user_boost)
    found = context.resurrect(hits, budget=budget, max_results=k)
    if found.referenced:
        index.touch(list(found.referenced), query=query)
    return found


def _boosted(
    index: SearchableIndex, hits: list[Any], query: str, k: int, where: Any, lexical: bool, boost: float
) -> list[Any]:
    # What the user said may be beyond the k best before its scores are raised, but not beyond the k best of its own.
    theirs = {"role": "user"} if where is None else {"$and": [where, {"role": "user"}]}
    by_id = {hit.id: hit for hit in [*index.query(query, k, where=theirs, lexical=lexical), *hits]}
    scores = {id: hit.score * (boost if hit.role == "user" else 1.0) for id, hit in by_id.items()}
    return [by_id[id] for id in sorted(scores, key=lambda id: (-scores[id], id))[:k]]
