from typing import Any

import numpy as np
from numpy.typing import NDArray

def rank_rows(
    keys: NDArray[Any],
    rows: NDArray[np.int64],
    k: int,
    columns: NDArray[np.int32],
    best: NDArray[Any],
    at_kth: NDArray[np.int64],
) -> None: ...
def rank_keys(
    keys: NDArray[Any], k: int, rows: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int32], NDArray[Any], NDArray[np.int64]]: ...
