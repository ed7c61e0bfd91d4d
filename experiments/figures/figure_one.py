"""The paper's figure 1: waterfalls of the loss beside the realized shift against the cap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from experiments.figures.caps import put_caps
from experiments.figures.numbers import CapPoint
from oddslip.reports.figures.notes import place_notes
from oddslip.reports.figures.style import INK, TITLE, finish, new_figure
from oddslip.reports.figures.waterfall import put_waterfalls
from oddslip.reports.numbers import Waterfall

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_figure_one(waterfalls: Sequence[Waterfall], points: Sequence[CapPoint]) -> Figure:
    """The paper's figure 1: A, the waterfalls; B, the largest realized shift against the cap.

    Parameters
    ----------
    waterfalls : sequence of Waterfall
    points : sequence of CapPoint

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from experiments.figures.numbers import CapPoint
    >>> from oddslip.reports.numbers import Waterfall
    >>> pair = Waterfall("a pair", "MAP@7", 0.8, 0.6, 0.1, None, 0.7, 0.75)
    >>> figure = draw_figure_one([pair], [CapPoint("a pair", 1.0, 3.0, 2.5, 0.0)])
    >>> len(figure.axes)
    2
    """
    figure = new_figure(72)
    n_panels = min(2, len(waterfalls))
    left_figure, right = cast(Any, figure).subfigures(
        1, 2, width_ratios=(0.7 + 0.6 * n_panels, 1), wspace=0.03
    )
    put_waterfalls(left_figure, waterfalls, in_a_row=2)
    notes = put_caps(right, points)
    for panel, letter in ((left_figure, "A"), (right, "B")):
        panel.suptitle(letter, x=0.01, ha="left", fontsize=TITLE + 1, fontweight="bold", color=INK)
    place_notes(figure, notes)
    return finish(figure)
