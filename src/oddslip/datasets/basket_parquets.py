"""Any Parquet file of lines (user, order, item), read as a next-basket task."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from oddslip.datasets.basket_checks import load_polars, polars_errors
from oddslip.datasets.basket_rows import FEATURES_VERSION, build_recommendation
from oddslip.datasets.basket_tables import gather_baskets
from oddslip.datasets.cache_rows import recall_rows
from oddslip.datasets.caches import default_folder, hash_roles, name_inputs, unchanged
from oddslip.datasets.recommendations import Recommendation
from oddslip.errors import InvalidInput


def read_baskets(
    path: str | os.PathLike[str],
    n_labels: int | None = 1000,
    *,
    items: str | os.PathLike[str] | None = None,
    name: str | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Recommendation:
    """Read a Parquet file of purchases as a next-basket task: one row per user and period.

    The third-last order of a user trains, the second-last validates, the last tests. Users with
    fewer than four orders are left out and counted in ``settings``.

    Parameters
    ----------
    path : path
        Columns user, order and item, one line per item of an order, in any order of lines.
        ``order`` increases with time within a user: whole numbers, dates or times. Perhaps also
        ``dow``, ``hour`` and ``days_since_prior``, numbers that are the same in all lines of an
        order and known before its content.
    n_labels : int, optional
        How many items are labels, the most frequent in training baskets. None takes all.
    items : path, optional
        A Parquet file that lists all items: column item, and perhaps name, aisle, department.
    name : str, optional
        Of the data set; the name of the file by default.
    cache : path, optional
        Where rows are kept, ``.work/data/NAME`` by default.

    Examples
    --------
    >>> read_baskets("purchases.parquet", 500, items="items.parquet")  # doctest: +SKIP
    """
    path, listed = Path(path), None if items is None else Path(items)
    name = path.stem if name is None else name
    pl = load_polars()
    paths = {"lines": path} if listed is None else {"lines": path, "items": listed}
    with unchanged(paths.values()):
        hashes = hash_roles(paths)
        what: dict[str, Any] = {
            "reader": "baskets", "features": FEATURES_VERSION, "name": name,
            "n_labels": n_labels, "sha256": hashes,
        }  # fmt: skip

        def build() -> Recommendation:
            table = None
            if listed is not None:
                with polars_errors(str(listed)):
                    table = pl.read_parquet(listed)
            baskets = gather_baskets(pl.scan_parquet(path), str(path), table, str(listed))
            return build_recommendation(
                baskets, n_labels, name=name, sha256=name_inputs(paths, hashes)
            )

        return recall_rows(_choose_folder(name, cache), what, build)


def _choose_folder(name: str, cache: str | os.PathLike[str] | None) -> Path:
    if cache is not None:
        return Path(cache)
    if Path(name).name != name or name in (".", ".."):
        raise InvalidInput(f"name must be that of a folder, got {name!r}. Pass cache as well.")
    return default_folder(name)
