"""Hierarchical calibrators: logistic maps under one estimated prior, alone or with isotonic."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from oddslip.calibrators.base import SummaryCalibrator
from oddslip.calibrators.logistic.hierarchy import HierarchicalFit, Hyper, fit_hierarchical
from oddslip.calibrators.logistic.moments import Cells, Summary
from oddslip.calibrators.policy import (
    Fitted,
    build_maps,
    find_prior,
    find_unobservable,
    possible_prior,
    weights_trained,
)
from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Kind
from oddslip.core.passes import Passes, without_passes
from oddslip.core.types import Floats, PerLabel
from oddslip.kernels.maps import AFFINE, CLIP
from oddslip.kernels.mixture import mix_knots
from oddslip.repairs.label_record import LabelRecord
from oddslip.repairs.maps import LabelMaps
from oddslip.sources import Source
from oddslip.tallies.cell_counts import Knots, count_cells

STRENGTH = 100.0  # positives at which isotonic and hierarchical have the same weight
MANY_LABELS = 500  # from here on fits of nearly the same rows start from one another
SMOOTHING = 16.0  # positives of the mean label that are added if no prior is given


class Hierarchical(SummaryCalibrator):
    """A slope and a constant per label on the log-odds, shrunk towards what all labels share.

    Labels share a slope, and a constant that depends on the label-free shift, the prior and, if
    given, the weight of a label. Raw scores, the inversion, the label-free shift, popularity, the
    offset and Platt are special cases, among which the data decide. A label with few positives
    borrows from the others. A label without positives keeps its order and gets about its prior, or
    exactly its prior if one was given that makes the absence of positives implausible. Every map
    is increasing.

    Parameters
    ----------
    weights : number, array-like or str, optional
        Weight of the positives of each label in training, as in `Inversion`.
    prior : array-like, optional
        Training prevalence of each label, which is worth having. Default: the prevalence of the
        calibration rows, shrunk towards the mean of all labels.
    kind : {"probability", "margin"}
        Scale of the scores.

    Attributes
    ----------
    hyper_ : Hyper
        The prior that all labels share, see `oddslip.calibrators.logistic.hierarchy`.

    Examples
    --------
    >>> scores = [[0.2, 0.6], [0.4, 0.7], [0.6, 0.8], [0.8, 0.9]]
    >>> calibrator = Hierarchical().fit(scores, [[0, 0], [1, 0], [0, 0], [1, 0]])
    >>> calibrator.record_.action
    ('calibrated', 'borrowed')
    >>> bool((np.diff(calibrator.transform(scores), axis=0) > 0).all())
    True
    """

    def __init__(
        self, *, weights: PerLabel = None, prior: PerLabel = None, kind: Kind = "probability"
    ) -> None:
        self.weights = weights
        self.prior = prior
        self.kind = kind

    def _map_summary(
        self, summary: Summary, near: Hyper | None = None
    ) -> tuple[LabelMaps, LabelRecord, Hyper]:
        """The maps fitted on a summary of the rows, and the prior for the next call.

        With many labels the fit starts from ``near``: it needs fewer rounds, and ends closer to
        the optimum.
        """
        cells = without_passes(Cells.read(summary))
        start = near if summary.n_labels >= MANY_LABELS else None
        return *without_passes(self._map_cells(cells, start)), self.hyper_

    def _map_cells(self, cells: Cells, start: Hyper | None = None) -> Passes[Fitted]:
        source, totals = cells.source, cells.label_totals
        record = record_borrowed(totals, self.prior)
        log_weights = None
        if self.weights is not None:
            names = getattr(source, "label_names", None)
            log_weights = np.log(weights_trained(self.weights, record, totals, names))
        yield from cells.summarise()
        prior = _covariate(record, totals)
        fit = fit_hierarchical(
            cells.points,
            cells.weights,
            cells.n_positives,
            cells.positives_about(0, np.zeros(source.n_labels)),
            prior,
            log_weights,
            unobservable=find_unobservable(totals, prior, record.prior_source),
            start=start,
        )
        self.hyper_ = fit.hyper
        return build_parents(source.kind, fit, record), record


class HierarchicalIsotonic(Hierarchical):
    """A mixture of per-label isotonic regression and the hierarchical map.

    The weight of the isotonic map is n / (n + 100), where n is the number of positives. Where it is
    flat the hierarchical map decides, so it does not tie cells.

    Parameters
    ----------
    weights, prior, kind
        As in `Hierarchical`.

    Examples
    --------
    >>> scores = [[0.2, 0.6], [0.4, 0.7], [0.6, 0.8], [0.8, 0.9]]
    >>> mixed = HierarchicalIsotonic().fit(scores, [[0, 0], [1, 0], [0, 0], [1, 0]])
    >>> bool((np.diff(mixed.transform(scores), axis=0) > 0).all())
    True
    """

    def _map_labels(self, source: Source, summary: Summary | None = None) -> Passes[Fitted]:
        parents, record = yield from super()._map_labels(source, summary)
        counts = yield from count_cells(source)
        knots = counts.isotonic_knots(n_positives=record.n_positives)
        return mix_maps(source.kind, knots, parents, record, STRENGTH), record


def record_borrowed(totals: LabelTotals, prior: PerLabel) -> LabelRecord:
    """A record in which labels without positives borrowed their map from the others."""
    priors, origin = find_prior(prior, totals.positives, totals.total)
    action = np.where(totals.n_positives > 0, "calibrated", "borrowed")
    dead = np.zeros(priors.size, np.bool_)
    return LabelRecord(tuple(action.tolist()), totals.n_positives, priors, origin, dead)


def _covariate(record: LabelRecord, totals: LabelTotals) -> Floats:
    """The prior as a covariate of the hierarchy.

    The prevalence of the same rows would use their positives twice. It is shrunk towards the mean
    of all labels, so that a few positives do not matter.
    """
    if record.prior_source == "given":
        return possible_prior(record.prior, totals.total)
    cells = totals.total.sum() if np.ndim(totals.total) else totals.total * totals.positives.size
    mean = (totals.positives.sum() + 0.5) / (cells + 1.0)
    return np.asarray((totals.positives + SMOOTHING) / (totals.total + SMOOTHING / mean))


def build_parents(kind: Kind, fit: HierarchicalFit, record: LabelRecord) -> LabelMaps:
    """The maps of a hierarchical fit."""
    code = np.full(len(record.action), AFFINE, np.int8)
    return build_maps(kind, "log_odds", record, code=code, a=fit.slope, b=fit.intercept)


# Log-odds at which a mixture has knots besides the isotonic ones: every quarter of a nat of the
# score or of the parent, whichever changes faster. The error of interpolation is below 1%.
_GRID = np.concatenate(
    [np.arange(-40.0, -20.0), np.linspace(-20.0, 20.0, 161), np.arange(21.0, 41.0)]
)


def mix_maps(
    kind: Kind, knots: Knots, parents: LabelMaps, record: LabelRecord, strength: float
) -> LabelMaps:
    """Weighted means of isotonic map and parent; the isotonic weight is n / (n + strength).

    Here n is the number of positives of the label. A label without knots keeps its parent. Where
    the isotonic map is flat the parent decides, so cells only tie where they tie under the parent.

    Parameters
    ----------
    kind : {"probability", "margin"}
        Scale of the scores.
    knots : Knots
        Knots of the isotonic map of each label that has one.
    parents : LabelMaps
        Smooth maps: affine, beta or constant.
    record : LabelRecord
        Record of the same labels.
    strength : float
        Positives at which both have the same weight.

    Returns
    -------
    LabelMaps
    """
    n = record.n_positives.astype(np.float64)
    share = np.where(np.diff(knots.indptr) > 0, n / (n + strength), 0.0)
    code, a, b, c, *_, margin, odds = parents._arguments(parents._constants)
    scores = _GRID if margin else expit(_GRID[np.abs(_GRID) < -np.log(CLIP)])
    mixed = mix_knots(*knots, code, a, b, c, share, _GRID, scores, margin, odds)
    return build_maps(kind, "probability", record, knots=Knots(*mixed))
