"""The pictures of the page as SVG: waterfall, ladder, shifts, regime."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from oddslip.core.formatting import has_interval, nat, percent, score, signed, small_percent, times
from oddslip.reports.html.svg import Axis, axis_over, draw_level, line, picture, short, tag, text
from oddslip.reports.numbers import (
    RegimePoint,
    Step,
    Waterfall,
    finite_budget,
    hurts,
    is_open,
    kind_of,
    waterfall_steps,
)
from oddslip.reports.text import printable

if TYPE_CHECKING:
    from oddslip.diagnosis.label_shifts import LabelShifts
    from oddslip.diagnosis.ladder import Ladder
    from oddslip.metrics.reliability import Reliability


# ------------------------------------------------------------------------------------ the waterfall

STEP = 46  # pixels from one bar to the next
BAR = 14
STEP_NAMES = {
    "unweighted": "Unweighted twin",
    "odds shift": "Odds shift, ln w",
    "slippage": "Slippage, the rest",
    "weighted": "Weighted model",
    "inversion": "Subtracting ln w",
    "repaired": "Repaired model",
}


def draw_waterfall(waterfall: Waterfall) -> str:
    """The waterfall as SVG markup."""
    steps = waterfall_steps(waterfall)
    reach = max(waterfall.ceiling, *(max(step.start, step.stop) for step in steps))
    axis = Axis(0.0, reach if reach > 0 else 1.0, 0.0, 100.0)
    pieces = []
    for at, step in enumerate(steps):
        pieces += _draw_step(step, axis, at * STEP)
        if at + 1 < len(steps):
            pieces.append(_draw_joint(steps[at + 1], axis, at * STEP))
    pieces += _draw_ceiling(waterfall.ceiling, axis, (len(steps) - 1) * STEP)
    return picture(
        pieces,
        height=len(steps) * STEP + 18,
        id_="waterfall",
        title=f"Where the {waterfall.metric} went",
        description="; ".join(f"{name_step(step)} {tell_step(step)}" for step in steps)
        + f"; ceiling of per-label maps {score(waterfall.ceiling)}.",
    )


def name_step(step: Step) -> str:
    """The text at the left above a bar."""
    return STEP_NAMES.get(step.name) or f"Repair: {printable(step.name)}"


def tell_step(step: Step) -> str:
    """The text at the right of a bar."""
    if step.is_model:
        return score(step.stop)
    share = "" if step.share is None else f", {percent(step.share)}"
    return f"{signed(step.change)}{share}"


def look_of(step: Step) -> str:
    """The class of a bar, which sets its colour."""
    if step.is_model:
        return "bad" if step.name == "weighted" else "good"
    return "lost" if step.falls else "gain"


def _draw_step(step: Step, axis: Axis, top: float) -> list[str]:
    low, high = sorted((step.start, step.stop))
    # A bar of zero width would be invisible.
    width = max(axis(high) - axis(low), 0.3)
    base = top + 14
    return [
        text(name_step(step), x="0", y=short(base), class_="name"),
        text(tell_step(step), x="100%", y=short(base), class_="value end"),
        tag(
            "rect",
            x=axis.percent(low),
            y=short(base + 7),
            width=f"{short(width)}%",
            height=BAR,
            class_=f"bar {look_of(step)}",
            rx=2,
        ),
    ]


def _draw_joint(following: Step, axis: Axis, top: float) -> str:
    """A thin line from one bar to the place where the next one starts."""
    x = axis.percent(following.joint)
    return line((x, x), (top + 21, top + STEP + 35), "joint")


def _draw_ceiling(ceiling: float, axis: Axis, top: float) -> list[str]:
    x, right = axis.percent(ceiling), axis(ceiling) > 50
    return [
        line((x, x), (top + 17, top + 39), "tick"),
        text(
            f"ceiling of per-label maps {score(ceiling)}",
            x=x,
            y=short(top + 54),
            class_="note end" if right else "note",
        ),
    ]


# --------------------------------------------------------------------------------------- the ladder

RUNG_HEIGHT = 26  # pixels


def ladder_axis(ladder: Ladder) -> Axis:
    """One scale for all rungs, in percent of the width."""
    estimates = [ladder.estimate(name) for name in ladder]
    values = [end for each in estimates for end in (each.value, each.low, each.high)]
    return axis_over(values, 3.0, 97.0)


def draw_rung(rung: str, ladder: Ladder, axis: Axis) -> str:
    """The picture beside the numbers. Screen readers skip it, since the numbers say the same."""
    estimate, raw, middle = ladder.estimate(rung), ladder.value("raw"), RUNG_HEIGHT / 2
    at_raw = axis.percent(raw)
    pieces = [line((at_raw, at_raw), (0, RUNG_HEIGHT), "reference")]
    if has_interval(estimate):
        low, high = axis.percent(estimate.low), axis.percent(estimate.high)
        pieces.append(line((low, high), (middle, middle), "interval"))
    looks = {"raw": "raw", "reference": "plain", "repair": "good"}
    look = "bad" if hurts(ladder, rung) else looks[kind_of(rung)]
    place = axis.percent(estimate.value)
    pieces.append(tag("circle", cx=place, cy=middle, r=4.5, class_=f"dot {look}"))
    return tag("svg", *pieces, width="100%", height=RUNG_HEIGHT, aria_hidden="true", class_="rung")


def draw_ladder_scale(axis: Axis) -> str:
    """The numbers of the scale, for the head of the column."""
    pieces = [
        text(f"{mark:g}", x=axis.percent(mark), y=12, class_="tick-text middle")
        for mark in (round(mark, 12) for mark in axis.ticks(3))
    ]
    return tag("svg", *pieces, width="100%", height=16, aria_hidden="true", class_="rung")


# ----------------------------------------------------------------- pictures with a grid: two axes

GRID_HEIGHT, GRID_BOTTOM = 380, 334  # pixels; ticks and the name of the axis stand below


def _draw_ticks(ticks: Mapping[float, str], x_axis: Axis, unit: str) -> list[str]:
    """The numbers below the grid, and what they count."""
    marks = [
        text(name, x=x_axis.percent(mark), y=GRID_BOTTOM + 18, class_="tick-text middle")
        for mark, name in ticks.items()
    ]
    return [*marks, text(unit, x="50%", y=GRID_HEIGHT - 6, class_="axis-text middle")]


# ---------------------------------------------------------------------------------- what is shown

SHOWN_TOP = 30  # pixels
SHOWN_LOOKS = {"raw": "raw", "chosen": "good"}


def draw_shown(reliabilities: Mapping[str, Reliability]) -> str:
    """Share true against probability of the labels shown, by raw scores and by the repair."""
    filled = {name: each.n_shown > 0 for name, each in reliabilities.items()}
    ends = [0.0, 0.1]  # minimum range, so that rare labels do not fill the picture with noise
    for name, each in reliabilities.items():
        ends += [*each.probability[filled[name]], *each.share[filled[name]]]
    top = min(1.0, 1.05 * max(ends))
    x_axis, y_axis = Axis(0.0, top, 0.0, 100.0), Axis(0.0, top, GRID_BOTTOM, SHOWN_TOP)
    levels = [draw_level(mark, f"{mark:g}", y_axis) for mark in _round_ticks(y_axis)]
    ticks = {mark: f"{mark:g}" for mark in _round_ticks(x_axis)}
    pieces = [
        *chain(*levels),
        *_draw_ticks(ticks, x_axis, "probability of the labels shown, mean of each bin"),
        text("share of them that is true", x="0", y=12, class_="axis-text"),
        line(("0%", "100%"), (y_axis(0.0), y_axis(top)), "diagonal"),
    ]
    for name, each in reliabilities.items():
        for at in np.flatnonzero(filled[name]):
            pieces += _draw_bin(each, int(at), SHOWN_LOOKS[name], x_axis, y_axis)
    return picture(
        pieces,
        height=GRID_HEIGHT,
        id_="reliability",
        title="Are the probabilities of what is shown right?",
        description="; ".join(
            f"{name}: ECE {score(each.ece)}" for name, each in reliabilities.items()
        )
        + ". On the dashed diagonal a probability is right.",
    )


def _round_ticks(axis: Axis) -> list[float]:
    return [round(mark, 12) for mark in axis.ticks()]


def _draw_bin(
    reliability: Reliability, at: int, look: str, x_axis: Axis, y_axis: Axis
) -> list[str]:
    share, reach = float(reliability.share[at]), float(reliability.reach[at])
    low, high = max(share - reach, 0.0), min(share + reach, y_axis.high)
    probability = float(reliability.probability[at])
    slots = f"{reliability.n_shown[at]:,} slots"
    x = x_axis.percent(probability)
    title = f"{slots}: probability {score(probability)}, true {score(share)}"
    return [
        line((x, x), (y_axis(low), y_axis(high)), "interval bin"),
        tag("circle", cx=x, cy=short(y_axis(share)), r=4.5, class_=f"dot {look}", data_t=title),
    ]


def draw_dot_key(look: str) -> str:
    """A dot for the legend."""
    dot = tag("circle", cx=8, cy=8, r=4.5, class_=f"dot {look}")
    return tag("svg", dot, width=16, height=16, aria_hidden="true", class_="key")


# --------------------------------------------------------------------------------------- the shifts

MAX_DOTS = 4000
BAND = 44  # pixels on top, for labels whose shift cannot be read


def choose_labels(n_labels: int) -> range:
    """The labels to draw: all of them, or an even sample.

    Examples
    --------
    >>> len(choose_labels(7)), len(choose_labels(9000))
    (7, 3000)
    """
    return range(0, n_labels, max(1, math.ceil(n_labels / MAX_DOTS)))


def draw_shifts(shifts: LabelShifts) -> str:
    """The picture as SVG markup; needs intended shifts."""
    assert shifts.intended is not None
    budget = finite_budget(shifts)
    readable = shifts.realized[shifts.identified]
    x_axis = axis_over([0.0, *_ends(shifts.intended)], 0.0, 100.0)
    ends = [0.0, *_ends(shifts.intended), *_ends(readable)]
    if budget is not None and budget <= 1.3 * max(abs(end) for end in ends):
        ends += [budget] if min(ends) >= 0 else [budget, -budget]
    y_axis = axis_over(ends, GRID_BOTTOM, BAND + 14)
    pieces = [*_draw_shifts_grid(x_axis, y_axis), *_draw_band(bool((~shifts.identified).any()))]
    pieces += _draw_lines(x_axis, y_axis, budget)
    pieces += [
        _draw_dot(shifts, label, x_axis, y_axis) for label in choose_labels(shifts.realized.size)
    ]
    n_read = int(shifts.identified.sum())
    return picture(
        pieces,
        height=GRID_HEIGHT,
        id_="shifts",
        title="Realized against intended shift, one dot per label",
        description=(
            f"{n_read:,} of {shifts.realized.size:,} labels have a shift that can be read. Median "
            f"realized over intended: {times(shifts.median_ratio)}. The table of labels below "
            "holds every number."
        ),
    )


def _ends(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    finite = np.asarray(values)[np.isfinite(values)]
    return [float(finite.min()), float(finite.max())] if finite.size else []


def _draw_shifts_grid(x_axis: Axis, y_axis: Axis) -> list[str]:
    levels = [draw_level(mark, f"{mark:g}", y_axis) for mark in y_axis.ticks()]
    ticks = {mark: f"{mark:g}" for mark in x_axis.ticks()}
    return [*chain(*levels), *_draw_ticks(ticks, x_axis, "intended shift ln w, nat")]


def _draw_band(there: bool) -> list[str]:
    name = "realized shift cannot be read:" if there else "realized shift, nat"
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
        line((x_axis.percent(low), x_axis.percent(high)), (y_axis(low), y_axis(high)), "diagonal")
    ]
    for bound in () if budget is None else (budget, -budget):
        if y_axis.low <= bound <= y_axis.high:
            y = y_axis(bound)
            pieces += [
                line(("0", "100%"), (y, y), "budget"),
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


# -------------------------------------------------------------------------------------- the regimes

REGIMES_TOP = 34  # pixels
LOWEST = -1.0  # smaller shares are drawn at the edge with an arrow
HIGHEST = 1.5
AT_EDGE = 1.8  # factor from the lowest place of the axis to the marks at or below 0, and beyond
SHAPES = ("circle", "square", "diamond", "triangle", "hexagon", "wedge")


def draw_regimes(points: Sequence[RegimePoint]) -> str:
    """The picture as SVG markup; needs at least one point.

    A ratio at or below 0 is not on a log axis. Its mark is at the left edge, over a separate tick,
    with an arrow.
    """
    ratios = [1.0, *(point.ratio for point in points if point.ratio > 0)]
    low, edge = min(0.5, *ratios) / 1.25, None
    if any(point.ratio <= 0 for point in points):
        edge = low / AT_EDGE
        low = edge / AT_EDGE
    x_axis = Axis(low, max(2.0, *ratios) * 1.25, 0.0, 100.0, log=True)
    y_axis = Axis(LOWEST - 0.1, HIGHEST, GRID_BOTTOM, REGIMES_TOP)
    pieces = _draw_regimes_grid(x_axis, y_axis, edge)
    shapes = shape_by_series(points)
    for point in sorted(points, key=lambda point: point.here):  # this model last, on top
        at = point.ratio if edge is None or point.ratio > 0 else edge
        pieces += _draw_point(point, shapes[point.series], at, x_axis, y_axis)
    return picture(
        pieces,
        height=GRID_HEIGHT,
        id_="regimes",
        title="When subtracting ln w pays",
        description="; ".join(describe_point(point) for point in points) + ".",
    )


def shape_by_series(points: Sequence[RegimePoint]) -> dict[str, str]:
    """A shape for each series of reference points; the model of the report is a circle."""
    series = list(dict.fromkeys(point.series for point in points if not point.here))
    shapes = {name: SHAPES[at % len(SHAPES)] for at, name in enumerate(series)}
    return {point.series: "circle" for point in points if point.here} | shapes


def describe_point(point: RegimePoint) -> str:
    """A point in words."""
    share = small_percent(point.saturated_share)
    saturated = f"{share} of the cells saturated" if is_open(point) else "nothing saturated"
    return (
        f"{point.name}: realized {times(point.ratio)} of ln w, the inversion returns "
        f"{percent(point.returned)} of the loss, {saturated}"
    )


def _draw_regimes_grid(x_axis: Axis, y_axis: Axis, edge: float | None) -> list[str]:
    levels = [
        draw_level(mark, percent(mark), y_axis, "grid strong" if mark in (0.0, 1.0) else "grid")
        for mark in (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5)
    ]
    ticks = {mark: f"{mark:g}" for mark in x_axis.ticks()}
    if edge is not None:
        ticks = {mark: name for mark, name in ticks.items() if mark > edge * AT_EDGE}
        ticks[edge] = "0 or less"
    one = x_axis.percent(1.0)
    return [
        *chain(*levels),
        *_draw_ticks(ticks, x_axis, "median realized / intended shift"),
        line((one, one), (REGIMES_TOP, GRID_BOTTOM), "diagonal"),
        text("share of the loss that subtracting ln w returns", x="0", y=14, class_="axis-text"),
    ]


def _draw_point(
    point: RegimePoint, shape: str, ratio: float, x_axis: Axis, y_axis: Axis
) -> list[str]:
    clipped = min(max(point.returned, LOWEST), HIGHEST)
    x, y = x_axis.percent(ratio), y_axis(clipped)
    look = f"mark{' open' if is_open(point) else ''}{' here' if point.here else ''}"
    size = 8.0 if point.here else 5.5
    # A nested svg takes the percentage, so that paths inside can count in pixels.
    inner = [tag("path", d=_outline(shape, size), class_=look, data_t=describe_point(point))]
    if clipped != point.returned:
        down = 1 if point.returned < clipped else -1
        inner.append(tag("path", d=f"M-4 {down * 11}L4 {down * 11}L0 {down * 17}Z", class_="arrow"))
    if ratio != point.ratio:
        inner.append(tag("path", d="M-11 -4L-11 4L-17 0Z", class_="arrow"))
    if point.here:
        on_right = x_axis(ratio) > 70
        inner.append(
            text(
                point.name,
                x=-13 if on_right else 13,
                y=5,
                class_="name here end" if on_right else "name here",
            )
        )
    elif is_open(point):
        share = small_percent(point.saturated_share)
        beside = ratio != point.ratio  # marks at the edge are stacked
        place = {"x": 10, "y": 4, "class_": "tick-text"} if beside else {"x": 0, "y": -10}
        inner.append(text(share, **{"class_": "tick-text middle"} | place))
    return [tag("svg", *inner, x=x, y=short(y), class_="place")]


def _outline(shape: str, r: float) -> str:
    if shape == "square":
        return f"M{-r} {-r}H{r}V{r}H{-r}Z"
    if shape == "diamond":
        return f"M0 {-1.35 * r:g}L{1.35 * r:g} 0L0 {1.35 * r:g}L{-1.35 * r:g} 0Z"
    if shape == "triangle":
        return f"M0 {-1.2 * r:g}L{1.2 * r:g} {r:g}L{-1.2 * r:g} {r:g}Z"
    if shape == "wedge":
        return f"M0 {1.2 * r:g}L{1.2 * r:g} {-r:g}L{-1.2 * r:g} {-r:g}Z"
    if shape == "hexagon":
        far, near = 1.2 * r, 0.6 * r
        return f"M{-far:g} 0L{-near:g} {-r}H{near:g}L{far:g} 0L{near:g} {r}H{-near:g}Z"
    return f"M{-r} 0A{r} {r} 0 1 0 {r} 0A{r} {r} 0 1 0 {-r} 0Z"


def draw_key(shape: str) -> str:
    """A mark for the legend."""
    mark = tag("path", d=_outline(shape, 5.0), class_="mark", transform="translate(9 9)")
    return tag("svg", mark, width=18, height=18, aria_hidden="true")
