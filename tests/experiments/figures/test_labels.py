"""Figure S1 draws every label that has a model, at its shifts."""

import numpy as np

from experiments.figures.labels import draw_labels

TABLE = {
    "n_positives": [3, 9, 0, 5],
    "intended": [3.0, 1.0, 0.0, 2.0],
    "realized": [None, 0.9, None, 1.5],
    "identified": [False, True, False, True],
    "saturated_share": [0.2, 0.0, 0.0, 0.0],
}


def test_labels_stand_by_their_positives_and_those_without_are_left_out():
    shifts, shares = draw_labels({"LightGBM": TABLE}).axes
    intended, unread, realized = shifts.get_lines()
    assert intended.get_ydata().tolist() == [1.0, 2.0, 3.0]
    assert (unread.get_xdata().tolist(), unread.get_ydata().tolist()) == ([3], [3.0])
    assert (realized.get_xdata().tolist(), realized.get_ydata().tolist()) == ([1, 2], [0.9, 1.5])
    assert np.allclose([bar.get_height() for bar in shares.patches], [0, 0, 20])


def test_every_pair_has_its_two_axes():
    assert len(draw_labels({"LightGBM": TABLE, "MLP": TABLE}).axes) == 4
