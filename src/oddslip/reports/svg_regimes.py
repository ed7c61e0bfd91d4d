"""When the inversion pays: every weighted model as one mark (the paper's figure 2)."""

from __future__ import annotations

from collections.abc import Sequence

from oddslip.reports.numbers import is_open, percent, small_percent, times
from oddslip.reports.pictures import RegimePoint
from oddslip.reports.svgs import Axis, picture, short, tag, text

HEIGHT, TOP, BOTTOM = 380, 34, 330
LOWEST = -1.0  # shares below are drawn at the edge with an arrow: they would squeeze the rest
HIGHEST = 1.5
AT_EDGE = 1.8  # factor from the lowest place of the axis to the marks at or below 0, and beyond
SHAPES = ("circle", "square", "diamond", "triangle", "hexagon", "wedge")


def draw_regimes(points: Sequence[RegimePoint]) -> str:
    """The picture as SVG markup; needs at least one point.

    A ratio at or below 0 has no place on a log axis: its mark stands at the left edge, over a tick
    of its own, with an arrow.
    """
    ratios = [1.0, *(point.ratio for point in points if point.ratio > 0)]
    low, edge = min(0.5, *ratios) / 1.25, None
    if any(point.ratio <= 0 for point in points):
        edge = low / AT_EDGE
        low = edge / AT_EDGE
    x_axis = Axis(low, max(2.0, *ratios) * 1.25, 0.0, 100.0, log=True)
    y_axis = Axis(LOWEST - 0.1, HIGHEST, BOTTOM, TOP)
    pieces = _draw_grid(x_axis, y_axis, edge)
    shapes = shape_by_series(points)
    for point in sorted(points, key=lambda point: point.here):  # this model last, on top
        at = point.ratio if edge is None or point.ratio > 0 else edge
        pieces += _draw_point(point, shapes[point.series], at, x_axis, y_axis)
    return picture(
        pieces,
        height=HEIGHT,
        id_="regimes",
        title="When subtracting ln w pays",
        description="; ".join(describe_point(point) for point in points) + ".",
    )


def shape_by_series(points: Sequence[RegimePoint]) -> dict[str, str]:
    """A shape for each series of reference points; the model of the report is a circle."""
    series = list(dict.fromkeys(point.series for point in points if not point.here))
    shapes = {name: SHAPES[at % len(SHAPES)] for at, name in enumerate(series)}
    return {point.series: "circle" for point in points if point.here} | shapes


def describe_point(point: RegimePoint) -> str:
    """A point in words."""
    share = small_percent(point.saturated_share)
    saturated = f"{share} of the cells saturated" if is_open(point) else "nothing saturated"
    return (
        f"{point.name}: realized {times(point.ratio)} of ln w, the inversion returns "
        f"{percent(point.returned)} of the loss, {saturated}"
    )


def _draw_grid(x_axis: Axis, y_axis: Axis, edge: float | None) -> list[str]:
    pieces = []
    for mark in (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5):
        y = y_axis(mark)
        look = "grid strong" if mark in (0.0, 1.0) else "grid"
        pieces += [
            tag("line", x1="0", x2="100%", y1=short(y), y2=short(y), class_=look),
            text(percent(mark), x=-8, y=short(y + 4), class_="tick-text end"),
        ]
    ticks = {mark: f"{mark:g}" for mark in x_axis.ticks()}
    if edge is not None:
        ticks = {mark: told for mark, told in ticks.items() if mark > edge * AT_EDGE}
        ticks[edge] = "0 or less"
    for mark, told in ticks.items():
        pieces.append(text(told, x=x_axis.percent(mark), y=BOTTOM + 18, class_="tick-text middle"))
    one = x_axis.percent(1.0)
    return [
        *pieces,
        tag("line", x1=one, x2=one, y1=TOP, y2=BOTTOM, class_="diagonal"),
        text("share of the loss that subtracting ln w returns", x="0", y=14, class_="axis-text"),
        text("median realized / intended shift", x="50%", y=HEIGHT - 6, class_="axis-text middle"),
    ]


def _draw_point(
    point: RegimePoint, shape: str, ratio: float, x_axis: Axis, y_axis: Axis
) -> list[str]:
    clipped = min(max(point.returned, LOWEST), HIGHEST)
    x, y = x_axis.percent(ratio), y_axis(clipped)
    look = f"mark{' open' if is_open(point) else ''}{' here' if point.here else ''}"
    size = 8.0 if point.here else 5.5
    # A nested svg takes the percentage, so that paths inside can count in pixels.
    inner = [tag("path", d=_outline(shape, size), class_=look, data_t=describe_point(point))]
    if clipped != point.returned:
        down = 1 if point.returned < clipped else -1
        inner.append(tag("path", d=f"M-4 {down * 11}L4 {down * 11}L0 {down * 17}Z", class_="arrow"))
    if ratio != point.ratio:
        inner.append(tag("path", d="M-11 -4L-11 4L-17 0Z", class_="arrow"))
    if point.here:
        on_right = x_axis(ratio) > 70
        inner.append(
            text(
                point.name, x=-13 if on_right else 13, y=5,
                class_="name here end" if on_right else "name here",
            )
        )  # fmt: skip
    elif is_open(point):
        told = small_percent(point.saturated_share)
        beside = ratio != point.ratio  # marks at the edge stand above one another
        place = {"x": 10, "y": 4, "class_": "tick-text"} if beside else {"x": 0, "y": -10}
        inner.append(text(told, **{"class_": "tick-text middle"} | place))
    return [tag("svg", *inner, x=x, y=short(y), class_="place")]


def _outline(shape: str, r: float) -> str:
    if shape == "square":
        return f"M{-r} {-r}H{r}V{r}H{-r}Z"
    if shape == "diamond":
        return f"M0 {-1.35 * r:g}L{1.35 * r:g} 0L0 {1.35 * r:g}L{-1.35 * r:g} 0Z"
    if shape == "triangle":
        return f"M0 {-1.2 * r:g}L{1.2 * r:g} {r:g}L{-1.2 * r:g} {r:g}Z"
    if shape == "wedge":
        return f"M0 {1.2 * r:g}L{1.2 * r:g} {-r:g}L{-1.2 * r:g} {-r:g}Z"
    if shape == "hexagon":
        far, near = 1.2 * r, 0.6 * r
        return f"M{-far:g} 0L{-near:g} {-r}H{near:g}L{far:g} 0L{near:g} {r}H{-near:g}Z"
    return f"M{-r} 0A{r} {r} 0 1 0 {r} 0A{r} {r} 0 1 0 {-r} 0Z"


def draw_key(shape: str) -> str:
    """A mark for the legend."""
    mark = tag("path", d=_outline(shape, 5.0), class_="mark", transform="translate(9 9)")
    return tag("svg", mark, width=18, height=18, aria_hidden="true")
