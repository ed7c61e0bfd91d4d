"""Detects long tables whose rows are scattered, and sorts them through temporary files.

Rows and labels keep the order in which the table first names them, so the place of every cell is
known. Cells go to buckets of rows on disk, and each bucket is sorted in memory. Memory holds all
row ids, but not all cells.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oddslip.core.row_ids import hash_ids
from oddslip.core.types import Array, Bools, Ints
from oddslip.errors import InvalidInput
from oddslip.sources.base import block_rows
from oddslip.sources.batches import Batches
from oddslip.sources.long.table import LongTable
from oddslip.sources.parquet.columns import (
    first_null,
    id_cells,
    line_places,
    matched_names,
    name_values,
    ordered_labels,
    score_cells,
    score_dtype,
    show_value,
    truth_cells,
)
from oddslip.sources.parquet.list import NAMES_KEY
from oddslip.sources.spool import SpooledBatches, free_temporary_bytes

CELLS = 256 * 1024  # cells per batch
BUCKET_BYTES = 32 * 1024 * 1024  # per bucket, unless there would be more than MAX_BUCKETS
MAX_BUCKETS = 200
LOOK_EVERY = 1024 * 1024  # runs of cells between two searches for a repeated row


def is_scattered(files: Batches, names: Sequence[str] | None) -> bool:
    """Whether the cells of some row are not contiguous.

    A row that comes twice, complete each time, counts as two rows of the same name.
    """
    if not _has_repeated_row(files):
        return False
    try:
        for _ in LongTable(files, names).blocks(scores=False):
            pass
    except InvalidInput:
        return True
    return False


def _has_repeated_row(files: Batches) -> bool:
    """Whether some row has two runs of cells; stops at the first."""
    hashes, new_hashes, n_new = np.empty(0, np.uint64), [], 0
    last: Any = None
    for batch in files.batches(["row"], CELLS):
        column = batch.column("row")
        if column.null_count:
            return False  # the reader rejects it
        ids = id_cells(column)
        starts = np.empty(ids.size, np.bool_)
        starts[0], starts[1:] = ids[0] != last, ids[1:] != ids[:-1]
        last = ids[-1]
        new_hashes.append(hash_ids(ids[starts]))
        n_new += new_hashes[-1].size
        if n_new >= max(LOOK_EVERY, hashes.size):
            hashes, n_new, n_before = _merge(hashes, new_hashes), 0, hashes.size + n_new
            new_hashes = []
            if hashes.size < n_before:
                return True
    return _merge(hashes, new_hashes).size < hashes.size + n_new


def _merge(hashes: NDArray[np.uint64], new_hashes: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    return np.unique(np.concatenate([hashes, *new_hashes]))


def sort_cells(files: Batches, names: Sequence[str] | None) -> SpooledBatches:
    """The cells of a long table as a table with a list of scores per row."""
    order = _Order(files, names)
    schema = _list_schema(files, order)
    with ExitStack() as stack, free_temporary_bytes():
        buckets = _Buckets(files, order, stack)
        for batch in _batches(files):
            buckets.add(batch)
        return SpooledBatches(files.path, schema, buckets.rows(schema))


def _batches(files: Batches) -> Iterator[Any]:
    columns = [name for name in ("row", "label", "score", "true") if name in files.schema.names]
    return files.batches(columns, CELLS)


def _list_schema(files: Batches, order: _Order) -> Any:
    dtype = score_dtype([files.schema.field("score").type])
    width = len(order.names)
    fields = [("row_id", order.ids.type), ("scores", pa.list_(pa.from_numpy_dtype(dtype), width))]
    if "true" in files.schema.names:
        fields.append(("labels", pa.list_(pa.bool_(), width)))
    metadata = dict(files.schema.metadata or {})
    return pa.schema(fields, {**metadata, NAMES_KEY: json.dumps(order.names).encode()})


class _Order:
    """Rows and labels of a long table, numbered by first appearance."""

    def __init__(self, files: Batches, names: Sequence[str] | None) -> None:
        self.row: dict[Any, int] = {}
        self.label: dict[Any, int] = {}
        cells = 0
        counts = np.zeros(0, np.int64)
        for batch in files.batches(["row", "label"], CELLS):
            for name, numbers in (("row", self.row), ("label", self.label)):
                column = batch.column(name)
                if column.null_count:
                    cell = cells + first_null(column)
                    raise InvalidInput(
                        f"{name} must not be null, got a null at cell {cell} of the table."
                    )
                for value in name_values(column.unique()):
                    numbers.setdefault(value, len(numbers))
            grown = np.zeros(len(self.row), np.int64)
            grown[: counts.size] = counts
            counts = grown + np.bincount(self.rows(batch), minlength=grown.size)
            cells += batch.num_rows
        self.names = matched_names(names, ordered_labels([str(label) for label in self.label]))
        self.ids = pa.array(list(self.row), files.schema.field("row").type)
        place = {name: at for at, name in enumerate(self.names)}
        self.label = {label: place[str(label)] for label in self.label}
        uneven = np.flatnonzero(counts != len(self.names))
        if uneven.size:
            self._raise_uneven(files, list(self.row)[int(uneven[0])])

    def rows(self, batch: Any) -> Ints:
        """Numbers of the rows of cells."""
        return _numbers(batch.column("row"), self.row)

    def places(self, batch: Any) -> Ints:
        """Position of each cell in the sorted table."""
        return self.rows(batch) * len(self.names) + _numbers(batch.column("label"), self.label)

    def _raise_uneven(self, files: Batches, row: Any) -> None:
        """Raise the error of a row that has too few or too many cells."""
        labels: set[Any] = set()
        rule = "every row must hold every label once"
        for batch in files.batches(["row", "label"], CELLS):
            pairs = zip(
                batch.column("row").to_pylist(), batch.column("label").to_pylist(), strict=True
            )
            for label in (label for owner, label in pairs if owner == row):
                if label in labels:
                    raise InvalidInput(f"{rule}, got label {str(label)!r} again at row {row!r}.")
                labels.add(label)
        missing = next(label for label in self.label if label not in labels)
        raise InvalidInput(
            f"{rule}, but row {row!r} lacks label {str(missing)!r}. "
            'If rows score candidates only, pass nan="absent".'
        )


def _numbers(column: Any, numbers: dict[Any, int]) -> Ints:
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    row_numbers = np.array([numbers[value] for value in coded.dictionary.to_pylist()], np.int64)
    indices: Ints = row_numbers[coded.indices.to_numpy(zero_copy_only=False)]
    return indices


class _Buckets:
    """Cells on disk in input order; each bucket holds the cells of ``step`` rows."""

    def __init__(self, files: Batches, order: _Order, stack: ExitStack) -> None:
        self.order, self.n_labels = order, len(order.names)
        dtype = score_dtype([files.schema.field("score").type])
        self.labelled = "true" in files.schema.names
        fields = [("place", np.int64), ("score", dtype), ("true", np.bool_)]
        self.cell = np.dtype(fields if self.labelled else fields[:2])
        n_rows = len(order.ids)
        row_bytes = self.n_labels * self.cell.itemsize
        self.step = max(1, BUCKET_BYTES // row_bytes, -(-n_rows // MAX_BUCKETS))
        self.n_rows = n_rows
        n_buckets = -(-n_rows // self.step)
        temporary_files = (tempfile.TemporaryFile() for _ in range(n_buckets))  # noqa: SIM115
        self.files = [stack.enter_context(file) for file in temporary_files]

    def add(self, batch: Any) -> None:
        """Write cells to their buckets."""
        place_of = line_places(batch)
        cells = np.empty(batch.num_rows, self.cell)
        cells["place"] = self.order.places(batch)
        cells["score"] = score_cells(batch.column("score"), place_of)
        if self.labelled:
            cells["true"] = truth_cells(batch.column("true"), place_of)
        owners = cells["place"] // (self.n_labels * self.step)
        order = np.argsort(owners, kind="stable")
        cells, ends = cells[order], np.searchsorted(owners[order], np.arange(len(self.files) + 1))
        for bucket, file in enumerate(self.files):
            if ends[bucket] < ends[bucket + 1]:
                file.write(cells[ends[bucket] : ends[bucket + 1]].data)

    def rows(self, schema: Any) -> Iterator[Any]:
        """Whole rows, bucket by bucket."""
        for bucket, file in enumerate(self.files):
            first = bucket * self.step
            n_rows = min(self.step, self.n_rows - first)
            file.seek(0)
            cells = np.frombuffer(file.read(), self.cell)
            file.seek(0)
            file.truncate()
            places = cells["place"] - first * self.n_labels
            filled = np.zeros(n_rows * self.n_labels, np.bool_)
            filled[places] = True
            if not filled.all():
                self._raise_gap(places, filled, first)
            scores = np.empty(filled.size, self.cell["score"])
            scores[places] = cells["score"]
            truths = None
            if self.labelled:
                truths = np.empty(filled.size, np.bool_)
                truths[places] = cells["true"]
            yield from self._cut(schema, first, n_rows, scores, truths)

    def _cut(
        self,
        schema: Any,
        first: int,
        n_rows: int,
        scores: Array,
        truths: Bools | None,
    ) -> Iterator[Any]:
        """Batches of rows, each small enough for one write."""
        step = block_rows(self.n_labels, self.cell.itemsize)
        for start in range(0, n_rows, step):
            stop = min(start + step, n_rows)
            columns = [self.order.ids.slice(first + start, stop - start)]
            for cells in (scores, truths):
                if cells is not None:
                    part = pa.array(cells[start * self.n_labels : stop * self.n_labels])
                    columns.append(pa.FixedSizeListArray.from_arrays(part, self.n_labels))
            yield pa.record_batch(columns, schema=schema)

    def _raise_gap(self, places: Ints, filled: Bools, first: int) -> None:
        """Raise the error of a missing cell: another came twice, or the file changed."""
        cells, times = np.unique(places, return_counts=True)
        twice = cells[times > 1]
        row, label = divmod(int(twice[0] if twice.size else np.argmin(filled)), self.n_labels)
        raise InvalidInput(
            f"every row must hold every label once, got label {self.order.names[label]!r} "
            f"{'again' if twice.size else 'not at all'} at row "
            f"{show_value(self.order.ids[first + row])}."
        )
