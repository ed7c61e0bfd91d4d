"""When the inversion pays: the paper's figure 2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oddslip.errors import InvalidInput
from oddslip.reports.figures.notes import Note, place_notes
from oddslip.reports.figures.style import (
    DASHES,
    GREY,
    INK,
    SMALL,
    drawable,
    finish,
    fix_ticks,
    legend_mark,
    name_axes,
    new_figure,
    open_mark,
    percent,
    put_legend,
    round_steps,
    series_marks,
    small_percent,
    style_axis,
)
from oddslip.reports.numbers import RegimePoint, count_regimes, is_open

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase
    from matplotlib.lines import Line2D

LOWEST, HIGHEST = -0.6, 1.6  # larger shares are drawn at the edge, with an arrow and their number
BEYOND = 0.25  # space for the arrows
AT_EDGE = 1.8  # factor from the lowest place of the axis to the marks at or below 0, and beyond
EDGE = "0 or less"
NAMED = 12  # points; more of them differ by series alone


def draw_regimes(points: Sequence[RegimePoint]) -> Figure:
    """Draw a marker per weighted model: what the inversion returns against the realized shift.

    Filled markers have practically no saturated cells; open ones show the share of them.

    Parameters
    ----------
    points : sequence of RegimePoint
        At least one. Ratios at or below 0 have no place on the logarithmic axis and are drawn at
        its left edge, over a tick of their own, with an arrow.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from oddslip.reports.numbers import RegimePoint
    >>> figure = draw_regimes([
    ...     RegimePoint("no cap", "Santander", 0.98, 0.05, 0.166),
    ...     RegimePoint("c = 5", "Santander", 0.85, 0.98, 0.0),
    ... ])
    >>> figure.axes[0].get_xscale()
    'log'
    """
    figure = new_figure(88, 130)
    place_notes(figure, put_regimes(figure, points))
    return finish(figure)


def put_regimes(panel: FigureBase, points: Sequence[RegimePoint], columns: int = 3) -> list[Note]:
    """Draw into a figure or a subfigure, with the legend below. Returns the notes to place."""
    _check(points)
    axis = panel.subplots()
    axis.set_xscale("log")
    for level in (0.0, 1.0):
        axis.axhline(level, color=GREY, linewidth=0.8, linestyle=DASHES, zorder=1)
    axis.axvline(1.0, color=GREY, linewidth=0.8, linestyle=DASHES, zorder=1)
    marks = series_marks([p.series for p in points if not p.here])
    low, edge = _find_edge(points)
    notes = []
    for p in sorted(points, key=lambda p: p.here):  # this model on top
        x = p.ratio if p.ratio > 0 else edge
        y = min(max(p.returned, LOWEST), HIGHEST)
        mark = {"color": INK, "marker": "*"} if p.here else marks[p.series]
        axis.plot(x, y, linestyle="none", clip_on=False, **_shape(p, mark))
        if y != p.returned:
            _point_beyond(axis, x, y, (0, 13 if p.returned > y else -13), mark["color"])
        if x != p.ratio:
            _point_beyond(axis, x, y, (-13, 0), mark["color"])
        note = _note(p, named=not p.here and len(points) <= NAMED, beyond=y != p.returned)
        if note:
            notes.append(Note(axis, x, y, note))
    _set_limits(axis, low, max([*(p.ratio for p in points), 1.6]) * 1.25, edge)
    style_axis(axis, grid=None)
    name_axes(
        axis, "median realized over intended shift", "share of the loss\nthat the inversion returns"
    )
    _tell_counts(axis, points)
    put_legend(panel, _handles(points, marks), columns)
    return notes


def _check(points: Sequence[RegimePoint]) -> None:
    if not points:
        raise InvalidInput("at least one point must be given, got none.")
    for p in points:
        if not math.isfinite(p.ratio):
            raise InvalidInput(
                f"ratios must be finite, got {p.ratio} of {p.name!r}. Leave the point out."
            )


def _find_edge(points: Sequence[RegimePoint]) -> tuple[float, float]:
    """The left end of the axis, and the position of ratios at or below 0."""
    low = min([*(p.ratio for p in points if p.ratio > 0), 0.5]) / 1.25
    if all(p.ratio > 0 for p in points):
        return low, low
    return low / AT_EDGE**2, low / AT_EDGE


def _tell_counts(axis: Axes, points: Sequence[RegimePoint]) -> None:
    """How often the paper's association holds among the reference models."""
    counts = count_regimes(points)
    if not counts.n_models:
        return
    summary = (
        f"Half of the loss or more returned: {counts.n_regained} of {counts.n_models} models\n"
        f"realized and unsaturated {counts.n_inside_regained} of {counts.n_inside}, "
        f"others {counts.n_outside_regained} of {counts.n_outside}"
    )
    axis.set_title(summary, fontsize=SMALL, color=GREY, loc="left")


def _shape(p: RegimePoint, mark: dict[str, str]) -> dict[str, Any]:
    colour = mark["color"]
    return {
        **open_mark(colour),
        "marker": mark["marker"],
        "markersize": 11 if p.here else 6,
        "markerfacecolor": "white" if is_open(p) else colour,
        "zorder": 5 if p.here else 3,
    }


def _note(p: RegimePoint, *, named: bool, beyond: bool) -> str:
    note = drawable(p.name) if named else ""
    if beyond:
        note += f": {percent(p.returned)}" if note else f"to {percent(p.returned)}"
    if is_open(p):
        share = small_percent(p.saturated_share)
        note += f" ({share})" if note else share
    return note


def _point_beyond(axis: Axes, x: float, y: float, way: tuple[int, int], colour: str) -> None:
    axis.annotate(
        "",
        (x, y),
        xytext=way,
        textcoords="offset points",
        annotation_clip=False,
        arrowprops={
            "arrowstyle": "<|-",
            "color": colour,
            "linewidth": 1,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    ).set_gid("beyond")


def _set_limits(axis: Axes, low: float, high: float, edge: float) -> None:
    axis.set_xlim(low, high)
    axis.set_ylim(LOWEST - BEYOND, HIGHEST + BEYOND)
    ticks = round_steps(low, high)
    if edge > low:
        ticks = [edge, *(tick for tick in ticks if tick > edge * AT_EDGE)]

    def name(ratio: float) -> str:
        return EDGE if edge > low and math.isclose(ratio, edge) else f"{ratio:g}"

    fix_ticks(axis.xaxis, ticks, name)
    axis.set_yticks([-0.5, 0, 0.5, 1, 1.5], [percent(y) for y in (-0.5, 0, 0.5, 1, 1.5)])


def _handles(points: Sequence[RegimePoint], marks: dict[str, dict[str, str]]) -> list[Line2D]:
    handles = [
        legend_mark(drawable(series), markersize=6, **mark) for series, mark in marks.items()
    ]
    here = next((p for p in points if p.here), None)
    if here is not None:
        handles.append(legend_mark(drawable(here.name), marker="*", color=INK, markersize=9))
    if any(is_open(p) for p in points):
        handles.append(legend_mark("open: share of cells at 1.0", marker="o", **open_mark()))
    if any(p.ratio <= 0 for p in points):
        handles.append(legend_mark("at the left edge: ratio 0 or less", marker="<", color=GREY))
    return handles
