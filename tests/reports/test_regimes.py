"""What the reference models say of the paper's association is counted, and told as counted."""

from pathlib import Path

import pytest

from oddslip.planning import plan
from oddslip.reports.numbers import (
    RegimeCounts,
    RegimePoint,
    count_regimes,
    read_regimes,
    tell_association,
)
from oddslip.reports.text import show_plan

DOCS = Path(__file__).parents[2] / "docs"


def point(ratio, returned, share=0.0, here=False):
    return RegimePoint("a model", "a learner", ratio, returned, share, here)


def test_a_model_is_inside_if_its_shift_was_realized_and_nothing_saturated():
    inside = [point(0.8, 0.5), point(1.25, 0.49)]
    outside = [point(0.79, 0.5), point(1.26, 0.0), point(1.0, 0.9, 0.01), point(-0.1, 0.9)]
    assert count_regimes(inside + outside) == RegimeCounts(2, 1, 4, 3)


def test_the_model_of_a_report_is_not_counted():
    assert count_regimes([point(1.0, 1.0, here=True)]).n_models == 0


def test_the_counts_of_the_reference_models():
    counts = count_regimes(read_regimes().points)
    assert counts.n_models == 30
    assert counts.n_regained == 18
    assert counts.n_outside_regained == 12
    assert counts.n_inside == counts.n_inside_regained == 6


def test_the_docs_tell_the_counts():
    sentence = tell_association(count_regimes(read_regimes().points))[1]
    assert sentence in " ".join((DOCS / "findings.md").read_text().split())


@pytest.mark.parametrize("max_delta_step", [0, 0.1])
def test_a_plan_tells_the_association_as_a_prediction_with_its_counts(max_delta_step):
    heavy = {"weights": [1.0, 1e9], "rounds": 60, "learning_rate": 0.05}
    short = plan(counts=[500, 10], n_rows=1000, max_delta_step=max_delta_step, **heavy)
    assert "by the paper's association, which is no law" in short.recommendation
    assert "do not invert" not in short.recommendation
    shown = " ".join(str(piece) for piece in show_plan(short))
    assert tell_association(count_regimes(read_regimes().points))[1] in shown


def test_a_plan_without_label_specific_weights_has_nothing_to_predict():
    even = plan(counts=[500, 10], n_rows=1000, rounds=60, learning_rate=0.05, weights=3.0)
    assert "association" not in " ".join(str(piece) for piece in show_plan(even))


def test_without_reference_models_only_the_association_is_told():
    assert len(tell_association(count_regimes([]))) == 1
