"""`Recommendation`: what every product data set becomes, three periods of rows in order of time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput


@dataclass(frozen=True, slots=True, eq=False)
class Period:
    """Rows of one period of time: what was known of each before it, and what was true in it.

    Attributes
    ----------
    X : scipy.sparse.csr_matrix or array of shape (n_rows, n_features)
        Features, float32; a dense array may be memory-mapped.
    Y : scipy.sparse.csr_matrix of shape (n_rows, n_labels)
        True cells are stored, others are not.
    row_ids : array of shape (n_rows,)
        Whom a row is about.
    """

    X: Any
    Y: Any
    row_ids: NDArray[Any]

    @property
    def n_rows(self) -> int:
        """Rows of the period."""
        return int(self.X.shape[0])

    @property
    def n_positive_rows(self) -> int:
        """Rows with a true label."""
        return int(np.count_nonzero(np.diff(self.Y.indptr)))


@dataclass(frozen=True, slots=True, eq=False)
class Recommendation:
    """Rows to train on, rows to calibrate on, rows to evaluate on, each later than the last.

    ``settings`` are the choices the rows depend on, ``sha256`` the files they were read from.
    ``generated`` says whether `python -m experiments generate` made those files; None where that
    is not known.

    Attributes
    ----------
    train, validation, test : Period
        The rows.
    label_names, feature_names : tuple of str
        Names of the columns.
    name, settings, sha256
        Where the rows come from.
    """

    name: str
    train: Period
    validation: Period
    test: Period
    label_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)
    generated: bool | None = None

    def __post_init__(self) -> None:
        for what in ("label_names", "feature_names"):
            if not all(isinstance(name, str) for name in getattr(self, what)):
                raise InvalidInput(f"{what} must be texts.")
        width, n_labels = len(self.feature_names), len(self.label_names)
        for name in ("train", "validation", "test"):
            period: Period = getattr(self, name)
            shapes = np.shape(period.X), np.shape(period.Y), np.shape(period.row_ids)
            n_rows = shapes[0][0] if shapes[0] else -1
            if shapes != ((n_rows, width), (n_rows, n_labels), (n_rows,)):
                raise InvalidInput(
                    f"{name} must hold X, Y and row_ids of as many rows, {width} features and "
                    f"{n_labels} labels, got shapes {shapes[0]}, {shapes[1]} and {shapes[2]}."
                )

    @property
    def n_labels(self) -> int:
        """Labels, one for each product."""
        return len(self.label_names)

    @property
    def positives(self) -> NDArray[np.int64]:
        """True cells of each label among the training rows."""
        return np.bincount(self.train.Y.indices, minlength=self.n_labels).astype(np.int64)

    @property
    def prevalence(self) -> NDArray[np.float64]:
        """Share of the training rows in which each label is true: its prior."""
        return self.positives / self.train.n_rows

    def describe(self) -> dict[str, Any]:
        """Counts that belong beside every table made of these rows."""
        periods = {
            "train": self.train,
            "validation": self.validation,
            "test": self.test,
        }
        return {
            "n_labels": self.n_labels,
            "n_features": len(self.feature_names),
            "rows": {name: period.n_rows for name, period in periods.items()},
            "rows_with_a_true_label": {
                name: period.n_positive_rows for name, period in periods.items()
            },
            "true_cells": {name: int(period.Y.nnz) for name, period in periods.items()},
        }
