"""`LabelRecord`: what a fit did to each label."""

from __future__ import annotations

from dataclasses import dataclass

from oddslip.core.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class LabelRecord:
    """What was done to each label.

    ``action`` is "calibrated", or "prior", "identity" or "exclude" for a dead label, or the name
    of a fallback. ``prior`` is the probability a dead label was given under the prior policy.
    """

    action: tuple[str, ...]
    n_positives: Ints
    prior: Floats
    prior_source: str
    dead: Bools

    @property
    def n_dead(self) -> int:
        """Labels without enough calibration positives."""
        return int(self.dead.sum())
