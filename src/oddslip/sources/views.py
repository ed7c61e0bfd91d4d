"""Views of a source: the rows of a fold, some of its labels, true labels or weights attached."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from oddslip.core.labels import Positives, SparseLabels
from oddslip.core.panel import Panel, SampleWeight, SparsePanel
from oddslip.core.passes import Passes, collect
from oddslip.core.row_ids import Keys, match_labels, match_rows
from oddslip.core.tally import State, Tally
from oddslip.core.types import Array, Bools, Ints
from oddslip.sources.arrays import ArraySource
from oddslip.sources.base import Source, block_rows
from oddslip.sources.sparse import SparseSource

T = TypeVar("T", bound=Tally)


class View(Source):
    """Another source, of which a subclass changes something. All else is that of the whole."""

    def __init__(self, whole: Source) -> None:
        self.whole = whole
        self.n_rows, self.n_labels, self.kind = whole.n_rows, whole.n_labels, whole.kind
        self.dtype, self.label_names = whole.dtype, whole.label_names
        self.has_labels, self.sample_weight = whole.has_labels, whole.sample_weight
        self.partial, self.ordered = whole.partial, whole.ordered
        self.indexed, self.threads = whole.indexed, whole.threads

    def row_ids(self) -> Array | None:
        """Ids of all rows, or None where rows have only numbers."""
        return self.whole.row_ids()

    def row_keys(self) -> Keys:
        """Key of every row."""
        self._row_keys = self.whole.row_keys()  # for the blocks of later passes
        return self._row_keys

    def small_keys(self) -> Keys | None:
        """Keys of all rows where these are few, else None."""
        return self.whole.small_keys()

    @property
    def has_ids(self) -> bool:
        """Whether rows have ids."""
        return self.whole.has_ids

    def positives(self) -> Positives:
        """True labels of all rows."""
        return self.whole.positives()

    def label_counts(self) -> Ints:
        """Positives of each label."""
        return self.whole.label_counts()

    def totals(self) -> Any:
        """The weight of each label's present cells; that of all rows where all are present."""
        return self.whole.totals()

    def blocks(self) -> Iterator[Panel]:
        """The blocks of the whole."""
        return self.whole.blocks()


class _OtherCells(View):
    """A view whose cells, rows or weights differ from those of the whole, and so do its counts."""

    label_counts = Source.label_counts
    totals = Source.totals


class PartialSource(_OtherCells):
    """A source of which some cells count for nothing.

    Parameters
    ----------
    whole : Source
    excluded : Positives, optional
        Labels of each row that may not be shown.
    nan : bool
        Whether a score that is NaN says that its label is no candidate.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> nobody = PartialSource(open_source([[0.1, np.nan]], [[1, 1]]), nan=True)
    >>> nobody.positives().indices
    array([0], dtype=int32)
    """

    def __init__(
        self, whole: Source, excluded: Positives | None = None, *, nan: bool = False
    ) -> None:
        super().__init__(whole)
        self.excluded, self.nan, self.partial = excluded, nan, True

    def positives(self) -> Positives:
        """True labels of all rows whose cells are there."""
        if self.nan:
            return Source.positives(self)
        true = self.whole.positives()
        if self.excluded is None:
            return true
        return true.filter(true.among(self.excluded, self.n_labels) < 0)

    def blocks(self) -> Iterator[Panel]:
        """The blocks of the whole, as views that know which cells are absent."""
        for panel in self.whole.blocks():
            part = panel.rows(0, panel.n_rows)
            if self.excluded is not None:
                end = panel.first_row + panel.n_rows
                part = part.without(self.excluded.rows(panel.first_row, end))
            part.nan_absent = self.nan
            yield part


class WeightedSource(_OtherCells):
    """A source whose rows count unequally.

    Parameters
    ----------
    whole : Source
    sample_weight : SampleWeight
        Of all its rows.

    Examples
    --------
    >>> from oddslip.core.panel import read_sample_weight
    >>> from oddslip.sources import open_source
    >>> weighed = WeightedSource(open_source([[0.1], [0.2]]), read_sample_weight([1, 3], 2))
    >>> weighed.total_weight
    4.0
    """

    def __init__(self, whole: Source, sample_weight: SampleWeight) -> None:
        super().__init__(whole)
        self.sample_weight = sample_weight

    def blocks(self) -> Iterator[Panel]:
        """The blocks of the whole, as views with the weights of their rows."""
        assert self.sample_weight is not None
        for panel in self.whole.blocks():
            part = panel.rows(0, panel.n_rows)
            rows = slice(panel.first_row, panel.first_row + panel.n_rows)
            part.sample_weight = self.sample_weight.take(rows)
            yield part


class ReorderedSource(View):
    """Another source's rows in another order.

    Rows in memory are taken where they lie. Those of a file are written to a temporary file once,
    each at its place, so memory stays near one block.

    Parameters
    ----------
    whole : Source
    order : ndarray of int, shape (n_rows,)
        Which row of the whole comes first, second, ...

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> turned = ReorderedSource(open_source([[0.1], [0.2]]), np.array([1, 0]))
    >>> [block.scores.tolist() for block in turned.blocks()]
    [[[0.2], [0.1]]]
    """

    def __init__(self, whole: Source, order: Ints) -> None:
        super().__init__(whole)
        self.order, self.indexed = order, False
        if whole.sample_weight is not None:
            self.sample_weight = whole.sample_weight.take(order)
        self._laid: Panel | None = None

    def row_ids(self) -> Array | None:
        """Names of all rows, or None where rows are only numbered."""
        ids = self.whole.row_ids()
        return None if ids is None else ids[self.order]

    def row_keys(self) -> Keys:
        """Keys of all rows; rows without ids are numbered in their new order."""
        return Source.row_keys(self)

    def small_keys(self) -> Keys | None:
        """Keys of all rows where these are few, else None."""
        return Source.small_keys(self)

    def positives(self) -> Positives:
        """True labels of all rows."""
        return self.whole.positives().take(self.order)

    def blocks(self) -> Iterator[Panel]:
        """The rows in their new order."""
        laid = self._lay()
        truth = self.whole.positives() if self.has_labels else None
        step = block_rows(self.n_labels, self.dtype.itemsize)
        for start in range(0, self.n_rows, step):
            rows = self.order[start : start + step]
            part = take_rows(laid, rows, None if truth is None else truth.take(rows))
            part.first_row, part._row_keys = start, None
            yield part

    def _lay(self) -> Panel:
        """All rows, in memory or in a temporary file that goes with this source."""
        if isinstance(self.whole, ArraySource | SparseSource) and _has_rows(self.whole.panel):
            return self.whole.panel
        if self._laid is None:
            shape = (self.n_rows, self.n_labels)
            with tempfile.TemporaryFile() as scratch:
                for panel in self.whole.blocks():
                    cells, there = panel.scores, panel.present()
                    if there is not None:
                        cells = np.where(there, cells, cells.dtype.type(np.nan))
                    scratch.write(np.ascontiguousarray(cells, self.dtype).data)
                scratch.flush()
                laid: Array = np.memmap(scratch, self.dtype, "r", shape=shape)
            self._laid = Panel(laid, kind=self.kind, label_names=self.label_names)
            self._laid.nan_absent = self.partial
        return self._laid


def _has_rows(panel: Panel) -> bool:
    """Whether single rows are cheap to take; those of columns in a file are not."""
    return isinstance(panel, SparsePanel) or getattr(panel.scores, "by_rows", True)


def align_rows(one: Source, other: Source, what: tuple[str, str]) -> Source:
    """The other source with its rows in the order of the first."""
    ids, theirs = one.row_ids(), other.row_ids()
    indexed = one.indexed if ids is None else other.indexed
    counts = one.n_rows, other.n_rows
    order = match_rows(ids, theirs, what, n_rows=counts, indexed=indexed)
    return other if order is None else ReorderedSource(other, order)


def align_columns(one: Source, other: Source, what: tuple[str, str]) -> Source:
    """The other source with its labels in the order of the first."""
    counts = one.n_labels, other.n_labels
    order = match_labels(one.label_names, other.label_names, what, n_labels=counts)
    return other if order is None else ColumnSource(other, order)


class LabelledSource(_OtherCells):
    """A source with these true labels, found once, in place of its own.

    A ladder reads its rows many times. Dense labels would be searched each time, and the twin
    often comes without any.

    Parameters
    ----------
    whole : Source
    positives : Positives
        True labels of all its rows.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> truth = open_source([[0.1, 0.2]], [[0, 1]]).positives()
    >>> LabelledSource(open_source([[0.3, 0.4]]), truth).positives().indices
    array([1], dtype=int32)
    """

    def __init__(self, whole: Source, positives: Positives) -> None:
        super().__init__(whole)
        self.all_positives, self.has_labels = positives, True

    totals = View.totals

    def positives(self) -> Positives:
        """True labels of all rows."""
        return self.all_positives

    def blocks(self) -> Iterator[Panel]:
        """The blocks of the whole, as views."""
        labels = SparseLabels(*self.all_positives, (self.n_rows, self.n_labels))
        for panel in self.whole.blocks():
            part = panel.rows(0, panel.n_rows)
            positives = labels.positives(panel.first_row, panel.first_row + panel.n_rows)
            part.labels = SparseLabels(*positives, (panel.n_rows, panel.n_labels))
            yield part


class TwinnedSource(View):
    """A source whose panels bring those of another model for the same rows and labels.

    Cells that are absent in the source are absent in the other too: otherwise the models would
    rank different candidates.

    Parameters
    ----------
    whole, other : Source
        Of the same rows, in the same order.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> pair = TwinnedSource(open_source([[0.1], [0.2]]), open_source([[0.3], [0.4]]))
    >>> [panel.twin.scores.tolist() for panel in pair.blocks()]
    [[[0.3], [0.4]]]
    """

    def __init__(self, whole: Source, other: Source) -> None:
        super().__init__(whole)
        self.other = other

    def blocks(self) -> Iterator[Panel]:
        """The blocks, each with those rows of the other."""
        for part, twin in pair_blocks(self.whole, self.other):
            part.twin = _share_absent(part, twin)
            yield part


class CandidateSource(_OtherCells):
    """The scores of another model, for the cells that are present in a source.

    Parameters
    ----------
    whole : Source
        The scores.
    present : Source
        Of the same rows, in the same order. Cells that are absent in it are absent here too.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> other = open_source([[0.9, 0.2]])
    >>> some = CandidateSource(other, open_source([[np.nan, 0.1]], nan="absent"))
    >>> [panel.present().tolist() for panel in some.blocks()]
    [[[False, True]]]
    """

    def __init__(self, whole: Source, present: Source) -> None:
        super().__init__(whole)
        self.present, self.partial = present, True

    def blocks(self) -> Iterator[Panel]:
        """The blocks of the scores, without the cells that the other lacks."""
        for part, other in pair_blocks(self.present, self.whole):
            yield _share_absent(part, other)


def _share_absent(panel: Panel, other: Panel) -> Panel:
    """The other panel without the cells that are absent in the first."""
    absent = panel.absent
    return other if absent is None else other.without(absent)


def pair_blocks(one: Source, other: Source) -> Iterator[tuple[Panel, Panel]]:
    """Pairs of blocks with the same rows of both sources, whose own blocks may differ."""
    one_blocks, other_blocks = iter(one.blocks()), iter(other.blocks())
    a, b = next(one_blocks, None), next(other_blocks, None)
    while a is not None and b is not None:
        rows = min(a.n_rows, b.n_rows)
        yield a.rows(0, rows), b.rows(0, rows)
        a = a.rows(rows, a.n_rows) if rows < a.n_rows else next(one_blocks, None)
        b = b.rows(rows, b.n_rows) if rows < b.n_rows else next(other_blocks, None)


class RowSubset(_OtherCells):
    """Some rows of another source, read block by block from it.

    Parameters
    ----------
    whole : Source
    mask : ndarray of bool, shape (n_rows,)
        Which rows. The others are never handed on.
    positives : Positives
        True labels of all rows of the whole.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> whole = open_source([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], [[1, 0], [0, 1], [0, 0]])
    >>> part = RowSubset(whole, np.array([False, True, True]), whole.positives())
    >>> [block.scores.tolist() for block in part.blocks()]
    [[[0.3, 0.4], [0.5, 0.6]]]
    """

    def __init__(self, whole: Source, mask: Bools, positives: Positives) -> None:
        super().__init__(whole)
        self.all_positives, self.has_labels, self.indexed = positives, True, False
        self.mask, self.n_rows = mask, int(np.count_nonzero(mask))
        if whole.sample_weight is not None:
            self.sample_weight = whole.sample_weight.take(mask)

    def row_ids(self) -> Array | None:
        """Names of the rows kept, or None where rows are only numbered."""
        ids = self.whole.row_ids()
        return None if ids is None else ids[self.mask]

    def row_keys(self) -> Keys:
        """Keys that the rows kept have in the whole."""
        if self._row_keys is None:
            self._row_keys = self.whole.row_keys()[self.mask]
        return self._row_keys

    def small_keys(self) -> Keys | None:
        """Keys of all rows where these are few, else None."""
        return Source.small_keys(self)

    def positives(self) -> Positives:
        """True labels of the rows kept."""
        return self.all_positives.take(np.flatnonzero(self.mask))

    def blocks(self) -> Iterator[Panel]:
        """The rows kept of each block of the whole."""
        first = 0
        for panel in self.whole.blocks():
            start = panel.first_row
            rows = np.flatnonzero(self.mask[start : start + panel.n_rows])
            if not rows.size:
                continue
            part = take_rows(panel, rows, self.all_positives.take(start + rows))
            part.first_row = first
            first += part.n_rows
            yield part


class Narrowing(NamedTuple):
    """Some labels of panels: their columns, each label's place among them or -1, their names."""

    columns: Ints
    places: NDArray[np.int32]
    label_names: tuple[str, ...]
    has_labels: bool

    def narrow(self, panel: Panel) -> Panel:
        """A panel of these labels alone."""
        n_labels = self.columns.size
        neighbours = (np.diff(self.columns) == 1).all()
        columns = slice(self.columns[0], self.columns[-1] + 1) if neighbours else self.columns
        if isinstance(panel, SparsePanel):
            part: Panel = panel.columns(self.places, n_labels)
        else:
            part = panel.rows(0, panel.n_rows)
            part.scores = np.ascontiguousarray(panel.scores[:, columns])
            if panel.absent is not None:
                part.excluded, part.nan_absent = self.take(panel.absent), False
        part.label_names = self.label_names
        if self.has_labels:
            positives = self.take(panel.positives())
            part.labels = SparseLabels(*positives, (panel.n_rows, n_labels))
        return part

    def take(self, positives: Positives) -> Positives:
        """True labels among these."""
        return positives.columns(self.places)


class ColumnSource(View):
    """Some labels of another source in some order, read block by block from it.

    What is computed label by label can be computed for some labels at a time, where working memory
    for all of them would be many times that of the scores.

    Parameters
    ----------
    whole : Source
    columns : ndarray of int, shape (n_columns,)
        Which labels, in any order. Errors name them as the whole does.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> whole = open_source([[0.1, 0.2, 0.3]], [[1, 0, 1]])
    >>> part = ColumnSource(whole, np.array([1, 2]))
    >>> [block.scores.tolist() for block in part.blocks()]
    [[[0.2, 0.3]]]
    >>> part.positives().indices
    array([1], dtype=int32)
    """

    def __init__(self, whole: Source, columns: Ints) -> None:
        super().__init__(whole)
        self.columns, self.n_labels = columns, int(columns.size)
        names = whole.label_names
        self.label_names = tuple(str(j) if names is None else names[j] for j in columns.tolist())
        places = np.full(whole.n_labels, -1, np.int32)
        places[columns] = np.arange(columns.size)
        self.narrowing = Narrowing(columns, places, self.label_names, whole.has_labels)

    def positives(self) -> Positives:
        """True labels among the columns, of all rows."""
        return self.narrowing.take(self.whole.positives())

    def label_counts(self) -> Ints:
        """Positives of each of these labels."""
        return self.whole.label_counts()[self.columns]

    def totals(self) -> Any:
        """The weight of each label's present cells; that of all rows where all are present."""
        totals = self.whole.totals()
        return totals[self.columns] if self.partial else totals

    def blocks(self) -> Iterator[Panel]:
        """The blocks of the whole, of these labels alone."""
        for panel in self.whole.blocks():
            yield self.narrowing.narrow(panel)

    def run(self, tally: T, *, what: str = "rows") -> T:
        """Feed these labels of all rows to the tally."""
        return self.whole.run(ColumnTally(tally, self.narrowing), what=what).tally


class ColumnTally(Generic[T]):
    """A tally that is given some labels of every panel: see `ColumnSource`."""

    def __init__(self, tally: T, narrowing: Narrowing) -> None:
        self.tally, self.narrowing = tally, narrowing
        apart: int | None = getattr(tally, "blocks_apart", None)
        if apart is not None:  # see `Tally`
            self.blocks_apart = apart

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(self.tally.empty_like(), self.narrowing)

    def add(self, panel: Panel) -> None:
        """Take these labels of one block."""
        self.tally.add(self.narrowing.narrow(panel))

    def merge(self, other: Self) -> None:
        """Join the tallies."""
        self.tally.merge(other.tally)

    def result(self) -> Any:
        """What the tally found."""
        return self.tally.result()

    def spec(self) -> dict[str, Any]:
        """The tally, and what the labels are."""
        return {"tally": self.tally, "narrowing": self.narrowing}

    def state(self) -> State:
        """That of the tally."""
        state: State = self.tally.state()
        return state

    def restore(self, state: State) -> None:
        """Give it to the tally."""
        self.tally.restore(state)


def collect_labels(tally: T, narrowing: Narrowing | None) -> Passes[T]:
    """The tally, filled with some labels of all rows, or with all labels."""
    if narrowing is None:
        return (yield from collect(tally))
    columns = ColumnTally(tally, narrowing)
    return (yield from collect(columns)).tally


def take_rows(panel: Panel, rows: Ints, positives: Positives | None = None) -> Panel:
    """A panel of some rows of a block: their scores are copied, nothing is checked again."""
    if isinstance(panel, SparsePanel):
        part: Panel = panel.take(rows)
    else:
        part = panel.rows(0, panel.n_rows)
        part.scores = panel.scores[rows]
        part.excluded = None if panel.excluded is None else panel.excluded.take(rows)
    part.row_ids = None if panel.row_ids is None else panel.row_ids[rows]
    # Ids can be hashed later; numbers are lost with the order of the block.
    numbered = panel.row_ids is None and panel.numbered
    has_keys = numbered or panel._row_keys is not None
    part._row_keys = panel.row_keys()[rows] if has_keys else None
    part.twin = None if panel.twin is None else take_rows(panel.twin, rows)
    if panel.sample_weight is not None:
        part.sample_weight = panel.sample_weight.take(rows)
    part.labels = None
    if positives is not None:
        shape = (int(rows.size), panel.n_labels)
        part.labels = SparseLabels(positives.indptr, positives.indices, shape)
    return part
