"""What customers held month by month, and what is known of them from that month and earlier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.santander.columns import FLAGS, PRODUCTS, name_features
from experiments.datasets.santander.rows import import_polars
from oddslip.errors import InvalidInput

Following = Literal["row", "month"]
BLOCK_ROWS = 1 << 16


class Histories(NamedTuple):
    """Rows sorted by customer, then by month. Each customer has a month once."""

    customer: NDArray[np.int64]
    month: NDArray[np.int16]  # months since January 2015
    holdings: NDArray[np.uint32]  # bit j is product j
    demographics: dict[str, NDArray[Any]] | None

    def part(self, first: int, stop: int) -> Histories:
        """Rows first to stop, which should be whole customers."""
        demographics = self.demographics
        return Histories(
            self.customer[first:stop],
            self.month[first:stop],
            self.holdings[first:stop],
            None
            if demographics is None
            else {name: each[first:stop] for name, each in demographics.items()},
        )


class Labelled(NamedTuple):
    """Which rows have a following row, and what was added by then."""

    has_next: NDArray[np.bool_]
    added: NDArray[np.uint32]  # bit j is product j; of all rows, 0 where nothing follows


def read_histories(path: Path, categories: Mapping[str, Sequence[str]] | None = None) -> Histories:
    """Rows of the Parquet file that `write_rows` made; texts as places among their categories."""
    pl = import_polars()
    codes = [
        pl.col(name).cast(pl.Enum(texts)).to_physical()
        for name, texts in (categories or {}).items()
    ]
    table = pl.scan_parquet(path, glob=False).drop("fault").with_columns(codes)
    rows = table.sort("customer", "month").collect(engine="streaming")
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
    missing = {"age": -1, "seniority": -1, "income": np.nan, "province": -1, "active": -1}
    filled = {
        name: (each if missing.get(name) is None else each.fill_null(missing[name])).to_numpy()
        for name, each in columns.items()
    }
    return Histories(customer, month, holdings, filled or None)


def label_rows(histories: Histories, following: Following = "row") -> Labelled:
    """Products that a customer does not hold in a row and holds in the following one.

    ``"row"`` takes the customer's next row, however many months later; ``"month"`` takes it only
    if it is of the next month. A row without one has no label and is not kept.
    """
    customer, month, holdings = histories[:3]
    has_next = np.zeros(len(customer), bool)
    has_next[:-1] = customer[1:] == customer[:-1]
    if following == "month":
        has_next[:-1] &= month[1:] == month[:-1] + 1
    added = np.zeros_like(holdings)
    added[:-1] = holdings[1:] & ~holdings[:-1]
    added[~has_next] = 0
    return Labelled(has_next, added)


def order_rows(histories: Histories, labelled: Labelled) -> NDArray[np.int64]:
    """The kept rows in order of month, then of customer."""
    rows = np.flatnonzero(labelled.has_next)
    # Rows already stand in order of customer, so a stable sort by month is enough.
    return rows[np.argsort(histories.month[rows], kind="stable")]


def unpack(bits: NDArray[np.uint32], n: int = len(PRODUCTS)) -> NDArray[np.uint8]:
    """Bits 0 to n-1 of each number, as columns."""
    octets = bits.astype("<u4").view(np.uint8).reshape(len(bits), 4)
    return np.unpackbits(octets, axis=1, count=n, bitorder="little")


def build_features(histories: Histories) -> NDArray[np.float32]:
    """Features of whole customers' rows, in their order."""
    customer, month, holdings, demographics = histories
    n, width = len(customer), len(PRODUCTS)
    X = np.zeros((n, len(name_features(demographics is not None))), np.float32)
    if not n:
        return X
    index = np.arange(n)
    is_first = np.ones(n, bool)
    is_first[1:] = customer[1:] != customer[:-1]
    start = np.maximum.accumulate(np.where(is_first, index, 0))
    before = np.zeros_like(holdings)
    before[1:] = holdings[:-1]
    before[is_first] = 0

    products = unpack(holdings)
    so_far = np.zeros((n + 1, width), np.int32)
    np.cumsum(products, axis=0, out=so_far[1:])
    X[:, :width] = products
    X[:, width : 2 * width] = unpack(before)
    X[:, 2 * width : 3 * width] = so_far[1:] - so_far[start]

    at = 3 * width
    X[:, at] = products.sum(axis=1)
    X[:, at + 1] = index - start + 1
    X[1:, at + 2] = np.where(is_first[1:], 0, month[1:] - month[:-1])
    X[:, at + 3] = month
    X[:, at + 4] = month % 12 + 1
    if demographics is None:
        return X

    at += 5
    for name in ("age", "seniority"):
        _put_with_flag(X[:, at : at + 2], demographics[name], demographics[name] < 0)
        at += 2
    income = demographics["income"]
    unknown = ~(income >= 0)  # NaN too
    _put_with_flag(X[:, at : at + 2], np.log1p(np.where(unknown, 0, income)), unknown)
    _put_with_flag(X[:, at + 2 : at + 4], demographics["province"], demographics["province"] < 0)
    at += 4
    for name in ("channel_place", "country_place"):
        X[:, at] = demographics[name]
        at += 1
    X[:, at:] = unpack(demographics["flags"], len(FLAGS))
    return X


def iterate_features(
    histories: Histories, selected: NDArray[np.bool_], block_rows: int = BLOCK_ROWS
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Features of the kept rows, in blocks, each with its place in order of month and customer.

    A block holds whole customers. Since rows of a month stand in order of customer, its rows of
    one month lie side by side in the result.
    """
    low = int(histories.month.min(initial=0))
    per_month = np.bincount(histories.month[selected].astype(np.int64) - low)
    place = np.cumsum(per_month) - per_month
    for first, stop in split_customers(histories.customer, block_rows):
        chosen = np.flatnonzero(selected[first:stop])
        X = build_features(histories.part(first, stop))[chosen]
        months = histories.month[first:stop][chosen].astype(np.int64) - low
        order = np.argsort(months, kind="stable")
        X, months = X[order], months[order]
        counts = np.bincount(months, minlength=len(place))
        ends = np.cumsum(counts)
        for month in np.flatnonzero(counts):
            yield int(place[month]), X[ends[month] - counts[month] : ends[month]]
        place += counts


def split_customers(customer: NDArray[np.int64], block_rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows of about one size that part no customer's rows."""
    first, n = 0, len(customer)
    while first < n:
        stop = min(first + block_rows, n)
        # The rows of the customer at the edge belong to this block.
        stop = int(np.searchsorted(customer, customer[stop - 1], side="right"))
        yield first, stop
        first = stop


def _put_with_flag(
    out: NDArray[np.float32], values: NDArray[np.generic], unknown: NDArray[np.bool_]
) -> None:
    """Two columns: the values, 0 where not known, and whether they are not known."""
    out[:, 0] = np.where(unknown, 0, values)
    out[:, 1] = unknown
