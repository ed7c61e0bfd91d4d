"""`Panel`: scores of shape (rows, labels), what was true, and the names of both.

This is the one gate where raw input is checked. Shapes, types and names are checked when a panel
is made; cells are checked while they are read, by the keys the kernels use anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from oddslip.arguments import check_k, check_names, unmasked
from oddslip.errors import InvalidInput
from oddslip.identity import hash_ids, need_ids
from oddslip.kernels import Kind
from oddslip.labels import Labels, Positives, as_labels


class SampleWeight(NamedTuple):
    """How much each row counts: ``units * unit``. Whole units add up alike in any order."""

    units: NDArray[np.int64]
    unit: float

    @property
    def times(self) -> NDArray[np.float64]:
        """The weight of each row."""
        return self.floats(self.units)

    def floats(self, units: NDArray[Any]) -> NDArray[np.float64]:
        """Sums of units as weights."""
        return np.asarray(units * self.unit, np.float64)

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return int(self.units.sum()) * self.unit

    def take(self, rows: Any) -> SampleWeight:
        """The weights of some rows: a slice of them, a mask or numbers."""
        return SampleWeight(self.units[rows], self.unit)


def read_sample_weight(given: Any, n_rows: int) -> SampleWeight | None:
    """Weights of all rows, checked; None where rows count alike.

    A unit is a power of two, so whole numbers and halves are exact, and everything else is to
    2**-50 of the sum.

    Examples
    --------
    >>> read_sample_weight([1, 2.5], 2).times
    array([1. , 2.5])
    """
    if given is None:
        return None
    try:
        weights = np.asarray(unmasked("sample_weight", given), np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"sample_weight must hold numbers, got {given!r:.60}.") from None
    if weights.shape != (n_rows,):
        raise InvalidInput(
            f"sample_weight must hold one number per row, n_rows={n_rows:,}, "
            f"got shape {weights.shape}."
        )
    wrong = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
    if wrong.size:
        raise InvalidInput(
            "sample_weight must be positive and finite, got "
            f"{weights[wrong[0]]:g} at row {wrong[0]}. Drop rows that shall not count."
        )
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    unit = float(2.0 ** (np.frexp(total)[1] - 50)) if np.isfinite(total) else 0.0
    units = np.rint(weights / unit) if unit else np.zeros(n_rows)
    if not (units > 0).all():
        raise InvalidInput(
            "sample_weight must not differ by more than 2**49 times in all, got "
            f"{weights.min():g} among a sum of {total:g}."
        )
    return SampleWeight(units.astype(np.int64), unit)


class Panel:
    """Scores of shape (rows, labels), the labels that were true, and the names of both.

    Parameters
    ----------
    scores : array-like or data frame of shape (n_rows, n_labels)
        float32 or float64 in any memory order, memory-mapped or not. Never copied whole unless
        the type has to change. A pandas or polars frame brings its column names along.
    labels : optional
        0/1 or bool cells of the same shape, a scipy.sparse matrix, a data frame with the same
        columns, or for each row a list of the indices of its true labels.
    kind : {"probability", "margin"}
        What the scores are: probabilities in [0, 1] or log-odds.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own. No two alike.
    row_ids : sequence, optional
        Names of the rows.

    Examples
    --------
    >>> panel = Panel([[0.9, 0.2, 0.6]], [[1, 0, 0]], label_names=["a", "b", "c"])
    >>> panel
    Panel(1 row x 3 labels, probability, float64, labels: yes)
    """

    __slots__ = (
        "first_row",
        "kind",
        "label_names",
        "labels",
        "numbered",
        "row_ids",
        "sample_weight",
        "scores",
        "twin",
    )

    scores: NDArray[Any]
    labels: Labels | None
    kind: Kind
    label_names: tuple[str, ...] | None
    row_ids: NDArray[Any] | None
    sample_weight: SampleWeight | None
    first_row: int
    numbered: bool  # whether rows have an order; else an id is all that they are known by
    twin: NDArray[Any] | None  # scores of another model for the same cells

    def __init__(
        self,
        scores: Any,
        labels: Any = None,
        *,
        kind: Kind = "probability",
        label_names: Sequence[str] | None = None,
        row_ids: Any = None,
    ) -> None:
        if kind not in get_args(Kind):
            raise InvalidInput(f'kind must be "probability" or "margin", got {kind!r}.')
        framed = _frame_names(scores)
        if framed is not None and row_ids is None:
            row_ids = _frame_index(scores)
        names = framed if label_names is None else label_names
        self.scores = _as_scores(scores, names)
        self.kind = kind
        self.label_names = check_names(names, self.scores.shape[1])
        self.row_ids = None if row_ids is None else np.asarray(row_ids)
        self.sample_weight = None
        self.first_row = 0
        self.numbered = True
        self.twin = None
        self.labels = None if labels is None else self._gate_labels(labels)
        if self.row_ids is not None and self.row_ids.shape != (self.n_rows,):
            raise InvalidInput(
                f"row_ids must hold one id per row, n_rows={self.n_rows}, "
                f"got shape {self.row_ids.shape}."
            )

    def _gate_labels(self, labels: Any) -> Labels:
        names = _frame_names(labels)
        if names is not None:
            labels = _aligned_columns(labels, names, self.label_names)
        gated = as_labels(labels, self.n_labels, self.name_of)
        if gated.shape != self.scores.shape:
            raise InvalidInput(
                f"labels must have the shape of scores, {self.scores.shape}, got {gated.shape}."
            )
        return gated

    @property
    def n_rows(self) -> int:
        """Rows of this panel."""
        return int(self.scores.shape[0])

    @property
    def n_labels(self) -> int:
        """Labels of this panel."""
        return int(self.scores.shape[1])

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        rows = "1 row" if self.n_rows == 1 else f"{self.n_rows:,} rows"
        truth = "no" if self.labels is None else "yes"
        return (
            f"Panel({rows} x {self.n_labels:,} labels, {self.kind}, "
            f"{self.scores.dtype}, labels: {truth})"
        )

    def name_of(self, label: int) -> str:
        """Name of a label; its index where labels have no names."""
        return str(label) if self.label_names is None else self.label_names[label]

    def rows(self, start: int, stop: int) -> Panel:
        """The panel of rows ``start`` to ``stop``: views, nothing copied or checked again."""
        block = object.__new__(Panel)
        block.scores = self.scores[start:stop]
        block.labels = self.labels if self.labels is None else _Rows(self.labels, start, stop)
        block.kind = self.kind
        block.label_names = self.label_names
        block.row_ids = None if self.row_ids is None else self.row_ids[start:stop]
        weight = self.sample_weight
        block.sample_weight = None if weight is None else weight.take(slice(start, stop))
        block.first_row = self.first_row + start
        block.numbered = self.numbered
        block.twin = None if self.twin is None else self.twin[start:stop]
        return block

    def row_keys(self) -> NDArray[np.uint64]:
        """What rows are known by where they have no order: see `oddslip.identity`."""
        need_ids(self.row_ids is not None, "what is decided")
        return hash_ids(cast("NDArray[Any]", self.row_ids))

    def name_row(self, row: int) -> str:
        """What an error calls a row: by its number, or by its id where rows have no order."""
        if self.numbered:
            return f"row {self.first_row + row}"
        return "a row" if self.row_ids is None else f"row {self.row_ids[row]!s:.60}"

    def positives(self) -> Positives:
        """True labels of every row; refuses a panel without labels or cells that are not 0/1."""
        if self.labels is None:
            raise InvalidInput("labels are needed here, got scores alone. Pass labels as well.")
        return self.labels.positives(0, self.n_rows, self.name_of)

    def truths(self) -> NDArray[np.uint8]:
        """The same as 0/1 cells of the shape of the scores."""
        if self.labels is None:
            raise InvalidInput("labels are needed here, got scores alone. Pass labels as well.")
        return self.labels.truths(0, self.n_rows, self.name_of)

    def keys(self) -> NDArray[Any]:
        """Order-preserving keys of the scores, not yet checked: see `limit` and `mended`."""
        from oddslip.kernels.keys import keys_of

        keys: NDArray[Any] = keys_of(np.ascontiguousarray(self.scores), self.kind)
        return keys

    @property
    def limit(self) -> int:
        """The largest key of a valid cell. A larger one calls for `mended`."""
        from oddslip.kernels.keys import LIMITS, UNSIGNED

        return int(LIMITS[UNSIGNED[self.scores.dtype], self.kind])

    def checked(self) -> Panel:
        """This panel, after a look at every cell."""
        from oddslip.kernels.keys import largest_key

        return self if int(largest_key(self.keys())) <= self.limit else self.mended()

    def mended(self) -> Panel:
        """This panel with -0.0 as 0.0, or an error naming the first cell that is not valid."""
        if self.kind == "probability":
            wrong = ~((self.scores >= 0) & (self.scores <= 1))
        else:
            wrong = ~np.isfinite(self.scores)
        if wrong.any():
            raise InvalidInput(self._complaint(wrong))
        mended = self.rows(0, self.n_rows)
        mended.scores = self.scores + 0.0
        return mended

    def _complaint(self, wrong: NDArray[np.bool_]) -> str:
        row, label = divmod(int(np.flatnonzero(wrong.ravel())[0]), self.n_labels)
        value = self.scores[row, label]
        place = f"{self.name_row(row)}, label {self.name_of(label)!r}"
        if np.isfinite(value):
            return (
                f"probabilities must be between 0 and 1, got {value:g} at {place}. "
                'If scores are log-odds, pass kind="margin".'
            )
        what = "NaN" if np.isnan(value) else "infinite"
        same = int((np.isnan(self.scores) if what == "NaN" else np.isinf(self.scores)).sum())
        cells = f"{same} {what} cell" + ("s" if same > 1 else "")
        last = self.first_row + self.n_rows - 1
        where = f" in rows {self.first_row} to {last}, the first" if self.numbered else ", one"
        return f"scores hold {cells}{where} at {place}. Drop or fill those rows first."


class _Rows:
    """A range of rows of some labels; errors name the row of the whole."""

    __slots__ = ("labels", "shape", "start")

    def __init__(self, labels: Labels, start: int, stop: int) -> None:
        self.labels, self.start = labels, start
        self.shape = (stop - start, labels.shape[1])

    def positives(self, start: int, stop: int, name_of: Any = str) -> Positives:
        return self.labels.positives(self.start + start, self.start + stop, name_of)

    def truths(self, start: int, stop: int, name_of: Any = str) -> NDArray[np.uint8]:
        return self.labels.truths(self.start + start, self.start + stop, name_of)


def _as_scores(scores: Any, names: Any = None) -> NDArray[Any]:
    def name_of(label: int) -> str:
        named = tuple(names) if hasattr(names, "__iter__") else ()
        return str(named[label] if label < len(named) else label)

    scores = unmasked("scores", scores, name_of)
    try:
        array = scores.to_numpy() if _frame_names(scores) is not None else np.asanyarray(scores)
    except ValueError as error:
        raise InvalidInput(
            "scores must be a table of shape (rows, labels), got rows of different lengths."
        ) from error
    if array.ndim != 2:
        raise InvalidInput(f"scores must be of shape (rows, labels), got shape {array.shape}.")
    if 0 in array.shape:
        raise InvalidInput(
            f"scores must hold at least one row and one label, got shape {array.shape}."
        )
    if array.dtype in (np.float32, np.float64):
        return cast("NDArray[Any]", array)
    if array.dtype.kind not in "biuf":
        raise InvalidInput(
            f"scores must be numbers, got dtype {array.dtype}. Convert them to float32 or float64."
        )
    return np.asarray(array, np.float32 if array.dtype.itemsize <= 2 else np.float64)


def _frame_names(table: Any) -> list[str] | None:
    if hasattr(table, "to_numpy") and hasattr(table, "columns"):
        return [str(name) for name in table.columns]
    return None


def _frame_index(table: Any) -> Any:
    index = getattr(table, "index", None)
    return None if index is None or type(index).__name__ == "RangeIndex" else index.to_numpy()


def _aligned_columns(labels: Any, names: list[str], wanted: tuple[str, ...] | None) -> Any:
    """A frame's cells in the order of the scores' names; refuses other names."""
    cells = labels.to_numpy()
    if wanted is None or tuple(names) == wanted:
        return cells
    check_names(names, len(names))
    place = {name: at for at, name in enumerate(names)}
    missing = [name for name in wanted if name not in place]
    if missing or len(names) != len(wanted):
        stranger = missing[0] if missing else next(n for n in names if n not in set(wanted))
        side = "labels lack" if missing else "scores lack"
        raise InvalidInput(
            f"scores and labels must have the same columns, but {side} {stranger!r}."
        )
    return cells[:, [place[name] for name in wanted]]


__all__ = ["Kind", "Panel", "SampleWeight", "check_k", "check_names", "read_sample_weight"]
