"""What a table of lines must be like, before it is sorted and coded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oddslip.errors import MissingDependency, UnreadableFile


def load_polars() -> Any:
    """The module polars, or the line that says how to get it."""
    try:
        import polars
    except ModuleNotFoundError as error:
        raise MissingDependency(
            'reading baskets needs polars. Run: pip install "oddslip[data]"'
        ) from error
    return polars


@contextmanager
def polars_errors(source: str) -> Iterator[None]:
    """Turn whatever polars says of a file into one line."""
    pl = load_polars()
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        if isinstance(error, UnreadableFile):
            raise
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnreadableFile(
            f"{source} is cut short or of another kind ({said[:200].rstrip('.')})."
        ) from error


def require_columns(schema: Any, wanted: tuple[str, ...], source: str) -> None:
    """Refuse a table that lacks a column."""
    missing = [each for each in wanted if each not in schema]
    if missing:
        there = ", ".join(repr(name[:40]) for name in list(schema)[:8]) or "none"
        raise UnreadableFile(
            f"{source} must have the columns {', '.join(wanted)}, got none named "
            f"{', '.join(missing)} among {there}."
        )


def check_types(schema: Any, moments: list[str], source: str) -> None:
    """Refuse columns of a type that has no meaning here."""
    pl = load_polars()
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
    pl = load_polars()
    nulls = table.select(pl.col(*columns).null_count()).collect(engine="streaming")
    for name in columns:
        if n := nulls[name][0]:
            raise UnreadableFile(f"{source} must have a value in every {name}, got {n} without.")
