"""Positives of dense 0/1 cells, as compressed rows. Eight cells are read at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from oddslip.kernels.compiling import kernel


@kernel("void(const uint8[:,::1], int64[::1])")
def count_positives(cells: Any, indptr: Any) -> None:
    """``indptr`` of the compressed rows: running count of the true cells."""
    for i in range(cells.shape[0]):
        count = np.uint32(0)
        for j in range(cells.shape[1]):
            count += np.uint32(cells[i, j])
        indptr[i + 1] = indptr[i] + count


@kernel("void(const uint8[:,::1], const int64[::1], int32[::1])")
def fill_positives(cells: Any, indptr: Any, indices: Any) -> None:
    """Columns of the true cells, row after row."""
    n_labels = cells.shape[1]
    n_words = n_labels // 8
    for i in range(cells.shape[0]):
        place = indptr[i]
        if place == indptr[i + 1]:
            continue
        row = cells[i]
        words = row[: n_words * 8].view(np.uint64)
        for word in range(n_words):
            if words[word] != 0:
                for j in range(word * 8, word * 8 + 8):
                    if row[j] != 0:
                        indices[place] = j
                        place += 1
        for j in range(n_words * 8, n_labels):
            if row[j] != 0:
                indices[place] = j
                place += 1


@kernel(
    "void(const uint32[:,::1], const int64[::1], const int64[::1], const int32[::1], "
    "const uint32[::1], int8[::1])",
    "void(const uint64[:,::1], const int64[::1], const int64[::1], const int32[::1], "
    "const uint64[::1], int8[::1])",
)
def place_positives(keys: Any, rows: Any, indptr: Any, indices: Any, kth: Any, sides: Any) -> None:
    """Side of each positive against its row's k-th key: 1 above, 0 equal to it, -1 below."""
    for i in range(rows.shape[0]):
        for at in range(indptr[i], indptr[i + 1]):
            key = keys[rows[i], indices[at]]
            sides[at] = 1 if key > kth[i] else (0 if key == kth[i] else -1)
