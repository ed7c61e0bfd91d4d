"""Doses and magnitudes: what each weight leaves of the ranking, raw and repaired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from oddslip.reports.figures.style import BLUE, GREY, GRID, ORANGE, PALE_GREY, legend_mark

COLLAPSED = 0.5  # a weighted model that keeps less than this share of the twin's metric


def is_collapsed(weighted: float, unweighted: float) -> bool:
    """Whether a weighted model keeps less than half of its twin's metric."""
    return weighted < COLLAPSED * unweighted


# ------------------------------------------------------------------------------- one weight each


class DoseRow(NamedTuple):
    """A data set under one learner: MAP@K of the three models and of popularity."""

    learner: str
    data: str
    n_labels: int
    unweighted: float
    weighted: float
    repaired: float
    popularity: float


# The values of a row, in the order they are drawn.
DOTS: dict[str, dict[str, Any]] = {
    "unweighted, w = 1": {"marker": "o", "color": BLUE, "markersize": 5.5},
    "weighted, w = r": {"marker": "o", "color": ORANGE, "markersize": 5.5},
    "weighted, isotonic per label": {
        "marker": "o",
        "markerfacecolor": "none",
        "markeredgecolor": ORANGE,
        "markersize": 8.5,
    },
    "popularity": {
        "marker": "|",
        "color": GREY,
        "markersize": 9,
        "markeredgewidth": 1.6,
        "zorder": 1.5,
    },
}


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
        _strip(axis)
        axis.grid(axis="x", color=GRID, linewidth=0.6)
        axis.set_axisbelow(True)
    axes[0].set_yticks(range(len(names)), [f"{data} ({n})" for n, data in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    wide = len(learners) > 2
    handles = [legend_mark(name, **look) for name, look in DOTS.items()]
    _put_legend_above(figure, handles, 4 if wide else 2)
    figure.tight_layout(rect=(0, 0, 1, 0.93 if wide else 0.9))
    return figure


def _draw_row(axis: Any, row: DoseRow, y: int) -> None:
    if is_collapsed(row.weighted, row.unweighted):
        axis.axhspan(y - 0.5, y + 0.5, color=ORANGE, alpha=0.13, linewidth=0)
    axis.plot([row.weighted, row.unweighted], [y, y], color=PALE_GREY, linewidth=1, zorder=1)
    values = (row.unweighted, row.weighted, row.repaired, row.popularity)
    for value, look in zip(values, DOTS.values(), strict=True):
        axis.plot(value, y, linestyle="none", **look)


# ------------------------------------------------------------------------------- many weights


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
    handles = [
        legend_mark(data, marker=mark, color=ORANGE, linestyle="-", linewidth=1.3, markersize=4.5)
        for data, mark in marks.items()
    ]
    handles.append(legend_mark("never below half", color=GREY, linestyle="-", linewidth=0.8))
    _put_legend_above(figure, handles, len(handles))
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
    points = [(at, value / _first(line)) for at, value in enumerate(values) if value is not None]
    if not points:
        return
    x, y = zip(*points, strict=True)
    if line.data in marks:
        colour = ORANGE if what == "raw" else BLUE
        how = {"marker": marks[line.data], "color": colour, "linewidth": 1.3, "markersize": 4.5}
        axis.plot(x, y, zorder=3, **how)
    else:
        axis.plot(x, y, color=GREY, linewidth=0.8, alpha=0.7, zorder=2)


def _dress(axis: Any, weights: Sequence[str]) -> None:
    axis.axhline(1, color=PALE_GREY, linewidth=0.8, zorder=1)
    axis.axhline(COLLAPSED, color=PALE_GREY, linewidth=0.8, linestyle=":", zorder=1)
    axis.set_xticks(range(len(weights)), list(weights))
    axis.set_xlim(-0.25, len(weights) - 0.75)
    _strip(axis)


# --------------------------------------------------------------------------------- shared by both


def _strip(axis: Any) -> None:
    axis.tick_params(labelsize=8, length=2)
    axis.spines[["top", "right"]].set_visible(False)


def _put_legend_above(figure: Any, handles: Sequence[Any], n_columns: int) -> None:
    figure.legend(handles=handles, loc="upper center", ncols=n_columns, frameon=False, fontsize=8)
