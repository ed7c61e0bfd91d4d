"""Thresholds against all sets that a threshold can give, on random panels."""

import numpy as np
import pytest
from tests.decisions import decision_oracle as brute_force

from oddslip.core.passes import run
from oddslip.decisions.list_rule import SCALE
from oddslip.decisions.repaired_rows import RepairedRows
from oddslip.decisions.threshold_counts import ThresholdCounts, grid
from oddslip.decisions.thresholds import Aim, find_fitted, find_plug_in, shrink
from oddslip.repairs.maps import LabelMaps
from oddslip.sources import open_source

N_PANELS = 200


def identity(n_labels):
    zeros = np.zeros(n_labels)
    whole = zeros.astype(np.int64)
    return LabelMaps(
        "probability",
        "probability",
        np.full(n_labels, 4),
        zeros,
        zeros,
        zeros,
        whole,
        whole,
        [],
        [],
    )


def panel(seed, n_labels=3):
    """Probabilities that the scores can hold to 2**-32, with ties and absent cells."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(1, 12))
    probabilities = rng.beta(0.7, 1.5, (n_rows, n_labels))
    steps = 8 if seed % 3 == 0 else SCALE
    probabilities = np.rint(probabilities * steps) / steps
    labels = (rng.random((n_rows, n_labels)) < probabilities).astype(np.int64)
    if seed % 4 == 0:
        probabilities[rng.random((n_rows, n_labels)) < 0.2] = np.nan
        probabilities[0] = 0.5
    return probabilities, np.where(np.isnan(probabilities), 0, labels)


def rows_of(probabilities, labels):
    nan = "absent" if np.isnan(probabilities).any() else "refuse"
    source = open_source(probabilities, labels, nan=nan)
    return RepairedRows(source, identity(probabilities.shape[1]))


def counts_at(rows, thresholds, aim):
    tally = rows.run(ThresholdCounts(thresholds[None], labelled=True))
    counts = tally.expected(), tally.observed()
    return [each.pooled() if aim.common else each for each in counts]


AIMS = [
    ("f1", None),
    ("cost", None),
    *((goal, target) for goal in ("precision", "recall") for target in (0.3, 0.5, 0.9)),
]


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize(("goal", "target"), AIMS)
def test_thresholds_are_as_good_as_those_of_brute_force(goal, target, common):
    costs = (1.0, 2.5)
    name = "micro_f1" if goal == "f1" and common else goal
    aim = Aim(name, target, costs, common)
    for seed in range(N_PANELS):
        probabilities, labels = panel(seed)
        rows = rows_of(probabilities, labels)
        parts = [slice(None)] if common else range(probabilities.shape[1])
        expected_truth, real = np.nan_to_num(probabilities), labels.astype(float)
        searches = (
            (find_plug_in(rows.n_labels, aim), expected_truth, 0),
            (find_fitted(rows, aim), real, 1),
        )
        for search, truth, which in searches:
            thresholds = run(rows, search)
            counts = counts_at(rows, np.nan_to_num(thresholds, nan=np.inf), aim)[which]
            for at, part in enumerate(parts):
                if truth[:, part].sum() == 0:
                    continue
                best = brute_force.best_value(
                    probabilities[:, part], truth[:, part], goal, target, costs
                )
                check_value(aim, counts, at, best)


def check_value(aim, counts, at, best):
    if best is None:
        assert counts.shown[0, at] == 0
    elif aim.goal == "precision":
        assert aim.reached(counts)[0, at]
        assert counts.true[0, at] == pytest.approx(best, abs=1e-8)
    elif aim.goal == "recall":
        assert aim.reached(counts)[0, at]
        assert counts.shown[0, at] == best
    else:
        assert aim.measure(counts)[0, at] == pytest.approx(best, abs=1e-8)


def test_thresholds_of_labels_are_jointly_best_for_the_f1_of_all_cells():
    for seed in range(N_PANELS):
        probabilities, labels = panel(seed)
        rows = rows_of(probabilities, labels)
        aim = Aim("micro_f1")
        pooled = Aim("micro_f1", common=True)
        thresholds = run(rows, find_fitted(rows, aim))
        best = brute_force.best_joint_f1(probabilities, labels)
        found = counts_at(rows, np.nan_to_num(thresholds, nan=np.inf), pooled)[1].f1()[0, 0]
        assert found == pytest.approx(best, abs=1e-12)
        plug_in = run(rows, find_plug_in(rows.n_labels, aim))
        truth = np.nan_to_num(probabilities)
        best = brute_force.best_joint_f1(probabilities, truth)
        assert counts_at(rows, plug_in, pooled)[0].f1()[0, 0] == pytest.approx(best, abs=1e-8)


def mean_f1(probabilities, truth, level):
    labels = zip(probabilities.T, truth.T, strict=True)
    return np.mean([brute_force.f1((cells >= level).astype(float), true) for cells, true in labels])


def test_one_threshold_is_best_for_the_mean_f1_of_labels_among_the_levels_of_the_grid():
    for seed in range(N_PANELS):
        probabilities, labels = panel(seed)
        rows = rows_of(probabilities, labels)
        aim = Aim("f1", common=True)
        searches = (
            (find_plug_in(rows.n_labels, aim), np.nan_to_num(probabilities)),
            (find_fitted(rows, aim), labels),
        )
        for search, truth in searches:
            (found,) = np.unique(run(rows, search))
            assert found in grid()
            values = [mean_f1(probabilities, truth, level) for level in grid()[::16]]
            assert mean_f1(probabilities, truth, found) >= max(values) - 1e-8


def test_few_positives_stay_near_the_plug_in():
    thresholds = shrink(np.full(4, 0.8), np.full(4, 0.2), np.array([0, 5, 50, 5000]), 10)
    assert thresholds[0] == 0.2
    assert (np.diff(thresholds) > 0).all()
    assert thresholds[-1] == pytest.approx(0.8, abs=0.01)
    assert shrink(np.array([np.nan]), np.array([0.3]), np.array([0]), 10)[0] == 0.3
    assert shrink(np.array([0.7]), np.array([0.3]), np.array([2]), 0)[0] == 0.7
    assert shrink(np.array([np.inf]), np.array([0.3]), np.array([2]), 10)[0] == 0.3
