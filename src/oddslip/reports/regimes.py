"""Reference points of the regime picture: weighted models whose pairs were trained before."""

from __future__ import annotations

import json
from importlib import resources
from typing import NamedTuple

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
        if point["ratio"] is not None and point["returned"] is not None and point["ratio"] > 0
    )
    return Regimes(str(told["source"]), points)
