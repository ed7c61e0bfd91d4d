"""A public sample of Santander's rows with features ready made."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from experiments.datasets.cache import hash_inputs
from experiments.datasets.extras import polars_failures
from experiments.datasets.mulan import files
from experiments.datasets.recommendation import Recommendation
from experiments.datasets.santander.columns import PRODUCTS
from experiments.datasets.santander.reader import cut_periods
from experiments.datasets.santander.rows import import_polars
from oddslip.errors import UnreadableFile

X_NAME, Y_NAME = "sample_X_12373.csv", "sample_Y_12373.csv"
_ROW, _CUSTOMER, _DATE = _KEYS = ("row", "D.ncodpers", "fecha_dato")


def read_santander_sample(data: str | os.PathLike[str] | None = None) -> Recommendation:
    """12,373 genuine rows of Santander, with 418 features and 24 labels, in three periods.

    The label of a row is the set of products added in its own month; the features tell what was
    held the month before, how many months before, and who the customer is. Rows stand in order
    of date, then of their number in the full file, and are cut by count like those of
    `read_santander`. Labels without a true cell are kept.

    Parameters
    ----------
    data : path, optional
        The folder of the two files, or one that has them in ``santander``. Otherwise looked for
        as by `find_data`.

    Examples
    --------
    >>> read_santander_sample().describe()["rows"]  # doctest: +SKIP
    {'train': 8044, 'validation': 1855, 'test': 2474}
    """
    folder = _find_folder(data)
    X, Y = _read_table(folder / X_NAME), _read_table(folder / Y_NAME)
    labels = [f"{product}D" for product in PRODUCTS]
    features = [name for name in X.columns if name not in _KEYS]
    for name, table, required in ((X_NAME, X, _KEYS), (Y_NAME, Y, (*_KEYS, *labels))):
        if lacking := [column for column in required if column not in table.columns]:
            raise UnreadableFile(f"{folder / name} must have a column {lacking[0]}, got none.")
    if not all(X[key].equals(Y[key]) for key in _KEYS):
        raise UnreadableFile(
            f"{folder / X_NAME} and {Y_NAME} must tell of the same rows in the same order."
        )
    dates = X[_DATE].to_numpy().astype("datetime64[M]").astype(np.int64)
    order = np.lexsort((_to_numbers(X[_ROW]), dates))
    # The date itself is text; the customer and the row number say nothing of another customer.
    cells = np.column_stack([*(_to_numbers(X[name]) for name in features), dates - dates.min()])
    truth = np.column_stack([_to_numbers(Y[name]) for name in labels])
    rows = cut_periods(
        "santander-sample",
        cells[order].astype(np.float32),
        csr_matrix(truth[order].astype(np.int8)),
        _to_numbers(X[_CUSTOMER]).astype(np.int64)[order],
        label_names=PRODUCTS,
        feature_names=(*features, "month"),
        settings={"percent_of_rows": [65, 15, 20], "n_rows_read": len(order)},
        sha256=hash_inputs([folder / X_NAME, folder / Y_NAME]),
    )
    return replace(rows, generated=False)  # nothing generates this form


def _find_folder(data: str | os.PathLike[str] | None) -> Path:
    roots = files.search_path() if data is None else [Path(data)]
    for root in roots:
        for folder in (root / "santander", root):
            if (folder / X_NAME).is_file() and (folder / Y_NAME).is_file():
                return folder
    places = ", ".join(str(root) for root in roots)
    raise UnreadableFile(
        f"{X_NAME} and {Y_NAME} must lie in a folder of {places}, got none there. "
        "Pass the folder itself, or point ODDSLIP_DATA at the one that holds it."
    )


def _read_table(path: Path) -> Any:
    pl = import_polars()
    try:
        return pl.read_csv(path, infer_schema=False, glob=False)
    except polars_failures(OSError) as error:
        why = str(error).splitlines()[0][:120] if str(error) else "no reason given"
        raise UnreadableFile(f"{path} must be a CSV file, got: {why}.") from None


def _to_numbers(column: Any) -> Any:
    """Numbers of a text column. History counts are empty for new customers: then 0."""
    pl = import_polars()
    try:
        return column.cast(pl.Float64).fill_null(0.0).to_numpy()
    except polars_failures():
        raise UnreadableFile(
            f"column {column.name!r} of the sample must hold numbers, got text."
        ) from None
