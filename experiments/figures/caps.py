"""The largest realized shift against the cap of a leaf step: the paper's figure 1B."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from experiments.figures.numbers import CapPoint
from oddslip.errors import InvalidInput
from oddslip.reports.figures.notes import Note, place_notes
from oddslip.reports.figures.style import (
    INK,
    drawable,
    finish,
    fix_ticks,
    legend_mark,
    name_axes,
    new_figure,
    open_mark,
    put_legend,
    round_steps,
    series_marks,
    small_percent,
    style_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NO_CAP = 2.4  # times the largest cap: where points without a cap stand
ASIDE = 1.3  # the factor between series there, so that they do not cover one another
EDGE = 1.15  # the factor by which points of no height stand off the edge


def draw_caps(points: Sequence[CapPoint]) -> Figure:
    """One point per cap and series, the step budget as a dashed line.

    A triangle has no cap, or no shift that could be read; then it stands at the upper edge.
    Where cells are saturated their share is printed.

    Parameters
    ----------
    points : sequence of CapPoint
        At least one.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from oddslip.reports.numbers import CapPoint
    >>> figure = draw_caps([
    ...     CapPoint("Santander", 0.3, 0.9, 0.9, 0.0),
    ...     CapPoint("Santander", 5.0, 15.0, 8.9, 0.0),
    ...     CapPoint("Santander", None, None, None, 0.166),
    ... ])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['16.6%']
    """
    figure = new_figure(80, 110)
    place_notes(figure, put_caps(figure, points))
    return finish(figure)


def put_caps(panel: Any, points: Sequence[CapPoint]) -> list[Note]:
    """The picture into a figure or a part of one, with the legend below; notes are to be placed."""
    if not points:
        raise InvalidInput("at least one point must be given, got none.")
    axis = panel.subplots()
    axis.set_xscale("log")
    axis.set_yscale("log")
    none_at = max((p.cap for p in points if p.cap is not None), default=1.0) * NO_CAP
    bottom, top = _limits(points)
    uncapped = list(dict.fromkeys(p.series for p in points if p.cap is None))
    beside = {
        series: none_at * ASIDE ** (at - (len(uncapped) - 1) / 2)
        for at, series in enumerate(uncapped)
    }
    marks = series_marks([p.series for p in points])
    for budgets in _budget_lines(points):
        axis.plot(*zip(*budgets, strict=True), color=INK, linewidth=1, linestyle="--", zorder=1)
    notes = []
    for series, mark in marks.items():
        series_points = [p for p in points if p.series == series]
        dots = sorted(
            (p.cap, max(p.largest_shift, bottom * EDGE))
            for p in series_points
            if p.cap is not None and p.largest_shift is not None
        )
        if dots:
            axis.plot(*zip(*dots, strict=True), markersize=5, linewidth=0.8, zorder=3, **mark)
        for p in series_points:
            x = beside[series] if p.cap is None else p.cap
            y = top / EDGE if p.largest_shift is None else max(p.largest_shift, bottom * EDGE)
            if p.cap is None or p.largest_shift is None:
                triangle = {**open_mark(mark["color"]), "marker": "^", "markersize": 7}
                axis.plot(x, y, linestyle="none", zorder=3, clip_on=False, **triangle)
            if p.saturated_share > 0:
                notes.append(Note(axis, x, y, small_percent(p.saturated_share)))
    axis.set_ylim(bottom, top)
    _name_ticks(axis, points, none_at)
    style_axis(axis, grid="both")
    name_axes(axis, "cap of a leaf step, nat", "largest realized shift, nat")
    put_legend(panel, _handles(points, marks), 2)
    return notes


def _handles(points: Sequence[CapPoint], marks: dict[str, dict[str, str]]) -> list[Any]:
    handles = [
        legend_mark(drawable(series), linestyle="-", markersize=5, linewidth=0.8, **mark)
        for series, mark in marks.items()
    ]
    if any(p.budget is not None for p in points):
        handles.append(legend_mark("step budget", color=INK, linewidth=1, linestyle="--"))
    triangles = [p for p in points if p.cap is None or p.largest_shift is None]
    if triangles:
        meaning = "no cap" if all(p.cap is None for p in triangles) else "no shift to read"
        if any(p.saturated_share > 0 for p in triangles):
            meaning += ", % at 1.0"
        handles.append(legend_mark(meaning, marker="^", **open_mark()))
    return handles


def _limits(points: Sequence[CapPoint]) -> tuple[float, float]:
    levels = [p.largest_shift for p in points] + [p.budget for p in points]
    positive_levels = [level for level in levels if level is not None and level > 0]
    low, high = min(positive_levels, default=1.0), max(positive_levels, default=10.0)
    return low / 1.5, high * 1.8


def _budget_lines(points: Sequence[CapPoint]) -> list[list[tuple[float, float]]]:
    """Budgets of each series; series with the same rounds and rate share a line."""
    lines: list[list[tuple[float, float]]] = []
    for series in dict.fromkeys(p.series for p in points):
        line = sorted(
            {
                (p.cap, p.budget)
                for p in points
                if p.series == series and p.cap is not None and p.budget is not None
            }
        )
        if line and line not in lines:
            lines.append(line)
    return lines


def _name_ticks(axis: Axes, points: Sequence[CapPoint], none_at: float) -> None:
    caps = sorted({p.cap for p in points if p.cap is not None})
    ticks = {cap: f"{cap:g}" for cap in caps}
    if any(p.cap is None for p in points):
        ticks[none_at] = "none"
    axis.set_xticks(list(ticks), list(ticks.values()))
    axis.set_xticks([], minor=True)
    low = min(ticks, default=1.0)
    axis.set_xlim(low / 1.35, max(ticks, default=1.0) * 1.6)
    fix_ticks(axis.yaxis, round_steps(*axis.get_ylim()), "{:g}".format)
