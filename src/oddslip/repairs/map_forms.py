"""The forms of a label's map: their validation and array layout.

Imports only NumPy, since `oddslip.serving.runtime` uses it without the kernels.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput

Scale = Literal["probability", "log_odds"]
KINDS = ("probability", "margin")
# The same codes as in `oddslip.kernels.maps`.
KNOTS, AFFINE, BETA, CONSTANT, IDENTITY, EXCLUDED = range(6)
CLIP = 1e-12  # probabilities are clipped to [CLIP, 1 - CLIP] before taking log-odds
LOWEST = -1.7976931348623157e308  # lowest value of a label that is not excluded
PER_LABEL = ("code", "a", "b", "c", "start", "stop")


class PlainMaps(NamedTuple):
    """Maps of all labels as arrays."""

    kind: Any
    scale: Any
    code: NDArray[np.int8]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    c: NDArray[np.float64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    step: bool


Maps = Any  # an object with these attributes: `PlainMaps` or `oddslip.repairs.maps.LabelMaps`


def check_maps(maps: Maps) -> None:
    """Raise for invalid maps."""
    if maps.kind not in KINDS or maps.scale not in get_args(Scale):
        raise InvalidInput(
            'maps must be of kind "probability" or "margin" and scale "probability" or '
            f'"log_odds", got {maps.kind!r} and {maps.scale!r}.'
        )
    if not isinstance(maps.step, bool | np.bool_):
        raise InvalidInput(f"step must be true or false, got {maps.step!r:.60}.")
    code, a, b, c = maps.code, maps.a, maps.b, maps.c
    if code.size == 0 or any(getattr(maps, name).shape != (code.size,) for name in PER_LABEL):
        sizes = {name: getattr(maps, name).shape for name in PER_LABEL}
        raise InvalidInput(f"maps must hold one number of each kind per label, got shapes {sizes}.")
    odds = maps.scale == "log_odds"
    knotted = code == KNOTS
    line, beta = code == AFFINE, code == BETA
    _reject((code < KNOTS) | (code > EXCLUDED), f"codes must be between {KNOTS} and {EXCLUDED}")
    _reject(knotted & odds, 'maps with knots need the scale "probability"')
    _reject((line | beta) & (not odds), 'affine and beta maps need the scale "log_odds"')
    _reject(~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)), "a, b and c must be finite")
    _reject(((line | beta) & (a < 0)) | (beta & (b < 0)), "maps must not descend: a, b >= 0")
    _reject((code == CONSTANT) & ((a < 0) | (a > 1)), "constants must be between 0 and 1")
    n_knots = maps.x.size
    if maps.x.shape != maps.y.shape or maps.x.ndim != 1:
        raise InvalidInput(
            f"maps must hold one y per x, got shapes {maps.x.shape} and {maps.y.shape}."
        )
    outside = (maps.start < 0) | (maps.start >= maps.stop) | (maps.stop > n_knots)
    _reject(knotted & outside, f"knots must lie in 0 to {n_knots} and be at least one per label")
    if not (np.isfinite(maps.x).all() and ((maps.y >= 0) & (maps.y <= 1)).all()):
        raise InvalidInput("knots must have finite x, and y between 0 and 1.")
    x, y = maps.x, maps.y
    descents = np.flatnonzero((x[1:] < x[:-1]) | (y[1:] < y[:-1])) + 1
    first, last = maps.start[knotted], maps.stop[knotted] - 1
    wrong = np.zeros(code.size, np.bool_)
    wrong[knotted] = _any_between(descents, first, last)
    _reject(wrong, "knots must not descend in x or y")
    wrong[knotted] = _any_between(np.unique(last + 1), first, last)
    _reject(wrong, "two labels must share all their knots or none")


def _any_between(
    places: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether any of these ascending places lies after ``first`` and up to ``last``."""
    count = np.searchsorted(places, last, "right") - np.searchsorted(places, first, "right")
    return np.asarray(count > 0)


def _reject(violates: NDArray[np.bool_], rule: str) -> None:
    if violates.any():
        raise InvalidInput(f"{rule}; label {int(np.argmax(violates))} breaks this.")


def lay_knots(maps: Maps) -> NDArray[np.float64]:
    """Rows of x, y, the slope to the next knot and its y, as the kernels read them."""
    knots = np.zeros((maps.x.size, 4))
    knots[:, 0], knots[:, 1], knots[:, 3] = maps.x, maps.y, maps.y
    if not maps.step and maps.x.size:
        with np.errstate(all="ignore"):
            knots[:-1, 2] = np.diff(maps.y) / np.diff(maps.x)
        knots[:-1, 3] = maps.y[1:]
        # Two knots at one score, or knots of two labels, have no slope between them.
        gap = np.append(maps.x[1:] <= maps.x[:-1], True)
        gap[maps.stop[maps.code == KNOTS] - 1] = True
        knots[gap, 2], knots[gap, 3] = 0.0, maps.y[gap]
    return knots


def compared_constants(maps: Maps) -> NDArray[np.float64]:
    """``a``, with constants on the scale on which labels are compared."""
    if maps.scale == "probability":
        return np.asarray(maps.a)
    constant = maps.code == CONSTANT
    compared: NDArray[np.float64] = maps.a.copy()
    with np.errstate(divide="ignore"):
        compared[constant] = np.log(maps.a[constant] / (1.0 - maps.a[constant]))
    # Only excluded labels are at -inf.
    return np.where(constant, np.maximum(compared, LOWEST), compared)
