"""Newton's method for many fits at once in NumPy: what `oddslip.kernels.newton` must agree with.

``evaluate(theta, live)`` gives the gradient (parameters, fits) and the curvature (parameters,
parameters, fits) of the fits numbered ``live``.
"""

from dataclasses import dataclass

import numpy as np

TOLERANCE = 1e-11  # of a parameter, relative where it exceeds 1
TRUSTED = 0.1  # reach up to which the bound above is used
SETTLED = 40.0  # a logit this far from 0 has a weight below the rounding error of others
OVERSHOOT = 0.25  # slope past the minimum along a step, as a share of the slope at its start
FLAT = 1e-200  # no curvature: the weights of all cells vanish
ASTRAY = 0.1  # squared length of a first step, in standard errors, above which a start is dropped
STEEPEST = 1e8  # slopes above this have no digits left for cells in between: separable in effect
NEGLIGIBLE = 1e-13  # twice the gain of a step; in steep fits rounding does not allow for less
SINGULAR = 1e-12  # directions of less relative curvature are not moved


@dataclass(slots=True)
class Steps:
    """Newton steps of some fits, with their reach, decrement and standard errors."""

    step: np.ndarray
    reach: np.ndarray
    decrement: np.ndarray
    spread: np.ndarray

    def error_after(self):
        """Bound on the error of each parameter after the full step."""
        reach = np.minimum(self.reach, TRUSTED)  # the bound does not hold for larger ones
        return np.asarray(reach / 2 * np.sqrt(self.decrement) * self.spread)

    def where(self, chosen, others):
        """These steps, with the chosen fits replaced by the others."""
        pairs = zip(self._parts(), others._parts(), strict=True)
        return Steps(*(np.where(chosen, theirs, ours) for ours, theirs in pairs))

    def only(self, chosen):
        """The steps of the chosen fits."""
        return Steps(*(part[..., chosen] for part in self._parts()))

    def _parts(self):
        return self.step, self.reach, self.decrement, self.spread


def newton_steps(gradient, curvature, fixed):
    """Steps that do not move fixed parameters and directions without curvature."""
    diagonal = np.einsum("kkn->kn", curvature)
    moving = ~fixed & (diagonal > FLAT)
    has_no_curvature = (~fixed & ~moving & (np.abs(gradient) > TOLERANCE)).any(axis=0)
    scale = np.where(moving, 1 / np.sqrt(np.where(moving, diagonal, 1)), 0)
    scaled = np.moveaxis(curvature * scale[:, None] * scale[None], 2, 0)
    values, vectors = np.linalg.eigh(scaled)
    inverse_values = np.where(values > SINGULAR, 1 / np.maximum(values, SINGULAR), 0)
    inverse = np.einsum("nij,nj,nkj->ikn", vectors, inverse_values, vectors)
    inverse *= scale[:, None] * scale[None]
    step = -np.einsum("ikn,kn->in", inverse, gradient)
    return Steps(
        step,
        np.where(has_no_curvature, np.inf, np.abs(step).sum(axis=0)),
        np.maximum(-(step * gradient).sum(axis=0), 0),
        np.sqrt(np.maximum(np.einsum("kkn->kn", inverse), 0)),
    )


def bounded_steps(theta, gradient, curvature, free):
    """Newton steps of the free parameters, where no slope may fall below 0."""
    slopes = np.arange(len(theta)) > 0
    at_zero = slopes[:, None] & (theta <= 0)
    fixed = ~free[:, None] | (at_zero & (gradient >= 0))
    while True:
        steps = newton_steps(gradient, curvature, fixed)
        sinking = at_zero & (steps.step < 0)
        if not sinking.any():
            counts = _effective_reach(theta, steps.step)
            steps.reach = np.where(np.isinf(steps.reach), np.inf, np.minimum(steps.reach, counts))
            return steps
        fixed = fixed | sinking


def _effective_reach(theta, step):
    """How far a step moves logits within SETTLED of 0; the others have no weight.

    In a steep fit most cells are far beyond, and move far without consequences.
    """
    slopes = theta[1:] > 0
    share = np.abs(step[1:]) / np.where(slopes, theta[1:], 1)
    share = np.where(slopes, share, np.where(step[1:] != 0, np.inf, 0)).max(axis=0)
    return np.asarray(np.abs(step[0]) + share * (SETTLED + np.abs(theta[0])))


def descend(
    evaluate,
    theta,
    free,
    *,
    rounds,
    fallback=None,
):
    """Minimise each fit's loss from ``theta`` with slopes of at least 0.

    Returns the parameters, and which fits converged. Only gradients are compared along a step,
    which is cut where the loss rises too steeply. A fit that is far from its minimum at the start
    continues from ``fallback``. A fit whose slope exceeds STEEPEST stops there.
    """
    theta = theta.copy()
    converged = np.zeros(theta.shape[1], bool)
    live = np.arange(theta.shape[1])
    base, share = theta.copy(), np.ones(live.size)
    zeros = np.zeros(live.size)
    steps = Steps(np.zeros_like(theta), zeros, zeros, np.zeros_like(theta))
    for turn in range(rounds):
        if not live.size:
            break
        trial = _moved(base, steps.step, share)
        gradient, curvature = evaluate(trial, live)
        rise = (gradient * steps.step).sum(axis=0)
        overshoots = rise > OVERSHOOT * steps.decrement
        cut = np.clip(steps.decrement / np.where(overshoots, steps.decrement + rise, 1), 0.1, 0.5)
        new = bounded_steps(trial, gradient, curvature, free)
        new_share = _longest_share(trial, new)
        target = _moved(trial, new.step, new_share)
        small = TOLERANCE * np.maximum(1, np.abs(target))
        ready = ~overshoots & (new.reach <= TRUSTED) & (new_share == 1)
        ready &= (new.error_after() <= small).all(axis=0) | (new.decrement <= NEGLIGIBLE)
        if turn == 0 and fallback is not None:
            astray = (new.decrement > ASTRAY) | np.isinf(new.reach)
            trial = np.where(astray, fallback, trial)
            new = new.where(astray, steps)
            ready &= ~astray
        if turn > 0:
            too_steep = ~overshoots & ~ready & (trial[1:] > STEEPEST).any(axis=0)
            target = np.where(too_steep, trial, target)
            ready |= too_steep
        theta[:, live] = np.where(ready, target, np.where(overshoots, base, trial))
        converged[live[ready]] = True
        share = np.where(overshoots, share * cut, new_share)[~ready]
        base = np.where(overshoots, base, trial)[:, ~ready]
        steps = new.where(overshoots, steps).only(~ready)
        live = live[~ready]
    return theta, converged


def _longest_share(theta, steps):
    """The share of each step until a slope reaches 0, at most 1."""
    falls, slopes = -steps.step[1:], theta[1:]
    reaches_zero = falls > slopes  # only these are divided, since others may be nearly 0
    limit = np.where(reaches_zero, slopes / np.where(reaches_zero, falls, 1), 1)
    return np.asarray(limit.min(axis=0, initial=1))


def _moved(theta, step, share):
    """Parameters after a share of the step; slopes that nearly vanish are set to 0."""
    moved = theta + share * step
    slopes = moved[1:]
    slopes[slopes < TOLERANCE * np.abs(theta[1:])] = 0
    return np.asarray(moved)


def find_roots(evaluate, theta, low, high, *, rounds):
    """Intercepts between ``low`` and ``high`` at which the gradient vanishes, for fixed slopes.

    The gradient grows with the intercept, so the bracket always holds. Where Newton's step leaves
    it, or does not shrink, the bracket is halved. Nothing is assumed about the curvature, which
    can underflow between distant groups of saturated cells. Also returns which fits converged.
    """
    theta = theta.copy()
    low, high = low.copy(), high.copy()
    converged = np.zeros(theta.shape[1], bool)
    last_step = np.full(theta.shape[1], np.inf)
    for _ in range(rounds):
        live = np.flatnonzero(~converged)
        if not live.size:
            break
        at = theta[0, live]
        gradient, curvature = evaluate(theta[:, live], live)
        g, h = gradient[0], curvature[0, 0]
        high[live] = np.where(g >= 0, at, high[live])
        low[live] = np.where(g <= 0, at, low[live])
        with np.errstate(over="ignore"):
            step = -g / np.maximum(h, np.finfo(float).tiny)
        target = at + step
        inside = (
            (target >= low[live]) & (target <= high[live]) & (np.abs(step) <= last_step[live] / 2)
        )
        middle = low[live] + (high[live] - low[live]) / 2
        small = TOLERANCE * np.maximum(1, np.abs(at))
        reach = np.minimum(np.abs(step), TRUSTED)
        ready = inside & (reach < TRUSTED) & (reach**2 / 2 <= small)
        ready |= (high[live] - low[live] <= small) | (g == 0)
        theta[0, live] = np.where(g == 0, at, np.where(inside, target, middle))
        last_step[live] = np.abs(theta[0, live] - at)
        converged[live[ready]] = True
    return theta, converged


def beta_features(z):
    """ln s and -ln(1 - s) at log-odds z."""
    tail = np.log1p(np.exp(-np.abs(z)))
    return np.stack([np.minimum(z, 0) - tail, np.maximum(z, 0) + tail])


def sum_points(features, weights, theta):
    """Sums over weighted points as the kernels have them: features (features, fits, points)."""
    logit = theta[0][:, None] + (theta[1:, :, None] * features).sum(axis=0)
    e = np.exp(-np.abs(logit))
    q = e / (1 + e)
    high = logit >= 0
    p, w = weights * np.where(high, 1 - q, q), weights * q * (1 - q)
    every = [np.ones_like(logit), *features]
    pairs = [(i, k) for i in range(len(every)) for k in range(i, len(every))]
    parts = [weights * high, weights * np.where(high, -q, q), *(p * u for u in features)]
    return np.stack(
        [each.sum(axis=1) for each in parts + [w * every[i] * every[k] for i, k in pairs]]
    )


def derivatives(sums, totals):
    """Gradient and curvature of these sums, given positives and their sums of features."""
    size = len(totals)
    gradient = np.concatenate(
        [(sums[:1] - totals[:1]) + sums[1:2], sums[2 : 1 + size] - totals[1:]]
    )
    curvature = np.empty((size, size, sums.shape[1]))
    for place, (i, k) in enumerate(zip(*np.triu_indices(size), strict=True)):
        curvature[i, k] = curvature[k, i] = sums[1 + size + place]
    return gradient, curvature
