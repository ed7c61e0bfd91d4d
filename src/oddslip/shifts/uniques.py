"""Distinct scores of each label, counted exactly, some labels at a time."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.panels import Panel
from oddslip.sources import Source

KEPT_BYTES = 2**28


class DistinctTally:
    """Keys of the labels ``first`` to ``last``, kept until all rows were seen."""

    def __init__(self, first: int, last: int, decimals: int | None) -> None:
        self.first, self.last, self.decimals = first, last, decimals
        self.columns: list[NDArray[Any]] = []

    def fresh(self) -> Self:
        """An empty tally for another thread."""
        return type(self)(self.first, self.last, self.decimals)

    def add(self, panel: Panel) -> None:
        """Keep one block of rows, label by label."""
        cells = panel.scores[:, self.first : self.last].T
        if self.decimals is not None:
            cells = np.round(cells.astype(np.float64), self.decimals)
        # Adding 0.0 makes -0.0 equal to 0.0 in its bits as well; the copy is needed anyway.
        self.columns.append(np.ascontiguousarray(cells + cells.dtype.type(0)))

    def merge(self, other: Self) -> None:
        """Take over what another tally has seen."""
        self.columns += other.columns

    def result(self) -> NDArray[np.int64]:
        """Distinct scores per label. Any order of the bits will do, and whole numbers sort fast."""
        counts = np.empty(self.last - self.first, np.int64)
        for label in range(counts.size):
            cells = np.concatenate([columns[label] for columns in self.columns])
            bits = cells.view(np.uint32 if cells.itemsize == 4 else np.uint64)
            bits.sort()
            counts[label] = 1 + np.count_nonzero(bits[1:] != bits[:-1])
        return counts


def count_distinct(
    source: Source,
    decimals: int | None = None,
    *,
    threads: int | None = None,
    kept_bytes: int = KEPT_BYTES,
) -> NDArray[np.int64]:
    """Distinct scores of each label, exactly; a pass over the rows for every tile of labels."""
    itemsize = source.dtype.itemsize if decimals is None else 8
    tile = max(1, kept_bytes // (source.n_rows * itemsize))
    counts = [
        source.run(
            DistinctTally(first, min(first + tile, source.n_labels), decimals), threads=threads
        ).result()
        for first in range(0, source.n_labels, tile)
    ]
    return np.concatenate(counts)
