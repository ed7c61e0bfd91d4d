"""Markers equal the numbers given; what lies beyond the frame is marked."""

import io

import pytest

from oddslip.errors import InvalidInput
from oddslip.reports.figures.regime import HIGHEST, LOWEST, NAMED, draw_regimes
from oddslip.reports.numbers import RegimePoint, count_regimes, read_regimes


def point(ratio=0.9, returned=0.5, share=0.0, name="a model", series="LightGBM", here=False):
    return RegimePoint(name, series, ratio, returned, share, here)


def markers_of(axis):
    return [line for line in axis.get_lines() if line.get_marker() not in ("None", None)]


def arrows_of(axis):
    return [text for text in axis.texts if text.get_gid() == "beyond"]


def notes_of(axis):
    return [text.get_text() for text in axis.texts if text.get_text()]


def test_a_marker_stands_at_its_ratio_and_share():
    (marker,) = markers_of(draw_regimes([point(0.31, 0.98)]).axes[0])
    assert (marker.get_xdata()[0], marker.get_ydata()[0]) == (0.31, 0.98)


def test_saturated_models_are_open_and_carry_their_share():
    axis = draw_regimes([point(share=0.166), point(0.5, share=1e-6)]).axes[0]
    faces = [marker.get_markerfacecolor() for marker in markers_of(axis)]
    assert [face == "white" for face in faces] == [True, False]
    assert sorted(notes_of(axis)) == ["a model", "a model (16.6%)"]


@pytest.mark.parametrize(("returned", "edge"), [(-3.2, LOWEST), (40.0, HIGHEST)])
def test_a_share_beyond_the_frame_is_clipped_with_an_arrow_and_its_number(returned, edge):
    axis = draw_regimes([point(returned=returned)]).axes[0]
    (marker,) = markers_of(axis)
    (arrow,) = arrows_of(axis)
    assert marker.get_ydata()[0] == edge
    assert (arrow.xyann[1] > 0) == (returned > 0)
    assert f"{abs(returned):.0%}" in notes_of(axis)[0]


def test_a_share_within_the_frame_has_no_arrow():
    assert arrows_of(draw_regimes([point(returned=LOWEST), point(returned=HIGHEST)]).axes[0]) == []


def test_this_model_is_a_star_on_top_and_named_in_the_legend():
    crowd = [point(0.1 + 0.05 * at, 0.05 * at, name=f"m{at}") for at in range(NAMED + 3)]
    figure = draw_regimes([point(name="this model", here=True), *crowd])
    axis = figure.axes[0]
    (star,) = [marker for marker in markers_of(axis) if marker.get_marker() == "*"]
    assert star.get_zorder() > max(m.get_zorder() for m in markers_of(axis) if m is not star)
    assert notes_of(axis) == []
    assert [text.get_text() for text in figure.legends[0].texts] == ["LightGBM", "this model"]


def test_every_series_is_in_the_legend_once():
    figure = draw_regimes([point(), point(0.4), point(series="MLP")])
    assert [text.get_text() for text in figure.legends[0].texts] == ["LightGBM", "MLP"]


@pytest.mark.parametrize("ratio", [1e-4, 1.0, 300.0])
def test_every_ratio_lies_within_the_axis(ratio):
    figure = draw_regimes([point(ratio)])
    low, high = figure.axes[0].get_xlim()
    assert low < ratio < high
    figure.savefig(io.BytesIO())


@pytest.mark.parametrize("ratio", [0.0, -0.2])
def test_a_ratio_without_a_logarithm_stands_at_the_left_edge_with_an_arrow(ratio):
    figure = draw_regimes([point(ratio), point(0.3)])
    axis = figure.axes[0]
    edge, inside = (marker.get_xdata()[0] for marker in markers_of(axis))
    assert axis.get_xlim()[0] < edge < inside == 0.3
    (arrow,) = arrows_of(axis)
    assert arrow.xyann[0] < 0
    assert "at the left edge: ratio 0 or less" in [t.get_text() for t in figure.legends[0].texts]
    figure.draw_without_rendering()
    shown = dict(zip(axis.get_xticks(), axis.get_xticklabels(), strict=True))
    assert shown[edge].get_text() == "0 or less"
    assert axis.get_xlim()[0] <= min(axis.get_xticks())


def test_without_such_a_ratio_nothing_speaks_of_the_edge():
    figure = draw_regimes([point(0.3), point(0.9)])
    assert not arrows_of(figure.axes[0])
    assert "at the left edge: ratio 0 or less" not in [
        t.get_text() for t in figure.legends[0].texts
    ]


def test_no_point_is_dropped():
    points = [*read_regimes().points, point(-0.4, here=True)]
    assert any(p.ratio <= 0 for p in points[:-1])
    assert len(markers_of(draw_regimes(points).axes[0])) == len(points)


def test_the_title_counts_the_models_with_and_without_the_conditions():
    points = read_regimes().points
    counts = count_regimes(points)
    title = draw_regimes([*points, point(here=True)]).axes[0].get_title(loc="left")
    assert f"{counts.n_regained} of {counts.n_models} models" in title
    assert f"{counts.n_inside_regained} of {counts.n_inside}," in title
    assert title.endswith(f"{counts.n_outside_regained} of {counts.n_outside}")


@pytest.mark.parametrize("ratio", [float("nan"), float("inf")])
def test_a_ratio_that_is_no_number_is_an_error(ratio):
    with pytest.raises(InvalidInput, match="ratios must be finite"):
        draw_regimes([point(ratio)])


def test_nothing_to_draw_is_an_error():
    with pytest.raises(InvalidInput, match="at least one point"):
        draw_regimes([])
