"""Rows that score some labels only (candidates), from sparse matrices and long tables.

A stored cell is a candidate, even if its score is 0; any other cell is absent. Work and memory grow
with the candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oddslip.core.labels import Positives, SparseLabels
from oddslip.core.panel import Kind, Panel, SparsePanel, check_names
from oddslip.core.sparse import as_rows, ascends
from oddslip.core.types import Array, Ints
from oddslip.errors import InvalidInput
from oddslip.sources.base import BLOCK_BYTES, Source, block_rows

MAX_DENSE_BLOCKS = 8  # size of a block of candidates, if it were dense, in blocks


class SparseSource(Source):
    """Candidates in memory, cut into views of rows."""

    partial = True

    def __init__(self, panel: SparsePanel) -> None:
        self.panel = panel
        self.n_rows, self.n_labels = panel.n_rows, panel.n_labels
        self.kind, self.label_names = panel.kind, panel.label_names
        self.dtype = panel.cells.dtype
        self.has_labels = panel.labels is not None

    def row_ids(self) -> Array | None:
        """Ids of all rows, or None where rows are only numbered."""
        return self.panel.row_ids

    def positives(self) -> Positives:
        """True labels of all rows that are candidates."""
        return self.panel.positives()

    def blocks(self) -> Iterator[Panel]:
        """Views of some rows."""
        most = MAX_DENSE_BLOCKS * block_rows(self.n_labels, self.dtype.itemsize)
        indptr = self.panel.positions.indptr
        cells = BLOCK_BYTES // 8
        start = 0
        while start < self.n_rows:
            stop = int(np.searchsorted(indptr, indptr[start] + cells, side="right")) - 1
            stop = min(max(stop, start + 1), start + most, self.n_rows)
            yield self.panel.rows(start, stop)
            start = stop


def list_sparse(matrix: Any) -> tuple[Positives, Array]:
    """Labels and scores of the stored cells of a scipy.sparse matrix, in order."""
    rows = as_rows(matrix, "scores")
    indptr, indices, cells = rows.indptr.astype(np.int64), rows.indices, rows.data
    if not ascends(rows.indptr, rows.indices):
        owners = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        order = np.lexsort((indices, owners))
        indices, cells = indices[order], cells[order]
        if not ascends(indptr, indices):
            raise InvalidInput(
                "scores must hold a cell once, got one stored twice. Call sum_duplicates() first."
            )
    narrow = cells.dtype in (np.float32, np.float64)
    cells = cells if narrow else cells.astype(np.float64)
    return Positives(indptr, indices.astype(np.int32)), np.ascontiguousarray(cells)


def read_long(files: Any, kind: Kind, names: Sequence[str] | None) -> SparsePanel:
    """A long table in any order, whose rows hold some labels each. A null score is absent."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from oddslip.sources.batches import reading
    from oddslip.sources.long.table import CELLS
    from oddslip.sources.parquet.columns import (
        id_cells,
        line_places,
        name_values,
        score_cells,
        truth_cells,
    )
    from oddslip.sources.parquet.files import DAMAGED

    path = files.path
    columns = [name for name in ("row", "label", "score", "true") if name in files.schema.names]
    with reading(path, DAMAGED):
        table = pa.Table.from_batches(list(files.batches(columns, CELLS))).combine_chunks()
    for name in ("row", "label"):
        if table.column(name).null_count:
            raise InvalidInput(f"{name} must not be null, got a null in {path}.")

    def coded(name: str) -> tuple[Ints, Any]:
        column = table.column(name).combine_chunks()
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        return column.indices.to_numpy().astype(np.int64), column.dictionary

    place_of = line_places(table)
    rows, row_set = coded("row")
    owned, label_set = coded("label")
    ids = id_cells(pc.cast(row_set, row_set.type))
    stored = [str(label) for label in name_values(label_set)]
    label_order, places = _order_labels(stored, names, path)
    owned = places[owned]
    order = np.lexsort((owned, rows))
    cells = rows[order] * len(label_order) + owned[order]
    twice = np.flatnonzero(cells[1:] == cells[:-1])
    if twice.size:
        raise InvalidInput(f"a cell must be there once, got two at {place_of(order[twice[0]])}.")
    ends = np.cumsum(np.bincount(rows, minlength=len(row_set)))
    lines = Positives(np.concatenate([[0], ends]), owned[order].astype(np.int32))
    scores = score_cells(table.column("score").combine_chunks(), place_of, null_absent=True)[order]
    there = ~np.isnan(scores)
    dtype = np.float32 if scores.dtype == np.float32 else np.float64
    panel = SparsePanel.of(
        lines.filter(there),
        scores[there].astype(dtype),
        len(label_order),
        kind=kind,
        label_names=label_order,
        row_ids=ids,
    )
    if "true" in columns:
        true = truth_cells(table.column("true").combine_chunks(), place_of)[order]
        panel.labels = SparseLabels(*lines.filter(true & there), panel.shape)
    return panel


def _order_labels(
    stored: list[str], names: Sequence[str] | None, path: Any
) -> tuple[tuple[str, ...], Ints]:
    """The labels in order, and the place of each stored one among them."""
    from oddslip.sources.parquet.columns import ordered_labels

    labels = ordered_labels(stored) if names is None else check_names(names, len(names)) or ()
    place = {name: at for at, name in enumerate(labels)}
    unknown = next((name for name in stored if name not in place), None)
    if unknown is not None:
        raise InvalidInput(f"labels of {path} must be among label_names, got {unknown!r}.")
    return labels, np.array([place[name] for name in stored], np.int64)
