"""Row ids: matching rows and labels by their names, and the keys of rows.

Names decide; a side without names has its numbers; what cannot be matched is refused.

A row's key is the hash of its id, or of its number where it has no id. It decides the row's fold,
its place in samples and its bootstrap weights. So these are the same however rows are cut, sorted,
or spread over threads and machines.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.core.arguments import first_repeat
from oddslip.core.types import Array, Bools, Ints
from oddslip.errors import InvalidInput

Keys = NDArray[np.uint64]

FOLDS, SAMPLES = 1, 2  # salts, so that folds and samples are independent

ROW_ID_NAMES = (
    "row_id",
    "id",
    "row",
    "user",
    "user_id",
    "customer",
    "customer_id",
    "index",
    "__index_level_0__",
)


class UnorderedNames(tuple[str, ...]):
    """Names of labels in order of appearance, as a long table has them: the user never saw it.

    Nothing goes by position beside them. Other tuples of names are in the order that was given.
    """

    __slots__ = ()


def is_frame(table: Any) -> bool:
    """Whether this is a pandas or polars frame."""
    return hasattr(table, "to_numpy") and hasattr(table, "columns")


def row_names(table: Any) -> Array | None:
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
    names: Array = index.to_numpy()
    return names


def take_ids(frame: Any) -> tuple[Any, Array | None]:
    """A frame without the column that names its rows, and these names; else as `row_names`.

    Examples
    --------
    >>> import polars as pl
    >>> frame, ids = take_ids(pl.DataFrame({"row_id": ["u", "v"], "a": [0.1, 0.2]}))
    >>> frame.columns, ids.tolist()
    (['a'], ['u', 'v'])
    """
    if is_frame(frame):
        for name in frame.columns:
            if isinstance(name, str) and name in ROW_ID_NAMES:
                ids = np.asarray(frame[name].to_numpy())
                if ids.dtype.kind in "iuOTU":
                    return frame[[other for other in frame.columns if other != name]], ids
    return frame, row_names(frame)


def counts_up(index: Any) -> bool:
    """Whether a pandas index is 0, 1, 2, ... because nobody gave another."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def match_rows(
    ours: Any,
    theirs: Any,
    what: tuple[str, str],
    *,
    n_rows: tuple[int, int],
    indexed: bool = False,
) -> Ints | None:
    """Where each of our rows stands among theirs; None where they stand alike.

    Parameters
    ----------
    ours, theirs : array-like of shape (n_rows,), or None
        Names of the rows; None has the numbers 0, 1, 2, ... as names. Both must name the same
        rows. The same name twice is no name, unless both sides have the same names in the same
        order. Where neither has names, rows belong together by position.
    what : (str, str)
        What the two sides are called in an error.
    n_rows : (int, int)
        Rows of each side.
    indexed : bool
        Whether the side without names is a frame, whose index counts its rows. Else a warning
        says where names of the other side are taken as row numbers in another order.

    Examples
    --------
    >>> match_rows(["a", "b", "c"], ["c", "a", "b"], ("scores", "labels"), n_rows=(3, 3)).tolist()
    [1, 2, 0]
    >>> match_rows(None, [1, 0], ("scores", "labels"), n_rows=(2, 2), indexed=True).tolist()
    [1, 0]
    """
    if ours is None and theirs is None:
        return None
    one, two = (_as_names(names, n) for names, n in zip((ours, theirs), n_rows, strict=True))
    if are_same(one, two):
        return None
    if ours is None or theirs is None:
        side = 0 if theirs is None else 1
        if not _counts(one, two):
            raise _one_sided(what, side, (one, two)[side], n_rows)
        if not indexed:
            warn_caller(
                f"rows of {what[0]} and {what[1]} are matched by number, because the ids of the "
                f"{what[side]} are 0 to {one.size - 1} in another order. Pass .to_numpy() to go by "
                "position."
            )
    place: dict[Any, int] = {}
    for called, names in zip(what, (one, two), strict=True):
        place = {name: at for at, name in enumerate(names.tolist())}
        if len(place) < names.size:
            raise InvalidInput(
                f"row ids must be unique to match {what[0]} and {what[1]} by them, "
                f"got {first_repeat(names.tolist())!r:.60} more than once among the {called}. "
                "Rename or drop the ids to go by position."
            )
    names = one.tolist()
    unknown_id = next((name for name in names if name not in place), None)
    if unknown_id is not None:
        raise _unknown_id(what, 0, unknown_id, one, two)
    if two.size > one.size:
        expected = set(names)
        raise _unknown_id(what, 1, next(n for n in two.tolist() if n not in expected), one, two)
    return np.fromiter((place[name] for name in names), np.int64, one.size)


def match_labels(
    ours: Sequence[str] | None,
    theirs: Sequence[str] | None,
    what: tuple[str, str],
    *,
    n_labels: tuple[int, int],
    warn: bool = False,
) -> Ints | None:
    """Where each of our labels stands among theirs; None where they stand alike.

    Parameters
    ----------
    ours, theirs : sequence of str, or None
        Names of the labels, no two alike. Where both sides have names, they must be the same.
        Where one has none, labels go by number if the other's names are 0 to n_labels - 1 in any
        order, and by position if they are others.
    what : (str, str)
        What the two sides are called in an error.
    n_labels : (int, int)
        Labels of each side.
    warn : bool
        Whether to warn where one side has names and labels go by position.

    Examples
    --------
    >>> match_labels(["a", "b"], ["b", "a"], ("scores", "labels"), n_labels=(2, 2)).tolist()
    [1, 0]
    >>> match_labels(["1", "0"], None, ("scores", "labels"), n_labels=(2, 2)).tolist()
    [1, 0]
    >>> match_labels(["a", "b"], None, ("scores", "labels"), n_labels=(2, 2)) is None
    True
    """
    if ours is None or theirs is None:
        if n_labels[0] != n_labels[1]:
            raise InvalidInput(
                f"{what[0]} and {what[1]} must have as many labels, "
                f"got {n_labels[0]:,} and {n_labels[1]:,}."
            )
        names = theirs if ours is None else ours
        if names is None or not is_numbering(names):
            refuse_positions(what[1 if theirs is None else 0], names)
            if warn and names is not None:
                side = 0 if theirs is None else 1
                warn_caller(
                    f"labels of {what[0]} and {what[1]} are matched by position, because names "
                    f"come with the {what[side]} alone."
                )
            return None
        ours, theirs = (
            [str(label) for label in range(n_labels[0])] if side is None else side
            for side in (ours, theirs)
        )
    if tuple(ours) == tuple(theirs):
        return None
    place = {name: at for at, name in enumerate(theirs)}
    for called, names, others in ((what[0], ours, theirs), (what[1], theirs, ours)):
        other_names = set(others)
        unknown_name = next((name for name in names if name not in other_names), None)
        if unknown_name is not None:
            raise InvalidInput(
                f"{what[0]} and {what[1]} must have the same label names, got {unknown_name!r:.60} "
                f"in the {called} alone. Rename the columns, or drop those that the other side "
                "lacks."
            )
    return np.array([place[name] for name in ours], np.int64)


def refuse_positions(what: str, names: Sequence[str] | None) -> None:
    """Refuse what goes by position, beside labels whose order the user never saw."""
    if isinstance(names, UnorderedNames):
        raise InvalidInput(
            f"{what} must name the labels, because those of a long table come in order of "
            "appearance, got positions. Give names, or pass label_names= for the order."
        )


def is_numbering(names: Sequence[str]) -> bool:
    """Whether names of labels are the numbers 0 to n - 1, in any order.

    Examples
    --------
    >>> is_numbering(["2", "0", "1"]), is_numbering(["1", "2"]), is_numbering(["a"])
    (True, False, False)
    """
    return set(names) == {str(label) for label in range(len(names))}


def are_integers(names: Sequence[str]) -> bool:
    """Whether names of labels are all integers.

    Examples
    --------
    >>> are_integers(["1999", "-2"]), are_integers(["1999", "x"]), are_integers(["007"])
    (True, False, False)
    """
    return all(re.fullmatch(r"-?[1-9][0-9]*|0", name) for name in names)


def warn_caller(message: str) -> None:
    """Warn, at the line outside this package that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("oddslip"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def _as_names(names: Any, n_rows: int) -> Array:
    """Names as an array; numbers where there are none. Integers are integers, however stored."""
    if names is None:
        return np.arange(n_rows)
    array = np.asarray(names)
    if array.dtype == object and all(type(name) is int for name in array.tolist()):
        return np.array(array.tolist())
    return array


def are_same(one: Any, two: Any) -> bool:
    """Whether two lists of row names are the same, in the same order."""
    one, two = (_as_names(names, 0) for names in (one, two))
    if one.shape != two.shape:
        return False
    kinds = one.dtype.kind + two.dtype.kind
    if "O" not in kinds and (kinds[0] == kinds[1] or set(kinds) == set("iu")):
        return bool(np.array_equal(one, two))
    return bool(one.tolist() == two.tolist())


def _counts(one: Array, two: Array) -> bool:
    """Whether both are integers, and the same ones."""
    integers = one.dtype.kind in "iu" and two.dtype.kind in "iu"
    return integers and are_same(np.sort(one), np.sort(two))


def _one_sided(
    what: tuple[str, str], side: int, names: Array, n_rows: tuple[int, int]
) -> InvalidInput:
    """Names of one side that are no numbering of the other's rows."""
    if n_rows[0] != n_rows[1]:
        return InvalidInput(
            f"{what[0]} and {what[1]} must have as many rows, got {n_rows[0]:,} and {n_rows[1]:,}."
        )
    return InvalidInput(
        f"{what[0]} and {what[1]} must both have row ids or neither, got {names.tolist()[0]!r:.60} "
        f"and so on among the {what[side]} alone. Give the {what[1 - side]} ids (a frame's index, "
        "a column row_id, row_ids=), or drop these to go by position: .to_numpy(), "
        "reset_index(drop=True)."
    )


def _unknown_id(
    what: tuple[str, str], side: int, unknown_id: Any, one: Array, two: Array
) -> InvalidInput:
    """A row that stands on one side only."""
    message = (
        f"{what[0]} and {what[1]} must have the same row ids, got {unknown_id!r:.60} among the "
        f"{what[side]} ({one.size:,} and {two.size:,} rows)"
    )
    if _texts(one) != _texts(two):
        return InvalidInput(message + ". Ids are text on one side and not on the other: cast one.")
    return InvalidInput(message + " alone. Drop rows that the other lacks, or the ids of one side.")


def _texts(names: Array) -> bool:
    return bool(names.size) and isinstance(names.tolist()[0], str)


def hash_ids(ids: Array) -> Keys:
    """Keys of rows by their ids. Whole numbers hash by value, everything else as text.

    Examples
    --------
    >>> hash_ids(np.array([7, 8], np.int32))[0] == hash_ids(np.array([7]))[0]
    np.True_
    """
    from oddslip.kernels.resampling import hash_numbers, hash_texts

    keys = np.empty(ids.size, np.uint64)
    if ids.dtype.kind in "biu":
        wide = np.uint64 if ids.dtype.kind == "u" else np.int64
        hash_numbers(np.ascontiguousarray(ids, wide).view(np.uint64), 0, keys)
        return keys
    texts = [str(each).encode("utf-8", "surrogatepass") for each in ids.tolist()]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    hash_texts(offsets, np.frombuffer(b"".join(texts) or b"\0", np.uint8), keys)
    return keys


def hash_row_numbers(first: int, n_rows: int) -> Keys:
    """Keys of rows without ids: those of ids 0, 1, 2, ...

    Examples
    --------
    >>> bool((hash_row_numbers(5, 3) == hash_ids(np.arange(5, 8))).all())
    True
    """
    return hash_ids(np.arange(first, first + n_rows))


def hash_with_salt(keys: Keys, *salt: int) -> Keys:
    """Hashes of keys and some numbers."""
    from oddslip.kernels.resampling import hash_numbers

    for number in salt:
        hashes = np.empty_like(keys)
        hash_numbers(keys, number % 2**64, hashes)
        keys = hashes
    return keys


def sample_keys(keys: Keys, share: float, *, seed: int) -> Bools:
    """Which rows belong to a sample of about this share."""
    if share >= 1:
        return np.ones(keys.size, np.bool_)
    return np.asarray(hash_with_salt(keys, SAMPLES, seed) < np.uint64(share * 2.0**64))


def need_ids(has_ids: bool, what: str) -> None:
    """Reject rows without ids and without order."""
    if not has_ids:
        raise InvalidInput(
            f"{what} by keys needs row ids, got none. Pass row_ids=..., or row_id= of a table."
        )
