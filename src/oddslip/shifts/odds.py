"""The odds shift and its inversion: a weight w_j adds ln w_j to the log-odds of label j."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oddslip.core.panel import Kind, Panel
from oddslip.core.threads import check_all_rows
from oddslip.core.types import Array, Floats, ScoresLike
from oddslip.core.weights import balance_ratios, check_weights
from oddslip.sources import Source
from oddslip.sources.arrays import ArraySource
from oddslip.sources.open import open_rows


def log_odds(scores: ScoresLike, *, kind: Kind | None = None) -> Array:
    """Log-odds of a block of scores.

    Parameters
    ----------
    scores : anything of shape (n_rows, n_labels)
        Scores, a panel, a source or a path.
    kind : {"probability", "margin"}, optional
        Scale of the scores; default: probability.

    Returns
    -------
    numpy.ndarray of shape (n_rows, n_labels)
        Margins are returned without a copy. Probabilities become float64; a probability and its
        complement are clipped at 1e-12, so every cell is between -27.64 and 27.64.

    Examples
    --------
    >>> log_odds([[0.5, 0.75]]).round(6).tolist()
    [[0.0, 1.098612]]
    """
    source = open_rows(scores, kind=kind)
    if isinstance(source, ArraySource) and source.kind == "margin":
        for block in source.blocks():
            block.checked()
        return np.asarray(source.panel.scores)
    if source.kind == "margin":
        return _gather(source, source.dtype, lambda block, out: np.copyto(out, block))
    return _gather(source, np.dtype(np.float64), _logit)


def shift_odds(scores: ScoresLike, weights: ArrayLike, *, kind: Kind | None = None) -> Array:
    """Scores with ln w_j added to the log-odds of every label: p becomes wp / (wp + 1 - p).

    Parameters
    ----------
    scores : anything of shape (n_rows, n_labels)
        Scores, a panel, a source or a path.
    weights : array-like of shape (n_labels,)
        Positive and finite.
    kind : {"probability", "margin"}, optional
        Scale of the scores; default: probability.

    Returns
    -------
    numpy.ndarray of shape (n_rows, n_labels)
        Of the kind and dtype of the input. Nothing is clipped: 0 stays 0 and 1 stays 1.

    Examples
    --------
    >>> shift_odds([[0.5, 0.2]], [3.0, 1.0]).tolist()
    [[0.75, 0.2]]
    """
    return _shift(scores, weights, kind, invert=False)


def invert_odds(scores: ScoresLike, weights: ArrayLike, *, kind: Kind | None = None) -> Array:
    """Scores with ln w_j subtracted from the log-odds of every label: q becomes q / (q + w(1 - q)).

    The inverse of `shift_odds`. For margins the round trip is exact up to rounding; probabilities
    close to 1 lose precision.

    Parameters
    ----------
    scores : anything of shape (n_rows, n_labels)
        Scores, a panel, a source or a path.
    weights : array-like of shape (n_labels,)
        Positive and finite.
    kind : {"probability", "margin"}, optional
        Scale of the scores; default: probability.

    Returns
    -------
    numpy.ndarray of shape (n_rows, n_labels)
        Of the kind and dtype of the input.

    Examples
    --------
    >>> invert_odds([[0.75, 0.2]], [3.0, 1.0]).tolist()
    [[0.5, 0.2]]
    """
    return _shift(scores, weights, kind, invert=True)


def balanced_weights(counts: ArrayLike, n_rows: int) -> Floats:
    """Balanced weights r_j = negatives / positives.

    Parameters
    ----------
    counts : array-like of shape (n_labels,)
        Positives of each label.
    n_rows : int
        Rows in which they were counted.

    Returns
    -------
    numpy.ndarray of shape (n_labels,)
        1 for a label without positives or without negatives.

    Examples
    --------
    >>> balanced_weights([1, 2, 0], 4).tolist()
    [3.0, 1.0, 1.0]
    """
    return balance_ratios(counts, n_rows)


def logit_block(panel: Panel) -> Floats:
    """Log-odds of one block as a new float64 array; cells are not checked."""
    if panel.kind == "margin":
        return panel.scores.astype(np.float64)
    out = np.empty(panel.scores.shape)
    _logit(panel.scores, out)
    return out


def _logit(block: Array, out: Array) -> None:
    from oddslip.kernels.logits import weigh_odds

    weigh_odds(np.ascontiguousarray(block), np.ones(block.shape[1]), out)
    np.log(out, out=out)


def _shift(scores: ScoresLike, weights: ArrayLike, kind: Kind | None, *, invert: bool) -> Array:
    from oddslip.kernels.logits import shift_probabilities

    source = open_rows(scores, kind=kind)
    weight = check_weights(weights, source.n_labels, label_names=source.label_names)
    shift_nat = -np.log(weight) if invert else np.log(weight)
    ones = np.ones_like(weight)
    up, down = (ones, weight) if invert else (weight, ones)

    def shift_block(block: Array, out: Array) -> None:
        if source.kind == "margin":
            np.add(block, shift_nat, out=out, dtype=np.float64, casting="same_kind")
        else:
            shift_probabilities(np.ascontiguousarray(block), up, down, out)

    return _gather(source, source.dtype, shift_block)


def _gather(source: Source, dtype: np.dtype[Any], fill: Callable[[Array, Array], None]) -> Array:
    """A new array, filled block by block."""
    scores = np.empty((source.n_rows, source.n_labels), dtype)
    start = 0
    for block in source.blocks():
        fill(block.checked().scores, scores[start : start + block.n_rows])
        start += block.n_rows
    check_all_rows(start, source.n_rows)
    return scores
