"""The pictures of a diagnosis: its own numbers, and an error that helps where they are missing."""

import io
from functools import cache

import numpy as np
import pytest

from oddslip import diagnose
from oddslip.datasets import synthetic_pair
from oddslip.errors import InvalidInput
from oddslip.reports.figures.ladder import draw_ladder
from oddslip.reports.figures.shifts import draw_shifts
from oddslip.reports.figures.style import ORANGE
from oddslip.reports.numbers import kind_of

HOSTILE = "$\\frac{a}{"
INPUTS = ("nothing else", "weights", "twin", "twin and weights")
# Which pictures each input allows.
ALLOWED = {
    "nothing else": {"ladder"},
    "weights": {"ladder", "shifts"},
    "twin": {"ladder"},
    "twin and weights": {"ladder", "shifts", "waterfall", "regime"},
}
PICTURES = ("waterfall", "ladder", "shifts", "regime")


@cache
def found_with(inputs="twin and weights", saturate=0.0, n_replicates=50, **more):
    pair = synthetic_pair(1500, 12, seed=3, realized=0.6, saturate=saturate)
    told = dict(more)
    if "weights" in inputs:
        told["weights"] = pair.weights
    if "twin" in inputs:
        told["unweighted"] = pair.unweighted
    names = [f"{HOSTILE}{at}" for at in range(12)]
    return diagnose(
        pair.weighted, pair.labels, k=3, label_names=names, n_replicates=n_replicates, **told
    )


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("what", PICTURES)
def test_a_picture_is_drawn_or_the_error_says_what_would_allow_it(inputs, what):
    found = found_with(inputs)
    if what in ALLOWED[inputs]:
        found.plot(what).savefig(io.BytesIO())
    else:
        with pytest.raises(InvalidInput, match=f'plot\\("{what}"\\).*(weights=|unweighted=)'):
            found.plot(what)


@pytest.mark.parametrize("inputs", INPUTS)
def test_the_overview_leaves_out_what_is_not_there(inputs):
    figure = found_with(inputs).plot()
    figure.savefig(io.BytesIO())
    assert len(figure.axes) == len(ALLOWED[inputs])


def test_an_empty_corner_of_the_overview_says_why():
    found = found_with(saturate=0.3)
    assert not found.shifts.identified.any()
    panel = found.plot().subfigs[3]
    assert "Not drawn. No weighted label" in panel.texts[-1].get_text().replace("\n", " ")


def test_the_verdict_stands_above_the_overview():
    found = found_with()
    assert found.plot().get_suptitle().replace("\n", " ") == found.verdict.sentence


def test_an_unknown_picture_is_an_error_that_names_the_known_ones():
    with pytest.raises(
        InvalidInput, match="overview, waterfall, ladder, shifts, regime, got 'pie'"
    ):
        found_with().plot("pie")


def test_every_rung_is_a_dot_with_its_interval():
    found = found_with()
    axis = draw_ladder(found).axes[0]
    dots = {
        line.get_ydata()[0]: line.get_xdata()[0]
        for line in axis.get_lines()
        if len(line.get_xdata()) == 1
    }
    bars = {
        line.get_ydata()[0]: tuple(line.get_xdata())
        for line in axis.get_lines()
        if line.get_linestyle() == "-" and len(line.get_xdata()) == 2
    }
    for y, (name, rung) in enumerate(found.ladder.rungs.items()):
        assert axis.get_yticklabels()[y].get_text() == found.rung_name(name)
        assert dots[y] == rung["map"].value
        assert bars[y] == (rung["map"].low, rung["map"].high)


def test_raw_is_marked_by_colour_shape_and_a_line():
    found = found_with()
    raw = found.ladder.value("raw")
    lines = [line for line in draw_ladder(found).axes[0].get_lines() if line.get_color() == ORANGE]
    assert [line.get_xdata()[0] for line in lines if line.get_linestyle() == "--"] == [raw]
    assert [line.get_xdata()[0] for line in lines if line.get_marker() == "D"] == [raw]


def test_without_replicates_the_ladder_has_dots_alone():
    axis = draw_ladder(found_with(n_replicates=0)).axes[0]
    assert axis.get_xlabel() == "MAP@3"
    assert not any(line.get_linestyle() == "-" for line in axis.get_lines())


def test_rungs_are_repairs_or_references():
    kinds = {name: kind_of(name) for name in found_with().ladder}
    assert kinds["raw"] == "raw"
    assert {name for name, kind in kinds.items() if kind == "reference"} == {
        "unweighted",
        "what-if",
        "popularity",
        "ceiling",
    }


def dots_and_ticks(found):
    lines = draw_shifts(found).axes[0].get_lines()
    dots = [line for line in lines if line.get_marker() == "o"]
    ticks = [line for line in lines if line.get_marker() == "|"]
    return dots, ticks


def test_every_identified_label_is_a_dot():
    shifts = found_with().shifts
    assert shifts.identified.all()
    (dots,), ticks = dots_and_ticks(found_with())
    assert ticks == []
    np.testing.assert_array_equal(dots.get_xdata(), shifts.intended)
    np.testing.assert_array_equal(dots.get_ydata(), shifts.realized)


def test_labels_that_are_not_identified_are_ticks_at_their_intended_shift():
    found = found_with(saturate=0.0003)
    known = found.shifts.identified
    assert 0 < known.sum() < known.size
    (dots,), (ticks,) = dots_and_ticks(found)
    assert len(dots.get_xdata()) == known.sum()
    np.testing.assert_array_equal(ticks.get_xdata(), found.shifts.intended[~known])


def test_a_budget_is_a_line():
    axis = draw_shifts(found_with(rounds=60, learning_rate=0.05, max_delta_step=1.0)).axes[0]
    (line,) = [line for line in axis.get_lines() if line.get_linestyle() == "-."]
    assert set(line.get_ydata()) == {3.0}


def test_no_cap_has_no_budget_line():
    figure = draw_shifts(found_with(rounds=60, learning_rate=0.05, max_delta_step=0))
    assert not any("budget" in text.get_text() for text in figure.legends[0].texts)


def test_labels_far_from_the_diagonal_are_named_literally():
    figure = draw_shifts(found_with())
    figure.savefig(io.BytesIO())
    names = [text.get_text() for text in figure.axes[0].texts]
    apart = np.abs(found_with().shifts.realized - found_with().shifts.intended)
    assert names == [f"{HOSTILE}{at}" for at in np.argsort(-apart)[:3]]


def test_the_regime_shows_this_model_at_its_numbers():
    found = found_with()
    (star,) = [
        line for line in found.plot("regime").axes[0].get_lines() if line.get_marker() == "*"
    ]
    assert star.get_xdata()[0] == found.shifts.median_ratio
    assert star.get_ydata()[0] == pytest.approx(min(found.decomposition.returned["inversion"], 1.6))


def test_the_waterfall_shows_the_ladder():
    found = found_with()
    bars = found.plot("waterfall").axes[0].patches
    assert [bars[0].get_width(), bars[3].get_width()] == [
        found.ladder.value("unweighted"),
        found.ladder.value("raw"),
    ]
