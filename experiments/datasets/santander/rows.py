"""Santander's CSV as a small Parquet file: one row for each of its rows, quirks resolved.

The 24 holdings of a row become the bits of one number, its yes-or-no demographics those of
another. So a row takes some 30 bytes, and 13.6 million rows fit in memory many times over.
"""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any, NoReturn

from experiments.datasets import extras
from experiments.datasets.extras import polars_failures
from experiments.datasets.santander.columns import (
    CATEGORICAL,
    DEMOGRAPHICS,
    FLAGS,
    KEYS,
    MAY_BE_EMPTY,
    MISSING,
    PRODUCTS,
    Features,
)
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.files import atomic_write

_FAULTS = {1: "fecha_dato", 2: "ncodpers", 3: "a product"}
_TAIL = 1 << 16  # bytes in which the last line is looked for


def import_polars() -> Any:
    """The engine of this reader."""
    return extras.import_polars("reading Santander")


def check_csv(path: Path) -> bool:
    """Whether the file has demographics. Refuses a file that is none of Santander's, or cut."""
    try:
        with path.open("rb") as file:
            head = file.readline(_TAIL)
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL))
            tail = file.read().rstrip(b"\r\n").rsplit(b"\n", 1)[-1]
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be read ({error.strerror}).") from None
    names, last = _split(head), _split(tail)
    missing = [name for name in (*KEYS, *PRODUCTS) if name not in names]
    absent = [name for name in DEMOGRAPHICS if name not in names]
    if not missing and len(absent) not in (0, len(DEMOGRAPHICS)):
        missing = absent
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise UnreadableFile(
            f"{path} must have the columns of Kaggle's train_ver2.csv, got a file without "
            f"{', '.join(missing[:3])}{more}."
        )
    if len(set(names)) < len(names):
        raise UnreadableFile(f"{path} must name each column once, got a name twice.")
    if tail == head.rstrip(b"\r\n"):
        raise UnreadableFile(f"{path} must hold rows below its header, got none.")
    if len(last) != len(names):
        raise UnreadableFile(
            f"{path} must have {len(names)} fields on its last line, got {len(last)}: it was cut "
            "short. Get it again."
        )
    return not absent


def write_rows(
    source: Path, target: Path, *, demographics: bool, features: Features = "own"
) -> None:
    """Read the CSV in a stream and write the Parquet file, whole or not at all."""
    columns = _row_columns()
    if demographics:
        columns += _paper_columns() if features == "paper" else _own_columns()
    rows = _scan(source).select(columns)
    with atomic_write(target) as unfinished:
        try:
            rows.sink_parquet(unfinished, compression="zstd", statistics=False)
        except polars_failures() as error:
            why = str(error).splitlines()[0][:120] if str(error) else "no reason given"
            raise UnreadableFile(f"{source} must be a CSV file, got: {why}.") from None
        _complain(source, unfinished)


def _scan(source: Path) -> Any:
    # Everything as text: the same column holds "1", "1.0", " 1", "P" and "NA".
    return import_polars().scan_csv(source, infer_schema=False, encoding="utf8-lossy", glob=False)


def _text(column: str) -> Any:
    pl = import_polars()
    stripped = pl.col(column).str.strip_chars()
    return pl.when(stripped.is_in(["", "NA"])).then(None).otherwise(stripped)


def _code(column: str) -> Any:
    return _text(column).str.strip_suffix(".0")


def _number(column: str, dtype: Any) -> Any:
    pl = import_polars()
    return _text(column).cast(pl.Float64, strict=False).cast(dtype, strict=False)


def _pack(conditions: list[Any]) -> Any:
    pl = import_polars()
    bits = [
        pl.when(each).then(pl.lit(1 << bit, pl.UInt32)).otherwise(pl.lit(0, pl.UInt32))
        for bit, each in enumerate(conditions)
    ]
    return pl.sum_horizontal(bits).cast(pl.UInt32)


def _row_columns() -> list[Any]:
    """Who, when, what is held, and whether the row can be read."""
    pl = import_polars()
    date = pl.col("fecha_dato").str.strip_chars().str.to_date("%Y-%m-%d", strict=False)
    customer = _text("ncodpers").cast(pl.Int64, strict=False)
    month = (date.dt.year().cast(pl.Int32) - 2015) * 12 + date.dt.month().cast(pl.Int32) - 1
    wrong = pl.any_horizontal(
        [
            (_text(product).is_not_null() & ~_code(product).is_in(["0", "1"]))
            | (pl.lit(product not in MAY_BE_EMPTY) & pl.col(product).is_null())
            for product in PRODUCTS
        ]
    )
    fault = (
        pl.when(date.is_null())
        .then(1)
        .when(customer.is_null())
        .then(2)
        .when(wrong)
        .then(3)
        .otherwise(0)
    )
    return [
        customer.alias("customer"),
        month.cast(pl.Int16).alias("month"),
        _pack([(_code(product) == "1").fill_null(False) for product in PRODUCTS]).alias("holdings"),
        fault.cast(pl.UInt8).alias("fault"),
    ]


def _number_columns() -> list[Any]:
    """Numbers that both kinds of features use."""
    pl = import_polars()
    seniority = _number("antiguedad", pl.Int32)
    return [
        _number("age", pl.Int16).alias("age"),
        pl.when(seniority >= 0).then(seniority).alias("seniority"),  # -999999 is not known
        _number("renta", pl.Float32).alias("income"),
        _number("cod_prov", pl.Int16).alias("province"),
    ]


def _own_columns() -> list[Any]:
    pl = import_polars()

    def place(column: str, letters: int) -> Any:
        # Codes are short and in base 36. Missing is 0, and so is what is no code.
        digits = _text(column).str.slice(0, letters).str.to_integer(base=36, strict=False)
        return ((digits + 1) / 36**letters).fill_null(0.0).cast(pl.Float32)

    flags = [
        (_code(flag.column).str.slice(0, 3).str.strip_chars().is_in(list(flag.values))).fill_null(
            False
        )
        for flag in FLAGS
    ]
    return [
        *_number_columns(),
        place("canal_entrada", 3).alias("channel_place"),
        place("pais_residencia", 2).alias("country_place"),
        _pack(flags).alias("flags"),
    ]


def _paper_columns() -> list[Any]:
    pl = import_polars()
    return [
        *_number_columns(),
        _number("ind_actividad_cliente", pl.Int8).alias("active"),
        *(_code(column).fill_null(MISSING).alias(column) for column in CATEGORICAL),
    ]


def _complain(source: Path, rows: Path) -> None:
    """Refuse the first row that cannot be read, by its line in the CSV."""
    pl = import_polars()
    rows_told = pl.scan_parquet(rows, glob=False).select("fault").with_row_index("row")
    faults = rows_told.filter(pl.col("fault") > 0).head(1).collect()
    if faults.height:
        row, fault = faults.row(0)
        _refuse(source, row, fault)


def _refuse(source: Path, row: int, fault: int) -> NoReturn:
    cells = _scan(source).slice(row, 1).collect().row(0, named=True)
    column = _FAULTS[fault]
    if fault == 3:
        column = next(each for each in PRODUCTS if not _is_holding(each, cells[each]))
    must = {1: "a date such as 2015-01-28", 2: "a customer number"}.get(fault, "0, 1 or NA")
    value = "nothing" if cells[column] is None else repr(cells[column][:40])
    # Rows and lines may differ where a quoted name holds a line break.
    raise InvalidInput(f"{source}: {column} must be {must}, got {value} in row {row + 1:,}.")


def _is_holding(product: str, text: str | None) -> bool:
    if text is None:
        return product in MAY_BE_EMPTY
    return text.strip().removesuffix(".0") in ("0", "1", "", "NA")


def _split(line: bytes) -> list[str]:
    text = line.decode("utf-8", errors="replace").removeprefix("\ufeff")
    try:
        return [name.strip() for name in next(csv.reader(io.StringIO(text)), [])]
    except csv.Error:
        return []
