"""Logistic maps of the log-odds: offset, Platt, temperature and beta.

All are unpenalised maximum-likelihood fits. A label whose slope has no finite optimum (its
positives and negatives are separable, or its scores are constant) keeps slope 1 and gets the
offset. A label whose slope would be negative gets its prevalence, since a map may not decrease.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.base import PerLabelCalibrator
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.policy import DeadPolicy, LabelRecord, build_maps
from oddslip.panels import Kind
from oddslip.sources import Source


class _Logistic(PerLabelCalibrator):
    """The arguments all logistic maps share."""

    def __init__(
        self,
        *,
        dead: DeadPolicy = "prior",
        tau: int = 0,
        prior: Any = None,
        kind: Kind = "probability",
    ) -> None:
        self.dead = dead
        self.tau = tau
        self.prior = prior
        self.kind = kind

    def _fit_with(self, source: Source, **options: Any) -> tuple[LabelMaps, LabelRecord]:
        from oddslip.calibrators.logistic.fits import fit_affine
        from oddslip.kernels.maps import AFFINE

        fit = fit_affine(source, **options)
        record = self._record(*_fallbacks(fit))
        code = np.full(source.n_labels, AFFINE, np.int8)
        a, b = _single_class(fit, record, code, *self._parameters(fit))
        return build_maps(source.kind, "log_odds", record, code=code, a=a, b=b), record

    def _parameters(self, fit: Any) -> tuple[Any, Any]:
        return fit.a, fit.b


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

    def _fit_labels(
        self, source: Source, threads: int | None = None
    ) -> tuple[LabelMaps, LabelRecord]:
        return self._fit_with(source, threads=threads, slope=False, intercept=True)


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

    def _fit_labels(
        self, source: Source, threads: int | None = None
    ) -> tuple[LabelMaps, LabelRecord]:
        return self._fit_with(source, threads=threads, slope=True, intercept=True)


class Temperature(_Logistic):
    """One slope on the log-odds and no intercept, per label or shared by all.

    A temperature above 1 raises low scores towards one half.

    Parameters
    ----------
    shared : bool
        One temperature for all labels, fitted on all cells, dead ones included. Where no
        positive temperature improves the likelihood, scores stay as they are.
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
        prior: Any = None,
        kind: Kind = "probability",
    ) -> None:
        super().__init__(dead=dead, tau=tau, prior=prior, kind=kind)
        self.shared = shared

    def _fit_labels(
        self, source: Source, threads: int | None = None
    ) -> tuple[LabelMaps, LabelRecord]:
        return self._fit_with(
            source, threads=threads, slope=True, intercept=False, shared=self.shared
        )

    def _parameters(self, fit: Any) -> tuple[Any, Any]:
        from oddslip.calibrators.logistic.fits import Status

        # No temperature helps: a shared slope of zero would tie all cells, so scores stay raw.
        if self.shared and (fit.status == Status.NOT_INCREASING).any():
            return np.ones_like(fit.a), np.zeros_like(fit.b)
        return super()._parameters(fit)


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

    def _fit_labels(
        self, source: Source, threads: int | None = None
    ) -> tuple[LabelMaps, LabelRecord]:
        from oddslip.calibrators.logistic.fits import Status, fit_beta
        from oddslip.kernels.maps import BETA

        fit = fit_beta(source, threads=threads)
        record = self._record(*_fallbacks(fit))
        code = np.full(source.n_labels, BETA, np.int8)
        a, b = _single_class(fit, record, code, fit.a, fit.b)
        c = np.where(fit.status == Status.NO_NEGATIVE, 0.0, fit.c)
        return build_maps(source.kind, "log_odds", record, code=code, a=a, b=b, c=c), record


def _fallbacks(fit: Any) -> tuple[Any, ...]:
    """What `_record` needs: counts, and the labels that did not get the map they asked for."""
    from oddslip.calibrators.logistic.fits import Status

    return fit.n_positives, fit.n_rows, fit.status != Status.FITTED, "fallback"


def _single_class(
    fit: Any, record: LabelRecord, code: NDArray[np.int8], a: Any, b: Any
) -> tuple[Any, Any]:
    """A label without negatives among the calibration rows gets its prior as a constant."""
    from oddslip.calibrators.logistic.fits import Status
    from oddslip.kernels.maps import CONSTANT

    alone = (fit.status == Status.NO_NEGATIVE) & ~record.dead
    code[alone] = CONSTANT
    return np.where(alone, record.prior, a), np.where(alone, 0.0, b)
