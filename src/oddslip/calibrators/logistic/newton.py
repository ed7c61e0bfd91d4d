"""Newton's method for logistic fits whose sums take a pass over rows each.

The steps, and fits on the points of a summary, are those of `oddslip.kernels.newton`.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from oddslip.core.types import Bools, Floats
from oddslip.core.types import Ints as Indices
from oddslip.kernels.newton import advance_fits, advance_roots, first_state, next_trials

# Gradient (parameters, fits) and curvature (parameters, parameters, fits) of some fits.
Derivatives = tuple[Floats, Floats]
# Asks for the derivatives of some fits at some parameters, as often as needed. Returns the
# parameters that were found, and which fits converged.
Search = Generator[tuple[Floats, Indices], Derivatives, tuple[Floats, Bools]]


def descend(theta: Floats, fallback: Floats, *, intercept: bool, rounds: int) -> Search:
    """Minimise each fit's loss from ``theta`` with slopes of at least 0.

    A fit that is far from its minimum at the start continues from ``fallback``. A fit whose slope
    exceeds `oddslip.kernels.newton.STEEPEST` stops there.
    """
    state = first_state(theta)
    converged = np.zeros(theta.shape[1], bool)
    live = np.arange(theta.shape[1])
    for turn in range(rounds):
        if not live.size:
            break
        trial = next_trials(state, live, len(theta))
        gradient, curvature = yield trial, live
        others = fallback if turn == 0 else None
        ready = advance_fits(state, live, trial, gradient, curvature, intercept, others)
        converged[live[ready]] = True
        live = live[~ready]
    return state[:, : len(theta)].T.copy(), converged


def find_roots(theta: Floats, low: Floats, high: Floats, *, rounds: int) -> Search:
    """Intercepts between ``low`` and ``high`` at which the gradient vanishes, for fixed slopes."""
    roots = np.stack([theta[0], low, high, np.full(low.size, np.inf)], axis=1)
    converged = np.zeros(low.size, bool)
    live = np.arange(low.size)
    for _ in range(rounds):
        if not live.size:
            break
        trial = np.vstack([roots[live, 0], theta[1:, live]])
        gradient, curvature = yield trial, live
        ready = advance_roots(roots, live, gradient[0], curvature[0, 0])
        converged[live[ready]] = True
        live = live[~ready]
    return np.vstack([roots[:, 0], theta[1:]]), converged
