"""Optional packages of the readers, imported where they are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oddslip.errors import MissingDependency


@contextmanager
def data_extra(what: str, package: str) -> Iterator[None]:
    """Say how to get a package that ``what`` needs, if the import inside fails."""
    try:
        yield
    except ImportError:
        raise MissingDependency(
            f"{what} needs {package}. Run: pip install -r experiments/requirements.txt"
        ) from None


def import_polars(what: str) -> Any:
    """The module polars, for ``what`` needs it."""
    with data_extra(what, "polars"):
        import polars
    return polars


def polars_failures(*more: type[BaseException]) -> tuple[type[BaseException], ...]:
    """What polars raises on a file it cannot read, a panic of its own among it; and more."""
    pl = import_polars("reading files")
    return pl.exceptions.PolarsError, pl.exceptions.PanicException, *more
