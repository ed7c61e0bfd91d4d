"""Points, budget lines and triangles equal the numbers given."""

import io

import pytest

from experiments.figures.caps import draw_caps
from experiments.figures.numbers import CapPoint
from oddslip.errors import InvalidInput

CAPS = [(0.3, 0.9, 0.88), (1.0, 3.0, 2.5), (5.0, 15.0, 8.9)]


def sweep(series="LightGBM", factor=1.0):
    return [CapPoint(series, cap, budget, shift * factor, 0.0) for cap, budget, shift in CAPS]


def lines_of(axis, **style):
    return [
        line
        for line in axis.get_lines()
        if all(getattr(line, f"get_{name}")() == value for name, value in style.items())
    ]


def test_points_stand_at_their_cap_and_shift():
    (line,) = lines_of(draw_caps(sweep()[::-1]).axes[0], marker="o")
    assert list(line.get_xdata()) == [cap for cap, _, _ in CAPS]
    assert list(line.get_ydata()) == [shift for _, _, shift in CAPS]


def test_series_with_the_same_budget_share_one_dashed_line():
    axis = draw_caps(sweep("a") + sweep("b", 0.5)).axes[0]
    (budget,) = lines_of(axis, linestyle="--")
    assert list(budget.get_ydata()) == [budget for _, budget, _ in CAPS]


def test_no_cap_is_a_triangle_with_its_saturated_share():
    axis = draw_caps([*sweep(), CapPoint("LightGBM", None, None, 12.0, 0.166)]).axes[0]
    (triangle,) = lines_of(axis, marker="^")
    assert triangle.get_ydata()[0] == 12.0
    assert triangle.get_xdata()[0] > 5.0
    assert [text.get_text() for text in axis.texts] == ["16.6%"]
    assert axis.get_xticklabels()[-1].get_text() == "none"


@pytest.mark.parametrize("cap", [None, 5.0])
def test_a_shift_that_can_not_be_read_stands_at_the_upper_edge(cap):
    axis = draw_caps([*sweep()[:2], CapPoint("LightGBM", cap, cap and 15.0, None, 0.5)]).axes[0]
    (triangle,) = lines_of(axis, marker="^")
    highest = max(shift for _, _, shift in CAPS[:2])
    assert highest < triangle.get_ydata()[0] < axis.get_ylim()[1]


def test_a_shift_of_zero_stands_at_the_lower_edge():
    axis = draw_caps([*sweep(), CapPoint("LightGBM", 2.0, 6.0, 0.0, 0.0)]).axes[0]
    (line,) = lines_of(axis, marker="o")
    assert axis.get_ylim()[0] < min(line.get_ydata()) < 0.88


def test_series_without_a_cap_stand_side_by_side():
    points = [CapPoint(series, None, None, None, 0.2) for series in ("a", "b")]
    triangles = lines_of(draw_caps(sweep("a") + points).axes[0], marker="^")
    assert len({triangle.get_xdata()[0] for triangle in triangles}) == 2


def test_only_uncapped_points_can_be_drawn():
    figure = draw_caps([CapPoint("a", None, None, None, 0.2)])
    figure.savefig(io.BytesIO())
    assert len(lines_of(figure.axes[0], marker="^")) == 1
    assert lines_of(figure.axes[0], marker="o") == []


def test_axes_carry_their_unit():
    axis = draw_caps(sweep()).axes[0]
    assert axis.get_xlabel().endswith(", nat")
    assert axis.get_ylabel().endswith(", nat")


def test_nothing_to_draw_is_an_error():
    with pytest.raises(InvalidInput, match="at least one point"):
        draw_caps([])
