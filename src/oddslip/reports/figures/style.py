"""Shared by all figures: colours, sizes, names as plain text, and the last steps of a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from oddslip.core import formatting
from oddslip.reports.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, FigureBase
    from matplotlib.lines import Line2D

    from oddslip.metrics.evaluation import Estimate

# Safe for the colour-blind. Shapes differ too, for print without colours.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#7F7F7F"
PALE_BLUE, PALE_ORANGE, PALE_GREY = "#8CC0DE", "#F0B890", "#C4C4C4"
INK, GRID = "#222222", "#E5E5E5"
LOOKS: dict[str, dict[str, Any]] = {
    "raw": {"color": ORANGE, "marker": "D"},
    "repaired": {"color": BLUE, "marker": "o"},
}
DASHES = (0, (4, 3))  # of thin lines that mark a place
MARKERS = ("o", "s", "D", "v", "P", "X")

FONT = "DejaVu Sans"  # comes with matplotlib, so figures look the same everywhere
SMALL, TEXT, TITLE = 6.5, 7.5, 8.5  # points, as printed at 160 mm
WIDTH, DPI = 160.0, 200  # mm
INCH = 25.4
LONGEST = 28  # characters of a name
MINUS = "\N{MINUS SIGN}"  # as wide as the plus


# --------------------------------------------------------------------- a figure, from first to last


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure; height and width in mm. Without pyplot: no display, no global state."""
    from oddslip.reports.figures.canvas import Canvas

    return Canvas(
        figsize=(width / INCH, height / INCH), dpi=DPI, facecolor="white", layout="constrained"
    )


def style_axis(axis: Axes, *, grid: Literal["x", "y", "both"] | None = "x") -> None:
    """Draw two spines, a light grid and small ticks."""
    axis.set_facecolor("white")
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(GREY)
    axis.tick_params(labelsize=TEXT, length=2, color=GREY, labelcolor=INK)
    axis.grid(False)
    if grid:
        axis.grid(axis=grid, color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)


def style_rows(axis: Axes) -> None:
    """Style an axis with a name per row at the left, and few numbers below."""
    axis.locator_params(axis="x", nbins=5)
    style_axis(axis)
    axis.tick_params(axis="y", length=0)


def name_axes(axis: Axes, x: str, y: str = "", title: str = "") -> None:
    """Label the axes, with units."""
    axis.set_xlabel(x, fontsize=TEXT, color=INK)
    axis.set_ylabel(y, fontsize=TEXT, color=INK)
    if title:
        axis.set_title(title, fontsize=TITLE, color=INK, loc="left")


def finish(figure: Figure) -> Figure:
    """Draw every text plain and in one font, whatever the settings of the machine: no TeX, no math.

    Label names are untrusted text: "$" would start a formula.
    """
    from matplotlib.text import Text

    for axis in figure.axes:  # matplotlib creates ticks on first access
        axis.get_xticklabels(which="both")
        axis.get_yticklabels(which="both")
    for text in figure.findobj(Text):
        text.set_usetex(False)
        text.set_parse_math(False)
        text.set_fontfamily(FONT)
    return figure


# ---------------------------------------------------------------------- ticks, marks and the legend


def round_steps(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: 1, 2, 5, 10, ... or powers of ten where there are many.

    Examples
    --------
    >>> round_steps(0.4, 6)
    [0.5, 1.0, 2.0, 5.0]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if last - first <= 3 else (1,)
    steps = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    return [step for step in steps if low <= step <= high]


def fix_ticks(axis: Axis, ticks: Sequence[float], name: Callable[[float], str]) -> None:
    """Set the ticks of an x or y axis to these places."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: name(value))


def series_marks(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """A colour and a marker for each series, in order of appearance."""
    distinct = list(dict.fromkeys(names))
    colours = (BLUE, ORANGE, GREY)
    return {
        name: {
            "color": colours[at % len(colours)],
            "marker": MARKERS[(at + at // len(MARKERS)) % len(MARKERS)],
        }
        for at, name in enumerate(distinct)
    }


def open_mark(colour: str = GREY) -> dict[str, Any]:
    """The style of an open marker."""
    return {
        "markersize": 6,
        "markerfacecolor": "white",
        "markeredgecolor": colour,
        "markeredgewidth": 1.2,
    }


def legend_mark(label: str, **how: Any) -> Line2D:
    """An entry of a legend: a marker, or a line with ``linestyle``."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **{"linestyle": "none", **how})


def mark_budget(draw_line: Callable[..., Any], budget: float, *, both: bool) -> Line2D:
    """Draw the step budget as a line, with ``both`` below zero too. Returns its legend entry."""
    look = {"color": ORANGE, "linewidth": 1, "linestyle": "-."}
    for level in (budget, -budget) if both else (budget,):
        draw_line(level, **look, zorder=1)
    return legend_mark(f"step budget, {formatting.nat(budget)} nat", **look)


def interval_note(estimates: Iterable[Estimate], level: float) -> str:
    """What the name of an axis adds where values have intervals."""
    if not any(map(formatting.has_interval, estimates)):
        return ""
    return f", with {formatting.level_name(level)} intervals"


def write_value(axis: Axes, y: float, text: str) -> None:
    """Write a number at the right edge, at this height of the data."""
    axis.text(
        1.0,
        y,
        text,
        transform=axis.get_yaxis_transform(),
        ha="right",
        va="center",
        fontsize=SMALL,
        color=INK,
    )


def put_legend(
    panel: FigureBase, handles: Sequence[Line2D], columns: int = 4, title: str | None = None
) -> None:
    """One legend below all axes of a figure or a subfigure."""
    if handles:
        panel.legend(
            handles=list(handles),
            loc="outside lower center",
            ncols=min(columns, len(handles)),
            frameon=False,
            fontsize=SMALL,
            labelcolor=INK,
            title=title,
            title_fontsize=SMALL,
            handletextpad=0.5,
            columnspacing=1.4,
        )


# -------------------------------------------------------------------------------------------- texts


def drawable(name: object, longest: int = LONGEST) -> str:
    """A name as one short line that the font can draw; other characters as their escapes.

    Examples
    --------
    >>> drawable("two\\nlines"), drawable("a very long name of a label", 12)
    ('two\\\\nlines', 'a very long…')
    """
    whole = str(name)
    cut = whole if len(whole) <= longest else whole[: longest - 1].rstrip() + "…"
    return "".join(
        c if _in_font(c) else c.encode("unicode_escape").decode() for c in printable(cut)
    )


@cache
def _font() -> Any:
    from matplotlib.font_manager import findfont, get_font

    return get_font(findfont(FONT))


def _in_font(character: str) -> bool:
    return bool(_font().get_char_index(ord(character)))


def signed(value: float, digits: int = 3) -> str:
    """A change with its sign."""
    return formatting.signed(value, digits).replace("-", MINUS)


def percent(share: float, digits: int = 0) -> str:
    """A share in percent."""
    return formatting.percent(share, digits).replace("-", MINUS)


def small_percent(share: float) -> str:
    """A share of cells, with enough digits to show that it is not zero."""
    return formatting.small_percent(share).replace("-", MINUS)
