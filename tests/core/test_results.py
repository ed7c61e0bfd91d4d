"""Every result tells itself in one way: plain values that JSON can hold, and a frame or an error."""

import json
import sys

import numpy as np
import pytest

from oddslip import Repair, diagnose, evaluate, plan
from oddslip.datasets import synthetic_pair
from oddslip.errors import MissingDependency
from oddslip.kernels.hits import METRICS
from oddslip.metrics.at_k import METRIC_COLUMN, NAMES, Column
from oddslip.metrics.evaluation import Estimate
from oddslip.shifts import realized_shift, saturation, what_if

PAIR = synthetic_pair(200, 6, seed=3)


def evaluated(scores=PAIR.weighted):
    return evaluate(scores, PAIR.labels, k=3, n_replicates=0)


def diagnosed():
    return diagnose(
        PAIR.weighted,
        PAIR.labels,
        k=3,
        n_replicates=0,
        weights=PAIR.weights,
        unweighted=PAIR.unweighted,
        rounds=20,
        learning_rate=0.1,
        max_delta_step=0.0,
    )


def planned():
    return plan(
        PAIR.labels,
        rounds=20,
        learning_rate=0.1,
        max_delta_step=0.0,
        k=3,
        unweighted=PAIR.unweighted,
        n_replicates=0,
    )


# No interval is drawn, no cap bounds a shift, no prior matches: much here is not finite.
RESULTS = {
    "Evaluation": evaluated,
    "Comparison": lambda: evaluated().compare(evaluated(PAIR.unweighted)),
    "Diagnosis": diagnosed,
    "Ladder": lambda: diagnosed().ladder,
    "Plan": planned,
    "SelectionTable": lambda: Repair(k=3, rule="paper").fit(PAIR.weighted, PAIR.labels).table_,
    "RealizedShift": lambda: realized_shift([[0.5, 0.5, 1.0], [0.5, 0.2, 1.0]], [0.0, 1.0, 0.5]),
    "Saturation": lambda: saturation(PAIR.weighted, k=3),
    "WhatIf": lambda: what_if(PAIR.unweighted, PAIR.weights, k=3),
}
FRAMES = [name for name in RESULTS if name != "WhatIf"]


@pytest.mark.parametrize("name", RESULTS)
def test_json_can_hold_every_result(name):
    told = RESULTS[name]().to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told


@pytest.mark.parametrize("name", FRAMES)
def test_without_pandas_to_frame_is_an_error_and_never_another_type(name, monkeypatch):
    result = RESULTS[name]()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependency, match=r"to_frame\(\) needs pandas\. Run: pip install"):
        result.to_frame()


def test_an_end_that_was_not_drawn_is_none():
    nan = float("nan")
    assert Estimate(0.5, nan, nan).to_dict() == {"value": 0.5, "low": None, "high": None}


def test_every_result_tells_an_estimate_alike():
    evaluation, diagnosis, early = evaluated(), diagnosed(), planned()
    comparison = RESULTS["Comparison"]()
    assert evaluation.to_dict()["metrics"]["map"] == evaluation["map"].to_dict()
    assert comparison.to_dict()["map"] == comparison["map"].to_dict()
    assert early.to_dict()["what_if"]["loss"] == early.what_if.loss.to_dict()
    for told in diagnosis.to_dict()["ladder"]["rungs"]:
        rung = diagnosis.ladder[told["rung"]]
        assert told["metrics"]["psp"] == rung["psp"].to_dict()
        assert told["minus_raw"]["map"] == rung.differences["map"].to_dict()


def test_a_shift_that_is_not_finite_is_none_in_the_dict_and_kept_in_the_result():
    found = RESULTS["RealizedShift"]()
    np.testing.assert_array_equal(found.shift, [np.inf, -np.inf, np.nan])
    assert found.to_dict()["shift"] == [None, None, None]


def test_the_metric_columns_stand_in_the_order_the_kernel_fills():
    assert tuple(column.name.lower() for column in Column) == METRICS


def test_every_metric_that_is_shown_has_a_column():
    assert list(METRIC_COLUMN) == list(NAMES)
