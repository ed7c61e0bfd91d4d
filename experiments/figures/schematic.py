"""Figure 0: two regimes of slippage, what each repair returns, and how a dead label takes over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oddslip.reports.figures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE_GREY,
    PALE_ORANGE,
    SMALL,
    finish,
    name_axes,
    new_figure,
    percent,
    style_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = {"odds": "odds shift", "recoverable_slippage": "slippage", "tie_residue": "ties"}
REPAIRS = {
    "inversion": "inversion by ln w",
    "isotonic": "per-label isotonic",
    "pooled": "pooled isotonic",
}


@dataclass(frozen=True, slots=True, eq=False)
class Schematic:
    """Numbers of figure 0.

    Attributes
    ----------
    intended, free, capped : numpy.ndarray
        ln w, and the shift realized without a cap and with one, in nat.
    identified : numpy.ndarray of bool
        Where the free shift can be read: no cell is stored as 1.0.
    budget : float
        T eta c.
    parts, returned : mapping
        Shares of the loss.
    calibrated : numpy.ndarray
        Calibrated scores of the first labels of a row.
    dead_identity, dead_prior : float
        The dead label of that row under each fallback.
    bound : float
        The largest calibrated score of that row.
    """

    intended: NDArray[np.float64]
    free: NDArray[np.float64]
    capped: NDArray[np.float64]
    identified: NDArray[np.bool_]
    budget: float
    parts: Mapping[str, float]
    returned: Mapping[str, float]
    calibrated: NDArray[np.float64]
    dead_identity: float
    dead_prior: float
    bound: float


def draw_schematic(schematic: Schematic) -> Figure:
    """Three panels: shifts, parts of the loss, and a row with a dead label.

    Examples
    --------
    >>> from experiments.schematic import make_schematic
    >>> len(draw_schematic(make_schematic()).axes)
    3
    """
    figure = new_figure(68)
    shifts, loss, row = figure.subplots(1, 3, width_ratios=[1, 1.15, 0.95])
    _draw_shifts(shifts, schematic)
    _draw_loss(loss, schematic)
    _draw_row(row, schematic)
    return finish(figure)


def _draw_shifts(axis: Axes, schematic: Schematic) -> None:
    x, identified = schematic.intended, schematic.identified
    style_axis(axis, grid=None)
    edge = float(x[identified].max())
    axis.axvspan(edge, float(x.max()), color=PALE_ORANGE, alpha=0.35, linewidth=0)
    axis.plot(x, x, color=GREY, linestyle="--", linewidth=0.9)
    axis.plot(x[identified], schematic.free[identified], color=BLUE, linewidth=2)
    axis.plot(x, schematic.capped, color=ORANGE, linewidth=2)
    axis.axhline(schematic.budget, color=ORANGE, linestyle=":", linewidth=0.9)
    note: dict[str, Any] = {"fontsize": SMALL, "color": INK}
    axis.text(x.max(), schematic.budget + 0.4, "step budget", ha="right", **note)
    axis.text(x.max(), schematic.budget - 0.5, "cap: falls short", ha="right", va="top", **note)
    axis.text(0.55 * edge, 0.8 * edge, "no cap:\nas intended", ha="right", va="center", **note)
    axis.text(
        (edge + x.max()) / 2,
        0.5 * (schematic.budget + edge),
        "cells\nat 1.0:\nnot\nidentified",
        ha="center",
        va="center",
        **note,
    )
    axis.set_xlim(0, x.max())
    axis.set_ylim(0, x.max())
    name_axes(axis, "intended shift ln w, nat", "realized shift, nat", "a  Two regimes")


def _draw_loss(axis: Axes, schematic: Schematic) -> None:
    style_axis(axis, grid="x")
    start, height = 0.0, len(REPAIRS)
    for name, colour in zip(PARTS, (PALE_GREY, PALE_ORANGE, ORANGE), strict=True):
        share = 100 * max(0.0, schematic.parts[name])
        axis.barh(height, share, left=start, height=0.5, color=colour, edgecolor="white")
        axis.text(
            start + share / 2,
            height + 0.32,
            PARTS[name],
            ha="center",
            va="bottom",
            fontsize=SMALL,
            color=INK,
        )
        start += share
    for at, name in enumerate(reversed(REPAIRS)):
        share = 100 * schematic.returned[name]
        axis.plot([0, share], [at, at], color=BLUE, linewidth=4, solid_capstyle="butt")
        axis.text(
            max(share, 0) + 2, at, percent(share / 100), va="center", fontsize=SMALL, color=INK
        )
    axis.set_yticks(range(len(REPAIRS) + 1), [*reversed(REPAIRS.values()), "the loss"])
    axis.set_ylim(-0.6, height + 0.9)
    axis.set_xlim(min(0.0, 100 * min(schematic.returned.values()) - 4), max(100, start) + 14)
    name_axes(axis, "share of the MAP@7 loss, %", "", "b  What each repair returns")


def _draw_row(axis: Axes, schematic: Schematic) -> None:
    style_axis(axis, grid="y")
    n_alive = schematic.calibrated.size
    axis.bar(range(n_alive), schematic.calibrated, width=0.55, color=BLUE)
    axis.bar(n_alive + 0.5, schematic.dead_identity, width=0.55, color=ORANGE)
    axis.bar(n_alive + 2, schematic.dead_prior, width=0.55, color=PALE_ORANGE, edgecolor=ORANGE)
    axis.axhline(schematic.bound, color=GREY, linestyle=":", linewidth=0.9)
    note: dict[str, Any] = {"fontsize": SMALL, "color": INK, "ha": "center", "va": "bottom"}
    top = max(schematic.bound, schematic.dead_identity)
    room = 0.02 * top
    axis.text((n_alive - 1) / 2, schematic.bound + room, "calibrated\nlabels", **note)
    axis.text(n_alive + 2, schematic.dead_prior + room, "its\nprior", **note)
    axis.text(n_alive + 0.5, schematic.dead_identity + room, "dead label,\npassed through", **note)
    axis.set_xlim(-0.7, n_alive + 3)
    axis.set_ylim(0, 1.25 * top)
    axis.set_xticks([])
    name_axes(axis, "labels of one row", "score", "c  A dead label")
