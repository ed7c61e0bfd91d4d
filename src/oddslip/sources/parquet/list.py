"""Tables with the scores of a row in one list column, and perhaps its true labels in another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oddslip.core.panel import check_names
from oddslip.core.types import Array, Bools
from oddslip.errors import InvalidInput, UnreadableFile, first_line
from oddslip.io.json import parse_json
from oddslip.sources.base import block_rows
from oddslip.sources.batches import Batches
from oddslip.sources.parquet.columns import (
    Block,
    LabelIndex,
    batch_ids,
    cell_places,
    is_float,
    is_list,
    is_row_id,
    is_text,
    list_cells,
    read_ids,
    score_cells,
    score_dtype,
    truth_cells,
)

NAMES_KEY = b"oddslip.label_names"
LISTS = 256 * 1024  # lists of labels per batch


class ListTable:
    """One list column with the scores of a row, as long as there are labels."""

    null_absent = False

    def __init__(self, files: Batches, names: Sequence[str] | None) -> None:
        self.files, self.n_rows = files, files.n_rows
        self.column = score_list(files.schema) or "scores"
        self.id_column, self.truth_column = self._other_columns()
        kind = files.schema.field(self.column).type
        self.dtype = score_dtype([kind.value_type])
        self.n_labels = self._width(kind)
        if self.n_labels == 0:
            raise InvalidInput(f"scores must hold at least one label, got {files.path} with none.")
        stored = files.metadata(NAMES_KEY)
        if stored is not None:
            self.names = check_names(_parse_names(stored, files), self.n_labels)
            if names is not None and tuple(map(str, names)) != self.names:
                raise InvalidInput(
                    f"label_names must be those {files.path} was written with. Leave them out."
                )
        else:
            self.names = check_names(names, self.n_labels)
        self.has_labels = self.truth_column is not None
        self.truths_listed = self.has_labels and self._lists_truths()

    def _other_columns(self) -> tuple[str | None, str | None]:
        ids = truths = None
        for field in self.files.schema:
            if field.name == self.column:
                continue
            if ids is None and is_row_id(field):
                ids = field.name
            elif truths is None and field.name in ("labels", "true") and is_list(field.type):
                truths = field.name
            else:
                raise InvalidInput(
                    f"{self.files.path} holds scores in the list column {self.column!r} and a "
                    f"column {field.name!r} ({field.type}) of unknown meaning. Drop it, or "
                    "rename it to row_id (ids) or labels (lists of 0/1, of indices or of names)."
                )
        return ids, truths

    def _lists_truths(self) -> bool:
        """Whether labels are lists of the true ones, by index or name, and not 0/1 cells.

        Whole numbers are cells if every row has as many as there are labels.
        """
        column = str(self.truth_column)
        kind = self.files.schema.field(column).type
        if pa.types.is_fixed_size_list(kind) and kind.list_size == self.n_labels:
            return is_text(kind.value_type)
        if not pa.types.is_integer(kind.value_type):
            return is_text(kind.value_type) or pa.types.is_null(kind.value_type)
        for batch in self.files.batches([column], LISTS):
            lists = batch.column(column)
            if lists.null_count or (pc.list_value_length(lists).to_numpy() != self.n_labels).any():
                return True
        return False

    def _width(self, kind: Any) -> int:
        if pa.types.is_fixed_size_list(kind):
            return int(kind.list_size)
        for batch in self.files.batches([self.column], 1):
            first = batch.column(self.column)[0]
            return len(first) if first.is_valid else 0
        return 0  # no row

    def blocks(self, *, scores: bool = True) -> Iterator[Block]:
        """The rows in order; without their scores if only the labels are needed."""
        candidates = (self.column if scores else None, self.truth_column, self.id_column)
        columns = [name for name in candidates if name is not None]
        first, shape = 0, (-1, self.n_labels)
        for batch in self.files.batches(columns, block_rows(self.n_labels, self.dtype.itemsize)):
            cells = truths = None
            place_of = cell_places(first, self.n_labels, self.names)
            if scores:
                flat = list_cells(batch.column(self.column), self.n_labels, "scores", first)
                cells = score_cells(flat, place_of, self.null_absent)
                cells = cells.astype(self.dtype, copy=False).reshape(shape)
            if self.truths_listed:
                truths = self._truths_of_lists(batch.column(self.truth_column), first)
            elif self.truth_column is not None:
                flat = list_cells(batch.column(self.truth_column), self.n_labels, "labels", first)
                truths = truth_cells(flat, place_of).reshape(shape)
            yield Block(batch.num_rows, cells, truths, batch_ids(batch, self.id_column, first))
            first += batch.num_rows

    def _truths_of_lists(self, lists: Any, first: int) -> Bools:
        """0/1 cells of lists of true labels; a row without a list has none."""
        rows, indices = LabelIndex(self.names, self.n_labels).indices_of_lists(lists, first)
        truths = np.zeros((len(lists), self.n_labels), np.bool_)
        truths[rows, indices] = True
        lengths = np.bincount(rows, minlength=len(lists))
        twice = np.flatnonzero(truths.sum(axis=1) < lengths)
        if twice.size:
            raise InvalidInput(
                f"labels must list a true label once, got one twice at row "
                f"{first + int(twice[0])}. Cells of 0/1 must be one per label, "
                f"{self.n_labels}, in every row."
            )
        return truths

    def row_ids(self) -> Array | None:
        """Ids of all rows."""
        return read_ids(self.files, self.id_column)


def _parse_names(stored: bytes, files: Batches) -> Any:
    try:
        return parse_json(stored)
    except ValueError as error:
        raise UnreadableFile(
            f"{files.path} must hold label names as JSON in its metadata ({first_line(error)}). "
            f"Write it again, or without {NAMES_KEY.decode()}."
        ) from error


def score_list(schema: Any) -> str | None:
    """Name of the column that lists the scores: the only list of floats, or else of numbers."""
    lists = [field for field in schema if is_list(field.type)]
    floats = [field.name for field in lists if is_float(field.type.value_type)]
    if len(floats) == 1:
        return str(floats[0])
    whole = [
        field.name
        for field in lists
        if pa.types.is_integer(field.type.value_type) and field.name not in ("labels", "true")
    ]
    return str(whole[0]) if not floats and len(whole) == 1 else None
