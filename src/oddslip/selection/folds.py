"""Folds: every row belongs to one, by a seeded permutation; all folds are counted in one pass.

What a fold's rows come to is either counts between the positives, of which isotonic maps are made,
or a summary of log-odds, of which logistic maps are made. Both add up, so that the rows outside a
fold are the sum of the other folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from threading import Lock
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.calibrators.logistic.moments import (
    Moments,
    Ranges,
    Summary,
    count_bins,
    weight_scale,
)
from oddslip.core.labels import Positives, SparseLabels
from oddslip.core.panel import Kind, Panel, SampleWeight, SparsePanel
from oddslip.core.row_keys import FOLDS, Keys, hash_with_salt
from oddslip.core.tally import (
    MergeableTally,
    State,
    TallyGroup,
    nest_states,
    release_memory,
    unnest_states,
)
from oddslip.errors import InvalidInput
from oddslip.kernels.buckets import count_rows, find_places, fold_probabilities, mark_buckets
from oddslip.kernels.keys import UNSIGNED, keys_of, scores_of
from oddslip.kernels.logistic import N_MOMENTS
from oddslip.sources import Source
from oddslip.sources.base import BLOCK_BYTES, block_rows, join_positives
from oddslip.sources.views import take_rows
from oddslip.tallies.cell_counts import (
    CellCounts,
    DistinctKeys,
    IntervalCounts,
    Ints,
    Knots,
    positive_scores,
    starts_of_runs,
)

Folds = NDArray[np.int32]

KEYS_AT_ONCE = 2**20  # positives of which counts are joined at a time
BUCKET_BITS = 20  # of the number of buckets that all cells are counted in
FARTHEST_NAT = 40.0  # margins beyond it share a bucket
MIN_CELLS = 2**24  # below, all positives of a pooled fit are soon listed
SUMMED_APART = 4  # summaries of groups of blocks that are held at a time, about: rows wait in each
BINS_SHARE = 0.5  # of the bins of a fit on all rows: folds are held all at once, and need less
AT_ONCE = 256 * 1024 * 1024  # bytes of summaries of folds up to which repeats share a pass


class HashFolds(NamedTuple):
    """Folds decided by row keys: intervals of the salted key.

    ``cuts`` are the n_folds - 1 thresholds between them.
    """

    n_folds: int
    seed: int
    repeat: int
    cuts: NDArray[np.uint64]

    def of(self, panel: Panel) -> Folds:
        """The fold of each row of a panel."""
        return self.of_keys(panel.row_keys())

    def of_keys(self, keys: Keys) -> Folds:
        """The fold of each key."""
        hashes = hash_with_salt(keys, FOLDS, self.seed, self.repeat)
        return np.searchsorted(self.cuts, hashes, side="right").astype(np.int32)


def assign_folds(
    source: Source, n_folds: Any, *, seed: Any = DEFAULT_SEED, n_repeats: int = 1
) -> list[HashFolds]:
    """Folds of all rows, one assignment per repeat.

    Up to `MAX_SMALL_ROWS` rows the cuts are quantiles of the salted keys, so that folds differ by
    at most one id. Above, they are equal parts of all hashes, and the rows need not be known.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> (folds,) = assign_folds(open_source(np.full((7, 2), 0.5)), 3)
    >>> np.bincount(folds.of_keys(open_source(np.full((7, 2), 0.5)).row_keys())).tolist()
    [3, 2, 2]
    """
    _check_whole("n_folds", n_folds, 2)
    _check_whole("seed", seed, 0)
    keys = source.small_keys()
    if keys is not None:
        keys = np.unique(keys)
        if n_folds > keys.size:
            rows = f"n_rows={keys.size}" if keys.size == source.n_rows else f"{keys.size} row ids"
            raise InvalidInput(
                f"n_folds must be at most {rows}, got n_folds={n_folds}. Pass more rows."
            )
    return [
        HashFolds(n_folds, seed, repeat, _find_cuts(keys, n_folds, seed, repeat))
        for repeat in range(n_repeats)
    ]


def _find_cuts(keys: Keys | None, n_folds: int, seed: int, repeat: int) -> Keys:
    if keys is None:
        return np.array([2**64 * fold // n_folds for fold in range(1, n_folds)], np.uint64)
    hashes = np.sort(hash_with_salt(keys, FOLDS, seed, repeat))
    sizes = [len(part) for part in np.array_split(hashes, n_folds)]
    cuts: Keys = hashes[np.cumsum(sizes)[:-1]]
    return cuts


class Dealt(NamedTuple):
    """How rows fall: the fold of each or what decides it, of each positive cell, and sizes."""

    folds: Folds | HashFolds
    fold_of: NDArray[np.integer]
    n_rows: Ints
    n_present: NDArray[np.float64] | None = None  # cells that are there, of rows known by keys

    @classmethod
    def numbered(cls, folds: Folds, n_folds: int, positives: Positives) -> Dealt:
        """Rows whose folds are listed."""
        fold_of = np.repeat(folds.astype(np.min_scalar_type(n_folds)), positives.counts)
        return cls(folds, fold_of, np.bincount(folds, minlength=n_folds))


def draw_folds(n_rows: int, n_folds: Any, *, seed: Any = DEFAULT_SEED, n_repeats: int = 1) -> Folds:
    """The fold of every row, shape (n_repeats, n_rows).

    Each repeat takes one permutation from ``numpy.random.default_rng(seed)`` and cuts it into
    ``n_folds`` pieces that differ by at most one row.

    Examples
    --------
    >>> draw_folds(5, 2, seed=42)
    array([[1, 1, 0, 0, 0]], dtype=int32)
    """
    _check_whole("n_folds", n_folds, 2)
    _check_whole("seed", seed, 0)
    if n_folds > n_rows:
        raise InvalidInput(
            f"n_folds must be at most n_rows={n_rows}, got n_folds={n_folds}. Pass more rows."
        )
    rng = np.random.default_rng(seed)
    folds = np.empty((n_repeats, n_rows), np.int32)
    for repeat in folds:
        for fold, rows in enumerate(np.array_split(rng.permutation(n_rows), n_folds)):
            repeat[rows] = fold
    return folds


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInput(f"{name} must be a whole number, at least {least}, got {value!r}.")


class PositiveCells(NamedTuple):
    """True labels of all rows, and the key of each of these cells."""

    positives: Positives
    keys: NDArray[Any]


class _PositivesOfBlock(NamedTuple):
    """Positives of each row of a block, and the label and the key of each of these cells."""

    first_row: int
    counts: Ints
    labels: NDArray[np.int32]
    keys: NDArray[Any]


class PositiveCellTally:
    """Collects the positives of all rows with their keys, and looks at every cell on the way.

    With ``ranges`` it finds those of each label as well, for a summary of the folds.

    Later passes read rows of folds, whose numbers are no longer those of the user's rows. So a
    cell that is not valid is found here, where its row has its name.
    """

    def __init__(self, dtype: Any, ranges: Ranges | None = None) -> None:
        self.dtype, self.ranges = np.dtype(dtype), ranges
        self._blocks: list[_PositivesOfBlock] = []

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(self.dtype, None if self.ranges is None else self.ranges.empty_like())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"dtype": self.dtype, "ranges": self.ranges}

    def state(self) -> State:
        """Positives block by block, with each block's first row and rows; and the ranges."""
        places = [(block.first_row, block.counts.size) for block in self._blocks]
        none = np.empty(0, UNSIGNED[self.dtype])
        own: State = {
            "places": (np.array(places, np.int64).reshape(-1, 2), "append"),
            "counts": (_gathered(np.empty(0, np.int64), self._blocks, "counts"), "append"),
            "labels": (_gathered(np.empty(0, np.int32), self._blocks, "labels"), "append"),
            "keys": (_gathered(none, self._blocks, "keys"), "append"),
        }
        return nest_states([own, {} if self.ranges is None else self.ranges.state()])

    def restore(self, state: State) -> None:
        """Take over positives and ranges."""
        own, ranges = unnest_states(state, 2)
        first, sizes = own["places"][0].T
        rows = np.cumsum(sizes)[:-1]
        counts = np.split(own["counts"][0], rows)
        cells = np.cumsum([block.sum() for block in counts], dtype=np.int64)[:-1]
        labels, keys = (np.split(own[name][0], cells) for name in ("labels", "keys"))
        self._blocks = [
            _PositivesOfBlock(*block)
            for block in zip(first.tolist(), counts, labels, keys, strict=False)
        ]
        if self.ranges is not None:
            self.ranges.restore(ranges)

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        panel = panel.checked()
        if self.ranges is not None:
            self.ranges.add(panel)
        indptr, labels = panel.positives()
        counts = np.diff(indptr)
        cells = positive_scores(panel, np.repeat(np.arange(panel.n_rows), counts), labels)
        keys = keys_of(np.ascontiguousarray(cells[None]), panel.kind)[0]
        self._blocks.append(_PositivesOfBlock(panel.first_row, counts, labels, keys))

    def merge(self, other: Self) -> None:
        """Take over the rows of another tally."""
        self._blocks += other._blocks
        if self.ranges is not None and other.ranges is not None:
            self.ranges.merge(other.ranges)

    def result(self) -> PositiveCells:
        """The positives of all rows, in row order."""
        blocks = sorted(self._blocks, key=lambda block: block.first_row)
        counts = np.concatenate([[0], *(block.counts for block in blocks)])
        labels = np.concatenate([np.empty(0, np.int32), *(block.labels for block in blocks)])
        none = np.empty(0, UNSIGNED[self.dtype])
        keys = np.concatenate([none, *(block.keys for block in blocks)])
        return PositiveCells(Positives(np.cumsum(counts, dtype=np.int64), labels), keys)


def _gathered(none: NDArray[Any], blocks: list[_PositivesOfBlock], name: str) -> NDArray[Any]:
    return np.concatenate([none, *(getattr(block, name) for block in blocks)])


def find_distinct(
    labels: NDArray[np.int32], keys: NDArray[Any], n_labels: int
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
    places: NDArray[Any] = np.empty(keys.size, np.int32 if keys.size < 2**31 else np.int64)
    places[order] = np.cumsum(is_first[:-1]) - 1
    indptr = np.searchsorted(firsts, ends)
    return DistinctKeys(indptr, ordered[firsts], np.zeros(firsts.size, np.int64)), places


class FoldTallies:
    """The tallies of one fold, fed with its rows of several blocks: few rows at a time are dear."""

    def __init__(self, positives: Positives | None, empty: Empty) -> None:
        self.positives, self.sample_weight = positives, empty.sample_weight
        self._waiting: list[Positives] = []  # of the rows that wait, where rows have no numbers
        self.share = empty.share
        self.counts = [tally.empty_like() for tally in empty.counts]
        self.ranges = None if empty.moments is None else Ranges(empty.moments.low.size)
        self.moments = None if empty.moments is None else empty.moments.empty_like()
        self._rows: NDArray[Any] | None = None
        self._numbers = np.empty(0, np.int64)
        self._panel: Panel | None = None
        self._n = 0

    def add(self, panel: Panel, rows: NDArray[np.int64]) -> None:
        """Take these rows of a block."""
        if isinstance(panel, SparsePanel) or panel.absent is not None:
            self.count()
            if self.positives is None and self.moments is not None:
                self._waiting.append(panel.positives().take(rows))
            return self._count(take_rows(panel, rows), panel.first_row + rows)
        if self._rows is None:
            room = max(1, block_rows(panel.n_labels, panel.scores.itemsize) // self.share)
            self._rows = np.empty((room, panel.n_labels), panel.scores.dtype)
            self._numbers = np.empty(room, np.int64)
        for start in range(0, rows.size, len(self._rows)):
            some = rows[start : start + len(self._rows)]
            if self._n + some.size > len(self._rows):
                self.count()
            place = self._rows[self._n : self._n + some.size]
            # Row numbers are known to be right; "clip" only spares a copy that "raise" makes.
            np.take(panel.scores, some, axis=0, out=place, mode="clip")
            self._numbers[self._n : self._n + some.size] = panel.first_row + some
            if self.positives is None and self.moments is not None:
                self._waiting.append(panel.positives().take(some))
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
        self._count(together, self._numbers[: self._n])
        self._panel, self._n = None, 0

    def _count(self, together: Panel, numbers: NDArray[np.int64]) -> None:
        """Count rows, which have these numbers."""
        if self.sample_weight is not None:
            together.sample_weight = self.sample_weight.take(numbers)
        for tally in self.counts:
            tally.add(together)
        if self.ranges is not None and self.moments is not None:
            if self.positives is None:
                true = join_positives(self._waiting)
                self._waiting = []
            else:
                true = self.positives.take(numbers)
            together.labels = SparseLabels(*true, (int(numbers.size), together.n_labels))
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

    ``sample_weight`` is that of all rows. ``share`` tallies wait for rows side by side: each waits
    for fewer.
    """

    counts: Sequence[IntervalCounts]
    moments: Moments | None
    sample_weight: SampleWeight | None
    share: int = 1


class FoldTally:
    """Tallies of each fold, all in one pass: a row goes to those of its fold."""

    def __init__(
        self,
        folds: Folds | HashFolds,
        n_folds: int,
        positives: Positives | None,
        empty: Empty,
    ) -> None:
        self.folds, self.n_folds, self.positives, self.empty = folds, n_folds, positives, empty
        self._tallies = [FoldTallies(positives, empty) for _ in range(n_folds)]
        self._locks = [Lock() for _ in range(n_folds)]
        if empty.moments is not None:  # sums of floats: see `oddslip.core.tally.Tally`
            self.blocks_apart = max(1, n_folds * empty.moments.moments.nbytes // BLOCK_BYTES)
        else:  # large, and as many threads can be at work in it as there are folds
            self.threads_served = n_folds

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"folds": self.folds, "n_folds": self.n_folds, "positives": self.positives,
                "empty": self.empty}  # fmt: skip

    def state(self) -> State:
        """The states of every fold's tallies."""
        return nest_states(TallyGroup(fold.tallies).state() for fold in self.result())

    def restore(self, state: State) -> None:
        """Give every fold its own."""
        for fold, part in zip(self._tallies, unnest_states(state, self.n_folds), strict=True):
            TallyGroup(fold.tallies).restore(part)

    def add(self, panel: Panel) -> None:
        """Deal the rows of one block to their folds, those first in which no thread is at work."""
        if isinstance(self.folds, HashFolds):
            here = self.folds.of(panel)
        else:
            here = self.folds[panel.first_row : panel.first_row + panel.n_rows]
        left = list(range(self.n_folds))
        for is_last in (False, True):
            busy = []
            for fold in left:
                if not self._locks[fold].acquire(blocking=is_last):
                    busy.append(fold)
                    continue
                try:
                    self._tallies[fold].add(panel, np.flatnonzero(here == fold))
                finally:
                    self._locks[fold].release()
            left = busy

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
        positives: Sequence[NDArray[Any]],
        positives_between: Sequence[NDArray[Any]] | None = None,
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
            reached = np.searchsorted(indptr, indptr[ends[-1]] + KEYS_AT_ONCE, "right") - 1
            ends.append(max(ends[-1] + 1, int(reached)))
        parts = [self._part(left_out, *each).isotonic_knots() for each in pairwise(ends)]
        return Knots.in_a_row(parts)

    def _part(self, left_out: int | None, first: int, last: int) -> CellCounts:
        """Counts of the labels from ``first`` to before ``last``."""
        first_kept, *kept = [fold for fold in range(len(self.tallies)) if fold != left_out]
        total = self.tallies[first_kept].cut(first, last)
        for fold in kept:
            total.merge(self.tallies[fold].cut(first, last))
        cells = total.result()
        own = slice(*self.tallies[0].distinct.indptr[[first, last]])
        positives = sum_whole(self.positives[fold][own] for fold in (first_kept, *kept))
        negatives_at = cells.negatives_at - positives
        if self.positives_between is None:
            return replace(cells, positives=positives, negatives_at=negatives_at)
        between = sum_whole(self.positives_between[fold] for fold in (first_kept, *kept))
        return replace(
            cells, positives=positives, negatives_at=negatives_at, positives_between=between,
            negatives_between=cells.negatives_between - between,
        )  # fmt: skip


def sum_whole(parts: Iterable[NDArray[Any]]) -> Ints:
    """The sum of short numbers, in wide ones."""
    first, *others = parts
    total = first.astype(np.int64)
    for each in others:
        total += each.astype(np.int64, copy=False)
    return total


def summaries_bytes(n_labels: int) -> int:
    """Memory that the summaries of five folds take."""
    return 5 * n_labels * count_bins(n_labels, BINS_SHARE) * int(N_MOMENTS) * 8


def fold_totals(source: Source, dealt: Dealt, n_folds: int) -> NDArray[np.float64]:
    """The weight of each fold's rows: their number, where they count alike.

    Of each label's cells, where some are absent.
    """
    weight = source.sample_weight
    if source.partial:
        if dealt.n_present is not None:
            return dealt.n_present
        assert isinstance(dealt.folds, np.ndarray)
        totals = np.zeros((n_folds, source.n_labels))
        for panel in source.blocks():
            here = dealt.folds[panel.first_row : panel.first_row + panel.n_rows]
            for fold in range(n_folds):
                totals[fold] += take_rows(panel, np.flatnonzero(here == fold)).n_present()
        return totals
    if weight is None:
        return dealt.n_rows.astype(np.float64)
    assert not isinstance(dealt.folds, HashFolds)
    units = weight.units.astype(np.float64)
    return weight.floats(np.bincount(dealt.folds, units, minlength=n_folds))


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
    cells : PositiveCells
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
        cells: PositiveCells,
        pooled: Sequence[bool],
        ranges: Ranges | None = None,
        starting: NDArray[np.bool_] | None = None,
    ) -> None:
        self.source, self.cells, self._starting = source, cells, starting
        self._places: list[NDArray[np.integer]] = []
        counts: list[IntervalCounts] = []
        labels = cells.positives.indices
        for as_one in pooled:
            own, keys = np.zeros_like(labels) if as_one else labels, cells.keys
            if as_one and starting is not None:
                own, keys = own[starting], keys[starting]
            distinct, places = find_distinct(own, keys, 1 if as_one else source.n_labels)
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
        self._empty = Empty(counts, moments, source.sample_weight)

    def count(self, dealt: Dealt, n_folds: int, *, threads: int | None = None) -> FoldStatistics:
        """Counts and summaries of every fold, all in one pass; no pass if none are wanted."""
        return self.count_all([dealt], n_folds, threads=threads)[0]

    def count_all(
        self, deals: Sequence[Dealt], n_folds: int, *, threads: int | None = None
    ) -> list[FoldStatistics]:
        """The same for rows that were dealt several times, still in one pass.

        Only where their summaries are too large to be held together there are more.
        """
        if not self._empty.counts and self._empty.moments is None:
            return [FoldStatistics({}, []) for _ in deals]
        at_once = len(deals)
        if self._empty.moments is not None:
            at_once = max(1, AT_ONCE // (n_folds * self._empty.moments.moments.nbytes))
        found: list[FoldStatistics] = []
        for start in range(0, len(deals), at_once):
            some = deals[start : start + at_once]
            empty = self._empty._replace(share=len(some))
            # Counts are joined in any order. Sums that round wait for one another, so what holds
            # them should be small.
            kinds = [empty._replace(moments=None)] * bool(empty.counts)
            fewer = empty._replace(counts=(), share=SUMMED_APART * len(some))
            kinds += [fewer] * (empty.moments is not None)
            tallies = []
            for kind, dealt in product(kinds, some):
                positives = None if isinstance(dealt.folds, HashFolds) else self.cells.positives
                tallies.append(FoldTally(dealt.folds, n_folds, positives, kind))
            every = TallyGroup(tallies)
            made = self.source.run(every, threads=threads, what="cells of folds").result()
            del every, tallies
            release_memory()
            found += [
                self._gather(counted, summed, dealt, n_folds)
                for counted, summed, dealt in zip(
                    made[: len(some)], made[-len(some) :], some, strict=True
                )
            ]
        return found

    def _gather(
        self,
        counted: list[FoldTallies],
        summed: list[FoldTallies],
        dealt: Dealt,
        n_folds: int,
    ) -> FoldStatistics:
        fold_of, weight = dealt.fold_of, self._empty.sample_weight
        units = None
        if weight is not None:
            units = np.repeat(weight.units, self.cells.positives.counts).astype(np.float64)
        by_pooling = {}
        for at, places in enumerate(self._places):
            empty, own_folds, between = self._empty.counts[at], fold_of, None
            keys = empty.distinct.keys
            if empty.pooled and self._starting is not None:
                own_folds = fold_of[self._starting]
                intervals = np.searchsorted(keys, self.cells.keys[~self._starting])
                between = _by_fold(
                    intervals, fold_of[~self._starting], n_folds, keys.size + 1, None
                )
            hits = _by_fold(places, own_folds, n_folds, keys.size, units)
            for fold_tallies in counted:
                fold_tallies.counts[at].close()
            by_pooling[empty.pooled] = FoldCounts(
                [fold.counts[at] for fold in counted], hits, between
            )
        n_rows, totals = dealt.n_rows, fold_totals(self.source, dealt, n_folds)
        summaries = [
            Summary(fold.ranges, fold.moments, n, total)
            for fold, n, total in zip(summed, n_rows.tolist(), list(totals), strict=True)
            if fold.ranges is not None and fold.moments is not None
        ]
        return FoldStatistics(by_pooling, summaries)


def _by_fold(
    places: NDArray[np.integer],
    fold_of: NDArray[np.integer],
    n_folds: int,
    size: int,
    units: NDArray[np.float64] | None,
) -> list[NDArray[Any]]:
    """How many positives of each fold lie in each place, in numbers as short as can be."""
    found = []
    for fold in range(n_folds):
        inside = np.flatnonzero(fold_of == fold)
        own = None if units is None else units[inside]
        hits = np.bincount(places[inside], own, minlength=size)
        if units is None:
            hits = hits.astype(np.min_scalar_type(hits.max(initial=0)))
        found.append(hits)
    return found


# Of a pooled fit the cells of all labels are counted among the positives of all labels. Where both
# are many, most positives lie far from where the fit turns. Cells in buckets of scores, counted in
# the pass that collects the positives, say where it may turn: see `oddslip.kernels.buckets`.


class PooledBuckets(MergeableTally):
    """Cells of each fold in buckets of their scores, whatever their label."""

    JOINED: ClassVar = {"counts": "add"}

    def __init__(self, folds: Folds, n_folds: int, dtype: Any, kind: Kind) -> None:
        self.folds, self.n_folds, self.dtype, self.kind = folds, n_folds, np.dtype(dtype), kind
        low, high = -FARTHEST_NAT, FARTHEST_NAT
        if kind == "probability":
            ends = np.array([2.0**-32, 1 - 2.0**-24], self.dtype)
            fold_probabilities(ends, folded := np.empty(2))
            low, high = folded.tolist()
        n_inner = 2**BUCKET_BITS
        # Half a bucket less, so that no rounding leads beyond the last.
        self.ranges = kind == "margin", low, high, (n_inner - 0.5) / (high - low)
        self.counts = np.zeros((n_folds, n_inner + 2), np.uint32)

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"folds": self.folds, "n_folds": self.n_folds, "dtype": self.dtype,
                "kind": self.kind}  # fmt: skip

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        here = self.folds[panel.first_row : panel.first_row + panel.n_rows].astype(np.uint8)
        scores = np.ascontiguousarray(panel.checked().scores)
        count_rows(scores, here, *self.ranges, self.counts)

    def result(self) -> NDArray[np.uint32]:
        """Cells of each fold in each bucket."""
        return self.counts

    def place(self, keys: NDArray[Any]) -> NDArray[np.int32]:
        """The bucket of each key."""
        places = np.empty(keys.size, np.int32)
        scores = np.ascontiguousarray(scores_of(keys, self.kind))
        find_places(scores, *self.ranges, self.counts.shape[1], places)
        return places

    def mark(self, keys: NDArray[Any], fold_of: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which of these positives lie where a fit may turn, without any of the folds or with all.

        Every positive at which a block of such a fit starts is among them.
        """
        n_buckets, places = self.counts.shape[1], self.place(keys)
        hits = _by_fold(places, fold_of, self.n_folds, n_buckets, None)
        may_turn = np.zeros(n_buckets, np.bool_)
        for left_out in (None, *range(self.n_folds)):
            kept = [fold for fold in range(self.n_folds) if fold != left_out]
            cells, positives = (
                sum_whole(each[fold] for fold in kept) for each in (self.counts, hits)
            )
            # The first bucket and the last are never marked: there an empty one stands before and
            # behind all.
            pairs = np.zeros((n_buckets + 2, 2), np.uint32)
            pairs[1:-1, 0], pairs[1:-1, 1] = cells - positives, positives
            marks, numbers = np.zeros(len(pairs), np.uint8), np.zeros(len(pairs), np.int32)
            starts, held = np.array([0, pairs.size]), np.zeros(1, np.int64)
            mark_buckets(starts, pairs.reshape(-1), pairs.size << 32, marks, numbers, held)
            may_turn |= marks[1:-1].view(np.bool_)
        return np.asarray(may_turn[places])


def make_buckets(source: Source, folds: Folds, n_folds: int) -> list[PooledBuckets]:
    """Buckets for each time that rows are dealt; none where all positives are soon listed."""
    n_cells = source.n_rows * source.n_labels
    if source.sample_weight is not None or source.partial or n_folds > 255:
        return []
    if not MIN_CELLS <= n_cells < 2**31:
        return []
    return [PooledBuckets(each, n_folds, source.dtype, source.kind) for each in folds]


def find_starting(
    buckets: Sequence[PooledBuckets], deals: Sequence[Dealt], keys: NDArray[Any]
) -> NDArray[np.bool_] | None:
    """Positives at which a block of a pooled fit may start, however rows were dealt."""
    if not buckets:
        return None
    marks = [own.mark(keys, dealt.fold_of) for own, dealt in zip(buckets, deals, strict=True)]
    return np.asarray(np.any(marks, axis=0))
