"""Sources of the rows a diagnosis reads: labels attached once, rows split by a seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.labels import Positives, SparseLabels
from oddslip.panels import Panel
from oddslip.sources import Source

CALIBRATION_SHARE = 0.3  # of the rows, where no calibration panel is given (Section 3)


class LabelledSource(Source):
    """A source with these true labels, found once, in place of its own.

    A ladder reads its rows many times. Dense labels would be searched each time, and the twin
    often comes without any.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> truth = open_source([[0.1, 0.2]], [[0, 1]]).positives()
    >>> LabelledSource(open_source([[0.3, 0.4]]), truth).positives().indices
    array([1], dtype=int32)
    """

    def __init__(self, whole: Source, positives: Positives) -> None:
        self.whole, self.all_positives = whole, positives
        self.n_rows, self.n_labels = whole.n_rows, whole.n_labels
        self.kind, self.dtype, self.label_names = whole.kind, whole.dtype, whole.label_names
        self.has_labels = True

    def row_ids(self) -> NDArray[Any] | None:
        """Names of all rows, or None where rows are only numbered."""
        return self.whole.row_ids()

    def positives(self) -> Positives:
        """True labels of all rows."""
        return self.all_positives

    def blocks(self) -> Iterator[Panel]:
        """The blocks of the whole, as views."""
        for panel in self.whole.blocks():
            part = panel.rows(0, panel.n_rows)
            first = panel.first_row
            indptr = self.all_positives.indptr[first : first + panel.n_rows + 1]
            indices = self.all_positives.indices[indptr[0] : indptr[-1]]
            part.labels = SparseLabels(indptr - indptr[0], indices, (panel.n_rows, panel.n_labels))
            yield part


def draw_calibration_rows(n_rows: int, seed: int = DEFAULT_SEED) -> NDArray[np.bool_]:
    """Which rows calibrate: the first 30% of a seeded permutation, at least one.

    Examples
    --------
    >>> int(draw_calibration_rows(10, seed=42).sum())
    3
    """
    chosen = np.zeros(n_rows, np.bool_)
    order = np.random.default_rng(seed).permutation(n_rows)
    chosen[order[: max(1, int(CALIBRATION_SHARE * n_rows))]] = True
    return chosen


def count_labels(source: Source) -> NDArray[np.int64]:
    """Positives of each label."""
    return np.bincount(source.positives().indices, minlength=source.n_labels)
