"""Instacart's last baskets as completion: half of a cart is known, the rest is to be ranked."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack

from experiments.datasets.baskets.basket import Baskets
from experiments.datasets.baskets.features import (
    Split,
    build_labels,
    choose_labels,
    describe_groups,
)
from experiments.datasets.baskets.instacart import find_files, read_products
from experiments.datasets.baskets.table import (
    gather_baskets,
    polars_errors,
    refuse_nulls,
    require_columns,
)
from experiments.datasets.cache import (
    default_folder,
    hash_roles,
    name_inputs,
    recall_rows,
    unchanged,
)
from experiments.datasets.extras import import_polars
from experiments.datasets.origin import is_generated
from experiments.datasets.recommendation import Period, Recommendation
from oddslip.errors import UnreadableFile

NAME = "instacart-baskets"
FILES = {
    "carts": "order_products__train.parquet",
    "products": "products.csv",
    "aisles": "aisles.csv",
    "departments": "departments.csv",
}
_SOURCE = (
    "The carts are order_products__train of Instacart (Kaggle, 2017), saved as Parquet; the other "
    "three files lie beside them as Kaggle has them."
)
MIN_LINES = 4  # of a cart: two products are known, and two follow
SEED = 42
VERSION = 1  # part of the name of kept rows: raise it when a row changes
_COLUMNS = ("order_id", "product_id", "add_to_cart_order")
_KNOWN, _FOLLOWING = 0, 1  # a cart is kept as two orders: the known half, what follows


def read_instacart_baskets(
    data: str | os.PathLike[str] | None = None,
    n_labels: int | None = 4000,
    cache: str | os.PathLike[str] | None = None,
    *,
    seed: int = SEED,
) -> Recommendation:
    """Read the last baskets of Instacart as basket completion: one row per cart.

    The first half of a cart, in the order of adding, is known (of an odd number, the smaller
    half); its other products are the labels. Carts of fewer than four products are left out and
    counted in ``settings``. The file has no time and one cart per user, so that rows are split
    into three equal parts at random.

    Parameters
    ----------
    data : path, optional
        The folder of order_products__train.parquet, products.csv, aisles.csv and
        departments.csv, or the one above. Otherwise it is looked for where `find_data` looks.
    n_labels : int, optional
        How many products are labels, those that follow most often in training rows. None takes
        all.
    cache : path, optional
        Where rows are kept, ``.work/data/instacart-baskets`` by default.
    seed : int
        Of the split.

    Returns
    -------
    Recommendation
        Features are the known products that are labels, the shares of the aisles and departments
        among all known products, and how many are known.

    Examples
    --------
    >>> rows = read_instacart_baskets()  # doctest: +SKIP
    >>> rows.train.X.shape  # doctest: +SKIP
    (36321, 4156)
    """
    paths = find_files(FILES, data, _SOURCE)
    folder = default_folder(NAME) if cache is None else Path(cache)
    with unchanged(paths.values()):
        hashes = hash_roles(paths)
        what = {
            "reader": NAME,
            "version": VERSION,
            "n_labels": n_labels,
            "seed": seed,
            "sha256": hashes,
        }

        def build() -> Recommendation:
            carts, counts = read_carts(paths["carts"])
            source = str(paths["carts"])
            items, items_source = read_products(paths), str(paths["products"])
            baskets = gather_baskets(carts, source, items, items_source)
            rows = complete_baskets(baskets, n_labels, seed=seed)
            return replace(
                rows,
                settings={**rows.settings, **counts},
                sha256=name_inputs(paths, hashes),
            )

        rows = recall_rows(folder, what, build)
        return replace(rows, generated=is_generated(paths.values()))


def read_carts(path: Path) -> tuple[Any, dict[str, int]]:
    """Lines of the carts of at least four products, each in one of two halves; counts of carts.

    The halves of a cart have its id as ``user``, and 0 or 1 as ``order``.
    """
    pl = import_polars("reading baskets")
    with polars_errors(str(path)):
        table = pl.scan_parquet(path)
        require_columns(table.collect_schema(), _COLUMNS, str(path))
        refuse_nulls(table, _COLUMNS, str(path))
        size = pl.len().over("order_id")
        lines = table.select(*_COLUMNS, n_lines=size).collect()
    _check_carts(lines, path)
    follows = pl.col("add_to_cart_order") > pl.col("n_lines") // 2
    kept = lines.filter(pl.col("n_lines") >= MIN_LINES)
    halves = kept.select(
        user="order_id",
        order=pl.when(follows).then(_FOLLOWING).otherwise(_KNOWN).cast(pl.Int8),
        item="product_id",
    )
    n_carts = lines["order_id"].n_unique()
    n_kept = halves["user"].n_unique()
    return halves.lazy(), {"n_carts": n_carts, "n_carts_left_out": n_carts - n_kept}


def _check_carts(lines: Any, path: Path) -> None:
    """Refuse a cart that is not numbered 1, 2, ... and one with a product twice."""
    pl = import_polars("reading baskets")
    place = pl.col("add_to_cart_order")
    wrong = lines.filter(
        (place < 1)
        | (place > pl.col("n_lines"))
        | pl.struct("order_id", "add_to_cart_order").is_duplicated()
    )
    if wrong.height:
        raise UnreadableFile(
            f"{path} must number the products of a cart from 1 on without gaps, got order_id "
            f"{wrong['order_id'][0]} with another add_to_cart_order. Is the file cut short?"
        )
    twice = lines.filter(pl.struct("order_id", "product_id").is_duplicated())
    if twice.height:
        raise UnreadableFile(
            f"{path} must have a product at most once in a cart, got product_id "
            f"{twice['product_id'][0]} twice in order_id {twice['order_id'][0]}."
        )


def split_rows(n_rows: int, seed: int = SEED) -> dict[str, NDArray[np.int64]]:
    """Rows of the three periods: equal parts of a seeded permutation; what is left over trains.

    Examples
    --------
    >>> {name: rows.size for name, rows in split_rows(11).items()}
    {'train': 5, 'validation': 3, 'test': 3}
    """
    order = np.random.default_rng(seed).permutation(n_rows)
    third = n_rows // 3
    parts = {
        "train": order[2 * third :],
        "validation": order[:third],
        "test": order[third : 2 * third],
    }
    return {name: np.sort(rows) for name, rows in parts.items()}


def complete_baskets(baskets: Baskets, n_labels: int | None, *, seed: int = SEED) -> Recommendation:
    """Rows of carts that are kept as two orders each, in three parts at random.

    Parameters
    ----------
    baskets : Baskets
        Two orders per user: the known half of a cart, and what follows.
    n_labels : int, optional
        How many items are labels, those that follow most often in training rows. None takes all.
    seed : int
        Of the split.
    """
    parts = split_rows(baskets.n_users, seed)
    ones = np.full(parts["train"].size, _FOLLOWING)
    labels = choose_labels(baskets, Split(parts["train"], {"train": ones}), n_labels)
    label_names = baskets.name_items(labels)
    groups = baskets.groups.items()
    return Recommendation(
        name=NAME,
        train=_build_period(baskets, parts["train"], labels),
        validation=_build_period(baskets, parts["validation"], labels),
        test=_build_period(baskets, parts["test"], labels),
        label_names=label_names,
        feature_names=(
            *(f"known: {name}" for name in label_names),
            *(f"share of {group} {kind}" for group, (_, kinds) in groups for kind in kinds),
            "known products",
        ),
        settings={"n_labels": n_labels, "split": "at random", "seed": seed, **baskets.describe()},
    )


def _build_period(baskets: Baskets, users: NDArray[np.int64], labels: NDArray[np.int64]) -> Period:
    split = Split(users, {})
    following = np.full(users.size, _FOLLOWING)
    products = build_labels(baskets, split, np.full(users.size, _KNOWN), labels)
    shares = [
        describe_groups(baskets, split, following, codes, len(names))[0]
        for codes, names in baskets.groups.values()
    ]
    known = np.diff(baskets.line_starts)[baskets.order_starts[users]]
    X = hstack([products, *shares, known[:, None]], format="csr", dtype=np.float32)
    X.sort_indices()
    Y = build_labels(baskets, split, following, labels)
    return Period(X, Y, baskets.users[users])
