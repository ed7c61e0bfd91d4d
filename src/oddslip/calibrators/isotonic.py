"""Isotonic calibrators: one map per label, one map for all labels, the in-sample ceiling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from oddslip.calibrators.base import Calibrator, PerLabelCalibrator
from oddslip.calibrators.policy import (
    DeadPolicy,
    Fitted,
    build_maps,
    build_shared_maps,
    check_policy,
    count_positives,
)
from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Kind
from oddslip.core.passes import Passes
from oddslip.core.types import Ints, PerLabel
from oddslip.errors import InvalidInput
from oddslip.repairs.label_record import LabelRecord
from oddslip.sources import Source
from oddslip.tallies.cell_counts import count_cells
from oddslip.tallies.isotonic_buckets import fit_knots

Interpolation = Literal["linear", "step"]


class Isotonic(PerLabelCalibrator):
    """Per-label isotonic regression with an explicit dead-label policy.

    Fitted in two streaming passes, without sorting all cells. Equal to scikit-learn's, save that
    scores closer than 1e-15 stay apart.

    Parameters
    ----------
    dead : {"prior", "identity", "exclude"}
        Map of a dead label: to its prior, to its raw score, or below all other labels.
    tau : int
        A label with at most this many calibration positives is dead.
    prior : array-like, optional
        Training prevalence of each label; default: the smoothed calibration prevalence.
    interpolation : {"linear", "step"}
        Between knots: linear as in scikit-learn, or the value of the knot below.
    kind : {"probability", "margin"}
        Scale of the scores. Margins keep the order of saturated cells.

    Examples
    --------
    >>> scores, labels = [[0.2, 0.9], [0.7, 0.8]], [[0, 0], [1, 0]]
    >>> Isotonic(prior=[0.5, 0.1]).fit(scores, labels).transform([[0.45, 0.95]])
    array([[0.5, 0.1]])
    """

    def __init__(
        self,
        *,
        dead: DeadPolicy = "prior",
        tau: int = 0,
        prior: PerLabel = None,
        interpolation: Interpolation = "linear",
        kind: Kind = "probability",
    ) -> None:
        self.dead = dead
        self.tau = tau
        self.prior = prior
        self.interpolation = interpolation
        self.kind = kind

    def _map_labels(self, source: Source) -> Passes[Fitted]:
        check_policy(self.dead, self.tau)
        step = check_interpolation(self.interpolation)
        n_positives, knots = yield from fit_knots(source, minimum_positives=self.tau + 1)
        record = self._record(_label_totals(source, n_positives))
        return build_maps(source.kind, "probability", record, knots=knots, step=step), record


class Ceiling(Isotonic):
    """The in-sample ceiling: per-label isotonic regression, evaluated on the rows of its fit.

    It bounds what any monotone map per label can do. A label without positives gets 0.

    Parameters
    ----------
    interpolation, kind
        As in `Isotonic`.

    Examples
    --------
    >>> Ceiling().fit_transform([[0.2, 0.9], [0.7, 0.8]], [[0, 0], [1, 0]])
    array([[0., 0.],
           [1., 0.]])
    """

    def __init__(self, *, interpolation: Interpolation = "linear", kind: Kind = "probability"):
        super().__init__(interpolation=interpolation, kind=kind)

    def _record(self, totals: LabelTotals, fallback: Any = False) -> LabelRecord:
        record = super()._record(totals, fallback)
        return replace(record, prior=np.zeros(record.prior.size), prior_source="zero")


class PooledIsotonic(Calibrator):
    """One isotonic map shared by all labels, fitted on all cells.

    A shared map never creates an inversion within a row. It can only merge or split ties.

    Parameters
    ----------
    interpolation, kind
        As in `Isotonic`.

    Examples
    --------
    >>> PooledIsotonic().fit_transform([[0.2, 0.9], [0.7, 0.8]], [[0, 1], [1, 1]])
    array([[0., 1.],
           [1., 1.]])
    """

    def __init__(
        self, *, interpolation: Interpolation = "linear", kind: Kind = "probability"
    ) -> None:
        self.interpolation = interpolation
        self.kind = kind

    def _map_labels(self, source: Source) -> Passes[Fitted]:
        step = check_interpolation(self.interpolation)
        counts = yield from count_cells(source, pooled=True)
        if not counts.n_positives[0]:
            raise InvalidInput("a pooled map needs at least one positive cell, got none.")
        totals = count_positives(source)
        record = LabelRecord(
            action=("shared",) * source.n_labels,
            n_positives=totals.n_positives,
            prior=totals.positives / np.maximum(totals.total, 1.0),
            prior_source="calibration prevalence, not used",
            dead=totals.n_positives == 0,
        )
        knots = counts.isotonic_knots()
        return build_shared_maps(source.kind, source.n_labels, knots, step=step), record


def _label_totals(source: Source, n_positives: Ints) -> LabelTotals:
    """Positives of each label; labels of weighted rows are read once more."""
    if source.sample_weight is None:
        return LabelTotals.alike(n_positives, source.totals())
    return count_positives(source)


def check_interpolation(interpolation: str) -> bool:
    """Whether the map is a step function."""
    if interpolation not in ("linear", "step"):
        raise InvalidInput(f'interpolation must be "linear" or "step", got {interpolation!r}.')
    return interpolation == "step"
