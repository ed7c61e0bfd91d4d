"""A plan's picture: every label at its ln w, those beyond the budget apart."""

import io

import numpy as np
import pytest

from oddslip import plan
from oddslip.reports.figures.plan import NAMED


def planned(n_labels=5, **more):
    counts = np.geomspace(4000, 1, n_labels).astype(int)
    told = {"rounds": 60, "learning_rate": 0.05, "max_delta_step": 1.0, **more}
    return plan(counts=counts, n_rows=10_000, **told)


def drawn(axis, along):
    """Values of each marker, with its shape."""
    return {
        line.get_marker(): sorted(along(line))
        for line in axis.get_lines()
        if line.get_marker() not in ("None", None)
    }


@pytest.mark.parametrize("n_labels", [5, NAMED + 1])
def test_labels_beyond_the_budget_stand_apart(n_labels):
    early = planned(n_labels)
    axis = early.plot().axes[0]
    along = (
        (lambda line: line.get_xdata()) if n_labels <= NAMED else (lambda line: line.get_ydata())
    )
    marks = drawn(axis, along)
    assert marks["o"] == sorted(early.intended[~early.unrealizable])
    assert marks["D"] == sorted(early.intended[early.unrealizable])


def test_the_budget_is_a_line_of_dashes_and_dots():
    axis = planned().plot().axes[0]
    (line,) = [line for line in axis.get_lines() if line.get_linestyle() == "-."]
    assert set(line.get_xdata()) == {3.0}


def test_weights_below_one_have_a_budget_on_their_side_too():
    axis = planned(weights=[0.01, 1, 2, 3, 500]).plot().axes[0]
    levels = {line.get_xdata()[0] for line in axis.get_lines() if line.get_linestyle() == "-."}
    assert levels == {3.0, -3.0}


def test_without_a_cap_there_is_no_budget():
    figure = planned(max_delta_step=0).plot()
    assert not any(line.get_linestyle() == "--" for line in figure.axes[0].get_lines())
    assert "no cap" in figure.axes[0].get_title(loc="left")


def test_labels_whose_leaves_saturate_are_circled():
    early = planned(weights=[1, 1, 1, 1, 1e12])
    assert early.leaf_saturates.sum() == 1
    axis = early.plot().axes[0]
    (circle,) = [line for line in axis.get_lines() if line.get_markerfacecolor() == "none"]
    assert list(circle.get_xdata()) == [np.log(1e12)]


def test_hostile_names_are_drawn_literally_in_the_order_of_their_shift():
    names = ["$a$", "\\b", "<c>", "d\n", "$\\frac{"]
    figure = planned(label_names=names).plot()
    figure.savefig(io.BytesIO())
    told = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert told == ["$\\frac{", "d\\n", "<c>", "\\b", "$a$"]


def test_many_labels_can_be_drawn():
    axis = planned(5000).plot().axes[0]
    axis.figure.savefig(io.BytesIO())
    marks = drawn(axis, lambda line: line.get_ydata())
    assert len(marks["o"]) + len(marks["D"]) == 5000
