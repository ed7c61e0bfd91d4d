"""The paper's mechanism, on models trained here: the step budget, and saturation without it."""

import numpy as np
import pytest

from oddslip.learners import MatchedPair, OneVsRest
from oddslip.shifts.realized import realized_shift

CAPS = (0.3, 0.7, 1, 2, 5)
ROUNDS, RATE = 12, 0.25


def rare_labels():
    """From 1 row in 20 to 1 in 400 positive: intended shifts of 3 to 6 nat. Mostly noise."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(4000, 6))
    margins = 0.5 * X @ rng.normal(size=(6, 5)) + 2 * rng.logistic(size=(4000, 5))
    shares = np.array([0.05, 0.02, 0.01, 0.005, 0.0025])
    cuts = [np.quantile(margins[:, j], 1 - share) for j, share in enumerate(shares)]
    return X, margins > cuts


def sweep(learner, X, Y, caps):
    rounds = "num_iterations" if learner == "lightgbm" else "n_estimators"
    parameters = {rounds: ROUNDS, "learning_rate": RATE}
    return MatchedPair(OneVsRest(learner, parameters=parameters)).sweep_caps(X, Y, caps=caps)


@pytest.mark.parametrize("learner", ["lightgbm", "xgboost"])
def test_no_label_moves_further_than_the_step_budget_under_any_cap(learner):
    pytest.importorskip(learner)
    X, Y = rare_labels()
    for cap, pair in sweep(learner, X, Y, CAPS):
        budget = ROUNDS * RATE * cap
        panels = pair.panels(X)
        shift = realized_shift(panels.weighted, pair.weighted_.prevalence_).shift
        assert np.abs(shift).max() <= budget * (1 + 1e-6)
        start = np.log(Y.mean(axis=0) / (1 - Y.mean(axis=0)))
        for panel in panels:
            assert np.abs(panel.scores - start).max() <= budget * (1 + 1e-5)
        if cap == min(CAPS):  # the bound binds where it is small
            assert shift.max() > 0.8 * budget
            assert np.log(pair.weights_).max() > 5 * budget


@pytest.mark.parametrize("learner", ["lightgbm", "xgboost"])
def test_an_uncapped_weighted_arm_saturates_on_rare_labels_and_its_twin_does_not(learner):
    pytest.importorskip(learner)
    X, Y = rare_labels()
    ((_, pair),) = sweep(learner, X, Y, [None])
    weighted = pair.weighted_.predict_proba(X).astype(np.float32)
    unweighted = pair.unweighted_.predict_proba(X).astype(np.float32)
    rare = Y.mean(axis=0) < 0.011
    assert (weighted[:, rare] == 1).any(axis=0).all()
    assert not (unweighted == 1).any()
