"""Metrics of raw and of repaired scores by a number: of labels shown, or of rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

    from oddslip.decisions.length_table import LengthTable
    from oddslip.planning.rounds import Rounds

MAX_MARKS = 30  # of a line; about
CHOSEN: dict[str, Any] = {"color": GREY, "linewidth": 0.7, "linestyle": DASHES}


def draw_lengths(raw: LengthTable, repaired: LengthTable, length: int) -> Figure:
    """Precision and recall of lists of 1 to K labels, with their intervals.

    Parameters
    ----------
    raw, repaired : LengthTable
        Of the same rows and lengths.
    length : int
        The length to mark.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(75)
    lengths = range(1, len(repaired.metrics["f1"]) + 1)
    for axis, metric in zip(
        figure.subplots(1, 2, sharex=True), ("precision", "recall"), strict=True
    ):
        for table, look in zip((raw, repaired), LOOKS.values(), strict=True):
            estimates = table.metrics[metric]
            low, high = ([getattr(each, end) for each in estimates] for end in ("low", "high"))
            axis.fill_between(lengths, low, high, color=look["color"], alpha=0.2, linewidth=0)
            marks = {"markersize": 3, "markevery": max(1, len(lengths) // MAX_MARKS), **look}
            values = [each.value for each in estimates]
            axis.plot(lengths, values, linewidth=1.2, clip_on=False, **marks)  # at 1.0 too
        axis.axvline(length, **CHOSEN, zorder=1)
        axis.set_ylim(0, 1)
        axis.locator_params(axis="x", integer=True)
        style_axis(axis, grid="y")
        name_axes(axis, "labels shown of every row", metric)
    handles = [legend_mark(name, markersize=3.5, **look) for name, look in LOOKS.items()]
    handles.append(legend_mark(f"length chosen: {length:,}", **CHOSEN))
    put_legend(figure, handles, 3)
    return finish(figure)


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
