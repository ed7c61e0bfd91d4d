"""Generates a synthetic file in the form of Santander's training file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.generators.customers import (
    CHANNELS,
    COUNTRIES,
    EMPLOYEES,
    N_MONTHS,
    PROVINCES,
    ROWS_PER_CUSTOMER,
    SEGMENTS,
    Customers,
    draw_customers,
    draw_first,
    draw_next,
    open_market,
    trim_rows,
)
from experiments.datasets.generators.writing import check_count, import_polars, make_folder, stream
from experiments.datasets.origin import note_generated
from experiments.datasets.santander.columns import COLUMNS, PRODUCTS
from oddslip import DEFAULT_SEED
from oddslip.errors import InvalidInput
from oddslip.io.files import atomic_write
from oddslip.io.progress import progress_bar

# What is written where nothing is known: an empty field, or a padded NA.
_UNKNOWN = {
    "age": " NA",
    "ind_nuevo": "NA",
    "antiguedad": "     NA",
    "indrel": "NA",
    "tipodom": "NA",
    "cod_prov": "NA",
    "ind_actividad_cliente": "NA",
    "renta": "NA",
}
_STATUS = ("1", "1.0", "3", "3.0", "2.0", "4.0", "P")
FILE_NAME = "train_ver2.csv"
_BLOCK = 1 << 16  # customers at a time


def write_month(
    file: BinaryIO,
    customers: Customers,
    owned: NDArray[np.bool_],
    active: NDArray[np.bool_],
    month: int,
    random: np.random.Generator,
) -> None:
    """Write the lines of those who are there in a month."""
    pl = import_polars()
    n = len(customers.number)
    there = customers.present[:, month]
    draws = random.random((n, 5))  # drawn for all, so that who is absent changes nobody's line
    columns = _demographic_columns(customers, active, month, draws)
    blank = customers.blank & (customers.entry + 6 > month)
    for product, name in enumerate(PRODUCTS):
        columns[name] = _look_up(("0", "1"), owned[:, product].astype(np.int64))
    for name in ("ind_nomina_ult1", "ind_nom_pens_ult1"):
        columns[name] = _mask(columns[name], blank & (draws[:, 0] < 0.6), "NA")
    for name in COLUMNS[2:24]:
        columns[name] = _mask(columns[name], blank, _UNKNOWN.get(name))
    columns["fecha_dato"] = pl.Series([f"{2015 + month // 12}-{month % 12 + 1:02}-28"] * n)
    columns["ncodpers"] = pl.Series(customers.number)
    frame = pl.DataFrame({name: columns[name] for name in COLUMNS})
    frame.filter(pl.Series(there)).write_csv(file, include_header=False)


def _demographic_columns(
    customers: Customers, active: NDArray[np.bool_], month: int, draws: NDArray[np.float64]
) -> dict[str, Any]:
    """The demographic columns, as text."""
    pl = import_polars()
    age = np.clip(customers.age + (customers.age % 12 + month) // 12, 2, 120)
    seniority = np.maximum(customers.seniority + month, 0)
    date = np.datetime64("2015-01", "M") + month - seniority
    days = date.astype("datetime64[D]") + customers.number % 28
    status = np.where(draws[:, 1] < 0.5, 0, 1)
    rare = draws[:, 2] < 0.0006
    status[rare] = 2 + (draws[rare, 1] * 5).astype(np.int64)
    moved_away = draws[:, 3] < 0.0018
    income = np.exp(customers.log_income).round(2)
    padded = tuple(f"{value:3}" for value in range(121))
    months = (*(f"{value:7}" for value in range(260)), "-999999")
    odd = draws[:, 4] < 0.00001
    return {
        "ind_empleado": _look_up(EMPLOYEES, customers.employee),
        "pais_residencia": _look_up(COUNTRIES, customers.country),
        "sexo": _look_up(("H", "V"), customers.sex),
        "age": _look_up(padded, age),
        "fecha_alta": pl.Series(days).cast(pl.String),
        "ind_nuevo": _look_up((" 0", " 1"), (seniority < 6).astype(np.int64)),
        "antiguedad": _look_up(months, np.where(odd, 260, np.minimum(seniority, 259))),
        "indrel": _look_up((" 1", "99"), moved_away.astype(np.int64)),
        "ult_fec_cli_1t": _look_up(
            (f"{2015 + month // 12}-{month % 12 + 1:02}-15",), np.where(moved_away, 0, -1)
        ),
        "indrel_1mes": _look_up(_STATUS, status),
        "tiprel_1mes": _look_up(("I", "A", "P"), np.where(rare, 2, active)),
        "indresi": _look_up(("S", "N"), (customers.country > 0).astype(np.int64)),
        "indext": _look_up(("N", "S"), customers.foreigner.astype(np.int64)),
        "conyuemp": _look_up(("N", "S"), np.where(customers.employee > 1, 0, -1)),
        "canal_entrada": _look_up(CHANNELS, customers.channel),
        "indfall": _look_up(("N", "S"), customers.deceased.astype(np.int64)),
        "tipodom": _look_up((" 1",), np.zeros_like(age)),
        "cod_prov": _look_up(tuple(f"{code:2}" for code in range(1, 53)), customers.province, "NA"),
        "nomprov": _look_up(PROVINCES, customers.province),
        "ind_actividad_cliente": _look_up((" 0", " 1"), active.astype(np.int64)),
        "renta": _mask(pl.Series(income).cast(pl.String), ~customers.income_known, "NA"),
        "segmento": _look_up(SEGMENTS, customers.segment),
    }


def _look_up(values: tuple[str, ...], codes: NDArray[Any], unknown: str | None = None) -> Any:
    """The value of each code; -1 is not known."""
    pl = import_polars()
    table = pl.Series([*values, unknown], dtype=pl.String)
    return table.gather(np.asarray(codes) % len(table))


def _mask(column: Any, where: NDArray[np.bool_], value: str | None) -> Any:
    """The column with one value wherever told."""
    pl = import_polars()
    same = pl.Series([value], dtype=pl.String).new_from_index(0, len(column))
    return column.zip_with(pl.Series(~where), same)


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
    with atomic_write(path) as unfinished, unfinished.open("wb") as file:
        file.write((",".join(f'"{column}"' for column in COLUMNS) + "\n").encode())
        _write_months(file, customers, seed)
    settings = {"form": "santander", "n_customers": n_customers, "n_rows": n_rows, "seed": seed}
    note_generated([path], **settings)
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
    owned: NDArray[Any] = np.zeros((n, len(PRODUCTS)), bool)
    ever = np.zeros_like(owned)
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
                later = draw_next(market, tilt[part], owned[part], ever[part], month, random)
                owned[part] = np.where(entering[:, None], fresh, later)
                owned[part][someone.entry > month] = False
                ever[part] |= owned[part]
                write_month(file, someone, owned[part], tilt[part, 1] > 0, month, random)
                advance(len(someone.number))
