"""Instacart 2017: orders of 131,209 users with a known last basket, read from Kaggle's files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.datasets.baskets.features import FEATURES_VERSION, build_recommendation
from experiments.datasets.baskets.table import (
    gather_baskets,
    polars_errors,
    require_columns,
)
from experiments.datasets.cache import (
    cached_entry,
    default_folder,
    hash_roles,
    name_inputs,
    recall_rows,
    unchanged,
)
from experiments.datasets.extras import import_polars
from experiments.datasets.mulan import files as data_files
from experiments.datasets.origin import is_generated
from experiments.datasets.recommendation import Recommendation
from oddslip.errors import InvalidInput, UnreadableFile

# The names of the files as Kaggle gives them. A joined file has orders and products in one.
NAMES: dict[str, str | None] = {
    "orders": "orders.csv",
    "prior": "order_products__prior.csv",
    "train": "order_products__train.csv",
    "products": "products.csv",
    "aisles": "aisles.csv",
    "departments": "departments.csv",
    "joined": None,
}
_LAST = "reordered"  # not read, but its absence shows a line that was cut within its product
_MAY_BE_NONE = ("train", "joined")
_SOURCE = (
    'Instacart is on Kaggle, "Instacart Market Basket Analysis" (2017); needed are '
    + ", ".join(name for name in NAMES.values() if name)
    + "."
)

_RENAMED = {
    "user_id": "user",
    "order_number": "order",
    "product_id": "item",
    "order_dow": "dow",
    "order_hour_of_day": "hour",
    "days_since_prior_order": "days_since_prior",
}
_KEPT = ("user", "order", "item", "dow", "hour", "days_since_prior")


def find_instacart(
    data: str | os.PathLike[str] | None, names: Mapping[str, str | None] | None = None
) -> dict[str, Path]:
    """The files by what they hold, in a folder that is given or looked for."""
    return find_files(_choose_names(names), data, _SOURCE)


def find_files(
    names: Mapping[str, str], data: str | os.PathLike[str] | None, source: str
) -> dict[str, Path]:
    """Files of these names by role, all in one folder; ``source`` says where they come from."""
    roots = data_files.search_path() if data is None else [Path(data)]
    lacking: list[str] = []
    for root in roots:
        for folder in (root, root / "instacart"):
            paths = {role: folder / name for role, name in names.items()}
            absent = [path.name for path in paths.values() if not path.is_file()]
            if not absent:
                return paths
            # What a folder lacks is worth telling only if it has something.
            if len(absent) < len(paths) and not lacking:
                lacking = [f"{folder} must hold {', '.join(absent)}, got no such file."]
    places = ", ".join(str(root) for root in roots)
    complaint = lacking or [
        f"the files of Instacart must be in a folder of {places}, got none. "
        "Pass the folder itself, or point ODDSLIP_DATA at the one that holds it."
    ]
    raise UnreadableFile(f"{complaint[0]} {source}")


def scan_columns(path: Path, columns: Mapping[str, Any], optional: tuple[str, ...] = ()) -> Any:
    """Columns of a CSV file as a lazy table. Short or foreign lines are refused."""
    pl = import_polars("reading baskets")
    with polars_errors(str(path)):
        header = pl.scan_csv(path, infer_schema=False).collect_schema()
        require_columns(header, tuple(columns), str(path))
        table = pl.scan_csv(path, infer_schema=False, schema_overrides=dict(columns))
        full = [name for name in columns if name not in optional]
        if _LAST in header and _LAST not in full:
            full.append(_LAST)
        # polars fills up a line that is cut short with nulls.
        gap = pl.any_horizontal(pl.col(*full).is_null()).arg_true().first()
        line = table.select(gap).collect(engine="streaming").item()
        if line is not None:
            raise UnreadableFile(
                f"{path} must have {', '.join(full)} in every line, got data line {line + 1} "
                "without all of them. Is the file cut short?"
            )
    return table.select(*columns)


def _choose_names(names: Mapping[str, str | None] | None) -> dict[str, str]:
    given_names = dict(names or {})
    strangers = [role for role in given_names if role not in NAMES]
    if strangers:
        raise InvalidInput(f"files must be named for {', '.join(NAMES)}, got {strangers[0]!r}.")
    chosen = {**NAMES, **given_names}
    if chosen["joined"] is not None:
        chosen.update(orders=None, prior=None, train=None)
    for role in given_names:
        if chosen[role] is None and role not in _MAY_BE_NONE and chosen["joined"] is None:
            raise InvalidInput(f"files must name a file for {role}, got None.")
    return {role: name for role, name in chosen.items() if name is not None}


def sink_lines(paths: Mapping[str, Path], target: Path) -> None:
    """Write all lines with what is known of their orders to one Parquet file."""
    if "joined" in paths:
        lines = _scan_joined(paths["joined"])
    else:
        orders = _read_orders(paths["orders"], with_train="train" in paths)
        lines = _join_lines(paths, orders)
    with polars_errors(str(target)):
        lines.select(_KEPT).sink_parquet(target, compression="zstd", maintain_order=False)
    if "joined" not in paths:
        _check_all_ordered(orders, target, paths)


def read_products(paths: Mapping[str, Path]) -> Any:
    """One line per product, with the names of its aisle and department."""
    pl = import_polars("reading baskets")
    columns = {"product_id": pl.Int32, "product_name": pl.String}
    kinds = ("aisle", "department")
    columns |= {f"{kind}_id": pl.Int32 for kind in kinds}
    with polars_errors(str(paths["products"])):
        products = scan_columns(paths["products"], columns).collect()
    for kind in kinds:
        path = paths[f"{kind}s"]
        with polars_errors(str(path)):
            names = scan_columns(path, {f"{kind}_id": pl.Int32, kind: pl.String}).collect()
        for column in names.columns:
            if names[column].is_duplicated().any():
                twice = names.filter(pl.col(column).is_duplicated())[column][0]
                raise UnreadableFile(f"{path} must have each {column} once, got {twice!r} twice.")
        products = products.join(names, on=f"{kind}_id", how="left", maintain_order="left")
        unknown = products.filter(pl.col(kind).is_null())
        if unknown.height:
            raise UnreadableFile(
                f"{paths['products']} must have {kind}s of {path.name} only, got product "
                f"{unknown['product_id'][0]} of {kind} {unknown[f'{kind}_id'][0]}."
            )
    return products.select("aisle", "department", item="product_id", name="product_name")


def _columns_of_orders() -> dict[str, Any]:
    pl = import_polars("reading baskets")
    return {
        "order_id": pl.Int32,
        "user_id": pl.Int32,
        "order_number": pl.Int32,
        "order_dow": pl.Int8,
        "order_hour_of_day": pl.Int8,
        "days_since_prior_order": pl.Float32,
    }


def _read_orders(path: Path, *, with_train: bool) -> Any:
    """Orders with a known basket, of users whose last basket is known."""
    pl = import_polars("reading baskets")
    columns = {**_columns_of_orders(), "eval_set": pl.String}
    table = scan_columns(path, columns, optional=("days_since_prior_order",))
    with polars_errors(str(path)):
        orders = table.collect(engine="streaming")
    _check_orders(orders, path)
    _refuse_first(
        orders.filter(~pl.col("eval_set").is_in(["prior", "train", "test"])),
        f"{path} must have prior, train or test as eval_set",
    )
    late = orders.filter(pl.col("eval_set") != "prior")
    last = orders.group_by("user_id").agg(pl.col("order_number").max().alias("last"))
    _refuse_first(
        late.join(last, on="user_id")
        .filter(pl.col("order_number") < pl.col("last"))
        .sort("order_id"),
        f"{path} must have train and test as the last order of a user",
    )
    if not with_train:
        return orders.filter(pl.col("eval_set") == "prior")
    train_users = late.filter(pl.col("eval_set") == "train").select("user_id")
    if not train_users.height:
        raise UnreadableFile(f"{path} must hold orders of eval_set train, got none.")
    return orders.join(train_users, on="user_id", how="semi", maintain_order="left")


def _check_orders(orders: Any, path: Path) -> None:
    pl = import_polars("reading baskets")
    _refuse_first(
        orders.filter(pl.col("order_id").is_duplicated()), f"{path} must have an order_id once"
    )
    _refuse_first(
        orders.filter(pl.struct("user_id", "order_number").is_duplicated()),
        f"{path} must have order numbers that increase within a user",
    )
    _refuse_first(
        orders.filter(
            (pl.col("order_number") < 1)
            | ~pl.col("order_dow").is_between(0, 6)
            | ~pl.col("order_hour_of_day").is_between(0, 23)
        ),
        f"{path} must have order numbers from 1, days 0 to 6 and hours 0 to 23",
    )
    days = pl.col("days_since_prior_order")
    _refuse_first(
        orders.filter(
            (days.is_null() & (pl.col("order_number") > 1)) | (days < 0) | ~days.is_finite()
        ),
        f"{path} must have days_since_prior_order, at least 0, in all but first orders",
    )


def _join_lines(paths: Mapping[str, Path], orders: Any) -> Any:
    """Lines of both files with their orders. Lines of other users are left out."""
    pl = import_polars("reading baskets")
    everyone = scan_columns(paths["orders"], {"order_id": pl.Int32, "eval_set": pl.String})
    parts = []
    for role in ("prior", "train"):
        if role not in paths:
            continue
        lines = scan_columns(paths[role], {"order_id": pl.Int32, "product_id": pl.Int32})
        role_orders = everyone.filter(pl.col("eval_set") == role)
        with polars_errors(str(paths[role])):
            strange = lines.join(role_orders, on="order_id", how="anti").head(1)
            bad_lines = strange.collect(engine="streaming")
        if bad_lines.height:
            raise UnreadableFile(
                f"{paths[role]} must hold {role} orders of {paths['orders'].name} only, got order "
                f"{bad_lines['order_id'][0]}. Is one of the files cut short?"
            )
        parts.append(lines)
    return pl.concat(parts).join(orders.lazy(), on="order_id", how="inner").rename(_RENAMED)


def _check_all_ordered(orders: Any, lines: Path, paths: Mapping[str, Path]) -> None:
    """Every order has its lines: a file cut between two lines is noticed here."""
    pl = import_polars("reading baskets")
    with polars_errors(str(lines)):
        there = pl.scan_parquet(lines).select("user", "order").unique()
        empty = (
            orders.lazy()
            .rename({"user_id": "user", "order_number": "order"})
            .join(there, on=["user", "order"], how="anti")
            .sort("order_id")
            .collect(engine="streaming")
        )
    if empty.height:
        role = empty["eval_set"][0]
        raise UnreadableFile(
            f"{paths[role]} must hold the products of every {role} order, got none of order "
            f"{empty['order_id'][0]} and {empty.height - 1} more. Is the file cut short?"
        )


def _scan_joined(path: Path) -> Any:
    """A file that has the columns of orders and of products in every line."""
    pl = import_polars("reading baskets")
    columns = {**_columns_of_orders(), "product_id": pl.Int32}
    table = scan_columns(path, columns, optional=("days_since_prior_order",))
    with polars_errors(str(path)):
        orders = table.select(*_columns_of_orders()).unique().collect(engine="streaming")
    _check_orders(orders.sort("order_id", "order_number"), path)
    return table.rename(_RENAMED)


def _refuse_first(lines: Any, rule: str) -> None:
    if lines.height:
        row = lines.row(0, named=True)
        raise UnreadableFile(
            f"{rule}, got order_id {row['order_id']} (user {row['user_id']}, "
            f"order number {row['order_number']}) and {lines.height - 1} more."
        )


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
    pl = import_polars("reading baskets")
    folder = default_folder("instacart") if cache is None else Path(cache)
    with unchanged(paths.values()):
        hashes = hash_roles(paths)
        what: dict[str, Any] = {"reader": "instacart", "sha256": hashes}

        def fill(entry: Path) -> None:
            read_products(paths).write_parquet(entry / "items.parquet", compression="zstd")
            sink_lines(paths, entry / "lines.parquet")

        def build() -> Recommendation:
            entry = cached_entry(folder, {**what, "table": 1}, fill)
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
        return replace(rows, generated=is_generated(paths.values()))
