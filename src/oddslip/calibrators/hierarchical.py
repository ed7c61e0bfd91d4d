"""The hierarchical calibrators: logistic maps under one estimated prior, alone or with isotonic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.base import SummaryCalibrator
from oddslip.calibrators.logistic.hierarchy import HierarchicalFit, fit_hierarchical
from oddslip.calibrators.logistic.moments import Cells
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.mixture import mix_maps
from oddslip.calibrators.policy import (
    LabelRecord,
    build_maps,
    find_prior,
    find_unobservable,
    possible_prior,
    weights_trained,
)
from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Kind
from oddslip.kernels.maps import AFFINE
from oddslip.sources import Source
from oddslip.tallies.cell_counts import count_cells

STRENGTH = 100.0  # positives at which isotonic and hierarchical weigh the same
SMOOTHING = 16.0  # positives of the mean label that are added where no prior is given


class Hierarchical(SummaryCalibrator):
    """A slope and a constant per label on the log-odds, shrunk towards what all labels share.

    What they share is a slope, and a constant that depends on the label-free shift, the prior and,
    where given, the weight of a label. Data choose, so raw scores, the inversion, the label-free
    shift, popularity, the offset and Platt are all within reach. A label with few positives
    borrows from the others; one without keeps its order and gets about its prior, or just its prior
    if that was given and promises so many positives that chance can not have kept them all away.
    Every map rises.

    Parameters
    ----------
    weights : number, array-like or str, optional
        The positive weight each label was trained with, as in `Inversion`.
    prior : array-like, optional
        Training prevalence of each label, worth having. Without it that of the calibration rows
        is used, drawn towards the mean of all labels.
    kind : {"probability", "margin"}
        What the scores are.

    Attributes
    ----------
    hyper_ : Hyper
        What all labels share: `oddslip.calibrators.logistic.hierarchy`.

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
        self, *, weights: Any = None, prior: Any = None, kind: Kind = "probability"
    ) -> None:
        self.weights = weights
        self.prior = prior
        self.kind = kind

    def _map_cells(self, cells: Cells) -> tuple[LabelMaps, LabelRecord]:
        source = cells.source
        seen = cells.seen
        record = record_borrowed(seen, self.prior)
        log_weights = None
        if self.weights is not None:
            names = getattr(source, "label_names", None)
            log_weights = np.log(weights_trained(self.weights, record, seen, names))
        cells.summarise()
        prior = _covariate(record, seen)
        fit = fit_hierarchical(
            cells.points,
            cells.weights,
            cells.n_positives,
            cells.positives_about(0, np.zeros(source.n_labels)),
            prior,
            log_weights,
            unheard=find_unobservable(seen, prior, record.prior_source),
        )
        self.hyper_ = fit.hyper
        return build_parents(source.kind, fit, record), record


class HierarchicalIsotonic(Hierarchical):
    """Per-label isotonic regression over the hierarchical map, the more the more positives.

    The probability is n / (n + 100) isotonic and else hierarchical, n being the label's positives.
    Where the isotonic map is flat the hierarchical one decides, so cells are not tied by it.

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

    def _map_labels(
        self, source: Source, threads: int | None = None
    ) -> tuple[LabelMaps, LabelRecord]:
        parents, record = super()._map_labels(source, threads)
        counts = count_cells(source, threads=threads)
        knots = counts.isotonic_knots(n_positives=record.n_positives)
        return mix_maps(source.kind, knots, parents, record, STRENGTH), record


def record_borrowed(seen: LabelTotals, prior: Any) -> LabelRecord:
    """Every label has a map of its own; one without positives borrowed it from the others."""
    priors, origin = find_prior(prior, seen.positives, seen.total)
    action = np.where(seen.n_positives > 0, "calibrated", "borrowed")
    nobody = np.zeros(priors.size, np.bool_)
    return LabelRecord(tuple(action.tolist()), seen.n_positives, priors, origin, nobody)


def _covariate(record: LabelRecord, seen: LabelTotals) -> NDArray[np.float64]:
    """The prior as a covariate of the hierarchy.

    A prevalence of the very rows fitted on would say twice what the positives say. It is drawn
    towards the mean of all labels, so that a few positives more or less do not count.
    """
    if record.prior_source == "given":
        return possible_prior(record.prior, seen.total)
    cells = seen.total.sum() if np.ndim(seen.total) else seen.total * seen.positives.size
    mean = (seen.positives.sum() + 0.5) / (cells + 1.0)
    return np.asarray((seen.positives + SMOOTHING) / (seen.total + SMOOTHING / mean))


def build_parents(kind: Kind, fit: HierarchicalFit, record: LabelRecord) -> LabelMaps:
    """The maps of a hierarchical fit."""
    code = np.full(len(record.action), AFFINE, np.int8)
    return build_maps(kind, "log_odds", record, code=code, a=fit.slope, b=fit.intercept)
