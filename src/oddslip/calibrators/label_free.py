"""The label-free shift as a calibrator, for scores without calibration labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from oddslip.calibrators.base import SummaryCalibrator
from oddslip.calibrators.logistic.hierarchy import match_prevalence
from oddslip.calibrators.logistic.moments import Cells, Model
from oddslip.calibrators.logistic.newton import find_roots
from oddslip.calibrators.policy import Fitted, build_maps, possible_prior, record_alike
from oddslip.core.panel import Kind
from oddslip.core.passes import Passes
from oddslip.core.types import PerLabel
from oddslip.kernels.maps import AFFINE

_EXACT_ROUNDS = 100


class LabelFree(SummaryCalibrator):
    """Log-odds minus b_j, so that the mean probability of each label equals its prior.

    With a prior no labels are needed: ``fit(scores)``. The b_j are those of
    `oddslip.shifts.realized_shift`. Without a prior they match the prevalence of the labels.

    Parameters
    ----------
    prior : array-like, optional
        Training prevalence of each label; default: the smoothed prevalence in `fit`. A prior of 0
        counts as half a positive among these rows, or less if other labels are rarer.
    kind : {"probability", "margin"}
        Scale of the scores.

    Examples
    --------
    >>> LabelFree(prior=[0.2, 0.5]).fit_transform([[0.5, 0.75], [0.5, 0.75]])[0].round(6)
    array([0.2, 0.5])
    """

    def __init__(self, *, prior: PerLabel = None, kind: Kind = "probability") -> None:
        self.prior = prior
        self.kind = kind

    def _purpose(self) -> str | None:
        return "fit without a prior" if self.prior is None else None

    def _map_cells(self, cells: Cells) -> Passes[Fitted]:
        source = cells.source
        record = record_alike("shifted", cells.label_totals, self.prior)
        prior = possible_prior(record.prior, cells.totals)
        yield from cells.summarise()
        cells.n_positives = prior * cells.totals  # the target of the sum of probabilities
        model = Model(cells, "affine", centered=True)
        theta = model.identity()
        middle, prior_logit = theta[0].copy(), np.log(prior) - np.log1p(-prior)
        low, high = middle + prior_logit - cells.high, middle + prior_logit - cells.low
        shift = match_prevalence(cells.points, cells.weights, prior)
        theta[0] = np.clip(middle - shift, low, high)
        if cells.exact:
            search = find_roots(theta, low, high, rounds=_EXACT_ROUNDS)
            theta, _ = yield from model.solve_exactly(search, np.arange(source.n_labels))
        maps = build_maps(
            source.kind,
            "log_odds",
            record,
            code=np.full(source.n_labels, AFFINE, np.int8),
            a=np.ones(source.n_labels),
            b=theta[0] - middle,
        )
        return maps, record

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.prior is None
        return tags
