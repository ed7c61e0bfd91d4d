"""The dead-label policy: what becomes of a label without enough calibration positives.

A label with at most ``tau`` positives among the calibration rows has no map of its own. Passed
through, its raw score can outrank every calibrated label of a row (dead-label takeover). So what
happens to it is always a named argument, and always recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput

DeadPolicy = Literal["prior", "identity", "exclude"]


@dataclass(frozen=True, slots=True, eq=False)
class LabelRecord:
    """What was done to each label.

    ``action`` is "calibrated", or "prior", "identity" or "exclude" for a dead label, or the name
    of a fallback. ``prior`` is the probability a dead label was given under the prior policy.
    """

    action: tuple[str, ...]
    n_positives: NDArray[np.int64]
    prior: NDArray[np.float64]
    prior_source: str
    dead: NDArray[np.bool_]

    @property
    def n_dead(self) -> int:
        """Labels without enough calibration positives."""
        return int(self.dead.sum())


def check_policy(dead: str, tau: Any) -> None:
    """Refuse a policy or a threshold that does not exist."""
    if dead not in get_args(DeadPolicy):
        told = ", ".join(f'"{policy}"' for policy in get_args(DeadPolicy))
        raise InvalidInput(f"dead must be one of {told}, got {dead!r}.")
    if isinstance(tau, bool) or not isinstance(tau, int | np.integer) or tau < 0:
        raise InvalidInput(f"tau must be a whole number, at least 0, got tau={tau!r}.")


def find_prior(
    prior: Any, n_positives: NDArray[np.int64], n_rows: int
) -> tuple[NDArray[np.float64], str]:
    """Prior of each label and where it comes from.

    Given training prevalences are taken as they are. Otherwise it is the calibration prevalence,
    smoothed by half a positive and half a negative, so that a dead label is rare but possible.
    """
    if prior is None:
        smoothed = (n_positives.astype(np.float64) + 0.5) / (n_rows + 1.0)
        return smoothed, "smoothed calibration prevalence"
    given = np.asarray(prior, np.float64)
    if given.shape != n_positives.shape:
        raise InvalidInput(
            f"prior must hold one number per label, n_labels={n_positives.size}, "
            f"got shape {given.shape}."
        )
    wrong = np.flatnonzero(~((given >= 0) & (given <= 1)))
    if wrong.size:
        raise InvalidInput(
            f"prior must be between 0 and 1, got {given[wrong[0]]:g} for label {wrong[0]}."
        )
    return given.copy(), "given"
