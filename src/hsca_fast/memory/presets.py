"""The numbers of chunking, brightness and resurrection, as named sets."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Literal

LIMIT: Final = 1_000_000_000
"""Brightness stays within ±`LIMIT`, so that sums of two fit 32 bits."""


@dataclass(frozen=True, slots=True)
class MemoryPreset:
    """How text becomes chunks and how chunks come and go. `MEMORY_PRESETS` holds the two that have a name.

    Attributes
    ----------
    boundary
        ``"long_line"``: a chunk ends with a line of at least `min_tokens`. ``"block"``: it ends with a blank line, or a line that
        starts with three backticks, or outside such fences with a closing brace, once it has `min_tokens` itself.
    min_tokens
        See `boundary`.
    window, window_tokens
        What a chunk is embedded with, and how much at most: its ``"neighbours"`` (`embedding_windows`) or the first
        chunks of its ``"turn_pair"`` (`turn_pair_windows`).
    new_brightness, max_brightness
        Of a new token, and the most that attention can give.
    sink
        Whose attention the threshold leaves out: that of the ``"first"`` token, which then is not scored either, or the
        ``"largest"``.
    scores_current_turn
        Whether tokens of the current turn are scored. They are never pruned.
    anchors
        Whether the first chunk of a message stays while others of it do, and goes with that of the answer or question.
    keep_prunable
        How many chunks that could be pruned are left whatever the budget.
    revived_brightness, manual_brightness
        Of tokens that come back by a hit, and by `revive` or `pin`; None keeps what they had.
    max_results, resurrection_budget
        Hits looked at, and tokens they may cost; None means that the caller must say.
    live_hits_count
        Whether a hit that is live spends budget, too.
    stops_at_overflow
        Whether the first hit that does not fit is the last.
    user_boost
        Factor on the similarity of what the user said.
    """

    boundary: Literal["long_line", "block"] = "long_line"
    min_tokens: int = 10
    window: Literal["neighbours", "turn_pair"] = "neighbours"
    window_tokens: int = 256
    new_brightness: int = 255
    max_brightness: int = LIMIT
    sink: Literal["first", "largest"] = "first"
    scores_current_turn: bool = False
    anchors: bool = False
    keep_prunable: int = 0
    revived_brightness: int | None = 255
    manual_brightness: int | None = 255
    max_results: int = 20
    resurrection_budget: int | None = 1024
    live_hits_count: bool = True
    stops_at_overflow: bool = True
    user_boost: float = 1.0

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be {choices[0]!r} or {choices[1]!r}, not {getattr(self, name)!r}")
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an int, not {type(value).__name__}")
            if not least <= value <= LIMIT:
                raise ValueError(f"{name} must be from {least} to {LIMIT}, not {value}")
        for name in ("scores_current_turn", "anchors", "live_hits_count", "stops_at_overflow"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be a bool, not {type(getattr(self, name)).__name__}")
        if isinstance(self.user_boost, bool) or not isinstance(self.user_boost, (int, float)):
            raise TypeError(f"user_boost must be a number, not {type(self.user_boost).__name__}")
        if not 1.0 <= self.user_boost < float("inf"):
            raise ValueError(f"user_boost must be at least 1 and finite, not {self.user_boost}")
        for name in ("new_brightness", "revived_brightness", "manual_brightness"):
            value = getattr(self, name)
            if value is not None and value > self.max_brightness:
                raise ValueError(f"{name} is {value} but max_brightness is {self.max_brightness}")


_CHOICES: Final = {
    "boundary": ("long_line", "block"),
    "window": ("neighbours", "turn_pair"),
    "sink": ("first", "largest"),
}
_COUNTS: Final = {
    "min_tokens": 1, "window_tokens": 0, "new_brightness": 0, "max_brightness": 0, "keep_prunable": 0,
    "revived_brightness": 0, "manual_brightness": 0, "max_results": 0, "resurrection_budget": 0,
}  # fmt: skip
_OPTIONAL: Final = {"revived_brightness", "manual_brightness", "resurrection_budget"}

MEMORY_PRESETS: Final = {
    "seed": MemoryPreset(),
    "halo_final": MemoryPreset(
        boundary="block",
        min_tokens=64,
        window="turn_pair",
        new_brightness=10_000,
        max_brightness=10_000,
        sink="largest",
        scores_current_turn=True,
        anchors=True,
        keep_prunable=1,
        revived_brightness=None,
        manual_brightness=10_000,
        max_results=128,
        resurrection_budget=None,
        live_hits_count=False,
        stops_at_overflow=False,
        user_boost=1.5,
    ),
}
"""``"seed"``: the semantic index as first written down. ``"halo_final"``: the settings its authors arrived at."""

PRESET_FIELDS: Final = tuple(field.name for field in fields(MemoryPreset))


def as_preset(preset: str | MemoryPreset) -> MemoryPreset:
    """A preset by name, or as it is."""
    if isinstance(preset, MemoryPreset):
        return preset
    if not isinstance(preset, str):
        raise TypeError(f"preset must be a name or a MemoryPreset, not {type(preset).__name__}")
    if preset not in MEMORY_PRESETS:
        raise ValueError(f"preset must be one of {', '.join(MEMORY_PRESETS)}, not {preset!r}")
    return MEMORY_PRESETS[preset]
