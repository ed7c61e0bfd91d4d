"""Tally of the positives' scores: distinct keys per label, with counts.

Tallies of cells place every cell among these keys, so negatives are never sorted and never stored.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.core.panel import Panel, SparsePanel
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Array, Bools, Ints
from oddslip.kernels.isotonic import group_keys
from oddslip.kernels.keys import UNSIGNED, keys_of, largest_key


class DistinctKeys(NamedTuple):
    """Label j's positives have keys ``keys[indptr[j]:indptr[j + 1]]``, each ``counts`` times."""

    indptr: Ints
    keys: Array
    counts: Ints


class PositiveKeys(MergeableTally):
    """First pass: the keys of the positives of every label, or of all labels pooled.

    Parameters
    ----------
    n_labels : int
    dtype : dtype of the scores
    pooled : bool
        Treat the cells of all labels as those of one.
    only : ndarray of bool, optional
        Labels to collect; all by default.

    Examples
    --------
    >>> tally = PositiveKeys(1, "float32")
    >>> tally.add(Panel(np.float32([[0.5], [0.5], [0.25]]), [[1], [1], [1]]))
    >>> distinct = tally.result()
    >>> distinct.keys.view("float32"), distinct.counts
    (array([0.25, 0.5 ], dtype=float32), array([1, 2]))
    """

    JOINED: ClassVar = {"_labels": "append", "_keys": "append", "_units": "append"}

    def __init__(
        self,
        n_labels: int,
        dtype: Any,
        *,
        pooled: bool = False,
        only: Bools | None = None,
    ) -> None:
        self.n_labels, self.dtype, self.pooled = n_labels, np.dtype(dtype), pooled
        self.only = only
        self._labels: list[NDArray[np.int32]] = []
        self._keys: list[Array] = []
        self._units: list[Ints] = []  # where rows have weights

    def add(self, panel: Panel) -> None:
        """Collect the positives of one block of rows."""
        indptr, labels = panel.positives()
        rows = np.repeat(np.arange(panel.n_rows), np.diff(indptr))
        if self.only is not None:
            selected = self.only[labels]
            rows, labels = rows[selected], labels[selected]
        keys = keys_of(np.ascontiguousarray(positive_scores(panel, rows, labels)[None]), panel.kind)
        if largest_key(keys) > panel.limit:
            scores = positive_scores(panel.mended(), rows, labels)
            keys = keys_of(np.ascontiguousarray(scores[None]), panel.kind)
        self._labels.append(np.zeros_like(labels) if self.pooled else labels)
        self._keys.append(np.array(keys[0]))
        if panel.sample_weight is not None:
            self._units.append(panel.sample_weight.units[rows])

    @property
    def key_type(self) -> Any:
        """Type of the keys."""
        return UNSIGNED[self.dtype]

    def result(self) -> DistinctKeys:
        """The distinct keys of every label in ascending order, with their counts."""
        n_labels = 1 if self.pooled else self.n_labels
        labels = np.concatenate([np.empty(0, np.int32), *self._labels])
        ends = np.zeros(n_labels + 1, np.int64)
        np.cumsum(np.bincount(labels, minlength=n_labels), out=ends[1:])
        keys = np.concatenate([np.empty(0, self.key_type), *self._keys])
        if self._units:
            return _weigh_distinct(labels, keys, np.concatenate(self._units), ends)
        grouped = np.empty_like(keys)
        group_keys(labels, keys, ends[:-1].copy(), grouped)
        for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            grouped[start:stop].sort()
        firsts = np.flatnonzero(starts_of_runs(grouped, ends))
        return DistinctKeys(np.searchsorted(firsts, ends), grouped[firsts[:-1]], np.diff(firsts))


def _weigh_distinct(
    labels: NDArray[np.int32], keys: Array, units: Ints, ends: Ints
) -> DistinctKeys:
    """The distinct keys of every label, counted in units of weight."""
    order = np.lexsort((keys, labels))
    ordered = keys[order]
    firsts = np.flatnonzero(starts_of_runs(ordered, ends))
    sums = np.concatenate([[0], np.cumsum(units[order])])
    return DistinctKeys(np.searchsorted(firsts, ends), ordered[firsts[:-1]], np.diff(sums[firsts]))


def positive_scores(panel: Panel, rows: Ints, labels: NDArray[np.int32]) -> Array:
    """Scores of the given cells, which must be present and in row order."""
    if not isinstance(panel, SparsePanel):
        return np.asarray(panel.scores[rows, labels])
    places = panel.positions.places(panel.n_labels)
    return np.asarray(panel.cells[np.searchsorted(places, rows * panel.n_labels + labels)])


def starts_of_runs(ordered: Array, ends: Ints) -> Bools:
    """Where a run of equal keys starts; runs do not cross the ends of labels.

    One place more than there are keys, so that each run has an end.
    """
    is_first = np.ones(ordered.size + 1, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1 : ordered.size])
    is_first[ends] = True
    return is_first
