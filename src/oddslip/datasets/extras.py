"""Packages of the extra `data`: imported where they are used, or a line says how to get them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oddslip.errors import MissingDependency


def import_extra(module: str, what: str, package: str | None = None) -> Any:
    """A module of the extra `data`; ``what`` needs it, ``package`` has it if its name differs.

    Examples
    --------
    >>> import_extra("polars", "reading baskets").__name__
    'polars'
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingDependency(
            f'{what} needs {package or module}. Run: pip install "oddslip[data]"'
        ) from None
