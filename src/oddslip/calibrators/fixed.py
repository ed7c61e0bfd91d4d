"""Maps that need no fit: raw scores, the analytic inversion, and popularity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.base import Calibrator
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.policy import LabelRecord, build_maps, count_positives, find_prior
from oddslip.errors import InvalidInput
from oddslip.panels import Kind
from oddslip.sources import Source
from oddslip.weights import resolve_weights


class Raw(Calibrator):
    """No calibration: every score passes through.

    Parameters
    ----------
    kind : {"probability", "margin"}
        What the scores are.

    Examples
    --------
    >>> Raw().fit_transform([[0.2, 0.9]], [[0, 1]])
    array([[0.2, 0.9]])
    """

    def __init__(self, *, kind: Kind = "probability") -> None:
        self.kind = kind

    def _map_labels(
        self, source: Source, threads: int | None = None
    ) -> tuple[LabelMaps, LabelRecord]:
        from oddslip.kernels.maps import IDENTITY

        record = _record_all("raw", source, threads)
        # Margins are compared as margins, so that the order inside saturated cells survives.
        scale = "probability" if source.kind == "probability" else "log_odds"
        return build_maps(source.kind, scale, record, code=_codes(source, IDENTITY)), record  # type: ignore[arg-type]


class Inversion(Calibrator):
    """The analytic inversion: the log-odds less ln w, exact where the shift was realized.

    Parameters
    ----------
    weights : number, array-like or str
        The positive weight each label was trained with. A name such as "balanced" or "10x" is
        resolved on ``prior`` where given, else on the labels fitted on: the ratio on those rows.
    prior : array-like, optional
        Training prevalence of each label.
    kind : {"probability", "margin"}
        What the scores are.

    Examples
    --------
    >>> Inversion([9.0, 1.0]).fit_transform([[0.9, 0.25]], [[1, 0]]).round(6)
    array([[0.5 , 0.25]])
    """

    def __init__(self, weights: Any, *, prior: Any = None, kind: Kind = "probability") -> None:
        self.weights = weights
        self.prior = prior
        self.kind = kind

    def _map_labels(
        self, source: Source, threads: int | None = None
    ) -> tuple[LabelMaps, LabelRecord]:
        from oddslip.kernels.maps import AFFINE

        if self.weights is None:
            raise InvalidInput("weights must be those the labels were trained with, got None.")
        record = _record_all("inverted", source, threads, self.prior)
        weights = (
            resolve_weights(
                self.weights, record.n_positives, source.n_rows, label_names=source.label_names
            )
            if self.prior is None
            else resolve_weights(self.weights, record.prior, 1, label_names=source.label_names)
        )
        maps = build_maps(
            source.kind,
            "log_odds",
            record,
            code=_codes(source, AFFINE),
            a=np.ones(source.n_labels),
            b=-np.log(weights),
        )
        return maps, record


class Popularity(Calibrator):
    """Every row alike: labels by their prior. The baseline a ranker has to beat.

    Parameters
    ----------
    prior : array-like, optional
        Training prevalence of each label; else the smoothed calibration prevalence.
    kind : {"probability", "margin"}
        What the scores are.

    Examples
    --------
    >>> Popularity(prior=[0.1, 0.3]).fit_transform([[0.2, 0.9]], [[0, 1]])
    array([[0.1, 0.3]])
    """

    def __init__(self, *, prior: Any = None, kind: Kind = "probability") -> None:
        self.prior = prior
        self.kind = kind

    def _map_labels(
        self, source: Source, threads: int | None = None
    ) -> tuple[LabelMaps, LabelRecord]:
        from oddslip.kernels.maps import CONSTANT

        record = _record_all("popularity", source, threads, self.prior)
        maps = build_maps(
            source.kind, "probability", record, code=_codes(source, CONSTANT), a=record.prior
        )
        return maps, record


def _codes(source: Source, code: int) -> NDArray[np.int8]:
    return np.full(source.n_labels, code, np.int8)


def _record_all(action: str, source: Source, threads: int | None, prior: Any = None) -> LabelRecord:
    """All labels are treated alike; none is dead, since nothing is fitted."""
    n_positives = count_positives(source, threads)
    found, origin = find_prior(prior, n_positives, source.n_rows)
    no_one = np.zeros(source.n_labels, np.bool_)
    return LabelRecord((action,) * source.n_labels, n_positives, found, origin, no_one)
