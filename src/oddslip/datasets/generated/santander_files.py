"""Santander's training file, made up: its columns, its quirks, its shares."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.datasets.generated.checks import check_count, import_polars, make_folder, stream
from oddslip.datasets.generated.santander_customers import (
    N_MONTHS,
    ROWS_PER_CUSTOMER,
    Customers,
    draw_customers,
    trim_rows,
)
from oddslip.datasets.generated.santander_holdings import draw_first, draw_next, open_market
from oddslip.datasets.generated.santander_texts import write_month
from oddslip.datasets.origins import note_generated
from oddslip.datasets.santander_columns import COLUMNS, PRODUCTS
from oddslip.errors import InvalidInput
from oddslip.progress import progress_bar
from oddslip.sources.sinks import whole_file

FILE_NAME = "train_ver2.csv"
_BLOCK = 1 << 16  # customers at a time


def generate_santander(
    folder: str | os.PathLike[str],
    *,
    n_customers: int | None = None,
    n_rows: int | None = None,
    seed: int = DEFAULT_SEED,
) -> Path:
    """Write a ``train_ver2.csv`` of made-up customers in the form of Kaggle's.

    Seventeen months, 48 columns, padded and missing values, names with commas. Products are as
    common as in the real file, mostly stay as they are from month to month, and some three rows
    in a hundred are followed by an addition. Who adds what depends on age, activity, income,
    segment and history, so that a model has something to learn.

    Parameters
    ----------
    folder : path
        Where the file goes. Made if it is not there.
    n_customers, n_rows : int
        One of the two. The real file has 956,645 customers and 13,647,309 rows.
    seed : int
        Same seed, same bytes.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> generate_santander("data", n_rows=1_360_000)  # doctest: +SKIP
    PosixPath('data/train_ver2.csv')
    """
    if (n_customers is None) == (n_rows is None):
        raise InvalidInput(
            f"one of n_customers and n_rows must be given, got n_customers={n_customers!r} "
            f"and n_rows={n_rows!r}."
        )
    seed = check_count("seed", seed, 0)
    import_polars()
    customers = _choose_customers(n_customers, n_rows, seed)
    path = make_folder(folder) / FILE_NAME
    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        file.write((",".join(f'"{column}"' for column in COLUMNS) + "\n").encode())
        _write_months(file, customers, seed)
    told = {"form": "santander", "n_customers": n_customers, "n_rows": n_rows, "seed": seed}
    note_generated([path], **told)
    return path


def _choose_customers(n_customers: int | None, n_rows: int | None, seed: int) -> Customers:
    if n_customers is not None:
        return draw_customers(check_count("n_customers", n_customers, 1, 50_000_000), seed)
    n_rows = check_count("n_rows", n_rows, 1, 500_000_000)
    # More than enough, even if all of them came late.
    customers = draw_customers(int(n_rows / (ROWS_PER_CUSTOMER - 2)) + 200, seed)
    return trim_rows(customers, n_rows)


def _write_months(file: BinaryIO, customers: Customers, seed: int) -> None:
    n = len(customers.number)
    market = open_market(customers.tilt)
    held: NDArray[Any] = np.zeros((n, len(PRODUCTS)), bool)
    ever = np.zeros_like(held)
    tilt = customers.tilt.copy()
    with progress_bar("generating train_ver2.csv", N_MONTHS * n) as advance:
        for month in range(N_MONTHS):
            for number, first in enumerate(range(0, n, _BLOCK)):
                part = slice(first, min(first + _BLOCK, n))
                random = stream(seed, 1, month, number)
                someone = customers.part(part.start, part.stop)
                # Activity drifts from month to month, and what is added with it.
                drift = tilt[part, 1] + random.normal(0, 0.12, len(someone.number))
                tilt[part, 1] = np.clip(drift, -1.3, 1.3)
                entering = someone.entry == month
                fresh = draw_first(market, tilt[part], someone.entry > 0, random)
                later = draw_next(market, tilt[part], held[part], ever[part], month, random)
                held[part] = np.where(entering[:, None], fresh, later)
                held[part][someone.entry > month] = False
                ever[part] |= held[part]
                write_month(file, someone, held[part], tilt[part, 1] > 0, month, random)
                advance(len(someone.number))
