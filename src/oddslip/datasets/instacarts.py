"""Instacart 2017: orders of 131,209 users with a known last basket, read from Kaggle's files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oddslip.datasets.basket_checks import load_polars, polars_errors
from oddslip.datasets.basket_rows import FEATURES_VERSION, build_recommendation
from oddslip.datasets.basket_tables import gather_baskets
from oddslip.datasets.cache_rows import recall_rows
from oddslip.datasets.caches import (
    default_folder,
    hash_roles,
    name_inputs,
    recall_entry,
    unchanged,
)
from oddslip.datasets.instacart_files import find_instacart
from oddslip.datasets.instacart_orders import read_products, sink_lines
from oddslip.datasets.origins import is_generated
from oddslip.datasets.recommendations import Recommendation


def read_instacart(
    data: str | os.PathLike[str] | None = None,
    n_labels: int | None = 4000,
    cache: str | os.PathLike[str] | None = None,
    *,
    files: Mapping[str, str | None] | None = None,
) -> Recommendation:
    """Read Instacart as a next-order task: one row per user and period.

    The third-last order of a user trains, the second-last validates, the last tests. Users of
    eval_set "test" have no last basket and are left out. With 4,000 labels there are 8,320
    features, as in section 3 of the paper.

    Parameters
    ----------
    data : path, optional
        The folder of orders.csv, order_products__prior.csv, order_products__train.csv,
        products.csv, aisles.csv and departments.csv. Otherwise it is looked for where `find_data`
        looks.
    n_labels : int, optional
        How many products are labels, the most frequent in training baskets. None takes all.
    cache : path, optional
        Where tables and rows are kept, ``.work/data/instacart`` by default.
    files : dict, optional
        Other names of the files: for orders, prior, train, products, aisles, departments. With
        ``train=None`` only prior orders are read. ``joined`` names one file that has orders and
        products in every line, and takes the place of the first three.

    Examples
    --------
    >>> rows = read_instacart("instacart")  # doctest: +SKIP
    >>> rows.train.X.shape  # doctest: +SKIP
    (131209, 8320)
    """
    paths = find_instacart(data, files)
    pl = load_polars()
    folder = default_folder("instacart") if cache is None else Path(cache)
    with unchanged(paths.values()):
        hashes = hash_roles(paths)
        what: dict[str, Any] = {"reader": "instacart", "sha256": hashes}

        def fill(entry: Path) -> None:
            read_products(paths).write_parquet(entry / "items.parquet", compression="zstd")
            sink_lines(paths, entry / "lines.parquet")

        def build() -> Recommendation:
            entry = recall_entry(folder, {**what, "table": 1}, fill)
            source = " and ".join(
                str(paths[role]) for role in ("joined", "prior", "train") if role in paths
            )
            with polars_errors(str(entry)):
                items = pl.read_parquet(entry / "items.parquet")
            baskets = gather_baskets(
                pl.scan_parquet(entry / "lines.parquet"), source, items, str(paths["products"])
            )
            return build_recommendation(
                baskets, n_labels, name="instacart", sha256=name_inputs(paths, hashes)
            )

        rows = recall_rows(
            folder, {**what, "features": FEATURES_VERSION, "n_labels": n_labels}, build
        )
        return replace(rows, generated=is_generated(paths.values(), rows.sha256))
