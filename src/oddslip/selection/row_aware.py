"""The row-aware stage behind a chosen repair: fitted out of fold, and used where it surely gains.

The maps are the hierarchical ones. A row in fold f is described by maps and co-occurrences of the
other folds, so that no row is described by its own labels. Coefficients are fitted on the best
`DEPTH` cells of a sample of rows. The stage that ranks fold f has coefficients of the other folds.

One pass collects the true labels of each row, one the cells of the sample, and one ranks all rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit

from oddslip.calibrators.policy import DeadLabelPolicy, find_prior, find_unobservable
from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Panel
from oddslip.core.passes import Passes
from oddslip.core.row_ids import sample_keys
from oddslip.core.tally import MergeableTally, TallyGroup
from oddslip.core.types import Array, Bools, Floats, Ints
from oddslip.metrics.at_k import Scoring
from oddslip.repairs.label_record import LabelRecord
from oddslip.repairs.maps import LabelMaps, rank_values
from oddslip.repairs.row_aware import RowAwareMaps, add_stage, relate_labels
from oddslip.repairs.row_stage import RowStage
from oddslip.selection.candidates import HIERARCHICAL, RAW, Candidate
from oddslip.selection.folds import FoldAssignment
from oddslip.selection.trials import Trials, TrialTally
from oddslip.sources import Source
from oddslip.sources.views import take_rows

ROW_AWARE = Candidate("row_aware")
DEPTH = 50  # best cells of a row that coefficients are fitted on
MAX_ROWS = 20_000  # rows that coefficients are fitted on
RIDGE = 10.0  # penalty of standardised coefficients, in cells
MIN_SLOPE = -0.9  # of the stage; it must not turn the order of scores round
MAX_LABELS = 5_000  # lifts of all pairs are computed
MAX_PAIRS = 50_000_000  # pairs of labels that are true in one row, over all rows
MAX_REPEATED_CELLS = 3_000_000  # above, the stage is tried on the first folds alone
SEED = 20240301  # of the sample of rows; any number does


class StageTrial(NamedTuple):
    """The stage fitted on all rows, and what it is worth out of fold.

    Parameters
    ----------
    maps, record
        Of the repair with the stage.
    trials : Trials
        Of raw, the chosen repair and the stage.
    """

    maps: RowAwareMaps
    record: LabelRecord
    trials: Trials

    @property
    def place(self) -> int:
        """The place of the stage among the candidates of the trials."""
        return len(self.trials.candidates) - 1

    def gain(self) -> tuple[float, float]:
        """What it has over the chosen repair, and the standard error of that."""
        return self.trials.lead(self.place, self.place - 1)

    def passes(self, guard: float) -> bool:
        """Whether it gains more than so many standard errors, and has the better mean than raw."""
        if guard == -np.inf:
            return True
        gain, error = self.gain()
        return gain > guard * error and bool(self.trials.gains()[0][self.place] > 0)


def can_try_stage(trials: Trials) -> bool:
    """Whether labels are neither too few nor too many, and hierarchical maps were fitted."""
    return 2 < trials.fits.source.n_labels <= MAX_LABELS and HIERARCHICAL in trials.candidates


def try_stage(
    trials: Trials,
    chosen: int,
    folds: Sequence[FoldAssignment],
    scoring: Scoring,
    policy: DeadLabelPolicy,
) -> Passes[StageTrial | None]:
    """Fit the stage and compare it with the chosen candidate out of fold.

    Parameters
    ----------
    trials : Trials
        With hierarchical maps among the candidates.
    chosen : int
        Place of the chosen candidate.
    folds : sequence of FoldAssignment
        Those of the trials.
    scoring, policy
        As in `oddslip.selection.trials.try_candidates`.

    Returns
    -------
    StageTrial or None
        None where too many labels are true together to count their pairs.
    """
    source = trials.fits.source
    if source.n_rows * source.n_labels > MAX_REPEATED_CELLS:
        folds = folds[:1]
    base = trials.candidates.index(HIERARCHICAL)
    positives = (yield PositiveRows(folds)).result()
    if positives.n_pairs > MAX_PAIRS:
        return None
    counts = [positives.count_pairs(repeat, source.n_labels) for repeat in range(len(folds))]
    described = [
        [_describe(maps[base], pairs.without(fold)) for fold, maps in enumerate(trials.fitted[at])]
        for at, pairs in enumerate(counts)
    ]
    share = min(1.0, MAX_ROWS / source.n_rows)
    tallies = [
        CellTally(maps, assignment, share)
        for maps, assignment in zip(described, folds, strict=True)
    ]
    cells = [each.result() for each in (yield TallyGroup(tallies)).tallies]
    stages = [
        [_refit(maps, each, fold) for fold, maps in enumerate(by_fold)]
        for by_fold, each in zip(described, cells, strict=True)
    ]
    candidates = (RAW, *(each for each in (trials.candidates[chosen],) if each != RAW))
    places = [trials.candidates.index(each) for each in candidates]
    hidden = _find_unobservable(source, policy)
    ranked = [
        [
            [_without(each, hidden) for each in (*(maps[place] for place in places), stage)]
            for maps, stage in zip(trials.fitted[at], stages[at], strict=True)
        ]
        for at in range(len(folds))
    ]
    propensities = scoring.propensities_for(source.label_counts(), source.n_rows)
    scored = replace(scoring, k=trials.k, propensities=propensities)
    total, by_fold = (yield TrialTally(ranked, folds, 0, scored)).result()
    maps, record = trials.fits.fit(HIERARCHICAL, None)
    return StageTrial(
        _refit(_describe(maps, counts[0].without(None)), cells[0], None),
        record,
        replace(
            trials,
            candidates=(*candidates, ROW_AWARE),
            n_repeats=len(folds),
            total=total,
            by_fold=by_fold,
        ),
    )


def _describe(maps: LabelMaps, relations: tuple[Any, Floats, Floats]) -> RowAwareMaps:
    """Maps with a stage that knows the partners of labels and has no coefficients yet."""
    return add_stage(maps, RowStage(0.0, 0.0, 0.0, *relations))


def _refit(maps: RowAwareMaps, cells: Cells, left_out: int | None) -> RowAwareMaps:
    slope, intercept, support = fit_coefficients(cells.without(left_out))
    stage = maps.stage._replace(slope=slope, intercept=intercept, support=support)
    return replace(maps, stage=stage)


def _find_unobservable(source: Source, policy: DeadLabelPolicy) -> Bools:
    """Labels that no row can tell about, which trials leave out."""
    counts, totals = source.label_counts(), source.totals() if source.partial else source.n_rows
    prior = find_prior(policy.prior, counts, totals)
    labels = find_unobservable(LabelTotals.alike(counts, totals), *prior)
    return np.zeros_like(labels) if labels.all() else labels


def _without(maps: LabelMaps, labels: Bools) -> LabelMaps:
    return maps.without(labels) if labels.any() else maps


# ----------------------------------------------------------------------------- labels of one row


class PairCounts(NamedTuple):
    """Rows in which two labels are true, and the number of rows: of all, and fold by fold."""

    together: Any
    n_rows: float
    by_fold: list[Any]
    n_rows_by_fold: list[float]

    def without(self, left_out: int | None) -> tuple[Any, Floats, Floats]:
        """Partners, lifts and prevalences of all rows but those of one fold."""
        together, n_rows = self.together, self.n_rows
        if left_out is not None:
            together, n_rows = (
                together - self.by_fold[left_out],
                n_rows - self.n_rows_by_fold[left_out],
            )
        return relate_labels(together.tocsr(), n_rows)


class RowLabels(NamedTuple):
    """True labels of all rows, with the folds and the weight of each row; the mean weight is 1."""

    counts: Ints
    labels: Ints
    folds: Ints
    weights: Floats

    @property
    def n_pairs(self) -> int:
        """Pairs of labels that are true in one row."""
        return int((self.counts.astype(np.int64) ** 2).sum())

    def count_pairs(self, repeat: int, n_labels: int) -> PairCounts:
        """Co-occurrences in the folds of a repeat."""
        indptr = np.append(0, np.cumsum(self.counts))
        table = csr_matrix(
            (np.ones(self.labels.size), self.labels, indptr), (self.counts.size, n_labels)
        )
        numbers = self.folds[:, repeat]
        by_fold, n_rows = [], []
        for fold in range(int(numbers.max()) + 1):
            inside = np.flatnonzero(numbers == fold)
            part, weights = table[inside], self.weights[inside]
            by_fold.append((part.T @ part.multiply(weights[:, None])).tocsr())
            n_rows.append(float(weights.sum()))
        return PairCounts(sum(by_fold[1:], by_fold[0]), math.fsum(n_rows), by_fold, n_rows)


class PositiveRows(MergeableTally):
    """The true labels of every row, its folds and its weight.

    Parameters
    ----------
    folds : sequence of FoldAssignment
        One for each repeat.
    """

    JOINED: ClassVar = dict.fromkeys(("_counts", "_labels", "_folds", "_weights"), "append")
    blocks_apart = 1

    def __init__(self, folds: Sequence[FoldAssignment]) -> None:
        self.folds = tuple(folds)
        self._counts: list[Array] = []
        self._labels: list[Array] = []
        self._folds: list[Array] = []
        self._weights: list[Array] = []

    def add(self, panel: Panel) -> None:
        """Take the labels of one block."""
        positives, weight = panel.positives(), panel.sample_weight
        self._counts.append(np.asarray(positives.counts, np.int64))
        self._labels.append(np.array(positives.indices, np.int32))
        self._folds.append(np.stack([each.of(panel) for each in self.folds], axis=1))
        self._weights.append(np.ones(panel.n_rows) if weight is None else weight.times)

    def result(self) -> RowLabels:
        """All rows."""
        parts = (self._counts, self._labels, self._folds, self._weights)
        counts, labels, folds, weights = map(np.concatenate, parts)
        return RowLabels(counts, labels, folds, weights / weights.mean())


# --------------------------------------------------------------------------------- coefficients


class Cells(NamedTuple):
    """Cells of the sample: log-odds and support out of fold, truth, weight and fold."""

    log_odds: Floats
    support: Floats
    truth: Floats
    weight: Floats
    fold: Ints

    def without(self, left_out: int | None) -> Cells:
        """The cells of all rows but those of one fold."""
        return self if left_out is None else Cells(*(each[self.fold != left_out] for each in self))


class CellTally(MergeableTally):
    """The best cells of a sample of rows, described by the folds that they do not belong to.

    Parameters
    ----------
    maps : list of RowAwareMaps
        By fold.
    folds : FoldAssignment
    share : float
        Share of the rows to sample, by their keys.
    """

    JOINED: ClassVar = {"_cells": "append"}
    blocks_apart = 1

    def __init__(self, maps: list[RowAwareMaps], folds: FoldAssignment, share: float) -> None:
        self.maps, self.folds, self.share = maps, folds, share
        self._cells: list[Floats] = []

    def add(self, panel: Panel) -> None:
        """Take the cells of one block."""
        numbers = self.folds.of(panel)
        sampled = sample_keys(panel.row_keys(), self.share, seed=SEED)
        positives = panel.positives()
        for fold, maps in enumerate(self.maps):
            rows = np.flatnonzero(sampled & (numbers == fold))
            if rows.size:
                part = take_rows(panel, rows, positives.take(rows))
                self._cells.append(_best_cells(maps, part, fold))

    def result(self) -> Cells:
        """The cells, in the order of the rows."""
        table = np.concatenate([np.empty((0, 5)), *self._cells])
        log_odds, support, truth, weight, fold = np.ascontiguousarray(table.T)
        return Cells(log_odds, support, truth, weight, fold.astype(np.int64))


def _best_cells(maps: RowAwareMaps, panel: Panel, fold: int) -> Floats:
    log_odds, support = maps.find_parts(panel)
    best = rank_values(log_odds, panel, min(DEPTH, panel.n_labels))
    weight = panel.sample_weight
    weights = np.ones(panel.n_rows) if weight is None else weight.times
    columns = [
        np.take_along_axis(each, best, axis=1) for each in (log_odds, support, panel.truths())
    ]
    columns += [np.broadcast_to(weights[:, None], best.shape), np.full(best.shape, float(fold))]
    table = np.stack([each.reshape(-1) for each in columns], axis=1)
    return table[np.isfinite(table[:, 0]) & (best.reshape(-1) >= 0)]


def fit_coefficients(cells: Cells) -> tuple[float, float, float]:
    """Slope, intercept and coefficient of the support, by Newton's method with a ridge.

    Zeros where there are no cells or the fit does not end.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, s = rng.normal(size=(2, 4000))
    >>> truth = (rng.random(4000) < expit(z + 0.5 * s)).astype(float)
    >>> cells = Cells(z, s, truth, np.ones(4000), np.zeros(4000, int))
    >>> np.round(fit_coefficients(cells), 1).tolist()
    [0.0, -0.0, 0.5]
    """
    if not cells.truth.size:
        return 0.0, 0.0, 0.0
    features = np.column_stack([cells.log_odds, cells.support])
    weight = cells.weight / cells.weight.mean()
    centre, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-9)
    table = np.column_stack([np.ones(len(features)), (features - centre) / scale])
    penalty = np.array([1e-6, RIDGE, RIDGE])
    coefficients = np.zeros(3)

    def loss(at: Floats) -> float:
        odds = cells.log_odds + table @ at
        entropy = np.maximum(odds, 0) + np.log1p(np.exp(-np.abs(odds))) - odds * cells.truth
        return float(weight @ entropy + penalty @ at**2 / 2)

    before = loss(coefficients)
    for _ in range(50):
        chance = expit(cells.log_odds + table @ coefficients)
        gradient = table.T @ (weight * (chance - cells.truth)) + penalty * coefficients
        curvature = (table * (weight * chance * (1 - chance))[:, None]).T @ table
        step = np.linalg.solve(curvature + np.diag(penalty), gradient)
        if np.abs(step).max() < 1e-7:
            coefficients = coefficients - step
            break
        after = loss(coefficients - step)
        while after > before and np.abs(step).max() > 1e-9:
            step /= 2
            after = loss(coefficients - step)
        coefficients, before = coefficients - step, after
    slope, support = coefficients[1:] / scale
    if not (np.isfinite(coefficients).all() and slope > MIN_SLOPE):
        return 0.0, 0.0, 0.0
    intercept = coefficients[0] - centre @ (coefficients[1:] / scale)
    return float(slope), float(intercept), float(support)
