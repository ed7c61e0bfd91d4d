"""First pass: the distinct keys of every label's positives."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput
from oddslip.kernels.isotonic import group_keys
from oddslip.kernels.keys import UNSIGNED, keys_of, largest_key
from oddslip.panels import Panel

Ints = NDArray[np.int64]


class DistinctKeys(NamedTuple):
    """Label j's positives have keys ``keys[indptr[j]:indptr[j + 1]]``, each ``counts`` times."""

    indptr: Ints
    keys: NDArray[Any]
    counts: Ints

    def among(self, others: DistinctKeys) -> DistinctKeys:
        """These counts at the keys of ``others``, which hold all of these and maybe more."""
        counts = np.zeros(others.keys.size, np.int64)
        for label in range(self.indptr.size - 1):
            start, stop = others.indptr[label : label + 2]
            keys = self.keys[self.indptr[label] : self.indptr[label + 1]]
            places = start + np.searchsorted(others.keys[start:stop], keys)
            if keys.size and (places[-1] == stop or (others.keys[places] != keys).any()):
                raise InvalidInput(
                    "the keys to count among must hold those of all positives, got a positive of "
                    f"label {label} that they lack. Collect them from all rows first."
                )
            counts[places] = self.counts[self.indptr[label] : self.indptr[label + 1]]
        return others._replace(counts=counts)


class PositiveKeys:
    """First pass: the keys of the positives of every label, or of all labels pooled.

    Parameters
    ----------
    n_labels : int
    dtype : dtype of the scores
    pooled : bool
        Treat all cells as one label's.

    Examples
    --------
    >>> tally = PositiveKeys(1, "float32")
    >>> tally.add(Panel(np.float32([[0.5], [0.5], [0.25]]), [[1], [1], [1]]))
    >>> distinct = tally.result()
    >>> distinct.keys.view("float32"), distinct.counts
    (array([0.25, 0.5 ], dtype=float32), array([1, 2]))
    """

    def __init__(self, n_labels: int, dtype: Any, *, pooled: bool = False) -> None:
        self.n_labels, self.dtype, self.pooled = n_labels, np.dtype(dtype), pooled
        self._labels: list[NDArray[np.int32]] = []
        self._keys: list[NDArray[Any]] = []

    def fresh(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(self.n_labels, self.dtype, pooled=self.pooled)

    def add(self, panel: Panel) -> None:
        """Take the positives of one block of rows."""
        indptr, labels = panel.positives()
        rows = np.repeat(np.arange(panel.n_rows), np.diff(indptr))
        keys = keys_of(np.ascontiguousarray(panel.scores[rows, labels][None]), panel.kind)
        if largest_key(keys) > panel.limit:
            scores = panel.mended().scores[rows, labels]
            keys = keys_of(np.ascontiguousarray(scores[None]), panel.kind)
        self._labels.append(np.zeros_like(labels) if self.pooled else labels)
        self._keys.append(np.array(keys[0]))

    def merge(self, other: Self) -> None:
        """Take over the positives another tally has seen."""
        self._labels += other._labels
        self._keys += other._keys

    def result(self) -> DistinctKeys:
        """The distinct keys of every label in ascending order, with their counts."""
        n_labels = 1 if self.pooled else self.n_labels
        labels = np.concatenate([np.empty(0, np.int32), *self._labels])
        ends = np.zeros(n_labels + 1, np.int64)
        np.cumsum(np.bincount(labels, minlength=n_labels), out=ends[1:])
        keys = np.concatenate([np.empty(0, UNSIGNED[self.dtype]), *self._keys])
        grouped = np.empty_like(keys)
        group_keys(labels, keys, ends[:-1].copy(), grouped)
        for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            grouped[start:stop].sort()
        is_first = np.ones(keys.size + 1, np.bool_)  # one more, so that each run has an end
        np.not_equal(grouped[1:], grouped[:-1], out=is_first[1 : keys.size])
        is_first[ends] = True
        firsts = np.flatnonzero(is_first)
        return DistinctKeys(np.searchsorted(firsts, ends), grouped[firsts[:-1]], np.diff(firsts))
