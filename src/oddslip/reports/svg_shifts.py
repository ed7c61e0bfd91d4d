"""Realized against intended shift: one dot per label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from oddslip.reports.numbers import finite_budget, nat, times
from oddslip.reports.svgs import Axis, axis_over, picture, short, tag, text

if TYPE_CHECKING:
    from oddslip.diagnosis.label_shifts import LabelShifts

MOST_DOTS = 4000
HEIGHT, BAND = 380, 44  # the band on top holds labels whose shift can not be read
BOTTOM = HEIGHT - 46


def choose_labels(n_labels: int) -> range:
    """The labels that are drawn: all, or evenly many of them.

    Examples
    --------
    >>> len(choose_labels(7)), len(choose_labels(9000))
    (7, 3000)
    """
    return range(0, n_labels, max(1, math.ceil(n_labels / MOST_DOTS)))


def draw_shifts(shifts: LabelShifts) -> str:
    """The picture as SVG markup; needs intended shifts."""
    assert shifts.intended is not None
    budget = finite_budget(shifts)
    known = shifts.realized[shifts.identified]
    x_axis = axis_over([0.0, *_ends(shifts.intended)], 0.0, 100.0)
    ends = [0.0, *_ends(shifts.intended), *_ends(known)]
    if budget is not None and budget <= 1.3 * max(abs(end) for end in ends):
        ends += [budget] if min(ends) >= 0 else [budget, -budget]
    y_axis = axis_over(ends, BOTTOM, BAND + 14)
    pieces = [*_draw_grid(x_axis, y_axis), *_draw_band(bool((~shifts.identified).any()))]
    pieces += _draw_lines(x_axis, y_axis, budget)
    drawn = choose_labels(shifts.realized.size)
    pieces += [_draw_dot(shifts, label, x_axis, y_axis) for label in drawn]
    told = shifts.to_dict()
    return picture(
        pieces,
        height=HEIGHT,
        id_="shifts",
        title="Realized against intended shift, one dot per label",
        description=(
            f"{told['n_identified']:,} of {shifts.realized.size:,} labels have a shift that can be "
            f"read. Median realized over intended: {times(told['median_ratio'])}. The table of "
            "labels below holds every number."
        ),
    )


def _ends(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    finite = np.asarray(values)[np.isfinite(values)]
    return [float(finite.min()), float(finite.max())] if finite.size else []


def _draw_grid(x_axis: Axis, y_axis: Axis) -> list[str]:
    pieces = []
    for mark in y_axis.ticks():
        y = y_axis(mark)
        pieces += [
            tag("line", x1="0", x2="100%", y1=short(y), y2=short(y), class_="grid"),
            text(f"{mark:g}", x=-8, y=short(y + 4), class_="tick-text end"),
        ]
    for mark in x_axis.ticks():
        pieces.append(
            text(f"{mark:g}", x=x_axis.percent(mark), y=BOTTOM + 18, class_="tick-text middle")
        )
    pieces.append(
        text("intended shift ln w, nat", x="50%", y=HEIGHT - 6, class_="axis-text middle")
    )
    return pieces


def _draw_band(there: bool) -> list[str]:
    name = "realized shift can not be read:" if there else "realized shift, nat"
    pieces = [text(name, x="0", y=12, class_="axis-text")]
    if there:
        pieces += [
            tag("rect", x="0", y=20, width="100%", height=20, class_="band"),
            text("realized shift, nat", x="0", y=BAND + 12, class_="axis-text"),
        ]
    return pieces


def _draw_lines(x_axis: Axis, y_axis: Axis, budget: float | None) -> list[str]:
    # The diagonal is cut to the range that both axes share.
    low, high = max(x_axis.low, y_axis.low), min(x_axis.high, y_axis.high)
    pieces = [
        tag(
            "line", x1=x_axis.percent(low), y1=short(y_axis(low)), x2=x_axis.percent(high),
            y2=short(y_axis(high)), class_="diagonal",
        )
    ]  # fmt: skip
    for bound in () if budget is None else (budget, -budget):
        if y_axis.low <= bound <= y_axis.high:
            y = y_axis(bound)
            pieces += [
                tag("line", x1="0", x2="100%", y1=short(y), y2=short(y), class_="budget"),
                text(
                    f"step budget {nat(bound)}", x="100%", y=short(y - 5), class_="note budget end"
                ),
            ]
    return pieces


def _draw_dot(shifts: LabelShifts, label: int, x_axis: Axis, y_axis: Axis) -> str:
    assert shifts.intended is not None
    x = x_axis.percent(float(shifts.intended[label]))
    if not shifts.identified[label] or not math.isfinite(shifts.realized[label]):
        return tag("circle", cx=x, cy=30, r=3.5, class_="ring bad", data_i=label)
    y = short(y_axis(float(shifts.realized[label])))
    return tag("circle", cx=x, cy=y, r=3, class_="speck", data_i=label)
