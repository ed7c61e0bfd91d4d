"""Groups of labels: their positives by label, the plan of groups, and training on threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.adapters.features import NamedTable, match_tables, split_names
from oddslip.core.labels import Labels, SparseLabels, as_labels
from oddslip.core.panel import check_names
from oddslip.core.row_ids import is_frame, match_labels
from oddslip.core.threads import map_threads
from oddslip.core.types import Array, Floats, Ints, LabelsLike
from oddslip.errors import InvalidInput
from oddslip.io.files import hash_pieces
from oddslip.io.progress import progress_bar
from oddslip.learners.backends.base import Backend, Parameters, PreparedRows, TrainedModel

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BLOCK_ROWS = 65_536
_MAX_LISTED_LABELS = 2**24  # memory is allocated for each label up to the largest index


class LabelColumns:
    """True labels by column: the positives of label j are ``rows[indptr[j]:indptr[j + 1]]``."""

    def __init__(
        self, Y: LabelsLike, label_names: Sequence[str] | None = None, X: NamedTable | None = None
    ) -> None:
        target = split_names(Y, truths=True)
        label_names = target.columns if label_names is None else tuple(label_names)
        cells = target.table
        if is_frame(cells):
            cells = _order_columns(cells.to_numpy(), target.columns, label_names)
        labels = as_labels(cells, _count_labels(cells))
        if X is not None:
            labels = _match(X, target, labels)
        self.n_rows, self.n_labels = labels.shape
        if self.n_rows == 0 or self.n_labels == 0:
            raise InvalidInput(
                f"Y must hold at least one row and one label, got shape {labels.shape}."
            )
        self.names = check_names(label_names, self.n_labels)
        self.indptr, self.rows = _by_label(labels, self.names)

    @classmethod
    def of(cls, indptr: Ints, rows: NDArray[np.int32], n_rows: int) -> Self:
        """From the arrays of another instance; labels have no names."""
        columns = object.__new__(cls)
        columns.indptr, columns.rows, columns.names = indptr, rows, None
        columns.n_rows, columns.n_labels = n_rows, indptr.size - 1
        return columns

    @property
    def n_positives(self) -> Ints:
        """Positives of each label."""
        return np.diff(self.indptr)

    def take(self, labels: Ints) -> NDArray[np.uint8]:
        """0/1 cells of these labels, shape (n_rows, g), in column-major order."""
        cells = np.zeros((labels.size, self.n_rows), np.uint8)
        for place, label in enumerate(labels):
            cells[place, self.rows[self.indptr[label] : self.indptr[label + 1]]] = 1
        return cells.T

    def take_rows(self, labels: Ints) -> csr_matrix:
        """Cells of these labels as a CSR matrix, for learners that batch rows."""
        from scipy.sparse import csc_matrix

        parts = [self.rows[self.indptr[label] : self.indptr[label + 1]] for label in labels]
        indptr = np.concatenate([[0], np.cumsum([part.size for part in parts])])
        rows = np.concatenate(parts)
        cells = np.ones(rows.size, np.uint8)
        return csc_matrix((cells, rows, indptr), (self.n_rows, labels.size)).tocsr()

    def hash(self) -> str:
        """A hash of the true labels."""
        shape = f"{self.n_rows} {self.n_labels}".encode()
        return hash_pieces([shape, self.indptr.data, self.rows.data])


def _order_columns(
    cells: Array, columns: Sequence[str] | None, names: Sequence[str] | None
) -> Array:
    """Cells of a frame in the order of the names, which must equal those of its columns."""
    counts = len(names or columns or ()), cells.shape[1]
    if columns is None or names is None or columns == names:
        return cells
    order = match_labels(names, columns, ("label_names", "columns of Y"), n_labels=counts)
    return cells if order is None else cells[:, order]


def _match(X: NamedTable, Y: NamedTable, labels: Labels) -> Labels:
    """The labels of the rows of X, in its order."""
    n_rows = int(X.table.shape[0]), labels.shape[0]
    if n_rows[0] != n_rows[1]:
        raise InvalidInput(f"X and Y must have the same rows, got {n_rows[0]} and {n_rows[1]}.")
    if isinstance(labels, SparseLabels) and labels.row_ids is not None:  # read from a file
        Y = Y._replace(row_ids=labels.row_ids)
    order = match_tables(X, Y, ("X", "Y"), n_rows=n_rows)
    return labels if order is None else labels.take(order)


def _count_labels(Y: LabelsLike) -> int:
    shape = getattr(Y, "shape", None)
    if shape is not None and len(shape) == 2:
        return int(shape[1])
    if (
        isinstance(Y, Sequence)
        and not isinstance(Y, str | bytes)
        and Y
        and all(hasattr(row, "__len__") for row in Y)
    ):
        widths = {len(row) for row in Y}
        flat = [cell for row in Y for cell in row]
        if len(widths) == 1 and set(flat) <= {0, 1}:
            return widths.pop()
        n_labels = 1 + int(max(flat, default=0))
        if n_labels > _MAX_LISTED_LABELS:
            raise InvalidInput(
                f"label indices of lists must be below {_MAX_LISTED_LABELS}, got {n_labels - 1}. "
                "Pass a scipy.sparse matrix, whose shape says how many labels there are."
            )
        return n_labels
    return 1


def _by_label(labels: Labels, names: tuple[str, ...] | None) -> tuple[Ints, NDArray[np.int32]]:
    n_rows, n_labels = labels.shape
    label_parts, rows = [], []
    for start in range(0, n_rows, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, n_rows)
        block = labels.positives(start, stop, str if names is None else names.__getitem__)
        label_parts.append(np.asarray(block.indices))
        rows.append(np.repeat(np.arange(start, stop, dtype=np.int32), block.counts))
    label_of = np.concatenate(label_parts)
    order = np.argsort(label_of, kind="stable")
    indptr = np.zeros(n_labels + 1, np.int64)
    np.cumsum(np.bincount(label_of, minlength=n_labels), out=indptr[1:])
    return indptr, np.concatenate(rows)[order]


def plan_groups(live: Ints, max_size: int, workers: int) -> list[Ints]:
    """Cut labels into groups of nearly equal size, at most ``max_size`` in each.

    The number of groups is a multiple of the workers, so that none is idle at the end.

    Examples
    --------
    >>> [group.tolist() for group in plan_groups(np.arange(5), max_size=4, workers=2)]
    [[0, 1, 2], [3, 4]]
    """
    if live.size == 0:
        return []
    n_groups = -(-live.size // max_size)
    n_groups = min(live.size, -(-n_groups // workers) * workers)
    return list(np.array_split(live, n_groups))


@dataclass(frozen=True)
class Training:
    """Groups of labels to train, and all that their models depend on but the features."""

    backend: Backend
    columns: LabelColumns
    groups: Sequence[Ints]
    weights: Floats
    parameters: Parameters
    seed: int

    def train(self, data: PreparedRows, number: int) -> TrainedModel:
        """The model of one group, on prepared features."""
        group = self.groups[number]
        take = self.columns.take_rows if self.backend.batches_rows else self.columns.take
        weights = self.weights[group]
        return self.backend.train(data, take(group), weights, self.parameters, self.seed)


def run_groups(
    groups: Sequence[Ints],
    train: Callable[[int], object],
    *,
    workers: int,
    finished_models: dict[int, object],
    save: Callable[[int, object], None],
) -> list[object]:
    """Models of all groups. Those in ``finished_models`` are not trained; others are saved."""

    def train_and_save(number: int) -> object:
        model = train(number)
        save(number, model)
        return model

    models = dict(finished_models)
    missing = [number for number in range(len(groups)) if number not in finished_models]
    with progress_bar("training labels", sum(group.size for group in groups)) as advance:
        advance(sum(groups[number].size for number in finished_models))
        trained = map_threads(missing, train_and_save, threads=workers)
        for number, model in zip(missing, trained, strict=True):
            models[number] = model
            advance(groups[number].size)
    return [models[number] for number in range(len(groups))]
