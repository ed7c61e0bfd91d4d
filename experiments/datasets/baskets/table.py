"""Tables of lines (user, order, item): checked, gathered into `Baskets`, read from Parquet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.baskets.basket import Baskets, check_lines, name_order
from experiments.datasets.baskets.features import FEATURES_VERSION, MOMENTS, build_recommendation
from experiments.datasets.cache import (
    default_folder,
    hash_roles,
    name_inputs,
    recall_rows,
    unchanged,
)
from experiments.datasets.extras import import_polars, polars_failures
from experiments.datasets.recommendation import Recommendation
from oddslip.errors import InvalidInput, UnreadableFile

_ORDERED = ("dow", "hour")  # known of every order, while a first order has no prior one


@contextmanager
def polars_errors(source: str) -> Iterator[None]:
    """Turn whatever polars says of a file into one line."""
    try:
        yield
    except polars_failures(OSError) as error:
        if isinstance(error, UnreadableFile):
            raise
        message = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnreadableFile(
            f"{source} is cut short or of another kind ({message[:200].rstrip('.')})."
        ) from error


def require_columns(schema: Any, required: tuple[str, ...], source: str) -> None:
    """Refuse a table that lacks a column."""
    missing = [each for each in required if each not in schema]
    if missing:
        there = ", ".join(repr(name[:40]) for name in list(schema)[:8]) or "none"
        raise UnreadableFile(
            f"{source} must have the columns {', '.join(required)}, got none named "
            f"{', '.join(missing)} among {there}."
        )


def check_types(schema: Any, moments: list[str], source: str) -> None:
    """Refuse columns of a type that has no meaning here."""
    pl = import_polars("reading baskets")
    for name in ("user", "item"):
        if not (schema[name].is_integer() or schema[name] == pl.String):
            raise UnreadableFile(
                f"{source} must have whole numbers or text as {name}, got {schema[name]}."
            )
    if not (schema["order"].is_integer() or schema["order"].is_temporal()):
        raise UnreadableFile(
            f"{source} must have whole numbers, dates or times as order, got {schema['order']}."
        )
    for name in moments:
        if not schema[name].is_numeric():
            raise UnreadableFile(f"{source} must have numbers as {name}, got {schema[name]}.")


def refuse_nulls(table: Any, columns: tuple[str, ...], source: str) -> None:
    """Refuse a table that lacks values."""
    pl = import_polars("reading baskets")
    nulls = table.select(pl.col(*columns).null_count()).collect(engine="streaming")
    for name in columns:
        if n := nulls[name][0]:
            raise UnreadableFile(f"{source} must have a value in every {name}, got {n} without.")


def gather_baskets(lines: Any, source: str, items: Any = None, items_source: str = "") -> Baskets:
    """Sort and code lines.

    Parameters
    ----------
    lines : polars.LazyFrame
        Columns user, order, item, and perhaps dow, hour, days_since_prior. In any order of rows.
    source : str
        What the lines came from, for messages.
    items : polars.DataFrame, optional
        Column item, and perhaps name, aisle, department.
    items_source : str
        What the items came from.
    """
    pl = import_polars("reading baskets")
    with polars_errors(source):
        schema = lines.collect_schema()
        require_columns(schema, ("user", "order", "item"), source)
        moments = [each for each in MOMENTS if each in schema]
        check_types(schema, moments, source)
        refuse_nulls(lines, ("user", "order", "item"), source)
    if items is None:
        with polars_errors(source):
            catalogue = (
                lines.select(pl.col("item").unique()).collect(engine="streaming").sort("item")
            )
    else:
        catalogue = _check_items(items, schema["item"], items_source)
    with polars_errors(source):
        coded = lines.join(
            catalogue.lazy().select("item", code=pl.int_range(pl.len(), dtype=pl.Int32)),
            on="item",
            how="left",
        )
        unknown = coded.filter(pl.col("code").is_null()).select("item").head(1)
        if items is not None and (first := unknown.collect(engine="streaming")).height:
            raise UnreadableFile(
                f"{source} must hold items of {items_source} only, got item "
                f"{str(first['item'][0])!r}, which is not in it."
            )
        table = (
            coded.select("user", "order", "code", *moments)
            .sort("user", "order", "code")
            .collect(engine="streaming")
        )
    return _make_baskets(table, catalogue, moments, source, items is not None)


def _make_baskets(
    table: Any, catalogue: Any, moments: list[str], source: str, has_catalogue: bool
) -> Baskets:
    n_lines = table.height
    new_user = _find_starts(table["user"])
    new_order = new_user | _find_starts(table["order"])
    line_starts = np.append(np.flatnonzero(new_order), n_lines)
    first_lines = np.flatnonzero(new_user)
    order_starts = np.append(np.searchsorted(line_starts[:-1], first_lines), line_starts.size - 1)
    groups = {
        each: _code_kinds(catalogue[each])
        for each in ("aisle", "department")
        if each in catalogue.columns
    }
    names = tuple(map(str, catalogue["name"].to_list())) if "name" in catalogue.columns else None
    baskets = Baskets(
        users=_as_ids(table["user"].gather(first_lines)),
        items=_as_ids(catalogue["item"]),
        order_starts=order_starts.astype(np.int64),
        line_starts=line_starts.astype(np.int64),
        line_items=table["code"].to_numpy(),
        moments={each: _take_moment(table, each, line_starts) for each in moments},
        groups=groups,
        item_names=names,
        catalogued=has_catalogue,
    )
    check_lines(baskets, source)
    for each in moments:
        _check_moment(baskets, table[each], each, source)
    return baskets


def _find_starts(column: Any) -> NDArray[np.bool_]:
    """Where a sorted column takes another value."""
    new = np.ones(len(column), dtype=np.bool_)
    new[1:] = np.diff(column.rle_id().to_numpy()) != 0
    return new


def _take_moment(table: Any, name: str, line_starts: NDArray[np.int64]) -> NDArray[np.float32]:
    pl = import_polars("reading baskets")
    values = table[name].gather(line_starts[:-1]).cast(pl.Float32).fill_null(float("nan"))
    return np.asarray(values.to_numpy(), dtype=np.float32)


def _check_moment(baskets: Baskets, column: Any, name: str, source: str) -> None:
    """One value per order, and a known one; only a first order may lack its prior one."""
    pl = import_polars("reading baskets")
    sizes = np.diff(baskets.line_starts)
    lines = column.cast(pl.Float32).fill_null(float("nan")).to_numpy()
    values = baskets.moments[name]
    expected = np.repeat(values, sizes)
    differs = (lines != expected) & ~(np.isnan(lines) & np.isnan(expected))
    if differs.any():
        order = int(np.searchsorted(baskets.line_starts, differs.argmax(), side="right")) - 1
        where = name_order(baskets, order)
        raise UnreadableFile(f"{source} must have one {name} for all lines of {where}, got two.")
    missing = ~np.isfinite(values)
    if name not in _ORDERED:
        missing[baskets.order_starts[:-1]] &= np.isinf(values[baskets.order_starts[:-1]])
    if missing.any():
        where = name_order(baskets, int(missing.argmax()))
        raise UnreadableFile(f"{source} must have a number as {name} of {where}, got none.")


def _check_items(items: Any, dtype: Any, source: str) -> Any:
    """The list of items, sorted, in the type the lines have."""
    pl = import_polars("reading baskets")
    with polars_errors(source):
        require_columns(items.schema, ("item",), source)
        columns = [
            each for each in ("item", "name", "aisle", "department") if each in items.columns
        ]
        if dtype.is_integer() != items.schema["item"].is_integer():
            raise UnreadableFile(
                f"{source} must have items of the type the lines have, {dtype}, got "
                f"{items.schema['item']}."
            )
        refuse_nulls(items.lazy(), tuple(columns), source)
        catalogue = items.select(columns).with_columns(pl.col("item").cast(dtype)).sort("item")
    twice = catalogue.filter(pl.col("item").is_duplicated())
    if twice.height:
        raise UnreadableFile(
            f"{source} must list an item once, got item {str(twice['item'][0])!r} twice."
        )
    return catalogue


def _code_kinds(column: Any) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    kinds, codes = np.unique(_as_ids(column), return_inverse=True)
    return codes.astype(np.int32), tuple(map(str, kinds.tolist()))


def _as_ids(column: Any) -> NDArray[Any]:
    """Ids as a plain array: numbers, or text of a fixed width."""
    if column.dtype.is_integer():
        return np.asarray(column.to_numpy())
    return np.array(column.to_list(), dtype=np.str_)


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
    path, items_path = Path(path), None if items is None else Path(items)
    name = path.stem if name is None else name
    pl = import_polars("reading baskets")
    paths = {"lines": path} if items_path is None else {"lines": path, "items": items_path}
    with unchanged(paths.values()):
        hashes = hash_roles(paths)
        what: dict[str, Any] = {
            "reader": "baskets",
            "features": FEATURES_VERSION,
            "name": name,
            "n_labels": n_labels,
            "sha256": hashes,
        }

        def build() -> Recommendation:
            table = None
            if items_path is not None:
                with polars_errors(str(items_path)):
                    table = pl.read_parquet(items_path)
            baskets = gather_baskets(pl.scan_parquet(path), str(path), table, str(items_path))
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
