"""Long tables: one row per cell, with columns row, label, score and perhaps true.

The cells of a row are contiguous and each row holds every label once, so cell number ``p`` belongs
to row ``p // n_labels``. The number of rows follows from the number of cells, and blocks can be
filled from a stream of batches of any size. Tables in another order are sorted first: see
`sorting`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oddslip.core.types import Array, Ints
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.sources.base import block_rows
from oddslip.sources.batches import Batches, RenamedBatches
from oddslip.sources.long.roles import find_roles
from oddslip.sources.parquet.columns import (
    Block,
    first_null,
    id_cells,
    is_float,
    is_text,
    line_places,
    matched_names,
    name_values,
    ordered_labels,
    score_cells,
    score_dtype,
    truth_cells,
)

CELLS = 128 * 1024  # cells per batch: intermediate arrays should stay in a core's cache


def is_long(schema: Any) -> bool:
    """Whether these columns are those of a long table."""
    return {"row", "label", "score"} <= set(schema.names) and not is_float(
        schema.field("label").type
    )


def as_long(
    files: Batches,
    *,
    columns: Mapping[str, str] | None = None,
    truths: bool = False,
    label_names: Sequence[str] | None = None,
) -> Batches:
    """A long table under the column names row, label, score, true; any other table unchanged."""
    names = files.schema.names
    measures = {
        field.name
        for field in files.schema
        if is_float(field.type) or pa.types.is_boolean(field.type)
    }
    roles = find_roles(
        names, measures, columns=columns, truths=truths, label_names=label_names, called=files.path
    )
    return files if roles is None else RenamedBatches(files, roles)


def check_long(files: Batches) -> None:
    """Reject column types that a long table cannot have."""
    for name in ("row", "label"):
        kind = files.schema.field(name).type
        if pa.types.is_nested(kind):
            raise InvalidInput(
                f"{name} must be a column of names or numbers, got type {kind} in {files.path}."
            )
    kind = files.schema.field("score").type
    if not (is_float(kind) or pa.types.is_integer(kind)):
        raise InvalidInput(f"score must be a column of floats, got type {kind} in {files.path}.")


class LongTable:
    """One line per cell. Labels are ordered as in the first row, or as ``names``."""

    null_absent = False

    def __init__(self, files: Batches, names: Sequence[str] | None) -> None:
        self.files = files
        self.coded = [name for name in ("row", "label") if is_text(files.schema.field(name).type)]
        self.dtype = score_dtype([files.schema.field("score").type])
        self.has_labels = "true" in files.schema.names
        first_row = self._first_row()
        if not first_row:
            raise InvalidInput(f"{files.path} must hold at least one row and one label, got none.")
        self.n_labels = len(first_row)
        labels = [str(label) for label in first_row]
        self.names = matched_names(names, ordered_labels(labels))
        place = {name: at for at, name in enumerate(labels)}
        self.label_set = pa.array([first_row[place[name]] for name in self.names])
        self.n_rows, rest = divmod(files.n_rows, self.n_labels)
        if rest:  # some row is incomplete: a pass over rows and labels finds it
            for _ in self.blocks(scores=False, rows=self.n_rows + 1):
                pass

    def _first_row(self) -> list[Any]:
        row, labels = self._cells_of_row(0)
        distinct = set()
        for label in labels:
            if label is None or label in distinct:
                what = "a null label" if label is None else f"label {str(label)!r} more than once"
                raise InvalidInput(
                    f"every row must hold every label once, got {what} at row {row!r}."
                )
            distinct.add(label)
        return labels

    def _cells_of_row(self, start: int) -> tuple[Any, list[Any]]:
        """The row at a cell, and the labels of that cell and those after it in the same row."""
        row: Any = None
        labels: list[Any] = []
        at = 0
        for batch in self.files.batches(["row", "label"], CELLS, coded=self.coded):
            at += batch.num_rows
            if at <= start:
                continue
            part = batch.slice(max(0, start - at + batch.num_rows))
            codes, first = _codes(part.column("row")), part.column("row")[0].as_py()
            if not labels:
                row = first
            elif first != row:
                break
            changes = np.flatnonzero(codes[1:] != codes[:-1])
            length = int(changes[0]) + 1 if changes.size else len(codes)
            labels.extend(name_values(part.column("label").slice(0, length)))
            if changes.size:
                break
        return row, labels

    def blocks(self, *, scores: bool = True, rows: int | None = None) -> Iterator[Block]:
        """The rows in order; without their scores if only the labels are needed."""
        n_rows = self.n_rows if rows is None else rows
        columns = ["row", "label", *(["score"] if scores else [])]
        columns += ["true"] if self.has_labels else []
        step = block_rows(self.n_labels, self.dtype.itemsize)
        block = _Block(self, 0, min(step, n_rows), scores)
        last: Any = None
        for batch in self.files.batches(columns, CELLS, coded=self.coded):
            at = 0
            while at < batch.num_rows:
                part = batch.slice(at, block.n_missing)
                block.fill(part, last)
                last = part.column("row")[-1].as_py()
                at += part.num_rows
                if block.n_missing == 0:
                    yield block.whole()
                    first = block.first_row + block.n_rows
                    block = _Block(self, first, min(step, n_rows - first), scores)
        if block.n_rows:
            self.raise_incomplete(block.first_row + block.n_filled // self.n_labels)

    def row_ids(self) -> Array:
        """Rows of the table, from the row column alone."""
        parts, at = [], 0
        for batch in self.files.batches(["row"], CELLS, coded=self.coded):
            starts = np.arange(-at % self.n_labels, batch.num_rows, self.n_labels)
            parts.append(id_cells(batch.column("row").take(pa.array(starts))))
            at += batch.num_rows
        return np.concatenate(parts)

    def label_indices(self, column: Any) -> Ints:
        """Index of each cell's label; -1 where the first row does not have it."""
        if pa.types.is_dictionary(column.type):
            label_codes = _label_indices(column.dictionary, self.label_set)
            codes = column.indices.fill_null(len(label_codes)).to_numpy(zero_copy_only=False)
            indices: Ints = np.append(label_codes, -1)[codes]
            return indices
        return _label_indices(column, self.label_set)

    def raise_incomplete(self, row_number: int) -> None:
        """Raise the error of a row that does not hold every label once."""
        row, labels = self._cells_of_row(row_number * self.n_labels)
        valid, present = set(self.label_set.to_pylist()), set()
        rule = "every row must hold every label of the first row once"
        for label in labels:
            if label is None:
                raise InvalidInput(f"{rule}, got a null label at row {row!r}.")
            if label not in valid:
                raise InvalidInput(
                    f"{rule}, got the unknown label {str(label)!r} at row {row!r}. "
                    'If rows score candidates only, pass nan="absent".'
                )
            if label in present:
                raise InvalidInput(f"{rule}, got label {str(label)!r} again at row {row!r}.")
            present.add(label)
        missing = [label for label in self.label_set.to_pylist() if label not in present]
        if missing:
            raise InvalidInput(
                f"{rule}, but row {row!r} lacks label {str(missing[0])!r}. "
                'If rows score candidates only, pass nan="absent".'
            )
        raise UnreadableFile(f"{self.files.path} changed while it was read.")


class _Block:
    """Rows that are filled cell by cell; a row may list its labels in any order."""

    def __init__(self, table: LongTable, first_row: int, n_rows: int, scores: bool) -> None:
        self.table, self.first_row, self.n_rows = table, first_row, n_rows
        size = n_rows * table.n_labels
        self.scores = np.empty(size, table.dtype) if scores else None
        self.truths = np.empty(size, np.bool_) if table.has_labels else None
        self.filled = np.zeros(size, np.bool_)
        self.ids: list[Array] = []
        self.n_filled = 0

    @property
    def n_missing(self) -> int:
        """Cells still to come."""
        return self.filled.size - self.n_filled

    def fill(self, part: Any, last: Any) -> None:
        """Add the next cells. ``last`` is the row of the cell before them."""
        rows = part.column("row")
        n_labels = self.table.n_labels
        if rows.null_count:
            cell = self.first_row * n_labels + self.n_filled + first_null(rows)
            raise InvalidInput(f"row must not be null, got a null at cell {cell} of the table.")
        cells = np.arange(self.n_filled, self.n_filled + part.num_rows)
        places = cells % n_labels
        starts = places == 0
        codes = _codes(rows)
        changes = np.empty(len(cells), np.bool_)
        changes[0] = rows[0].as_py() != last
        changes[1:] = codes[1:] != codes[:-1]
        labels = self.table.label_indices(part.column("label"))
        wrong = (changes != starts) | (labels < 0)
        if wrong.any():
            at = int(np.argmax(wrong))
            self._raise_first(
                cells[:at], labels[:at], too_long=bool(starts[at] and not changes[at])
            )
        targets = cells - places + labels
        self.filled[targets] = True
        if self.scores is not None:
            column = part.column("score")
            self.scores[targets] = score_cells(column, line_places(part))
        if self.truths is not None:
            column = part.column("true")
            self.truths[targets] = truth_cells(column, line_places(part))
        self.ids.append(id_cells(rows.filter(pa.array(starts))))
        self.n_filled += part.num_rows

    def whole(self) -> Block:
        """The complete rows."""
        self._check(self.n_rows)
        shape = (self.n_rows, self.table.n_labels)
        return Block(
            self.n_rows,
            None if self.scores is None else self.scores.reshape(shape),
            None if self.truths is None else self.truths.reshape(shape),
            np.concatenate(self.ids),
        )

    def _check(self, n_rows: int) -> None:
        missing = np.flatnonzero(~self.filled[: n_rows * self.table.n_labels])
        if missing.size:
            self.table.raise_incomplete(self.first_row + int(missing[0]) // self.table.n_labels)

    def _raise_first(self, cells: Array, labels: Array, *, too_long: bool) -> None:
        """Raise the error of the first bad row: that of the cell after these, or one before it."""
        self.filled[cells - cells % self.table.n_labels + labels] = True
        row = (self.n_filled + len(cells)) // self.table.n_labels
        self._check(row)
        # A row that continues where the next should start is the previous one.
        self.table.raise_incomplete(self.first_row + row - too_long)


def _codes(rows: Any) -> Array:
    """Numbers that differ where rows differ."""
    if not (pa.types.is_dictionary(rows.type) or pa.types.is_integer(rows.type)):
        rows = rows.dictionary_encode()
    if pa.types.is_dictionary(rows.type):
        rows = rows.indices
    codes: Array = rows.fill_null(0).to_numpy()
    return codes


def _label_indices(values: Any, label_set: Any) -> Ints:
    if values.type != label_set.type:
        values = values.cast(label_set.type)
    indices: Ints = (
        pc.index_in(values, value_set=label_set).fill_null(-1).to_numpy().astype(np.int64)
    )
    return indices
