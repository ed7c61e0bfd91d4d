"""Public names of a package that load their module when first used, or have moved."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str], subpackages: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    modules : mapping of str to str
        Module of each public name.
    subpackages : iterable of str
        Names of packages below it that are public themselves.

    Examples
    --------
    >>> get, _ = lazy_names("oddslip", {"rank": "oddslip.metrics.ranking"})
    >>> get("rank").__name__
    'rank'
    """
    public = set(subpackages)

    def get(name: str) -> Any:
        if name in public:
            return import_module(f"{package}.{name}")
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(import_module(package), name, value)  # so that the next use does not come here
        return value

    def names() -> list[str]:
        loaded = import_module(package).__dict__
        return sorted({*loaded, *modules, *public})

    return get, names


def moved_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """``__getattr__`` of a package whose public names have moved: they work, with a warning.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        The package that each name has moved to. It may be one that this package must not import.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        warnings.warn(
            f"{package}.{name} has moved to {homes[name]}.{name}. "
            "The old name will be removed in oddslip 0.5.",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(import_module(homes[name]), name)

    return get
