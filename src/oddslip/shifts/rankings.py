"""The K highest cells of each row of a block of keys."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def rank_keys(
    keys: NDArray[Any], k: int
) -> tuple[NDArray[np.int32], NDArray[Any], NDArray[np.int64]]:
    """Columns and keys of each row's k highest, and how many cells of the row equal the k-th."""
    from oddslip.kernels.topk import rank_rows

    n_rows = keys.shape[0]
    columns = np.empty((n_rows, k), np.int32)
    best = np.empty((n_rows, k), keys.dtype)
    at_kth = np.empty(n_rows, np.int64)
    rank_rows(np.ascontiguousarray(keys), np.arange(n_rows), k, columns, best, at_kth)
    return columns, best, at_kth
