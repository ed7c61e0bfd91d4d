"""A saved repair served with NumPy only: `transform` and `rank` of one row or many.

Every cell goes through the same operations in the same order as in `oddslip.kernels.maps`, so the
results agree to the bit: a product and the sum after it are two roundings in both. The kernels use
the exponentials and logarithms of the C library; where NumPy has its own, which differ in the last
bit, Python's `math` is used instead.

The binary search for the knots of a row takes each step for all labels at once, so a row costs as
many steps as the longest map needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.core.arguments import check_k, reject_masked
from oddslip.core.row_ids import counts_up, is_frame, match_labels, row_names
from oddslip.decisions.list_rule import ListRule, read_rule, units_of
from oddslip.errors import InvalidInput
from oddslip.repairs.map_forms import (
    AFFINE,
    BETA,
    CLIP,
    CONSTANT,
    EXCLUDED,
    IDENTITY,
    KNOTS,
    LOWEST,
    PER_LABEL,
    PlainMaps,
    compared_constants,
    lay_knots,
)
from oddslip.repairs.repair_file import RepairFile, read_repair_file
from oddslip.repairs.row_stage import RowStage

Floats = NDArray[np.float64]
CELLS = 1 << 15  # cells per block, to stay in cache
NAN = ("refuse", "absent")


class Runtime:
    """A repair that only needs NumPy, see `load_runtime`.

    Attributes
    ----------
    kind : {"probability", "margin"}
        Scale of the scores.
    n_labels : int
        Number of labels.
    label_names : tuple of str or None
        Names by which the columns of a frame are matched.
    calibrator, parameters : str, dict
        Name and parameters of the calibrator.
    """

    def __init__(self, stored: RepairFile, rule: ListRule | None = None) -> None:
        self.kind: str = stored.maps.kind
        self.n_labels = int(stored.maps.code.size)
        self.label_names = stored.label_names
        self.calibrator = stored.calibrator
        self.parameters = stored.parameters
        maps = stored.maps
        self._rule = rule
        self._maps = _Maps(maps, compared_constants(maps), lay_knots(maps), stored.stage)
        self._maps.thresholds = None if rule is None else rule.thresholds
        self._places = {name: at for at, name in enumerate(stored.label_names or ())}

    def __repr__(self) -> str:
        return f"Runtime({self.calibrator}, {self.n_labels:,} labels, {self.kind})"

    def transform(
        self, scores: Any, *, candidates: Any = None, nan: str = "refuse", dtype: Any = None
    ) -> np.ndarray:
        """Calibrated probabilities, in the shape of the scores.

        Parameters
        ----------
        scores : array-like of shape (n_labels,) or (n_rows, n_labels), data frame or series
            One row or many. Columns of a frame and cells of a series are matched by name.
        candidates : sequence of int or str, optional
            Labels of the columns by index or name, if the columns are not all labels.
        nan : {"refuse", "absent"}
            Whether NaN is an error, or marks a label that is no candidate and stays NaN.
        dtype : optional
            Type of the result; default: that of the scores.

        Returns
        -------
        ndarray
        """
        rows, maps, _ = self._open(scores, candidates, ranked=False)
        missing = self._check(rows, nan)
        try:
            out_dtype = np.dtype(rows.dtype if dtype is None else dtype)
        except TypeError as error:
            raise InvalidInput(f"dtype must be one of NumPy's, got {dtype!r:.60}.") from error
        if out_dtype not in (np.float32, np.float64):
            raise InvalidInput(f"dtype must be float32 or float64, got {out_dtype}.")
        out = np.empty(rows.shape, out_dtype)
        for part, cells in _parts(rows, missing):
            out[part] = maps.probabilities(cells, None if missing is None else missing[part])
        if missing is not None:
            out[missing] = np.nan
        return out[0] if np.ndim(scores) == 1 else out

    def rank(
        self,
        scores: Any,
        *,
        k: int,
        candidates: Any = None,
        exclude: Any = None,
        nan: str = "refuse",
        names: bool = False,
    ) -> Any:
        """The K labels of highest calibrated value, best first; ties go to the lower index.

        Parameters
        ----------
        scores : array-like of shape (n_labels,) or (n_rows, n_labels), data frame or series
            One row or many. Columns of a frame and cells of a series are matched by name.
        k : int
            Slots per row, ``1 <= k <= n_labels``.
        candidates : sequence of int or str, optional
            Labels of the columns by index or name, if the columns are not all labels.
        exclude : optional
            Labels that must not be shown. For one row their indices or names, or one bool per
            label. For many rows a list of such lists, a table of bools in the shape of the scores,
            a scipy.sparse matrix, or its ``(indptr, indices)``.
        nan : {"refuse", "absent"}
            Whether NaN is an error, or marks a label that is no candidate.
        names : bool
            Whether to return names of labels instead of indices; None in an empty slot. For a
            pandas frame, a frame with its index and the columns label_1 to label_k.

        Returns
        -------
        ndarray of int32, shape (k,) or (n_rows, k)
            Label indices; -1 in an empty slot.
        """
        rows, maps, labels = self._open(scores, candidates, ranked=True)
        k = check_k(k, self.n_labels)
        hidden = self._find_hidden(rows, nan, exclude, labels, np.ndim(scores) == 1)
        out = np.empty((len(rows), k), np.int32)
        for part, cells in _parts(rows, hidden):
            mask = None if hidden is None else hidden[part]
            values = maps.values(cells, mask)
            if mask is not None:
                values[mask] = np.nan
            columns = _rank(maps, cells, values, k)
            out[part] = columns if labels is None else _relabel(columns, labels)
        return self._answer(out, labels, scores, names)

    def lists(
        self,
        scores: Any,
        *,
        groups: Any = None,
        candidates: Any = None,
        exclude: Any = None,
        nan: str = "refuse",
        names: bool = False,
    ) -> Any:
        """The labels to show, by the decision that was saved with the repair.

        Parameters
        ----------
        scores, candidates, exclude, nan, names
            As in `rank`.
        groups : array-like of shape (n_rows,), optional
            Group of each row, if the decision was fitted with groups; of one row its name.

        Returns
        -------
        ndarray of int32, shape (k_max,) or (n_rows, k_max)
            Label indices, best first; -1 in the slots after a list.
        """
        rule = self._rule
        if rule is None:
            raise InvalidInput("lists need a decision, got a repair alone. Save a Decision.")
        rows, maps, labels = self._open(scores, candidates, ranked=True)
        one = np.ndim(scores) == 1
        hidden = self._find_hidden(rows, nan, exclude, labels, one)
        if one and groups is not None:
            groups = [groups]
        places = rule.read_groups(groups, len(rows), None if one else row_names(scores))
        out = np.empty((len(rows), rule.k_max), np.int32)
        for part, cells in _parts(rows, hidden):
            mask = None if hidden is None else hidden[part]
            columns = _list(rule, maps, cells, mask, places[part])
            out[part] = columns if labels is None else _relabel(columns, labels)
        return self._answer(out, labels, scores, names)

    def _answer(
        self, out: NDArray[np.int32], labels: NDArray[np.int64] | None, scores: Any, names: bool
    ) -> Any:
        """Ranked labels by index or by name; one row of them for one row of scores."""
        answer: Any = out
        if names:
            from oddslip.core.results import name_ranking

            label_names = self.label_names
            if labels is None:  # columns of the scores, in their order
                label_names = _names_of(scores) or label_names
            answer = name_ranking(out, label_names, scores)
        return answer[0] if np.ndim(scores) == 1 else answer

    def _open(
        self, scores: Any, candidates: Any, *, ranked: bool
    ) -> tuple[np.ndarray, _Maps, NDArray[np.int64] | None]:
        """The rows, the maps of their columns, and the labels of the columns if candidates."""
        names = _names_of(scores)
        if is_frame(scores):
            scores = scores.to_numpy()
        scores = reject_masked("scores", scores)
        try:
            rows = np.atleast_2d(np.asarray(scores))
        except ValueError:
            raise InvalidInput("scores must be rows of one length, got several lengths.") from None
        if rows.ndim != 2 or 0 in rows.shape:
            raise InvalidInput(
                f"scores must be of shape (labels,) or (rows, labels), got {np.shape(scores)}."
            )
        if rows.dtype.kind not in "biuf":
            raise InvalidInput(f"scores must be numbers, got dtype {rows.dtype}.")
        if rows.dtype not in (np.float32, np.float64):
            rows = rows.astype(np.float32 if rows.dtype.itemsize <= 2 else np.float64)
        if candidates is not None:
            labels = self._read_labels("candidates", candidates)
            if labels.shape != (rows.shape[1],) or np.unique(labels).size < labels.size:
                raise InvalidInput(
                    f"candidates must name the {rows.shape[1]:,} columns of the scores, each once, "
                    f"got {labels.size:,} labels, {np.unique(labels).size:,} of them different."
                )
            if ranked:  # ties go to the lower label, whatever its column
                order = np.argsort(labels)
                rows, labels = rows[:, order], labels[order]
            return rows, self._maps.take(labels), labels
        counts = rows.shape[1], self.n_labels
        positions = match_labels(
            names, self.label_names, ("scores", "repair"), n_labels=counts, warn=True
        )
        return rows, self._maps if positions is None else self._maps.take(positions), None

    def _find_hidden(
        self,
        rows: np.ndarray,
        nan: str,
        exclude: Any,
        labels: NDArray[np.int64] | None,
        one: bool,
    ) -> NDArray[np.bool_] | None:
        """Cells that are no candidates: those that are absent, and those to exclude."""
        absent = self._check(rows, nan)
        if exclude is None:
            return absent
        excluded = self._read_exclude(exclude, len(rows), one)
        excluded = excluded if labels is None else excluded[:, labels]
        return excluded if absent is None else absent | excluded

    def _check(self, rows: np.ndarray, nan: str) -> NDArray[np.bool_] | None:
        """Cells that are no candidates; raises for invalid scores."""
        if nan not in NAN:
            raise InvalidInput(f'nan must be "refuse" or "absent", got {nan!r:.60}.')
        top = 1.0 if self.kind == "probability" else float(np.finfo(rows.dtype).max)
        low = 0.0 if self.kind == "probability" else -top
        if rows.min() >= low and rows.max() <= top:
            return None
        missing: NDArray[np.bool_] = np.isnan(rows)
        wrong = ~((rows >= low) & (rows <= top))
        if nan == "absent":
            wrong &= ~missing
        if not wrong.any():
            return missing
        row, column = np.argwhere(wrong)[0]
        value = rows[row, column]
        rule = "between 0 and 1" if self.kind == "probability" else "finite"
        hint = ' If NaN means "no candidate", pass nan="absent".' if np.isnan(value) else ""
        raise InvalidInput(
            f"scores must be {rule}, got {value:g} at row {row}, column {column}.{hint}"
        )

    def _read_labels(self, what: str, labels: Any) -> NDArray[np.int64]:
        """Indices of labels given by index or name."""
        if isinstance(labels, str) or not hasattr(labels, "__iter__"):
            raise InvalidInput(f"{what} must be a list of labels, got {labels!r:.60}.")
        if isinstance(labels, np.ndarray):
            labels = labels.tolist()
        indices = [self._places.get(each, -1) if isinstance(each, str) else each for each in labels]
        for each, at in zip(labels, indices, strict=True):
            is_integer = isinstance(at, int | np.integer) and not isinstance(at, bool)
            if not is_integer or not 0 <= at < self.n_labels:
                raise InvalidInput(
                    f"{what} must be names of labels or indices below {self.n_labels:,}, "
                    f"got {each!r:.60}."
                )
        return np.array(indices, np.int64)

    def _read_exclude(self, exclude: Any, n_rows: int, one: bool) -> NDArray[np.bool_]:
        """Mask of the cells whose label must not be shown."""
        shape = (n_rows, self.n_labels)
        if hasattr(exclude, "tocsr"):
            matrix = exclude.tocsr()
            if matrix.shape != shape:
                raise InvalidInput(f"exclude must be of shape {shape}, got {matrix.shape}.")
            return np.asarray(matrix.toarray() != 0, np.bool_)
        mask = np.zeros(shape, np.bool_)
        if isinstance(exclude, tuple):
            rows, labels = self._read_pointers(exclude, n_rows)
        elif isinstance(exclude, np.ndarray) and (exclude.dtype == np.bool_ or exclude.ndim == 2):
            table = exclude[None] if one and exclude.ndim == 1 else exclude
            if table.shape != shape or not np.isin(table, (0, 1)).all():
                raise InvalidInput(
                    f"exclude must be truths of shape {shape}, or lists of labels, "
                    f"got an array of shape {exclude.shape}."
                )
            return table.astype(np.bool_)
        else:
            lists: Sequence[Any] = [exclude] if one else exclude
            if not hasattr(lists, "__len__") or len(lists) != n_rows:
                raise InvalidInput(
                    f"exclude must hold one list of labels per row, n_rows={n_rows:,}, "
                    f"got {lists!r:.60}."
                )
            indices = [self._read_labels("exclude", each) for each in lists]
            rows = np.repeat(np.arange(n_rows), [each.size for each in indices])
            labels = np.concatenate([*indices, np.empty(0, np.int64)])
        mask[rows, labels] = True
        return mask

    def _read_pointers(
        self, pointers: tuple[Any, ...], n_rows: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if len(pointers) != 2:
            raise InvalidInput(f"exclude must be (indptr, indices), got {len(pointers)} of them.")
        indptr, labels = np.asarray(pointers[0]), self._read_labels("exclude", pointers[1])
        counts = np.diff(indptr) if indptr.shape == (n_rows + 1,) else np.array([-1])
        if (counts < 0).any() or indptr[0] != 0 or indptr[-1] != labels.size:
            raise InvalidInput(
                f"exclude must have an indptr of {n_rows + 1:,} numbers that rise from 0 to the "
                f"{labels.size:,} indices, got {pointers[0]!r:.60}."
            )
        return np.repeat(np.arange(n_rows), counts), labels


def _names_of(scores: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame, or of the cells of a row; None if they are numbers."""
    if is_frame(scores):
        return None if counts_up(scores.columns) else tuple(map(str, scores.columns))
    names = row_names(scores)
    return None if names is None else tuple(map(str, names.tolist()))


def load_runtime(path: Any) -> Runtime:
    """Read a saved repair, to be served with NumPy only.

    The file is validated as by `oddslip.load_repair`, and the results are the same to the bit.

    Parameters
    ----------
    path : path
        A file written by `save` of a fitted repair, or by ``oddslip fit``.

    Returns
    -------
    Runtime

    Examples
    --------
    >>> load_runtime("repair.oddslip").rank(row_of_scores, k=7)  # doctest: +SKIP
    """
    stored = read_repair_file(path)
    return Runtime(stored, None if stored.decision is None else read_rule(path, stored))


class _Knots(NamedTuple):
    """Labels with knots, sorted by descending number of knots, for the search."""

    labels: NDArray[np.int64]
    start: NDArray[np.int64]
    last: NDArray[np.int64]
    steps: list[
        tuple[int, int]
    ]  # distance to look ahead, and number of labels with that many knots


class _Maps:
    """The maps of some labels, evaluated for all labels of one form at a time."""

    thresholds: Floats | None = None  # of a decision

    def __init__(
        self, maps: PlainMaps, constants: Floats, table: Floats, stage: RowStage | None
    ) -> None:
        self.plain, self.constants, self.table, self.stage = maps, constants, table, stage
        self.margin, self.odds = maps.kind == "margin", maps.scale == "log_odds"
        self.labels = {form: np.flatnonzero(maps.code == form) for form in range(EXCLUDED + 1)}
        knotted = self.labels[KNOTS]
        counts = (maps.stop - maps.start)[knotted]
        knotted = knotted[np.argsort(-counts, kind="stable")]
        counts = -np.sort(-counts)
        max_knots = int(counts[0]) if counts.size else 1
        ahead = [
            1 << bit for bit in reversed(range(max_knots.bit_length())) if 1 << bit < max_knots
        ]
        steps = [(distance, int(np.count_nonzero(counts > distance))) for distance in ahead]
        self.slack = self._find_slack()
        self.knots = _Knots(knotted, maps.start[knotted], maps.stop[knotted] - 1, steps)

    def _find_slack(self) -> float:
        """Upper bound on the error of values if functions are wrong in their last digits."""
        at = np.concatenate([self.labels[form] for form in (AFFINE, BETA, IDENTITY)])
        exact = self.margin == self.odds and not self.labels[BETA].size
        if (
            not at.size or exact or self.stage is not None
        ):  # log-odds of margins, and probabilities of probabilities
            return 0.0
        a, b, c = (np.abs(each[at]) for each in (self.plain.a, self.plain.b, self.plain.c))
        # Logarithms of clipped probabilities are below 28, those of margins as large as margins.
        return float(1e-13 * (1.0 + 30.0 * (a + b) + c).max())

    def take(self, labels: NDArray[np.int64]) -> _Maps:
        """The maps of some labels, in this order."""
        arrays: dict[str, Any] = {name: getattr(self.plain, name)[labels] for name in PER_LABEL}
        stage = None if self.stage is None else self.stage.take(labels)
        maps = _Maps(self.plain._replace(**arrays), self.constants[labels], self.table, stage)
        maps.thresholds = None if self.thresholds is None else self.thresholds[labels]
        return maps

    def values(self, cells: Floats, absent: NDArray[np.bool_] | None) -> Floats:
        """Values to compare, exact to within `slack`; -inf for excluded labels."""
        if self.stage is None:
            return self._map(cells, NUMPY, to_probability=False)
        probabilities = self._map(cells, _c_library(), to_probability=True)
        hidden = self.plain.code == EXCLUDED
        surprise = self.stage.find_surprise(
            probabilities, hidden if absent is None else hidden | absent
        )
        log_odds = self._map(cells, _c_library(), to_probability=False)
        return self.stage.adjust(log_odds, self.stage.find_support(surprise))

    def probabilities(self, cells: Floats, absent: NDArray[np.bool_] | None) -> Floats:
        """Calibrated probabilities; 0 for excluded labels."""
        if self.stage is None or self.stage.changes_nothing:
            return self._map(cells, _c_library(), to_probability=True)
        return _sigmoid(self.values(cells, absent), _c_library())

    @np.errstate(all="ignore")
    def refine(
        self, cells: Floats, values: Floats, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> None:
        """Replace the values of these cells by values that are exact to the bit."""
        if not self.slack or _c_library() == NUMPY:
            return
        code = self.plain.code[columns]
        for form in (AFFINE, BETA, IDENTITY):
            mask = code == form
            at = rows[mask], columns[mask]
            values[at] = self._evaluate(form, cells[at], at[1], _c_library(), False)

    @np.errstate(all="ignore")
    def _map(self, cells: Floats, library: _Library, *, to_probability: bool) -> Floats:
        out = np.empty(cells.shape)
        labels, maps = self.labels, self.plain
        if labels[KNOTS].size:
            out[:, self.knots.labels] = self._interpolate(cells[:, self.knots.labels])
        if labels[CONSTANT].size:
            constants = maps.a if to_probability else self.constants
            out[:, labels[CONSTANT]] = constants[labels[CONSTANT]]
        if labels[EXCLUDED].size:
            out[:, labels[EXCLUDED]] = 0.0 if to_probability else -np.inf
        for form in (AFFINE, BETA, IDENTITY):
            at = labels[form]
            if at.size:
                part = cells if at.size == cells.shape[1] else cells[:, at]
                out[:, at] = self._evaluate(form, part, at, library, to_probability)
        return out

    def _interpolate(self, cells: Floats) -> Floats:
        """Values of labels with knots, in the order of `knots`."""
        x = self.plain.x
        at = np.repeat(self.knots.start[None], len(cells), axis=0)
        for far, reach in self.knots.steps:
            here = at[:, :reach]
            ahead = here + far
            np.minimum(ahead, self.knots.last[:reach], out=ahead)
            np.copyto(here, ahead, where=x.take(ahead) <= cells[:, :reach])
        score, value, slope, roof = np.moveaxis(self.table.take(at, axis=0), -1, 0)
        mapped = slope * (np.maximum(cells, score) - score) + value
        mapped = np.minimum(mapped, roof)
        return np.asarray(np.where(mapped >= value, mapped, value))

    def _evaluate(
        self,
        form: int,
        cells: Floats,
        labels: NDArray[np.int64],
        libm: _Library,
        to_probability: bool,
    ) -> Floats:
        """Values or probabilities of cells of labels whose map is a formula."""
        maps = self.plain
        if form == IDENTITY and not self.margin and (to_probability or not self.odds):
            return cells
        a, b, c = (each[labels] for each in (maps.a, maps.b, maps.c))
        if form == BETA and self.margin:
            tail = libm.log1p_exp(-np.abs(cells))
            values = b * (np.maximum(cells, 0.0) + tail) - a * (np.maximum(-cells, 0.0) + tail) + c
        elif form == BETA:
            inside = np.minimum(np.maximum(cells, CLIP), 1.0 - CLIP)
            values = a * libm.log(inside) - b * libm.log1p(-inside) + c
        elif form == IDENTITY and not self.odds:
            values = _sigmoid(cells, libm)
        else:
            values = cells
            if not self.margin:
                inside = np.minimum(np.maximum(cells, CLIP), 1.0 - CLIP)
                values = libm.log(inside / (1.0 - inside))
            if form == AFFINE:
                values = a * values + b
        values = np.maximum(values, LOWEST)
        return _sigmoid(values, libm) if to_probability and self.odds else values


def _sigmoid(odds: Floats, libm: _Library) -> Floats:
    small = libm.exp(-np.abs(odds))
    return np.asarray(np.where(odds >= 0.0, 1.0, small) / (1.0 + small))


class _Library(NamedTuple):
    exp: Callable[[Floats], Floats]
    log: Callable[[Floats], Floats]
    log1p: Callable[[Floats], Floats]
    log1p_exp: Callable[[Floats], Floats]


def _log1p_exp(cells: Floats) -> Floats:
    return np.asarray(np.logaddexp(cells, 0.0))


NUMPY = _Library(np.exp, np.log, np.log1p, _log1p_exp)


@cache
def _c_library() -> _Library:
    """Functions that round as the C library's do.

    NumPy has vectorised functions for some processors, which differ from the C library in a few of
    a hundred numbers, so a thousand probes detect them.
    """
    below = -np.concatenate([np.geomspace(1e-9, 700.0, 1000), [0.0]])
    inside = np.linspace(CLIP, 1.0 - CLIP, 1001)
    return _Library(
        _same(NUMPY.exp, math.exp, below),
        _same(NUMPY.log, math.log, np.concatenate([inside, inside / (1.0 - inside)])),
        _same(NUMPY.log1p, math.log1p, -inside),
        _same(NUMPY.log1p_exp, lambda cell: math.log1p(math.exp(cell)), below),
    )


def _same(
    theirs: Callable[[Floats], Any], exact: Callable[[float], float], probes: Floats
) -> Callable[[Floats], Floats]:
    """NumPy's function if it equals Python's on the probes, else Python's."""

    def each(cells: Floats) -> Floats:
        return np.fromiter(map(exact, cells.ravel().tolist()), np.float64, cells.size).reshape(
            cells.shape
        )

    return theirs if np.array_equal(theirs(probes), each(probes)) else each


def _parts(rows: np.ndarray, missing: NDArray[np.bool_] | None) -> Any:
    """Rows in blocks that fit the cache, as float64, with 0.0 for -0.0 and missing cells."""
    size = max(1, CELLS // rows.shape[1])
    for first in range(0, len(rows), size):
        part = slice(first, first + size)
        cells = rows[part] + np.float64(0.0)
        if missing is not None:
            cells[missing[part]] = 0.0
        yield part, cells


def _contenders(
    values: Floats, places: int, slack: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of cells that may be in the top, if values have an error of ``slack``.

    At least k cells reach the k-th highest minus the slack; cells below that by another slack are
    not among the top. NaN is no candidate; rows with too few candidates keep all of them.
    """
    kth = np.partition(-values, places - 1, axis=1)[:, places - 1]
    is_short = np.isnan(kth)
    with np.errstate(invalid="ignore"):  # -inf minus the slack
        mask = values >= np.where(np.isinf(kth), -kth, -kth - 2.0 * slack)[:, None]
    if is_short.any():
        mask[is_short] = ~np.isnan(values[is_short])
    rows, columns = np.nonzero(mask)
    return rows, columns


def _best(
    values: Floats,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    k: int,
) -> NDArray[np.int32]:
    """Columns of the k highest of these cells per row; -1 in empty slots."""
    order = np.lexsort((-values[rows, columns], rows))  # stable, so ties stay in column order
    rows, columns = rows[order], columns[order]
    place = np.arange(rows.size) - np.searchsorted(rows, rows)
    inside = place < k
    columns = columns[inside]
    out = np.full((len(values), k), -1, np.int32)
    out[rows[inside], place[inside]] = columns
    return out


def _rank(maps: _Maps, cells: Floats, values: Floats, k: int) -> NDArray[np.int32]:
    """Columns of the k highest values of each row, which become exact; -1 in empty slots."""
    rows, columns = _contenders(values, min(k, values.shape[1]), maps.slack)
    maps.refine(cells, values, rows, columns)
    return _best(values, rows, columns, k)


def _relabel(columns: NDArray[np.int32], labels: NDArray[np.int64]) -> NDArray[np.int32]:
    """Labels of columns; -1 stays."""
    return np.asarray(np.where(columns < 0, -1, labels[columns]), np.int32)


def _list(
    rule: ListRule,
    maps: _Maps,
    cells: Floats,
    hidden: NDArray[np.bool_] | None,
    groups: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Columns to show of each row; -1 in the slots after a list."""
    values, probabilities = maps.values(cells, hidden), maps.probabilities(cells, hidden)
    if hidden is not None:
        values[hidden] = probabilities[hidden] = np.nan
    if maps.thresholds is not None:
        cutoffs = np.maximum(maps.thresholds, rule.levels[groups][:, None])
        values[~(probabilities >= cutoffs)] = np.nan
        return _rank(maps, cells, values, rule.k_max)
    columns = _rank(maps, cells, values, rule.k_max)
    slot_probabilities = np.take_along_axis(
        probabilities, np.maximum(columns, 0).astype(np.int64), axis=1
    )
    slot_probabilities[columns < 0] = np.nan
    lengths = rule.lengths(slot_probabilities, units_of(probabilities).sum(axis=1), groups)
    return np.where(np.arange(rule.k_max) >= lengths[:, None], np.int32(-1), columns)
