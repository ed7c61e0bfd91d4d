"""A rung as a dot with its interval, all rungs on one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oddslip.reports.numbers import has_interval, hurts, kind_of
from oddslip.reports.svgs import Axis, axis_over, tag, text

if TYPE_CHECKING:
    from oddslip.diagnosis.ladders import Ladder, Rung

HEIGHT = 26


def ladder_axis(ladder: Ladder, metric: str = "map") -> Axis:
    """One scale for all rungs, in percent of the width."""
    values = [
        value
        for rung in ladder.rungs.values()
        for value in (rung[metric].value, rung[metric].low, rung[metric].high)
    ]
    return axis_over(values, 3.0, 97.0)


def draw_rung(rung: Rung, ladder: Ladder, axis: Axis, metric: str = "map") -> str:
    """The picture beside the numbers. Screen readers skip it: the numbers say it all."""
    estimate, raw, middle = rung[metric], ladder.value("raw", metric), HEIGHT / 2
    at_raw = axis.percent(raw)
    pieces = [tag("line", x1=at_raw, x2=at_raw, y1=0, y2=HEIGHT, class_="reference")]
    if has_interval(estimate):
        low, high = axis.percent(estimate.low), axis.percent(estimate.high)
        pieces.append(tag("line", x1=low, x2=high, y1=middle, y2=middle, class_="interval"))
    looks = {"raw": "raw", "reference": "plain", "repair": "good"}
    look = "bad" if hurts(ladder, rung.name, metric) else looks[kind_of(rung.name)]
    place = axis.percent(estimate.value)
    pieces.append(tag("circle", cx=place, cy=middle, r=4.5, class_=f"dot {look}"))
    return tag("svg", *pieces, width="100%", height=HEIGHT, aria_hidden="true", class_="rung")


def draw_ladder_scale(axis: Axis) -> str:
    """The numbers of the scale, for the head of the column."""
    pieces = [
        text(f"{mark:g}", x=axis.percent(mark), y=12, class_="tick-text middle")
        for mark in (round(mark, 12) for mark in axis.ticks(3))
    ]
    return tag("svg", *pieces, width="100%", height=16, aria_hidden="true", class_="rung")
