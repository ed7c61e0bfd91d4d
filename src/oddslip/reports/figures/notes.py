"""Short texts beside points, placed where they do not cover points, lines or each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oddslip.core.types import Floats
from oddslip.reports.figures.style import DPI, GREY, INK, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINT = DPI / 72  # pixels
LETTER, LINE = 0.62 * SMALL * POINT, 1.25 * SMALL * POINT  # of a text, roughly
BESIDE = 6.0  # points from the middle of a marker
LEADER = 12.0  # points; texts further away get a thin line to their point
# Costs of leaving the frame by a pixel, of covering a dot, and of crossing a line.
OUTSIDE, COVERED, CROSSED = 100.0, 300.0, 25.0
ON_A_LINE = 40  # points of a line segment that are checked

ENDS = {"left": 0.0, "center": 0.5, "right": 1.0}  # of a text, from left to right
Box = tuple[float, float, float, float]
Pixels = Floats


class Note(NamedTuple):
    """A text and its point."""

    axis: Axes
    x: float
    y: float
    text: str


class Place(NamedTuple):
    """Offset in points, and which end of the text is there."""

    dx: float
    dy: float
    end: str

    @property
    def far(self) -> bool:
        """Whether a line must connect the text to its point."""
        return abs(self.dx) + abs(self.dy) > LEADER


WAYS = (
    (1.0, 0.0, "left"),
    (-1.0, 0.0, "right"),
    (0.7, 1.1, "left"),
    (0.7, -1.1, "left"),
    (-0.7, 1.1, "right"),
    (-0.7, -1.1, "right"),
    (0.0, 1.5, "center"),
    (0.0, -1.5, "center"),
)
PLACES = [
    Place(dx * away * BESIDE, dy * away * BESIDE, end)
    for away in (1, 2, 3, 5)
    for dx, dy, end in WAYS
]


def place_notes(figure: Figure, notes: Sequence[Note]) -> None:
    """Write each text beside its point. Call it last, since it avoids what is already drawn.

    If no place is free, the one that covers least is used.
    """
    if notes:
        figure.draw_without_rendering()  # settles the layout
    for axis in dict.fromkeys(note.axis for note in notes):
        _place_on(axis, [note for note in notes if note.axis is axis])


def _place_on(axis: Axes, notes: Sequence[Note]) -> None:
    dots, lines = _marks_of(axis)
    frame = np.asarray(axis.get_window_extent().extents)
    texts: list[Box] = []
    points = axis.transData.transform([(note.x, note.y) for note in notes])
    for point, note in zip(points, notes, strict=True):
        boxes = [_box(point, place, len(note.text)) for place in PLACES]
        costs = [
            number
            + _cost(box, dots, lines, texts, frame)
            + _leader_cost(point, box, place, dots, texts)
            for number, (place, box) in enumerate(zip(PLACES, boxes, strict=True))
        ]
        best = int(np.argmin(costs))
        place = PLACES[best]
        texts.append(boxes[best])
        axis.annotate(
            note.text,
            (note.x, note.y),
            xytext=(place.dx, place.dy),
            textcoords="offset points",
            ha=place.end,
            va="center",
            fontsize=SMALL,
            color=INK,
            annotation_clip=False,
            zorder=6,
            arrowprops=_leader(place) if place.far else None,
        )


def _leader(place: Place) -> dict[str, Any]:
    near_end = (ENDS[place.end], 0.5)
    look = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5}
    return {**look, "relpos": near_end, "shrinkA": 0.5, "shrinkB": 3}


def _marks_of(axis: Axes) -> tuple[Pixels, Pixels]:
    """Pixels of the markers, and pixels along the lines."""
    dots, lines = [np.empty((0, 2))], [np.empty((0, 2))]
    share = np.linspace(0, 1, ON_A_LINE)[:, None]
    for line in axis.get_lines():
        ends = np.asarray(line.get_transform().transform(line.get_xydata()))
        if line.get_marker() not in (None, "", " ", "None", "none"):
            dots.append(ends)
        if line.get_linestyle() not in ("", " ", "None", "none"):
            lines += [start + share * (end - start) for start, end in pairwise(ends)]
    return np.concatenate(dots), np.concatenate(lines)


def _box(point: Pixels, place: Place, n_letters: int) -> Box:
    x, y = float(point[0]), float(point[1])
    width = n_letters * LETTER
    left = x + place.dx * POINT - ENDS[place.end] * width
    low = y + place.dy * POINT - LINE / 2
    return left, low, left + width, low + LINE


def _cost(box: Box, dots: Pixels, lines: Pixels, texts: Sequence[Box], frame: Pixels) -> float:
    cost = COVERED * _inside(box, dots, 3 * POINT) + CROSSED * _inside(box, lines, 0)
    for other in texts:
        width = min(box[2], other[2]) - max(box[0], other[0])
        height = min(box[3], other[3]) - max(box[1], other[1])
        cost += max(0.0, width) * max(0.0, height)
    beyond = np.maximum(
        0, [frame[0] - box[0], frame[1] - box[1], box[2] - frame[2], box[3] - frame[3]]
    )
    return cost + OUTSIDE * float(beyond.sum())


def _leader_cost(
    point: Pixels, box: Box, place: Place, dots: Pixels, texts: Sequence[Box]
) -> float:
    """Cost of what the line from a distant text to its point crosses."""
    if not place.far:
        return 0.0
    start = np.array([box[0] + ENDS[place.end] * (box[2] - box[0]), (box[1] + box[3]) / 2])
    along = start + np.linspace(0, 1, ON_A_LINE)[:, None] * (point - start)
    others = dots[np.hypot(*(dots - point).T) > 1]
    distance = (
        np.hypot(*(along[:, None] - others[None]).transpose(2, 0, 1)) if others.size else along
    )
    near = int((distance < 3 * POINT).any(axis=0).sum()) if others.size else 0
    return 2 * CROSSED * near + CROSSED * sum(_inside(text, along, 0) for text in texts)


def _inside(box: Box, pixels: Pixels, margin: float) -> int:
    x, y = pixels[:, 0], pixels[:, 1]
    return int(
        np.sum(
            (x > box[0] - margin)
            & (x < box[2] + margin)
            & (y > box[1] - margin)
            & (y < box[3] + margin)
        )
    )
