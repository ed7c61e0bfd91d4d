"""Maps of scores to calibrated values: one cell at a time, and a whole block.

A label's map has a code and at most three numbers or a range of knots. Its *value* is what labels
are compared by: a probability or log-odds. Every map is non-decreasing in the score. Whoever
evaluates a cell uses `value_of` or, for knots, `place_of` and `interpolate`, so that a block mapped
whole and a cell mapped alone agree to the last bit.

A knot is a row (score, value, slope to the next knot, value of the next knot); the last knot of a
label and every knot of a step function have slope 0.

Blocks are taken in tiles of rows and strips of columns, turned so that a label's cells lie in one
piece and its knots stay in the first cache.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oddslip.kernels.compiling import inlined, kernel

KNOTS, AFFINE, BETA, CONSTANT, IDENTITY, EXCLUDED = range(6)

CLIP = 1e-12  # probabilities are kept this far from 0 and 1 before their log-odds are taken
ROOF = 1.0 - CLIP
LOWEST = -np.finfo(np.float64).max  # labels that are not excluded stay above -inf

STRIP = 16
TILE = 256
PITCH = TILE + 8  # columns of a strip start in different sets of the cache


@inlined
def log_odds(score, margin):  # type: ignore[no-untyped-def]
    """Log-odds of a score, clipped where the score is a probability."""
    if margin:
        return score
    clipped = min(max(score, CLIP), ROOF)
    return math.log(clipped / (1.0 - clipped))


@inlined
def sigmoid(z):  # type: ignore[no-untyped-def]
    """Probability of log-odds, without overflow."""
    small = math.exp(-abs(z))
    return (1.0 if z >= 0.0 else small) / (1.0 + small)


@inlined
def _beta(score, a, b, c, margin):  # type: ignore[no-untyped-def]
    """Beta map: a ln(s) - b ln(1 - s) + c."""
    if margin:
        tail = math.log1p(math.exp(-abs(score)))
        return b * (max(score, 0.0) + tail) - a * (max(-score, 0.0) + tail) + c
    clipped = min(max(score, CLIP), ROOF)
    return a * math.log(clipped) - b * math.log1p(-clipped) + c


@inlined
def value_of(code, score, a, b, c, margin, odds):  # type: ignore[no-untyped-def]
    """Value of a cell of a label without knots, on the scale labels are compared on.

    ``a`` of a constant is already on that scale.
    """
    if code == CONSTANT:
        return a
    if code == EXCLUDED:
        return -np.inf
    if code == AFFINE:
        value = a * log_odds(score, margin) + b
    elif code == BETA:
        value = _beta(score, a, b, c, margin)
    elif odds:
        value = log_odds(score, margin)
    elif margin:
        value = sigmoid(score)
    else:
        value = score
    return max(value, LOWEST)


@inlined
def place_of(score, start, stop, x):  # type: ignore[no-untyped-def]
    """The last knot at or below a score, or the first knot; halving without a branch."""
    at = start
    left = stop - start
    while left > 1:
        half = left >> 1
        at += half * np.int64(x[at + half] <= score)
        left -= half
    return at


@inlined
def interpolate(score, knot):  # type: ignore[no-untyped-def]
    """Value at a score from the last knot at or below it (or the first one)."""
    value = knot[2] * (max(score, knot[0]) - knot[0]) + knot[1]
    # Rounding may overshoot the next knot. Not-a-number comes from an endless slope or gap.
    value = min(value, knot[3])
    return value if value >= knot[1] else knot[1]


@inlined
def _turn(scores, start, stop, column, width, low, high, strip):  # type: ignore[no-untyped-def]
    """Copy a strip so that each column lies in one piece; count the cells that are not valid."""
    wrong = 0
    # A width known to the compiler is unrolled; an unknown one becomes slow scattered stores.
    if width == STRIP:
        for i in range(start, stop):
            row = scores[i]
            for w in range(STRIP):
                strip[w, i - start] = row[column + w]
    else:
        for i in range(start, stop):
            for w in range(width):
                strip[w, i - start] = scores[i, column + w]
    for w in range(width):
        cells = strip[w]
        for i in range(stop - start):
            wrong += 0 if (cells[i] >= low) & (cells[i] <= high) else 1
            cells[i] += 0.0  # -0.0 is 0.0
    return wrong


@inlined
def _turn_back(turned, start, stop, column, width, mapped):  # type: ignore[no-untyped-def]
    """Write a strip to its columns."""
    if width == STRIP:
        for i in range(start, stop):
            row = mapped[i]
            for w in range(STRIP):
                row[column + w] = turned[w, i - start]
    else:
        for i in range(start, stop):
            for w in range(width):
                mapped[i, column + w] = turned[w, i - start]


@inlined
def _map_knots(cells, n, start, stop, x, knots, places, mapped):  # type: ignore[no-untyped-def]
    """Values of some cells of a label with knots."""
    # One halving for all cells at a time: the cells are independent, so this runs on vectors.
    for i in range(n):
        places[i] = start
    left = stop - start
    while left > 1:
        half = left >> 1
        for i in range(n):
            at = places[i]
            places[i] = at + half if x[at + half] <= cells[i] else at
        left -= half
    for i in range(n):
        mapped[i] = interpolate(cells[i], knots[places[i]])


@inlined
def _finish(code, score, value, margin, odds):  # type: ignore[no-untyped-def]
    """The probability of a cell of a label without knots, from its value."""
    if code == CONSTANT:
        return value
    if code == EXCLUDED:
        return 0.0
    if code == IDENTITY and not margin:
        return score
    return sigmoid(value) if odds else value


MAPS = (
    "const int8[::1], const float64[::1], const float64[::1], const float64[::1], "
    "const int64[::1], const int64[::1], const float64[::1], const float64[:,::1], int64, int64"
)
_MAPPING = "int64(const {score}[:,::1], " + MAPS + ", float64, float64, int64, {out}[:,::1])"


@kernel(
    _MAPPING.format(score="float32", out="float32"),
    _MAPPING.format(score="float32", out="float64"),
    _MAPPING.format(score="float64", out="float32"),
    _MAPPING.format(score="float64", out="float64"),
    error_model="numpy",
)
def map_cells(
    scores: Any,
    code: Any,
    a: Any,
    b: Any,
    c: Any,
    start: Any,
    stop: Any,
    x: Any,
    knots: Any,
    margin: Any,
    odds: Any,
    low: Any,
    high: Any,
    to_probability: Any,
    mapped: Any,
) -> Any:
    """Fill ``mapped`` with values or probabilities; returns how many cells are not in [low, high].

    ``a`` of a constant is what is to be written. An excluded label has value -inf and
    probability 0.
    """
    n_rows, n_labels = scores.shape
    strip = np.empty((STRIP, PITCH), np.float64)
    turned = np.empty((STRIP, PITCH), np.float64)
    places = np.empty(TILE, np.int64)
    wrong = 0
    for first in range(0, n_rows, TILE):
        last = min(first + TILE, n_rows)
        n = last - first
        for column in range(0, n_labels, STRIP):
            width = min(STRIP, n_labels - column)
            wrong += _turn(scores, first, last, column, width, low, high, strip)
            for w in range(width):
                label = column + w
                cells = strip[w]
                out = turned[w]
                kind = code[label]
                if kind == KNOTS:
                    _map_knots(cells, n, start[label], stop[label], x, knots, places, out)
                    continue
                for i in range(n):
                    value = value_of(kind, cells[i], a[label], b[label], c[label], margin, odds)
                    if to_probability:
                        value = _finish(kind, cells[i], value, margin, odds)
                    out[i] = value
            _turn_back(turned, first, last, column, width, mapped)
    return wrong
