"""`Panel`: scores of shape (rows, labels), what was true, and the names of both.

This is the one gate where raw input is checked. Shapes, types and names are checked when a panel
is made; cells are checked while they are read, by the keys the kernels use anyway.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from oddslip.core.arguments import as_numbers, check_k, check_names, reject_masked
from oddslip.core.labels import DenseLabels, Labels, Positives, SparseLabels, as_labels
from oddslip.core.row_ids import (
    are_same,
    counts_up,
    hash_ids,
    hash_row_numbers,
    is_frame,
    is_numbering,
    match_labels,
    match_rows,
    need_ids,
    row_names,
    take_ids,
)
from oddslip.core.types import Array, Bools, Floats, Ints, LabelsLike, ScoresLike
from oddslip.core.weights import read_numbers
from oddslip.errors import InvalidInput
from oddslip.io.inputs import FileArray
from oddslip.kernels import Kind


class SampleWeight(NamedTuple):
    """How much each row counts: ``units * unit``. Whole units add up alike in any order."""

    units: Ints
    unit: float

    @property
    def times(self) -> Floats:
        """The weight of each row."""
        return self.floats(self.units)

    def floats(self, units: Array) -> Floats:
        """Sums of units as weights."""
        return np.asarray(units * self.unit, np.float64)

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return int(self.units.sum()) * self.unit

    def take(self, rows: Any) -> SampleWeight:
        """The weights of some rows: a slice of them, a mask or numbers."""
        return SampleWeight(self.units[rows], self.unit)


def read_sample_weight(
    weight: Any, n_rows: int, row_ids: Any = None, *, indexed: bool = False
) -> SampleWeight | None:
    """Weights of all rows, checked; None where rows count alike.

    A series is matched with ``row_ids``, as labels are: see `oddslip.core.row_ids.match_rows`.
    A path is read.

    A unit is a power of two, so whole numbers and halves are exact, and everything else is to
    2**-50 of the sum.

    Examples
    --------
    >>> read_sample_weight([1, 2.5], 2).times
    array([1. , 2.5])
    """
    if weight is None:
        return None
    if isinstance(weight, str | os.PathLike):
        weight = read_numbers(weight, "row")
    ids, indexed = row_names(weight), indexed if row_ids is None else hasattr(weight, "to_numpy")
    weights = as_numbers("sample_weight", weight)
    if weights.shape == (n_rows,) or (weights.ndim == 1 and ids is not None):
        order = match_rows(
            row_ids,
            ids,
            ("scores", "sample_weight"),
            n_rows=(n_rows, weights.size),
            indexed=indexed,
        )
        weights = weights if order is None else weights[order]
    if weights.shape != (n_rows,):
        raise InvalidInput(
            f"sample_weight must hold one number per row, n_rows={n_rows:,}, "
            f"got shape {weights.shape}."
        )
    wrong = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
    if wrong.size:
        raise InvalidInput(
            "sample_weight must be positive and finite, got "
            f"{weights[wrong[0]]:g} at row {wrong[0]}. Drop rows that shall not count."
        )
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    unit = float(2.0 ** (np.frexp(total)[1] - 50)) if np.isfinite(total) else 0.0
    units = np.rint(weights / unit) if unit else np.zeros(n_rows)
    if not (units > 0).all():
        raise InvalidInput(
            "sample_weight must not differ by more than 2**49 times in all, got "
            f"{weights.min():g} among a sum of {total:g}."
        )
    return SampleWeight(units.astype(np.int64), unit)


class FileRows(NamedTuple):
    """Rows of an array in a file, not yet read."""

    array: FileArray
    start: int
    stop: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and labels."""
        return self.stop - self.start, int(self.array.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the cells."""
        return self.array.dtype

    def cut(self, start: int, stop: int) -> FileRows:
        """Some of these rows."""
        return FileRows(self.array, self.start + start, self.start + stop)

    def read(self) -> Array:
        """The cells."""
        return self.array[self.start : self.stop]


class Panel:
    """Scores of shape (rows, labels), the labels that were true, and the names of both.

    Parameters
    ----------
    scores : array-like or data frame of shape (n_rows, n_labels)
        float32 or float64 in any memory order, memory-mapped or not. Never copied whole unless
        the type has to change. A pandas or polars frame brings its column names along.
    labels : optional
        0/1 or bool cells of the same shape, a scipy.sparse matrix, a data frame with the same
        columns, or for each row a list of the indices of its true labels.
    kind : {"probability", "margin"}
        What the scores are: probabilities in [0, 1] or log-odds.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own. No two alike.
    row_ids : sequence, optional
        Names of the rows.

    Examples
    --------
    >>> panel = Panel([[0.9, 0.2, 0.6]], [[1, 0, 0]], label_names=["a", "b", "c"])
    >>> panel
    Panel(1 row x 3 labels, probability, float64, labels: yes)
    """

    _scores: Array | FileRows
    kind: Kind
    labels: Labels | None = None
    label_names: tuple[str, ...] | None = None
    row_ids: Array | None = None
    sample_weight: SampleWeight | None = None
    excluded: Positives | None = None
    nan_absent: bool = False
    first_row: int = 0
    numbered: bool = True  # whether rows have an order; else an id is all that they are known by
    twin: Panel | None = None  # scores of another model for the same rows and labels
    _absent: Positives | None = None
    _row_keys: NDArray[np.uint64] | None = None  # where they were found already

    def __init__(
        self,
        scores: ScoresLike,
        labels: LabelsLike = None,
        *,
        kind: Kind = "probability",
        label_names: Sequence[str] | None = None,
        row_ids: Any = None,
    ) -> None:
        if kind not in get_args(Kind):
            raise InvalidInput(f'kind must be "probability" or "margin", got {kind!r}.')
        indexed = is_frame(scores)
        scores, ids = take_ids(scores)
        beside = row_ids is not None and ids is None
        row_ids = ids if row_ids is None else row_ids
        own_names = _frame_names(scores)
        self.scores = _as_scores(scores, own_names if label_names is None else label_names)
        self.kind = kind
        self.label_names = self._name_columns(own_names, label_names)
        self.row_ids = None if row_ids is None else np.asarray(row_ids)
        if self.row_ids is not None and self.row_ids.shape != (self.n_rows,):
            raise InvalidInput(
                f"row_ids must hold one id per row, n_rows={self.n_rows}, "
                f"got shape {self.row_ids.shape}."
            )
        if ids is not None and row_ids is not ids and not are_same(self.row_ids, ids):
            raise InvalidInput(
                "row_ids must be the ids that the scores bring, in their order, got others. "
                "Leave row_ids out, or pass the scores as .to_numpy()."
            )
        if labels is not None:
            self.add_labels(labels, indexed=indexed, beside=beside)

    def _name_columns(
        self, own_names: list[str] | None, label_names: Sequence[str] | None
    ) -> tuple[str, ...] | None:
        """Names of the columns. Those of a frame that are given again say their order."""
        if own_names is None or label_names is None:
            return check_names(own_names or label_names, self.n_labels)
        columns = check_names(own_names, self.n_labels)
        names = check_names(label_names, self.n_labels)
        counts = self.n_labels, self.n_labels
        order = match_labels(names, columns, ("label_names", "scores"), n_labels=counts)
        if order is not None:
            self.scores = self.scores[:, order]
        return names

    def add_labels(
        self, labels: LabelsLike, *, indexed: bool = False, beside: bool = False
    ) -> None:
        """Labels of these rows, matched by the names of rows and labels.

        Parameters
        ----------
        labels
            As the class takes them.
        indexed : bool
            Whether scores without row ids came as a frame, whose index counts their rows.
        beside : bool
            Whether row ids were given for scores and labels alike: labels that bring none are
            in the order of the scores.
        """
        if self.row_ids is not None:
            indexed = hasattr(labels, "to_numpy")
        labels, ids = take_ids(labels)
        if isinstance(labels, SparseLabels):
            ids = labels.row_ids
        names = _frame_names(labels)
        if names is not None:
            check_names(names, len(names))
            if self.label_names is None and len(names) == self.n_labels:
                numbered = is_numbering(names)
                self.label_names = tuple(sorted(names, key=int) if numbered else names)
        cells = _frame_cells(labels, "labels") if is_frame(labels) else labels
        gated = as_labels(cells, self.n_labels, self.name_of, self.label_names, names)
        ours = None if beside and ids is None else self.row_ids
        counts = self.n_rows, gated.shape[0]
        order = match_rows(ours, ids, ("scores", "labels"), n_rows=counts, indexed=indexed)
        gated = gated if order is None else gated.take(order)
        if gated.shape != (self.n_rows, self.n_labels):
            raise InvalidInput(
                f"labels must have the shape of scores, {(self.n_rows, self.n_labels)}, "
                f"got {gated.shape}."
            )
        self.labels = gated

    @property
    def scores(self) -> Array:
        """All cells. Those of a block in a file are read by whoever asks for them first."""
        if isinstance(self._scores, FileRows):
            self._scores = self._scores.read()
        return self._scores

    @scores.setter
    def scores(self, cells: Array) -> None:
        self._scores = cells

    @property
    def n_rows(self) -> int:
        """Rows of this panel."""
        return int(self._scores.shape[0])

    @property
    def n_labels(self) -> int:
        """Labels of this panel."""
        return int(self._scores.shape[1])

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        rows = "1 row" if self.n_rows == 1 else f"{self.n_rows:,} rows"
        truth = "no" if self.labels is None else "yes"
        return (
            f"Panel({rows} x {self.n_labels:,} labels, {self.kind}, {self.dtype}, labels: {truth})"
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the scores."""
        return self._scores.dtype

    def name_of(self, label: int) -> str:
        """Name of a label; its index where labels have no names."""
        return str(label) if self.label_names is None else self.label_names[label]

    def rows(self, start: int, stop: int) -> Panel:
        """The panel of rows ``start`` to ``stop``: views, nothing copied or checked again."""
        block = object.__new__(Panel)
        scores = self._scores
        if isinstance(scores, FileArray):
            scores = FileRows(scores, 0, len(scores))
        if isinstance(scores, FileRows):
            block._scores = scores.cut(start, stop)
        else:
            block._scores = scores[start:stop]
        return self._cut(block, start, stop)

    def _cut(self, block: Panel, start: int, stop: int) -> Panel:
        """A block with all but its scores."""
        excluded = self.excluded
        block.excluded = None if excluded is None else excluded.rows(start, stop)
        block.nan_absent = self.nan_absent
        block.labels = self.labels if self.labels is None else _Rows(self.labels, start, stop)
        block.kind = self.kind
        block.label_names = self.label_names
        block.row_ids = None if self.row_ids is None else self.row_ids[start:stop]
        weight = self.sample_weight
        block.sample_weight = None if weight is None else weight.take(slice(start, stop))
        block.first_row = self.first_row + start
        block.numbered = self.numbered
        block._row_keys = None if self._row_keys is None else self._row_keys[start:stop]
        block.twin = None if self.twin is None else self.twin.rows(start, stop)
        return block

    def row_keys(self) -> NDArray[np.uint64]:
        """Key of each row: see `oddslip.core.row_ids`. It stays with a row that is taken."""
        if self._row_keys is None:
            if self.row_ids is not None:
                self._row_keys = hash_ids(self.row_ids)
            else:
                need_ids(self.numbered, "what is decided")
                self._row_keys = hash_row_numbers(self.first_row, self.n_rows)
        return self._row_keys

    def name_row(self, row: int) -> str:
        """What an error calls a row: by its number, or by its id where rows have no order."""
        if self.numbered:
            return f"row {self.first_row + row}"
        return "a row" if self.row_ids is None else f"row {self.row_ids[row]!s:.60}"

    def positives(self) -> Positives:
        """True labels of every row; refuses a panel without labels or cells that are not 0/1."""
        return self._present(self._need_labels().positives(0, self.n_rows, self.name_of))

    def _need_labels(self) -> Labels:
        if self.labels is None:
            raise InvalidInput("labels are needed here, got scores alone. Pass labels as well.")
        return self.labels

    @property
    def absent(self) -> Positives | None:
        """Cells that count for nothing: excluded, or no candidates. None where all are there."""
        if self.excluded is None and not self.nan_absent:
            return None
        if self._absent is None:
            self._absent = self._find_absent()
        return self._absent if self._absent.indices.size else None

    def _find_absent(self) -> Positives:
        if not self.nan_absent:
            assert self.excluded is not None
            return self.excluded
        absent = np.isnan(self.scores)
        if self.excluded is not None:
            absent.reshape(-1)[self.excluded.places(self.n_labels)] = True
        return DenseLabels(absent).positives(0, self.n_rows)

    def without(self, excluded: Positives) -> Panel:
        """The panel less the cells that are excluded."""
        block = self.rows(0, self.n_rows)
        if self.excluded is not None and self.excluded is not excluded:
            excluded = self.excluded.union(excluded, self.n_labels)
        block.excluded = excluded
        return block

    def present_keys(self) -> Array:
        """Keys of the scores of a checked panel, 0 where a cell is absent."""
        keys, there = self.keys(), self.present()
        return keys if there is None else np.where(there, keys, keys.dtype.type(0))

    def present(self) -> Bools | None:
        """Which cells are there, as bool of the shape of the scores; None where all are."""
        absent = self.absent
        if absent is None:
            return None
        there = np.ones((self.n_rows, self.n_labels), np.bool_)
        there.reshape(-1)[absent.places(self.n_labels)] = False
        return there

    def n_present(self) -> Floats:
        """The weight of each label's cells that are there: their number, where rows count alike."""
        absent, weight = self.absent, self.sample_weight
        units = np.ones(self.n_rows) if weight is None else weight.times
        total = np.full(self.n_labels, units.sum())
        if absent is not None:
            each = np.repeat(units, absent.counts)
            total -= np.bincount(absent.indices, each, minlength=self.n_labels)
        return total

    def _present(self, positives: Positives) -> Positives:
        """Those of the true labels whose cells are there."""
        absent = self.absent
        if absent is None:
            return positives
        return positives.filter(positives.among(absent, self.n_labels) < 0)

    def filled(self, some: Array | None = None) -> tuple[Array, Array, Floats]:
        """Scores with some valid score of the same label in place of every absent one.

        What is added up label by label can be added up over these, less what was too much: the
        scores that were filled in, of shape (1, n_labels), each as often as the last array says.
        They are cells of this block, unless given.
        """
        panel = self.checked()
        absent, there = panel.absent, panel.present()
        assert absent is not None
        assert there is not None
        if some is None:
            first = there.argmax(axis=0)
            some = panel.scores[first, np.arange(self.n_labels)][None].copy()
            some[0, ~there.any(axis=0)] = 0.5
        scores = np.array(panel.scores, order="C")
        scores.reshape(-1)[absent.places(self.n_labels)] = some[0, absent.indices]
        units = np.ones(self.n_rows) if self.sample_weight is None else self.sample_weight.times
        times = np.bincount(absent.indices, np.repeat(units, absent.counts), self.n_labels)
        return scores, some, times.astype(np.float64)

    def truths(self) -> NDArray[np.uint8]:
        """The same as 0/1 cells of the shape of the scores."""
        cells = self._need_labels().truths(0, self.n_rows, self.name_of)
        there = self.present()
        return cells if there is None else cells * there

    def keys(self) -> Array:
        """Order-preserving keys of the scores, not yet checked: see `limit` and `mended`."""
        from oddslip.kernels.keys import keys_of

        keys: Array = keys_of(np.ascontiguousarray(self.scores), self.kind)
        return keys

    @property
    def limit(self) -> int:
        """The largest key of a valid cell. A larger one calls for `mended`."""
        from oddslip.kernels.keys import LIMITS, UNSIGNED

        return int(LIMITS[UNSIGNED[self.dtype], self.kind])

    def checked(self) -> Panel:
        """This panel, after a look at every cell."""
        from oddslip.kernels.keys import largest_key

        return self if int(largest_key(self.keys())) <= self.limit else self.mended()

    def mended(self) -> Panel:
        """This panel with -0.0 as 0.0, or an error naming the first cell that is not valid.

        What an absent cell holds does not matter, and is made valid.
        """
        wrong, there = _are_wrong(self.scores, self.kind), self.present()
        if there is not None:
            wrong &= there
        if wrong.any():
            raise InvalidInput(self._complaint(wrong))
        mended = self.rows(0, self.n_rows)
        mended.scores = self.scores + 0.0
        if there is not None:
            mended.scores[~there] = 0.5
            mended.excluded, mended.nan_absent = self.absent, False
        return mended

    def _complaint(self, wrong: Bools) -> str:
        row, label = divmod(int(np.flatnonzero(wrong.ravel())[0]), self.n_labels)
        value = self.scores[row, label]
        place = f"{self.name_row(row)}, label {self.name_of(label)!r}"
        if np.isfinite(value):
            return (
                f"probabilities must be between 0 and 1, got {value:g} at {place}. "
                'If scores are log-odds, pass kind="margin".'
            )
        what = "NaN" if np.isnan(value) else "infinite"
        same = int((np.isnan(self.scores) if what == "NaN" else np.isinf(self.scores)).sum())
        cells = f"{same} {what} cell" + ("s" if same > 1 else "")
        last = self.first_row + self.n_rows - 1
        where = f" in rows {self.first_row} to {last}, the first" if self.numbered else ", one"
        absent = ', or pass nan="absent"' if what == "NaN" else " first"
        return f"scores hold {cells}{where} at {place}. Drop or fill those rows{absent}."


class SparsePanel(Panel):
    """A panel of which only some cells are stored: those a row has candidates for.

    ``positions`` are their labels, row by row, and ``cells`` their scores. Whoever does not know of
    lists sees all cells, most of them absent.
    """

    positions: Positives
    cells: Array
    shape: tuple[int, int]
    _dense: Array | None

    @classmethod
    def of(
        cls,
        positions: Positives,
        cells: Array,
        n_labels: int,
        *,
        kind: Kind = "probability",
        label_names: Sequence[str] | None = None,
        row_ids: Any = None,
    ) -> SparsePanel:
        """Of checked lists; names pass the gate."""
        shape = (positions.indptr.size - 1, n_labels)
        if 0 in shape:
            raise InvalidInput(
                f"scores must hold at least one row and one label, got shape {shape}."
            )
        scores = no_cells(shape, cells.dtype)
        gate = Panel(scores, kind=kind, label_names=label_names, row_ids=row_ids)
        panel: SparsePanel = object.__new__(cls)
        panel._put(positions, cells, shape)
        gate._cut(panel, 0, shape[0])
        return panel

    def _put(self, positions: Positives, cells: Array, shape: tuple[int, int]) -> None:
        self.positions, self.cells, self.shape, self._dense = positions, cells, shape, None

    @property
    def n_rows(self) -> int:
        """Rows of this panel."""
        return self.shape[0]

    @property
    def n_labels(self) -> int:
        """Labels of this panel."""
        return self.shape[1]

    @property  # type: ignore[misc]
    def scores(self) -> Array:
        """All cells: 0.5 where there is none."""
        if self._dense is None:
            dense = np.full(self.shape, 0.5, self.cells.dtype)
            dense.reshape(-1)[self.positions.places(self.n_labels)] = self.cells
            self._dense = dense
        return self._dense

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the scores."""
        return self.cells.dtype

    @property
    def absent(self) -> Positives | None:
        """All cells that are no candidates."""
        if self._absent is None:
            absent = np.ones(self.shape, np.bool_)
            absent.reshape(-1)[self.positions.places(self.n_labels)] = False
            self._absent = DenseLabels(absent).positives(0, self.n_rows)
        return self._absent if self._absent.indices.size else None

    def n_present(self) -> Floats:
        """The weight of each label's cells."""
        weight = self.sample_weight
        each = None if weight is None else np.repeat(weight.times, self.positions.counts)
        return np.bincount(self.positions.indices, each, self.n_labels).astype(np.float64)

    def _present(self, positives: Positives) -> Positives:
        return positives.filter(positives.among(self.positions, self.n_labels) >= 0)

    def rows(self, start: int, stop: int) -> SparsePanel:
        """The panel of rows ``start`` to ``stop``: views, nothing copied or checked again."""
        block: SparsePanel = object.__new__(SparsePanel)
        indptr = self.positions.indptr
        cells = self.cells[indptr[start] : indptr[stop]]
        block._put(self.positions.rows(start, stop), cells, (stop - start, self.n_labels))
        self._cut(block, start, stop)
        return block

    def take(self, rows: Ints) -> SparsePanel:
        """The panel of some rows, without labels."""
        block: SparsePanel = object.__new__(SparsePanel)
        places: Any = np.arange(self.cells.size)
        positives = Positives(self.positions.indptr, places).take(rows)
        cells = self.cells[positives.indices]
        positions = Positives(positives.indptr, self.positions.indices[positives.indices])
        block._put(positions, cells, (int(rows.size), self.n_labels))
        self._cut(block, 0, self.n_rows)
        return block

    def columns(self, place: NDArray[np.int32], n_labels: int) -> SparsePanel:
        """The panel of some labels: ``place`` is the new index of each, or -1."""
        block = self.rows(0, self.n_rows)
        numbers: Any = np.arange(self.cells.size)
        rows = np.repeat(np.arange(self.n_rows), self.positions.counts)
        order = np.lexsort((place[self.positions.indices], rows))
        cell_numbers = Positives(self.positions.indptr, numbers[order])
        inside = cell_numbers.filter(place[self.positions.indices[order]] >= 0)
        positions = Positives(inside.indptr, place[self.positions.indices[inside.indices]])
        block._put(positions, self.cells[inside.indices], (self.n_rows, n_labels))
        return block

    def without(self, excluded: Positives) -> SparsePanel:
        """The panel less the cells that are excluded."""
        block = self.rows(0, self.n_rows)
        others = self.positions.among(excluded, self.n_labels) < 0
        block._put(self.positions.filter(others), self.cells[others], self.shape)
        return block

    def cell_keys(self) -> Array:
        """Keys of the candidate cells, checked."""
        from oddslip.kernels.keys import keys_of, largest_key

        keys: Array = keys_of(np.ascontiguousarray(self.cells)[None], self.kind)
        if keys.size and int(largest_key(keys)) > self.limit:
            return self.mended().cell_keys()
        return np.asarray(keys[0])

    def checked(self) -> SparsePanel:
        """This panel, after a look at every cell."""
        from oddslip.kernels.keys import keys_of, largest_key

        keys = keys_of(np.ascontiguousarray(self.cells)[None], self.kind)
        return self if not keys.size or int(largest_key(keys)) <= self.limit else self.mended()

    def mended(self) -> SparsePanel:
        """This panel with -0.0 as 0.0, or an error naming the first cell that is not valid."""
        wrong = _are_wrong(self.cells, self.kind)
        if wrong.any():
            cells = np.zeros(self.shape, np.bool_)
            cells.reshape(-1)[self.positions.places(self.n_labels)[wrong]] = True
            raise InvalidInput(self._complaint(cells))
        block = self.rows(0, self.n_rows)
        block._put(self.positions, self.cells + 0.0, self.shape)
        return block


def no_cells(shape: tuple[int, int], dtype: Any = np.float64) -> Array:
    """Scores of a panel that checks labels and names and whose cells nobody reads: no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def _are_wrong(cells: Array, kind: Kind) -> Bools:
    """Cells that are no probabilities between 0 and 1, or no finite margins."""
    valid = (cells >= 0) & (cells <= 1) if kind == "probability" else np.isfinite(cells)
    return np.asarray(~valid)


def take_cells(panel: Panel, ranking: NDArray[np.int32]) -> Array:
    """Scores of ranked labels; NaN where a slot is empty."""
    if isinstance(panel, SparsePanel):
        wanted = np.arange(len(ranking))[:, None] * panel.n_labels + ranking
        places = np.searchsorted(panel.positions.places(panel.n_labels), wanted)
        places[ranking < 0] = -1
        return np.append(panel.cells, panel.cells.dtype.type(np.nan))[places]
    cells = np.take_along_axis(panel.scores, np.maximum(ranking, 0).astype(np.int64), axis=1)
    return np.where(ranking >= 0, cells, cells.dtype.type(np.nan))


class _Rows:
    """A range of rows of some labels; errors name the row of the whole."""

    def __init__(self, labels: Labels, start: int, stop: int) -> None:
        self.labels, self.start = labels, start
        self.shape = (stop - start, labels.shape[1])

    def positives(self, start: int, stop: int, name_of: Any = str) -> Positives:
        return self.labels.positives(self.start + start, self.start + stop, name_of)

    def truths(self, start: int, stop: int, name_of: Any = str) -> NDArray[np.uint8]:
        return self.labels.truths(self.start + start, self.start + stop, name_of)

    def take(self, rows: Ints) -> Labels:
        return self.labels.take(self.start + rows)

    def columns(self, order: Ints) -> Labels:
        return _Rows(self.labels.columns(order), self.start, self.start + self.shape[0])


def _as_scores(scores: ScoresLike, names: Any = None) -> Array:
    def name_of(label: int) -> str:
        named = tuple(names) if hasattr(names, "__iter__") else ()
        return str(named[label] if label < len(named) else label)

    scores = reject_masked("scores", _positive_columns(scores), name_of)
    try:
        array = scores
        if not isinstance(scores, FileArray):
            array = _frame_cells(scores) if is_frame(scores) else np.asanyarray(scores)
            array = np.asarray(array) if isinstance(array, np.matrix) else array
    except ValueError as error:
        raise InvalidInput(
            "scores must be a table of shape (rows, labels), got rows of different lengths."
        ) from error
    if array.ndim != 2:
        raise InvalidInput(f"scores must be of shape (rows, labels), got shape {array.shape}.")
    if 0 in array.shape:
        raise InvalidInput(
            f"scores must hold at least one row and one label, got shape {array.shape}."
        )
    if array.dtype in (np.float32, np.float64):
        return cast("Array", array)
    if array.dtype.kind not in "biuf":
        raise InvalidInput(
            f"scores must be numbers, got dtype {array.dtype}. Convert them to float32 or float64."
        )
    return np.asarray(array, np.float32 if array.dtype.itemsize <= 2 else np.float64)


def _positive_columns(scores: ScoresLike) -> Any:
    """One table of what `predict_proba` of several outputs gives: an array of two columns each."""
    if not (
        isinstance(scores, list) and scores and all(getattr(a, "ndim", 0) == 2 for a in scores)
    ):
        return scores
    shapes = [np.shape(each) for each in scores]
    wrong = next((at for at, shape in enumerate(shapes) if shape != (shapes[0][0], 2)), None)
    if wrong is not None:
        raise InvalidInput(
            "scores given as a list of arrays must have two columns, of each label's negatives and "
            f"positives, and as many rows, got shape {shapes[wrong]} at label {wrong}."
        )
    return np.column_stack([np.asarray(each)[:, 1] for each in scores])


def _frame_names(table: Any) -> list[str] | None:
    """Names of a frame's columns; None where they only count from 0."""
    if not is_frame(table) or counts_up(table.columns):
        return None
    return [str(name) for name in table.columns]


def _frame_cells(frame: Any, what: str = "scores") -> Array:
    """Cells of a frame. Types of pandas that know of missing cells become NumPy's.

    A missing score is NaN, which whoever reads it judges. A missing label is refused.
    """
    cells: Array = frame.to_numpy()
    if cells.dtype != object:
        return cells
    missing: Any = frame.isna() if hasattr(frame, "isna") else cells == None  # noqa: E711
    absent = np.asarray(missing, np.bool_)
    if what == "labels" and absent.any():
        row, label = divmod(int(np.flatnonzero(absent.ravel())[0]), absent.shape[1])
        raise InvalidInput(
            f"labels must be 0 or 1, got a null at row {row}, label "
            f"{str(list(frame.columns)[label])!r}. Fill it with 0 or drop the row."
        )
    kinds = [getattr(dtype, "numpy_dtype", dtype) for dtype in frame.dtypes]
    if not all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in kinds):
        return cells
    dtype = np.result_type(*kinds)
    if absent.any():
        dtype = dtype if dtype.kind == "f" else np.dtype(np.float64)
        return np.asarray(frame.to_numpy(dtype=dtype, na_value=np.nan))
    return np.asarray(frame.to_numpy(dtype=dtype))


__all__ = ["Kind", "Panel", "SampleWeight", "check_k", "check_names", "read_sample_weight"]
