"""What an argument must be before anything is done with it, whichever verb it is given to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from oddslip.core.types import Floats
from oddslip.errors import InvalidInput

MAX_REPLICATES = 1_000_000


def check_whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number as an int, or an error if it is another kind of thing or out of bounds.

    Examples
    --------
    >>> check_whole("seed", np.int64(7))
    7
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InvalidInput(f"{name} must be a whole number, got {name}={value!r:.60}.")
    if value < least:
        raise InvalidInput(f"{name} must be at least {least}, got {name}={value}.")
    if most is not None and value > most:
        raise InvalidInput(f"{name} must be at most {most}, got {name}={value}.")
    return int(value)


def check_seed(seed: Any) -> int:
    """A seed: any whole number from 0.

    Examples
    --------
    >>> check_seed(42)
    42
    """
    return check_whole("seed", seed, 0)


def check_replicates(n_replicates: Any) -> int:
    """Bootstrap replicates: 0 for none, at most a million.

    Examples
    --------
    >>> check_replicates(2000)
    2000
    """
    return check_whole("n_replicates", n_replicates, 0, MAX_REPLICATES)


def check_share(name: str, value: Any) -> float:
    """A number strictly between 0 and 1, such as the level of an interval.

    Examples
    --------
    >>> check_share("level", 0.95)
    0.95
    """
    if not is_number(value) or not 0 < value < 1:
        raise InvalidInput(f"{name} must be between 0 and 1, got {name}={value!r:.60}.")
    return float(value)


def check_k(k: Any, n_labels: int) -> int:
    """K as an int, or an error if it is not between 1 and n_labels."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InvalidInput(f"k must be a whole number, got k={k!r}.")
    if not 1 <= k <= n_labels:
        raise InvalidInput(f"k must be between 1 and n_labels={n_labels}, got k={k}.")
    return int(k)


def check_names(names: Any, n_labels: int) -> tuple[str, ...] | None:
    """Label names as a tuple of unique strings, one per label."""
    if names is None:
        return None
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise InvalidInput(f"label_names must be a list of names, got {names!r:.60}.")
    checked = tuple(str(name) for name in names)
    if len(checked) != n_labels:
        raise InvalidInput(
            f"label_names must hold one name per label, n_labels={n_labels}, got {len(checked)}."
        )
    try:
        "".join(checked).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        name = next(name for name in checked if half in name)
        raise InvalidInput(
            f"label_names must be text that UTF-8 can hold, got {name!r:.60}, half of a pair."
        ) from None
    if len(set(checked)) < len(checked):
        twice = first_repeat(checked)
        raise InvalidInput(f"label_names must be unique, got {twice!r} more than once.")
    return names if isinstance(names, tuple) and names == checked else checked


def first_repeat(names: Iterable[Any]) -> Any:
    """The first of the names that came before, of which there must be one."""
    previous: set[Any] = set()
    return next(name for name in names if name in previous or previous.add(name))  # type: ignore[func-returns-value]


def is_number(value: Any) -> bool:
    """Whether this is one number; truth values are none.

    Examples
    --------
    >>> is_number(2), is_number("2"), is_number(True)
    (True, False, False)
    """
    return not isinstance(value, bool | np.bool_) and isinstance(
        value, int | float | np.integer | np.floating
    )


def reject_masked(
    what: str, cells: Any, name_of: Callable[[int], str] = str, *, column: str = "label"
) -> Any:
    """Cells as they came, or an error naming the first that numpy.ma masks: it has no value.

    Examples
    --------
    >>> reject_masked("weights", np.ma.array([1.0, 2.0], mask=[False, False]))
    array([1., 2.])
    """
    if isinstance(cells, list | tuple) and any(isinstance(r, np.ma.MaskedArray) for r in cells):
        for number, row in enumerate(cells):
            if isinstance(row, np.ma.MaskedArray) and np.ma.getmaskarray(row).any():
                _refuse_mask(what, np.ma.getmaskarray(row), name_of, column, number)
        return [np.ma.getdata(row) for row in cells]
    if not isinstance(cells, np.ma.MaskedArray):
        return cells
    mask = np.ma.getmaskarray(cells)
    if mask.any():
        _refuse_mask(what, mask, name_of, column, None)
    return np.ma.getdata(cells)


def as_numbers(what: str, values: Any) -> Floats:
    """Numbers as float64, or an error that says what came instead. Truth values are none.

    Examples
    --------
    >>> as_numbers("counts", [1, 2])
    array([1., 2.])
    """
    values = reject_masked(what, values)
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind in "bc":
            raise TypeError
        return np.asarray(numbers, np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} must be numbers, got {values!r:.60}.") from None


def _refuse_mask(
    what: str, mask: Any, name_of: Callable[[int], str], column: str, row: int | None
) -> None:
    first = np.argwhere(mask)[0].tolist()
    if row is not None:
        first = [row, *first]
    places = [f"row {at}" for at in first[:-1]]
    if first:
        places.append(f"{column} {name_of(first[-1])!r}")
    where = f", the first at {', '.join(places)}" if places else ""
    raise InvalidInput(
        f"{what} must not hold masked cells, got {int(mask.sum()):,}{where}. "
        "Drop those rows, or fill them: cells.filled(0)."
    )
