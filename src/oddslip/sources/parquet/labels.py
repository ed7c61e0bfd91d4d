"""Labels in tables: a 0/1 column per label, (row, label) pairs, or a list per row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from oddslip.core.labels import DenseLabels, Positives, SparseLabels
from oddslip.core.panel import check_names
from oddslip.core.row_ids import is_numbering
from oddslip.core.types import Array, Ints
from oddslip.errors import InvalidInput
from oddslip.io.inputs import check_memory
from oddslip.sources.base import block_rows, join_positives
from oddslip.sources.batches import Batches
from oddslip.sources.long.roles import PAIRS_FORM
from oddslip.sources.long.table import as_long
from oddslip.sources.parquet.columns import (
    LabelIndex,
    PlaceOf,
    cell_places,
    id_cells,
    is_list,
    is_row_id,
    list_cells,
    matched_names,
    read_ids,
    truth_cells,
)

ROWS_KEY = b"oddslip.n_rows"
PAIRS = 256 * 1024  # pairs or lists per batch


def read_label_table(
    files: Batches,
    label_names: Sequence[str] | None = None,
    *,
    shape: tuple[int, ...] | None = None,
    row_ids: Array | None = None,
) -> SparseLabels:
    """Labels of a table, as compressed rows. Memory grows with the positives.

    Parameters
    ----------
    files : Batches
        In one of three layouts, recognised from the columns: *wide*, a 0/1 or bool column per
        label and perhaps row ids, aligned by name with ``label_names``; *long*, columns ``row``
        (a row number, or an id where the scores have ids; ``row_id`` always is one), ``label``
        (a name or an index) and perhaps ``true``, one line per true pair; *list*, one column that
        lists the true labels of each row, by index or by name. A fixed-size list as long as there
        are labels, or a list of bools, holds 0/1 cells instead.
    label_names : sequence of str, optional
        Names of the labels, in the order of the scores.
    shape : (n_rows, n_labels), optional
        Shape of the scores. The number of rows of pairs is taken from the schema metadata under
        ``oddslip.n_rows``, else from here.
    row_ids : ndarray, optional
        Ids of the rows of the scores; pairs are matched by them.

    Examples
    --------
    >>> labels = read_label_table(ParquetFiles(Path("y.parquet")), ["a", "b"])  # doctest: +SKIP
    >>> labels.shape  # doctest: +SKIP
    (131209, 2)
    """
    files = as_long(files, truths=True, label_names=label_names)
    columns = set(files.schema.names)
    row = "row_id" if "row_id" in columns else "row"
    if {row, "label"} <= columns <= {row, "label", "true"}:
        names = _index_labels(files, label_names, shape)
        rows = _Numbers(files, row, shape) if row_ids is None else _Ids(files, row, row_ids)
        return _read_pairs(files, names, rows)
    lists = [field for field in files.schema if is_list(field.type)]
    others = [field for field in files.schema if not is_list(field.type)]
    if len(lists) == 1 and all(is_row_id(field) for field in others):
        names = _index_labels(files, label_names, shape)
        kind = lists[0].type
        same_width = pa.types.is_fixed_size_list(kind) and kind.list_size == names.n_labels
        dense = same_width or pa.types.is_boolean(kind.value_type)
        read_lists = _cell_lists if dense else _index_lists
        ids = read_ids(files, others[0].name if others else None)
        return _join(read_lists(files, lists[0].name, names), names.n_labels, ids)
    return _read_wide(files, label_names)


def _index_labels(
    files: Batches, label_names: Sequence[str] | None, shape: tuple[int, ...] | None
) -> LabelIndex:
    """Labels of a file that does not hold their number."""
    names = None if label_names is None else check_names(label_names, len(label_names))
    if names is not None:
        return LabelIndex(names, len(names))
    if shape is None:
        raise InvalidInput(
            f"{files.path} lists true labels only, so the number of labels must be known. "
            "Pass label_names, or the scores as well."
        )
    return LabelIndex(None, int(shape[1]))


def _read_wide(files: Batches, label_names: Sequence[str] | None) -> SparseLabels:
    check_names(files.schema.names, len(files.schema.names))
    columns = [field for field in files.schema if not is_row_id(field)]
    for field in columns:
        if not (
            pa.types.is_boolean(field.type)
            or pa.types.is_integer(field.type)
            or pa.types.is_floating(field.type)
        ):
            raise InvalidInput(
                f"{files.path} must hold a 0/1 column per label, columns row and label, or one "
                f"list column, got column {field.name!r} of type {field.type}. Drop it, or rename "
                f"it to row_id if it names the rows. {PAIRS_FORM}"
            )
    names = matched_names(label_names, [field.name for field in columns])
    if label_names is None and is_numbering(names):  # like scores without names
        names = tuple(sorted(names, key=int))
    ids = next((field.name for field in files.schema if is_row_id(field)), None)
    return _join(_wide_blocks(files, names), len(names), read_ids(files, ids))


def _wide_blocks(files: Batches, names: tuple[str, ...]) -> Iterator[Positives]:
    first = 0
    for batch in files.batches(names, block_rows(len(names), 1)):
        cells = np.empty((batch.num_rows, len(names)), np.bool_)
        for label, name in enumerate(names):
            cells[:, label] = truth_cells(batch.column(name), cell_places(first, 1, (name,)))
        yield DenseLabels(cells).positives(0, batch.num_rows)
        first += batch.num_rows


def _cell_lists(files: Batches, column: str, names: LabelIndex) -> Iterator[Positives]:
    first, width = 0, names.n_labels
    for batch in files.batches([column], block_rows(width, 1)):
        column_cells = list_cells(batch.column(column), width, "labels", first)
        cells = truth_cells(column_cells, cell_places(first, width, names.names)).reshape(-1, width)
        yield DenseLabels(cells).positives(0, batch.num_rows)
        first += batch.num_rows


def _index_lists(files: Batches, column: str, names: LabelIndex) -> Iterator[Positives]:
    first = 0
    for batch in files.batches([column], PAIRS):
        rows, indices = names.indices_of_lists(batch.column(column), first)
        yield _compress(np.unique(rows * names.n_labels + indices), batch.num_rows, names)
        first += batch.num_rows


def _read_pairs(files: Batches, names: LabelIndex, numbered: _Numbers | _Ids) -> SparseLabels:
    pairs, n_rows = [np.empty(0, np.int64)], numbered.n_rows
    for batch in files.batches(files.schema.names, PAIRS):
        rows = numbered.numbers(batch.column(numbered.column))
        place_of = _row_places(rows)
        indices = names.indices(batch.column("label"), place_of)
        keys = rows * names.n_labels + indices
        if "true" in files.schema.names:
            keys = keys[truth_cells(batch.column("true"), place_of)]
        pairs.append(keys)
    parts = [_compress(np.unique(np.concatenate(pairs)), n_rows, names)]
    return _join(parts, names.n_labels, numbered.ids)


class _Numbers:
    """Rows of pairs by their number."""

    ids = None

    def __init__(self, files: Batches, column: str, shape: tuple[int, ...] | None) -> None:
        self.column = column
        kind = files.schema.field(column).type
        if column == "row_id" or not pa.types.is_integer(kind):
            raise InvalidInput(
                f"{column} must be a row number in {files.path}, since the scores have no row ids, "
                f"got type {kind}. Give the scores ids, or number their rows from 0 as row."
            )
        self.n_rows = _stored_rows(files, shape)

    def numbers(self, column: Any) -> Ints:
        """Row numbers of a batch."""
        return _row_numbers(column, self.n_rows)


class _Ids:
    """Rows of pairs by the ids of the scores."""

    def __init__(self, files: Batches, column: str, ids: Array) -> None:
        self.column, self.ids, self.n_rows = column, ids, int(ids.size)
        self._place = {name: at for at, name in enumerate(ids.tolist())}
        if len(self._place) < ids.size:
            raise InvalidInput(
                f"row ids of the scores must be unique to find the rows of {files.path} by them, "
                "got one more than once. Number the rows from 0 as row, and drop the ids."
            )

    def numbers(self, column: Any) -> Ints:
        """Row numbers of a batch among the scores."""
        ids = id_cells(column).tolist()
        unknown = next((name for name in ids if name not in self._place), None)
        if unknown is not None:
            raise InvalidInput(
                f"labels must be of rows of the scores, got {unknown!r:.60}, which is none of "
                "their row ids. Drop those pairs."
            )
        return np.fromiter((self._place[name] for name in ids), np.int64, len(ids))


def _stored_rows(files: Batches, shape: tuple[int, ...] | None) -> int:
    stored = files.metadata(ROWS_KEY)
    if stored is not None and stored.isdigit():
        n_rows = int(stored[:20])
        check_memory(files.path, 8 * (n_rows + 1))
        return n_rows
    if shape is None:
        raise InvalidInput(
            f"{files.path} lists true pairs only, so the number of rows must be known. "
            "Store it in the schema metadata as oddslip.n_rows, or pass the scores as well."
        )
    return int(shape[0])


def _row_numbers(column: Any, n_rows: int) -> Ints:
    if column.null_count:
        raise InvalidInput("row must not be null, got a null. Drop those pairs.")
    rows: Array = column.to_numpy()
    wrong = np.flatnonzero((rows < 0) | (rows >= n_rows))
    if wrong.size:
        raise InvalidInput(
            f"row must be between 0 and n_rows - 1 = {n_rows - 1}, got {rows[wrong[0]]}. "
            "Number the rows from 0 in the order of the scores."
        )
    return rows.astype(np.int64)


def _compress(keys: Ints, n_rows: int, names: LabelIndex) -> Positives:
    """Positives from sorted, distinct keys row * n_labels + label."""
    rows, indices = np.divmod(keys, names.n_labels)
    indptr = np.searchsorted(rows, np.arange(n_rows + 1))
    return Positives(indptr.astype(np.int64), indices.astype(np.int32))


def _join(
    parts: Iterator[Positives] | list[Positives], n_labels: int, ids: Array | None = None
) -> SparseLabels:
    whole = join_positives(parts)
    return SparseLabels(whole.indptr, whole.indices, (len(whole.indptr) - 1, n_labels), ids)


def _row_places(rows: Array) -> PlaceOf:
    return lambda at: f"row {rows[at]}"
