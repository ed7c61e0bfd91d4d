"""Generates synthetic files in the form of Instacart's six."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.generators.baskets import (
    DEPARTMENTS,
    Block,
    Catalogue,
    draw_blocks,
    draw_catalogue,
    name_aisles,
    name_products,
)
from experiments.datasets.generators.writing import check_count, import_polars, make_folder, stream
from experiments.datasets.origin import note_generated
from oddslip import DEFAULT_SEED
from oddslip.io.files import atomic_write
from oddslip.io.progress import progress_bar

_HEADERS = {
    "orders.csv": "order_id,user_id,eval_set,order_number,order_dow,order_hour_of_day,"
    "days_since_prior_order",
    "order_products__prior.csv": "order_id,product_id,add_to_cart_order,reordered",
    "order_products__train.csv": "order_id,product_id,add_to_cart_order,reordered",
    "products.csv": "product_id,product_name,aisle_id,department_id",
    "aisles.csv": "aisle_id,aisle",
    "departments.csv": "department_id,department",
}


def generate_instacart(
    folder: str | os.PathLike[str],
    *,
    n_users: int,
    seed: int = DEFAULT_SEED,
    n_products: int = 49_688,
) -> Path:
    """Write the six files of Instacart Market Basket Analysis for made-up users.

    Each user has 4 to 100 orders of some ten products, most of them from a list of favourites.
    Two users in three have their last order in ``order_products__train.csv``; of the others it is
    not told, as in Kaggle's files.

    Parameters
    ----------
    folder : path
        Where the files go. Made if it is not there.
    n_users : int
        The real files have 206,209, of whom 131,209 are training users.
    seed : int
        Same seed, same bytes.
    n_products : int
        How many products there are, at least 200.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> generate_instacart("data", n_users=19_681)  # doctest: +SKIP
    PosixPath('data')
    """
    n_users = check_count("n_users", n_users, 3, 100_000_000)
    n_products = check_count("n_products", n_products, 200, 10_000_000)
    seed = check_count("seed", seed, 0)
    import_polars()
    catalogue = draw_catalogue(n_products, seed)
    is_test = stream(seed, 4).permutation(n_users) < n_users // 3
    path = make_folder(folder)
    with ExitStack() as stack:
        files: dict[str, Any] = {}
        for name, header in _HEADERS.items():
            unfinished = stack.enter_context(atomic_write(path / name))
            files[name] = stack.enter_context(unfinished.open("wb"))
            files[name].write(f"{header}\n".encode())
        _write_catalogue(files, catalogue)
        next_id = 1
        with progress_bar("generating Instacart", n_users) as advance:
            for number, block in enumerate(draw_blocks(catalogue, n_users, seed)):
                # Order numbers say nothing of users or time, as in the real files.
                ids = next_id + stream(seed, 5, number).permutation(len(block.user))
                _write_block(files, block, ids, is_test)
                next_id += len(ids)
                advance(int(block.is_last.sum()))
    settings = {"form": "instacart", "n_users": n_users, "n_products": n_products, "seed": seed}
    note_generated([path / name for name in _HEADERS], **settings)
    return path


def _write_block(
    files: dict[str, BinaryIO], block: Block, ids: NDArray[Any], is_test: NDArray[np.bool_]
) -> None:
    pl = import_polars()
    # 0 is prior, 1 train, 2 test.
    kind = np.where(block.is_last, 1 + is_test[block.user], 0)
    gap = pl.Series(block.gap.astype(np.float64))
    hours = pl.Series([f"{hour:02}" for hour in range(24)])
    orders = {
        "order_id": ids,
        "user_id": block.user + 1,
        "eval_set": pl.Series(["prior", "train", "test"]).gather(kind),
        "order_number": block.number,
        "order_dow": block.dow,
        "order_hour_of_day": hours.gather(block.hour),
        "days_since_prior_order": gap.set(gap < 0, None),
    }
    _append(files["orders.csv"], orders)
    order = np.lexsort((block.line_place, ids[block.line_order]))
    line_kind = kind[block.line_order[order]]
    for code, name in ((0, "order_products__prior.csv"), (1, "order_products__train.csv")):
        chosen = order[line_kind == code]
        lines = {
            "order_id": ids[block.line_order[chosen]],
            "product_id": block.line_item[chosen] + 1,
            "add_to_cart_order": block.line_place[chosen],
            "reordered": block.line_again[chosen].astype(np.int8),
        }
        _append(files[name], lines)


def _write_catalogue(files: dict[str, BinaryIO], catalogue: Catalogue) -> None:
    n = catalogue.n_products
    products = {
        "product_id": np.arange(1, n + 1),
        "product_name": name_products(n),
        "aisle_id": catalogue.aisle + 1,
        "department_id": catalogue.department[catalogue.aisle] + 1,
    }
    _append(files["products.csv"], products)
    aisles = name_aisles(catalogue)
    _append(files["aisles.csv"], {"id": np.arange(1, len(aisles) + 1), "aisle": aisles})
    names = list(DEPARTMENTS)
    _append(files["departments.csv"], {"id": np.arange(1, len(names) + 1), "department": names})


def _append(file: BinaryIO, columns: dict[str, Any]) -> None:
    import_polars().DataFrame(columns).write_csv(file, include_header=False)
