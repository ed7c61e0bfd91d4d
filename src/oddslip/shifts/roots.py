"""Prevalence matching for all labels at once: the next shift to try, and how far off it can be.

Each label asks for the b at which the mean of sigmoid(F - b) over its rows is its prior. Sums at a
trial shift hold the mean and three derivatives, so the mean is known as a cubic in the step.
No derivative of the sigmoid exceeds its first, and over a step s that one changes at most by a
factor e^s; so after a step s the root is within e^(2s) s^4 / 24. That bound says when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TRUSTED_STEP = 0.5  # beyond this a cubic says little
CUBIC_STEPS = 4  # Newton steps on the cubic; each doubles the digits


@dataclass(slots=True)
class Search:
    """Trial shifts, each with a bracket around its root and a bound on what is still wrong."""

    prior: Floats
    shift: Floats
    low: Floats
    high: Floats
    error: Floats

    @classmethod
    def around(cls, prior: Floats, shift: Floats, low: Floats, high: Floats) -> Search:
        """Start at these shifts, with the roots between low and high."""
        return cls(prior, np.clip(shift, low, high), low, high, high - low)

    def advance(self, sums: Floats, n_rows: int) -> None:
        """Move every label by what the sums at its trial shift say."""
        inside, outside, slope, bend, twist = sums / n_rows
        # Of the mean and its complement, take the smaller: near 1 the mean has lost its digits.
        excess = np.where(self.prior <= 0.5, inside - self.prior, (1 - self.prior) - outside)
        self.low = np.where(excess > 0, self.shift, self.low)
        self.high = np.where(excess < 0, self.shift, self.high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = np.clip(excess / slope, -TRUSTED_STEP, TRUSTED_STEP)
            for _ in range(CUBIC_STEPS):
                value = excess - step * (slope - step * (bend / 2 - step * twist / 6))
                fall = slope - step * (bend - step * twist / 2)
                step = step + value / fall
            trial = self.shift + step
            sure = (np.abs(step) <= TRUSTED_STEP) & (trial >= self.low) & (trial <= self.high)
        step = np.where(sure, step, (self.low + self.high) / 2 - self.shift)
        step = np.where(excess == 0, 0.0, step)
        self.shift = self.shift + step
        size = np.minimum(np.abs(step), TRUSTED_STEP)
        bound = np.where(sure, np.exp(2 * size) * size**4 / 24, (self.high - self.low) / 2)
        self.error = np.where(excess == 0, 0.0, bound)

    def settled(self, tolerance: float) -> bool:
        """Whether every shift is this close to its root."""
        return bool((self.error <= tolerance).all())
