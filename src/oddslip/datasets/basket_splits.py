"""Which order of a user belongs to which period, and which items are labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.datasets.baskets import Baskets
from oddslip.errors import InvalidInput

# Section 3 of the paper: third-last order trains, second-last validates, last tests.
BEFORE_LAST = {"train": 2, "validation": 1, "test": 0}
LEAST_ORDERS = 4  # the third-last order needs one before it


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
    users = np.flatnonzero(n_orders >= LEAST_ORDERS)
    if not users.size:
        raise InvalidInput(
            f"at least one user must have {LEAST_ORDERS} orders, since the third-last one trains "
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
    known = np.arange(baskets.n_items) if baskets.catalogued else np.flatnonzero(counts)
    if n_labels > known.size:
        what = "the items" if baskets.catalogued else "the items bought in training baskets"
        raise InvalidInput(
            f"n_labels must be at most {known.size}, {what}, got n_labels={n_labels}. "
            "Pass None to take all items."
        )
    by_count: NDArray[np.int64] = known[np.argsort(-counts[known], kind="stable")]
    return np.sort(by_count[:n_labels])


def take_ranges(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """All whole numbers of some ranges, one range after the other."""
    sizes = stops - starts
    before = np.cumsum(sizes) - sizes
    taken: NDArray[np.int64] = np.repeat(starts - before, sizes)
    taken += np.arange(taken.size)
    return taken
