"""Columns of a batch as NumPy arrays: cells, row ids and label names, with checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oddslip.core.panel import check_names
from oddslip.core.row_ids import (
    ROW_ID_NAMES,
    UnorderedNames,
    are_integers,
    is_numbering,
    refuse_positions,
)
from oddslip.core.types import Array, Bools, Ints
from oddslip.errors import InvalidInput
from oddslip.sources.batches import Batches

PlaceOf = Callable[[int], str]  # location of the i-th cell of a column: "row 3, label 'a'"

ID_ROWS = 64 * 1024  # rows per batch where only ids are read


class Block(NamedTuple):
    """Rows of a table. Fields that were not requested or do not exist are None."""

    n_rows: int
    scores: Array | None
    truths: Bools | None
    ids: Array | None


class LabelIndex:
    """Labels by index or by name, and how many there are.

    Integers are names where all names are integers, and else indices.
    """

    def __init__(self, names: tuple[str, ...] | None, n_labels: int) -> None:
        self.names, self.n_labels = names, n_labels
        self._named_by_integers = names is not None and are_integers(names)

    def indices(self, column: Any, place_of: PlaceOf) -> Ints:
        """Label indices of a column of names or indices."""
        if column.null_count:
            raise InvalidInput(
                f"labels must not be null, got a null at {place_of(first_null(column))}."
            )
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if is_text(column.type) and self.names is None:
            raise InvalidInput(
                f"labels are given by name, got {show_value(column[0])} at {place_of(0)}, "
                "but the labels have no names. Pass label_names."
            )
        if not (is_text(column.type) or pa.types.is_integer(column.type)):
            raise InvalidInput(
                f"labels must be names or indices, got type {column.type} at {place_of(0)}."
            )
        by_name = is_text(column.type) or self._named_by_integers
        if by_name:
            texts = column if is_text(column.type) else column.cast(pa.string())
            name_array = pa.array(self.names, texts.type)
            indices: Array = pc.index_in(texts, value_set=name_array).fill_null(-1).to_numpy()
        else:
            refuse_positions("labels", self.names)
            indices = column.to_numpy()
        wrong = np.flatnonzero((indices < 0) | (indices >= self.n_labels))
        if wrong.size:
            at = int(wrong[0])
            rule = (
                "labels must be among label_names"
                if by_name
                else f"label indices must be between 0 and n_labels - 1 = {self.n_labels - 1}"
            )
            raise InvalidInput(f"{rule}, got {show_value(column[at])} at {place_of(at)}.")
        return indices.astype(np.int64)

    def indices_of_lists(self, lists: Any, first_row: int) -> tuple[Ints, Ints]:
        """Row of each listed label within a batch, and its index; no list lists no label."""
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
        rows = np.repeat(np.arange(len(lists)), lengths)
        if not rows.size:
            return rows, rows
        return rows, self.indices(lists.flatten(), lambda at: f"row {first_row + int(rows[at])}")


def ordered_labels(names: list[str]) -> tuple[str, ...]:
    """Labels of a long table: integers by value, other names as they first come.

    Lines may come in any order, so a label's position means nothing, unless the labels are the
    numbers from 0.

    Examples
    --------
    >>> ordered_labels(["10", "9"]), ordered_labels(["b", "a"])
    (('9', '10'), ('b', 'a'))
    """
    if are_integers(names):
        names = sorted(names, key=Decimal)  # int() rejects thousands of digits
    return tuple(names) if is_numbering(names) else UnorderedNames(names)


def name_values(column: Any) -> list[Any]:
    """Names of rows or labels; rejects bytes that are not UTF-8."""
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        damaged = next(value for value in map(show_value, column) if value.startswith("b"))
        raise InvalidInput(f"names must be UTF-8 text, got {damaged:.60}. Repair them.") from None
    return values


def show_value(value: Any) -> str:
    """A value for an error message; its bytes if the text cannot be decoded."""
    try:
        return repr(value.as_py())
    except UnicodeDecodeError:
        return repr(value.as_buffer().to_pybytes())


def is_float(kind: Any) -> bool:
    """Whether this is a floating-point type."""
    return bool(pa.types.is_floating(kind))


def is_list(kind: Any) -> bool:
    """Whether a column of this type holds a list in each row."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_row_id(field: Any) -> bool:
    """Whether this column names the rows: a known name, and whole numbers or strings."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return field.name in ROW_ID_NAMES and (is_text(kind) or bool(pa.types.is_integer(kind)))


def score_dtype(kinds: Iterable[Any]) -> np.dtype[Any]:
    """The smallest of float32 and float64 that holds every cell of these types."""
    narrow = all(pa.types.is_float16(kind) or pa.types.is_float32(kind) for kind in kinds)
    return np.dtype(np.float32 if narrow else np.float64)


def score_cells(column: Any, place_of: PlaceOf, null_absent: bool = False) -> Array:
    """Scores of a column. A null is an error, unless it marks an absent cell."""
    if column.null_count and not null_absent:
        raise InvalidInput(
            f"scores must not be null, got a null at {place_of(first_null(column))}. "
            'Drop or fill those rows, or pass nan="absent".'
        )
    cells: Array = column.to_numpy(zero_copy_only=False)
    return cells


def truth_cells(column: Any, place_of: PlaceOf) -> Bools:
    """0/1 or bool cells as bool."""
    if column.null_count:
        raise InvalidInput(
            f"labels must be 0 or 1, got a null at {place_of(first_null(column))}. "
            "Fill it with 0 or drop the row."
        )
    cells: Array = column.to_numpy(zero_copy_only=False)
    if cells.dtype == np.bool_:
        return cells
    if cells.dtype.kind not in "iuf":
        raise InvalidInput(f"labels must be 0 or 1, got type {column.type} at {place_of(0)}.")
    truths: Bools = cells == 1
    wrong = np.flatnonzero(~truths & (cells != 0))
    if wrong.size:
        at = int(wrong[0])
        raise InvalidInput(f"labels must be 0 or 1, got {cells[at]:g} at {place_of(at)}.")
    return truths


def id_cells(column: Any, first_row: int = 0) -> Array:
    """Row ids: whole numbers stay numbers, anything else becomes objects."""
    if column.null_count:
        raise InvalidInput(
            f"row ids must not be null, got a null at row {first_row + first_null(column)}. "
            "Fill it or drop the column."
        )
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        cells: Array = column.to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise InvalidInput("row ids must be UTF-8 text, got other bytes. Repair them.") from error
    return cells


def list_cells(column: Any, width: int, what: str, first_row: int) -> Any:
    """Cells of a list column, row after row; every row must list exactly ``width`` of them."""
    if column.null_count:
        raise InvalidInput(
            f"{what} must not be null, got a null instead of a list at row "
            f"{first_row + first_null(column)}. Drop or fill those rows first."
        )
    if not pa.types.is_fixed_size_list(column.type):
        lengths = np.diff(column.offsets.to_numpy())
        wrong = np.flatnonzero(lengths != width)
        if wrong.size:
            raise InvalidInput(
                f"{what} must list {width} cells in every row, "
                f"got {lengths[wrong[0]]} at row {first_row + int(wrong[0])}."
            )
    return column.flatten()


def first_null(column: Any) -> int:
    """Place of the first null of a column that has one."""
    return int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))


def matched_names(label_names: Sequence[str] | None, stored: Sequence[str]) -> tuple[str, ...]:
    """The label names in the order that the caller passed; both sides must hold the same names."""
    if label_names is None:
        return stored if isinstance(stored, tuple) else tuple(stored)
    names = tuple(map(str, label_names))
    unknown = next((name for name in names if name not in set(stored)), None)
    if unknown is not None:
        raise InvalidInput(f"label_names must be those of the file, which lacks {unknown!r}.")
    unnamed = next((name for name in stored if name not in set(names)), None)
    if unnamed is not None:
        raise InvalidInput(
            f"label_names must name every label of the file, {unnamed!r} is missing."
        )
    return check_names(names, len(stored)) or ()


def batch_ids(batch: Any, column: str | None, first_row: int) -> Array | None:
    """Row ids of a batch."""
    return None if column is None else id_cells(batch.column(column), first_row)


def read_ids(files: Batches, column: str | None) -> Array | None:
    """Row ids of a table, from their column alone."""
    if column is None:
        return None
    return join_ids(files.batches([column], ID_ROWS), column)


def join_ids(batches: Iterator[Any], column: str, first_row: int = 0) -> Array:
    """Row ids of these batches."""
    parts = []
    for batch in batches:
        parts.append(id_cells(batch.column(column), first_row))
        first_row += batch.num_rows
    return np.concatenate(parts)


def cell_places(first_row: int, n_labels: int, names: Sequence[str] | None) -> PlaceOf:
    """Where the cells of rows are, one row after another."""

    def place_of(at: int) -> str:
        row, label = divmod(at, n_labels)
        return f"row {first_row + row}, label {str(label) if names is None else names[label]!r}"

    return place_of


def line_places(lines: Any) -> PlaceOf:
    """Where the cells of a long table are: the row and the label that a line names."""

    def place_of(at: int) -> str:
        row, label = (lines.column(name)[at].as_py() for name in ("row", "label"))
        return f"row {row!r}, label {str(label)!r}"

    return place_of
