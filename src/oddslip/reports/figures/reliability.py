"""Probabilities of the labels shown, against how often they are true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oddslip.core.formatting import score
from oddslip.reports.figures.style import (
    BLUE,
    GREY,
    INK,
    SMALL,
    finish,
    legend_mark,
    name_axes,
    new_figure,
    put_legend,
    style_axis,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oddslip.metrics.reliability import Reliability


def draw_reliability(reliability: Reliability) -> Figure:
    """Draw the share true against the mean probability of each bin, and the slots per bin below.

    Parameters
    ----------
    reliability : Reliability

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from oddslip.metrics import reliability_at_k
    >>> reliability = reliability_at_k([[0.9, 0.2], [0.8, 0.1]], [[1, 0], [0, 1]], k=1)
    >>> draw_reliability(reliability).axes[0].get_ylabel()
    'share true'
    """
    figure = new_figure(112, 90)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    filled = reliability.n_shown > 0
    upper.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    share, reach = reliability.share[filled], reliability.reach[filled]
    at = reliability.probability[filled]
    ends = np.clip([share - reach, share + reach], 0, 1)
    upper.vlines(at, *ends, color=BLUE, linewidth=1.2, zorder=2)
    upper.plot(at, share, color=BLUE, marker="o", markersize=4.5, linestyle="none", zorder=3)
    upper.set_xlim(-0.02, 1.02)
    upper.set_ylim(-0.02, 1.02)
    upper.set_aspect("auto")
    upper.text(
        0.03,
        0.95,
        f"ECE@{reliability.k} {score(reliability.ece)}",
        transform=upper.transAxes,
        va="top",
        fontsize=SMALL,
        color=INK,
    )
    style_axis(upper, grid="both")
    name_axes(upper, "", "share true")
    widths = np.diff(reliability.edges)
    lower.bar(reliability.edges[:-1], reliability.n_shown, widths * 0.9, align="edge", color=GREY)
    style_axis(lower, grid="y")
    name_axes(lower, f"probability of the labels shown (top {reliability.k})", "slots")
    put_legend(
        figure,
        [
            legend_mark("bins, with two standard errors", color=BLUE, marker="o", markersize=4.5),
            legend_mark("probability is right", color=GREY, linestyle="--"),
        ],
    )
    return finish(figure)
