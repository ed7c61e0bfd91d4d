"""`Baskets`: what every user bought, order by order, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import UnreadableFile

Numbers = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Baskets:
    """Orders of all users: users by id, orders of a user in time, items of an order by code.

    Lines are the items of all orders, one after the other. Orders and lines are found by where
    they start, as in a CSR matrix.

    Attributes
    ----------
    users : array of shape (n_users,)
        Ids, increasing.
    items : array of shape (n_items,)
        Ids, increasing. The code of an item is its place here.
    order_starts : array of shape (n_users + 1,)
        Where the orders of each user start.
    line_starts : array of shape (n_orders + 1,)
        Where the lines of each order start.
    line_items : array of shape (n_lines,)
        Codes of the items, increasing and different within an order.
    moments : dict of str to array of shape (n_orders,)
        What is known of an order besides its items: ``dow``, ``hour``, ``days_since_prior``.
    groups : dict of str to (codes, names)
        Kinds of items, such as ``aisle``: a code for each item, and the name of each code.
    item_names : tuple of str, optional
        Names of the items, if they have others than their ids.
    catalogued : bool
        Whether the items come from a list of their own and not from the orders.
    """

    users: NDArray[Any]
    items: NDArray[Any]
    order_starts: NDArray[np.int64]
    line_starts: NDArray[np.int64]
    line_items: NDArray[np.int32]
    moments: dict[str, Numbers] = field(default_factory=dict)
    groups: dict[str, tuple[NDArray[np.int32], tuple[str, ...]]] = field(default_factory=dict)
    item_names: tuple[str, ...] | None = None
    catalogued: bool = False

    @property
    def n_users(self) -> int:
        """Users with an order."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Items that can be bought."""
        return len(self.items)

    @property
    def n_orders(self) -> int:
        """Orders of all users."""
        return len(self.line_starts) - 1

    @property
    def n_lines(self) -> int:
        """Items of all orders."""
        return len(self.line_items)

    @property
    def orders_per_user(self) -> NDArray[np.int64]:
        """Orders of each user."""
        return np.diff(self.order_starts)

    def name_items(self, codes: NDArray[np.int64]) -> tuple[str, ...]:
        """Different names for different items: two of one name get their ids behind it."""
        ids = [str(each) for each in self.items[codes].tolist()]
        if self.item_names is None:
            return tuple(ids)
        names = [self.item_names[code] for code in codes.tolist()]
        positions: dict[str, int] = {}
        for name in names:
            positions[name] = positions.get(name, 0) + 1
        return tuple(
            name if positions[name] == 1 else f"{name} ({each})"
            for name, each in zip(names, ids, strict=True)
        )

    def describe(self) -> dict[str, int]:
        """Counts of what was read."""
        return {
            "n_users": self.n_users,
            "n_orders": self.n_orders,
            "n_lines": self.n_lines,
            "n_items": self.n_items,
        }

    def __repr__(self) -> str:
        return f"Baskets({', '.join(f'{name}={n}' for name, n in self.describe().items())})"


def check_lines(baskets: Baskets, source: str) -> None:
    """Refuse orders without lines, and an item twice in one order. Items must be sorted."""
    if not baskets.n_users:
        raise UnreadableFile(f"{source} must hold at least one order, got none.")
    empty = np.flatnonzero(np.diff(baskets.line_starts) == 0)
    if empty.size:
        raise UnreadableFile(
            f"{source} must have at least one item in every order, got {empty.size} without, the "
            f"first of {name_order(baskets, int(empty[0]))}."
        )
    # Equal neighbours are one item twice, unless an order starts between them.
    twice = np.zeros(baskets.n_lines, dtype=np.bool_)
    np.equal(baskets.line_items[1:], baskets.line_items[:-1], out=twice[1:])
    twice[baskets.line_starts[:-1]] = False
    if twice.any():
        line = int(twice.argmax())
        order = int(np.searchsorted(baskets.line_starts, line, side="right")) - 1
        item = baskets.items[baskets.line_items[line]]
        raise UnreadableFile(
            f"{source} must have an item at most once in an order, got {int(twice.sum())} twice, "
            f"the first item {str(item)!r} of {name_order(baskets, order)}."
        )


def name_order(baskets: Baskets, order: int) -> str:
    """Whose order it is and which one, for messages."""
    user = int(np.searchsorted(baskets.order_starts, order, side="right")) - 1
    place = order - int(baskets.order_starts[user]) + 1
    return f"user {str(baskets.users[user])!r}, order {place} in time"
