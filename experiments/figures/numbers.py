"""Numbers that only the studies' figures show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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
