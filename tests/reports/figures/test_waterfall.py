"""Bars equal the numbers given."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.figures.figure_one import draw_figure_one
from experiments.figures.numbers import CapPoint
from oddslip.errors import InvalidInput
from oddslip.reports.figures.waterfall import draw_waterfalls, steps_of, tell_step
from oddslip.reports.numbers import Waterfall

# The paper's figure 1A.
SANTANDER = Waterfall("Santander", "MAP@7", 0.808, 0.646, 0.117, 0.151, 0.784, 0.786, 0.819)
INSTACART = Waterfall("Instacart", "MAP@7", 0.131, 0.116, 0.001, 0.017, 0.225, 0.230, 0.250)
score = st.floats(0, 1)


def bars_of(axis):
    return np.array([(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axis.patches])


def marks_at(axis, marker):
    return [line.get_xdata()[0] for line in axis.get_lines() if line.get_marker() == marker]


def test_bars_run_from_level_to_level():
    bars = bars_of(draw_waterfalls([SANTANDER]).axes[0])
    levels = [
        (0, 0.808),
        (0.808, 0.646),
        (0.646, 0.117),
        (0, 0.117),
        (0.117, 0.151),
        (0.117, 0.784),
    ]
    np.testing.assert_allclose(bars, levels)


def test_the_shares_are_those_of_the_paper():
    texts = [text.get_text() for text in draw_waterfalls([SANTANDER]).axes[0].texts]
    assert [text.split()[-1] for text in texts] == [
        "0.808",
        "(23%)",
        "(77%)",
        "0.117",
        "(5%)",
        "(97%)",
    ]


def test_the_ceiling_is_a_tick_and_the_twin_an_open_marker():
    axis = draw_waterfalls([SANTANDER]).axes[0]
    twin = next(line for line in axis.get_lines() if line.get_marker() == "o")
    assert twin.get_xdata()[0] == 0.819
    assert twin.get_markerfacecolor() == "white"
    assert any(list(line.get_xdata()) == [0.786, 0.786] for line in axis.get_lines())


def test_without_an_inversion_its_bar_is_left_out():
    axis = draw_waterfalls([replace(SANTANDER, inversion=None)]).axes[0]
    assert len(axis.patches) == 5
    assert "inversion" not in [tick.get_text() for tick in axis.get_yticklabels()]


def test_without_the_repaired_twin_no_marker_stands_for_it():
    figure = draw_waterfalls([replace(SANTANDER, unweighted_repaired=None)])
    assert marks_at(figure.axes[0], "o") == []
    assert [text.get_text() for text in figure.legends[0].texts] == ["ceiling"]


def test_without_a_loss_there_are_no_shares():
    texts = [tell_step(step) for step in steps_of(replace(SANTANDER, unweighted=0.1))]
    assert not any("%" in text for text in texts)


@given(score, score, score, score, score)
@settings(deadline=None)
def test_the_shares_of_odds_shift_and_slippage_add_up(
    unweighted, what_if, weighted, inversion, repaired
):
    w = Waterfall("", "MAP@7", unweighted, what_if, weighted, inversion, repaired, 1.0)
    steps = {step.name: step for step in steps_of(w)}
    change = sum(steps[name].stop - steps[name].start for name in ("odds shift", "slippage"))
    assert change == pytest.approx(weighted - unweighted)
    assert steps["odds shift"].start == unweighted
    assert steps["slippage"].stop == steps["weighted"].stop == steps["isotonic"].start == weighted


def test_each_data_set_has_a_panel_with_its_own_scale():
    figure = draw_waterfalls([SANTANDER, INSTACART, SANTANDER, INSTACART])
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["Santander", "Instacart"] * 2
    assert figure.axes[0].get_xlim()[1] > 0.808
    assert 0.25 < figure.axes[1].get_xlim()[1] < 0.5


@pytest.mark.parametrize(
    "waterfall",
    [SANTANDER, INSTACART, replace(SANTANDER, what_if=0.05)],
    ids=["santander", "instacart", "overshooting"],
)
def test_no_number_leaves_its_panel_or_covers_another(waterfall):
    figure = draw_waterfalls([waterfall])
    figure.draw_without_rendering()
    axis = figure.axes[0]
    boxes = [text.get_window_extent() for text in axis.texts]
    frame = axis.get_window_extent()
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes)
    assert not any(a.overlaps(b) for at, a in enumerate(boxes) for b in boxes[:at])


def test_no_number_is_drawn_over_the_ceiling_or_the_twin():
    axis = draw_waterfalls([SANTANDER]).axes[0]
    twin = [line for line in axis.get_lines() if line.get_marker() == "o"]
    ceiling = [line for line in axis.get_lines() if line.get_linewidth() == 1.6]
    assert len(twin) == len(ceiling) == 1
    texts = max(text.get_zorder() for text in axis.texts)
    assert min(line.get_zorder() for line in (*twin, *ceiling)) > texts


def test_zeros_can_be_drawn():
    figure = draw_waterfalls([Waterfall("nothing", "MAP@7", 0, 0, 0, 0, 0, 0)])
    figure.draw_without_rendering()
    low, high = figure.axes[0].get_xlim()
    assert low <= 0 < high < np.inf


def test_figure_one_holds_both_panels():
    figure = draw_figure_one([SANTANDER, INSTACART], [CapPoint("Santander", 1.0, 3.0, 2.8, 0.0)])
    assert [axis.get_xlabel() for axis in figure.axes] == [
        "MAP@7",
        "MAP@7",
        "cap of a leaf step, nat",
    ]
    assert [panel.get_suptitle() for panel in figure.subfigs] == ["A", "B"]


def test_nothing_to_draw_is_an_error():
    with pytest.raises(InvalidInput, match="at least one waterfall"):
        draw_waterfalls([])
