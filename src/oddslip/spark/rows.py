"""Arrow batches of a table as panels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oddslip.core.labels import Positives, SparseLabels
from oddslip.core.panel import Panel, SparsePanel
from oddslip.core.row_ids import hash_with_salt
from oddslip.core.types import Array, Ints
from oddslip.errors import InvalidInput
from oddslip.kernels import Kind

BLOCK_BYTES = 8 * 1024 * 1024
LABEL_FIELDS = ("label", "item")  # names that the label field of a candidate may have
WIDEST = 8  # times a block of candidates may grow when it becomes a block of all cells


class Layout(NamedTuple):
    """Roles of the columns of a table, and the type of its cells.

    ``scores``, ``labels``, ``row_id`` and ``twin`` are names of columns; None for a column that is
    missing or not read in this pass. Where rows are ``listed``, scores are lists of (label, score)
    of the candidates; the lists may hold the true labels too, and are the labels' column then.
    """

    n_labels: int
    kind: Kind
    dtype: np.dtype
    label_names: tuple[str, ...] | None = None
    scores: str | None = None
    labels: str | None = None
    row_id: str | None = None
    twin: str | None = None
    listed: bool = False

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        names = (self.scores, self.labels, self.row_id, self.twin)
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def block_rows(self) -> int:
        """Rows of eight megabytes of scores."""
        return max(1, BLOCK_BYTES // (self.n_labels * self.dtype.itemsize))


def check_columns(names: Sequence[str], columns: Mapping[str, object]) -> None:
    """Reject a column that a table does not have; None is none."""
    for part, name in columns.items():
        if name is not None and name not in names:
            raise InvalidInput(
                f"{part} must name a column, one of {', '.join(names):.120}, got {name!r:.60}."
            )


def read_panels(batches: Iterable[pa.RecordBatch], layout: Layout) -> Iterator[Panel]:
    """Panels of about eight megabytes, however large the batches are."""
    for block in cut_blocks(batches, layout):
        yield read_panel(block, layout)


def cut_blocks(batches: Iterable[pa.RecordBatch], layout: Layout) -> Iterator[pa.Table]:
    """The rows in tables of about eight megabytes of scores."""
    max_rows = layout.block_rows * (WIDEST if layout.listed else 1)
    pending: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        if batch.num_rows:
            pending.append(batch)
            n_rows += batch.num_rows
        if n_rows >= max_rows:
            yield from _cut(pending, max_rows)
            pending, n_rows = [], 0
    if pending:
        yield from _cut(pending, max_rows)


def _cut(batches: list[pa.RecordBatch], max_rows: int) -> Iterator[pa.Table]:
    table = pa.Table.from_batches(batches)
    for start in range(0, table.num_rows, max_rows):
        yield table.slice(start, max_rows)


def read_panel(table: pa.Table, layout: Layout) -> Panel:
    """Some rows as one panel; its cells are not checked yet."""
    n_rows = table.num_rows
    panel: Panel = object.__new__(SparsePanel if layout.listed else Panel)
    panel.kind, panel.label_names = layout.kind, layout.label_names
    panel.numbered = False
    if layout.row_id is not None:
        ids = whole_column(table, layout.row_id)
        if ids.null_count:
            raise InvalidInput(f"{layout.row_id} must name every row, got a null.")
        is_integer = pa.types.is_integer(ids.type)
        panel.row_ids = numbers_of(ids) if is_integer else ids.to_numpy(zero_copy_only=False)
    if isinstance(panel, SparsePanel):
        _put_candidates(table, layout, panel)
    elif layout.scores is None:
        panel.scores = np.broadcast_to(np.zeros(1, layout.dtype), (n_rows, layout.n_labels))
    else:
        panel.scores = _scores(table, layout.scores, layout, panel)
    if layout.twin is not None:
        twin = panel.rows(0, n_rows)
        twin.scores = _scores(table, layout.twin, layout, panel)
        panel.twin = twin
    if layout.labels is not None and panel.labels is None:
        positives = _positives(table, layout.labels, layout, panel)
        panel.labels = SparseLabels(*positives, (n_rows, layout.n_labels))
    return panel


def sum_of_keys(panel: Panel) -> int:
    """The sum of the row keys, which identifies a set of rows in any order."""
    if panel.row_ids is not None:
        return int(panel.row_keys().sum(dtype=np.uint64))
    if panel.labels is None:
        return 0
    return int(hash_with_salt(panel.positives().indices.astype(np.uint64), 0).sum(dtype=np.uint64))


def whole_column(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    return pa.concat_arrays(table.column(name).chunks)


def numbers_of(column: pa.Array) -> Array:
    """Numbers of a column without nulls, not copied; pyarrow's conversion would import pandas."""
    return np.from_dlpack(column)


def ascending(cells: Ints) -> Ints:
    """Distinct values in order. Usually they are already, which is cheap to check.

    Examples
    --------
    >>> ascending(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    if np.all(cells[1:] > cells[:-1]):
        return cells
    cells = np.sort(cells)
    first = np.concatenate([[True], cells[1:] > cells[:-1]])
    return np.asarray(cells[first], np.int64)


def _first_null(column: pa.Array) -> int:
    """Place of the first null of a column that has one."""
    return int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))


def _lists(table: pa.Table, name: str, panel: Panel) -> tuple[Ints, pa.Array]:
    """Offsets of the list of every row, and the concatenated values."""
    column = whole_column(table, name)
    if column.null_count:
        place = panel.name_row(_first_null(column))
        raise InvalidInput(f"{name} must hold a list in every row, got null at {place}.")
    lengths = numbers_of(pc.list_value_length(column))
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    values = column.flatten()
    if values.null_count:
        cell = _first_null(values)
        row = int(np.searchsorted(ends, cell, side="right")) - 1
        raise InvalidInput(f"{name} must hold no null, got one at {panel.name_row(row)}.")
    return ends, values


def _scores(table: pa.Table, name: str, layout: Layout, panel: Panel) -> Array:
    ends, values = _lists(table, name, panel)
    wrong = np.flatnonzero(np.diff(ends) != layout.n_labels)
    if wrong.size:
        row = int(wrong[0])
        raise InvalidInput(
            f"{name} must hold one score per label, n_labels={layout.n_labels:,}, "
            f"got {ends[row + 1] - ends[row]:,} at {panel.name_row(row)}."
        )
    cells = numbers_of(values)
    return np.asarray(cells, layout.dtype).reshape(-1, layout.n_labels)


def _put_candidates(table: pa.Table, layout: Layout, panel: SparsePanel) -> None:
    """Put the candidates into the panel, in the order of labels, with true labels if present."""
    name = str(layout.scores)
    ends, values = _lists(table, name, panel)
    rows = np.repeat(np.arange(ends.size - 1), np.diff(ends))
    parts = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
    labels = parts.pop(next(part for part in parts if part in LABEL_FIELDS))
    for part, column in {"label": labels, **parts}.items():
        if column.null_count:
            row = int(rows[_first_null(column)])
            raise InvalidInput(
                f"{part} of a candidate must not be null, got one at {panel.name_row(row)}."
            )
    indices = _indices(labels, rows, name, layout, panel)
    order = np.lexsort((indices, rows))
    places = (rows * layout.n_labels + indices)[order]
    duplicates = np.flatnonzero(places[1:] == places[:-1])
    if duplicates.size:
        row, label = divmod(int(places[duplicates[0]]), layout.n_labels)
        raise InvalidInput(
            f"a cell must be there once, got two at {panel.name_row(row)}, "
            f"label {panel.name_of(label)!r}."
        )
    cells = np.asarray(parts["score"].to_numpy(zero_copy_only=False), layout.dtype)[order]
    shape = (ends.size - 1, layout.n_labels)
    panel._put(Positives(ends, indices[order].astype(np.int32)), cells, shape)
    if layout.labels == layout.scores:
        true = np.asarray(parts["true"].to_numpy(zero_copy_only=False))[order]
        wrong = np.flatnonzero((true != 0) & (true != 1))
        if wrong.size:
            row, label = divmod(int(places[wrong[0]]), layout.n_labels)
            raise InvalidInput(
                f"labels must be 0 or 1, got {true[wrong[0]]} at {panel.name_row(row)}, "
                f"label {panel.name_of(label)!r}."
            )
        panel.labels = SparseLabels(*panel.positions.filter(true == 1), shape)


def _positives(table: pa.Table, name: str, layout: Layout, panel: Panel) -> Positives:
    ends, values = _lists(table, name, panel)
    rows = np.repeat(np.arange(ends.size - 1), np.diff(ends))
    indices = _indices(values, rows, name, layout, panel)
    # Ascending within a row; a label listed twice counts once.
    cells = ascending(rows * layout.n_labels + indices)
    counts = np.bincount(cells // layout.n_labels, minlength=ends.size - 1)
    return Positives(
        np.concatenate([[0], np.cumsum(counts)]), (cells % layout.n_labels).astype(np.int32)
    )


def _indices(values: pa.Array, rows: Ints, name: str, layout: Layout, panel: Panel) -> Ints:
    """Indices of labels that are listed by name or by number."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        matches = pc.index_in(values, pa.array(layout.label_names or (), values.type))
        if matches.null_count:
            cell = _first_null(matches)
            raise InvalidInput(
                f"{name} must be among label_names, got {values[cell].as_py()!r:.60} "
                f"at {panel.name_row(int(rows[cell]))}."
            )
        indices = numbers_of(matches).astype(np.int64)
    else:
        indices = numbers_of(values).astype(np.int64)
        wrong = np.flatnonzero((indices < 0) | (indices >= layout.n_labels))
        if wrong.size:
            raise InvalidInput(
                f"{name} must hold label indices between 0 and n_labels - 1 = "
                f"{layout.n_labels - 1}, got {indices[wrong[0]]} at "
                f"{panel.name_row(int(rows[wrong[0]]))}."
            )
    return indices
