"""Realized against intended shift, one dot per label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oddslip.core.formatting import count_of
from oddslip.core.types import Bools, Floats
from oddslip.errors import InvalidInput
from oddslip.reports.figures.notes import Note, place_notes
from oddslip.reports.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    drawable,
    finish,
    legend_mark,
    mark_budget,
    name_axes,
    new_figure,
    put_legend,
    style_axis,
)
from oddslip.reports.numbers import finite_budget, lacks_shifts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    from oddslip.diagnosis.result import Diagnosis

NAMED = 3  # labels furthest from the diagonal
FAR = 0.5  # nat; labels that are nearer are not named
MANY = 2000  # dots; more of them are drawn smaller, and as pixels in vector files


def draw_shifts(diagnosis: Diagnosis) -> Figure:
    """Draw the realized against the intended shift of every label, and the step budget.

    Labels with saturated cells, whose shift cannot be read, are ticks at the upper edge.

    Parameters
    ----------
    diagnosis : Diagnosis
        Of a model with known weights.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InvalidInput
        Without weights nothing is intended.

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(300, 9)
    >>> diagnosis = diagnose(pair.weighted, pair.labels, k=3, n_replicates=0, weights=pair.weights)
    >>> draw_shifts(diagnosis).axes[0].get_xlabel()
    'intended shift ln w, nat'
    """
    figure = new_figure(95, 110)
    place_notes(figure, put_shifts(figure, diagnosis))
    return finish(figure)


def put_shifts(panel: FigureBase, diagnosis: Diagnosis) -> list[Note]:
    """Draw into a figure or a subfigure, with the legend below. Returns the notes to place."""
    shifts = diagnosis.shifts
    if shifts.intended is None:
        raise InvalidInput(
            f"a picture of shifts must have weights, got none. {lacks_shifts(diagnosis)}"
        )
    readable, intended, realized = shifts.identified, shifts.intended, shifts.realized
    budget = finite_budget(shifts)
    axis = panel.subplots()
    low, high = _limits(intended, realized[readable])
    axis.axline((0, 0), slope=1, color=GREY, linewidth=0.9, linestyle="--", zorder=1)
    handles = [legend_mark("as intended", color=GREY, linewidth=0.9, linestyle="--")]
    many = readable.size > MANY
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": BLUE, "markeredgewidth": 0}
    if readable.any():
        axis.plot(
            intended[readable],
            realized[readable],
            **dot,
            markersize=2.5 if many else 4,
            alpha=0.4 if many else 0.8,
            rasterized=many,
            zorder=3,
        )
        handles.append(
            legend_mark(
                f"{count_of(int(readable.sum()), 'label')}, shift identified", markersize=4, **dot
            )
        )
    if not readable.all():
        tick: dict[str, Any] = {"linestyle": "none", "marker": "|", "color": ORANGE}
        axis.plot(
            intended[~readable],
            np.full(int((~readable).sum()), 0.985),
            **tick,
            markersize=7,
            transform=axis.get_xaxis_transform(),
            zorder=3,
        )
        handles.append(
            legend_mark(
                f"{count_of(int((~readable).sum()), 'label')}, not identified", markersize=7, **tick
            )
        )
    if budget is not None:
        handles.append(mark_budget(axis.axhline, budget, both=low < -budget))
        high = max(high, budget * 1.06) if budget < 2 * high else high
    _frame(axis, low, high)
    put_legend(panel, handles, 2)
    return _name_furthest(axis, diagnosis.label_names, intended, realized, readable)


def _limits(intended: Floats, realized: Floats) -> tuple[float, float]:
    both = np.concatenate([intended, realized, [0.0]])
    low, high = float(both.min()), float(both.max())
    margin = 0.06 * ((high - low) or 1.0)
    return low - margin, high + 2 * margin


def _frame(axis: Axes, low: float, high: float) -> None:
    axis.set_xlim(low, high)
    axis.set_ylim(low, high)
    style_axis(axis, grid="both")
    name_axes(axis, "intended shift ln w, nat", "realized shift, nat")


def _name_furthest(
    axis: Axes,
    names: tuple[str, ...],
    intended: Floats,
    realized: Floats,
    readable: Bools,
) -> list[Note]:
    distance = np.where(readable, np.abs(realized - intended), 0.0)
    furthest = [at for at in np.argsort(-distance, kind="stable")[:NAMED] if distance[at] > FAR]
    return [
        Note(axis, float(intended[at]), float(realized[at]), drawable(names[at])) for at in furthest
    ]
