"""What made-up users order: most of it what they ordered before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.datasets.generated.catalogues import N_TASTES, Catalogue
from oddslip.datasets.generated.checks import stream

MIN_ORDERS, MAX_ORDERS = 4, 100
BLOCK_USERS = 4096
_N_FAVOURITES = 46
_DAY_SHARES = np.cumsum([0.175, 0.172, 0.137, 0.128, 0.125, 0.132, 0.131])

Ints = NDArray[np.int64]


class Block(NamedTuple):
    """Orders of some users, by user and time, and their lines in order of the cart."""

    user: Ints  # of each order; numbers from 0
    number: Ints  # of each order within its user, from 1
    is_last: NDArray[np.bool_]
    dow: Ints
    hour: Ints
    gap: Ints  # days since the order before; -1 for a first order
    line_order: Ints  # place of the line's order in this block
    line_item: Ints
    line_place: Ints  # in the cart, from 1
    line_again: NDArray[np.bool_]  # whether the user had it in an earlier order


def draw_blocks(catalogue: Catalogue, n_users: int, seed: int) -> Iterator[Block]:
    """Blocks of users. Each depends on the seed and its place alone."""
    for number, first in enumerate(range(0, n_users, BLOCK_USERS)):
        users = np.arange(first, min(first + BLOCK_USERS, n_users))
        yield _draw_block(catalogue, users, stream(seed, 3, number))


def _draw_block(catalogue: Catalogue, users: Ints, random: np.random.Generator) -> Block:
    n = len(users)
    n_orders = MIN_ORDERS + random.lognormal(1.95, 1.1, n).astype(np.int64)
    n_orders = np.minimum(n_orders, MAX_ORDERS)
    who = np.repeat(np.arange(n), n_orders)
    start = np.repeat(np.cumsum(n_orders) - n_orders, n_orders)
    number = np.arange(len(who)) - start + 1

    habit = np.where(random.random(n) < 0.4, 7.0, random.gamma(2.2, 6.5, n))
    gap = np.rint(random.normal(habit[who], 1 + habit[who] / 4)).clip(0, 30).astype(np.int64)
    gap[number == 1] = -1
    dow = np.searchsorted(_DAY_SHARES, random.random(len(who))).clip(max=6)
    usual = random.normal(13.5, 3.0, n)
    hour = np.rint(random.normal(usual[who], 2.8)).clip(0, 23).astype(np.int64)

    taste = random.integers(0, N_TASTES, n)
    favourites = _draw_items(catalogue, np.repeat(taste, _N_FAVOURITES), random)
    favourites = favourites.reshape(n, _N_FAVOURITES)
    usual_size = random.gamma(2.6, 3.8, n) + 1
    size = 1 + random.poisson(usual_size[who] * random.gamma(4.0, 0.25, len(who)))
    line_order = np.repeat(np.arange(len(who)), size)
    line_who = who[line_order]
    loyalty = random.beta(6, 2, n)
    # Most of what is bought comes from the top of one's own list.
    rank = (_N_FAVOURITES * random.random(len(line_order)) ** 1.7).astype(np.int64)
    item = favourites[line_who, rank]
    other = np.flatnonzero(random.random(len(line_order)) >= loyalty[line_who])
    item[other] = _draw_items(catalogue, taste[line_who[other]], random)

    # A product stands in an order once, at its first place.
    kept = np.sort(np.unique(line_order * catalogue.n_products + item, return_index=True)[1])
    line_order, item, line_who = line_order[kept], item[kept], line_who[kept]
    first = np.unique(line_who * catalogue.n_products + item, return_index=True)[1]
    again = np.ones(len(item), bool)
    again[first] = False
    counts = np.bincount(line_order, minlength=len(who))
    place = np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    is_last = number == n_orders[who]
    return Block(users[who], number, is_last, dow, hour, gap, line_order, item, place, again)


def _draw_items(catalogue: Catalogue, taste: Ints, random: np.random.Generator) -> Ints:
    """An item for each entry, by its taste."""
    draws = random.random(len(taste))
    items = np.empty(len(taste), np.int64)
    for each in range(N_TASTES):
        chosen = np.flatnonzero(taste == each)
        items[chosen] = np.searchsorted(catalogue.tastes[each], draws[chosen], side="right")
    return np.minimum(items, catalogue.n_products - 1)
