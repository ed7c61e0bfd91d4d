"""The positives of all rows with their keys, and the distinct keys of every label."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.counting.positives import DistinctKeys, Ints
from oddslip.kernels.keys import UNSIGNED, keys_of
from oddslip.labels import Positives
from oddslip.panels import Panel


class PositiveCells(NamedTuple):
    """True labels of all rows, and the key of each of these cells."""

    positives: Positives
    keys: NDArray[Any]


class PositiveCellTally:
    """Collects the positives of all rows with their keys, and looks at every cell on the way.

    Later passes read rows of folds, whose numbers are no longer those of the user's rows. So a
    cell that is not valid is found here, where its row has its name.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self._parts: list[tuple[int, Ints, NDArray[np.int32], NDArray[Any]]] = []

    def fresh(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(self.dtype)

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        panel = panel.checked()
        indptr, labels = panel.positives()
        counts = np.diff(indptr)
        cells = panel.scores[np.repeat(np.arange(panel.n_rows), counts), labels]
        keys = keys_of(np.ascontiguousarray(cells[None]), panel.kind)[0]
        self._parts.append((panel.first_row, counts, labels, keys))

    def merge(self, other: Self) -> None:
        """Take over the rows of another tally."""
        self._parts += other._parts

    def result(self) -> PositiveCells:
        """The positives of all rows, in row order."""
        parts = sorted(self._parts, key=lambda part: part[0])
        counts = np.concatenate([[0], *(part[1] for part in parts)])
        labels = np.concatenate([np.empty(0, np.int32), *(part[2] for part in parts)])
        keys = np.concatenate([np.empty(0, UNSIGNED[self.dtype]), *(part[3] for part in parts)])
        return PositiveCells(Positives(np.cumsum(counts, dtype=np.int64), labels), keys)


def find_distinct(
    labels: NDArray[np.int32], keys: NDArray[Any], n_labels: int
) -> tuple[DistinctKeys, Ints]:
    """The distinct keys of every label, counted as none yet, and the place of each cell's key."""
    # Short numbers are sorted by radix.
    order = np.argsort(labels.astype(np.min_scalar_type(max(n_labels - 1, 0))), kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_labels))])
    for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        cells = order[start:stop]
        order[start:stop] = cells[np.argsort(keys[cells])]
    ordered = keys[order]
    is_first = np.ones(keys.size + 1, np.bool_)  # one more, so that each run has an end
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1 : keys.size])
    is_first[ends] = True
    firsts = np.flatnonzero(is_first)[:-1]
    places = np.empty(keys.size, np.int64)
    places[order] = np.cumsum(is_first[:-1]) - 1
    indptr = np.searchsorted(firsts, ends)
    return DistinctKeys(indptr, ordered[firsts], np.zeros(firsts.size, np.int64)), places
