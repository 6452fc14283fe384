"""One tier of a cascade: codes derived from the full-width rows, and which rows have them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hsca_fast._native import vectors as _native
from hsca_fast.vectors.arrays import Float32
from hsca_fast.vectors.prefix import EPS

# The leading codes hold this share of the energy: with less, too many rows survive them.
_LEADING_SHARE = 0.75


class CodedTier:
    """Codes of the first `width` coordinates of rows. A row without its flag has none, whatever its bytes say."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.codes: _native.TierCodes | None = None
        self._has = np.zeros(0, np.bool_)
        self._led_at = 0

    def missing(self, n: int) -> npt.NDArray[np.int64]:
        """Rows before `n` without codes."""
        has = self._has[:n]
        return np.concatenate([np.flatnonzero(~has), np.arange(len(has), n)])

    def complete(self, n: int) -> _native.TierCodes | None:
        """The codes, if each of `n` rows has them."""
        return self.codes if len(self._has) >= n and self._has[:n].all() else None

    def forget(self, rows: npt.NDArray[np.int64]) -> None:
        """These rows are about to change."""
        self._has[rows[rows < len(self._has)]] = False

    def fill(self, rows: Float32, runs: Sequence[tuple[int, int]]) -> None:
        """Makes the codes of ranges of rows. What fails (out of memory) is warned of, and stays missing."""
        try:
            if len(self._has) < len(rows):
                self._has = np.concatenate([self._has, np.zeros(len(rows) - len(self._has), np.bool_)])
            codes, lead = self.codes, self._new_lead(rows)
            if lead is not None and (codes is None or codes.lead != lead):  # new ones hold nothing yet
                codes, runs = _native.TierCodes(self.width, lead), [(0, len(rows))] if runs else []
            for begin, end in runs:
                assert codes is not None
                codes.encode(rows, begin, end, EPS)
            self.codes = codes
            for begin, end in runs:
                self._has[begin:end] = True
            if lead is not None:
                self._led_at = len(rows)
        except Exception as error:
            warnings.warn(
                f"tier {self.width} lacks {len(self.missing(len(rows)))} vectors ({error or type(error).__name__}); "
                "backfill() rebuilds them",
                RuntimeWarning,
                stacklevel=3,
            )

    def _new_lead(self, rows: Float32) -> int | None:
        """How many segments should lead, once there are twice the rows there were when that was last asked."""
        if self.codes is not None and len(rows) < 2 * self._led_at:
            return None
        return _native.leading_segments(rows, self.width, _LEADING_SHARE)


def runs_of(rows: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Sorted numbers as half-open ranges."""
    if not rows.size:
        return []
    cuts = np.flatnonzero(np.diff(rows) != 1)
    begins, ends = rows[np.append(0, cuts + 1)], rows[np.append(cuts, len(rows) - 1)] + 1
    return list(zip(begins.tolist(), ends.tolist(), strict=True))
