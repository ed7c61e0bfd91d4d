"""`Plan`: what a weight will do, before anything is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.metrics.evaluations import Estimate
from oddslip.results import as_frame, html_table, plain

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WhatIfLoss:
    """What the weights would do to the top K of the unweighted scores, if fully realized.

    ``unweighted``, ``weighted`` and ``loss`` are MAP@K and need the true labels of the rows.
    """

    n_rows: int
    mean_overlap: float
    share_changed: float
    unweighted: Estimate | None = None
    weighted: Estimate | None = None
    loss: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only."""
        told: dict[str, Any] = {
            "n_rows": self.n_rows,
            "mean_overlap": self.mean_overlap,
            "share_changed": self.share_changed,
        }
        for name in ("unweighted", "weighted", "loss"):
            value = getattr(self, name)
            told[name] = value and value.to_dict()
        return plain(told)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What `plan` found. Start with ``recommendation``.

    Attributes
    ----------
    recommendation : str
        What to do, in a sentence or two.
    weights, intended : numpy.ndarray
        w_j and ln w_j, in nat.
    budget : float
        The largest shift the booster can realize, in nat; infinite without a cap.
    unrealizable : numpy.ndarray of bool
        Labels whose ln w_j is beyond the budget.
    over_correction : numpy.ndarray
        Nats by which the inversion would overshoot at least.
    admitting_cap : float
        The smallest cap (max_delta_step) that admits every intended shift.
    unsaturating_cap : float
        The largest cap that rules out saturated cells.
    leaf_value : numpy.ndarray
        Where a leaf of ``rows_in_leaf`` rows with a single positive is driven: near 1, leaves
        with one positive and leaves with many tie.
    leaf_ratio : numpy.ndarray
        Negatives per positive up to which a leaf is driven to a stored 1.0.
    what_if : WhatIfLoss or None
        Needs the scores of an unweighted model.
    """

    recommendation: str
    label_names: tuple[str, ...]
    n_rows: int
    n_positives: NDArray[np.int64]
    prior: Floats
    weights: Floats
    intended: Floats
    rounds: int
    learning_rate: float
    max_delta_step: float
    budget: float
    unrealizable: NDArray[np.bool_]
    over_correction: Floats
    admitting_cap: float
    unsaturating_cap: float
    rows_in_leaf: int
    leaf_value: Floats
    leaf_ratio: Floats
    leaf_saturates: NDArray[np.bool_]
    k: int
    what_if: WhatIfLoss | None = None

    @property
    def n_labels(self) -> int:
        """Labels that are planned for."""
        return len(self.label_names)

    @property
    def capped(self) -> bool:
        """Whether the leaf step has a cap."""
        return math.isfinite(self.budget)

    def label_columns(self) -> dict[str, Any]:
        """One value per label in each column."""
        return {
            "label": list(self.label_names),
            "n_positives": self.n_positives,
            "prior": self.prior,
            "weight": self.weights,
            "intended_shift": self.intended,
            "unrealizable": self.unrealizable,
            "over_correction": self.over_correction,
            "leaf_value": self.leaf_value,
            "leaf_ratio": self.leaf_ratio,
            "leaf_saturates": self.leaf_saturates,
        }

    def to_frame(self) -> Any:
        """A pandas frame with one line per label."""
        return as_frame(self.label_columns())

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only: what ``--json`` prints. An infinite budget or cap is null."""
        return plain(  # type: ignore[no-any-return]
            {
                "schema": "oddslip.plan/1",
                "recommendation": self.recommendation,
                "n_rows": self.n_rows,
                "n_labels": self.n_labels,
                "k": self.k,
                "rounds": self.rounds,
                "learning_rate": self.learning_rate,
                "max_delta_step": self.max_delta_step,
                "capped": self.capped,
                "budget": self.budget,
                "n_unrealizable": int(self.unrealizable.sum()),
                "smallest_admitting_cap": self.admitting_cap,
                "largest_unsaturating_cap": self.unsaturating_cap,
                "rows_in_leaf": self.rows_in_leaf,
                "n_leaf_saturates": int(self.leaf_saturates.sum()),
                "what_if": self.what_if and self.what_if.to_dict(),
                "labels": self.label_columns(),
            }
        )

    def plot(self) -> Any:
        """A matplotlib figure: ln w of every label against the step budget.

        Examples
        --------
        >>> from oddslip import plan
        >>> early = plan(counts=[500, 10], n_rows=1000, rounds=60, learning_rate=0.05)
        >>> early.plot().axes[0].get_xlabel()
        'intended shift ln w, nat'
        """
        # When asked for, as in `Diagnosis.plot`: else reports import results, never the reverse.
        from oddslip.reports.plan_figures import draw_plan

        return draw_plan(self)

    def _repr_html_(self) -> str:
        rows = [
            ["largest intended shift, nat", f"{np.abs(self.intended).max():.3f}"],
            ["step budget, nat", f"{self.budget:.3f}" if self.capped else "no cap, no bound"],
            ["labels beyond the budget", f"{int(self.unrealizable.sum()):,}"],
            ["smallest cap that admits all", f"{self.admitting_cap:.4g}"],
            ["largest cap without saturation", f"{self.unsaturating_cap:.4g}"],
        ]
        return html_table(["", "value"], rows, self.recommendation)
