"""The verdict is right in scenes whose truth is known, with more or less input."""

import numpy as np
import pytest

from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose

VERDICTS = {
    "no weights": "healthy",
    "common weight": "common_weight",
    "realized": "repairable_by_inversion",
    "capped": "repairable_by_calibration",  # not decided: what Repair chooses is the higher
    "saturated": "keep_margins",
    "dead labels": "dead_labels",
    "scarce": "keep_raw",
    "drift": "drift",
    "uneven": "repairable_by_calibration",
    "uneven and short": "repairable_by_calibration",
    "starved": "repairable_by_calibration",
    "short, with dead labels": "repairable_by_inversion",
    "capped, few to calibrate": "repairable_by_inversion",
    "capped, some to calibrate": "repairable_by_inversion",
    "capped lower": "repairable_by_calibration",
    "capped, few to evaluate": "healthy",
}


@pytest.mark.parametrize(("name", "code"), VERDICTS.items())
def test_the_verdict_is_right_in_each_scene(scene, name, code):
    assert scene(name).verdict.code == code


@pytest.mark.parametrize(("name", "code"), VERDICTS.items())
def test_the_verdict_does_not_need_the_twin(arguments, name, code):
    if name == "capped, few to evaluate":
        code = "undecided"  # weights that nothing is surely better than: the twin would tell
    assert diagnose(**arguments(name) | {"unweighted": None}).verdict.code == code


def test_weights_without_a_twin_are_not_called_healthy(arguments):
    told = arguments("capped, few to evaluate")
    found = diagnose(**told | {"unweighted": None})
    assert found.ladder.gain("chosen").low <= 0  # nothing is surely better
    assert "ealthy" not in found.verdict.sentence
    assert "the twin's scores would tell" in found.verdict.sentence
    shuffled = told["unweighted"][np.random.default_rng(0).permutation(len(told["scores"]))]
    assert diagnose(**told | {"unweighted": shuffled}).verdict.code == "undecided"


def test_a_common_weight_needs_no_twin_to_be_healthy(arguments):
    found = diagnose(**arguments("common weight") | {"unweighted": None, "n_replicates": 50})
    assert found.verdict.sentence.startswith("Healthy")


def partly_returned(noise, realized):
    """Noise within labels costs what no map returns, a shift between them what maps return."""
    pair = synthetic_pair(4000, 30, noise=noise, realized=realized, seed=2)
    rows = pair.calibration
    return diagnose(
        pair.weighted[~rows],
        pair.labels[~rows],
        k=5,
        weights=pair.weights,
        prior=pair.prior,
        unweighted=pair.unweighted[~rows],
        n_replicates=200,
        calibration=(pair.weighted[rows], pair.labels[rows]),
    )


def test_the_verdict_states_the_share_of_the_loss_that_the_repair_returns():
    found = partly_returned(noise=0.5, realized=1.0)
    rung = "inversion" if found.verdict.code == "repairable_by_inversion" else "chosen"
    share = found.decomposition.returned[rung]
    assert share > 0.5
    assert f"{share:.0%} of the loss" in found.verdict.sentence
    assert "retrain" not in found.verdict.sentence
    assert "in part" not in found.verdict.sentence


def test_a_repair_that_returns_the_smaller_part_of_the_loss_advises_to_retrain():
    found = partly_returned(noise=2.5, realized=0.3)
    assert found.verdict.code.startswith("repairable")
    assert 0 < found.decomposition.returned["chosen"] < 0.5
    assert "repairable in part" in found.verdict.sentence
    assert found.verdict.sentence.endswith("retrain without weights.")


def test_without_a_twin_no_share_of_a_loss_is_stated(arguments):
    found = diagnose(**arguments("realized") | {"unweighted": None, "n_replicates": 50})
    assert "of the loss" not in found.verdict.sentence


def test_a_cap_is_advised_without_condition_only_to_a_booster(arguments):
    told = arguments("saturated") | {"n_replicates": 50}
    booster = {"rounds": 60, "learning_rate": 0.05, "max_delta_step": 0.0}
    for known, condition in (({}, True), (booster, False)):
        found = diagnose(**told | known)
        assert found.verdict.code == "keep_margins"
        for text in (found.verdict.sentence, found.finding("OS202").advice):
            assert "a cap on the leaf step" in text
            assert ("if the model is boosted" in text.lower()) == condition


def test_a_verdict_is_one_line(scene, scenes):
    for name in scenes:
        sentence = scene(name).verdict.sentence
        assert sentence.endswith(".")
        assert "\n" not in sentence


def test_a_healthy_ranker_is_called_healthy(scene):
    for name in ("no weights", "common weight"):
        assert scene(name).verdict.sentence.startswith("Healthy")


def test_a_realized_shift_with_dead_labels_names_both():
    pair = synthetic_pair(4000, 40, n_dead=6, seed=1)
    rows = pair.calibration
    found = diagnose(
        pair.weighted[~rows],
        pair.labels[~rows],
        k=7,
        weights=pair.weights,
        n_replicates=100,
        calibration=(pair.weighted[rows], pair.labels[rows]),
        prior=pair.prior,
    )
    assert found.verdict.code == "repairable_by_inversion"
    assert "dead labels" in found.verdict.sentence


def test_margins_in_place_of_saturated_probabilities_lose_nothing_to_ties(pair):
    whole = pair("saturated")
    found = diagnose(
        whole.weighted_margin,
        whole.labels,
        k=7,
        kind="margin",
        weights=whole.weights,
        n_replicates=100,
    )
    assert found.ties.n_rows == 0
    assert found.verdict.code != "keep_margins"
    assert found.finding("OS202") is not None
    assert found.finding("OS204") is None


def test_without_a_bootstrap_sizes_alone_decide(arguments):
    for name in ("no weights", "realized"):
        found = diagnose(**arguments(name) | {"n_replicates": 0})
        assert found.verdict.code == VERDICTS[name]


def test_ties_that_a_per_label_map_makes_good_are_not_in_the_verdict(arguments):
    # A twin no better than the repaired scores: nothing is left for the ties to keep.
    told = arguments("saturated")
    noise = np.random.default_rng(0).normal(size=told["unweighted"].shape)
    odds = np.exp(noise) * told["unweighted"] / (1 - told["unweighted"])
    found = diagnose(**told | {"unweighted": odds / (1 + odds)})
    assert found.decomposition.tie_residue < 0 < found.decomposition.loss
    assert found.finding("OS203") is not None
    assert found.verdict.code != "keep_margins"


def test_what_repair_takes_without_a_sure_gain_is_named_and_not_called_a_repair():
    taken = set()
    for seed in range(4):
        pair = synthetic_pair(1200, 20, seed=seed)
        found = diagnose(pair.unweighted, pair.labels, k=5, prior=pair.prior, n_replicates=100)
        assert found.verdict.code == "healthy"
        named = f"({found.chosen.name}, which Repair chooses: "
        assert (named in found.verdict.sentence) == (found.chosen.name != "raw")
        taken.add(found.chosen.name)
    assert len(taken) > 1
