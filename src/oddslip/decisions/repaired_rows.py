"""Rows as calibrated probabilities, for tallies that do not know of repairs."""

from __future__ import annotations

from typing import Any, Generic, Self, TypeVar

import numpy as np

from oddslip.core.panel import Panel
from oddslip.core.tally import Tally
from oddslip.core.types import Floats
from oddslip.repairs.maps import LabelMaps
from oddslip.sources import Source

T = TypeVar("T", bound=Tally)


class RepairedRows:
    """The rows of a source with calibrated probabilities in place of scores.

    Tallies are filled on threads, and every thread maps its own blocks.

    Parameters
    ----------
    source : Source
    maps : LabelMaps
        In the order of the labels of the source.
    """

    kind = "probability"
    dtype = np.dtype(np.float64)
    sample_weight = None

    def __init__(self, source: Source, maps: LabelMaps) -> None:
        self.source, self.maps = source, maps
        self.n_rows, self.n_labels = source.n_rows, source.n_labels

    def run(self, tally: Any, *, what: str = "rows") -> Any:
        """Feed all rows to the tally and return it."""
        return self.source.run(MappedTally(tally, self.maps), what=what).tally


class MappedTally(Generic[T]):
    """A tally that takes calibrated probabilities instead of scores."""

    def __init__(self, tally: T, maps: LabelMaps) -> None:
        self.tally, self.maps = tally, maps

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(self.tally.empty_like(), self.maps)

    def add(self, panel: Panel) -> None:
        """Map one block of rows, and take it."""
        self.tally.add(map_panel(panel, self.maps.transform_panel(panel, np.float64)))

    def merge(self, other: Self) -> None:
        """Add the rows of another tally."""
        self.tally.merge(other.tally)

    def result(self) -> Any:
        """The outcome."""
        return self.tally.result()

    def spec(self) -> dict[str, Any]:
        """The arguments of an empty one."""
        return {"tally": self.tally, "maps": self.maps}

    def state(self) -> Any:
        """The rows added so far."""
        return self.tally.state()

    def restore(self, state: Any) -> None:
        """Replace the state."""
        self.tally.restore(state)


def map_panel(panel: Panel, probabilities: Floats) -> Panel:
    """The same rows and labels with other scores; NaN marks an absent cell."""
    mapped = Panel(probabilities)
    mapped.labels, mapped.row_ids = panel.labels, panel.row_ids
    mapped.first_row, mapped.numbered = panel.first_row, panel.numbered
    mapped._row_keys = panel._row_keys
    mapped.nan_absent = panel.absent is not None
    return mapped
