"""What was true: labels in any form a user has, and the positives of a block of rows.

Dense 0/1 arrays stay as they are and are read block by block; sparse matrices and lists of label
indices become one compressed-row form. Either way a block gives `Positives`, the one form the
kernels read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from oddslip.core.arguments import reject_masked
from oddslip.core.row_ids import are_integers, match_labels, refuse_positions
from oddslip.core.sparse import label_rows
from oddslip.core.types import Array, Bools, Floats, Ints, LabelsLike
from oddslip.errors import InvalidInput
from oddslip.io.inputs import FileArray

NameOf = Callable[[int], str]


class Positives(NamedTuple):
    """True labels of some rows: row i has ``indices[indptr[i]:indptr[i + 1]]``, ascending."""

    indptr: Ints
    indices: NDArray[np.int32]

    @property
    def counts(self) -> Ints:
        """True labels per row."""
        return np.diff(self.indptr)

    def take(self, rows: Ints) -> Positives:
        """The positives of some rows, in the order given."""
        counts = self.counts[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        shifts = np.repeat(self.indptr[rows] - indptr[:-1], counts)
        return Positives(indptr, self.indices[shifts + np.arange(indptr[-1])])

    def columns(self, places: NDArray[np.int32]) -> Positives:
        """The same cells where each label has another index, or -1 and is left out."""
        indices = places[self.indices]
        cells = Positives(self.indptr, indices).filter(indices >= 0)
        rows = np.repeat(np.arange(cells.indptr.size - 1), cells.counts)
        return Positives(cells.indptr, cells.indices[np.lexsort((cells.indices, rows))])

    def rows(self, start: int, stop: int) -> Positives:
        """The positives of rows ``start`` to ``stop``."""
        indptr = self.indptr[start : stop + 1]
        return Positives(indptr - indptr[0], self.indices[indptr[0] : indptr[-1]])

    def places(self, n_labels: int) -> Ints:
        """Each cell's row * n_labels + label, ascending."""
        rows = np.repeat(np.arange(self.indptr.size - 1), self.counts)
        return rows * n_labels + self.indices

    def union(self, others: Positives, n_labels: int) -> Positives:
        """The cells of either, of the same rows."""
        places = np.union1d(self.places(n_labels), others.places(n_labels))
        ends = np.arange(self.indptr.size) * n_labels
        indices = (places % n_labels).astype(np.int32)
        return Positives(np.searchsorted(places, ends).astype(np.int64), indices)

    def filter(self, mask: Bools) -> Positives:
        """Those of the cells that are wanted."""
        ends = np.concatenate([[0], np.cumsum(mask)])[self.indptr]
        return Positives(ends.astype(np.int64), self.indices[mask])

    def among(self, others: Positives, n_labels: int) -> Ints:
        """Where each cell stands among others; -1 where it does not."""
        mine, theirs = self.places(n_labels), others.places(n_labels)
        places = np.searchsorted(theirs, mine)
        there = places < theirs.size
        there[there] = theirs[places[there]] == mine[there]
        return np.where(there, places, -1)


class LabelTotals(NamedTuple):
    """How often each label was true: in so many rows, and with which weight of all rows'.

    Where rows count alike, weights are numbers of rows. Where cells are absent, each label has a
    total of its own.
    """

    n_positives: Ints
    positives: Floats
    total: Any

    @classmethod
    def alike(cls, n_positives: Ints, total: Any) -> LabelTotals:
        """Of rows that count alike."""
        return cls(n_positives, n_positives.astype(np.float64), total * 1.0)


class Labels(Protocol):
    """Labels of a whole panel, of which a block of rows can be asked for."""

    shape: tuple[int, int]

    def positives(self, start: int, stop: int, name_of: NameOf = str) -> Positives:
        """The positives of rows ``start`` to ``stop``; refuses cells that are not 0 or 1."""
        ...

    def truths(self, start: int, stop: int, name_of: NameOf = str) -> NDArray[np.uint8]:
        """The same as 0/1 cells, of shape (rows, labels)."""
        ...

    def take(self, rows: Ints) -> Labels:
        """The labels of some rows, in the order given."""
        ...

    def columns(self, order: Ints) -> Labels:
        """All labels, in the order given."""
        ...


class DenseLabels:
    """A 0/1 array of shape (rows, labels), read where it lies; its labels perhaps in ``order``."""

    def __init__(self, array: Array | FileArray, order: Ints | None = None) -> None:
        if array.dtype.kind not in "biuf":
            raise InvalidInput(
                f"labels must be numbers 0 or 1, got an array of dtype {array.dtype}. "
                "Pass 0/1 cells, a scipy.sparse matrix, or a list of label indices per row."
            )
        self.array, self.order = array, order
        self.shape = (int(array.shape[0]), int(array.shape[1]))

    def positives(self, start: int, stop: int, name_of: NameOf = str) -> Positives:
        """The positives of rows ``start`` to ``stop``; refuses cells that are not 0 or 1."""
        from oddslip.kernels.hits import count_positives, fill_positives

        cells = self.truths(start, stop, name_of)
        indptr = np.zeros(cells.shape[0] + 1, np.int64)
        count_positives(cells, indptr)
        indices = np.empty(int(indptr[-1]), np.int32)
        fill_positives(cells, indptr, indices)
        return Positives(indptr, indices)

    def truths(self, start: int, stop: int, name_of: NameOf = str) -> NDArray[np.uint8]:
        """Rows ``start`` to ``stop`` as bytes; refuses cells that are not 0 or 1."""
        block = self.array[start:stop]
        block = block if self.order is None else block[:, self.order]
        if block.dtype == np.bool_:
            # A file may hold any byte as a bool; the kernels count on 0 and 1.
            cells = np.ascontiguousarray(block).view(np.uint8)
            if cells.max(initial=0) > 1:
                raise _wrong_cell(cells, cells > 1, start, name_of)
        else:
            wrong = (block != 0) & (block != 1)
            if wrong.any():
                raise _wrong_cell(block, wrong, start, name_of)
            cells = np.ascontiguousarray(block.astype(np.uint8))
        return cells

    def take(self, rows: Ints) -> DenseLabels:
        """The labels of some rows, in the order given."""
        return DenseLabels(self.array[rows], self.order)

    def columns(self, order: Ints) -> DenseLabels:
        """All labels, in the order given."""
        return DenseLabels(self.array, order if self.order is None else self.order[order])


def _wrong_cell(block: Array, wrong: Bools, start: int, name_of: NameOf) -> InvalidInput:
    row, label = divmod(int(np.flatnonzero(wrong.ravel())[0]), block.shape[1])
    return InvalidInput(
        f"labels must be 0 or 1, got {block[row, label]:g} "
        f"at row {start + row}, label {name_of(label)!r}."
    )


class SparseLabels:
    """Compressed rows of label indices, ascending and without repeats; perhaps their rows' ids."""

    def __init__(
        self,
        indptr: Ints,
        indices: NDArray[np.int32],
        shape: tuple[int, int],
        row_ids: Array | None = None,
    ) -> None:
        self.indptr, self.indices, self.shape, self.row_ids = indptr, indices, shape, row_ids

    def positives(self, start: int, stop: int, name_of: NameOf = str) -> Positives:
        """The positives of rows ``start`` to ``stop``."""
        return Positives(self.indptr, self.indices).rows(start, stop)

    def truths(self, start: int, stop: int, name_of: NameOf = str) -> NDArray[np.uint8]:
        """Rows ``start`` to ``stop`` as 0/1 cells."""
        indptr, indices = self.positives(start, stop)
        cells = np.zeros((stop - start, self.shape[1]), np.uint8)
        cells[np.repeat(np.arange(stop - start), np.diff(indptr)), indices] = 1
        return cells

    def take(self, rows: Ints) -> SparseLabels:
        """The labels of some rows, in the order given."""
        positives = Positives(self.indptr, self.indices).take(rows)
        ids = None if self.row_ids is None else self.row_ids[rows]
        return SparseLabels(*positives, (int(rows.size), self.shape[1]), ids)

    def columns(self, order: Ints) -> SparseLabels:
        """All labels, in the order given."""
        places = np.argsort(order).astype(np.int32)
        cells = Positives(self.indptr, self.indices).columns(places)
        return SparseLabels(*cells, self.shape, self.row_ids)


def labels_from_sparse(matrix: Any, name_of: NameOf = str) -> SparseLabels:
    """A scipy.sparse matrix or array of 0/1 cells, each stored once: see `oddslip.core.sparse`."""
    indptr, indices = label_rows(matrix, name_of)
    return SparseLabels(indptr, indices, (int(matrix.shape[0]), int(matrix.shape[1])))


def labels_from_lists(
    lists: Sequence[Any], n_labels: int, label_names: Sequence[str] | None = None
) -> SparseLabels:
    """A list of label indices or names for each row; a label named twice is named.

    Integers are names where all names are integers, else indices.

    Examples
    --------
    >>> labels_from_lists([["b"], [], ["a", "b"]], 2, ["a", "b"]).indices
    array([1, 0, 1], dtype=int32)
    """
    place = {name: at for at, name in enumerate(label_names or ())}
    numbered = label_names is not None and are_integers(label_names)
    indptr = np.zeros(len(lists) + 1, np.int64)
    rows = []
    for row, labels in enumerate(lists):
        if any(isinstance(label, str) for label in labels):
            labels = _find_names(labels, place, row)
        elif numbered and np.asarray(labels).dtype.kind in "iu":
            labels = _find_names([str(label) for label in labels], place, row)
        elif len(labels):
            refuse_positions("labels given as lists", label_names)
        indices = np.unique(np.asarray(labels if len(labels) else [], dtype=None))
        if indices.size and (indices.dtype.kind not in "iu"):
            raise InvalidInput(
                f"labels given as lists must hold label indices, got {labels!r:.60} at row {row}."
            )
        if indices.size and (indices[0] < 0 or indices[-1] >= n_labels):
            wrong = indices[0] if indices[0] < 0 else indices[-1]
            raise InvalidInput(
                f"label indices must be between 0 and n_labels - 1 = {n_labels - 1}, "
                f"got {wrong} at row {row}."
            )
        rows.append(indices.astype(np.int32))
        indptr[row + 1] = indptr[row] + indices.size
    indices = np.concatenate(rows) if rows else np.empty(0, np.int32)
    return SparseLabels(indptr, indices, (len(lists), n_labels))


def _find_names(labels: LabelsLike, place: dict[str, int], row: int) -> list[int]:
    """Where the labels that a row names stand."""
    unknown_label = next((label for label in labels if label not in place), None)
    if unknown_label is None:
        return [place[label] for label in labels]
    if not place:
        raise InvalidInput(
            f"labels are listed by name, got {unknown_label!r:.60} at row {row}, but the labels "
            "have no names. Pass label_names, or lists of label indices."
        )
    raise InvalidInput(
        f"labels given as lists must be among label_names, got {unknown_label!r:.60} at row {row}."
    )


def as_labels(
    labels: LabelsLike,
    n_labels: int,
    name_of: NameOf = str,
    label_names: Sequence[str] | None = None,
    own_names: Sequence[str] | None = None,
) -> Labels:
    """Labels in whatever form they came, in the order of ``label_names``.

    ``own_names`` are those of their columns. What is of a class of this module is in order.
    """
    if isinstance(labels, DenseLabels | SparseLabels):
        return labels
    if hasattr(labels, "tocsr"):
        return _in_order(labels_from_sparse(labels, name_of), n_labels, label_names)
    labels = reject_masked("labels", labels, name_of)
    if is_nested(labels):
        if {len(row) for row in labels} != {n_labels} or _names_any(labels):
            return labels_from_lists(labels, n_labels, label_names)
        cells = np.asarray(labels)
        # Rows of n_labels indices and rows of n_labels 0/1 cells look alike; 0/1 wins.
        if cells.max() <= 1:
            return _in_order(DenseLabels(cells), n_labels, label_names)
        return labels_from_lists(labels, n_labels, label_names)
    array: Any = labels if isinstance(labels, FileArray) else np.asarray(labels)
    if array.dtype == object and array.ndim == 1 and is_nested(list(array)):
        return labels_from_lists(list(array), n_labels, label_names)
    if array.ndim != 2:
        raise InvalidInput(
            f"labels must be of shape (rows, labels), got shape {array.shape}. "
            "Pass 0/1 cells, a scipy.sparse matrix, or a list of label indices per row."
        )
    return _in_order(DenseLabels(array), n_labels, label_names, own_names)


def _in_order(
    labels: Labels,
    n_labels: int,
    label_names: Sequence[str] | None,
    own_names: Sequence[str] | None = None,
) -> Labels:
    """Cells whose columns have names or numbers of their own, in the order of the names wanted."""
    counts = n_labels, labels.shape[1]
    if own_names is None and counts[0] != counts[1]:
        return labels  # whoever knows the scores says so
    order = match_labels(label_names, own_names, ("scores", "labels"), n_labels=counts)
    return labels if order is None else labels.columns(order)


def _names_any(lists: Any) -> bool:
    """Whether the first label that is listed is a name."""
    return isinstance(next((label for row in lists for label in row), None), str)


def is_nested(labels: LabelsLike) -> bool:
    """Whether this is a sequence of sequences."""
    if not isinstance(labels, Sequence) or isinstance(labels, str | bytes):
        return False
    return bool(labels) and all(hasattr(row, "__len__") for row in labels)
