from typing import Any

import numpy as np
import numpy.typing as npt

def number_columns(records: list[Any], names: tuple[str, ...]) -> npt.NDArray[np.float64]: ...
def float_rows(rows: list[Any], width: int, name: str) -> npt.NDArray[np.float32]: ...
