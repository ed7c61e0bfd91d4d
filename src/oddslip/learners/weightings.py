"""Weights of the positives, one per label, by name or as numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddslip.errors import InvalidInput

_NAMES = '"none", "balanced", "sqrt", a multiple such as "10x", "common", or one number per label'


def balance_ratios(n_positives: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """r_j = negatives / positives of each label; 1 where either is missing.

    Examples
    --------
    >>> balance_ratios([5, 0, 20], 20)
    array([3., 1., 1.])
    """
    positives = np.asarray(n_positives, np.float64)
    ratios = np.ones_like(positives)
    live = (positives > 0) & (positives < n_rows)
    np.divide(n_rows - positives, positives, out=ratios, where=live)
    return ratios


def resolve_weights(weights: Any, n_positives: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """The weight w_j of every label.

    Parameters
    ----------
    weights : str, number or array-like of shape (n_labels,)
        ``"none"``: 1. ``"balanced"``: r_j, negatives over positives. ``"sqrt"``: its square root.
        ``"10x"``: ten times r_j, or any other multiple. ``"common"``: the same weight for all
        labels, negatives over positives of all cells together. Or the weights themselves.
    n_positives : array-like of shape (n_labels,)
        Positives of each label among the training rows. A label without any has r_j = 1.
    n_rows : int
        Training rows.

    Examples
    --------
    >>> resolve_weights("balanced", [5, 0, 1], 20)
    array([ 3.,  1., 19.])
    >>> resolve_weights("10x", [5, 0, 1], 20)
    array([ 30.,  10., 190.])
    """
    positives = np.asarray(n_positives, np.float64)
    if weights is None or (isinstance(weights, str) and weights == "none"):
        return np.ones_like(positives)
    if isinstance(weights, str):
        return _named(weights, positives, n_rows)
    try:
        told = np.asarray(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"weights must be {_NAMES}, got {weights!r:.60}.") from error
    if told.ndim == 0:
        told = np.full_like(positives, float(told))
    if told.shape != positives.shape:
        raise InvalidInput(
            f"weights must hold one number per label, n_labels={positives.size}, "
            f"got shape {told.shape}."
        )
    wrong = np.flatnonzero(~((told > 0) & np.isfinite(told)))
    if wrong.size:
        at = int(wrong[0])
        raise InvalidInput(f"weights must be positive and finite, got {told[at]:g} at label {at}.")
    return told.copy()


def _named(name: str, positives: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
    ratios = balance_ratios(positives, n_rows)
    if name == "balanced":
        return ratios
    if name == "sqrt":
        return np.sqrt(ratios)
    if name == "common":
        total = float(positives.sum())
        cells = float(n_rows) * positives.size
        return np.full_like(positives, (cells - total) / total if 0 < total < cells else 1.0)
    multiple = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)x", name)
    if multiple is None or float(multiple[1]) == 0:
        raise InvalidInput(f"weights must be {_NAMES}, got {name!r}.")
    return ratios * float(multiple[1])
