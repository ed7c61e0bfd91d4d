"""What a picture shows, as plain numbers: drawn as a figure for print and as SVG in the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The loss of one matched pair, and what repairs return (the paper's figure 1A).

    ``unweighted_repaired`` is the twin under the same calibrator, where that is known.
    """

    name: str
    metric: str
    unweighted: float
    what_if: float
    weighted: float
    inversion: float | None
    repaired: float
    ceiling: float
    unweighted_repaired: float | None = None


@dataclass(frozen=True, slots=True)
class CapPoint:
    """One cap of a sweep: the largest realized shift against the step budget (figure 1B).

    Without a cap ``cap`` and ``budget`` are None; ``largest_shift`` is None where no label's
    shift is identified.
    """

    series: str
    cap: float | None
    budget: float | None
    largest_shift: float | None
    saturated_share: float


@dataclass(frozen=True, slots=True)
class RegimePoint:
    """One weighted model in the regime picture (figure 2).

    ``ratio`` is the median realized over intended shift, ``returned`` the share of the loss that
    the inversion returns, ``here`` marks the model that a report is about.
    """

    name: str
    series: str
    ratio: float
    returned: float
    saturated_share: float
    here: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers by name, with intervals where they have some: (value, low, high).

    ``tone`` is "raw", "repair" or "reference", which sets colour and shape; ``hollow`` tells two
    series of a tone apart.
    """

    name: str
    values: Mapping[str, tuple[float, float | None, float | None]]
    tone: str = "repair"
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class SeriesPanel:
    """Several series over the same names, in one frame."""

    title: str
    series: Sequence[Series]
