"""The odds shift: what a weight does to a score, and its inversion.

A weight w_j multiplies the odds of label j, so it adds ln w_j to the log-odds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddslip.core.panel import Kind, Panel
from oddslip.core.threads import check_all_rows
from oddslip.core.weights import balance_ratios, check_weights
from oddslip.sources import Source, open_source
from oddslip.sources.arrays import ArraySource


def log_odds(scores: Any, *, kind: Kind | None = None) -> NDArray[Any]:
    """Log-odds of a block of scores.

    Parameters
    ----------
    scores : anything of shape (n_rows, n_labels)
        Scores, a panel, a source or a path.
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise.

    Returns
    -------
    numpy.ndarray of shape (n_rows, n_labels)
        Margins pass through, not copied. Probabilities become float64; a probability and its
        complement count as at least 1e-12, so every cell is between -27.64 and 27.64.

    Examples
    --------
    >>> log_odds([[0.5, 0.75]]).round(6).tolist()
    [[0.0, 1.098612]]
    """
    source = open_source(scores, kind=kind)
    if isinstance(source, ArraySource) and source.kind == "margin":
        for block in source.blocks():
            block.checked()
        return np.asarray(source.panel.scores)
    if source.kind == "margin":
        return _gather(source, source.dtype, lambda block, out: np.copyto(out, block))
    return _gather(source, np.dtype(np.float64), _take_logit)


def shift_odds(scores: Any, weights: ArrayLike, *, kind: Kind | None = None) -> NDArray[Any]:
    """Scores with ln w_j added to the log-odds of every label: p becomes wp / (wp + 1 - p).

    Parameters
    ----------
    scores : anything of shape (n_rows, n_labels)
        Scores, a panel, a source or a path.
    weights : array-like of shape (n_labels,)
        Positive and finite.
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise.

    Returns
    -------
    numpy.ndarray of shape (n_rows, n_labels)
        Of the kind and type of the input. Nothing is clipped: 0 and 1 stay what they are.

    Examples
    --------
    >>> shift_odds([[0.5, 0.2]], [3.0, 1.0]).tolist()
    [[0.75, 0.2]]
    """
    return _shift(scores, weights, kind, invert=False)


def invert_odds(scores: Any, weights: ArrayLike, *, kind: Kind | None = None) -> NDArray[Any]:
    """Scores with ln w_j taken from the log-odds of every label: q becomes q / (q + w(1 - q)).

    Undoes and takes the arguments of `shift_odds`. In log-odds the round trip is exact up to
    rounding. Probabilities lose what their type can not hold: close to 1, much of it.

    Examples
    --------
    >>> invert_odds([[0.75, 0.2]], [3.0, 1.0]).tolist()
    [[0.5, 0.2]]
    """
    return _shift(scores, weights, kind, invert=True)


def balanced_weights(counts: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Balanced weights r_j = negatives / positives, from each label's positives among n_rows rows.

    A label with no positive gets 1. So does one with no negative: 0 is no weight.

    Examples
    --------
    >>> balanced_weights([1, 2, 0], 4).tolist()
    [3.0, 1.0, 1.0]
    """
    return balance_ratios(counts, n_rows)


def logit_block(panel: Panel) -> NDArray[np.float64]:
    """Log-odds of one block as a new float64 array, cells not checked."""
    if panel.kind == "margin":
        return panel.scores.astype(np.float64)
    out = np.empty(panel.scores.shape)
    _take_logit(panel.scores, out)
    return out


def _take_logit(block: NDArray[Any], out: NDArray[Any]) -> None:
    from oddslip.kernels.logits import weigh_odds

    weigh_odds(np.ascontiguousarray(block), np.ones(block.shape[1]), out)
    np.log(out, out=out)


def _shift(scores: Any, weights: ArrayLike, kind: Kind | None, *, invert: bool) -> NDArray[Any]:
    from oddslip.kernels.logits import shift_probabilities

    source = open_source(scores, kind=kind)
    weight = check_weights(weights, source.n_labels, label_names=source.label_names)
    shift_nat = -np.log(weight) if invert else np.log(weight)
    ones = np.ones_like(weight)
    up, down = (ones, weight) if invert else (weight, ones)

    def move(block: NDArray[Any], out: NDArray[Any]) -> None:
        if source.kind == "margin":
            np.add(block, shift_nat, out=out, dtype=np.float64, casting="same_kind")
        else:
            shift_probabilities(np.ascontiguousarray(block), up, down, out)

    return _gather(source, source.dtype, move)


def _gather(source: Source, dtype: np.dtype[Any], fill: Any) -> NDArray[Any]:
    """One new array, filled block by block."""
    whole = np.empty((source.n_rows, source.n_labels), dtype)
    start = 0
    for block in source.blocks():
        fill(block.checked().scores, whole[start : start + block.n_rows])
        start += block.n_rows
    check_all_rows(start, source.n_rows)
    return whole
