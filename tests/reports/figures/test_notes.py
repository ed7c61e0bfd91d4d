"""Texts beside points keep out of one another's way."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from oddslip.reports.figures.notes import Note, place_notes
from oddslip.reports.figures.style import new_figure


def annotated(points, names):
    figure = new_figure(90, 110)
    axis = figure.subplots()
    axis.plot(*zip(*points, strict=True), "o", markersize=5)
    axis.set(xlim=(0, 1), ylim=(0, 1))
    place_notes(
        figure, [Note(axis, x, y, name) for (x, y), name in zip(points, names, strict=True)]
    )
    figure.draw_without_rendering()
    return axis


def boxes_of(axis):
    from matplotlib.text import Text

    return [Text.get_window_extent(text) for text in axis.texts]  # without the leader


@pytest.mark.parametrize("seed", range(5))
def test_texts_do_not_cover_one_another(seed):
    points = np.random.default_rng(seed).uniform(0.3, 0.7, (8, 2))
    boxes = boxes_of(annotated(points, [f"model {at}" for at in range(8)]))
    assert not any(a.overlaps(b) for at, a in enumerate(boxes) for b in boxes[:at])


def test_a_text_at_the_edge_stays_within_the_frame():
    axis = annotated([(0.99, 0.5), (0.01, 0.99)], ["at the right", "upper left"])
    frame = axis.get_window_extent()
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes_of(axis))
    assert all(frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in boxes_of(axis))


def test_a_text_stays_with_its_point():
    axis = annotated([(0.2, 0.3)], ["here"])
    assert axis.texts[0].xy == (0.2, 0.3)


def test_a_text_far_from_its_point_has_a_line_to_it():
    points = [(0.5, 0.5)] + [
        (0.5 + 0.04 * np.cos(a), 0.5 + 0.04 * np.sin(a)) for a in np.linspace(0, 6, 12)
    ]
    axis = annotated(points, ["in the middle"] + [""] * 12)
    assert axis.texts[0].arrow_patch is not None


def test_no_notes_need_no_drawing(monkeypatch):
    draws = []
    monkeypatch.setattr(Figure, "draw_without_rendering", draws.append)
    figure = Figure()
    place_notes(figure, [])
    assert draws == []
    assert figure.get_children() == [figure.patch]
