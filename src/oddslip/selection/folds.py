"""Folds: every row belongs to one, drawn by a seeded permutation. Rows of a block by fold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.errors import InvalidInput
from oddslip.labels import Positives, SparseLabels
from oddslip.panels import Panel
from oddslip.sources import Source

Folds = NDArray[np.int32]


def draw_folds(n_rows: int, n_folds: Any, *, seed: Any = DEFAULT_SEED, n_repeats: int = 1) -> Folds:
    """The fold of every row, shape (n_repeats, n_rows).

    Each repeat takes one permutation from ``numpy.random.default_rng(seed)`` and cuts it into
    ``n_folds`` pieces that differ by at most one row.

    Examples
    --------
    >>> draw_folds(5, 2, seed=42)
    array([[1, 1, 0, 0, 0]], dtype=int32)
    """
    _check_whole("n_folds", n_folds, 2)
    _check_whole("seed", seed, 0)
    if n_folds > n_rows:
        raise InvalidInput(
            f"n_folds must be at most n_rows={n_rows}, got n_folds={n_folds}. Pass more rows."
        )
    rng = np.random.default_rng(seed)
    folds = np.empty((n_repeats, n_rows), np.int32)
    for repeat in folds:
        for fold, rows in enumerate(np.array_split(rng.permutation(n_rows), n_folds)):
            repeat[rows] = fold
    return folds


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInput(f"{name} must be a whole number, at least {least}, got {value!r}.")


def take_rows(panel: Panel, rows: NDArray[np.int64], positives: Positives | None = None) -> Panel:
    """A panel of some rows of a block: their scores are copied, nothing is checked again."""
    taken = panel.rows(0, panel.n_rows)
    taken.scores = panel.scores[rows]
    taken.row_ids = None if panel.row_ids is None else panel.row_ids[rows]
    taken.labels = None
    if positives is not None:
        shape = (int(rows.size), panel.n_labels)
        taken.labels = SparseLabels(positives.indptr, positives.indices, shape)
    return taken


class FoldSource(Source):
    """Some rows of another source, read block by block from it.

    Parameters
    ----------
    whole : Source
    kept : ndarray of bool, shape (n_rows,)
        Which rows. The others are never handed on.
    positives : Positives
        True labels of all rows of the whole.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> whole = open_source([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], [[1, 0], [0, 1], [0, 0]])
    >>> part = FoldSource(whole, np.array([False, True, True]), whole.positives())
    >>> [block.scores.tolist() for block in part.blocks()]
    [[[0.3, 0.4], [0.5, 0.6]]]
    """

    def __init__(self, whole: Source, kept: NDArray[np.bool_], positives: Positives) -> None:
        self.whole, self.kept, self.all_positives = whole, kept, positives
        self.n_rows, self.n_labels = int(np.count_nonzero(kept)), whole.n_labels
        self.kind, self.dtype, self.label_names = whole.kind, whole.dtype, whole.label_names
        self.has_labels = True

    def row_ids(self) -> NDArray[Any] | None:
        """Names of the rows kept, or None where rows are only numbered."""
        ids = self.whole.row_ids()
        return None if ids is None else ids[self.kept]

    def positives(self) -> Positives:
        """True labels of the rows kept."""
        return self.all_positives.take(np.flatnonzero(self.kept))

    def blocks(self) -> Iterator[Panel]:
        """The rows kept of each block of the whole."""
        first = 0
        for panel in self.whole.blocks():
            start = panel.first_row
            rows = np.flatnonzero(self.kept[start : start + panel.n_rows])
            if not rows.size:
                continue
            part = take_rows(panel, rows, self.all_positives.take(start + rows))
            part.first_row = first
            first += part.n_rows
            yield part
