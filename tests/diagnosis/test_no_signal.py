"""No signal is the verdict where nothing ranks better than a list, and nowhere else."""

from functools import cache

import numpy as np
import pytest

from oddslip.core.panel import Panel
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose
from oddslip.metrics import evaluate

REPAIRABLE = {"repairable_by_inversion", "repairable_by_calibration", "dead_labels", "keep_margins"}


def keyed(arguments):
    """The same panel with row ids, so that keys decide folds and draws."""
    panel = Panel(
        arguments["scores"], arguments["labels"], row_ids=np.arange(len(arguments["scores"]))
    )
    rest = {name: each for name, each in arguments.items() if name not in ("scores", "labels")}
    return diagnose(panel, **rest, keyed=True)


def both(arguments):
    return diagnose(**arguments), keyed(arguments)


@cache
def signal_at_the_top(seed=0):
    """Six common labels that are ranked well and weighted, among 120 rare ones that are noise."""
    n_common, n_rare = 6, 120
    prevalence = (0.1, 0.3)
    common = synthetic_pair(3000, n_common, prevalence=prevalence, signal=2.0, seed=seed)
    rng = np.random.default_rng(seed)
    rare = rng.random((3000, n_rare)) < 0.004
    noise = rng.normal(-5.5, 0.5, rare.shape) - 0.5 * rare  # true rows a little below the others
    shift = rng.normal(0, 2.0, n_common)
    margins = np.hstack([common.unweighted_margin + shift, noise])
    return {
        "scores": (1 / (1 + np.exp(-margins))).astype(np.float32),
        "labels": np.hstack([common.labels, rare]),
        "k": 3,
        "n_replicates": 200,
    }


def test_a_repair_clearly_above_popularity_is_a_signal_whatever_the_mean_auc():
    for found in both(signal_at_the_top()):
        assert found.signal.absent  # 120 of 126 labels are ranked by noise
        assert found.ladder.lead("chosen", "popularity").low > 0.05
        assert found.verdict.code == "repairable_by_calibration"
        assert found.finding("OS205").severity == "info"


def test_raw_scores_clearly_above_popularity_are_a_signal_too():
    arguments = dict(signal_at_the_top())
    arguments["scores"] = arguments["scores"].copy()
    pair = synthetic_pair(3000, 6, prevalence=(0.1, 0.3), signal=2.0, seed=0)
    arguments["scores"][:, :6] = pair.unweighted
    found = diagnose(**arguments)
    assert found.signal.absent
    assert found.verdict.code == "healthy"


NOISE = ("random", "negated", "shuffled", "shuffled weighted")


def without_signal(seed):
    """Random, negated and row-shuffled scores of many shapes, prevalences and weights."""
    rng = np.random.default_rng(seed)
    n_rows, n_labels = int(rng.choice([400, 1000, 2500])), int(rng.choice([8, 25, 60]))
    prevalence = float(rng.choice([0.005, 0.03])), float(rng.choice([0.2, 0.5]))
    weights = str(rng.choice(["balanced", "sqrt", "10x", "none"]))
    saturate = float(rng.choice([0.0, 0.2]))
    pair = synthetic_pair(
        n_rows, n_labels, prevalence=prevalence, weights=weights, saturate=saturate, seed=seed
    )
    scores = {
        "random": lambda: rng.random(pair.labels.shape, dtype=np.float32),
        "negated": lambda: 1 - pair.unweighted,
        "shuffled": lambda: pair.unweighted[rng.permutation(n_rows)],
        "shuffled weighted": lambda: pair.weighted[rng.permutation(n_rows)],
    }[NOISE[seed % len(NOISE)]]()
    arguments = {
        "scores": scores,
        "labels": pair.labels,
        "k": int(rng.choice([1, 3, 5])),
        "n_replicates": 200,
    }
    if rng.random() < 0.5:
        arguments["weights"] = pair.weights
    if rng.random() < 0.7:  # that of the rows, or one that has nothing to do with them
        arguments["prior"] = pair.prior if rng.random() < 0.5 else rng.permutation(pair.prior)
    if rng.random() < 0.5:
        half = n_rows // 2
        arguments["calibration"] = scores[:half], pair.labels[:half]
        arguments |= {"scores": scores[half:], "labels": pair.labels[half:]}
    return arguments


@pytest.mark.parametrize("seed", range(24))
def test_scores_without_signal_are_never_repairable(seed):
    found = diagnose(**without_signal(seed))
    assert found.verdict.code not in REPAIRABLE, found.verdict.sentence
    assert found.signal.standing == "unsure" or found.verdict.code == "no_signal"


@pytest.mark.parametrize("seed", range(100, 108))
def test_keys_find_no_signal_where_row_numbers_find_none(seed):
    arguments = without_signal(seed)
    if "calibration" in arguments:
        rows = np.arange(len(arguments["calibration"][0])) + 10_000
        arguments["calibration"] = Panel(*arguments["calibration"], row_ids=rows)
    by_number, by_key = both(arguments)
    assert by_key.verdict.code not in REPAIRABLE
    assert by_key.verdict.code == by_number.verdict.code
    for rung in ("raw", "popularity", "popularity, calibration"):
        assert (rung in by_key.ladder) == (rung in by_number.ladder)
        if rung in by_key.ladder:
            assert by_key.ladder.value(rung) == pytest.approx(by_number.ladder.value(rung))


@pytest.mark.parametrize("make", [diagnose, lambda **arguments: keyed(arguments)])
def test_popularity_of_another_period_makes_no_repair_of_noise(make):
    # Maps fitted on these rows learn their prevalence. That beats the list of a stale prior.
    pair = synthetic_pair(4000, 30, seed=3)
    rng = np.random.default_rng(3)
    scores = rng.random(pair.labels.shape, dtype=np.float32)
    found = make(
        scores=scores, labels=pair.labels, k=5, prior=pair.prior[::-1].copy(), n_replicates=200
    )
    assert found.ladder.lead("chosen", "popularity").low > 0
    assert found.verdict.code == "no_signal"


def test_the_list_by_calibration_prevalence_is_that_of_constant_scores():
    pair = synthetic_pair(3000, 20, seed=5)
    rows = pair.calibration
    found = diagnose(
        pair.weighted[~rows],
        pair.labels[~rows],
        k=4,
        prior=pair.prior,
        n_replicates=0,
        calibration=(pair.weighted[rows], pair.labels[rows]),
    )
    constant = np.tile(pair.labels[rows].mean(axis=0), ((~rows).sum(), 1))
    expected = evaluate(constant, pair.labels[~rows], k=4, n_replicates=0)["map"].value
    assert found.ladder.value("popularity, calibration") == pytest.approx(expected)


def test_a_repair_is_one_only_if_surely_above_the_list_of_the_calibration_rows():
    # A trace of signal under a full shift, and a prior of another period.
    verdicts = []
    for seed in (9, 10, 11):
        pair = synthetic_pair(4000, 40, signal=0.1, seed=seed)
        found = diagnose(
            pair.weighted,
            pair.labels,
            weights=pair.weights,
            k=7,
            prior=pair.prior[::-1].copy(),
            n_replicates=200,
        )
        assert found.ladder.lead("chosen", "popularity").low > 0
        sure = found.ladder.lead("chosen", "popularity, calibration").low > 0
        verdicts.append(found.verdict.code)
        assert (found.verdict.code in REPAIRABLE) == sure
        assert (found.verdict.code == "below_popularity") == (not sure)
        if not sure:
            assert "calibration rows" in found.finding("OS201").sentence
    assert "below_popularity" in verdicts
