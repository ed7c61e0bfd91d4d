"""Wide Parquet tables: one float column per label, named after it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oddslip.core.panel import check_names
from oddslip.core.types import Array
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.sources.base import block_rows
from oddslip.sources.batches import Batches
from oddslip.sources.long.roles import FORM
from oddslip.sources.parquet.columns import (
    ID_ROWS,
    Block,
    batch_ids,
    cell_places,
    is_float,
    is_row_id,
    join_ids,
    matched_names,
    read_ids,
    score_cells,
    score_dtype,
)
from oddslip.sources.spool import free_temporary_bytes

GROUP_BYTES = 64 * 1024 * 1024  # cells of a row group that may be in memory at a time


class WideTable:
    """One float column per label. Column names are label names."""

    has_labels = False
    null_absent = False

    def __init__(self, files: Batches, names: Sequence[str] | None) -> None:
        self.files, self.n_rows = files, files.n_rows
        self.id_column, columns = split_columns(files.schema, files)
        self.names = matched_names(names, columns)
        self.n_labels = len(self.names)
        self.dtype = score_dtype(files.schema.field(name).type for name in self.names)

    def blocks(self, *, scores: bool = True) -> Iterator[Block]:
        """The rows in order. There are no labels to read without the scores."""
        first = 0
        for file in self.files.files:
            groups = self.files.group_rows(file)
            if max(groups, default=0) * self.n_labels * self.dtype.itemsize <= GROUP_BYTES:
                blocks = self._streamed(file, first)
            else:
                blocks = self._spilled(file, groups, first)
            for block in blocks:
                yield block
                first += block.n_rows

    def _streamed(self, file: Any, first: int) -> Iterator[Block]:
        columns = [*self.names, *([self.id_column] if self.id_column else [])]
        step = block_rows(self.n_labels, self.dtype.itemsize)
        for batch in self.files.file_batches(file, columns, step):
            cells = self._cells(batch, self.names, first)
            yield Block(batch.num_rows, cells, None, batch_ids(batch, self.id_column, first))
            first += batch.num_rows

    def _spilled(self, file: Any, groups: list[int], first: int) -> Iterator[Block]:
        """Large row groups, turned from columns into rows through a temporary file.

        Streaming rows keeps a page and a dictionary of every column in memory, often more than all
        cells of the row group. So a few columns at a time are written, and rows are read back.
        """
        size = self.dtype.itemsize
        step = block_rows(self.n_labels, size)
        for group, n_rows in enumerate(groups):
            width = max(1, GROUP_BYTES // 2 // (max(1, n_rows) * size))
            stripes = [self.names[at : at + width] for at in range(0, self.n_labels, width)]
            with tempfile.TemporaryFile() as scratch, free_temporary_bytes():
                for names in stripes:
                    rows = block_rows(len(names), size)
                    at = first
                    for batch in self.files.file_batches(file, names, rows, groups=[group]):
                        scratch.write(self._cells(batch, names, at).data)
                        at += batch.num_rows
                    if at != first + n_rows:  # else unwritten bytes would be read
                        raise UnreadableFile(
                            f"{file} must hold the {n_rows} rows that row group {group} declares, "
                            f"got {at - first}."
                        )
                ids = self._group_ids(file, group, first)
                for start in range(0, n_rows, step):
                    stop = min(start + step, n_rows)
                    cells = np.empty((stop - start, self.n_labels), self.dtype)
                    label = 0
                    for names in stripes:
                        stripe = np.empty((stop - start, len(names)), self.dtype)
                        scratch.seek((label * n_rows + start * len(names)) * size)
                        scratch.readinto(stripe.data)
                        cells[:, label : label + len(names)] = stripe
                        label += len(names)
                    yield Block(len(cells), cells, None, None if ids is None else ids[start:stop])
            first += n_rows

    def _group_ids(self, file: Any, group: int, first: int) -> Array | None:
        if self.id_column is None:
            return None
        batches = self.files.file_batches(file, [self.id_column], ID_ROWS, groups=[group])
        return join_ids(batches, self.id_column, first)

    def _cells(self, batch: Any, names: Sequence[str], first: int) -> Array:
        cells = np.empty((batch.num_rows, len(names)), self.dtype)
        for label, name in enumerate(names):
            cells[:, label] = score_cells(
                batch.column(name), cell_places(first, 1, (name,)), self.null_absent
            )
        return cells

    def row_ids(self) -> Array | None:
        """Ids of all rows."""
        return read_ids(self.files, self.id_column)


def split_columns(schema: Any, files: Batches) -> tuple[str | None, list[str]]:
    """The row-id column, if there is one, and the float columns."""
    check_names(schema.names, len(schema.names))
    others = [field for field in schema if not is_float(field.type)]
    ids = others[0].name if others and is_row_id(others[0]) else None
    for field in others:
        if field.name != ids:
            raise InvalidInput(
                f"{files.path} must hold one float column per label, got column {field.name!r} of "
                f"type {field.type}. Drop it, cast it to float32, or rename it to row_id "
                f"if it names the rows. {FORM}"
            )
    columns = [field.name for field in schema if field.name != ids]
    if not columns:
        raise InvalidInput(f"{files.path} must hold one float column per label, got none.")
    return ids, columns
