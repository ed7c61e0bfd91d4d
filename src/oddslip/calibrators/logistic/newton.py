"""Newton's method for many small logistic fits side by side.

Parameters are columns of ``theta``: the intercept first, then one slope per feature. Features lie
in [-1, 1], so a step moves no logit by more than the sum of its absolute entries: its *reach*.
That bounds how far the curvature can change on the way: after a full step of reach r the next one
is about r/2 as long (self-concordance of the logistic loss). So a fit knows that it is done
without another look at the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
# Gradient (parameters, fits) and curvature (parameters, parameters, fits) of the fits listed.
Evaluate = Callable[[Floats, Indices], tuple[Floats, Floats]]

TOLERANCE = 1e-11  # of a parameter, relative where it exceeds 1
TRUSTED = 0.1  # reach up to which the bound above is used
SETTLED = 40.0  # a logit this far from 0 has a weight below the rounding of those near it
OVERSHOOT = 0.25  # slope past the minimum along a step, as a share of the slope at its start
FLAT = 1e-200  # no curvature at all: every logit has run off to where nothing moves
ASTRAY = 0.1  # squared length of a first step, in standard errors, after which a start is dropped
STEEPEST = 1e8  # logits so far apart leave no digits for a cell in doubt: separable, in effect
NEGLIGIBLE = 1e-13  # twice what a step can gain; in steep fits rounding allows for no less
SINGULAR = 1e-12  # directions of less curvature than this, relatively, are left alone


@dataclass(slots=True)
class Steps:
    """Newton steps of some fits, with what is needed to judge them."""

    step: Floats
    reach: Floats
    decrement: Floats
    spread: Floats

    def error_after(self) -> Floats:
        """How far each parameter may still be off after the full step."""
        reach = np.minimum(self.reach, TRUSTED)  # larger ones are not trusted anyway
        return np.asarray(reach / 2 * np.sqrt(self.decrement) * self.spread)

    def where(self, chosen: NDArray[np.bool_], others: Steps) -> Steps:
        """These steps, save for the chosen fits, which take the others'."""
        pairs = zip(self._parts(), others._parts(), strict=True)
        return Steps(*(np.where(chosen, theirs, ours) for ours, theirs in pairs))

    def only(self, chosen: NDArray[np.bool_]) -> Steps:
        """The steps of the chosen fits."""
        return Steps(*(part[..., chosen] for part in self._parts()))

    def _parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.step, self.reach, self.decrement, self.spread


def newton_steps(gradient: Floats, curvature: Floats, held: NDArray[np.bool_]) -> Steps:
    """Steps that leave the held parameters and the directions without curvature where they are."""
    diagonal = np.einsum("kkn->kn", curvature)
    moving = ~held & (diagonal > FLAT)
    lost = (~held & ~moving & (np.abs(gradient) > TOLERANCE)).any(axis=0)
    scale = np.where(moving, 1 / np.sqrt(np.where(moving, diagonal, 1)), 0)
    scaled = np.moveaxis(curvature * scale[:, None] * scale[None], 2, 0)
    values, vectors = np.linalg.eigh(scaled)
    inverse_values = np.where(values > SINGULAR, 1 / np.maximum(values, SINGULAR), 0)
    inverse = np.einsum("nij,nj,nkj->ikn", vectors, inverse_values, vectors)
    inverse *= scale[:, None] * scale[None]
    step = -np.einsum("ikn,kn->in", inverse, gradient)
    return Steps(
        step,
        np.where(lost, np.inf, np.abs(step).sum(axis=0)),
        np.maximum(-(step * gradient).sum(axis=0), 0),
        np.sqrt(np.maximum(np.einsum("kkn->kn", inverse), 0)),
    )


def bounded_steps(
    theta: Floats, gradient: Floats, curvature: Floats, free: NDArray[np.bool_]
) -> Steps:
    """Newton steps of the free parameters, where no slope may fall below 0."""
    slopes = np.arange(len(theta)) > 0
    at_zero = slopes[:, None] & (theta <= 0)
    held = ~free[:, None] | (at_zero & (gradient >= 0))
    while True:
        steps = newton_steps(gradient, curvature, held)
        sinking = at_zero & (steps.step < 0)
        if not sinking.any():
            counts = _reach_that_counts(theta, steps.step)
            steps.reach = np.where(np.isinf(steps.reach), np.inf, np.minimum(steps.reach, counts))
            return steps
        held = held | sinking


def _reach_that_counts(theta: Floats, step: Floats) -> Floats:
    """How far a step moves logits within SETTLED of 0; the others carry no weight.

    In a steep fit most cells lie far beyond, and move far without any consequence.
    """
    slopes = theta[1:] > 0
    share = np.abs(step[1:]) / np.where(slopes, theta[1:], 1)
    share = np.where(slopes, share, np.where(step[1:] != 0, np.inf, 0)).max(axis=0)
    return np.asarray(np.abs(step[0]) + share * (SETTLED + np.abs(theta[0])))


def descend(
    evaluate: Evaluate,
    theta: Floats,
    free: NDArray[np.bool_],
    *,
    rounds: int,
    fallback: Floats | None = None,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Minimise each fit's loss from ``theta``, slopes kept at 0 or above; which fits are done.

    Only gradients are compared along a step: it is cut where the loss rises again too steeply.
    A fit that finds itself far from its minimum at the start goes on from ``fallback``. One whose
    slope exceeds STEEPEST is left there.
    """
    theta = theta.copy()
    done = np.zeros(theta.shape[1], bool)
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
        kept = rise > OVERSHOOT * steps.decrement
        cut = np.clip(steps.decrement / np.where(kept, steps.decrement + rise, 1), 0.1, 0.5)
        new = bounded_steps(trial, gradient, curvature, free)
        new_share = _longest_share(trial, new)
        target = _moved(trial, new.step, new_share)
        small = TOLERANCE * np.maximum(1, np.abs(target))
        ready = ~kept & (new.reach <= TRUSTED) & (new_share == 1)
        ready &= (new.error_after() <= small).all(axis=0) | (new.decrement <= NEGLIGIBLE)
        if turn == 0 and fallback is not None:
            astray = (new.decrement > ASTRAY) | np.isinf(new.reach)
            trial = np.where(astray, fallback, trial)
            new = new.where(astray, steps)
            ready &= ~astray
        if turn > 0:
            lost = ~kept & ~ready & (trial[1:] > STEEPEST).any(axis=0)
            target = np.where(lost, trial, target)
            ready |= lost
        theta[:, live] = np.where(ready, target, np.where(kept, base, trial))
        done[live[ready]] = True
        share = np.where(kept, share * cut, new_share)[~ready]
        base = np.where(kept, base, trial)[:, ~ready]
        steps = new.where(kept, steps).only(~ready)
        live = live[~ready]
    return theta, done


def _longest_share(theta: Floats, steps: Steps) -> Floats:
    """How much of each step can be taken until a slope reaches 0, at most all of it."""
    falls, slopes = -steps.step[1:], theta[1:]
    reached = falls > slopes  # alone: a fall that is next to nothing may not be divided by
    room = np.where(reached, slopes / np.where(reached, falls, 1), 1)
    return np.asarray(room.min(axis=0, initial=1))


def _moved(theta: Floats, step: Floats, share: Floats) -> Floats:
    """A share of the step; slopes that all but vanish are set to 0, so that they can be held."""
    moved = theta + share * step
    slopes = moved[1:]
    slopes[slopes < TOLERANCE * np.abs(theta[1:])] = 0
    return np.asarray(moved)


def find_roots(
    evaluate: Evaluate, theta: Floats, low: Floats, high: Floats, *, rounds: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Intercepts at which the gradient vanishes, between ``low`` and ``high``, slopes as given.

    The gradient grows with the intercept, so the bracket always holds: where Newton's step
    leaves it, or does not shrink, the bracket is halved. Nothing is assumed of the curvature,
    which underflows between far-apart groups of saturated cells.
    """
    theta = theta.copy()
    low, high = low.copy(), high.copy()
    done = np.zeros(theta.shape[1], bool)
    last = np.full(theta.shape[1], np.inf)
    for _ in range(rounds):
        live = np.flatnonzero(~done)
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
        inside = (target >= low[live]) & (target <= high[live]) & (np.abs(step) <= last[live] / 2)
        middle = low[live] + (high[live] - low[live]) / 2
        small = TOLERANCE * np.maximum(1, np.abs(at))
        reach = np.minimum(np.abs(step), TRUSTED)
        ready = inside & (reach < TRUSTED) & (reach**2 / 2 <= small)
        ready |= (high[live] - low[live] <= small) | (g == 0)
        theta[0, live] = np.where(g == 0, at, np.where(inside, target, middle))
        last[live] = np.abs(theta[0, live] - at)
        done[live[ready]] = True
    return theta, done
