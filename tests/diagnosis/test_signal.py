"""The within-label AUC is that of `mean_auc`, its interval holds the truth, and verdicts follow it."""

import numpy as np
import pytest

from experiments.verdict_simulation import draw_pair
from oddslip.diagnosis import diagnose
from oddslip.diagnosis.signal import find_likeness
from oddslip.metrics.auc import auc_per_label, mean_auc

QUICK = {"k": 3, "n_replicates": 0}


def noise(seed, n_rows=300, n_labels=12):
    rng = np.random.default_rng(seed)
    scores = rng.random((n_rows, n_labels), dtype=np.float32)
    return scores, rng.random(scores.shape) < np.geomspace(0.01, 0.4, n_labels)


def test_the_signal_is_the_mean_of_the_areas_of_the_evaluated_rows(scene, arguments):
    found, told = scene("dead labels"), arguments("dead labels")
    assert found.signal.mean.value == pytest.approx(mean_auc(told["scores"], told["labels"]))
    assert np.array_equal(
        found.signal.areas, auc_per_label(told["scores"], told["labels"]), equal_nan=True
    )
    assert found.to_frame("labels")["auc"].tolist() == found.signal.areas.tolist()


def test_the_interval_of_noise_holds_one_half_nearly_always():
    held = 0
    for seed in range(24):
        mean = diagnose(*noise(seed), **QUICK).signal.mean
        held += mean.low <= 0.5 <= mean.high
    assert held >= 22


def test_the_interval_is_not_so_wide_as_to_say_nothing(scene):
    mean = scene("realized").signal.mean
    assert 0.005 < mean.high - mean.low < 0.08
    assert mean.low > 0.7


def test_a_label_that_is_never_or_always_true_has_no_area():
    scores, labels = noise(0)
    labels[:, 0], labels[:, 1] = False, True
    found = diagnose(scores, labels, **QUICK)
    assert np.isnan(found.signal.areas).tolist() == [True, True] + [False] * 10


def test_without_any_area_nothing_is_said_of_the_signal():
    found = diagnose(noise(0)[0], np.ones((300, 12), bool), **QUICK)
    assert found.signal.standing == "unknown"
    assert found.finding("OS205") is None
    assert found.to_dict()["signal"]["auc"]["value"] is None


def test_few_rows_leave_the_signal_open():
    pair = draw_pair(3, 30, signal=0.3)
    found = diagnose(pair.unweighted, pair.labels, **QUICK)
    assert found.signal.standing == "unsure"
    assert found.finding("OS205").severity == "warning"
    assert found.verdict.code != "no_signal"


def test_what_a_label_free_of_signal_gains_is_no_repair():
    scores, labels = noise(5, n_rows=2000)
    found = diagnose(scores, labels, k=3, n_replicates=100)
    assert found.ladder.gain("beta").low > 0  # it has turned them into popularity
    assert found.verdict.code == "no_signal"
    assert not any("Calibrate on" in finding.advice for finding in found.findings)


def test_twin_and_scores_are_compared_on_as_many_rows_as_are_held(monkeypatch):
    pair = draw_pair(1, 400)
    samples = pair.weighted, pair.unweighted
    whole = find_likeness(samples, seed=1)
    assert (whole.n_rows, whole.mean.value) == (400, pytest.approx(1.0, abs=1e-3))
    monkeypatch.setattr("oddslip.diagnosis.signal.COMPARED_CELLS", 40 * 100)
    assert find_likeness(samples, seed=1).n_rows == 100
    assert find_likeness(None, seed=1) is None
