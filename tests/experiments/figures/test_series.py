"""Dots, intervals and lines equal the numbers given; names are plain text."""

import io

from experiments.figures.numbers import Series, SeriesPanel
from experiments.figures.series import draw_intervals, draw_lines, draw_points

RAW = Series("raw", {"a": (0.1, 0.05, 0.2), "b": (0.3, None, None)}, "raw")
TWIN = Series("twin", {"b": (0.4, 0.35, 0.5)}, "repair", hollow=True)
PANELS = [SeriesPanel("one", [RAW, TWIN]), SeriesPanel("two", [TWIN])]


def points(axis):
    return [line for line in axis.get_lines() if line.get_marker() != "None"]


def test_dots_stand_at_their_values_and_rows():
    first, second = draw_intervals(PANELS, "MAP@7").axes
    assert [line.get_xdata()[0] for line in points(first)] == [0.1, 0.3, 0.4]
    rows = [line.get_ydata()[0] for line in points(first)]
    assert [round(y) for y in rows] == [0, 1, 1]
    assert rows[1] < rows[2]  # two series of a row do not cover each other
    assert round(points(second)[0].get_ydata()[0]) == 1  # rows are shared by the panels


def test_intervals_are_drawn_only_where_there_are_some():
    axis = draw_intervals(PANELS, "MAP@7").axes[0]
    spans = [tuple(line.get_xdata()) for line in axis.get_lines() if len(line.get_xdata()) == 2]
    assert spans == [(0.05, 0.2), (0.35, 0.5)]


def test_marks_are_vertical_lines():
    axis = draw_intervals(PANELS, "gain", marks=(0.0, -0.01)).axes[0]
    dashed = [line.get_xdata()[0] for line in axis.get_lines() if line.get_linestyle() == "--"]
    assert dashed == [0.0, -0.01]


def test_lines_go_through_their_values_in_order():
    axis = draw_lines(PANELS, "weight", "MAP@7").axes[0]
    raw, twin = axis.get_lines()
    assert list(raw.get_xdata()) == [0, 1]
    assert list(raw.get_ydata()) == [0.1, 0.3]
    assert list(twin.get_xdata()) == [1]
    assert twin.get_linestyle() == "--"
    assert [text.get_text() for text in axis.get_xticklabels()] == ["a", "b"]


def test_series_of_all_panels_share_one_legend():
    for figure in (draw_intervals(PANELS, "MAP@7"), draw_lines(PANELS, "weight", "MAP@7")):
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == ["raw", "twin"]


def test_hostile_names_are_drawn_as_text():
    hostile = Series("$\\frac{$\n\x1b[31m", {"$x^$" * 40: (0.1, 0.0, 0.2)})
    figure = draw_intervals([SeriesPanel("\\end", [hostile])], "MAP@7")
    figure.savefig(io.BytesIO())
    (label,) = figure.axes[0].get_yticklabels()
    assert len(label.get_text()) <= 28
    assert "\x1b" not in figure.legends[0].get_texts()[0].get_text()


def test_lines_of_every_panel_lie_within_the_axis_that_panels_share():
    """The second panel is higher than the first."""
    panels = [
        SeriesPanel(title, [Series("raw", {"1": (top / 2, None, None), "r": (top, None, None)})])
        for title, top in (("low", 0.1), ("high", 0.9))
    ]
    for axis in draw_lines(panels, "weight", "MAP@7").axes:
        bottom, top = axis.get_ylim()
        assert bottom == 0
        assert top >= 0.9


def test_points_lie_where_their_numbers_say():
    points = {"worlds": [(0.2, 0.4)], "unseen": [(0.9, 0.8), (0.1, 0.0)]}
    axis = draw_points(points, "predicted", "kept", mark=0.5).axes[0]
    markers = [line.get_xydata().tolist() for line in axis.lines if line.get_linestyle() == "None"]
    assert markers == [[[0.2, 0.4]], [[0.9, 0.8], [0.1, 0.0]]]
