"""Orders and lines of Instacart, checked against each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oddslip.datasets.basket_checks import load_polars, polars_errors
from oddslip.datasets.instacart_files import scan_columns
from oddslip.errors import UnreadableFile

_RENAMED = {
    "user_id": "user",
    "order_number": "order",
    "product_id": "item",
    "order_dow": "dow",
    "order_hour_of_day": "hour",
    "days_since_prior_order": "days_since_prior",
}
_KEPT = ("user", "order", "item", "dow", "hour", "days_since_prior")


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
    pl = load_polars()
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
    pl = load_polars()
    return {
        "order_id": pl.Int32, "user_id": pl.Int32, "order_number": pl.Int32,
        "order_dow": pl.Int8, "order_hour_of_day": pl.Int8, "days_since_prior_order": pl.Float32,
    }  # fmt: skip


def _read_orders(path: Path, *, with_train: bool) -> Any:
    """Orders with a known basket, of users whose last basket is known."""
    pl = load_polars()
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
    known = late.filter(pl.col("eval_set") == "train").select("user_id")
    if not known.height:
        raise UnreadableFile(f"{path} must hold orders of eval_set train, got none.")
    return orders.join(known, on="user_id", how="semi", maintain_order="left")


def _check_orders(orders: Any, path: Path) -> None:
    pl = load_polars()
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
    pl = load_polars()
    everyone = scan_columns(paths["orders"], {"order_id": pl.Int32, "eval_set": pl.String})
    parts = []
    for role in ("prior", "train"):
        if role not in paths:
            continue
        lines = scan_columns(paths[role], {"order_id": pl.Int32, "product_id": pl.Int32})
        own = everyone.filter(pl.col("eval_set") == role)
        with polars_errors(str(paths[role])):
            strange = lines.join(own, on="order_id", how="anti").head(1)
            found = strange.collect(engine="streaming")
        if found.height:
            raise UnreadableFile(
                f"{paths[role]} must hold {role} orders of {paths['orders'].name} only, got order "
                f"{found['order_id'][0]}. Is one of the files cut short?"
            )
        parts.append(lines)
    return pl.concat(parts).join(orders.lazy(), on="order_id", how="inner").rename(_RENAMED)


def _check_all_ordered(orders: Any, lines: Path, paths: Mapping[str, Path]) -> None:
    """Every order has its lines: a file cut between two lines is noticed here."""
    pl = load_polars()
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
    pl = load_polars()
    columns = {**_columns_of_orders(), "product_id": pl.Int32}
    table = scan_columns(path, columns, optional=("days_since_prior_order",))
    with polars_errors(str(path)):
        orders = table.select(*_columns_of_orders()).unique().collect(engine="streaming")
    _check_orders(orders.sort("order_id", "order_number"), path)
    return table.rename(_RENAMED)


def _refuse_first(found: Any, held: str) -> None:
    if found.height:
        row = found.row(0, named=True)
        raise UnreadableFile(
            f"{held}, got order_id {row['order_id']} (user {row['user_id']}, "
            f"order number {row['order_number']}) and {found.height - 1} more."
        )
