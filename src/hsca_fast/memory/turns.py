"""Turns of a conversation and their order in time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from hsca_fast.ranking.columns import number


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a session, raw.

    Parameters
    ----------
    text
        What was said.
    role
        Who said it: "user", "assistant", anything else, or "" for unknown.
    id, collection
        What a store calls it. A turn in the recent tail is not recalled a second time under the same pair.
    timestamp
        Seconds since the epoch. None means that the order given is the order in time.
    bundle
        Neighbouring turns with the same non-empty bundle stay together.

    Examples
    --------
    >>> Turn("Where is the lamp?", "user", "t1").role
    'user'
    """

    text: str
    role: str = ""
    id: str = ""
    timestamp: float | None = None
    bundle: str = ""
    collection: str = ""

    def __post_init__(self) -> None:
        for field in ("text", "role", "id", "bundle", "collection"):
            if not isinstance(getattr(self, field), str):
                raise TypeError(f"{field} must be str, not {type(getattr(self, field)).__name__}")
        if self.timestamp is not None:
            object.__setattr__(self, "timestamp", number("timestamp", self.timestamp, -math.inf))


_NAMES = frozenset(field.name for field in fields(Turn))


def as_turns(turns: Iterable[Turn | Mapping[str, object] | str], *, name: str = "turns") -> list[Turn]:
    """`turns` as a list of checked `Turn`s, in the order given; mappings may say `content` for `text`, a str is a text."""
    if isinstance(turns, (str, bytes, Mapping)) or not isinstance(turns, Iterable):
        raise TypeError(f"{name} must be a sequence of Turn, not {type(turns).__name__}")
    checked = [_as_turn(item, f"{name}[{row}]") for row, item in enumerate(turns)]
    seen: dict[tuple[str, str], int] = {}
    for row, turn in enumerate(checked):
        if turn.id and seen.setdefault((turn.collection, turn.id), row) != row:
            first = seen[turn.collection, turn.id]
            raise ValueError(f"{name}[{row}] has the id {turn.id!r} of {name}[{first}]")
    return checked


def _as_turn(item: object, where: str) -> Turn:
    if isinstance(item, Turn):
        return item
    if isinstance(item, str):
        return Turn(item)
    if not isinstance(item, Mapping):
        raise TypeError(f"{where} must be a Turn, a mapping or a str, not {type(item).__name__}")
    values = {("text" if key == "content" else key): value for key, value in item.items()}
    if unknown := values.keys() - _NAMES:
        raise ValueError(f"{where} has no field {min(map(str, unknown))!r}")
    if "text" not in values:
        raise ValueError(f"{where} has no text")
    try:
        return Turn(**values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}.{error}") from None


def chronological(turns: Iterable[Turn | Mapping[str, object] | str], *, name: str = "turns") -> list[Turn]:
    """`turns` sorted by (timestamp, id); without timestamps, as given.

    Examples
    --------
    >>> [turn.id for turn in chronological([Turn("b", id="2", timestamp=5.0), Turn("a", id="1", timestamp=3.0)])]
    ['1', '2']
    """
    checked = as_turns(turns, name=name)
    missing = [row for row, turn in enumerate(checked) if turn.timestamp is None]
    if len(missing) == len(checked):
        return checked
    if missing:
        raise ValueError(f"{name}[{missing[0]}] has no timestamp but others have")
    return sorted(checked, key=lambda turn: (turn.timestamp, turn.id))
