"""`ParquetSource`: scores in Parquet files, or in any other table of columns, block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast, get_args

from oddslip.core.labels import DenseLabels, Positives
from oddslip.core.panel import Kind, Panel, no_cells
from oddslip.core.types import Array, LabelsLike
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.sources.arrays import ArraySource
from oddslip.sources.base import Source, join_positives
from oddslip.sources.batches import Batches
from oddslip.sources.long.sorting import is_scattered, sort_cells
from oddslip.sources.long.table import LongTable, check_long, is_long
from oddslip.sources.open import add_labels
from oddslip.sources.parquet.files import KIND_KEY, ParquetFiles
from oddslip.sources.parquet.list import ListTable, score_list
from oddslip.sources.parquet.wide import WideTable


class ParquetSource(Source):
    """Scores in Parquet or another table, in one of three layouts, recognised from the columns.

    * *wide*: one float column per label, named after it; perhaps a column of row ids.
    * *list*: one column with a list of all scores of the row; perhaps row ids, and a list column
      ``labels`` of 0/1 cells, or of the true labels by index or name.
    * *long*: columns ``row``, ``label``, ``score`` and perhaps ``true``; each row holds every label
      once. If the cells of a row are not contiguous, they are sorted in temporary files first.

    Memory stays near one block of rows, whatever the size of the row groups. For that, a wide table
    with large row groups goes through a temporary file; the list layout is the fastest.

    Parameters
    ----------
    path : str, path or Batches
        A file, a folder whose .parquet files are read in the natural order of their names, or a
        opened table.
    labels : optional
        True labels, in any form that `open_source` takes. Rejected if the file has labels.
    kind : {"probability", "margin"}, optional
        What the scores are; by default the kind stored in the file, else probabilities.
    label_names : sequence of str, optional
        Names of the labels of a list layout; order of the labels in the others.
    nan : bool
        Whether a null is read as NaN: the label is not a candidate of the row.

    Examples
    --------
    >>> source = ParquetSource("scores.parquet", kind="probability")  # doctest: +SKIP
    >>> source.n_rows, source.n_labels  # doctest: +SKIP
    (131209, 64)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Batches,
        labels: LabelsLike = None,
        *,
        kind: Kind | None = None,
        label_names: Sequence[str] | None = None,
        nan: bool = False,
    ) -> None:
        files = path if isinstance(path, Batches) else ParquetFiles(Path(path))
        kind, self.kind_is_stored = stored_kind(files, kind)
        self.table = read_layout(files, label_names)
        self.table.null_absent = nan
        if labels is not None and self.table.has_labels:
            raise InvalidInput(
                f"labels must come from one place, but {files.path} holds some and others were "
                "passed. Drop that column or pass none."
            )
        self.n_rows, self.n_labels = self.table.n_rows, self.table.n_labels
        self.kind, self.label_names, self.dtype = kind, self.table.names, self.table.dtype
        shape = (self.n_rows, self.n_labels)
        ids = None if labels is None else self.table.row_ids()
        scores = no_cells(shape, self.dtype)
        self._whole = Panel(scores, kind=kind, label_names=self.label_names, row_ids=ids)
        add_labels(self._whole, labels)
        self.label_names = self._whole.label_names
        self.has_labels = labels is not None or self.table.has_labels

    def blocks(self) -> Iterator[Panel]:
        """The panels, in row order."""
        return self._panels(scores=True)

    def positives(self) -> Positives:
        """True labels of all rows. No score is read."""
        if self.table.has_labels:
            return join_positives(panel.positives() for panel in self._panels(scores=False))
        return ArraySource(self._whole).positives()

    def row_ids(self) -> Array | None:
        """Ids of all rows, from their column alone; None where rows are only numbered."""
        return self.table.row_ids()

    def _panels(self, *, scores: bool) -> Iterator[Panel]:
        first = 0
        for block in self.table.blocks(scores=scores):
            panel = self._whole.rows(first, first + block.n_rows)
            if block.scores is not None:
                panel.scores = block.scores
            if block.truths is not None:
                panel.labels = DenseLabels(block.truths)
            panel.row_ids = block.ids if block.ids is not None else panel.row_ids
            yield panel
            first += block.n_rows
        if first != self.n_rows:
            raise UnreadableFile(f"{self.table.files.path} changed while it was read.")


def stored_kind(files: Batches, kind: Kind | None) -> tuple[Kind, bool]:
    """The kind of the scores, and whether the file stores it; rejects a contradiction."""
    stored = (files.metadata(KIND_KEY) or b"").decode("utf-8", "replace")
    if stored not in get_args(Kind):
        return kind or "probability", False
    if kind not in (None, stored):
        raise InvalidInput(
            f'scores are requested as kind "{kind}", but {files.path} was written as "{stored}". '
            "Pass that kind, or scores of the other."
        )
    return cast("Kind", stored), True


def read_layout(
    files: Batches, label_names: Sequence[str] | None
) -> WideTable | ListTable | LongTable:
    """The layout of a table of scores."""
    if is_long(files.schema):
        check_long(files)
        if is_scattered(files, label_names):
            return ListTable(sort_cells(files, label_names), None)
        return LongTable(files, label_names)
    if score_list(files.schema) is not None:
        return ListTable(files, label_names)
    return WideTable(files, label_names)
