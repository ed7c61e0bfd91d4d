"""`LabelMaps`: a map of scores to calibrated values for every label.

Ranking sweeps at *levels*, which are chosen from a sample of rows and turned into keys of each
label, see `oddslip.kernels.fused`. They affect the speed of ranking, never the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.core.panel import Kind, Panel, SparsePanel, check_k
from oddslip.core.types import Array, Bools, Floats, Ints, LabelsLike, ScoresLike
from oddslip.errors import InvalidInput
from oddslip.repairs.map_forms import (
    PER_LABEL,
    Scale,
    check_maps,
    compared_constants,
)

SAMPLE = 64  # rows from which levels are chosen
PATIENCE = 128  # rows after which choosing levels pays off
MAX_CHOICES = 8
STRETCH = 256 * 1024  # bytes of keys computed at a time, if keys are not a view of the scores


class Levels(NamedTuple):
    """Descending levels, the keys of each label at each level, and the levels to sweep at."""

    taus: Floats
    ladder: Array
    sweeps: Ints
    sieves: Array


@dataclass(slots=True)
class _Memory:
    """Levels by dtype of the scores and k, and the numbers of choices and rows so far.

    ``guide`` are maps with similar values, whose levels serve as well.
    """

    guide: LabelMaps | None = None
    levels: dict[tuple[np.dtype[Any], int], Levels] = field(default_factory=dict)
    n_choices: int = 0
    n_rows: int = 0


@dataclass(frozen=True, eq=False)
class LabelMaps:
    """Non-decreasing maps of scores to calibrated values, one per label.

    Parameters
    ----------
    kind : {"probability", "margin"}
        Scale of the scores.
    scale : {"probability", "log_odds"}
        Scale of the values, on which labels are compared.
    code : array of int8, shape (n_labels,)
        Form of each map: ``KNOTS``, ``AFFINE``, ``BETA``, ``CONSTANT``, ``IDENTITY`` or
        ``EXCLUDED`` of `oddslip.kernels.maps`. Knots need the scale "probability"; affine and
        beta maps need "log_odds".
    a, b, c : arrays of float64, shape (n_labels,)
        Affine: a z + b with z the log-odds of the score. Beta: a ln(s) - b ln(1 - s) + c.
        Constant: the probability a. Zero where unused.
    start, stop : arrays of int64, shape (n_labels,)
        A label's knots are ``x[start:stop]`` and ``y[start:stop]``; labels may share them.
    x, y : arrays of float64
        Scores, ascending, and their probabilities, not descending.
    step : bool
        Whether maps jump at their knots instead of being linear between them.

    Examples
    --------
    A label with knots, and a dead label at its prior.

    >>> maps = LabelMaps(
    ...     "probability", "probability", code=[0, 3], a=[0, 0.3], b=[0, 0], c=[0, 0],
    ...     start=[0, 0], stop=[2, 0], x=[0.2, 0.8], y=[0.0, 0.6],
    ... )
    >>> maps.transform_panel(Panel([[0.4, 0.9], [0.7, 0.1]]))
    array([[0.2, 0.3],
           [0.5, 0.3]])
    >>> maps.rank_panel(Panel([[0.4, 0.9], [0.7, 0.1]]), k=1)
    array([[1],
           [0]], dtype=int32)
    """

    kind: Kind
    scale: Scale
    code: NDArray[np.int8]
    a: Floats
    b: Floats
    c: Floats
    start: Ints
    stop: Ints
    x: Floats
    y: Floats
    step: bool = False
    _knots: Floats = field(init=False, repr=False)
    _constants: Floats = field(init=False, repr=False)
    _memory: _Memory = field(init=False, repr=False, default_factory=_Memory)

    def __post_init__(self) -> None:
        types = {"code": np.int8, "start": np.int64, "stop": np.int64}
        for name in (*PER_LABEL, "x", "y"):
            array = np.ascontiguousarray(getattr(self, name), types.get(name, np.float64))
            object.__setattr__(self, name, array)
        check_maps(self)
        object.__setattr__(self, "_knots", self._lay_knots())
        object.__setattr__(self, "_constants", compared_constants(self))

    def _lay_knots(self) -> Floats:
        """As `oddslip.repairs.map_forms.lay_knots`, compiled: a fold may have millions."""
        from oddslip.kernels.maps import KNOTS, fill_knots

        is_last = np.full(self.x.size, self.step)
        is_last[-1:] = True
        is_last[self.stop[self.code == KNOTS] - 1] = True
        knots = np.empty((self.x.size, 4))
        fill_knots(self.x, self.y, is_last, knots)
        return knots

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.code.size)

    def take(self, labels: LabelsLike) -> LabelMaps:
        """The maps of some labels, in this order."""
        at = np.asarray(labels, np.int64)
        arrays = {name: getattr(self, name)[at] for name in PER_LABEL}
        return LabelMaps(self.kind, self.scale, **arrays, x=self.x, y=self.y, step=self.step)

    def without(self, labels: Bools) -> LabelMaps:
        """The same maps with these labels excluded, which ranks them last."""
        from oddslip.kernels.maps import EXCLUDED

        codes, a, b, c = (
            np.where(labels, value, getattr(self, name))
            for name, value in (("code", EXCLUDED), ("a", 0.0), ("b", 0.0), ("c", 0.0))
        )
        return replace(self, code=codes, a=a, b=b, c=c)

    def values(self, panel: Panel) -> Floats:
        """Values by which labels are compared; -inf if excluded, NaN if absent."""
        return self._map(panel, np.float64, to_probability=False)

    def transform_panel(self, panel: Panel, dtype: Any = None) -> Array:
        """Calibrated probabilities, by default in the dtype of the scores.

        Excluded labels have 0, absent cells NaN.
        """
        dtype = np.dtype(panel.dtype if dtype is None else dtype)
        if dtype not in (np.float32, np.float64):
            raise InvalidInput(f"dtype must be float32 or float64, got {dtype}.")
        return self._map(panel, dtype, to_probability=True)

    def rank_panel(self, panel: Panel, k: int) -> NDArray[np.int32]:
        """The k labels of highest value of every row; ties go to the lower label.

        -1 where fewer labels are present.
        """
        self._check_panel(panel)
        k = check_k(k, self.n_labels)
        if isinstance(panel, SparsePanel):
            return self._rank_listed(panel.checked(), k)
        levels = self._levels_for(panel, k)
        columns = np.empty((panel.n_rows, k), np.int32)
        n_evaluated = self._rank(panel, k, levels, columns)
        if n_evaluated < 0:
            return self.rank_panel(panel.mended(), k)
        if 4 * n_evaluated > panel.scores.size and levels.sweeps.size:
            # These rows differ from those from which the levels were chosen: choose again.
            self._memory.guide = None
            self._memory.levels.pop((panel.scores.dtype, k), None)
        return columns

    def follow(self, guide: LabelMaps) -> None:
        """Rank by the levels of similar maps, such as those of other folds: choosing is slow.

        The guide chooses its own from the first rows that it ranks.
        """
        if guide is not self:
            self._memory.guide = guide
            guide._memory.n_rows = PATIENCE

    def listed_values(self, panel: SparsePanel) -> Floats:
        """Values by which the listed cells of a checked panel are compared."""
        self._check_panel(panel)
        return self._map_each(panel.cells, panel.positions.indices, to_probability=False)

    def probabilities_at(self, cells: Array, labels: NDArray[np.int32]) -> Floats:
        """Calibrated probabilities of valid scores, each with its label.

        Examples
        --------
        >>> maps = LabelMaps(
        ...     "probability", "log_odds", code=[1, 3], a=[1, 0.3], b=[0, 0], c=[0, 0],
        ...     start=[0, 0], stop=[0, 0], x=[], y=[],
        ... )
        >>> maps.probabilities_at(np.array([0.2, 0.9]), np.array([0, 1])).round(6)
        array([0.2, 0.3])
        """
        return self._map_each(cells, labels, to_probability=True)

    def _map_each(self, cells: Array, labels: NDArray[np.int32], *, to_probability: bool) -> Floats:
        from oddslip.kernels.maps import map_cells

        constants = self.a if to_probability else self._constants
        code, a, b, c, start, stop, x, knots, margin, odds = self._arguments(constants)
        arrays = (each[labels] for each in (code, a, b, c, start, stop))
        values = np.empty((1, labels.size))
        if labels.size:
            row, bounds = np.ascontiguousarray(cells)[None], bounds_of(self.kind, cells.dtype)
            map_cells(row, *arrays, x, knots, margin, odds, *bounds, int(to_probability), values)
        return np.asarray(values[0])

    def _rank_listed(self, panel: SparsePanel, k: int) -> NDArray[np.int32]:
        from oddslip.kernels.fused import rank_lists

        columns = np.empty((panel.n_rows, k), np.int32)
        cells = np.ascontiguousarray(panel.cells)
        rank_lists(*panel.positions, cells, k, *self._arguments(self._constants), columns)
        return columns

    def evaluate(self, scores: Array) -> Floats:
        """Values of valid scores."""
        values = np.empty(scores.shape)
        self._map_scores(scores, values, to_probability=False)
        return values

    def invert(self, targets: Floats, low: float, high: float) -> Floats:
        """Approximately the lowest scores that reach the targets, of shape (any, n_labels)."""
        from oddslip.kernels.fused import invert_maps

        guesses = np.empty(targets.shape)
        invert_maps(targets, *self._arguments(self._constants), low, high, guesses)
        return guesses

    def _check_panel(self, panel: Panel) -> None:
        if panel.kind != self.kind:
            raise InvalidInput(
                f'scores must be of kind "{self.kind}", which these maps were fitted on, '
                f'got "{panel.kind}".'
            )
        if panel.n_labels != self.n_labels:
            raise InvalidInput(
                f"scores must have the n_labels={self.n_labels} labels of these maps, "
                f"got {panel.n_labels}."
            )

    def _arguments(self, constants: Floats) -> tuple[Any, ...]:
        """Arguments of the kernels."""
        arrays = (self.code, constants, self.b, self.c, self.start, self.stop, self.x, self._knots)
        return (*arrays, int(self.kind == "margin"), int(self.scale == "log_odds"))

    def _map(self, panel: Panel, dtype: Any, *, to_probability: bool) -> Array:
        """All cells of a panel, NaN where absent."""
        panel = panel.checked() if panel.absent is not None else panel
        mapped = np.empty((panel.n_rows, panel.n_labels), dtype)
        self._check_panel(panel)
        scores = np.ascontiguousarray(panel.scores)
        if self._map_scores(scores, mapped, to_probability=to_probability):
            panel.mended()  # raises an error that names the first invalid cell
        present = panel.present()
        if present is not None:
            mapped[~present] = np.nan
        return mapped

    def _map_scores(self, scores: ScoresLike, mapped: Array, *, to_probability: bool) -> int:
        """Map cells; returns the number of invalid ones."""
        from oddslip.kernels.maps import map_cells

        arguments = self._arguments(self.a if to_probability else self._constants)
        bounds = bounds_of(self.kind, scores.dtype)
        return int(map_cells(scores, *arguments, *bounds, int(to_probability), mapped))

    def _rank(self, panel: Panel, k: int, levels: Levels, columns: NDArray[np.int32]) -> int:
        """Rank rows; returns the number of evaluated cells, or -1 if a key is above the limit."""
        from oddslip.kernels.fused import rank_cells
        from oddslip.kernels.keys import keys_of

        scores = np.ascontiguousarray(panel.scores)
        limit = levels.ladder.dtype.type(panel.limit)
        arguments = self._arguments(self._constants)
        # Probabilities are their keys. Keys of margins are computed in parts that fit the cache.
        stretch = panel.n_rows
        if self.kind == "margin":
            stretch = max(1, STRETCH // (self.n_labels * scores.itemsize))
        total, absent = 0, panel.absent
        for first in range(0, panel.n_rows, stretch):
            rows = scores[first : first + stretch]
            part = columns[first : first + stretch]
            keys = keys_of(rows, self.kind)
            mask = () if absent is None else absent.rows(first, first + len(rows))
            n_evaluated = int(rank_cells(rows, keys, limit, k, *arguments, *levels, part, *mask))
            if n_evaluated < 0:
                return -1
            total += n_evaluated
        return total

    def _levels_for(self, panel: Panel, k: int) -> Levels:
        """Levels from earlier rows, or chosen from these."""
        memory, dtype = self._memory, panel.scores.dtype
        levels = memory.levels.get((dtype, k))
        if levels is not None:
            return levels
        similar = None if memory.guide is None else memory.guide._memory.levels.get((dtype, k))
        if similar is not None:
            levels = place_levels(self, similar.taus, similar.sweeps, dtype)
            memory.levels[dtype, k] = levels
            return levels
        memory.n_rows += panel.n_rows
        # For large k or few rows, all cells are evaluated.
        if memory.n_rows < PATIENCE or 4 * k > self.n_labels or memory.n_choices >= MAX_CHOICES:
            return no_levels(dtype, self.n_labels)
        if panel.absent is not None:
            panel = panel.checked()
        sample = panel.scores[:: max(1, panel.n_rows // SAMPLE)][:SAMPLE]
        values = np.empty(sample.shape)
        if self._map_scores(np.ascontiguousarray(sample), values, to_probability=False):
            panel.mended()
        memory.n_choices += 1
        levels = choose_levels(self, sample, values, k)
        memory.levels[dtype, k] = levels
        return levels


def rank_values(values: Floats, panel: Panel, k: int) -> NDArray[np.int32]:
    """Top k of every row by values of all cells, or of the listed cells of a sparse panel."""
    from oddslip.kernels.keys import keys_of
    from oddslip.kernels.topk import rank_keys, rank_lists

    # Infinite values have no key: they get those of the largest floats, which no other may have.
    largest = np.finfo(np.float64).max
    limit = np.nextafter(largest, 0.0)
    finite = np.clip(values, -limit, limit)
    values = np.where(np.isinf(values), np.copysign(largest, values), finite)
    if isinstance(panel, SparsePanel) and values.ndim == 1:
        keys = keys_of(values[None], "margin")[0]
        columns: NDArray[np.int32] = rank_lists(*panel.positions, keys, k)[0]
    else:
        columns = rank_keys(keys_of(values, "margin"), k, None, panel.absent)[0]
    return columns


def bounds_of(kind: Kind, dtype: Any) -> tuple[float, float]:
    """The lowest and the highest valid score."""
    top = 1.0 if kind == "probability" else float(np.finfo(dtype).max)
    return (0.0 if kind == "probability" else -top), top


def choose_levels(maps: LabelMaps, scores: Array, values: Array, k: int) -> Levels:
    """Levels around the k-th values of a sample of rows. Needs ``4 * k <= n_labels``."""
    from oddslip.kernels.fused import LEVELS

    places = [-k, -2 * k, -4 * k]
    kth, later, latest = np.partition(values, places, axis=1)[:, places].T
    kth = np.sort(kth)
    taus = np.empty(LEVELS)
    taus[0] = maps.evaluate(
        np.full((1, maps.n_labels), bounds_of(maps.kind, scores.dtype)[1])
    ).max()
    shares = np.linspace(1, 0, LEVELS - 3)
    taus[1:-2] = kth[np.rint(shares * (kth.size - 1)).astype(np.int64)]
    # A row whose k-th value is below those of the sample has it near a later value of the sample.
    taus[-2] = later.min()
    taus[-1] = latest.min()
    np.maximum(taus, np.finfo(np.float64).min, out=taus)
    # Sweep where the cells to evaluate and the rows to sweep again cost least (in nanoseconds).
    collected = np.array([np.count_nonzero(values >= tau) for tau in taus]) / len(values)
    again = np.array([np.mean(kth < tau) for tau in taus])
    cost = 4 * collected + again * (0.5 * maps.n_labels + 4 * collected[-1])
    sweeps = np.array([np.argmin(cost), LEVELS - 1], np.int64)
    return place_levels(maps, taus, sweeps, scores.dtype)


def place_levels(
    maps: LabelMaps, taus: NDArray[np.float64], sweeps: NDArray[np.int64], dtype: np.dtype[Any]
) -> Levels:
    """These levels as keys of every label."""
    keys = _invert(maps, taus, dtype)
    return Levels(taus, np.ascontiguousarray(keys.T), sweeps, keys[sweeps])


def no_levels(dtype: np.dtype[Any], n_labels: int) -> Levels:
    """No levels, so that every cell is evaluated."""
    from oddslip.kernels.keys import UNSIGNED

    none = np.empty((0, n_labels), UNSIGNED[dtype])
    return Levels(np.full(1, np.inf), none, np.empty(0, np.int64), none)


def _invert(maps: LabelMaps, taus: Floats, dtype: np.dtype[Any]) -> Array:
    """Keys below which no cell of a label reaches a level; shape (levels, labels)."""
    from oddslip.kernels.keys import LIMITS, UNSIGNED, keys_of, scores_of

    low, high = bounds_of(maps.kind, dtype)
    unsigned = UNSIGNED[dtype]
    limit = LIMITS[unsigned, maps.kind]
    with np.errstate(over="ignore"):
        targets = taus[:, None] - _slack(maps, taus)
    guesses = maps.invert(targets, low, high)
    nearest = np.clip(guesses, low, high).astype(dtype) + dtype.type(0)
    keys: Array = keys_of(nearest, maps.kind).copy()
    keys[guesses > high] = limit + 1
    # A key is right if the one below does not reach the level. Go down until it is.
    stride = np.ones_like(keys)
    while True:
        below = np.maximum(keys, 1) - unsigned.type(1)
        too_high = (maps.evaluate(scores_of(below, maps.kind)) >= targets) & (keys > 0)
        if not too_high.any():
            return keys
        keys = np.where(too_high, keys - np.minimum(keys, stride), keys)
        stride = np.where(too_high, np.minimum(stride, limit // 2) * unsigned.type(2), stride)


def _slack(maps: LabelMaps, taus: Floats) -> Floats:
    """Upper bound on the error of rounding that can make a map non-monotone. Knots are exact."""
    from oddslip.kernels.maps import AFFINE, BETA, IDENTITY

    size = np.where(np.isfinite(taus), np.abs(taus), 0.0)[:, None]
    if maps.scale == "probability":
        rough = (maps.code == IDENTITY) & (maps.kind == "margin")
        return np.where(rough, 1e-12 * size + 1e-300, 0.0)
    reach = 1.0 + 30.0 * (maps.a + np.abs(maps.b)) + np.abs(maps.c)
    rough = np.isin(maps.code, (AFFINE, BETA, IDENTITY))
    return np.where(rough, 1e-13 * (size + reach), 0.0)
