"""What a scan over all records needs of each: a few numbers, no text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns:
    """A run of records.

    Attributes
    ----------
    sequence
        Ascending, without gaps.
    live
        False for what is archived or deleted.
    timestamp, last_access
        Seconds since the epoch; a record that was never used has NaN for its last access.
    superseded, compacted
        Whether a later record corrects it, and whether a summary stands for it.
    """

    sequence: npt.NDArray[np.int64]
    live: npt.NDArray[np.bool_]
    timestamp: npt.NDArray[np.float64]
    last_access: npt.NDArray[np.float64]
    superseded: npt.NDArray[np.bool_]
    compacted: npt.NDArray[np.bool_]
