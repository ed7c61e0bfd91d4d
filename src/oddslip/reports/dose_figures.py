"""The dose-response picture: one panel per learner, one row per data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from oddslip.reports.figures import BLUE, GREY, ORANGE
from oddslip.reports.numbers import is_collapsed


class DoseRow(NamedTuple):
    """A data set under one learner: MAP@K of the three models and of popularity."""

    learner: str
    data: str
    n_labels: int
    unweighted: float
    weighted: float
    repaired: float
    popularity: float


def draw_doses(rows: Sequence[DoseRow]) -> Any:
    """A matplotlib figure. Data sets are sorted by their number of labels."""
    from matplotlib.figure import Figure

    learners = list(dict.fromkeys(row.learner for row in rows))
    names = sorted({(row.n_labels, row.data) for row in rows})
    place = {data: at for at, (_, data) in enumerate(names)}
    figure = Figure(figsize=(2.3 * len(learners) + 1.2, 0.32 * len(names) + 1.5), dpi=150)
    axes = figure.subplots(1, len(learners), sharey=True, squeeze=False)[0]
    for axis, learner in zip(axes, learners, strict=True):
        for row in (row for row in rows if row.learner == learner):
            _draw_row(axis, row, place[row.data])
        axis.set_title(learner, fontsize=9)
        axis.set_xlim(-0.04, 1.04)
        axis.set_xlabel("MAP@K", fontsize=8)
        axis.tick_params(labelsize=8, length=2)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="x", color="#E5E5E5", linewidth=0.6)
        axis.set_axisbelow(True)
    axes[0].set_yticks(range(len(names)), [f"{data} ({n})" for n, data in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    wide = len(learners) > 2
    _draw_legend(figure, n_columns=4 if wide else 2)
    figure.tight_layout(rect=(0, 0, 1, 0.93 if wide else 0.9))
    return figure


def _draw_row(axis: Any, row: DoseRow, y: int) -> None:
    if is_collapsed(row.weighted, row.unweighted):
        axis.axhspan(y - 0.5, y + 0.5, color=ORANGE, alpha=0.13, linewidth=0)
    axis.plot([row.weighted, row.unweighted], [y, y], color="#BBBBBB", linewidth=1, zorder=1)
    axis.plot(row.popularity, y, "|", color=GREY, markersize=9, markeredgewidth=1.6)
    axis.plot(row.unweighted, y, "o", color=BLUE, markersize=5.5)
    axis.plot(row.weighted, y, "o", color=ORANGE, markersize=5.5)
    axis.plot(row.repaired, y, "o", markerfacecolor="none", markeredgecolor=ORANGE, markersize=8.5)


def _draw_legend(figure: Any, n_columns: int) -> None:
    from matplotlib.lines import Line2D

    def mark(label: str, **how: Any) -> Any:
        return Line2D([], [], linestyle="none", label=label, **how)

    figure.legend(
        handles=[
            mark("unweighted, w = 1", marker="o", color=BLUE, markersize=5.5),
            mark("weighted, w = r", marker="o", color=ORANGE, markersize=5.5),
            mark(
                "weighted, isotonic per label",
                marker="o", markerfacecolor="none", markeredgecolor=ORANGE, markersize=8.5,
            ),
            mark("popularity", marker="|", color=GREY, markersize=9, markeredgewidth=1.6),
        ],
        loc="upper center", ncols=n_columns, frameon=False, fontsize=8,
    )  # fmt: skip
