"""The picture of a plan: the shift each weight intends, and what the booster can reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oddslip.core.formatting import nat
from oddslip.core.types import Bools, Ints
from oddslip.reports.figures.style import (
    BLUE,
    INK,
    ORANGE,
    SMALL,
    drawable,
    finish,
    legend_mark,
    mark_budget,
    name_axes,
    new_figure,
    put_legend,
    style_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from oddslip.planning.plan import Plan

NAMED = 30  # labels; more of them are numbered
MANY = 2000


def draw_plan(plan: Plan) -> Figure:
    """Draw ln w of every label, the largest first, against the step budget.

    Marked are labels beyond the budget, and labels for which a leaf with one positive reaches a
    stored 1.0.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from oddslip import plan
    >>> early = plan(
    ...     counts=[500, 10, 2], n_rows=1000, rounds=60, learning_rate=0.05, max_delta_step=1.0,
    ...     label_names=["bread", "capers", "saffron"],
    ... )
    >>> [tick.get_text() for tick in draw_plan(early).axes[0].get_yticklabels()]
    ['saffron', 'capers', 'bread']
    """
    order = np.argsort(-plan.intended, kind="stable")
    named = plan.n_labels <= NAMED  # lines for few labels, columns for many
    figure = new_figure(4.2 * plan.n_labels + 34 if named else 85, 130)
    axis = figure.subplots()
    place, intended = np.arange(plan.n_labels), plan.intended[order]
    many = plan.n_labels > MANY
    kinds: dict[str, tuple[Bools, dict[str, Any]]] = {
        "within the budget" if plan.capped else "no cap, no bound": (
            ~plan.unrealizable[order],
            {"color": BLUE, "marker": "o", "markersize": 2.5 if many else 4},
        ),
        "beyond the budget": (
            plan.unrealizable[order],
            {"color": ORANGE, "marker": "D", "markersize": 2.5 if many else 4},
        ),
        "a leaf with one positive is stored as 1.0": (
            plan.leaf_saturates[order],
            {
                "color": INK,
                "marker": "o",
                "markersize": 7,
                "markerfacecolor": "none",
                "markeredgewidth": 0.9,
            },
        ),
    }
    handles = []
    for name, (which, how) in kinds.items():
        if which.any():
            across = (intended[which], place[which]) if named else (place[which], intended[which])
            axis.plot(*across, linestyle="none", rasterized=many, zorder=3, **how)
            handles.append(legend_mark(f"{name}: {int(which.sum()):,}", **how))
    draw_line = axis.axvline if named else axis.axhline
    draw_line(0, color=INK, linewidth=0.6, zorder=1)
    if plan.capped:
        handles.append(mark_budget(draw_line, plan.budget, both=bool(intended.min() < 0)))
    _name(axis, plan, order, named=named)
    axis.set_title(_tell_caps(plan), fontsize=SMALL, color=INK, loc="left")
    put_legend(figure, handles, 2)
    return finish(figure)


def _name(axis: Axes, plan: Plan, order: Ints, *, named: bool) -> None:
    unit = "intended shift ln w, nat"
    if named:
        axis.set_yticks(range(plan.n_labels), [drawable(plan.label_names[at]) for at in order])
        axis.set_ylim(plan.n_labels - 0.4, -0.6)
        style_axis(axis, grid="both")
        name_axes(axis, unit)
    else:
        axis.set_xlim(-0.01 * plan.n_labels, 1.01 * plan.n_labels)
        style_axis(axis, grid="y")
        name_axes(axis, "labels, the largest shift first", unit)


def _tell_caps(plan: Plan) -> str:
    cap = f"cap {plan.max_delta_step:g}" if plan.capped else "no cap"
    return (
        f"{plan.rounds:,} rounds at {plan.learning_rate:g}, {cap}. "
        f"Smallest cap that admits every shift: {nat(plan.admitting_cap)}.\n"
        f"Largest cap that rules out saturated cells: {nat(plan.unsaturating_cap)}."
    )
