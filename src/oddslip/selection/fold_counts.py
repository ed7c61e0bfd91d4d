"""Counts of every fold, all in one pass.

A fold has either counts between the positives, from which isotonic maps are made, or a summary of
log-odds, from which logistic maps are made. Both add up, so that the rows outside a fold are the
sum of the other folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from threading import Lock
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.logistic.moments import (
    Moments,
    Ranges,
    Summary,
    count_bins,
    weight_scale,
)
from oddslip.core.labels import Positives, SparseLabels
from oddslip.core.panel import Kind, Panel, SampleWeight, SparsePanel
from oddslip.core.passes import Passes
from oddslip.core.tally import MergeableTally, State, TallyGroup, nest_states, unnest_states
from oddslip.core.threads import release_memory
from oddslip.core.types import Array, Bools, Floats, Ints
from oddslip.kernels.buckets import count_rows, find_places, fold_probabilities, mark_buckets
from oddslip.kernels.keys import scores_of
from oddslip.kernels.logistic import N_MOMENTS
from oddslip.selection.folds import FoldAssignment
from oddslip.sources import Source
from oddslip.sources.base import BLOCK_BYTES, block_rows, join_positives
from oddslip.sources.views import take_rows
from oddslip.tallies.cell_counts import (
    CellCounts,
    DistinctKeys,
    IntervalCounts,
    Knots,
    PositiveKeys,
    starts_of_runs,
)

KEYS_AT_ONCE = 2**20  # positives of which counts are joined at a time
BUCKET_BITS = 20  # of the number of buckets that all cells are counted in
FARTHEST_NAT = 40.0  # margins beyond it share a bucket
MIN_CELLS = 2**24  # below, all positives of a pooled fit are soon listed
SUMMED_APART = 4  # summaries of groups of blocks that are held at a time, about: rows wait in each
BINS_SHARE = 0.5  # of the bins of a fit on all rows: folds are held all at once, and need less
AT_ONCE = 256 * 1024 * 1024  # bytes of summaries of folds up to which repeats share a pass


class FoldedPositives(NamedTuple):
    """Positive cells of all rows, in row order on one machine, and the rows of every fold.

    Attributes
    ----------
    labels, keys : ndarray of shape (n_positives,)
        Label and score key of each positive.
    folds : ndarray of shape (n_positives, n_repeats)
        Its fold in every repeat.
    units : ndarray of shape (n_positives,), optional
        Units of sample weight; None where rows count alike.
    n_rows : ndarray of shape (n_repeats, n_folds)
        Rows of every fold.
    totals : ndarray of shape (n_repeats, n_folds) or (n_repeats, n_folds, n_labels)
        Weight of the rows of every fold; of each label's present cells, where some are absent.
    """

    labels: NDArray[np.int32]
    keys: Array
    folds: NDArray[np.uint16]
    units: Ints | None
    n_rows: Ints
    totals: Floats
    n_evaluated: int

    def counts(self, n_labels: int) -> Ints:
        """Positives of each label."""
        return np.bincount(self.labels, minlength=n_labels)


class PositiveTally(MergeableTally):
    """Collects the positives with their folds, after checking every cell.

    Later passes read rows of folds, whose numbers are no longer those of the user's rows. So an
    invalid cell is found here, where its row has its name.
    """

    JOINED: ClassVar = {
        "_folds": "append",
        "n_rows": "add",
        "n_evaluated": "add",
        "totals": "add",
    }

    def __init__(
        self, n_labels: int, dtype: Any, folds: Sequence[FoldAssignment], partial: bool = False
    ) -> None:
        self.n_labels, self.dtype = n_labels, np.dtype(dtype)
        self.folds, self.partial = tuple(folds), partial
        self.cells = PositiveKeys(n_labels, dtype)
        self._folds: list[NDArray[np.uint16]] = []
        self.n_rows = np.zeros((len(self.folds), self.folds[0].n_folds), np.int64)
        self.totals = np.zeros((*self.n_rows.shape, n_labels) if partial else self.n_rows.shape)
        self.n_evaluated = 0

    def add(self, panel: Panel) -> None:
        """Take the positives of one block."""
        self.cells.add(panel.checked())
        counts, weight = panel.positives().counts, panel.sample_weight
        folds = np.stack([each.of(panel) for each in self.folds], axis=1)
        self._folds.append(np.repeat(folds, counts, axis=0).astype(np.uint16))
        self.n_evaluated += int(np.count_nonzero(counts))
        times = None if weight is None else weight.times
        for repeat, column in enumerate(folds.T):
            n_folds = self.n_rows.shape[1]
            self.n_rows[repeat] += np.bincount(column, minlength=n_folds)
            if not self.partial:
                self.totals[repeat] += np.bincount(column, times, minlength=n_folds)
                continue
            for fold in range(n_folds):
                rows = take_rows(panel, np.flatnonzero(column == fold))
                self.totals[repeat, fold] += rows.n_present()

    def merge(self, other: Self) -> None:
        """Take over another's positives."""
        super().merge(other)
        self.cells.merge(other.cells)

    def state(self) -> State:
        """Positives and rows."""
        return super().state() | self.cells.state()

    def restore(self, state: State) -> None:
        """Take over positives and rows."""
        super().restore(state)
        self.cells.restore(state)

    def result(self) -> FoldedPositives:
        """All positives."""
        none = np.empty((0, len(self.folds)), np.uint16)
        return FoldedPositives(
            labels=np.concatenate([np.empty(0, np.int32), *self.cells._labels]),
            keys=np.concatenate([np.empty(0, self.cells.key_type), *self.cells._keys]),
            folds=np.concatenate([none, *self._folds]),
            units=np.concatenate(self.cells._units) if self.cells._units else None,
            n_rows=self.n_rows,
            totals=self.totals,
            n_evaluated=self.n_evaluated,
        )


def find_distinct(
    labels: NDArray[np.int32], keys: Array, n_labels: int
) -> tuple[DistinctKeys, NDArray[np.integer]]:
    """The distinct keys of every label, counted as none yet, and the place of each cell's key."""
    # Short numbers are sorted by radix.
    order = np.argsort(labels.astype(np.min_scalar_type(max(n_labels - 1, 0))), kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_labels))])
    for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        cells = order[start:stop]
        order[start:stop] = cells[np.argsort(keys[cells])]
    ordered = keys[order]
    is_first = starts_of_runs(ordered, ends)
    firsts = np.flatnonzero(is_first)[:-1]
    places: Array = np.empty(keys.size, np.int32 if keys.size < 2**31 else np.int64)
    places[order] = np.cumsum(is_first[:-1]) - 1
    indptr = np.searchsorted(firsts, ends)
    return DistinctKeys(indptr, ordered[firsts], np.zeros(firsts.size, np.int64)), places


class FoldTallies:
    """The tallies of one fold, fed with its rows of several blocks: few rows at a time are dear."""

    def __init__(self, empty: Empty) -> None:
        self._positives: list[Positives] = []  # of the rows that wait
        self._weights: list[SampleWeight] = []
        self.share = empty.share
        self.counts = [tally.empty_like() for tally in empty.counts]
        self.ranges = None if empty.moments is None else Ranges(empty.moments.low.size)
        self.moments = None if empty.moments is None else empty.moments.empty_like()
        self._rows: Array | None = None
        self._panel: Panel | None = None
        self._n = 0

    def add(self, panel: Panel, rows: Ints, positives: Positives | None) -> None:
        """Take these rows of a block, whose positives are given if there are moments."""
        if isinstance(panel, SparsePanel) or panel.absent is not None:
            self.count()
            self._remember(panel, rows, positives)
            return self._count(take_rows(panel, rows))
        if self._rows is None:
            room = max(1, block_rows(panel.n_labels, panel.scores.itemsize) // self.share)
            self._rows = np.empty((room, panel.n_labels), panel.scores.dtype)
        for start in range(0, rows.size, len(self._rows)):
            some = rows[start : start + len(self._rows)]
            if self._n + some.size > len(self._rows):
                self.count()
            place = self._rows[self._n : self._n + some.size]
            # Row numbers are known to be right; "clip" only spares a copy that "raise" makes.
            np.take(panel.scores, some, axis=0, out=place, mode="clip")
            self._remember(panel, some, positives)
            self._n += some.size
            self._panel = panel
        return None

    def settle(self) -> None:
        """Count the rows that wait, and let go of their place."""
        self.count()
        self._rows = None

    def count(self) -> None:
        """Count the rows that wait."""
        if self._rows is None or self._panel is None or not self._n:
            return
        together = self._panel.rows(0, 0)
        together.scores = self._rows[: self._n]
        self._count(together)
        self._panel, self._n = None, 0

    def _remember(self, panel: Panel, rows: Ints, positives: Positives | None) -> None:
        """Keep positives and weights of rows that wait."""
        if positives is not None:
            self._positives.append(positives.take(rows))
        if panel.sample_weight is not None:
            self._weights.append(panel.sample_weight.take(rows))

    def _count(self, together: Panel) -> None:
        """Count rows that waited."""
        together.sample_weight = None
        if self._weights:
            units = np.concatenate([weight.units for weight in self._weights])
            together.sample_weight = SampleWeight(units, self._weights[0].unit)
            self._weights = []
        for tally in self.counts:
            tally.add(together)
        if self.ranges is not None and self.moments is not None:
            positives = join_positives(self._positives)
            self._positives = []
            together.labels = SparseLabels(*positives, (together.n_rows, together.n_labels))
            self.ranges.add(together)
            self.moments.add(together)

    @property
    def tallies(self) -> list[Any]:
        """All of them."""
        return [*self.counts, *(each for each in (self.ranges, self.moments) if each is not None)]

    def merge(self, other: FoldTallies) -> None:
        """Take over the rows of another; none of either may be waiting."""
        for tally, another in zip(self.tallies, other.tallies, strict=True):
            tally.merge(another)


class Empty(NamedTuple):
    """Tallies that every fold starts with; look-up tables are shared, bins are alike.

    ``share`` tallies wait for rows side by side: each waits for fewer.
    """

    counts: Sequence[IntervalCounts]
    moments: Moments | None
    share: int = 1


class FoldTally:
    """Tallies of each fold, all in one pass: a row goes to those of its fold."""

    def __init__(self, folds: FoldAssignment, empty: Empty) -> None:
        self.folds, self.empty, n_folds = folds, empty, folds.n_folds
        self._tallies = [FoldTallies(empty) for _ in range(n_folds)]
        self._locks = [Lock() for _ in range(n_folds)]
        if empty.moments is not None:  # sums of floats: see `oddslip.core.tally.Tally`
            self.blocks_apart = max(1, n_folds * empty.moments.moments.nbytes // BLOCK_BYTES)
        else:  # large, and as many threads can be at work in it as there are folds
            self.threads_served = n_folds

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of an empty one."""
        return {"folds": self.folds, "empty": self.empty}

    def state(self) -> State:
        """The states of every fold's tallies."""
        return nest_states(TallyGroup(fold.tallies).state() for fold in self.result())

    def restore(self, state: State) -> None:
        """Give every fold its own."""
        for fold, part in zip(self._tallies, unnest_states(state, len(self._tallies)), strict=True):
            TallyGroup(fold.tallies).restore(part)

    def add(self, panel: Panel) -> None:
        """Deal the rows of one block to their folds, those first in which no thread is at work."""
        here = self.folds.of(panel)
        positives = None if self.empty.moments is None else panel.positives()
        waiting = list(range(len(self._tallies)))
        for is_last in (False, True):
            busy = []
            for fold in waiting:
                if not self._locks[fold].acquire(blocking=is_last):
                    busy.append(fold)
                    continue
                try:
                    self._tallies[fold].add(panel, np.flatnonzero(here == fold), positives)
                finally:
                    self._locks[fold].release()
            waiting = busy

    def merge(self, other: Self) -> None:
        """Take over the counts of another tally, fold by fold."""
        for mine, theirs in zip(self.result(), other.result(), strict=True):
            mine.merge(theirs)

    def result(self) -> list[FoldTallies]:
        """The tallies of every fold, with no row left waiting."""
        for tallies in self._tallies:
            tallies.settle()
        return self._tallies


class FoldCounts:
    """Counts of the rows outside one fold, or of all rows, per label or pooled.

    Parameters
    ----------
    tallies : list of IntervalCounts
        One per fold, as if no cell were positive.
    positives : list of ndarray of shape (n_keys,)
        Positives of each fold at each key.
    positives_between : list of ndarray of shape (n_keys + 1,), optional
        Those in each interval, where not all keys are listed: see `CellCounts`.
    """

    def __init__(
        self,
        tallies: Sequence[IntervalCounts],
        positives: Sequence[Array],
        positives_between: Sequence[Array] | None = None,
    ) -> None:
        self.tallies, self.positives = tallies, positives
        self.positives_between = positives_between

    @property
    def nbytes(self) -> int:
        """Memory that the counts take."""
        parts: list[Any] = [*self.tallies, *self.positives]
        return sum(each.nbytes for each in parts)

    def without(self, left_out: int | None) -> CellCounts:
        """Counts of all rows but those of one fold; None leaves out none."""
        return self._part(left_out, 0, self.tallies[0].distinct.indptr.size - 1)

    def knots(self, left_out: int | None) -> Knots:
        """Knots of the isotonic fits without a fold, of some labels at a time.

        Counts of all labels without a fold, as wide numbers, would take more than those of folds.
        """
        indptr = self.tallies[0].distinct.indptr
        ends = [0]
        while ends[-1] < indptr.size - 1:
            last = np.searchsorted(indptr, indptr[ends[-1]] + KEYS_AT_ONCE, "right") - 1
            ends.append(max(ends[-1] + 1, int(last)))
        parts = [self._part(left_out, *each).isotonic_knots() for each in pairwise(ends)]
        return Knots.in_a_row(parts)

    def _part(self, left_out: int | None, first: int, last: int) -> CellCounts:
        """Counts of the labels from ``first`` to before ``last``."""
        first_kept, *others = [fold for fold in range(len(self.tallies)) if fold != left_out]
        total = self.tallies[first_kept].cut(first, last).copy()
        for fold in others:
            total.merge(self.tallies[fold].cut(first, last))
        cells = total.result()
        keys = slice(*self.tallies[0].distinct.indptr[[first, last]])
        positives = sum_whole(self.positives[fold][keys] for fold in (first_kept, *others))
        negatives_at = cells.negatives_at - positives
        if self.positives_between is None:
            return replace(cells, positives=positives, negatives_at=negatives_at)
        between = sum_whole(self.positives_between[fold] for fold in (first_kept, *others))
        return replace(
            cells,
            positives=positives,
            negatives_at=negatives_at,
            positives_between=between,
            negatives_between=cells.negatives_between - between,
        )


def sum_whole(parts: Iterable[Array]) -> Ints:
    """The sum of short numbers, in wide ones."""
    first, *others = parts
    total = first.astype(np.int64)
    for each in others:
        total += each.astype(np.int64, copy=False)
    return total


def summaries_bytes(n_labels: int) -> int:
    """Memory that the summaries of five folds take."""
    return 5 * n_labels * count_bins(n_labels, BINS_SHARE) * int(N_MOMENTS) * 8


class FoldStatistics(NamedTuple):
    """Counts of folds, per label (False) or pooled (True), and their summaries if asked for."""

    counts: dict[bool, FoldCounts]
    summaries: list[Summary]

    def summary(self, left_out: int | None) -> Summary:
        """Summary of all rows but those of one fold; None leaves out none."""
        return Summary.join([each for at, each in enumerate(self.summaries) if at != left_out])


class FoldCounter:
    """Counts the folds of a source; what does not depend on how they fall is kept.

    Parameters
    ----------
    source : Source
    positives : FoldedPositives
        Of all its rows.
    pooled : sequence of bool
        The counts wanted: per label (False), of all labels as one (True), or both.
    ranges : Ranges, optional
        Of all rows, where summaries are wanted as well. Their bins serve all folds.
    starting : ndarray of bool, optional
        Positives at which a block of a pooled fit may start: see `find_starting`.
    """

    def __init__(
        self,
        source: Source,
        positives: FoldedPositives,
        pooled: Sequence[bool],
        ranges: Ranges | None = None,
        starting: Bools | None = None,
    ) -> None:
        self.source, self.positives, self._starting = source, positives, starting
        self._places: list[NDArray[np.integer]] = []
        counts: list[IntervalCounts] = []
        labels = positives.labels
        for as_one in pooled:
            own_labels, keys = np.zeros_like(labels) if as_one else labels, positives.keys
            if as_one and starting is not None:
                own_labels, keys = own_labels[starting], keys[starting]
            distinct, places = find_distinct(own_labels, keys, 1 if as_one else source.n_labels)
            self._places.append(places)
            counts.append(IntervalCounts(distinct, source.kind, pooled=as_one))
        moments = None
        if ranges is not None:
            moments = Moments(
                *ranges.log_odds(source.kind),
                source.kind,
                source.n_labels,
                share=BINS_SHARE,
                scale=weight_scale(source.total_weight / source.n_rows),
            )
        self._empty = Empty(counts, moments)

    def count(
        self, folds: Sequence[FoldAssignment], first: int = 0
    ) -> Passes[list[FoldStatistics]]:
        """Counts and summaries of every fold in some repeats, in one pass.

        The repeats are those from ``first`` on. More passes only where the summaries are too large
        to be held together; none if nothing is wanted.
        """
        if not self._empty.counts and self._empty.moments is None:
            return [FoldStatistics({}, []) for _ in folds]
        at_once = len(folds)
        if self._empty.moments is not None:
            summary_bytes = folds[0].n_folds * self._empty.moments.moments.nbytes
            at_once = max(1, AT_ONCE // summary_bytes)
        statistics: list[FoldStatistics] = []
        for start in range(0, len(folds), at_once):
            some = folds[start : start + at_once]
            empty = self._empty._replace(share=len(some))
            # Counts are merged in any order. Sums that round wait for one another, so what holds
            # them should be small.
            kinds = [empty._replace(moments=None)] * bool(empty.counts)
            fewer = empty._replace(counts=(), share=SUMMED_APART * len(some))
            kinds += [fewer] * (empty.moments is not None)
            group = TallyGroup([FoldTally(each, kind) for kind, each in product(kinds, some)])
            tallies = (yield group).result()
            del group
            release_memory()
            pairs = zip(tallies[: len(some)], tallies[-len(some) :], strict=True)
            statistics += [
                self._collect(first + start + at, count_tallies, summed)
                for at, (count_tallies, summed) in enumerate(pairs)
            ]
        return statistics

    def narrow(self, pooled: Sequence[bool], summary: bool) -> None:
        """Count from now on only these of what was wanted, and let go of the rest."""
        wanted = [at for at, each in enumerate(self._empty.counts) if each.pooled in pooled]
        self._places = [self._places[at] for at in wanted]
        counts = [self._empty.counts[at] for at in wanted]
        self._empty = Empty(counts, self._empty.moments if summary else None)

    def _collect(
        self, repeat: int, count_tallies: list[FoldTallies], summed: list[FoldTallies]
    ) -> FoldStatistics:
        positives = self.positives
        fold_of, n_folds = positives.folds[:, repeat], len(count_tallies)
        units = None if positives.units is None else positives.units.astype(np.float64)
        by_pooling = {}
        for at, places in enumerate(self._places):
            empty, folds, between = self._empty.counts[at], fold_of, None
            keys = empty.distinct.keys
            if empty.pooled and self._starting is not None:
                folds = fold_of[self._starting]
                intervals = np.searchsorted(keys, positives.keys[~self._starting])
                between = _by_fold(
                    intervals, fold_of[~self._starting], n_folds, keys.size + 1, None
                )
            hits = _by_fold(places, folds, n_folds, keys.size, units)
            for fold_tallies in count_tallies:
                fold_tallies.counts[at].close()
            by_pooling[empty.pooled] = FoldCounts(
                [fold.counts[at] for fold in count_tallies], hits, between
            )
        n_rows, totals = positives.n_rows[repeat], positives.totals[repeat]
        summaries = [
            Summary(fold.ranges, (fold.moments,), n, total)
            for fold, n, total in zip(summed, n_rows.tolist(), list(totals), strict=True)
            if fold.ranges is not None and fold.moments is not None
        ]
        return FoldStatistics(by_pooling, summaries)


def _by_fold(
    places: NDArray[np.integer],
    fold_of: NDArray[np.integer],
    n_folds: int,
    size: int,
    units: Floats | None,
) -> list[Array]:
    """How many positives of each fold lie in each place, in numbers as short as can be."""
    hits_by_fold = []
    for fold in range(n_folds):
        inside = np.flatnonzero(fold_of == fold)
        weights = None if units is None else units[inside]
        hits = np.bincount(places[inside], weights, minlength=size)
        if units is None:
            hits = hits.astype(np.min_scalar_type(hits.max(initial=0)))
        hits_by_fold.append(hits)
    return hits_by_fold


# Of a pooled fit the cells of all labels are counted among the positives of all labels. Where both
# are many, most positives lie far from where the fit turns. Cells in buckets of scores, counted in
# the pass that collects the positives, say where it may turn: see `oddslip.kernels.buckets`.


class PooledBuckets(MergeableTally):
    """Cells of each fold in buckets of their scores, whatever their label."""

    JOINED: ClassVar = {"counts": "add"}

    def __init__(self, folds: FoldAssignment, dtype: Any, kind: Kind) -> None:
        self.folds, self.dtype, self.kind = folds, np.dtype(dtype), kind
        low, high = -FARTHEST_NAT, FARTHEST_NAT
        if kind == "probability":
            ends = np.array([2.0**-32, 1 - 2.0**-24], self.dtype)
            fold_probabilities(ends, folded := np.empty(2))
            low, high = folded.tolist()
        n_inner = 2**BUCKET_BITS
        # Half a bucket less, so that no rounding leads beyond the last.
        self.ranges = kind == "margin", low, high, (n_inner - 0.5) / (high - low)
        self.counts = np.zeros((folds.n_folds, n_inner + 2), np.uint32)

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        here = self.folds.of(panel).astype(np.uint8)
        scores = np.ascontiguousarray(panel.checked().scores)
        count_rows(scores, here, *self.ranges, self.counts)

    def result(self) -> NDArray[np.uint32]:
        """Cells of each fold in each bucket."""
        return self.counts

    def place(self, keys: Array) -> NDArray[np.int32]:
        """The bucket of each key."""
        places = np.empty(keys.size, np.int32)
        scores = np.ascontiguousarray(scores_of(keys, self.kind))
        find_places(scores, *self.ranges, self.counts.shape[1], places)
        return places

    def mark(self, keys: Array, fold_of: NDArray[np.integer]) -> Bools:
        """Which of these positives lie where a fit may turn, without any of the folds or with all.

        Every positive at which a block of such a fit starts is among them.
        """
        (n_folds, n_buckets), places = self.counts.shape, self.place(keys)
        hits = _by_fold(places, fold_of, n_folds, n_buckets, None)
        may_turn = np.zeros(n_buckets, np.bool_)
        for left_out in (None, *range(n_folds)):
            others = [fold for fold in range(n_folds) if fold != left_out]
            cells, positives = (
                sum_whole(each[fold] for fold in others) for each in (self.counts, hits)
            )
            # The first bucket and the last are never marked: there an empty one stands before and
            # behind all.
            pairs = np.zeros((n_buckets + 2, 2), np.uint32)
            pairs[1:-1, 0], pairs[1:-1, 1] = cells - positives, positives
            marks, numbers = np.zeros(len(pairs), np.uint8), np.zeros(len(pairs), np.int32)
            starts, n_held = np.array([0, pairs.size]), np.zeros(1, np.int64)
            mark_buckets(starts, pairs.reshape(-1), pairs.size << 32, marks, numbers, n_held)
            may_turn |= marks[1:-1].view(np.bool_)
        return np.asarray(may_turn[places])


def make_buckets(source: Source, folds: Sequence[FoldAssignment]) -> list[PooledBuckets]:
    """Buckets for every repeat; none where all positives are soon listed."""
    if source.sample_weight is not None or source.partial or folds[0].n_folds > 255:
        return []
    if not source.ordered or not MIN_CELLS <= source.n_rows * source.n_labels < 2**31:
        return []
    return [PooledBuckets(each, source.dtype, source.kind) for each in folds]


def find_starting(buckets: Sequence[PooledBuckets], positives: FoldedPositives) -> Bools | None:
    """Positives at which a block of a pooled fit may start, in any repeat."""
    if not buckets:
        return None
    marks = [tally.mark(positives.keys, positives.folds[:, at]) for at, tally in enumerate(buckets)]
    return np.asarray(np.any(marks, axis=0))
