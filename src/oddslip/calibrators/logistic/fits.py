"""Offset, Platt, temperature and beta fits of every label of a source at once.

Maximum likelihood in float64 without shrinkage. A source is usually read three times: for the range
of each label's scores, for a summary of them on which the fit is solved, and for an exact Newton
step from there. With a `Summary` in place of a source, the optimum on the summary is the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.logistic.moments import Cells, Model, Summary
from oddslip.calibrators.logistic.newton import descend, find_roots
from oddslip.core.labels import LabelTotals
from oddslip.core.passes import Passes
from oddslip.core.types import Bools, Floats
from oddslip.core.types import Ints as Indices
from oddslip.errors import InvalidInput
from oddslip.kernels.maps import AFFINE, BETA
from oddslip.kernels.newton import STEEPEST
from oddslip.sources import Source

SUMMARY_ROUNDS = 200
EXACT_ROUNDS = 100
FAR = 1e5  # log-odds beyond which their mean has no digits left for cells near 0
UNRESOLVED = 1e-6  # share of a label's range that its summary cannot resolve
VANISHING = 1e-10  # slopes that move no logit by more than this count as 0


class Status(IntEnum):
    """Outcome of the fit of a label."""

    FITTED = 0
    NO_POSITIVE = 1
    NO_NEGATIVE = 2
    SEPARABLE = 3
    NOT_INCREASING = 4
    NOT_CONVERGED = 5


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """The logit of the probability of each label, as a map of its score s.

    If ``code`` is AFFINE of `oddslip.kernels.maps`, it is ``a`` x log-odds of s + ``b``, and c is
    0; if it is BETA, ``a`` ln s - ``b`` ln(1 - s) + ``c``. ``status`` holds a `Status` code per
    label, ``label_totals`` its positives, ``n_passes`` the passes over the source.
    """

    code: int
    a: Floats
    b: Floats
    c: Floats
    status: NDArray[np.int8]
    label_totals: LabelTotals
    n_passes: int


def fit_affine(
    source: Source | Summary,
    *,
    slope: bool,
    intercept: bool,
    shared: bool = False,
    near: LogisticFit | None = None,
    summary: Summary | None = None,
) -> Passes[LogisticFit]:
    """Fit P(true) = sigmoid(a z + b) for every label, z being the log-odds of the score.

    Probabilities are clipped to [1e-12, 1 - 1e-12]. ``status`` says what was not fitted:

    - no positive, or no negative: a = 1, b = 0.
    - SEPARABLE: every positive scores at least as high as every negative (constant scores
      included), or nearly, so that no finite slope is best in float64; a = 1 and b is the
      offset fit. Without an intercept, 0 separates them, and b = 0.
    - NOT_INCREASING: the best slope is not positive; a = 0 and b is the log-odds of the
      label's prevalence, with or without an intercept.
    - NOT_CONVERGED: treated as separable.

    Parameters
    ----------
    source : Source or Summary
        Rows with labels.
    slope, intercept : bool
        What to fit: both is Platt scaling, the intercept alone an offset (a = 1), the slope
        alone a temperature (a = 1 / T, b = 0).
    shared : bool
        Whether to make one fit over the cells of all labels. Labels without a positive or a
        negative share it, but have their own status.
    near : LogisticFit, optional
        A fit of similar rows to start from on the summary, which saves time.
    summary : Summary, optional
        Of the rows of the source, which saves two passes.

    Returns
    -------
    LogisticFit

    Examples
    --------
    >>> from oddslip.core.passes import run
    >>> from oddslip.sources import open_source
    >>> source = open_source([[0.8], [0.8], [0.8], [0.8], [0.2]], [[1], [0], [1], [0], [0]])
    >>> run(source, fit_affine(source, slope=False, intercept=True)).b.round(3)
    array([-1.442])
    """
    if not (slope or intercept):
        raise InvalidInput("slope or intercept must be fitted, got slope=False, intercept=False.")
    cells = yield from Cells.read(_labelled(source), shared, summary)
    start = None if near is None else (near.a[None], near.b, near.status)
    slopes, b, status = yield from _fit(cells, "affine", slope, intercept, start)
    return _result(AFFINE, cells, slopes[0], b, np.zeros_like(b), status)


def fit_beta(
    source: Source | Summary, *, near: LogisticFit | None = None, summary: Summary | None = None
) -> Passes[LogisticFit]:
    """Fit logit P(true) = a ln s - b ln(1 - s) + c with a, b >= 0 for every label.

    Beta calibration (Kull, Silva Filho and Flach 2017). The likelihood is maximised among the
    non-decreasing maps: a coefficient that would be negative is 0 and the others are fitted
    without it. Scores are clipped to [1e-12, 1 - 1e-12]; for margins both logarithms come from
    the margin itself. ``status`` as in `fit_affine`: SEPARABLE means a = b = 1 with the
    offset fit, NOT_INCREASING a = b = 0 with the log-odds of the prevalence; a label with no
    positive or no negative gets a = b = 1, c = 0. Where scores take two values only, many a
    and b fit equally well, and one such pair is returned.

    Parameters
    ----------
    source : Source or Summary
        Rows with labels.
    near, summary
        As in `fit_affine`.

    Returns
    -------
    LogisticFit

    Examples
    --------
    >>> from oddslip.core.passes import run
    >>> from oddslip.sources import open_source
    >>> source = open_source([[0.1], [0.3], [0.5], [0.7], [0.9]], [[0], [1], [0], [1], [1]])
    >>> fit = run(source, fit_beta(source))
    >>> fit.a.round(2), fit.b.round(2), fit.c.round(2)
    (array([0.77]), array([1.74]), array([-0.13]))
    """
    cells = yield from Cells.read(_labelled(source), summary=summary)
    start = None if near is None else (np.stack([near.a, near.b]), near.c, near.status)
    slopes, c, status = yield from _fit(cells, "beta", True, True, start)
    return _result(BETA, cells, slopes[0], slopes[1], c, status)


def _labelled(source: Source | Summary) -> Source | Summary:
    if isinstance(source, Source) and not source.has_labels:
        raise InvalidInput("labels are needed to fit, got scores alone. Pass labels as well.")
    return source


def _result(
    code: int, cells: Cells, a: Floats, b: Floats, c: Floats, status: NDArray[np.int8]
) -> LogisticFit:
    return LogisticFit(code, a, b, c, status, cells.label_totals, cells.n_passes)


def _fit(
    cells: Cells,
    form: Literal["affine", "beta"],
    slope: bool,
    intercept: bool,
    near: tuple[Floats, Floats, NDArray[np.int8]] | None,
) -> Passes[tuple[Floats, Floats, NDArray[np.int8]]]:
    """Slopes, intercept and status of every label."""
    status = _first_statuses(cells, slope, intercept)
    n_labels = cells.source.n_labels
    slopes, offset = np.ones((1 if form == "affine" else 2, n_labels)), np.zeros(n_labels)
    live = np.flatnonzero(np.isin(status, (Status.FITTED, Status.SEPARABLE)))
    if cells.summary is None and not cells.shared and 0 < 2 * live.size <= n_labels:
        # Most labels have no positive, or no negative: only the others need a summary.
        part = cells.of_labels(live)
        part_near = None if near is None else (near[0][:, live], near[1][live], near[2][live])
        fitted = yield from _fit(part, form, slope, intercept, part_near)
        slopes[:, live], offset[live], status[live] = fitted
        cells.n_passes = part.n_passes
    elif live.size:
        yield from cells.summarise()
        model = Model(cells, form, centered=intercept)
        theta = model.identity()
        if slope:
            start = None if near is None or cells.shared else model.parameters(*near[:2])
            usable = None if near is None else near[2] == Status.FITTED
            yield from _fit_slopes(model, intercept, theta, status, start, usable)
        if intercept:
            statuses = (Status.SEPARABLE, Status.NOT_CONVERGED) if slope else (Status.FITTED,)
            fits = np.flatnonzero(np.isin(status, statuses))
            yield from _fit_offsets(model, fits, theta, status)
        each_slope, each_offset = model.coefficients(theta)
        slopes, offset = each_slope + np.zeros((1, n_labels)), each_offset + np.zeros(n_labels)
    label_status = np.broadcast_to(status, n_labels).copy()
    label_status[cells.label_positives == 0] = Status.NO_POSITIVE
    label_status[cells.never_negative] = Status.NO_NEGATIVE
    return slopes, offset, label_status


def _first_statuses(cells: Cells, slope: bool, intercept: bool) -> NDArray[np.int8]:
    """The statuses that follow from counts and ranges."""
    status = np.full(cells.n_positives.size, Status.FITTED, np.int8)
    if slope:
        if intercept:
            separable = cells.negative_high <= cells.positive_low
        else:
            separable = (cells.negative_high <= 0) & (cells.positive_low >= 0)
            separable |= (cells.low == 0) & (cells.high == 0)
        status[separable] = Status.SEPARABLE
    status[cells.n_positives == 0] = Status.NO_POSITIVE
    status[cells.n_positives == cells.n_cells] = Status.NO_NEGATIVE
    return status


def _fit_slopes(
    model: Model,
    intercept: bool,
    theta: Floats,
    status: NDArray[np.int8],
    near: Floats | None = None,
    usable: Bools | None = None,
) -> Passes[None]:
    """Set the parameters of the fits, starting from slope 0 or from ``near``."""
    fits = np.flatnonzero(status == Status.FITTED)
    if not fits.size:
        return
    prior = model.cells.prior_log_odds()[fits]
    start = np.zeros((len(theta), fits.size))
    start[0] = prior if intercept else 0
    first = start
    if near is not None and usable is not None:
        first = np.where(usable[fits], near[:, fits], start)
    exact, converged = model.descend(first, fits, intercept=intercept, rounds=SUMMARY_ROUNDS)
    if model.cells.exact:
        # If all cells are in a few bins the summary misleads; then restart on the cells.
        rough = model.recenter(exact, fits)
        search = descend(rough, start, intercept=intercept, rounds=EXACT_ROUNDS)
        exact, converged = yield from model.solve_exactly(search, fits)
    flat = (exact[1:] <= VANISHING).all(axis=0)
    exact[1:, flat] = 0
    exact[0, flat] = prior[flat]
    steep = (exact[1:] > STEEPEST).any(axis=0)
    status[fits[flat]] = Status.NOT_INCREASING
    status[fits[~flat & ~converged]] = Status.NOT_CONVERGED
    status[fits[steep]] = Status.SEPARABLE
    fitted = flat | (converged & ~steep)
    theta[:, fits] = np.where(fitted, exact, model.identity()[:, fits])


def _fit_offsets(
    model: Model, fits: Indices, theta: Floats, status: NDArray[np.int8]
) -> Passes[None]:
    """Set the intercept at slope 1: the mean probability must equal the prevalence."""
    if not fits.size:
        return
    cells = model.cells
    far = np.maximum(np.abs(cells.low), np.abs(cells.high))[fits] > FAR
    if far.any():
        model.measure_from_zero(fits[far])
        theta[:, fits[far]] = model.identity()[:, fits[far]]
    start = theta[:, fits]
    middle = start[0].copy()
    prior = cells.prior_log_odds()[fits]
    low, high = middle + prior - cells.high[fits], middle + prior - cells.low[fits]
    start[0] = np.clip(prior, low, high)
    ends = np.stack([low, high])
    start, converged = model.find_levels(start, fits, ends, rounds=SUMMARY_ROUNDS)
    if cells.exact:
        unresolved = far & (np.abs(start[0] - middle) < UNRESOLVED * (high - low))
        start[0] = np.where(unresolved, np.clip(prior, low, high), start[0])
        search = find_roots(start, low, high, rounds=EXACT_ROUNDS)
        start, converged = yield from model.solve_exactly(search, fits)
    theta[0, fits] = start[0]
    status[fits[~converged]] = Status.NOT_CONVERGED
