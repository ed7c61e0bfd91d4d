"""The residual of the inversion, and its spread within rows (Corollary 2).

The residual of a cell is weighted log-odds - unweighted log-odds - ln w_j. If it is constant within
a row, inverting by ln w_j restores the unweighted order of that row. Only its spread within rows
changes the order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from oddslip.core.formatting import nat
from oddslip.core.panel import Kind, Panel
from oddslip.core.results import plain
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Floats, Ints, JsonObject, ScoresLike
from oddslip.core.weights import check_weights
from oddslip.errors import InvalidInput
from oddslip.shifts.budget import check_budget, intended_shifts
from oddslip.shifts.twin import log_odds_gap, open_twin
from oddslip.sources.open import open_rows
from oddslip.sources.views import TwinnedSource


class InversionBounds(NamedTuple):
    """Limits of the inversion under a step budget T eta c, in nat; infinite without a cap.

    Attributes
    ----------
    gap : float
        2 T eta c: the largest difference between the two arms in a cell.
    spread : float
        4 T eta c: the largest difference between the shifts of two cells of a row.
    largest_intended : float
        The largest abs(ln w_j). The inversion can be exact only if it is within ``gap``.
    intended_range : float
        Largest - smallest ln w_j. Only if it is within ``spread`` can the residual be constant
        within rows, and the inversion restore the twin's order. The excess is ``least_spread``.
    """

    gap: float
    spread: float
    largest_intended: float
    intended_range: float

    @property
    def can_be_exact(self) -> bool:
        """Whether every cell can have moved by its ln w_j."""
        return self.largest_intended <= self.gap

    @property
    def can_keep_order(self) -> bool:
        """Whether the residual can be constant within rows."""
        return self.intended_range <= self.spread

    @property
    def least_spread(self) -> float:
        """Least spread of the residual within every row, in nat."""
        return 0.0 if self.can_keep_order else self.intended_range - self.spread

    @property
    def sentence(self) -> str:
        """The limits as a sentence."""
        if not math.isfinite(self.gap):
            return "no cap, so no bound says whether it can be exact"
        if self.can_be_exact:
            return f"can be exact: ln w up to {nat(self.largest_intended)} of {nat(self.gap)} nat"
        if self.can_keep_order:
            return (
                f"cannot be exact: ln w up to {nat(self.largest_intended)}, cells move by at most "
                f"{nat(self.gap)} nat"
            )
        return (
            f"cannot keep the order: ln w differ by {nat(self.intended_range)}, shifts by at most "
            f"{nat(self.spread)} nat"
        )

    def to_dict(self) -> JsonObject:
        """Fields and derived values in built-in types; None for an infinite bound."""
        derived = {
            name: getattr(self, name) for name in ("can_be_exact", "can_keep_order", "least_spread")
        }
        return plain(self._asdict() | derived)  # type: ignore[no-any-return]


def inversion_bounds(weights: ArrayLike, budget: float) -> InversionBounds:
    """Whether the inversion can be exact, or keep the order of rows, under a step budget.

    Both arms must start from the same score, as LightGBM's do.

    Parameters
    ----------
    weights : array-like of shape (n_labels,)
        Positive and finite.
    budget : float
        Step budget T eta c in nat, see `step_budget`.

    Returns
    -------
    InversionBounds

    Examples
    --------
    >>> bounds = inversion_bounds([1.0, 100.0], budget=0.9)
    >>> bounds.gap, bounds.can_be_exact, bounds.spread, round(bounds.least_spread, 3)
    (1.8, False, 3.6, 1.005)
    >>> inversion_bounds([100.0, 100.0], budget=0.9).can_keep_order  # a common weight
    True
    """
    intended, budget = intended_shifts(weights), check_budget(budget)
    return InversionBounds(
        2.0 * budget,
        4.0 * budget,
        float(np.abs(intended).max()),
        float(intended.max() - intended.min()),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Residual:
    """Residual of the inversion, over the cells away from 0 and 1 in both arms.

    Attributes
    ----------
    mean : numpy.ndarray
        Mean residual of each label, in nat; NaN without such a cell.
    largest_gap : numpy.ndarray
        Largest abs(weighted - unweighted log-odds) of each label; NaN without such a cell.
    n_cells : numpy.ndarray
        Cells of each label that were used.
    spread : numpy.ndarray
        Largest - smallest residual of every row with at least two such cells, ascending.
    n_rows : int
        Rows of the panel.
    """

    mean: Floats
    largest_gap: Floats
    n_cells: Ints
    spread: Floats
    n_rows: int

    @property
    def median_spread(self) -> float | None:
        """Median spread over rows; None if no row has a spread."""
        return float(np.median(self.spread)) if self.spread.size else None

    @property
    def largest_spread(self) -> float | None:
        """Largest spread of any row; None if no row has a spread."""
        return float(self.spread[-1]) if self.spread.size else None

    def to_dict(self) -> JsonObject:
        """A summary in built-in types."""
        gaps = self.largest_gap[~np.isnan(self.largest_gap)]
        return plain(  # type: ignore[no-any-return]
            {
                "median_spread": self.median_spread,
                "smallest_spread": float(self.spread[0]) if self.spread.size else None,
                "largest_spread": self.largest_spread,
                "largest_gap": float(gaps.max()) if gaps.size else None,
                "n_rows": self.n_rows,
                "n_rows_spread": int(self.spread.size),
                "n_cells": int(self.n_cells.sum()),
            }
        )


def residual(
    weighted: ScoresLike,
    unweighted: ScoresLike,
    weights: ArrayLike,
    *,
    kind: Kind | None = None,
    unweighted_kind: Kind | None = None,
) -> Residual:
    """Difference that remains between two arms after inverting by ln w_j, per label and row.

    Only cells whose probability is strictly inside (1e-6, 1 - 1e-6) in both arms are used, as in
    `direct_shift`.

    Parameters
    ----------
    weighted, unweighted : anything of shape (n_rows, n_labels)
        The two arms: arrays, panels, sources or paths.
    weights : array-like of shape (n_labels,)
        Positive and finite.
    kind, unweighted_kind : {"probability", "margin"}, optional
        Scale of each arm's scores. Default: probability, and the same kind for the twin.

    Returns
    -------
    Residual

    Examples
    --------
    >>> remainder = residual([[1.0, 3.0]], [[0.0, 1.0]], [1.0, 1.0], kind="margin")
    >>> remainder.mean.tolist(), remainder.spread.tolist()
    ([1.0, 2.0], [1.0])
    """
    arm = open_rows(weighted, kind=kind)
    twin = open_twin(unweighted, unweighted_kind, arm)
    tally = ResidualTally(check_weights(weights, arm.n_labels, label_names=arm.label_names))
    pair = TwinnedSource(arm, twin)
    pair.threads = 1  # no argument says how many
    return pair.run(tally, what="comparing arms").result()


class ResidualTally(MergeableTally):
    """Residuals of blocks whose panels carry their twin's scores, of the same kind."""

    JOINED: ClassVar = {
        "sums": "add",
        "n_cells": "add",
        "largest": "max",
        "n_rows": "add",
        "spreads": "append",
    }

    blocks_apart = 1

    def __init__(self, weights: Floats) -> None:
        self.weights = weights
        self.sums = np.zeros(weights.size)
        self.n_cells = np.zeros(weights.size, np.int64)
        self.largest = np.full(weights.size, -np.inf)
        self.n_rows = 0
        self.spreads: list[Floats] = []

    def add(self, panel: Panel) -> None:
        """Add one block of rows that carries its twin's scores."""
        if panel.twin is None:
            raise InvalidInput("a twin must come with every row, got a block without one.")
        gap = log_odds_gap(panel, panel.twin)
        valid = ~np.isnan(gap)
        self.n_rows += panel.n_rows
        self.n_cells += valid.sum(axis=0)
        np.maximum(
            self.largest,
            np.where(valid, np.abs(gap), -np.inf).max(axis=0, initial=-np.inf),
            out=self.largest,
        )
        gap -= np.log(self.weights)
        self.sums += np.where(valid, gap, 0.0).sum(axis=0)
        gap = gap[valid.sum(axis=1) > 1]
        self.spreads.append(np.nanmax(gap, axis=1) - np.nanmin(gap, axis=1))

    def result(self) -> Residual:
        """Means by label, spreads by row."""
        some = self.n_cells > 0
        mean = np.full(self.sums.size, np.nan)
        np.divide(self.sums, self.n_cells, out=mean, where=some)
        return Residual(
            mean,
            np.where(some, self.largest, np.nan),
            self.n_cells,
            np.sort(np.concatenate([np.empty(0), *self.spreads])),
            self.n_rows,
        )
