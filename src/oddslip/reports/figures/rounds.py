"""A metric by the number of rounds, raw and repaired, above the share of saturated cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oddslip.metrics.at_k import metric_name
from oddslip.reports.figures.style import (
    DASHES,
    GREY,
    LOOKS,
    finish,
    legend_mark,
    name_axes,
    new_figure,
    put_legend,
    style_axis,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oddslip.planning.rounds import Rounds


def draw_rounds(rounds: Rounds) -> Figure:
    """The metric of raw and repaired scores, and the share of cells at 1.0, by rounds.

    Parameters
    ----------
    rounds : Rounds

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(95, 130)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    handles = []
    for name, how in LOOKS.items():
        upper.plot(rounds.rounds, getattr(rounds, name), linewidth=1.2, markersize=3.5, **how)
        best = getattr(rounds, f"best_{name}")
        handles.append(legend_mark(f"{name}, best after {best:,} rounds", markersize=3.5, **how))
        upper.axvline(best, color=how["color"], linewidth=0.7, linestyle=DASHES, zorder=1)
    share = [100.0 * each for each in rounds.saturated]
    lower.plot(rounds.rounds, share, color=GREY, linewidth=1.2, marker="s", markersize=3)
    for axis in (upper, lower):
        axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        style_axis(axis, grid="y")
    lower.set_xticks(rounds.rounds, [f"{each:,}" for each in rounds.rounds], rotation=45)
    lower.minorticks_off()
    name_axes(upper, "", metric_name(rounds.metric, rounds.k))
    name_axes(lower, "rounds", "cells at 1.0, %")
    put_legend(figure, handles, 2)
    return finish(figure)
