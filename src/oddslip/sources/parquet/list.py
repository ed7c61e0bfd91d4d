"""Parquet tables with the scores of a row in one list column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from oddslip.documents import parse_json
from oddslip.errors import InvalidInput, UnreadableFile, first_line
from oddslip.panels import check_names
from oddslip.sources.base import block_rows
from oddslip.sources.parquet.columns import (
    ID_ROWS,
    Block,
    PlaceOf,
    batch_ids,
    is_float,
    is_list,
    is_row_id,
    list_cells,
    read_ids,
    score_cells,
    score_dtype,
    truth_cells,
)
from oddslip.sources.parquet.files import ParquetFiles

NAMES_KEY = b"oddslip.label_names"


class ListTable:
    """One list column with the scores of a row, as long as there are labels."""

    null_absent = False

    def __init__(self, files: ParquetFiles, names: Sequence[str] | None) -> None:
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
                    "rename it to row_id (ids) or labels (lists of 0/1)."
                )
        return ids, truths

    def _width(self, kind: Any) -> int:
        if pa.types.is_fixed_size_list(kind):
            return int(kind.list_size)
        first = next(self.files.batches([self.column], 1)).column(self.column)[0]
        return len(first) if first.is_valid else 0

    def blocks(self, *, scores: bool = True) -> Iterator[Block]:
        """The rows in order; without their scores if only the labels are wanted."""
        wanted = (self.column if scores else None, self.truth_column, self.id_column)
        columns = [name for name in wanted if name is not None]
        first, shape = 0, (-1, self.n_labels)
        for batch in self.files.batches(columns, block_rows(self.n_labels, self.dtype.itemsize)):
            cells = truths = None
            place_of = self._places(first)
            if scores:
                listed = list_cells(batch.column(self.column), self.n_labels, "scores", first)
                cells = score_cells(listed, place_of, self.null_absent)
                cells = cells.astype(self.dtype, copy=False).reshape(shape)
            if self.truth_column is not None:
                listed = list_cells(batch.column(self.truth_column), self.n_labels, "labels", first)
                truths = truth_cells(listed, place_of).reshape(shape)
            yield Block(batch.num_rows, cells, truths, batch_ids(batch, self.id_column, first))
            first += batch.num_rows

    def _places(self, first: int) -> PlaceOf:
        def place_of(at: int) -> str:
            row, label = divmod(at, self.n_labels)
            name = str(label) if self.names is None else self.names[label]
            return f"row {first + row}, label {name!r}"

        return place_of

    def row_ids(self) -> NDArray[Any] | None:
        """Ids of all rows."""
        if self.id_column is None:
            return None
        return read_ids(self.files.batches([self.id_column], ID_ROWS), self.id_column)


def _parse_names(stored: bytes, files: ParquetFiles) -> Any:
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
