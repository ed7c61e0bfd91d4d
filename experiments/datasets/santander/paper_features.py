"""The paper's columns of Santander: 11 categorical columns one-hot, 29 standardised numbers.

The paper's supplement names the columns. What it leaves open is chosen here: the categories are
the most frequent of the training period, and mean and deviation are those of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.santander.columns import (
    CATEGORICAL,
    MAX_CATEGORIES,
    PRODUCTS,
    STANDARDISED,
    name_features,
)
from experiments.datasets.santander.features import BLOCK_ROWS, Histories
from experiments.datasets.santander.rows import import_polars

Categories = Mapping[str, Sequence[str]]


class Encoding(NamedTuple):
    """What training rows say about the columns."""

    feature_names: tuple[str, ...]
    places: dict[str, NDArray[np.int64]]  # the feature of each code, -1 where it has none
    mean: NDArray[np.float64]  # of each number
    deviation: NDArray[np.float64]  # 1 where a number is constant


def read_categories(path: Path) -> dict[str, tuple[str, ...]]:
    """All values of the categorical columns in the Parquet file of `write_rows`, sorted."""
    pl = import_polars()
    table = pl.scan_parquet(path, glob=False)
    values = table.select(pl.col(name).unique().sort().implode() for name in CATEGORICAL)
    row = values.collect(engine="streaming").row(0, named=True)
    return {name: tuple(row[name]) for name in CATEGORICAL}


def fit_encoding(
    histories: Histories, categories: Categories, training: NDArray[np.int64]
) -> Encoding:
    """Columns of the paper, as the training rows determine them.

    A category that no training row has, or that is not among the most frequent, has no column.

    Parameters
    ----------
    histories : Histories
        As read with these categories.
    categories : mapping of str to sequence of str
    training : ndarray of int
        Rows of the training period.
    """
    assert histories.demographics is not None
    names: list[str] = []
    places = {}
    for column in CATEGORICAL:
        texts = categories[column]
        counts = np.bincount(histories.demographics[column][training], minlength=len(texts))
        # Categories stand in order of their names: a stable sort leaves equal counts in it.
        order = np.argsort(-counts, kind="stable")[:MAX_CATEGORIES]
        selected = np.sort(order[counts[order] > 0])
        places[column] = np.full(len(texts), -1)
        places[column][selected] = len(names) + np.arange(len(selected))
        names += [f"{column}={texts[code]}" for code in selected]
    moments = [_moments(values) for values in _numbers(histories, training)]
    mean, deviation = np.array(moments).T
    holdings = name_features(demographics=False)[: len(PRODUCTS)]
    return Encoding((*names, *STANDARDISED, *holdings), places, mean, deviation)


def encode_rows(
    histories: Histories, encoding: Encoding, rows: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Features of some rows. A category without a column has zeros; a missing number is 0."""
    assert histories.demographics is not None
    X = np.zeros((len(rows), len(encoding.feature_names)), np.float32)
    for column, places in encoding.places.items():
        place = places[histories.demographics[column][rows]]
        known = np.flatnonzero(place >= 0)
        X[known, place[known]] = 1
    first = X.shape[1] - len(encoding.mean)
    for number, values in enumerate(_numbers(histories, rows)):
        standard = (values - encoding.mean[number]) / encoding.deviation[number]
        X[:, first + number] = np.where(np.isnan(standard), 0, standard)
    return X


def iterate_encoded(
    histories: Histories,
    encoding: Encoding,
    rows: NDArray[np.int64],
    block_rows: int = BLOCK_ROWS,
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Features of rows in blocks, each with its place."""
    for first in range(0, len(rows), block_rows):
        yield first, encode_rows(histories, encoding, rows[first : first + block_rows])


def _numbers(histories: Histories, rows: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
    """Numbers of some rows, column by column; NaN where one is not known."""
    assert histories.demographics is not None
    for name in STANDARDISED:
        values = histories.demographics[name][rows].astype(np.float64)
        yield np.where(values >= 0, values, np.nan)
    holdings = histories.holdings[rows]
    for product in range(len(PRODUCTS)):
        yield (holdings >> np.uint32(product) & np.uint32(1)).astype(np.float64)


def _moments(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean of the known values, and deviation once the others have that mean."""
    known = values[~np.isnan(values)]
    mean = float(known.mean()) if known.size else 0.0
    deviation = float(np.sqrt(((known - mean) ** 2).sum() / max(len(values), 1)))
    return mean, deviation or 1.0
