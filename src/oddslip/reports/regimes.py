"""Reference points of the regime picture: weighted models whose pairs were trained before.

What they say of the paper's association (the inversion pays where the shift was realized and no
cell is saturated) is counted here, for the page, the figure and the terminal alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources
from typing import NamedTuple

from oddslip.diagnosis.comparisons import conditions_hold
from oddslip.diagnosis.thresholds import NEAR, REGAINED
from oddslip.reports.pictures import RegimePoint


class Regimes(NamedTuple):
    """Reference points and where they come from; no points where the package holds none."""

    source: str
    points: tuple[RegimePoint, ...]


def read_regimes() -> Regimes:
    """The reference points that come with the package."""
    file = resources.files("oddslip.reports").joinpath("regimes.json")
    if not file.is_file():
        return Regimes("", ())
    told = json.loads(file.read_text(encoding="utf-8"))
    points = tuple(
        RegimePoint(
            name=str(point["name"]),
            series=str(point["series"]),
            ratio=float(point["ratio"]),
            returned=float(point["returned"]),
            saturated_share=float(point["saturated_share"]),
        )
        for point in told["points"]
        # A model without a loss or without a readable shift has no place in the picture.
        if point["ratio"] is not None and point["returned"] is not None
    )
    return Regimes(str(told["source"]), points)


class RegimeCounts(NamedTuple):
    """Models with and without both conditions, and how many regained half of their loss."""

    n_inside: int
    n_inside_regained: int
    n_outside: int
    n_outside_regained: int

    @property
    def n_models(self) -> int:
        """All models counted."""
        return self.n_inside + self.n_outside

    @property
    def n_regained(self) -> int:
        """Those that regained at least half of their loss by inversion."""
        return self.n_inside_regained + self.n_outside_regained


def count_regimes(points: Iterable[RegimePoint]) -> RegimeCounts:
    """How often the paper's association holds among these models; a report's own is left out.

    Examples
    --------
    >>> count_regimes([
    ...     RegimePoint("realized", "a", 0.98, 0.9, 0.0),
    ...     RegimePoint("saturated", "a", 0.98, 0.1, 0.2),
    ...     RegimePoint("short", "a", 0.40, 0.7, 0.0),
    ... ])
    RegimeCounts(n_inside=1, n_inside_regained=1, n_outside=2, n_outside_regained=1)
    """
    counted = {True: [0, 0], False: [0, 0]}
    for point in points:
        if not point.here:
            count = counted[conditions_hold(point.ratio, point.saturated_share)]
            count[0] += 1
            count[1] += point.returned >= REGAINED
    return RegimeCounts(*counted[True], *counted[False])


def tell_association(counts: RegimeCounts) -> list[str]:
    """The paper's association in words, and how often it held.

    Examples
    --------
    >>> tell_association(RegimeCounts(2, 2, 4, 1))[1]
    'Of 6 weighted models trained before, 3 regained at least half of their loss by subtracting \
ln w: 2 of the 2 that meet both conditions, and 1 of the 4 that do not.'
    """
    told = [
        "The paper's association: subtracting ln w pays where the learner realized the shift "
        f"(median {NEAR[0]:g} to {NEAR[1]:g} of ln w) and essentially no cell is saturated."
    ]
    if counts.n_models:
        told.append(
            f"Of {counts.n_models} weighted models trained before, {counts.n_regained} regained at "
            f"least half of their loss by subtracting ln w: {counts.n_inside_regained} of the "
            f"{counts.n_inside} that meet both conditions, and {counts.n_outside_regained} of the "
            f"{counts.n_outside} that do not."
        )
    return told
