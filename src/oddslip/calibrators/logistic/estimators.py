"""Logistic maps of the log-odds: offset, Platt, temperature and beta.

All are unpenalised maximum-likelihood fits. A label whose slope has no finite optimum (its
positives and negatives are separable, or its scores are constant) keeps slope 1 and gets the
offset. A label whose slope would be negative gets its prevalence, since a map may not decrease.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict, Unpack

import numpy as np

from oddslip.calibrators.base import PerLabelCalibrator
from oddslip.calibrators.logistic.fits import LogisticFit, Status, fit_affine, fit_beta
from oddslip.calibrators.logistic.moments import Summary
from oddslip.calibrators.policy import DeadPolicy, Fitted, build_maps, check_policy
from oddslip.core.panel import Kind
from oddslip.core.passes import Passes, without_passes
from oddslip.core.types import PerLabel
from oddslip.kernels.maps import CONSTANT
from oddslip.repairs.label_record import LabelRecord
from oddslip.repairs.maps import LabelMaps
from oddslip.sources import Source


class Known(TypedDict, total=False):
    """What is known before a fit: see `fit_affine`."""

    near: LogisticFit | None
    summary: Summary | None


class _Logistic(PerLabelCalibrator):
    """Base of the logistic calibrators; a subclass says what is fitted."""

    _slope = True  # whether a slope is fitted; else it is 1

    def __init__(
        self,
        *,
        dead: DeadPolicy = "prior",
        tau: int = 0,
        prior: PerLabel = None,
        kind: Kind = "probability",
    ) -> None:
        self.dead = dead
        self.tau = tau
        self.prior = prior
        self.kind = kind

    def _map_labels(self, source: Source, summary: Summary | None = None) -> Passes[Fitted]:
        """The maps of all labels; a summary of the rows saves the passes that make one."""
        check_policy(self.dead, self.tau)
        return self._map_fit(source.kind, (yield from self._fit(source, summary=summary)))

    def _map_summary(
        self, summary: Summary, near: LogisticFit | None = None
    ) -> tuple[LabelMaps, LabelRecord, LogisticFit]:
        """The maps fitted on a summary of the rows, nearly those fitted on the rows.

        ``near`` is a fit to start from. The new fit is returned for the next call.
        """
        check_policy(self.dead, self.tau)
        fit = without_passes(self._fit(summary, near=near))
        return *self._map_fit(summary.kind, fit), fit

    def _map_fit(self, kind: Kind, fit: LogisticFit) -> Fitted:
        record = self._record(fit.label_totals, fit.status != Status.FITTED)
        # A label without negatives among the calibration rows gets its prior as a constant.
        constant = (fit.status == Status.NO_NEGATIVE) & ~record.dead
        maps = build_maps(
            kind,
            "log_odds",
            record,
            code=np.where(constant, CONSTANT, fit.code),
            a=np.where(constant, record.prior, fit.a),
            b=np.where(constant, 0.0, fit.b),
            c=np.where(constant, 0.0, fit.c),
        )
        return maps, record

    def _fit(self, source: Source | Summary, **options: Unpack[Known]) -> Passes[LogisticFit]:
        """The parameters of all labels."""
        return fit_affine(source, slope=self._slope, intercept=True, **options)


class Offset(_Logistic):
    """A per-label intercept: the log-odds plus a constant.

    Parameters
    ----------
    dead, tau, prior, kind
        As in `Isotonic`.

    Examples
    --------
    >>> scores = [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    >>> labels = [[1, 0], [0, 1], [0, 1], [0, 0]]
    >>> Offset().fit_transform(scores, labels)[0].round(6)
    array([0.25, 0.5 ])
    """

    _slope = False


class Platt(_Logistic):
    """A per-label slope and intercept on the log-odds.

    Parameters
    ----------
    dead, tau, prior, kind
        As in `Isotonic`.

    Examples
    --------
    >>> scores = [[0.2], [0.4], [0.6], [0.8]]
    >>> Platt().fit_transform(scores, [[0], [1], [0], [1]]).round(2).ravel()
    array([0.18, 0.39, 0.61, 0.82])
    """


class Temperature(_Logistic):
    """One slope on the log-odds and no intercept, per label or shared by all.

    A temperature above 1 raises low scores towards one half.

    Parameters
    ----------
    shared : bool
        Whether to fit one temperature on all cells, including those of dead labels. If no positive
        temperature improves the likelihood, scores are not changed.
    dead, tau, prior, kind
        As in `Isotonic`.

    Examples
    --------
    >>> scores = [[0.2], [0.4], [0.6], [0.8]]
    >>> Temperature().fit_transform(scores, [[0], [1], [0], [1]]).round(2).ravel()
    array([0.18, 0.39, 0.61, 0.82])
    """

    def __init__(
        self,
        *,
        shared: bool = False,
        dead: DeadPolicy = "prior",
        tau: int = 0,
        prior: PerLabel = None,
        kind: Kind = "probability",
    ) -> None:
        super().__init__(dead=dead, tau=tau, prior=prior, kind=kind)
        self.shared = shared

    def _fit(self, source: Source | Summary, **options: Unpack[Known]) -> Passes[LogisticFit]:
        slope_alone = {"slope": True, "intercept": False, "shared": self.shared}
        fit = yield from fit_affine(source, **slope_alone, **options)
        # No temperature helps. A shared slope of zero would tie all cells, so keep raw scores.
        if self.shared and (fit.status == Status.NOT_INCREASING).any():
            return replace(fit, a=np.ones_like(fit.a), b=np.zeros_like(fit.b))
        return fit


class Beta(_Logistic):
    """Beta calibration (Kull et al. 2017): slopes on ln s and ln(1 - s), and an intercept.

    Parameters
    ----------
    dead, tau, prior, kind
        As in `Isotonic`.

    Examples
    --------
    >>> scores = [[0.1], [0.4], [0.6], [0.9]]
    >>> Beta().fit_transform(scores, [[0], [1], [0], [1]]).round(2).ravel()
    array([0.11, 0.4 , 0.6 , 0.89])
    """

    def _fit(self, source: Source | Summary, **options: Unpack[Known]) -> Passes[LogisticFit]:
        return fit_beta(source, **options)
