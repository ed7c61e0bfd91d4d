"""`CellCounts`: where the negatives lie among the positives, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.counting.positives import Ints
from oddslip.errors import InvalidInput
from oddslip.kernels.isotonic import count_pairs, pool_labels
from oddslip.kernels.keys import scores_of
from oddslip.panels import Kind


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Where the negatives of every label lie among its positives.

    Label j has the distinct positive keys ``keys[indptr[j]:indptr[j + 1]]``. They cut the scores
    into one more interval than there are keys, the first at ``indptr[j] + j`` in the arrays of
    intervals. The negatives of a label without positives are not looked at.

    Attributes
    ----------
    indptr : ndarray of shape (n_labels + 1,)
    keys : ndarray
        Distinct keys of the positives, ascending within a label; `scores_of` gives the scores.
    positives, negatives_at : ndarray
        Cells at each key.
    negatives_between, largest_between : ndarray
        For each interval its number of negatives and their largest key, 0 if there is none.
    lowest : ndarray of shape (n_labels,)
        Lowest key of all cells of the label.
    n_rows : int
    n_cells : int
        Cells per label: the rows, or rows x labels if pooled.
    kind : {"probability", "margin"}

    Examples
    --------
    >>> from oddslip.counting import count_cells
    >>> from oddslip.sources import open_source
    >>> counts = count_cells(open_source([[0.2], [0.3], [0.7]], [[0], [1], [0]]))
    >>> counts.n_positives, counts.n_negatives, counts.auc()
    (array([1]), array([2]), array([0.5]))
    """

    indptr: Ints
    keys: NDArray[Any]
    positives: Ints
    negatives_at: Ints
    negatives_between: Ints
    largest_between: NDArray[Any]
    lowest: NDArray[Any]
    n_rows: int
    n_cells: int
    kind: Kind

    @property
    def n_labels(self) -> int:
        """Labels counted; 1 if pooled."""
        return self.indptr.size - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the scores that were counted."""
        return np.dtype(np.float32 if self.keys.dtype == np.uint32 else np.float64)

    @property
    def n_positives(self) -> Ints:
        """Positives per label."""
        return np.diff(np.concatenate([[0], np.cumsum(self.positives)])[self.indptr])

    @property
    def n_negatives(self) -> Ints:
        """Negatives per label."""
        return self.n_cells - self.n_positives

    def merge(self, other: CellCounts) -> CellCounts:
        """Counts of both, for disjoint rows counted against the same keys."""
        same = self.kind == other.kind and np.array_equal(self.indptr, other.indptr)
        if not (same and np.array_equal(self.keys, other.keys)):
            raise InvalidInput(
                "counts must be taken against the same positives to be merged, got different ones."
            )
        return replace(
            self,
            positives=self.positives + other.positives,
            negatives_at=self.negatives_at + other.negatives_at,
            negatives_between=self.negatives_between + other.negatives_between,
            largest_between=np.maximum(self.largest_between, other.largest_between),
            lowest=np.minimum(self.lowest, other.lowest),
            n_rows=self.n_rows + other.n_rows,
            n_cells=self.n_cells + other.n_cells,
        )

    def auc(self) -> NDArray[np.float64]:
        """Chance that a positive outscores a negative, a tie counting one half, per label.

        NaN where a label has no positive or no negative.
        """
        high, low = np.zeros((2, self.n_labels), np.int64)
        count_pairs(
            self.indptr, self.positives, self.negatives_at, self.negatives_between, high, low
        )
        pairs = [2 * p * (self.n_cells - p) for p in self.n_positives.tolist()]
        won = [(h << 24) + rest for h, rest in zip(high.tolist(), low.tolist(), strict=True)]
        return np.array(
            [w / p if p else np.nan for w, p in zip(won, pairs, strict=True)], np.float64
        )

    def isotonic_knots(
        self, minimum_positives: int = 1
    ) -> tuple[Ints, NDArray[np.float64], NDArray[np.float64]]:
        """Knots of the isotonic fit of every label: linear between them, constant outside.

        Parameters
        ----------
        minimum_positives : int
            Labels with fewer positives get no knots, and so does a label without any.

        Returns
        -------
        indptr : ndarray of shape (n_labels + 1,)
            Label j has the knots from ``indptr[j]`` to ``indptr[j + 1]``.
        x, y : ndarray
            Scores, strictly ascending within a label, and fitted probabilities, ascending.
        """
        size = 2 * (self.keys.size + self.n_labels)
        indptr = np.empty(self.n_labels + 1, np.int64)
        knots, values = np.empty(size, self.keys.dtype), np.empty(size)
        n_knots = pool_labels(
            self.indptr,
            self.keys,
            self.positives,
            self.negatives_at,
            self.negatives_between,
            self.largest_between,
            self.lowest,
            self.n_positives >= max(1, minimum_positives),
            indptr,
            knots,
            values,
        )
        scores = scores_of(knots[:n_knots], self.kind).astype(np.float64)
        return indptr, scores, values[:n_knots].copy()
