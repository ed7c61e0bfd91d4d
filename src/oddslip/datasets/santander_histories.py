"""Customers and what they held, month by month."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.datasets.santander_columns import PRODUCTS
from oddslip.datasets.santander_rows import import_polars
from oddslip.errors import InvalidInput

Following = Literal["row", "month"]


class Histories(NamedTuple):
    """Rows sorted by customer, then by month. Each customer has a month once."""

    customer: NDArray[np.int64]
    month: NDArray[np.int16]  # months since January 2015
    holdings: NDArray[np.uint32]  # bit j is product j
    demographics: dict[str, NDArray[Any]] | None

    def part(self, first: int, stop: int) -> Histories:
        """Rows first to stop, which should be whole customers."""
        known = self.demographics
        return Histories(
            self.customer[first:stop],
            self.month[first:stop],
            self.holdings[first:stop],
            None if known is None else {name: each[first:stop] for name, each in known.items()},
        )


class Labelled(NamedTuple):
    """Which rows have a following row, and what was added by then."""

    kept: NDArray[np.bool_]
    added: NDArray[np.uint32]  # bit j is product j; of all rows, 0 where nothing follows


def read_histories(path: Path) -> Histories:
    """Rows of the Parquet file that `write_rows` made."""
    rows = import_polars().read_parquet(path, glob=False).drop("fault").sort("customer", "month")
    columns = {name: rows.get_column(name) for name in rows.columns}
    del rows
    customer, month, holdings = (
        columns.pop(name).to_numpy() for name in ("customer", "month", "holdings")
    )
    twice = np.flatnonzero((customer[1:] == customer[:-1]) & (month[1:] == month[:-1]))
    if twice.size:
        year, rest = divmod(int(month[twice[0]]), 12)
        raise InvalidInput(
            f"a customer must have one row a month, got two of customer {customer[twice[0]]} in "
            f"{2015 + year}-{rest + 1:02}."
        )
    missing = {"age": -1, "seniority": -1, "income": np.nan, "province": -1}
    known = {
        name: (each if missing.get(name) is None else each.fill_null(missing[name])).to_numpy()
        for name, each in columns.items()
    }
    return Histories(customer, month, holdings, known or None)


def label_rows(histories: Histories, following: Following = "row") -> Labelled:
    """Products that a customer does not hold in a row and holds in the following one.

    ``"row"`` takes the customer's next row, however many months later; ``"month"`` takes it only
    if it is of the next month. A row without one has no label and is not kept.
    """
    customer, month, holdings = histories[:3]
    kept = np.zeros(len(customer), bool)
    kept[:-1] = customer[1:] == customer[:-1]
    if following == "month":
        kept[:-1] &= month[1:] == month[:-1] + 1
    added = np.zeros_like(holdings)
    added[:-1] = holdings[1:] & ~holdings[:-1]
    added[~kept] = 0
    return Labelled(kept, added)


def unpack(bits: NDArray[np.uint32], n: int = len(PRODUCTS)) -> NDArray[np.uint8]:
    """Bits 0 to n-1 of each number, as columns."""
    octets = bits.astype("<u4").view(np.uint8).reshape(len(bits), 4)
    return np.unpackbits(octets, axis=1, count=n, bitorder="little")
