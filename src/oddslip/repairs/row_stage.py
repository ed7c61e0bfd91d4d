"""`RowStage`: what a row's other labels add to the log-odds of a label.

Labels that occur together support each other: ``support_j = sum over partners l of j of lift(j, l)
* (p_l - prevalence_l)``. The stage then maps log-odds z to ``(1 + slope) z + intercept + support *
support_j``, with three numbers that all labels share.

Imports only NumPy, since `oddslip.serving.runtime` uses it without the kernels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput
from oddslip.repairs.map_forms import LOWEST, Maps

Floats = NDArray[np.float64]

CACHED_CELLS = 1 << 16  # whose support is added up at a time: they stay in the cache


class RowStage(NamedTuple):
    """Three shared coefficients, and the partners of each label.

    Parameters
    ----------
    slope, intercept, support : float
        Coefficients. With zeros the stage changes nothing.
    partners : array of int32, shape (n_labels, n_partners)
        Labels that say something about a label. Unused places hold label 0 with a lift of 0.
    lift : array of float64, shape (n_labels, n_partners)
        Log of how often label and partner occur together over chance, shrunk towards 0.
    prevalence : array of float64, shape (n_labels,)
        Share of the calibration rows in which a label is true.
    """

    slope: float
    intercept: float
    support: float
    partners: NDArray[np.int32]
    lift: Floats
    prevalence: Floats

    @property
    def changes_nothing(self) -> bool:
        """Whether all coefficients are zero."""
        return not (self.slope or self.intercept or self.support)

    def take(self, labels: NDArray[np.int64]) -> RowStage:
        """The stage of some labels, in this order; partners that are not among them drop out."""
        place = np.full(self.prevalence.size, -1, np.int32)
        place[labels] = np.arange(labels.size, dtype=np.int32)
        partners = place[self.partners[labels]]
        there = partners >= 0
        return self._replace(
            partners=np.where(there, partners, np.int32(0)),
            lift=np.where(there, self.lift[labels], 0.0),
            prevalence=self.prevalence[labels],
        )

    def find_surprise(self, probabilities: Floats, excluded: NDArray[np.bool_]) -> Floats:
        """What cells contribute: probability less prevalence, 0 if absent (NaN) or excluded."""
        surprise = probabilities - self.prevalence
        return np.where(np.isnan(surprise) | excluded, 0.0, surprise)

    def find_support(self, surprise: Floats) -> Floats:
        """Support of every cell by its row, summed partner by partner in their order."""
        support = np.zeros(surprise.shape)
        step = max(1, CACHED_CELLS // max(1, surprise.shape[1]))
        for first in range(0, len(surprise), step):
            columns = np.ascontiguousarray(surprise[first : first + step].T)
            total, added = np.zeros_like(columns), np.empty_like(columns)
            for partner, lift in zip(self.partners.T, self.lift.T, strict=True):
                np.take(columns, partner, axis=0, out=added, mode="clip")
                added *= lift[:, None]
                total += added
            support[first : first + step] = total.T
        return support

    def adjust(self, log_odds: Floats, support: Floats) -> Floats:
        """Log-odds after the stage; those of excluded labels stay at -inf, absent ones at NaN."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = (1.0 + self.slope) * log_odds + (self.intercept + self.support * support)
        return np.where(np.isneginf(log_odds), -np.inf, np.maximum(values, LOWEST))


def check_stage(stage: RowStage, maps: Maps) -> None:
    """Raise for a stage that does not go with these maps."""
    if maps.scale != "log_odds":
        raise InvalidInput(f'a row stage needs maps of scale "log_odds", got {maps.scale!r}.')
    n_labels = maps.code.size
    shape = stage.partners.shape
    if len(shape) != 2 or shape[0] != n_labels or stage.lift.shape != shape:
        raise InvalidInput(
            f"a row stage must hold partners and lifts of n_labels={n_labels} labels, "
            f"got shapes {shape} and {stage.lift.shape}."
        )
    if stage.prevalence.shape != (n_labels,):
        raise InvalidInput(
            f"a row stage must hold one prevalence per label, n_labels={n_labels}, "
            f"got shape {stage.prevalence.shape}."
        )
    if shape[1] and not 0 <= stage.partners.min() <= stage.partners.max() < n_labels:
        raise InvalidInput(f"partners must be labels below n_labels={n_labels}.")
    numbers = np.array([stage.slope, stage.intercept, stage.support])
    if not (np.isfinite(numbers).all() and np.isfinite(stage.lift).all()):
        raise InvalidInput("coefficients and lifts of a row stage must be finite.")
    if stage.slope <= -1.0:
        raise InvalidInput(f"the slope of a row stage must be above -1, got {stage.slope:g}.")
    if not ((stage.prevalence >= 0) & (stage.prevalence <= 1)).all():
        raise InvalidInput("prevalences of a row stage must be between 0 and 1.")
