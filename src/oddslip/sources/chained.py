"""Arrays of several files as one source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oddslip.core.labels import Positives
from oddslip.core.panel import Kind, Panel
from oddslip.core.types import Array, LabelsLike
from oddslip.errors import InvalidInput
from oddslip.sources.arrays import ArraySource
from oddslip.sources.base import Source, block_rows, join_positives


class ChainedSource(Source):
    """Arrays stacked by rows, without a copy.

    Parameters
    ----------
    parts : list of ArraySource
        Without labels.
    files : list of path
        Their files, for errors.
    labels, kind, label_names, row_ids
        Those of the whole, as `Panel` takes them.
    """

    def __init__(
        self,
        parts: Sequence[ArraySource],
        files: Sequence[Any],
        labels: LabelsLike = None,
        *,
        kind: Kind = "probability",
        label_names: Sequence[str] | None = None,
        row_ids: Any = None,
    ) -> None:
        self.parts = list(parts)
        check_alike(parts, files)
        first = parts[0]
        self.n_rows = sum(part.n_rows for part in parts)
        self.n_labels, self.dtype, self.kind = first.n_labels, first.dtype, kind
        no_cells = np.broadcast_to(np.zeros((), self.dtype), (self.n_rows, self.n_labels))
        self._whole = Panel(no_cells, labels, kind=kind, label_names=label_names, row_ids=row_ids)
        self.label_names = self._whole.label_names
        self.has_labels = labels is not None

    def row_ids(self) -> Array | None:
        """Names of all rows, or None where rows are only numbered."""
        return self._whole.row_ids

    def positives(self) -> Positives:
        """True labels of all rows. No score is read."""
        step = block_rows(self.n_labels, 1)
        return join_positives(
            self._whole.rows(start, min(start + step, self.n_rows)).positives()
            for start in range(0, self.n_rows, step)
        )

    def blocks(self) -> Iterator[Panel]:
        """The panels, in row order."""
        first = 0
        for part in self.parts:
            for block in part.blocks():
                stop = first + block.n_rows
                yield self._whole._cut(block, first, stop)
                first = stop


def check_alike(parts: Sequence[Any], files: Sequence[Any]) -> None:
    """Reject files whose arrays cannot be stacked; name the first that differs."""
    first = parts[0]
    for part, file in zip(parts, files, strict=True):
        if part.n_labels != first.n_labels:
            raise InvalidInput(
                f"all files must have the same labels, but {file} has {part.n_labels} and "
                f"{files[0]} has {first.n_labels}."
            )
        if part.dtype != first.dtype:
            raise InvalidInput(
                f"all files must have the same type of scores, but {file} has {part.dtype} and "
                f"{files[0]} has {first.dtype}. Convert one."
            )
