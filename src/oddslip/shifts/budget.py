"""The step budget: how far a capped booster can shift scores, and when a leaf saturates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oddslip.core.arguments import is_number
from oddslip.core.types import Bools, Floats
from oddslip.core.weights import check_weights, per_label
from oddslip.errors import InvalidInput
from oddslip.tallies.logodds_histogram import SATURATED_MARGIN


def step_budget(rounds: int, learning_rate: float, max_delta_step: float | None = None) -> float:
    """Largest shift of a booster with T rounds, learning rate eta and leaf-step cap c: T eta c.

    Parameters
    ----------
    rounds : int
        Boosting rounds T.
    learning_rate : float
        Learning rate eta.
    max_delta_step : float, optional
        Leaf-step cap c; None or 0 for no cap, as in LightGBM and XGBoost.

    Returns
    -------
    float
        In nat; infinity without a cap.

    Examples
    --------
    >>> step_budget(60, 0.05, 0.5)
    1.5
    >>> step_budget(60, 0.05, 0)
    inf
    """
    cap = 0.0 if max_delta_step is None else max_delta_step
    if not (is_number(cap) and cap >= 0):
        raise InvalidInput(f"max_delta_step must be 0 (no cap) or positive, got {max_delta_step}.")
    reach = _reach(rounds, learning_rate)
    return math.inf if cap == 0 else reach * float(cap)


def unrealizable(weights: ArrayLike, budget: float) -> Bools:
    """Labels whose intended shift abs(ln w_j) exceeds the budget.

    Parameters
    ----------
    weights : array-like of shape (n_labels,)
        Positive and finite.
    budget : float
        Step budget in nat, see `step_budget`.

    Returns
    -------
    numpy.ndarray of bool, shape (n_labels,)

    Examples
    --------
    >>> unrealizable([1.0, 100.0], budget=2.1).tolist()
    [False, True]
    """
    return np.abs(intended_shifts(weights)) > check_budget(budget)


def over_correction(weights: ArrayLike, budget: float) -> Floats:
    """Least overshoot of the analytic inversion, in nat: max(0, abs(ln w_j) - budget).

    Parameters
    ----------
    weights : array-like of shape (n_labels,)
        Positive and finite.
    budget : float
        Step budget in nat, see `step_budget`.

    Returns
    -------
    numpy.ndarray of shape (n_labels,)

    Examples
    --------
    >>> over_correction([1.0, 100.0], budget=2.1).round(3).tolist()
    [0.0, 2.505]
    """
    return np.maximum(0.0, np.abs(intended_shifts(weights)) - check_budget(budget))


def smallest_admitting_cap(weights: ArrayLike, rounds: int, learning_rate: float) -> float:
    """Smallest leaf-step cap whose step budget admits every intended shift.

    Parameters
    ----------
    weights : array-like of shape (n_labels,)
        Positive and finite.
    rounds : int
        Boosting rounds.
    learning_rate : float
        Learning rate.

    Returns
    -------
    float

    Examples
    --------
    >>> round(smallest_admitting_cap([1.0, 100.0], 60, 0.05), 4)
    1.5351
    """
    shift_nat = float(np.abs(intended_shifts(weights)).max())
    reach = _reach(rounds, learning_rate)
    cap = shift_nat / reach
    while cap * reach < shift_nat:  # rounding must not leave the budget short
        cap = math.nextafter(cap, math.inf)
    return cap


def largest_unsaturating_cap(
    prior: ArrayLike, rounds: int, learning_rate: float, margin: float = SATURATED_MARGIN
) -> float:
    """Largest leaf-step cap under which no cell can reach the saturated margin.

    A booster starts at logit(prior_j) and moves by less than its step budget.

    Parameters
    ----------
    prior : array-like of shape (n_labels,)
        Prevalence of each label among the training rows.
    rounds : int
        Boosting rounds.
    learning_rate : float
        Learning rate.
    margin : float
        Log-odds from which a cell is saturated.

    Returns
    -------
    float
        0 if a label starts beyond the margin, where no cap helps; infinity if every prior is 0.

    Examples
    --------
    >>> round(largest_unsaturating_cap([0.5, 0.01], 60, 0.05), 4)
    5.7762
    """
    share = per_label("prior", prior)
    if share.size == 0 or not ((share >= 0) & (share <= 1)).all():
        raise InvalidInput("prior must hold at least one label, each between 0 and 1.")
    highest = float(share.max())
    if highest == 0:
        return math.inf  # no positives: no label starts anywhere
    start = math.inf if highest == 1 else math.log(highest / (1 - highest))
    reach = _reach(rounds, learning_rate)
    cap = max(0.0, (margin - start) / reach)
    while cap > 0 and start + cap * reach >= margin:
        cap = math.nextafter(cap, 0.0)
    return cap


def leaf_value(n_pos: ArrayLike, n_neg: ArrayLike, weight: ArrayLike) -> Any:
    """Optimal value of a leaf under weighted log-loss: w n_pos / (w n_pos + n_neg).

    Parameters
    ----------
    n_pos, n_neg : array-like
        Positives and negatives in the leaf, not both 0.
    weight : array-like
        Weight of a positive.

    Returns
    -------
    float or numpy.ndarray
        A probability; the arguments broadcast.

    Examples
    --------
    >>> float(leaf_value(1, 9, 9.0))
    0.5
    """
    up = np.asarray(weight, np.float64) * np.asarray(n_pos, np.float64)
    total = up + np.asarray(n_neg, np.float64)
    if not ((up >= 0) & (total > 0) & (total < np.inf) & (total >= up)).all():
        raise InvalidInput(
            "n_pos, n_neg and weight must be at least 0 and finite, and a leaf must not be empty."
        )
    return up / total


def leaf_saturation_weight(n_pos: ArrayLike, n_neg: ArrayLike, eps: float) -> Any:
    """Weight from which the value of a leaf is within eps of 1: n_neg / (eps n_pos).

    Parameters
    ----------
    n_pos, n_neg : array-like
        Positives (at least one) and negatives in the leaf.
    eps : float
        Distance from 1.

    Returns
    -------
    float or numpy.ndarray
        The arguments broadcast.

    Examples
    --------
    >>> float(leaf_saturation_weight(1, 9, 0.5))
    18.0
    """
    positives, negatives = np.asarray(n_pos, np.float64), np.asarray(n_neg, np.float64)
    if not (eps > 0 and (positives > 0).all() and (negatives >= 0).all()):
        raise InvalidInput("n_pos and eps must be positive and n_neg at least 0.")
    return negatives / (eps * positives)


def _reach(rounds: int, learning_rate: float) -> float:
    numbers = is_number(rounds) and is_number(learning_rate)
    if not (numbers and rounds >= 1 and 0 < learning_rate < math.inf):
        raise InvalidInput(
            "rounds must be at least 1 and learning_rate positive, "
            f"got rounds={rounds}, learning_rate={learning_rate}."
        )
    return rounds * learning_rate


def intended_shifts(weights: ArrayLike) -> Floats:
    """ln w of every label, of which there must be one."""
    weight = per_label("weights", weights)
    if weight.size == 0:
        raise InvalidInput("weights must hold at least one label, got none.")
    return np.asarray(np.log(check_weights(weight, weight.size)))


def check_budget(budget: float) -> float:
    """The step budget as a float, or an error if it is below 0."""
    if not (is_number(budget) and budget >= 0):
        raise InvalidInput(f"budget must be at least 0, got {budget}. See step_budget.")
    return float(budget)
