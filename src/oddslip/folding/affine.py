"""A repair as one line per label: intercept + slope x log-odds."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from oddslip.core.types import Floats, Ints
from oddslip.errors import InvalidInput
from oddslip.repairs.fitted_repair import FittedRepair
from oddslip.repairs.map_forms import AFFINE, BETA, CONSTANT, EXCLUDED, IDENTITY, KNOTS
from oddslip.repairs.row_aware import reject_stage

CERTAIN_NAT = 40.0  # log-odds of a constant probability of 1; float64 rounds its sigmoid to 1
EXCLUDED_NAT = -700.0  # log-odds of an excluded label: below all others, and still finite
_FORMS = {KNOTS: "isotonic", BETA: "beta"}


class Affine(NamedTuple):
    """Intercept and slope of the log-odds of each label."""

    intercept: Floats
    slope: Floats

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.slope.size

    def take(self, labels: Ints | list[int]) -> Self:
        """The lines of some labels, in this order."""
        return type(self)(self.intercept[labels], self.slope[labels])

    def check_labels(self, n_labels: int, what: str) -> None:
        """Raise if a model has another number of labels than the repair."""
        if n_labels != self.n_labels:
            raise InvalidInput(
                f"model must have the repair's {self.n_labels} labels, got {what} with {n_labels}."
            )


def affine_of(repair: FittedRepair) -> Affine:
    """The lines of a repair; raises where a map is not a line.

    A constant (a dead label at its prior) has slope 0. An excluded label has slope 0 and log-odds
    of -700, which ranks it last.
    """
    maps = repair.maps
    reject_stage(maps, "a fold")
    for code, form in _FORMS.items():
        at = np.flatnonzero(maps.code == code)
        if at.size:
            names = repair.label_names
            label = repr(names[at[0]]) if names else str(at[0])
            raise InvalidInput(
                f"a repair must be affine in the log-odds to be folded, got {form} maps "
                f"({at.size:,} of {maps.n_labels:,} labels, the first is {label}). "
                "Fit Repair(k=..., foldable=True), or Platt, Offset or Hierarchical."
            )
    line, fixed = maps.code == AFFINE, (maps.code == CONSTANT) | (maps.code == EXCLUDED)
    slope = np.where(line, maps.a, np.where(fixed, 0.0, 1.0))
    with np.errstate(divide="ignore"):
        level = np.log(maps.a) - np.log1p(-np.minimum(maps.a, 1.0))
    level = np.clip(level, -CERTAIN_NAT, CERTAIN_NAT)
    intercept = np.select(
        [line, maps.code == CONSTANT, maps.code == EXCLUDED, maps.code == IDENTITY],
        [maps.b, level, EXCLUDED_NAT, 0.0],
    )
    return Affine(intercept, slope)
