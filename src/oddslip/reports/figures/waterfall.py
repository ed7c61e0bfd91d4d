"""Causes of the loss of a matched pair, and what repairs return: the paper's figure 1A."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oddslip.errors import InvalidInput
from oddslip.reports.figures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE_BLUE,
    PALE_GREY,
    PALE_ORANGE,
    SMALL,
    drawable,
    finish,
    legend_mark,
    name_axes,
    new_figure,
    open_mark,
    percent,
    put_legend,
    signed,
    style_rows,
)
from oddslip.reports.numbers import Step, Waterfall, has_loss, waterfall_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase
    from matplotlib.lines import Line2D

SHARES = "in brackets: share of the loss"
IN_A_ROW = 3  # data sets side by side
ROOM = 1.3  # length of the axis, so that numbers fit beside the longest bar
NEAR_END = 0.06  # share of the axis; a mark nearer to the end of a bar would touch its number
BESIDE = 0.36  # bars shorter than this share of the axis have their number beside them


# Bars of models are full. Repairs are pale blue, or pale orange where they hurt.
COLOURS = {
    "unweighted": BLUE,
    "odds shift": PALE_GREY,
    "slippage": PALE_ORANGE,
    "weighted": ORANGE,
}


def draw_waterfalls(waterfalls: Sequence[Waterfall]) -> Figure:
    """Draw the loss and what repairs return as bars, one panel per data set.

    Parameters
    ----------
    waterfalls : sequence of Waterfall
        At least one.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from oddslip.reports.numbers import Waterfall
    >>> pair = Waterfall(
    ...     "Santander", "MAP@7", unweighted=0.808, what_if=0.646, weighted=0.117,
    ...     inversion=0.151, repaired=0.784, ceiling=0.786, unweighted_repaired=0.819,
    ... )
    >>> figure = draw_waterfalls([pair])
    >>> [text.get_text() for text in figure.axes[0].texts][4]
    '+0.034 (5%)'
    """
    n_rows = -(-len(waterfalls) // IN_A_ROW)
    figure = new_figure(54.0 * n_rows + 14)
    put_waterfalls(figure, waterfalls)
    return finish(figure)


def put_waterfalls(
    panel: FigureBase, waterfalls: Sequence[Waterfall], *, in_a_row: int = IN_A_ROW
) -> None:
    """Draw waterfalls into a figure or a subfigure, with the legend below."""
    if not waterfalls:
        raise InvalidInput("at least one waterfall must be given, got none.")
    n_columns = min(in_a_row, len(waterfalls))
    n_rows = -(-len(waterfalls) // n_columns)
    axes = panel.subplots(n_rows, n_columns, squeeze=False).ravel()
    for at, (axis, waterfall) in enumerate(zip(axes, waterfalls, strict=False)):
        put_waterfall(axis, waterfall, named=at % n_columns == 0)
    for axis in axes[len(waterfalls) :]:
        axis.remove()
    put_legend(
        panel,
        _handles(any(w.unweighted_repaired is not None for w in waterfalls)),
        title=SHARES if any(has_loss(w) for w in waterfalls) else None,
    )


def put_waterfall(axis: Axes, w: Waterfall, *, named: bool) -> None:
    """Draw one data set: a bar per step from top to bottom, joined by thin lines."""
    steps = steps_of(w)
    marks = [w.ceiling] + ([] if w.unweighted_repaired is None else [w.unweighted_repaired])
    longest = max([max(step.start, step.stop) for step in steps] + marks)
    limit = (longest or 1.0) * ROOM
    for y, step in enumerate(steps):
        slipped = step.name == "slippage"
        axis.barh(
            y,
            step.change,
            left=step.start,
            height=0.62,
            color=colour_of(step),
            edgecolor=ORANGE if slipped else colour_of(step),
            hatch="////" if slipped else None,
            linewidth=0.5,
        )
        _write(axis, y, step, limit, marks if y == len(steps) - 1 else [])
    for y, following in enumerate(steps[1:]):
        axis.plot([following.joint] * 2, [y + 0.31, y + 0.69], color=GREY, linewidth=0.6)
    last = len(steps) - 1
    above = 5  # numbers may reach beyond a short bar
    axis.plot([w.ceiling] * 2, [last - 0.42, last + 0.42], color=INK, linewidth=1.6, zorder=above)
    if w.unweighted_repaired is not None:
        axis.plot(w.unweighted_repaired, last, **_twin_mark(), zorder=above)
    axis.set_xlim(0, limit)
    axis.set_yticks(range(len(steps)), [step.name if named else "" for step in steps])
    axis.set_ylim(last + 0.6, -0.6)
    style_rows(axis)
    name_axes(axis, drawable(w.metric), title=drawable(w.name))


def steps_of(w: Waterfall) -> list[Step]:
    """The bars in order. The last one ends at the repaired model, beside its ceiling."""
    return [step for step in waterfall_steps(w) if step.name != "repaired"]


def colour_of(step: Step) -> str:
    """The colour of a bar."""
    return COLOURS.get(step.name, PALE_ORANGE if step.falls else PALE_BLUE)


def tell_step(step: Step) -> str:
    """The text on or beside a bar."""
    if step.is_model:
        return f"{step.stop:.3f}"
    return signed(step.change) + ("" if step.share is None else f" ({percent(step.share)})")


def describe_waterfall(waterfall: Waterfall) -> str:
    """The bars in words, for the description of a picture.

    Examples
    --------
    >>> pair = Waterfall("a pair", "MAP@7", 0.8, 0.6, 0.1, None, 0.7, 0.75)
    >>> describe_waterfall(pair).split("; ")[3:]
    ['weighted 0.100', 'isotonic +0.600 (86%)']
    """
    return "; ".join(f"{step.name} {tell_step(step)}" for step in steps_of(waterfall))


def _write(axis: Axes, y: int, step: Step, limit: float, marks: Sequence[float]) -> None:
    low, high = sorted((step.start, step.stop))
    if high - low >= BESIDE * limit:  # inside
        x, ha = (low + high) / 2, "center"
        near = [mark for mark in marks if abs(mark - high) < NEAR_END * limit]
        if near:  # keep clear of them
            x, ha = min(high, *near) - NEAR_END / 2 * limit, "right"
        colour = "white" if step.is_model else INK
    elif max([high, *marks]) <= (1 - BESIDE) * limit:
        x, ha, colour = max([high, *marks]) + 0.02 * limit, "left", INK
    else:
        x, ha, colour = low - 0.02 * limit, "right", INK
    box = None if colour == "white" else {"facecolor": "white", "alpha": 0.75, "pad": 0.6, "lw": 0}
    axis.text(x, y, tell_step(step), ha=ha, va="center", fontsize=SMALL, color=colour, bbox=box)


def _twin_mark() -> dict[str, Any]:
    return {**open_mark(BLUE), "marker": "o", "markersize": 5, "linestyle": "none"}


def _handles(twin: bool) -> list[Line2D]:
    handles = [
        legend_mark("ceiling", marker="|", markersize=8, markeredgewidth=1.6, color=INK),
    ]
    if twin:
        handles.append(legend_mark("unweighted, same calibrator", **_twin_mark()))
    return handles
