"""Matched pairs: two arms that differ in the weights alone."""

import numpy as np
import pytest

pytest.importorskip("lightgbm")

from oddslip.learners import MatchedPair, OneVsRest
from oddslip.learners.backends.lightgbm import LightGBM

QUICK = {"num_iterations": 6, "num_leaves": 5}


def make_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    return X, X @ rng.normal(size=(5, 4)) + rng.logistic(size=(400, 4)) > 3


def test_the_arms_are_what_two_separate_trainings_give_and_differ_in_weights_alone():
    X, Y = make_rows()
    template = OneVsRest(weights="10x", max_delta_step=2.0, parameters=QUICK)
    pair = MatchedPair(template, weights="sqrt").fit(X, Y)
    for arm, weights in ((pair.weighted_, "sqrt"), (pair.unweighted_, "none")):
        alone = OneVsRest(weights=weights, max_delta_step=2.0, parameters=QUICK).fit(X, Y)
        assert np.array_equal(arm.predict_margin(X), alone.predict_margin(X))
    weighted, unweighted = pair.weighted_.get_params(), pair.unweighted_.get_params()
    assert {key for key in weighted if weighted[key] != unweighted[key]} == {"weights"}
    assert template.weights == "10x"
    assert not hasattr(template, "weights_")


def test_weights_of_one_make_twins_with_the_same_bits():
    X, Y = make_rows()
    pair = MatchedPair(OneVsRest(parameters=QUICK), weights=np.ones(4)).fit(X, Y)
    weighted, unweighted = pair.panels(X, Y)
    assert np.array_equal(weighted.scores, unweighted.scores)
    assert weighted.kind == "margin"


def test_a_sweep_bins_once_and_trains_each_cap_as_if_alone(monkeypatch):
    X, Y = make_rows()
    prepared, prepare = [], LightGBM.prepare

    def counted(self, *arguments):
        prepared.append(1)
        return prepare(self, *arguments)

    monkeypatch.setattr(LightGBM, "prepare", counted)
    pairs = dict(MatchedPair(OneVsRest(parameters=QUICK)).sweep_caps(X, Y, caps=(0.3, 2, None)))
    assert len(prepared) == 1
    for cap, pair in pairs.items():
        alone = OneVsRest(weights="balanced", max_delta_step=cap, parameters=QUICK).fit(X, Y)
        assert np.array_equal(pair.weighted_.predict_margin(X), alone.predict_margin(X))


def test_each_arm_of_each_cap_has_a_checkpoint_of_its_own(tmp_path):
    X, Y = make_rows()
    template = OneVsRest(parameters=QUICK, checkpoint=tmp_path)
    list(MatchedPair(template).sweep_caps(X, Y, caps=(1, None)))
    folders = {str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("training.json")}
    arms = ("weighted", "unweighted")
    assert folders == {f"cap-{cap}/{arm}" for cap in (1, None) for arm in arms}
