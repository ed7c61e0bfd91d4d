"""Rows that belong together: two tables of the same rows are matched by the names of their rows.

Where both sides name their rows, the names decide and not the order. Where only one does, or
neither, rows belong together by their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput


def is_frame(table: Any) -> bool:
    """Whether this is a pandas or polars frame."""
    return hasattr(table, "to_numpy") and hasattr(table, "columns")


def row_names(table: Any) -> NDArray[Any] | None:
    """Names of the rows of a pandas frame or series; None where its index only counts from 0.

    Examples
    --------
    >>> import pandas as pd
    >>> row_names(pd.DataFrame([[0.1], [0.2]], index=["u", "v"])).tolist()
    ['u', 'v']
    >>> row_names(pd.DataFrame([[0.1], [0.2]])) is None
    True
    """
    index = getattr(table, "index", None)
    if index is None or not hasattr(index, "to_numpy") or counts_up(index):
        return None
    names: NDArray[Any] = index.to_numpy()
    return names


def counts_up(index: Any) -> bool:
    """Whether a pandas index is 0, 1, 2, ... because nobody gave another."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def match_rows(ours: Any, theirs: Any, what: tuple[str, str]) -> NDArray[np.int64] | None:
    """Where each of our rows stands among theirs; None where they stand alike.

    Parameters
    ----------
    ours, theirs : array-like of shape (n_rows,)
        Names of the rows. Both must name the same rows. The same name twice is no name, unless
        both sides have the same names in the same order.
    what : (str, str)
        What the two sides are called in an error.

    Examples
    --------
    >>> match_rows(["a", "b", "c"], ["c", "a", "b"], ("scores", "labels")).tolist()
    [1, 2, 0]
    """
    one, two = np.asarray(ours), np.asarray(theirs)
    if one.shape == two.shape and _same(one, two):
        return None
    place: dict[Any, int] = {}
    for side, names in ((what[0], one), (what[1], two)):
        place = {name: at for at, name in enumerate(names.tolist())}
        if len(place) < names.size:
            raise InvalidInput(
                f"row ids must be unique to match {what[0]} and {what[1]} by them, "
                f"got {_twice(names)!r:.60} more than once among the {side}. "
                "Rename or drop the ids to go by position."
            )
    wanted = one.tolist()
    stranger = next((name for name in wanted if name not in place), None)
    if stranger is not None:
        raise _strange(what, 0, stranger, one, two)
    if two.size > one.size:
        known = set(wanted)
        raise _strange(what, 1, next(n for n in two.tolist() if n not in known), one, two)
    return np.fromiter((place[name] for name in wanted), np.int64, one.size)


def _same(one: NDArray[Any], two: NDArray[Any]) -> bool:
    if one.dtype != object and two.dtype != object:
        return bool(np.array_equal(one, two))
    return bool(one.tolist() == two.tolist())


def _twice(names: NDArray[Any]) -> Any:
    seen: set[Any] = set()
    return next(name for name in names.tolist() if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _strange(
    what: tuple[str, str], side: int, stranger: Any, one: NDArray[Any], two: NDArray[Any]
) -> InvalidInput:
    """A row that stands on one side only."""
    message = (
        f"{what[0]} and {what[1]} must have the same row ids, got {stranger!r:.60} among the "
        f"{what[side]} ({one.size:,} and {two.size:,} rows)"
    )
    if _texts(one) != _texts(two):
        return InvalidInput(message + ". Ids are text on one side and not on the other: cast one.")
    return InvalidInput(message + " alone. Drop rows that the other lacks, or the ids of one side.")


def _texts(names: NDArray[Any]) -> bool:
    return bool(names.size) and isinstance(names.tolist()[0], str)
