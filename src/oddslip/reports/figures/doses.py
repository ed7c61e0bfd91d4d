"""Doses and magnitudes: what each weight leaves of the ranking, raw and repaired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from oddslip.reports.figures.style import BLUE, GREY, ORANGE
from oddslip.reports.numbers import COLLAPSED, is_collapsed


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
    _draw_dose_legend(figure, n_columns=4 if wide else 2)
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


def _draw_dose_legend(figure: Any, n_columns: int) -> None:
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


MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")  # one per data set that collapses


class MagnitudeLine(NamedTuple):
    """A data set under one learner: MAP@K at each weight, raw and repaired; None if unknown."""

    learner: str
    data: str
    n_labels: int
    raw: tuple[float | None, ...]
    repaired: tuple[float | None, ...]


def draw_magnitudes(lines: Sequence[MagnitudeLine], weights: Sequence[str]) -> Any:
    """A matplotlib figure: a column per learner, raw above, repaired below.

    Lines are shares of the raw MAP@K at the first weight. Data sets that fall below half of it
    at some weight, under some learner, stand out; the others are grey.
    """
    from matplotlib.figure import Figure

    lines = [line for line in lines if line.raw[0]]
    learners = list(dict.fromkeys(line.learner for line in lines)) or [""]
    fallen = sorted({(line.n_labels, line.data) for line in lines if _falls(line)}, reverse=True)
    marks = {data: MARKS[at % len(MARKS)] for at, (_, data) in enumerate(fallen)}
    figure = Figure(figsize=(2.1 * len(learners) + 0.8, 5.2), dpi=150)
    axes = figure.subplots(2, len(learners), sharex=True, sharey=True, squeeze=False)
    for column, learner in enumerate(learners):
        for row, what in enumerate(("raw", "repaired")):
            axis = axes[row][column]
            for line in (line for line in lines if line.learner == learner):
                _draw_line(axis, line, what, marks)
            _dress(axis, weights)
        axes[0][column].set_title(learner, fontsize=9)
        axes[1][column].set_xlabel("weight", fontsize=8)
    axes[0][0].set_ylabel("raw\nshare of unweighted MAP@K", fontsize=8)
    axes[1][0].set_ylabel("isotonic per label\nshare of unweighted MAP@K", fontsize=8)
    axes[0][0].set_ylim(bottom=-0.04)  # last: it ends the automatic upper end
    _draw_magnitude_legend(figure, marks)
    figure.tight_layout(rect=(0, 0, 1, 0.93))
    return figure


def _falls(line: MagnitudeLine) -> bool:
    return any(value is not None and is_collapsed(value, _first(line)) for value in line.raw)


def _first(line: MagnitudeLine) -> float:
    first = line.raw[0]
    assert first is not None  # lines without it are not drawn
    return first


def _draw_line(axis: Any, line: MagnitudeLine, what: str, marks: dict[str, str]) -> None:
    values = line.raw if what == "raw" else line.repaired
    known = [(at, value / _first(line)) for at, value in enumerate(values) if value is not None]
    if not known:
        return
    x, y = zip(*known, strict=True)
    if line.data in marks:
        colour = ORANGE if what == "raw" else BLUE
        how = {"marker": marks[line.data], "color": colour, "linewidth": 1.3, "markersize": 4.5}
        axis.plot(x, y, zorder=3, **how)
    else:
        axis.plot(x, y, color=GREY, linewidth=0.8, alpha=0.7, zorder=2)


def _dress(axis: Any, weights: Sequence[str]) -> None:
    axis.axhline(1, color="#BBBBBB", linewidth=0.8, zorder=1)
    axis.axhline(COLLAPSED, color="#BBBBBB", linewidth=0.8, linestyle=":", zorder=1)
    axis.set_xticks(range(len(weights)), list(weights))
    axis.set_xlim(-0.25, len(weights) - 0.75)
    axis.tick_params(labelsize=8, length=2)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_magnitude_legend(figure: Any, marks: dict[str, str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker=mark, color=ORANGE, linewidth=1.3, markersize=4.5, label=data)
        for data, mark in marks.items()
    ]
    handles.append(Line2D([], [], color=GREY, linewidth=0.8, label="never below half"))
    figure.legend(
        handles=handles, loc="upper center", ncols=len(handles), frameon=False, fontsize=8
    )
