"""Flood: how much of a top K the first round of a weighted booster hands to rare labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from oddslip.core.types import Floats
from oddslip.tallies.logodds_histogram import SATURATED_MARGIN

# The most accurate threshold on the generated worlds of docs/paper/boundary.md. On the 88 cells of
# other data sets there it names all 11 collapsed ones, and 5 of the 77 others.
FLOOD_THRESHOLD = 0.378


def first_step(
    prior: Floats,
    weights: Floats,
    *,
    learning_rate: float,
    rows_in_leaf: int = 20,
    l2: float = 0.0,
    max_delta_step: float = 0.0,
) -> Floats:
    """Nats that the first round adds to a leaf of fewest rows with one positive, per label.

    LightGBM starts at the unweighted prior p and takes a Newton step. With one positive of weight
    w among m rows that is eta (w (1 - p) - (m - 1) p) / ((w + m - 1) p (1 - p) + l2): about
    eta / p where w outweighs the negatives.

    Parameters
    ----------
    prior, weights : ndarray of shape (n_labels,)
        Prevalence, strictly between 0 and 1, and positive weight of each label.
    learning_rate, rows_in_leaf, l2, max_delta_step
        Of the booster; a cap of 0 means none.

    Returns
    -------
    ndarray of shape (n_labels,)

    Examples
    --------
    >>> first_step(np.array([0.001]), np.array([999.0]), learning_rate=0.05).round(1).tolist()
    [49.1]
    """
    negatives = rows_in_leaf - 1
    slope = weights * (1 - prior) - negatives * prior
    curve = (weights + negatives) * prior * (1 - prior) + l2
    step = np.maximum(0.0, slope / curve)
    if max_delta_step:
        step = np.minimum(step, max_delta_step)
    return np.asarray(learning_rate * step)


def overshoot(prior: Floats, weights: Floats, **booster: float) -> Floats:
    """The first step as a share of the way from the prior to a stored 1.0, at most 1.

    Parameters
    ----------
    prior, weights : ndarray of shape (n_labels,)
    **booster
        As in `first_step`.

    Returns
    -------
    ndarray of shape (n_labels,)
    """
    way: Floats = SATURATED_MARGIN - logit(prior)
    return np.minimum(1.0, first_step(prior, weights, **booster) / way)  # type: ignore[arg-type]


def flood(
    n_positives: ArrayLike,
    n_rows: int,
    weights: ArrayLike,
    *,
    k: int,
    num_leaves: int = 31,
    rows_in_leaf: int = 20,
    **booster: float,
) -> float:
    """Whether rare labels will flood the lists of a weighted booster, known before training.

    ln(1 + cells of a row that leaves with one positive hold, each times its overshoot, over K),
    less the same without weights. Above `FLOOD_THRESHOLD` expect the ranking to collapse.

    Parameters
    ----------
    n_positives : array-like of shape (n_labels,)
        Positives of each label among the training rows.
    n_rows : int
        Training rows.
    weights : array-like of shape (n_labels,)
        Positive weight of each label.
    k : int
        Slots per row.
    num_leaves, rows_in_leaf
        Of the booster.
    **booster
        ``learning_rate``, ``l2`` and ``max_delta_step``, as in `first_step`.

    Returns
    -------
    float
        0 without weights. Labels of a single class have no model and do not count.

    Examples
    --------
    >>> counts = [300, 30, 3]
    >>> flood(counts, 1000, [1, 1, 1], k=2, learning_rate=0.05)
    0.0
    >>> flood(counts, 1000, [2, 32, 332], k=2, learning_rate=0.05) > 0
    True
    """
    positives, weight = np.asarray(n_positives, np.float64), np.asarray(weights, np.float64)
    mixed = (positives > 0) & (positives < n_rows)
    positives, weight = positives[mixed], weight[mixed]
    prior = positives / n_rows
    leaves = np.minimum(positives, num_leaves - 1)
    share = np.minimum(1.0, leaves * rows_in_leaf / n_rows)  # of the rows, per label
    booster["rows_in_leaf"] = rows_in_leaf
    weighted, plain = (
        np.log1p((overshoot(prior, each, **booster) * share).sum() / k)
        for each in (weight, np.ones_like(weight))
    )
    return float(weighted - plain)
