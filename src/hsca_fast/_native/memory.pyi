from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Real = TypeVar("_Real", np.float32, np.float64)
_Numbers = npt.NDArray[np.int64]
_Marks = npt.NDArray[np.uint8]
_Brightness = npt.NDArray[np.int32]

def score_step(
    attention: npt.NDArray[_Real],
    prefix: int,
    offsets: _Numbers,
    live: _Marks,
    n_scored: int,
    sink: str,
    most: int,
    brightness: _Brightness,
    peaks: _Brightness,
) -> bool | None: ...
def plan_prune(
    offsets: _Numbers,
    live: _Marks,
    exempt: _Marks,
    peaks: _Brightness,
    message_of: _Numbers,
    first_chunk: _Numbers,
    partner: _Numbers,
    budget: int,
    anchors: bool,
    keep: int,
) -> _Numbers: ...
