"""Features of a row, from what is known before the reference order, and the periods they fill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack

from experiments.datasets.baskets.basket import Baskets
from experiments.datasets.recommendation import Period, Recommendation
from oddslip.errors import InvalidInput
from oddslip.io.progress import progress_bar

# Section 3 of the paper: third-last order trains, second-last validates, last tests.
BEFORE_LAST = {"train": 2, "validation": 1, "test": 0}
MIN_ORDERS = 4  # the third-last order needs one before it
Counts = NDArray[np.int64]
HISTORY = (
    "earlier orders",
    "mean basket size",
    "last basket size",
    "distinct items",
    "reorder ratio",
    "last reorder ratio",
)
MOMENTS = {
    "days_since_prior": ("days since prior order", "mean days between orders"),
    "dow": ("day of week",),
    "hour": ("hour of day",),
}
FEATURES_VERSION = 1  # part of the name of kept rows: raise it when any feature changes


class Split(NamedTuple):
    """Users who take part, and where in their history each period's reference order stands."""

    users: NDArray[np.int64]  # codes, increasing
    places: dict[str, NDArray[np.int64]]  # by period: earlier orders of each user


def split_orders(baskets: Baskets) -> Split:
    """Reference orders of all users with at least four orders. The others are left out.

    Examples
    --------
    >>> import numpy as np
    >>> users, items, lines = np.array([7]), np.array([0]), np.zeros(5, np.int32)
    >>> five = Baskets(users, items, np.array([0, 5]), np.arange(6), lines)
    >>> split_orders(five).places["train"]
    array([2])
    """
    n_orders = baskets.orders_per_user
    users = np.flatnonzero(n_orders >= MIN_ORDERS)
    if not users.size:
        raise InvalidInput(
            f"at least one user must have {MIN_ORDERS} orders, since the third-last one trains "
            f"and needs one before it, got at most {int(n_orders.max(initial=0))}."
        )
    places = {period: n_orders[users] - 1 - back for period, back in BEFORE_LAST.items()}
    return Split(users, places)


def count_training(baskets: Baskets, split: Split) -> NDArray[np.int64]:
    """Training baskets that hold each item."""
    orders = baskets.order_starts[split.users] + split.places["train"]
    lines = take_ranges(baskets.line_starts[orders], baskets.line_starts[orders + 1])
    return np.bincount(baskets.line_items[lines], minlength=baskets.n_items)


def choose_labels(baskets: Baskets, split: Split, n_labels: int | None) -> NDArray[np.int64]:
    """Codes of the items most frequent in training baskets, increasing. None takes all items.

    Equal counts go to the lower code. Labels stand in the order of their codes, not of their
    counts: ties of scores go to the lower label, and popularity must not decide them.
    """
    if n_labels is None:
        return np.arange(baskets.n_items)
    is_number = isinstance(n_labels, int | np.integer) and not isinstance(n_labels, bool)
    if not is_number or n_labels < 1:
        raise InvalidInput(
            f"n_labels must be a number of items, at least 1, or None, got n_labels={n_labels!r}."
        )
    counts = count_training(baskets, split)
    # Without a list of items, one never bought in training is not known to exist at that time.
    candidates = np.arange(baskets.n_items) if baskets.catalogued else np.flatnonzero(counts)
    if n_labels > candidates.size:
        what = "the items" if baskets.catalogued else "the items bought in training baskets"
        raise InvalidInput(
            f"n_labels must be at most {candidates.size}, {what}, got n_labels={n_labels}. "
            "Pass None to take all items."
        )
    by_count: NDArray[np.int64] = candidates[np.argsort(-counts[candidates], kind="stable")]
    return np.sort(by_count[:n_labels])


def take_ranges(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """All whole numbers of some ranges, one range after the other."""
    sizes = stops - starts
    before = np.cumsum(sizes) - sizes
    positions: NDArray[np.int64] = np.repeat(starts - before, sizes)
    positions += np.arange(positions.size)
    return positions


class Purchases(NamedTuple):
    """All lines of the users of a split, by user, then item, then time."""

    row: NDArray[np.int32]  # which user of the split
    item: NDArray[np.int32]
    place: NDArray[np.int32]  # orders of the user before the line's
    new: NDArray[np.bool_]  # whether the user buys the item for the first time


def sort_purchases(baskets: Baskets, split: Split) -> Purchases:
    """Lines by user, item and time, by counting: two transpositions, linear in the lines."""
    first, stop = baskets.order_starts[split.users], baskets.order_starts[split.users + 1]
    orders = take_ranges(first, stop)
    sizes = np.diff(baskets.line_starts)[orders]
    places = orders - np.repeat(first, stop - first)
    ends = np.append(0, np.cumsum(sizes))
    indptr = ends[np.append(0, np.cumsum(stop - first))]
    lines = take_ranges(baskets.line_starts[orders], baskets.line_starts[orders + 1])
    table = csr_matrix(
        (np.repeat(places.astype(np.int32), sizes), baskets.line_items[lines], indptr),
        shape=(split.users.size, baskets.n_items),
    )
    del lines
    # Transposing keeps the order of equal cells, so that time stays increasing.
    table = table.tocsc().tocsr()
    row = np.repeat(np.arange(split.users.size, dtype=np.int32), np.diff(table.indptr))
    item = table.indices.astype(np.int32, copy=False)
    new = np.ones(item.size, dtype=np.bool_)
    new[1:] = (item[1:] != item[:-1]) | (row[1:] != row[:-1])
    return Purchases(row, item, table.data, new)


def build_features(
    baskets: Baskets,
    split: Split,
    places: Counts,
    labels: Counts,
    purchases: Purchases | None = None,
) -> Any:
    """Features of one period's rows, a CSR matrix in float32.

    Parameters
    ----------
    baskets : Baskets
        All orders. What comes at or after the reference orders is not used.
    split : Split
        Whose rows.
    places : array of shape (n_rows,)
        Earlier orders of each user: where the reference order stands.
    labels : array of shape (n_labels,)
        Codes of the items that are labels, increasing.
    purchases : Purchases, optional
        Saves sorting them again for each period.
    """
    purchases = sort_purchases(baskets, split) if purchases is None else purchases
    parts = [*_describe_items(baskets, purchases, places, labels)]
    for codes, names in baskets.groups.values():
        parts += describe_groups(baskets, split, places, codes, len(names))
    history = _describe_history(baskets, split, purchases, places)
    moments = _describe_moments(baskets, split, places)
    parts.append(csr_matrix(np.column_stack(history + moments).astype(np.float32)))
    X = hstack(parts, format="csr", dtype=np.float32)
    X.eliminate_zeros()
    X.sort_indices()
    return X


def name_features(baskets: Baskets, label_names: Sequence[str]) -> tuple[str, ...]:
    """Names of the columns of `build_features`."""
    names = [f"share of earlier orders with {name}" for name in label_names]
    names += [f"recency of {name}" for name in label_names]
    for group, (_, kinds) in baskets.groups.items():
        names += [f"share of earlier lines of {group} {kind}" for kind in kinds]
        names += [f"share of last order's lines of {group} {kind}" for kind in kinds]
    names += HISTORY
    for moment, described in MOMENTS.items():
        names += described if moment in baskets.moments else ()
    return tuple(names)


def build_labels(baskets: Baskets, split: Split, places: Counts, labels: Counts) -> Any:
    """Items of the reference orders that are labels, a CSR matrix of true cells."""
    orders = baskets.order_starts[split.users] + places
    lines = take_ranges(baskets.line_starts[orders], baskets.line_starts[orders + 1])
    rows = np.repeat(np.arange(places.size), np.diff(baskets.line_starts)[orders])
    columns = _number_labels(baskets, labels)[baskets.line_items[lines]]
    is_label = columns >= 0
    return _fill_rows(
        np.ones(int(is_label.sum()), np.bool_),
        columns[is_label],
        rows[is_label],
        (places.size, labels.size),
    )


def _describe_items(
    baskets: Baskets, purchases: Purchases, places: Counts, labels: Counts
) -> tuple[Any, Any]:
    """Per label: share of the earlier orders that hold it, 1 / orders since the last of them."""
    number = _number_labels(baskets, labels)
    here = purchases.place < places.astype(np.int32)[purchases.row]
    here &= number[purchases.item] >= 0
    row, place = purchases.row[here], purchases.place[here]
    column = number[purchases.item[here]]
    del here
    fresh = np.ones(row.size, dtype=np.bool_)
    fresh[1:] = (column[1:] != column[:-1]) | (row[1:] != row[:-1])
    starts = np.flatnonzero(fresh)
    del fresh
    times = np.diff(starts, append=row.size)
    last = place[starts + times - 1]
    row, column = row[starts], column[starts]
    shape = (places.size, labels.size)
    share = _fill_rows(times / places[row], column, row, shape)
    return share, _fill_rows(1.0 / (places[row] - last), column, row, shape)


def describe_groups(
    baskets: Baskets, split: Split, places: Counts, codes: NDArray[np.int32], n_kinds: int
) -> list[Any]:
    """Per kind: share of the earlier lines, share of the last order's lines."""
    first = baskets.order_starts[split.users]
    stops = baskets.line_starts[first + places]
    described = []
    for starts in (baskets.line_starts[first], baskets.line_starts[first + places - 1]):
        sizes = stops - starts
        kinds = codes[baskets.line_items[take_ranges(starts, stops)]]
        indptr = np.append(0, np.cumsum(sizes))
        counts = csr_matrix((np.ones(kinds.size), kinds, indptr), shape=(places.size, n_kinds))
        counts.sum_duplicates()
        shares = counts.data / np.repeat(sizes, np.diff(counts.indptr))
        counts.data = shares.astype(np.float32)
        described.append(counts)
    return described


def _describe_history(
    baskets: Baskets, split: Split, purchases: Purchases, places: Counts
) -> list[NDArray[Any]]:
    """The columns of `HISTORY`."""
    first = baskets.order_starts[split.users]
    lines = baskets.line_starts[first + places] - baskets.line_starts[first]
    last = baskets.line_starts[first + places] - baskets.line_starts[first + places - 1]
    row, place = purchases.row[purchases.new], purchases.place[purchases.new]
    earlier = place < places.astype(np.int32)[row]
    distinct = np.bincount(row[earlier], minlength=places.size)
    new_in_last = np.bincount(row[place == places[row] - 1], minlength=places.size)
    return [places, lines / places, last, distinct, 1 - distinct / lines, 1 - new_in_last / last]


def _describe_moments(baskets: Baskets, split: Split, places: Counts) -> list[NDArray[Any]]:
    """The columns of `MOMENTS` that are there, at the reference order."""
    first = baskets.order_starts[split.users]
    described: list[NDArray[Any]] = []
    for moment in MOMENTS:
        if moment not in baskets.moments:
            continue
        values = baskets.moments[moment].astype(np.float64)
        described.append(np.nan_to_num(values[first + places]))
        if moment == "days_since_prior":
            # The first order has no prior one. The reference order's own gap is already known.
            gaps = values[take_ranges(first, first + places + 1)]
            row = np.repeat(np.arange(places.size), places + 1)
            is_known = np.isfinite(gaps)
            total = np.bincount(row[is_known], weights=gaps[is_known], minlength=places.size)
            described.append(
                total / np.maximum(np.bincount(row[is_known], minlength=places.size), 1)
            )
    return described


def _number_labels(baskets: Baskets, labels: Counts) -> NDArray[np.int32]:
    """The label of each item, -1 where it is none."""
    number = np.full(baskets.n_items, -1, dtype=np.int32)
    number[labels] = np.arange(labels.size, dtype=np.int32)
    return number


def _fill_rows(
    values: NDArray[Any], columns: NDArray[Any], rows: NDArray[Any], shape: tuple[int, int]
) -> Any:
    """A CSR matrix of cells that come row by row."""
    dtype = np.bool_ if values.dtype == np.bool_ else np.float32
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=shape[0])))
    return csr_matrix((values.astype(dtype), columns, indptr), shape=shape)


def build_recommendation(
    baskets: Baskets,
    n_labels: int | None,
    *,
    name: str,
    settings: dict[str, Any] | None = None,
    sha256: dict[str, str] | None = None,
) -> Recommendation:
    """One row per user and period, features from the orders before the reference order only.

    Parameters
    ----------
    baskets : Baskets
        All orders of all users.
    n_labels : int, optional
        How many items are labels, the most frequent in training baskets. None takes all.
    name : str
        Of the data set.
    settings, sha256 : dict, optional
        What else the rows depend on. Counts of what was read and left out are added.
    """
    split = split_orders(baskets)
    labels = choose_labels(baskets, split, n_labels)
    label_names = baskets.name_items(labels)
    purchases = sort_purchases(baskets, split)
    periods = {}
    with progress_bar(f"{name}: features", len(split.places)) as advance:
        for period, places in split.places.items():
            X = build_features(baskets, split, places, labels, purchases)
            Y = build_labels(baskets, split, places, labels)
            periods[period] = Period(X, Y, baskets.users[split.users])
            advance(1)
    counts = {
        **baskets.describe(),
        "n_users_left_out": baskets.n_users - split.users.size,
    }
    return Recommendation(
        name=name,
        train=periods["train"],
        validation=periods["validation"],
        test=periods["test"],
        label_names=label_names,
        feature_names=name_features(baskets, label_names),
        settings={**(settings or {}), "n_labels": n_labels, **counts},
        sha256=dict(sha256 or {}),
    )
