"""Generates orders of a synthetic supermarket as one Parquet file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.generators.writing import check_count, make_folder, stream
from experiments.datasets.origin import note_generated
from oddslip import DEFAULT_SEED
from oddslip.io.files import atomic_write
from oddslip.io.progress import progress_bar

N_AISLES, N_DEPARTMENTS, N_TASTES = 134, 21, 16
_DEPARTMENTS_TEXT = (
    "frozen; other; bakery; produce; alcohol; international; beverages; pets; dry goods "
    "pasta; bulk; personal care; meat seafood; pantry; breakfast; canned goods; dairy eggs; "
    "household; babies; snacks; deli; missing"
)
DEPARTMENTS = tuple(_DEPARTMENTS_TEXT.split("; "))
_FIRST_TEXT = (
    "Organic; Fresh; Classic; Light; Whole; Smoked; Sweet; Unsalted; Crunchy; Creamy; "
    '"Natural"; Gluten Free,; Crème de; 100%; Baby\'s'
)
_FIRST = tuple(_FIRST_TEXT.split("; "))
_SECOND_TEXT = (
    "Bananas Milk Bread Yogurt Apples Cheese Pasta Rice Coffee Tea Soup Beans Juice Butter "
    "Cookies Chips Salsa Spinach Eggs Jalapeños"
)
_SECOND = tuple(_SECOND_TEXT.split(" "))

MIN_ORDERS, MAX_ORDERS = 4, 100
BLOCK_USERS = 4096
_N_FAVOURITES = 46
_DAY_SHARES = np.cumsum([0.175, 0.172, 0.137, 0.128, 0.125, 0.132, 0.131])
Ints = NDArray[np.int64]
BASKETS_NAME, ITEMS_NAME = "baskets.parquet", "items.parquet"


class Catalogue(NamedTuple):
    """Products by number, from 0; numbers in the files start at 1."""

    aisle: NDArray[np.int64]  # of each product
    department: NDArray[np.int64]  # of each aisle
    tastes: NDArray[np.float64]  # (tastes, products): cumulated shares of what such people buy

    @property
    def n_products(self) -> int:
        """How many products there are."""
        return len(self.aisle)


def draw_catalogue(n_products: int, seed: int) -> Catalogue:
    """Popularity falls with the rank; tastes differ by aisle."""
    random = stream(seed, 2)
    sizes = 1 / (3 + np.arange(N_AISLES))
    aisle = random.choice(N_AISLES, n_products, p=random.permutation(sizes / sizes.sum()))
    # Every aisle has a product and every department an aisle, if there are enough of them.
    few = min(N_AISLES, n_products)
    aisle[random.permutation(n_products)[:few]] = np.arange(few)
    department = random.integers(0, N_DEPARTMENTS, N_AISLES)
    department[random.permutation(N_AISLES)[:N_DEPARTMENTS]] = np.arange(N_DEPARTMENTS)
    # So the best seller has some 1.5% of all lines, as bananas have.
    popularity = random.permutation(1 / (6.0 + np.arange(n_products)))
    liking = np.exp(random.normal(0, 0.9, (N_TASTES, N_AISLES)))
    shares = np.cumsum(popularity * liking[:, aisle], axis=1)
    return Catalogue(aisle, department, shares / shares[:, -1:])


def name_products(n_products: int) -> list[str]:
    """Names, some with commas, quotes and accents."""
    first, second = len(_FIRST), len(_SECOND)
    return [
        f"{_FIRST[i % first]} {_SECOND[i // first % second]}"
        + (f", {i // (first * second)} oz" if i >= first * second else "")
        for i in range(n_products)
    ]


def name_aisles(catalogue: Catalogue) -> list[str]:
    """Names that tell the department."""
    return [
        f"{DEPARTMENTS[department]} {number + 1}"
        for number, department in enumerate(catalogue.department)
    ]


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
    firsts = np.sort(np.unique(line_order * catalogue.n_products + item, return_index=True)[1])
    line_order, item, line_who = line_order[firsts], item[firsts], line_who[firsts]
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


def generate_baskets(
    folder: str | os.PathLike[str],
    *,
    n_users: int,
    seed: int = DEFAULT_SEED,
    n_products: int = 49_688,
) -> Path:
    """Write ``baskets.parquet`` and ``items.parquet`` for made-up users.

    Users and habits are those of `generate_instacart`; every order is told. Columns are user,
    order, item, dow, hour and days_since_prior; and item, name, aisle, department.

    Parameters
    ----------
    folder : path
        Where the files go. Made if it is not there.
    n_users, seed, n_products : int
        As for `generate_instacart`.

    Returns
    -------
    Path
        The file of purchases.

    Examples
    --------
    >>> generate_baskets("data", n_users=1000)  # doctest: +SKIP
    PosixPath('data/baskets.parquet')
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_users = check_count("n_users", n_users, 1, 100_000_000)
    n_products = check_count("n_products", n_products, 200, 10_000_000)
    seed = check_count("seed", seed, 0)
    catalogue = draw_catalogue(n_products, seed)
    path = make_folder(folder) / BASKETS_NAME
    schema = pa.schema(
        {
            "user": pa.int64(),
            "order": pa.int64(),
            "item": pa.int64(),
            "dow": pa.int8(),
            "hour": pa.int8(),
            "days_since_prior": pa.float32(),
        }
    )
    aisles = np.array(name_aisles(catalogue))
    departments = np.array(DEPARTMENTS)[catalogue.department]
    items = {
        "item": np.arange(1, n_products + 1),
        "name": name_products(n_products),
        "aisle": aisles[catalogue.aisle],
        "department": departments[catalogue.aisle],
    }
    with (
        atomic_write(path.with_name(ITEMS_NAME)) as items_file,
        atomic_write(path) as unfinished,
        pq.ParquetWriter(unfinished, schema, compression="zstd") as writer,
        progress_bar("generating baskets", n_users) as advance,
    ):
        pq.write_table(pa.table(items), items_file, compression="zstd")
        for block in draw_blocks(catalogue, n_users, seed):
            lines = block.line_order
            gap = block.gap[lines]
            columns = [
                block.user[lines] + 1,
                block.number[lines],
                block.line_item + 1,
                block.dow[lines],
                block.hour[lines],
            ]
            arrays = [
                pa.array(each).cast(field.type)
                for each, field in zip(columns, schema, strict=False)
            ]
            arrays.append(pa.array(gap.astype(np.float32), mask=gap < 0))
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            advance(int(block.is_last.sum()))
    settings = {"form": "baskets", "n_users": n_users, "n_products": n_products, "seed": seed}
    note_generated([path, path.with_name(ITEMS_NAME)], **settings)
    return path
