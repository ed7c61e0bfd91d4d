"""Folds of the paper's protocol: a seeded permutation of the row numbers, cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oddslip.core.panel import Panel
from oddslip.selection.folds import FoldAssignment, FoldNumbers
from oddslip.selection.repair import Repair
from oddslip.sources import Source


class NumberedFolds(NamedTuple):
    """The fold of every row by its number."""

    n_folds: int
    folds: FoldNumbers

    def of(self, panel: Panel) -> FoldNumbers:
        """The fold of each row of a block."""
        return self.folds[panel.first_row : panel.first_row + panel.n_rows]


def numbered_folds(
    n_rows: int, n_folds: int = 5, *, seed: int = 42, n_repeats: int = 1
) -> list[NumberedFolds]:
    """Folds of all rows, for each repeat.

    Each repeat takes one permutation from ``numpy.random.default_rng(seed)`` and cuts it into
    pieces that differ by at most one row.

    Examples
    --------
    >>> numbered_folds(5, 2)[0].folds
    array([1, 1, 0, 0, 0], dtype=int32)
    """
    rng = np.random.default_rng(seed)
    repeats = []
    for _ in range(n_repeats):
        folds = np.empty(n_rows, np.int32)
        for fold, rows in enumerate(np.array_split(rng.permutation(n_rows), n_folds)):
            folds[rows] = fold
        repeats.append(NumberedFolds(n_folds, folds))
    return repeats


class PaperRepair(Repair):
    """`oddslip.Repair` with the folds of the paper's protocol."""

    def _assign_folds(self, source: Source, n_repeats: int) -> Sequence[FoldAssignment]:
        return numbered_folds(source.n_rows, self.n_folds, seed=self.seed, n_repeats=n_repeats)
