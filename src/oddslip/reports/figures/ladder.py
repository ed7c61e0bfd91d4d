"""The repair ladder as dots with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oddslip.core.formatting import has_interval, score
from oddslip.reports.figures.style import (
    GREY,
    LOOKS,
    ORANGE,
    drawable,
    finish,
    interval_note,
    legend_mark,
    name_axes,
    new_figure,
    put_legend,
    style_rows,
    write_value,
)
from oddslip.reports.numbers import kind_of, repair_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure, FigureBase

    from oddslip.diagnosis.result import Diagnosis

# Colour and shape of each kind of rung: shapes also differ in print without colours.
KINDS: dict[str, dict[str, Any]] = {
    "raw": LOOKS["raw"],
    "repair": LOOKS["repaired"],
    "reference": {"color": GREY, "marker": "s"},
}
LEGEND = {"raw": "the scores as they are", "repair": "repairs", "reference": "to compare with"}


def draw_ladder(diagnosis: Diagnosis) -> Figure:
    """Draw every rung of the ladder of a diagnosis; a vertical line marks raw.

    Parameters
    ----------
    diagnosis : Diagnosis

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(300, 9)
    >>> diagnosis = diagnose(pair.weighted, pair.labels, k=3, n_replicates=50)
    >>> draw_ladder(diagnosis).axes[0].get_xlabel()
    'MAP@3, with 95% intervals'
    """
    figure = new_figure(6.0 * len(diagnosis.ladder.rungs) + 26, 130)
    put_ladder(figure, diagnosis)
    return finish(figure)


def put_ladder(panel: FigureBase, diagnosis: Diagnosis) -> None:
    """Draw into a figure or a subfigure, with the legend below."""
    ladder = diagnosis.ladder
    axis = panel.subplots()
    axis.axvline(ladder.value("raw"), color=ORANGE, linewidth=0.8, linestyle="--", zorder=1)
    estimates = {name: ladder.estimate(name) for name in ladder}
    ends = [
        end
        for e in estimates.values()
        for end in ((e.value, e.low, e.high) if has_interval(e) else (e.value,))
    ]
    low, high = min(ends), max(ends)
    width = (high - low) or 0.1
    for y, (name, e) in enumerate(estimates.items()):
        mark = KINDS[kind_of(name)]
        if has_interval(e):
            axis.plot([e.low, e.high], [y, y], color=mark["color"], linewidth=1.4, zorder=2)
        axis.plot(e.value, y, linestyle="none", markersize=4.5, zorder=3, **mark)
        write_value(axis, y, score(e.value))
    names = [drawable(diagnosis.rung_name(name)) for name in estimates]
    axis.set_yticks(range(len(estimates)), names)
    if repair := repair_of(diagnosis):
        axis.get_yticklabels()[list(estimates).index(repair.rung)].set_fontweight("bold")
    axis.set_ylim(len(estimates) - 0.4, -0.6)
    axis.set_xlim(max(0.0, low - 0.05 * width), high + 0.24 * width)
    style_rows(axis)
    name_axes(axis, ladder.metric_name + interval_note(estimates.values(), ladder.level))
    kinds = dict.fromkeys(kind_of(name) for name in estimates)
    put_legend(
        panel,
        [
            legend_mark(LEGEND[kind], markersize=4.5, **KINDS[kind])
            for kind in KINDS
            if kind in kinds
        ],
    )
