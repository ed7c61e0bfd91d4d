"""Figure S1: intended and realized shift of every label, and how much of it is saturated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oddslip.reports.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    PALE_ORANGE,
    finish,
    legend_mark,
    name_axes,
    new_figure,
    put_legend,
    style_axis,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_labels(tables: Mapping[str, Mapping[str, Sequence[Any]]]) -> Figure:
    """Labels from many training positives to few: ln w, the realized shift, the saturated share.

    Labels without a training positive have no model and are left out. A realized shift is drawn
    where it is identified; a label whose cells saturate is a cross at its ln w.

    Parameters
    ----------
    tables : mapping
        Title of a pair -> columns "n_positives", "intended", "realized", "identified" and
        "saturated_share", one value per label.

    Examples
    --------
    >>> table = {"n_positives": [9, 3], "intended": [1.0, 2.0], "realized": [0.9, None],
    ...          "identified": [True, False], "saturated_share": [0.0, 0.2]}
    >>> draw_labels({"LightGBM": table}).axes[0].get_title(loc="left")
    'LightGBM'
    """
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(92)
    grid = figure.subplots(2, len(tables), sharex="col", squeeze=False, height_ratios=[2.2, 1])
    for (title, table), (shifts, shares) in zip(tables.items(), grid.T, strict=True):
        columns = {
            name: np.array([np.nan if each is None else each for each in table[name]], np.float64)
            for name in ("n_positives", "intended", "realized", "saturated_share")
        }
        identified = np.asarray(table["identified"], np.bool_)
        order = np.argsort(-columns["n_positives"], kind="stable")
        order = order[columns["n_positives"][order] > 0]  # others have no model
        places, size = np.arange(1, order.size + 1), 4 if order.size <= 100 else 2
        intended, realized = columns["intended"][order], columns["realized"][order]
        read = identified[order]
        shifts.plot(places, intended, color=GREY, linewidth=1.2, drawstyle="steps-mid", zorder=1)
        shifts.plot(
            places[~read],
            intended[~read],
            linestyle="none",
            marker="x",
            markersize=size,
            color=ORANGE,
            zorder=2,
        )
        shifts.plot(
            places[read],
            realized[read],
            linestyle="none",
            marker="o",
            markersize=size,
            color=BLUE,
            markeredgewidth=0,
            zorder=3,
        )
        shares.bar(
            places,
            100 * columns["saturated_share"][order],
            width=1.0,
            color=PALE_ORANGE,
            edgecolor=ORANGE,
            linewidth=0.4 if order.size <= 100 else 0,
        )
        shares.xaxis.set_major_locator(MaxNLocator(integer=True))
        shares.set_ylim(0, max(1.0, shares.get_ylim()[1]))
        for axis in (shifts, shares):
            style_axis(axis, grid="y")
        name_axes(shifts, "", "shift, nat", title)
        name_axes(shares, "labels, most training positives first", "cells at 1.0, %")
    put_legend(
        figure,
        [
            legend_mark("intended, ln w", color=GREY, linestyle="-", linewidth=1.2),
            legend_mark("realized", marker="o", color=BLUE, markersize=4),
            legend_mark("not identified, at its ln w", marker="x", color=ORANGE, markersize=4),
        ],
    )
    return finish(figure)
