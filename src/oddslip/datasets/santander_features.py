"""What is known of a customer in a month: from rows of that month and earlier ones only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oddslip.datasets.santander_columns import FLAGS, PRODUCTS, name_features
from oddslip.datasets.santander_histories import Histories, unpack

BLOCK_ROWS = 1 << 16


def build_features(histories: Histories) -> NDArray[np.float32]:
    """Features of whole customers' rows, in their order."""
    customer, month, holdings, known = histories
    n, width = len(customer), len(PRODUCTS)
    X = np.zeros((n, len(name_features(known is not None))), np.float32)
    if not n:
        return X
    index = np.arange(n)
    is_first = np.ones(n, bool)
    is_first[1:] = customer[1:] != customer[:-1]
    start = np.maximum.accumulate(np.where(is_first, index, 0))
    before = np.zeros_like(holdings)
    before[1:] = holdings[:-1]
    before[is_first] = 0

    held = unpack(holdings)
    so_far = np.zeros((n + 1, width), np.int32)
    np.cumsum(held, axis=0, out=so_far[1:])
    X[:, :width] = held
    X[:, width : 2 * width] = unpack(before)
    X[:, 2 * width : 3 * width] = so_far[1:] - so_far[start]

    at = 3 * width
    X[:, at] = held.sum(axis=1)
    X[:, at + 1] = index - start + 1
    X[1:, at + 2] = np.where(is_first[1:], 0, month[1:] - month[:-1])
    X[:, at + 3] = month
    X[:, at + 4] = month % 12 + 1
    if known is None:
        return X

    at += 5
    for name in ("age", "seniority"):
        _put_with_flag(X[:, at : at + 2], known[name], known[name] < 0)
        at += 2
    income = known["income"]
    unknown = ~(income >= 0)  # NaN too
    _put_with_flag(X[:, at : at + 2], np.log1p(np.where(unknown, 0, income)), unknown)
    _put_with_flag(X[:, at + 2 : at + 4], known["province"], known["province"] < 0)
    at += 4
    for name in ("channel_place", "country_place"):
        X[:, at] = known[name]
        at += 1
    X[:, at:] = unpack(known["flags"], len(FLAGS))
    return X


def iterate_features(
    histories: Histories, kept: NDArray[np.bool_], block_rows: int = BLOCK_ROWS
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Features of the kept rows, in blocks, each with its place in order of month and customer.

    A block holds whole customers. Since rows of a month stand in order of customer, its rows of
    one month lie side by side in the result.
    """
    low = int(histories.month.min(initial=0))
    per_month = np.bincount(histories.month[kept].astype(np.int64) - low)
    place = np.cumsum(per_month) - per_month
    for first, stop in split_customers(histories.customer, block_rows):
        chosen = np.flatnonzero(kept[first:stop])
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
