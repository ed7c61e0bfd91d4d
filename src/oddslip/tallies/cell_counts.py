"""Cells counted between the positives of their label: all that AUC and isotonic fits need.

The first pass collects the scores of the positives, which are few. The second finds the place of
every cell among them. Negatives are never sorted and never kept. Both passes are tallies whose
states are whole numbers, so the outcome is the same to the bit for any blocks, order and threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.core.labels import DenseLabels, Positives
from oddslip.core.panel import Kind, Panel, SparsePanel
from oddslip.core.tally import MergeableTally, State, owned
from oddslip.errors import InvalidInput
from oddslip.kernels.isotonic import (
    GAPS,
    count_pairs,
    fill_buckets,
    group_keys,
    place_cells,
    pool_labels,
    weigh_cells,
)
from oddslip.kernels.keys import LIMITS, UNSIGNED, keys_of, largest_key, scores_of
from oddslip.sources.base import Source

Ints = NDArray[np.int64]

MAX_POOLED = 2**12  # labels of weighed rows: their units, 2**50 in all, must not overflow


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


class Knots(NamedTuple):
    """Label j's knots are ``indptr[j]:indptr[j + 1]`` of the scores x and probabilities y."""

    indptr: Ints
    x: NDArray[np.float64]
    y: NDArray[np.float64]

    @classmethod
    def in_a_row(cls, parts: Sequence[Knots]) -> Knots:
        """Knots of neighbouring labels as one."""
        sizes = [np.diff(part.indptr) for part in parts]
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        return cls(indptr, *(np.concatenate([part[i] for part in parts]) for i in (1, 2)))


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Where the negatives of every label lie among its positives.

    Label j has the distinct positive keys ``keys[indptr[j]:indptr[j + 1]]``. They cut the scores
    into one more interval than there are keys, the first at ``indptr[j] + j`` in the arrays of
    intervals. The negatives of a label without positives are not looked at.

    Attributes
    ----------
    indptr : ndarray of shape (n_labels + 1,)
    keys : ndarray
        Distinct keys of the positives, ascending within a label; `scores_of` gives the scores.
    positives, negatives_at : ndarray
        Cells at each key.
    negatives_between, largest_between : ndarray
        For each interval its number of negatives and their largest key, 0 if there is none.
    lowest : ndarray of shape (n_labels,)
        Lowest key of all cells of the label.
    n_rows : int
    n_cells : int or ndarray
        Cells per label: the rows, or rows x labels if pooled; of each label where some are absent.
    kind : {"probability", "margin"}
    positives_between : ndarray, optional
        For each interval its positives, where not all of their keys are listed: knots are the same
        as long as every key is listed at which a block of the fit starts. Areas are not known then.

    Where rows have weights, cells are counted in units of them: see `SampleWeight`.

    Examples
    --------
    >>> from oddslip.tallies.cell_counts import count_cells
    >>> from oddslip.sources import open_source
    >>> counts = count_cells(open_source([[0.2], [0.3], [0.7]], [[0], [1], [0]]))
    >>> counts.n_positives, counts.n_negatives, counts.auc()
    (array([1]), array([2]), array([0.5]))
    """

    indptr: Ints
    keys: NDArray[Any]
    positives: Ints
    negatives_at: Ints
    negatives_between: Ints
    largest_between: NDArray[Any]
    lowest: NDArray[Any]
    n_rows: int
    n_cells: Any
    kind: Kind
    positives_between: Ints | None = None

    @property
    def n_labels(self) -> int:
        """Labels counted; 1 if pooled."""
        return self.indptr.size - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the scores that were counted."""
        return np.dtype(np.float32 if self.keys.dtype == np.uint32 else np.float64)

    @property
    def n_positives(self) -> Ints:
        """Positives per label."""
        listed = np.diff(np.concatenate([[0], np.cumsum(self.positives)])[self.indptr])
        if self.positives_between is None:
            return listed
        starts = self.indptr[:-1] + np.arange(self.n_labels)  # of intervals: one more than keys
        return np.asarray(listed + np.add.reduceat(self.positives_between, starts))

    @property
    def n_negatives(self) -> Ints:
        """Negatives per label."""
        return np.asarray(self.n_cells - self.n_positives)

    def merge(self, other: CellCounts) -> CellCounts:
        """Counts of both, for disjoint rows counted against the same keys."""
        same = self.kind == other.kind and np.array_equal(self.indptr, other.indptr)
        same = same and self.positives_between is None and other.positives_between is None
        if not (same and np.array_equal(self.keys, other.keys)):
            raise InvalidInput(
                "counts must be taken against the same positives to be merged, got different ones."
            )
        return replace(
            self,
            positives=self.positives + other.positives,
            negatives_at=self.negatives_at + other.negatives_at,
            negatives_between=self.negatives_between + other.negatives_between,
            largest_between=np.maximum(self.largest_between, other.largest_between),
            lowest=np.minimum(self.lowest, other.lowest),
            n_rows=self.n_rows + other.n_rows,
            n_cells=self.n_cells + other.n_cells,
        )

    def auc(self) -> NDArray[np.float64]:
        """Chance that a positive outscores a negative, a tie counting one half, per label.

        NaN where a label has no positive or no negative.
        """
        high, low = np.zeros((2, self.n_labels), np.int64)
        count_pairs(
            self.indptr, self.positives, self.negatives_at, self.negatives_between, high, low
        )
        counted = zip(self.n_positives.tolist(), self.n_negatives.tolist(), strict=True)
        pairs = [2 * p * n for p, n in counted]
        won = [(h << 24) + rest for h, rest in zip(high.tolist(), low.tolist(), strict=True)]
        return np.array(
            [w / p if p else np.nan for w, p in zip(won, pairs, strict=True)], np.float64
        )

    def isotonic_knots(self, minimum_positives: int = 1, n_positives: Ints | None = None) -> Knots:
        """Knots of the isotonic fit of every label: linear between them, constant outside.

        Parameters
        ----------
        minimum_positives : int
            Labels with fewer positives get no knots, and so does a label without any.
        n_positives : ndarray of shape (n_labels,), optional
            Positives of each label, where cells were counted in units of weight.

        Returns
        -------
        indptr : ndarray of shape (n_labels + 1,)
            Label j has the knots from ``indptr[j]`` to ``indptr[j + 1]``.
        x, y : ndarray
            Scores, strictly ascending within a label, and fitted probabilities, ascending.
        """
        size = 2 * (self.keys.size + self.n_labels)
        indptr = np.empty(self.n_labels + 1, np.int64)
        knots, values = np.empty(size, self.keys.dtype), np.empty(size)
        n_knots = pool_labels(
            self.indptr,
            self.keys,
            self.positives,
            self.negatives_at,
            self.negatives_between,
            self.largest_between,
            self.lowest,
            (self.n_positives if n_positives is None else n_positives) >= max(1, minimum_positives),
            indptr,
            knots,
            values,
            self.positives_between,
        )
        scores = scores_of(knots[:n_knots], self.kind).astype(np.float64)
        return Knots(indptr, scores, values[:n_knots].copy())


def count_cells(
    source: Source,
    pooled: bool = False,
    threads: int | None = None,
    among: DistinctKeys | None = None,
    only: NDArray[np.bool_] | None = None,
) -> CellCounts:
    """Count the negatives of every label between its positives, in two passes over the source.

    Parameters
    ----------
    source : Source
        With labels; see `open_source`.
    pooled : bool
        Treat the cells of all labels as those of one.
    threads : int, optional
        As many as there are cores unless told.
    among : DistinctKeys, optional
        Count among these keys, which may be more than the source's own. Folds counted among the
        positives of all of them can be merged: see `CellCounts.merge`.
    only : ndarray of bool, optional
        Labels to look at; the others are counted as if they had no positive.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> scores = [[0.1], [0.4], [0.4], [0.8], [0.9]]
    >>> counts = count_cells(open_source(scores, [[0], [0], [1], [1], [0]]))
    >>> counts.negatives_between, counts.negatives_at
    (array([1, 0, 1]), array([1, 0]))
    >>> counts.auc()
    array([0.58333333])
    >>> indptr, x, y = counts.isotonic_knots()
    >>> x, y
    (array([0.1, 0.4, 0.9]), array([0. , 0.5, 0.5]))
    """
    if pooled and source.sample_weight is not None and source.n_labels > MAX_POOLED:
        raise InvalidInput(
            f"a pooled map takes sample_weight with at most {MAX_POOLED:,} labels, "
            f"got {source.n_labels:,}."
        )
    first = PositiveKeys(source.n_labels, source.dtype, pooled=pooled, only=only)
    distinct = source.run(first, threads=threads, what="positives").result()
    if among is not None:
        distinct = distinct.among(among)
    second = IntervalCounts(distinct, source.kind, pooled=pooled)
    return source.run(second, threads=threads, what="cells").result()


class PositiveKeys(MergeableTally):
    """First pass: the keys of the positives of every label, or of all labels pooled.

    Parameters
    ----------
    n_labels : int
    dtype : dtype of the scores
    pooled : bool
        Treat all cells as one label's.
    only : ndarray of bool, optional
        Labels to look at.

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
        only: NDArray[np.bool_] | None = None,
    ) -> None:
        self.n_labels, self.dtype, self.pooled = n_labels, np.dtype(dtype), pooled
        self.only = only
        self._labels: list[NDArray[np.int32]] = []
        self._keys: list[NDArray[Any]] = []
        self._units: list[Ints] = []  # where rows have weights

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"n_labels": self.n_labels, "dtype": self.dtype, "pooled": self.pooled,
                "only": self.only}  # fmt: skip

    def add(self, panel: Panel) -> None:
        """Take the positives of one block of rows."""
        indptr, labels = panel.positives()
        rows = np.repeat(np.arange(panel.n_rows), np.diff(indptr))
        if self.only is not None:
            kept = self.only[labels]
            rows, labels = rows[kept], labels[kept]
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
    labels: NDArray[np.int32], keys: NDArray[Any], units: Ints, ends: Ints
) -> DistinctKeys:
    """The distinct keys of every label, counted in units of weight."""
    order = np.lexsort((keys, labels))
    ordered = keys[order]
    firsts = np.flatnonzero(starts_of_runs(ordered, ends))
    sums = np.concatenate([[0], np.cumsum(units[order])])
    return DistinctKeys(np.searchsorted(firsts, ends), ordered[firsts[:-1]], np.diff(sums[firsts]))


class IntervalCounts:
    """Second pass: how many cells lie at each positive's key and between two neighbours.

    Parameters
    ----------
    distinct : DistinctKeys
        Result of the first pass over the same rows.
    kind : {"probability", "margin"}
    pooled : bool
        As in the first pass.

    Examples
    --------
    >>> panel = Panel([[0.25], [0.5], [0.75]], [[0], [1], [0]])
    >>> first = PositiveKeys(1, "float64")
    >>> first.add(panel)
    >>> second = IntervalCounts(first.result(), panel.kind)
    >>> second.add(panel)
    >>> second.result().negatives_between
    array([1, 1])
    """

    NEAR, ROOM = 2**16 - 1, 2**32 - 1  # cells that 16-bit and 32-bit numbers can surely count

    def __init__(
        self,
        distinct: DistinctKeys,
        kind: Kind,
        *,
        pooled: bool = False,
        _buckets: _Buckets | None = None,
    ) -> None:
        self.distinct, self.kind, self.pooled = distinct, kind, pooled
        self._buckets: _Buckets | None = _buckets or _make_buckets(distinct, kind)
        n_labels = distinct.indptr.size - 1
        # Many of these lie in memory at a time, one for every fold: numbers are as short as they
        # can be, and become wider when more cells might come than they can count.
        self._recent: NDArray[Any] = np.zeros(2 * distinct.keys.size + n_labels, np.uint16)
        self._largest = np.zeros(distinct.keys.size + n_labels, distinct.keys.dtype)
        self._kept: Ints | None = None
        self._unkept = 0
        limit = LIMITS[distinct.keys.dtype, kind]
        self._lowest = np.full(n_labels, limit, distinct.keys.dtype)
        self._n_rows = 0
        self._n_cells: Any = 0

    @property
    def nbytes(self) -> int:
        """Memory that the counts take, save for the tables."""
        kept = 0 if self._kept is None else self._kept.nbytes
        return self._recent.nbytes + self._largest.nbytes + self._lowest.nbytes + kept

    def empty_like(self) -> Self:
        """An empty tally of the same kind; the tables are shared."""
        return type(self)(**self.spec(), _buckets=self._buckets)

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one, which makes its own tables."""
        return {"distinct": self.distinct, "kind": self.kind, "pooled": self.pooled}

    def state(self) -> State:
        """Counts as wide numbers, and the ends."""
        return {
            "counts": (self._counts(), "add"),
            "largest": (self._largest, "max"),
            "lowest": (self._lowest, "min"),
            "n_rows": (np.array([self._n_rows]), "add"),
            "n_cells": (np.zeros(self._lowest.size, np.int64) + self._n_cells, "add"),
        }

    def restore(self, state: State) -> None:
        """Take over counts and ends."""
        self._kept, self._unkept = owned(state["counts"][0]), 0
        self._recent[:] = 0
        self._largest = owned(state["largest"][0])
        self._lowest = owned(state["lowest"][0])
        self._n_rows = int(state["n_rows"][0][0])
        n_cells = owned(state["n_cells"][0])  # of each label; one number where they are alike
        alike = n_cells.size > 0 and bool((n_cells == n_cells[0]).all())
        self._n_cells = int(n_cells[0]) if alike else n_cells

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        if isinstance(panel, SparsePanel):
            return self._add_listed(panel)
        if panel.absent is not None:
            return self._add_present(panel)
        keys = panel.keys()
        if largest_key(keys) > panel.limit:
            keys = panel.mended().keys()
        n_columns = panel.n_labels
        owners = np.zeros(n_columns, np.int64) if self.pooled else np.arange(n_columns)
        n_cells = panel.n_rows * (n_columns if self.pooled else 1)
        indptr, own_keys, _ = self.distinct
        if panel.sample_weight is None:
            self._make_room(n_cells)
            place_cells(
                keys, owners, indptr, own_keys, *self._tables, self._recent, self._largest,
                self._lowest,
            )  # fmt: skip
        else:
            units = panel.sample_weight.units
            n_cells = int(units.sum()) * (n_columns if self.pooled else 1)
            if self._kept is None:
                self._kept = np.zeros(len(self._recent), np.int64)
            weigh_cells(
                keys, owners, units, indptr, own_keys, self._kept, self._largest, self._lowest
            )
        self._n_rows += panel.n_rows
        self._n_cells = self._n_cells + n_cells
        return None

    def _add_listed(self, panel: SparsePanel) -> None:
        """Take the cells that a block lists."""
        labels = np.zeros_like(panel.listed.indices) if self.pooled else panel.listed.indices
        self._weigh(panel, Positives(panel.listed.indptr, labels), panel.cell_keys())

    def _weigh(self, panel: Panel, listed: Positives, keys: NDArray[Any]) -> None:
        """Take listed cells of rows, each as often as its row counts."""
        indptr, own_keys, _ = self.distinct
        if self._kept is None:
            self._kept = np.zeros(len(self._recent), np.int64)
        owners = listed.indices.astype(np.int64)
        weight = panel.sample_weight
        parts = [(0, keys.size, 1)]
        if weight is not None:
            ends = listed.indptr.tolist()
            parts = list(zip(ends[:-1], ends[1:], weight.units.tolist(), strict=True))
        for start, stop, units in parts:
            weigh_cells(
                np.ascontiguousarray(keys[None, start:stop]), owners[start:stop],
                np.full(1, units, np.int64), indptr, own_keys, self._kept, self._largest,
                self._lowest,
            )  # fmt: skip
        each = np.ones(panel.n_rows, np.int64) if weight is None else weight.units
        counted = np.zeros(indptr.size - 1, np.int64)
        np.add.at(counted, owners, np.repeat(each, listed.counts))
        self._n_rows += panel.n_rows
        self._n_cells = self._n_cells + (int(counted[0]) if self.pooled else counted)

    def _add_present(self, panel: Panel) -> None:
        """Take a block with absent cells: all of it filled up, less what was filled in.

        What is filled in stands in the same column already, so no extreme changes; save in
        columns without a cell, whose extremes are put back.
        """
        absent = panel.absent
        assert absent is not None
        mostly = 2 * absent.indices.size > panel.n_rows * panel.n_labels
        if panel.sample_weight is not None or self.pooled or mostly:
            there = panel.present()
            assert there is not None
            checked = panel.checked()
            listed = DenseLabels(there).positives(0, panel.n_rows)
            keys = checked.keys().reshape(-1)[listed.places(panel.n_labels)]
            labels = np.zeros_like(listed.indices) if self.pooled else listed.indices
            return self._weigh(panel, Positives(listed.indptr, labels), keys)
        scores, some, times = panel.filled()
        empty = times == panel.n_rows
        lowest, largest = self._lowest.copy(), self._largest.copy()
        indptr, own_keys, _ = self.distinct
        owners = np.arange(panel.n_labels)
        self._make_room(panel.n_rows)
        arguments = (owners, indptr, own_keys, *self._tables)
        ends = self._largest, self._lowest
        place_cells(keys_of(scores, panel.kind), *arguments, self._recent, *ends)
        once = np.zeros_like(self._recent)
        place_cells(keys_of(some, panel.kind), *arguments, once, *(each.copy() for each in ends))
        n_keys = np.diff(indptr)
        self._recent -= once * np.repeat(times, 2 * n_keys + 1).astype(once.dtype)
        if empty.any():
            self._lowest[empty] = lowest[empty]
            of_empty = np.repeat(empty, n_keys + 1)
            self._largest[of_empty] = largest[of_empty]
        self._n_rows += panel.n_rows
        self._n_cells = self._n_cells + (panel.n_rows - times).astype(np.int64)
        return None

    def _make_room(self, n_cells: int) -> None:
        """Move the counts to wider numbers before so many more cells might overflow them."""
        if self._unkept + n_cells > self.NEAR:
            self._recent = self._recent.astype(np.uint32, copy=False)
        if self._unkept + n_cells > self.ROOM:
            self._kept = self._counts()
            self._recent[:] = 0
            self._unkept = 0
        self._unkept += n_cells

    def _counts(self) -> Ints:
        recent = self._recent.astype(np.int64)
        if self._kept is not None:
            recent += self._kept
        return recent

    def merge(self, other: Self) -> None:
        """Take over what another tally has counted."""
        self._make_room(other._unkept)
        # Counts that were wide and have been moved are small again.
        self._recent += other._recent.astype(self._recent.dtype, copy=False)
        if other._kept is not None:
            self._kept = other._kept.copy() if self._kept is None else self._kept + other._kept
        np.maximum(self._largest, other._largest, out=self._largest)
        np.minimum(self._lowest, other._lowest, out=self._lowest)
        self._n_rows += other._n_rows
        self._n_cells = self._n_cells + other._n_cells

    @property
    def _tables(self) -> _Buckets:
        if self._buckets is None:
            self._buckets = _make_buckets(self.distinct, self.kind)
        return self._buckets

    def close(self) -> None:
        """Let go of the look-up tables, once all rows were taken: they take more than counts."""
        self._buckets = None

    def cut(self, first: int, last: int) -> Self:
        """What was counted of the labels from ``first`` to before ``last``; takes no more rows."""
        indptr, keys, positives = self.distinct
        start, stop = int(indptr[first]), int(indptr[last])
        slots, gaps = slice(2 * start + first, 2 * stop + last), slice(start + first, stop + last)
        part = copy(self)
        part.distinct = DistinctKeys(
            indptr[first : last + 1] - start, keys[start:stop], positives[start:stop]
        )
        part._recent, part._largest = self._recent[slots].copy(), self._largest[gaps].copy()
        part._kept = None if self._kept is None else self._kept[slots].copy()
        part._lowest = self._lowest[first:last].copy()
        if np.ndim(self._n_cells):
            part._n_cells = self._n_cells[first:last].copy()
        return part

    def result(self) -> CellCounts:
        """Counts of the negatives: those of all cells less the positives' own."""
        indptr, keys, positives = self.distinct
        n_labels = indptr.size - 1
        counts = self._counts()
        is_key = np.zeros(counts.size, np.bool_)
        is_key[2 * np.arange(keys.size) + 1 + np.repeat(np.arange(n_labels), np.diff(indptr))] = 1
        return CellCounts(
            indptr=indptr,
            keys=keys,
            positives=positives,
            negatives_at=counts[is_key] - positives,
            negatives_between=counts[~is_key],
            largest_between=self._largest.copy(),
            lowest=self._lowest.copy(),
            n_rows=self._n_rows,
            n_cells=self._n_cells,
            kind=self.kind,
        )


def positive_scores(panel: Panel, rows: Ints, labels: NDArray[np.int32]) -> NDArray[Any]:
    """Scores of cells that are there, given in row order."""
    if not isinstance(panel, SparsePanel):
        return np.asarray(panel.scores[rows, labels])
    places = panel.listed.places(panel.n_labels)
    return np.asarray(panel.cells[np.searchsorted(places, rows * panel.n_labels + labels)])


def starts_of_runs(ordered: NDArray[Any], ends: Ints) -> NDArray[np.bool_]:
    """Where a run of equal keys starts; runs do not cross the ends of labels.

    One place more than there are keys, so that each run has an end.
    """
    is_first = np.ones(ordered.size + 1, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1 : ordered.size])
    is_first[ends] = True
    return is_first


class _Buckets(NamedTuple):
    """Look-up tables over the bits of keys; see `fill_buckets`."""

    low: int
    high: int
    indptr: Ints
    entries: NDArray[np.uint32]
    shifts: NDArray[np.uint64]
    steps: NDArray[np.uint64]


def _make_buckets(distinct: DistinctKeys, kind: Kind) -> _Buckets:
    """About eight buckets per key, fewer where they would outgrow a core's cache."""
    n_keys = np.diff(distinct.indptr)
    alive = np.flatnonzero(n_keys)
    spans = np.zeros(n_keys.size, np.uint64)
    low, high = GAPS[distinct.keys.dtype, kind]
    squeezed = distinct.keys - np.clip(distinct.keys, low, high)  # up to a constant that cancels
    spans[alive] = squeezed[distinct.indptr[alive + 1] - 1] - squeezed[distinct.indptr[alive]]
    wanted = [max((2 * m).bit_length(), min((8 * m).bit_length(), 15)) for m in n_keys.tolist()]
    excess = [s.bit_length() - w for s, w in zip(spans.tolist(), wanted, strict=True)]
    shifts = np.maximum(excess, 0).astype(np.uint64)
    sizes = np.where(n_keys > 0, (spans >> shifts).astype(np.int64) + 1, 0)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    entries = np.empty(int(indptr[-1]), np.uint32)
    steps = np.empty(n_keys.size, np.uint64)
    fill_buckets(distinct.indptr, distinct.keys, low, high, indptr, shifts, entries, steps)
    return _Buckets(low, high, indptr, entries, shifts, steps)
