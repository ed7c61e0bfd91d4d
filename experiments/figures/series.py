"""Numbers by name: dots with intervals below each other, lines, or points of two numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.figures.numbers import Series, SeriesPanel
from oddslip.reports.figures.ladder import KINDS
from oddslip.reports.figures.style import (
    GREY,
    PALE_GREY,
    drawable,
    finish,
    legend_mark,
    name_axes,
    new_figure,
    put_legend,
    series_marks,
    style_axis,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_intervals(
    panels: Sequence[SeriesPanel], unit: str, *, marks: Sequence[float] = ()
) -> Figure:
    """Dots with their intervals, a row for each name; vertical lines at ``marks``.

    Examples
    --------
    >>> twin = Series("twin", {"raw": (0.3, 0.2, 0.4)}, "reference")
    >>> draw_intervals([SeriesPanel("LightGBM", [twin])], "MAP@7").axes[0].get_title(loc="left")
    'LightGBM'
    """
    names = _names(panels)
    figure = new_figure(6.5 * len(names) + 30)
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
        for mark in marks:
            axis.axvline(mark, color=GREY, linewidth=0.8, linestyle="--", zorder=1)
        step = 0.7 / max(1, len(panel.series))
        for at, series in enumerate(panel.series):
            shift = (at - (len(panel.series) - 1) / 2) * step
            for name, (value, low, high) in series.values.items():
                y = names.index(name) + shift
                colour = KINDS[series.tone]["color"]
                if low is not None and high is not None:
                    axis.plot([low, high], [y, y], color=colour, linewidth=1.0, zorder=2)
                axis.plot(value, y, zorder=3, **_mark(series))
        axis.set_yticks(range(len(names)), [drawable(name) for name in names])
        axis.set_ylim(len(names) - 0.4, -0.6)
        style_axis(axis)
        axis.tick_params(axis="y", length=0)
        axis.locator_params(axis="x", nbins=5)
        name_axes(axis, unit, title=drawable(panel.title))
    _put_names(figure, panels)
    return finish(figure)


def draw_lines(panels: Sequence[SeriesPanel], x: str, y: str) -> Figure:
    """A line for each series over names that have an order.

    Examples
    --------
    >>> raw = Series("raw", {"1": (0.3, None, None), "r": (0.1, None, None)}, "raw")
    >>> draw_lines([SeriesPanel("MLP", [raw])], "weight", "MAP@7").axes[0].get_xlabel()
    'weight'
    """
    figure = new_figure(78, 80.0 * len(panels))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
        names = _names([panel])
        for series in panel.series:
            places = [names.index(name) for name in series.values]
            heights = [value for value, _, _ in series.values.values()]
            style = {"linestyle": "--" if series.hollow else "-", "linewidth": 1.2}
            axis.plot(places, heights, **{**_mark(series), **style})
        axis.set_xticks(range(len(names)), [drawable(name) for name in names])
        axis.set_xlim(-0.3, len(names) - 0.7)
        style_axis(axis, grid="y")
        name_axes(axis, x, y if axis is axes[0] else "", title=drawable(panel.title))
    axes[0].set_ylim(bottom=0)  # last: it ends the automatic upper end, which panels share
    _put_names(figure, panels, lines=True)
    return finish(figure)


def draw_points(
    series: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, *, mark: float
) -> Figure:
    """Two shares against each other, the diagonal, and lines at ``mark`` on both axes.

    Examples
    --------
    >>> draw_points({"worlds": [(0.9, 0.8)]}, "predicted", "kept", mark=0.5).axes[0].get_xlabel()
    'predicted'
    """
    figure = new_figure(105, 105.0)
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
    for line in (axis.axhline, axis.axvline):
        line(mark, color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    handles = []
    for at, (name, look) in enumerate(series_marks(list(series)).items()):
        # The first is the ground that the others stand on.
        how: dict[str, Any] = {**look, "linestyle": "none", "markersize": 4.0 if at else 2.5}
        if not at:
            how |= {"color": PALE_GREY}
        across, up = zip(*series[name], strict=True) if series[name] else ((), ())
        axis.plot(across, up, zorder=2 + at, **how)
        handles.append(legend_mark(drawable(name, 40), **how))
    axis.set_xlim(-0.03, 1.03)
    axis.set_ylim(-0.03, 1.03)
    style_axis(axis, grid="both")
    name_axes(axis, x, y)
    put_legend(figure, handles)
    return finish(figure)


def _names(panels: Sequence[SeriesPanel]) -> list[str]:
    """All names, in the order they come."""
    return list(dict.fromkeys(n for panel in panels for s in panel.series for n in s.values))


def _mark(series: Series) -> dict[str, Any]:
    how = {"linestyle": "none", "markersize": 4.5, "markeredgewidth": 1.1, **KINDS[series.tone]}
    return {**how, "markerfacecolor": "white"} if series.hollow else how


def _put_names(figure: Any, panels: Sequence[SeriesPanel], *, lines: bool = False) -> None:
    distinct = {series.name: series for panel in panels for series in panel.series}
    handles = []
    for name, series in distinct.items():
        line = {"linestyle": "--" if series.hollow else "-", "linewidth": 1.2} if lines else {}
        handles.append(legend_mark(drawable(name, 40), **{**_mark(series), **line}))
    put_legend(figure, handles)
