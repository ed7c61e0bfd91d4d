"""Weights of the positives, one per label: by name, as a number, or as numbers.

The one place that knows what "balanced", "sqrt", "10x" and "common" mean. Training, planning,
diagnosis, calibration, synthetic data, studies and the command line all ask here.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oddslip.core.arguments import as_numbers, reject_masked
from oddslip.core.row_ids import is_frame, match_labels, row_names
from oddslip.core.types import Array, Floats, PerLabel
from oddslip.errors import InvalidInput, UnreadableFile, first_line
from oddslip.io.arrays import read_npy, read_npz
from oddslip.io.inputs import check_memory, check_separator, input_path, read_bytes
from oddslip.io.paths import check_path

NAMES = ("none", "balanced", "sqrt", "common")
_KNOWN = (
    '"none", "balanced", "sqrt", "common", a multiple of balanced such as "10x", a number, '
    "or one number per label, as they are or in a file"
)


def balance_ratios(counts: ArrayLike, n_rows: Any) -> Floats:
    """r_j = negatives / positives of each label, from its positives among so many rows.

    A label with no positive gets 1. So does one with no negative: 0 is no weight. Prevalences
    among 1 row give the same ratios as counts.

    Examples
    --------
    >>> balance_ratios([5, 0, 20], 20)
    array([3., 1., 1.])
    """
    positives = as_numbers("counts", counts)
    wrong = ~((positives >= 0) & (positives <= n_rows))
    if positives.ndim != 1 or wrong.any():
        actual = f"shape {positives.shape}" if positives.ndim != 1 else f"{positives[wrong][0]:g}"
        raise InvalidInput(
            f"counts must hold one number between 0 and n_rows={n_rows} per label, got {actual}."
        )
    mixed = (positives > 0) & (positives < n_rows)
    ratios: Floats = np.ones_like(positives)
    np.divide(n_rows - positives, positives, out=ratios, where=mixed)
    return ratios


def resolve_weights(
    weights: PerLabel,
    n_positives: ArrayLike,
    n_rows: Any,
    *,
    label_names: Sequence[str] | None = None,
    in_order: bool = False,
) -> Floats:
    """The weight w_j of every label.

    Parameters
    ----------
    weights : str, number, array-like of shape (n_labels,), or by name: see `by_label`
        ``"none"``: 1. ``"balanced"``: r_j, negatives over positives. ``"sqrt"``: its square root.
        ``"10x"``: ten times r_j, or any other multiple. ``"common"``: the same weight for all
        labels, negatives over positives of all cells together. A number: the same for all
        labels. Or the weights themselves.
    n_positives : array-like of shape (n_labels,)
        Positives of each label among the rows. A label without any has r_j = 1.
    n_rows : float or array-like of shape (n_labels,)
        Rows; 1 where ``n_positives`` are prevalences; of each label where cells are absent.
    label_names : sequence of str, optional
        Names of the labels: those of weights given by name, and for the error.
    in_order : bool
        Whether an array of weights was matched with the labels before.

    Examples
    --------
    >>> resolve_weights("balanced", [5, 0, 1], 20)
    array([ 3.,  1., 19.])
    >>> resolve_weights("10x", [5, 0, 1], 20)
    array([ 30.,  10., 190.])
    >>> resolve_weights("common", [5, 0, 1], 20)
    array([9., 9., 9.])
    """
    positives = np.asarray(n_positives, np.float64)
    if weights is None:
        weights = "none"
    if isinstance(weights, str) and is_weight_name(weights):
        return _named(weights, positives, n_rows)
    weights = by_label("weights", weights, None if in_order else label_names)
    if np.ndim(weights) == 0:
        weights = reject_masked("weights", weights)
        if np.asarray(weights).dtype.kind not in "iuf":
            raise InvalidInput(f"weights must be {_KNOWN}, got {weights!r:.60}.")
        weights = np.broadcast_to(weights, positives.shape)
    return _checked(weights, positives.size, label_names).copy()


def is_weight_name(text: str) -> bool:
    """Whether a text is a name or a multiple that `resolve_weights` knows.

    Examples
    --------
    >>> is_weight_name("10x"), is_weight_name("weights.txt")
    (True, False)
    """
    return text in NAMES or _multiple(text) is not None


def check_weights(
    weights: ArrayLike, n_labels: int, *, label_names: Sequence[str] | None = None
) -> Floats:
    """Weights as float64, one per label, or an error naming the first that is not a weight.

    Parameters
    ----------
    weights : array-like of shape (n_labels,)
        Positive and finite.
    n_labels : int
        How many there must be.
    label_names : sequence of str, optional
        Names of the labels, for the error.

    Examples
    --------
    >>> check_weights([1, 2], 2).tolist()
    [1.0, 2.0]
    """
    return _checked(by_label("weights", weights, label_names), n_labels, label_names)


def _checked(weights: ArrayLike, n_labels: int, label_names: Sequence[str] | None) -> Floats:
    """Weights in the order of the labels, as float64."""
    names = label_names or ()  # there may be too few
    weights = reject_masked(
        "weights", weights, lambda label: str(names[label] if label < len(names) else label)
    )
    checked = per_label("weights", weights, n_labels)
    wrong = np.flatnonzero(~((checked > 0) & np.isfinite(checked)))
    if wrong.size:
        at = int(wrong[0])
        name = str(at) if label_names is None else label_names[at]
        raise InvalidInput(
            f"weights must be positive and finite, got {checked[at]:g} at label {name!r}. "
            "Use 1 for a label that is not weighted."
        )
    return checked


def by_label(what: str, values: Any, label_names: Sequence[str] | None) -> Any:
    """Numbers given by name or in a file, in the order of the labels; anything else as it is.

    A dict, a series whose index holds names, and a frame with a column ``label`` or such an index
    and one column of numbers are given by name. Every label must be named, and no other. Labels
    without names are named by their numbers.

    Parameters
    ----------
    what : str
        What the numbers are, for the error.
    values : Any
        A path is read: see `read_numbers`.
    label_names : sequence of str or None

    Examples
    --------
    >>> by_label("weights", {"b": 2.0, "a": 1.0}, ["a", "b"]).tolist()
    [1.0, 2.0]
    >>> by_label("weights", {1: 2.0, 0: 1.0}, None).tolist()
    [1.0, 2.0]
    """
    if isinstance(values, str) and what == "weights" and is_weight_name(values):
        return values
    if isinstance(values, str | os.PathLike):
        values = _read_file(what, values)
    numbers = named_values(what, values)
    if numbers is None:
        if label_names is None or np.ndim(values) != 1 or len(values) != len(label_names):
            return values
        # Labels that are named 0, 1, 2, ... in any order go by these names.
        order = match_labels(label_names, None, ("labels", what), n_labels=(len(values),) * 2)
        return values if order is None else np.asanyarray(values)[order]
    names = [str(label) for label in range(len(numbers))] if label_names is None else label_names
    known = set(names)
    unknown_name = next((name for name in numbers if name not in known), None)
    if unknown_name is not None:
        why = "which is none."
        if label_names is None:
            why = "and the labels have none. Pass label_names, or .to_numpy() to go by position."
        raise InvalidInput(
            f"{what} given by name must name the labels, got {unknown_name!r:.60}, {why}"
        )
    missing = next((name for name in names if name not in numbers), None)
    if missing is not None:
        raise InvalidInput(
            f"{what} given by name must name every label, {missing!r:.60} is missing."
        )
    return np.array([numbers[name] for name in names])


def with_names(values: Array, label_names: Sequence[str] | None) -> Any:
    """Numbers in the order of the labels, as a verb takes them: by name where these have names."""
    return values if label_names is None else dict(zip(label_names, values, strict=True))


def _read_file(what: str, path: Any) -> Any:
    """The numbers of a file that is given in place of them."""
    if not Path(path).exists():
        allowed = _KNOWN if what == "weights" else "one number per label, as they are or in a file"
        raise InvalidInput(
            f"{what} must be {allowed}, got {os.fspath(path)!r:.60}, and there is no such file."
        )
    return read_numbers(path)


def read_numbers(path: Any, each: str = "label") -> Any:
    """One number per label or row, from an .npy or .npz file or text with one number per line.

    A .parquet file, or .csv with a header, has a column label and one of numbers: numbers by name.

    Parameters
    ----------
    path : str or path
    each : str
        What there is a number of, for the error.

    Returns
    -------
    numpy.ndarray, or dict of numbers by name
    """
    path = check_path("a file of numbers", path)
    try:
        if path.suffix in (".npy", ".npz"):
            numbers = read_npy(path) if path.suffix == ".npy" else read_npz(path)
            check_memory(path, numbers.nbytes)
            return np.array(numbers)
        if (
            path.suffix in (".csv", ".parquet", ".pq")
            and (by_name := _read_named(path)) is not None
        ):
            return by_name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of an empty file; its shape says so
            return np.loadtxt(input_path(path), ndmin=1)
    except UnreadableFile:
        raise
    except (OSError, ValueError, EOFError) as error:
        raise UnreadableFile(
            f"{path} cannot be read as one number per {each} (.npy, .npz, or text with one a line)."
        ) from error


def _read_named(path: Path) -> dict[str, float] | None:
    """Numbers by label from a table with a column label; None for text without such a header."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    if path.suffix == ".csv":
        check_separator(path, ",")
    try:
        if path.suffix == ".csv":
            whole = read_bytes(path)
            if b"," not in whole.partition(b"\n")[0]:
                return None
            labels = csv.ConvertOptions(column_types={"label": pa.string()})
            table = csv.read_csv(pa.BufferReader(whole), convert_options=labels)
        else:
            table = parquet.read_table(path)
        numbers = [name for name in table.column_names if name != "label"]
        if len(numbers) != 1 or "label" not in table.column_names:
            raise UnreadableFile(
                f"{path} must have a column label and one of numbers, got {table.column_names}."
            )
        names = [str(name) for name in table.column("label").to_pylist()]
        if len(set(names)) < len(names):
            raise UnreadableFile(f"{path} must name every label once, got one twice.")
        values = table.column(numbers[0]).cast(pa.float64()).to_pylist()
        return dict(zip(names, values, strict=True))
    except (pa.ArrowException, OSError) as error:
        raise UnreadableFile(f"{path} cannot be read as a table ({first_line(error)}).") from error


def named_values(what: str, values: Any) -> dict[str, Any] | None:
    """Numbers by the name of their label; None where they have no names."""
    if isinstance(values, Mapping):
        pairs = [(str(name), number) for name, number in values.items()]
    elif is_frame(values):
        pairs = _frame_pairs(what, values)
    elif row_names(values) is not None and np.ndim(values) == 1:
        pairs = list(zip(map(str, row_names(values).tolist()), values.to_numpy(), strict=True))  # type: ignore[union-attr]
    else:
        return None
    if len(dict(pairs)) < len(pairs):
        raise InvalidInput(f"{what} given by name must name a label once, got one twice.")
    return dict(pairs)


def _frame_pairs(what: str, frame: Any) -> list[tuple[str, Any]]:
    """The name of each label and its number, from a column of names or the index."""
    columns = [str(name) for name in frame.columns]
    numbers = [name for name in columns if name != "label"]
    if len(numbers) != 1 or ("label" not in columns and row_names(frame) is None):
        raise InvalidInput(
            f"{what} given as a frame must have a column label, or names as its index, and one "
            f"column of numbers, got columns {columns!r:.60}."
        )
    by_name = dict(zip(columns, frame.columns, strict=True))
    names = row_names(frame) if "label" not in columns else frame[by_name["label"]].to_numpy()
    assert names is not None
    return list(zip(map(str, names.tolist()), frame[by_name[numbers[0]]].to_numpy(), strict=True))


def per_label(what: str, values: ArrayLike, n_labels: int | None = None) -> Floats:
    """Numbers as float64, one per label."""
    numbers = as_numbers(what, values)
    if numbers.ndim != 1 or n_labels not in (None, numbers.size):
        size = "" if n_labels is None else f", n_labels={n_labels}"
        raise InvalidInput(
            f"{what} must hold one number per label{size}, got shape {numbers.shape}."
        )
    return np.ascontiguousarray(numbers)


def _named(name: str, positives: Floats, n_rows: Any) -> Floats:
    """The weights of a name that `is_weight_name` knows."""
    multiple = _multiple(name)
    ratios = balance_ratios(positives, n_rows)
    if multiple is not None:
        return ratios * multiple
    if name == "none":
        return np.ones_like(ratios)
    if name == "sqrt":
        return np.sqrt(ratios)
    if name == "common":
        # The ratio of the cells as one label. A mean of r_j would hang on labels without
        # positives, whose r_j is 1 by convention and not by count.
        cells = np.broadcast_to(n_rows, positives.shape).sum()
        return np.full_like(ratios, balance_ratios([positives.sum()], cells)[0])
    return ratios


def _multiple(name: str) -> float | None:
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)x", name)
    return float(match[1]) if match and 0 < float(match[1]) < np.inf else None
