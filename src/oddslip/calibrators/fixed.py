"""Calibrators that learn nothing from scores: raw, analytic inversion, popularity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oddslip.calibrators.base import Calibrator
from oddslip.calibrators.policy import (
    Fitted,
    build_maps,
    count_checked,
    record_alike,
    weights_trained,
)
from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Kind
from oddslip.core.passes import Passes
from oddslip.core.types import PerLabel
from oddslip.errors import InvalidInput
from oddslip.kernels.maps import AFFINE, CONSTANT, IDENTITY
from oddslip.repairs.label_record import LabelRecord
from oddslip.repairs.map_forms import Scale
from oddslip.repairs.maps import LabelMaps
from oddslip.sources import Source


class Raw(Calibrator):
    """No calibration: every score passes through.

    Parameters
    ----------
    kind : {"probability", "margin"}
        Scale of the scores.

    Examples
    --------
    >>> Raw().fit_transform([[0.2, 0.9]], [[0, 1]])
    array([[0.2, 0.9]])
    """

    def __init__(self, *, kind: Kind = "probability") -> None:
        self.kind = kind

    def _map_labels(self, source: Source) -> Passes[Fitted]:
        record = record_alike("raw", (yield from count_checked(source)))
        return build_raw_maps(source.kind, record), record


class Inversion(Calibrator):
    """The analytic inversion, log-odds minus ln w: exact where the shift was realized.

    Parameters
    ----------
    weights : number, array-like or str
        Weight of the positives of each label in training. A name such as "balanced" or "10x" is
        resolved with ``prior`` if given, else with the labels in `fit`.
    prior : array-like, optional
        Training prevalence of each label.
    kind : {"probability", "margin"}
        Scale of the scores.

    Examples
    --------
    >>> Inversion([9.0, 1.0]).fit_transform([[0.9, 0.25]], [[1, 0]]).round(6)
    array([[0.5 , 0.25]])
    """

    def __init__(
        self, weights: PerLabel, *, prior: PerLabel = None, kind: Kind = "probability"
    ) -> None:
        self.weights = weights
        self.prior = prior
        self.kind = kind

    def _map_labels(self, source: Source) -> Passes[Fitted]:
        if self.weights is None:
            raise InvalidInput("weights must be those the labels were trained with, got None.")
        totals = yield from count_checked(source)
        record = record_alike("inverted", totals, self.prior)
        maps = build_inversion_maps(source.kind, record, self.weights, totals, source.label_names)
        return maps, record


class Popularity(Calibrator):
    """Labels by their prior, the same in every row: the baseline of a ranker.

    Parameters
    ----------
    prior : array-like, optional
        Training prevalence of each label; default: the smoothed calibration prevalence.
    kind : {"probability", "margin"}
        Scale of the scores.

    Examples
    --------
    >>> Popularity(prior=[0.1, 0.3]).fit_transform([[0.2, 0.9]], [[0, 1]])
    array([[0.1, 0.3]])
    """

    def __init__(self, *, prior: PerLabel = None, kind: Kind = "probability") -> None:
        self.prior = prior
        self.kind = kind

    def _map_labels(self, source: Source) -> Passes[Fitted]:
        totals = yield from count_checked(source)
        record = record_alike("popularity", totals, self.prior)
        code = np.full(source.n_labels, CONSTANT, np.int8)
        maps = build_maps(source.kind, "probability", record, code=code, a=record.prior)
        return maps, record


def build_raw_maps(kind: Kind, record: LabelRecord) -> LabelMaps:
    """Identity maps."""
    code = np.full(len(record.action), IDENTITY, np.int8)
    # Margins are compared as margins, to keep the order of saturated cells.
    scale: Scale = "probability" if kind == "probability" else "log_odds"
    return build_maps(kind, scale, record, code=code)


def build_inversion_maps(
    kind: Kind,
    record: LabelRecord,
    weights: PerLabel,
    totals: LabelTotals,
    label_names: Sequence[str] | None = None,
) -> LabelMaps:
    """Maps of log-odds minus ln w."""
    resolved = weights_trained(weights, record, totals, label_names)
    n_labels = len(record.action)
    code = np.full(n_labels, AFFINE, np.int8)
    return build_maps(kind, "log_odds", record, code=code, a=np.ones(n_labels), b=-np.log(resolved))
