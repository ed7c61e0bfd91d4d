"""Elements of the SVG pictures of the page.

Horizontal places are percentages and vertical ones pixels: a picture then fills a phone as well as
a wide screen, and its text keeps its size. Colours come from the page's style sheet by class, so
that dark mode and print work. Styles are never set on an element: the page forbids them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from oddslip.reports.text import printable


def tag(name: str, *children: str, **attributes: object) -> str:
    """An element. Attribute values are escaped; children are markup already (see `text`).

    Names are written with underscores: ``stroke_width`` is stroke-width, ``class_`` is class.

    Examples
    --------
    >>> tag("circle", cx="5%", class_="dot", data_i=None)
    '<circle cx="5%" class="dot"/>'
    """
    text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(printable(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{text}>{''.join(children)}</{name}>" if children else f"<{name}{text}/>"


def text(content: object, **attributes: object) -> str:
    """A text element; its content is escaped."""
    return tag("text", escape(printable(content)), **attributes)


def line(x: tuple[str, str], y: tuple[float, float], class_: str) -> str:
    """A line; ``x`` holds percentages, ``y`` pixels.

    Examples
    --------
    >>> line(("0", "100%"), (5, 5), "grid")
    '<line x1="0" x2="100%" y1="5" y2="5" class="grid"/>'
    """
    return tag("line", x1=x[0], x2=x[1], y1=short(y[0]), y2=short(y[1]), class_=class_)


def draw_level(mark: float, name: str, y_axis: Axis, look: str = "grid") -> list[str]:
    """A line across, and its number at the left."""
    y = y_axis(mark)
    return [
        line(("0", "100%"), (y, y), look),
        text(name, x=-8, y=short(y + 4), class_="tick-text end"),
    ]


def picture(pieces: Iterable[str], *, height: float, title: str, description: str, id_: str) -> str:
    """A whole picture with its name and its description for screen readers."""
    return tag(
        "svg",
        tag("title", escape(printable(title)), id=f"{id_}-title"),
        tag("desc", escape(printable(description)), id=f"{id_}-desc"),
        *pieces,
        role="img",
        aria_labelledby=f"{id_}-title",
        aria_describedby=f"{id_}-desc",
        width="100%",
        height=short(height),
    )


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear map from values to places. ``log`` maps the logarithms instead."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value."""
        low, high, at = ((math.log(x) if self.log else x) for x in (self.low, self.high, value))
        return self.start + (self.stop - self.start) * (at - low) / (high - low)

    def percent(self, value: float) -> str:
        """The place as a percentage of the width."""
        return f"{short(self(value))}%"

    def ticks(self, n: int = 5) -> list[float]:
        """Round numbers inside the range: about n of them, and two at least."""
        if self.log:
            return _log_ticks(self.low, self.high)
        ticks: list[float] = []
        while len(ticks) < 2:
            step = round_step((self.high - self.low) / n)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            ticks = [step * at for at in range(first, last + 1)]
            n *= 2
        return ticks


def axis_over(values: Iterable[float], start: float, stop: float, *, margin: float = 0.04) -> Axis:
    """An axis with space for these values and a little more on both sides."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if high - low < 1e-9 * max(1.0, abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5
    space = margin * (high - low)
    return Axis(low - space, high + space, start, stop)


def round_step(rough: float) -> float:
    """The next larger of 1, 2, 5 times a power of ten.

    Examples
    --------
    >>> round_step(0.13), round_step(3.0)
    (0.2, 5.0)
    """
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough * (1 - 1e-9))


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [mark for mark in marks if low <= mark <= high]


def short(number: float) -> str:
    """A coordinate with at most two decimals.

    Examples
    --------
    >>> short(3.0), short(2.3456)
    ('3', '2.35')
    """
    return f"{number:.2f}".rstrip("0").rstrip(".")
