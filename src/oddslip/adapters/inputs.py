"""Input rows in the forms that models take, cut into blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from oddslip.core.sparse import as_rows
from oddslip.core.types import FeaturesLike
from oddslip.errors import InvalidInput

_LIBRARIES = ("catboost", "xgboost")  # whose Pool and DMatrix are scored in one block


@dataclass(frozen=True)
class Rows:
    """Input rows in any supported form."""

    data: FeaturesLike
    n_rows: int | None  # None for batches, which are counted as they come
    n_features: int | None = None
    whole: bool = False  # whether the rows cannot be cut into blocks

    def blocks(self, step: int) -> Iterator[FeaturesLike]:
        """Blocks of at most ``step`` rows, in order; batches unchanged."""
        if self.n_rows is None:
            yield from self.data
        elif self.whole:
            yield self.data
        else:
            for start in range(0, self.n_rows, step):
                yield _take(self.data, start, min(start + step, self.n_rows))


def read_rows(X: FeaturesLike, *, free: bool) -> Rows:
    """Any supported form of X; if it is not a table, the model must be ``free``."""
    if hasattr(X, "tocsr"):  # first, since a dok_matrix is a mapping too
        table = as_rows(X, "X")
        return Rows(table, int(table.shape[0]), int(table.shape[1]))
    if isinstance(X, Mapping):
        return _by_name(X, free)
    root = type(X).__module__.split(".")[0]
    if root in _LIBRARIES and hasattr(X, "num_row"):
        return Rows(X, int(X.num_row()), int(X.num_col()), whole=True)
    if root == "torch" and hasattr(X, "batch_size") and hasattr(X, "dataset"):
        return _require_free(Rows(X, None), free, "a DataLoader")
    if _is_text(X):
        texts = X if hasattr(X, "iloc") or isinstance(X, np.ndarray | list) else list(X)
        return _require_free(Rows(texts, len(texts)), free, "texts")
    table = X if hasattr(X, "shape") else np.asarray(X)
    shape = tuple(table.shape)
    wide = len(shape) == 2 or (free and len(shape) > 2)
    if not wide or shape[0] == 0:
        raise InvalidInput(
            "X must be of shape (rows, features) with at least one row, "
            f"got {shape or type(X).__name__}. "
            "Reshape your data if it is a single row."
        )
    return Rows(table, int(shape[0]), int(shape[1]) if len(shape) == 2 else None)


def _by_name(X: Mapping[str, FeaturesLike], free: bool) -> Rows:
    """Tables by name, as a tokenizer returns them, without the labels."""
    tables = {name: X[name] for name in X if name != "labels"}
    counts = {name: len(table) for name, table in tables.items()}
    if not counts or len(set(counts.values())) != 1 or 0 in counts.values():
        raise InvalidInput(
            f"X by name must hold as many rows, at least one, under each name, got {counts}."
        )
    return _require_free(Rows(tables, next(iter(counts.values()))), free, "tables by name")


def _require_free(rows: Rows, free: bool, what: str) -> Rows:
    if not free:
        raise InvalidInput(
            f"X must be of shape (rows, features) for this model, got {what}. "
            "Pass what the model was trained on."
        )
    return rows


def _is_text(X: FeaturesLike) -> bool:
    shape = getattr(X, "shape", None)
    flat = isinstance(X, list | tuple) if shape is None else len(shape) == 1
    return flat and len(X) > 0 and all(isinstance(text, str) for text in _some(X))


def _some(X: FeaturesLike) -> FeaturesLike:
    return X.iloc[:100] if hasattr(X, "iloc") else X[:100]


def _take(rows: FeaturesLike, start: int, stop: int) -> FeaturesLike:
    if isinstance(rows, Mapping):
        return {name: _take(table, start, stop) for name, table in rows.items()}
    return rows.iloc[start:stop] if hasattr(rows, "iloc") else rows[start:stop]
