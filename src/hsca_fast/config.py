"""Every number a user may turn, its default, its range and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

MAX_WINDOW = 1000


@dataclass(frozen=True, slots=True)
class ScoringConfig:
    """How texts are scored.

    Parameters
    ----------
    window
        Content words less than this far apart in a sentence are neighbours (HSCA 2.1: "default 5 tokens"); 2 to 1000.

    Examples
    --------
    >>> ScoringConfig(window=8).window
    8
    """

    window: int = 5

    def __post_init__(self) -> None:
        if isinstance(self.window, bool) or not isinstance(self.window, int):
            raise TypeError(f"window must be an int, not {type(self.window).__name__}")
        if not 2 <= self.window <= MAX_WINDOW:
            raise ValueError(f"window must be between 2 and {MAX_WINDOW}, not {self.window}")
