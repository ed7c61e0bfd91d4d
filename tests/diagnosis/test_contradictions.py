"""Inputs that contradict one another are noticed, and genuine ones are not."""

import numpy as np
import pandas as pd
import pytest

from oddslip.calibrators import build_calibrator
from oddslip.core.panel import Panel
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose
from oddslip.errors import InvalidInput

CODES = {"OS104", "OS105", "OS207", "OS208", "OS209", "OS210"}
SEEDS = range(20)


def draw(seed, n_rows=2000, **world):
    return synthetic_pair(n_rows, 20, prevalence=(0.005, 0.2), seed=seed, **world)


def tell(pair, **other):
    told = {
        "scores": pair.weighted,
        "labels": pair.labels,
        "k": 5,
        "weights": pair.weights,
        "unweighted": pair.unweighted,
        "n_replicates": 30,
        "seed": pair.seed,
    }
    return told | other


def found_in(told):
    return {finding.code for finding in diagnose(**told).findings} & CODES


def same_twin(seed):
    pair = draw(seed, realized=[1.0, 0.6][seed % 2])
    return tell(pair, unweighted=pair.weighted.copy())


def swapped(seed):
    pair = draw(seed, realized=[1.0, 0.6][seed % 2], noise=[0.0, 0.5][seed % 2])
    return tell(pair, scores=pair.unweighted, unweighted=pair.weighted)


def logarithms(seed):
    pair = draw(seed, realized=[1.0, 0.8][seed % 2], noise=[0.0, 0.5][seed // 2 % 2])
    told = tell(pair, weights=np.log(pair.weights))
    return told if seed % 3 else told | {"unweighted": None}


def as_margins(seed):
    pair = draw(seed)
    return tell(pair, kind="margin")


def leaked(seed):
    pair = draw(seed)
    noise = np.random.default_rng(seed).random(pair.labels.shape) * (seed % 2) * 0.4
    scores = (0.1 + 0.5 * pair.labels + noise) if seed % 2 else pair.labels.astype(float)
    return tell(pair, scores=scores, unweighted=None)


def repaired(seed):
    pair = draw(seed, n_rows=4000)
    fit, rest = slice(0, 2000), slice(2000, None)
    name = ("isotonic", "platt", "inversion", "hierarchical")[seed % 4]
    repair = build_calibrator(name, weights=pair.weights if name == "inversion" else None)
    repair.fit(pair.weighted[fit], pair.labels[fit])
    scores = repair.transform(pair.weighted[rest])
    return tell(pair, scores=scores, labels=pair.labels[rest], unweighted=None)


def corrected_twin(seed):
    pair = draw(seed)
    odds = pair.unweighted.astype(float)
    odds = odds / (1 - odds) / pair.weights
    return tell(pair, scores=odds / (1 + odds), unweighted=None, prior=pair.prior)


FAULTS = {
    same_twin: "OS207",
    swapped: "OS208",
    logarithms: "OS104",
    as_margins: "OS209",
    leaked: "OS210",
    repaired: "OS105",
    corrected_twin: "OS105",
}


@pytest.mark.parametrize(("fault", "code"), FAULTS.items())
def test_a_planted_fault_is_found_in_nearly_every_draw(fault, code):
    found = [code in found_in(fault(seed)) for seed in SEEDS]
    assert sum(found) >= 19, np.flatnonzero(~np.array(found))


def clean(seed):
    """Genuine panels: realized, short, capped, saturated, noisy, light weights, with margins."""
    worlds = (
        {},
        {"realized": 0.5},
        {"cap": 2.0},
        {"saturate": 0.2, "noise": 1.0},
        {"weights": "sqrt"},
        {"weights": "10x", "noise": 2.0},
        {"weights": "none"},
        {"weights": "common"},
        {"signal": 4.0},
        {"weights": np.linspace(1.0, 3.0, 20)},
    )
    pair = draw(seed, **worlds[seed % len(worlds)])
    if seed % 3 == 0:
        return tell(pair, prior=pair.prior)
    if seed % 3 == 1:
        return tell(
            pair, scores=pair.weighted_margin, unweighted=pair.unweighted_margin, kind="margin"
        )
    return tell(pair, unweighted=None)


@pytest.mark.parametrize("seed", SEEDS)
def test_genuine_panels_are_not_called_contradictory(seed):
    assert found_in(clean(seed)) == set()


@pytest.mark.parametrize("fault", [same_twin, swapped, as_margins])
def test_keys_find_the_same_contradictions(fault):
    told = fault(1)
    kind = told.pop("kind", "probability")
    panel = Panel(told.pop("scores"), told.pop("labels"), row_ids=np.arange(2000), kind=kind)
    twin = told["unweighted"]
    if kind == "margin":
        twin = Panel(twin, kind=kind, row_ids=np.arange(2000))
    found = diagnose(panel, **told | {"unweighted": twin}, keyed=True)
    assert found.finding(FAULTS[fault]) is not None


def test_a_cap_that_admits_no_shift_is_no_contradiction():
    pair = draw(1, cap=0.3)
    told = tell(pair, unweighted=None, rounds=60, learning_rate=0.05, max_delta_step=0.1)
    codes = {finding.code for finding in diagnose(**told).findings}
    assert not codes & {"OS103", "OS105"}


@pytest.mark.parametrize("unweighted", [True, False])
def test_scores_of_an_overfit_model_do_not_contradict_their_weights(unweighted):
    """Scores that are too sure miss the prevalence of rare labels most, and need no shift."""
    pair = draw(1)
    told = tell(pair, scores=3.0 * pair.unweighted_margin, kind="margin", prior=pair.prior)
    told["unweighted"] = 3.0 * pair.unweighted_margin - 0.1 if unweighted else None
    found = diagnose(**told)
    assert found.weight_fit.fit in ("reversed", "unrelated")
    assert not {"OS103", "OS105"} & {finding.code for finding in found.findings}
    assert "do not fit" not in found.verdict.sentence


def test_weights_that_are_logarithms_are_not_inverted_by():
    found = diagnose(**logarithms(1))
    assert found.verdict.code != "repairable_by_inversion"
    assert not {"OS101", "OS103", "OS303"} & {finding.code for finding in found.findings}


def transposed():
    pair = synthetic_pair(60, 50, seed=1)
    rows, labels = [f"user {i}" for i in range(60)], [f"item {j}" for j in range(50)]
    scores = pd.DataFrame(pair.weighted, index=rows, columns=labels)
    truth = pd.DataFrame(pair.labels.astype(int), index=rows, columns=labels)
    return scores, truth, pd.Series(pair.weights, index=labels)


@pytest.mark.parametrize("what", ["weights", "prior", "calibration"])
def test_transposed_scores_are_refused_where_names_tell(what):
    scores, labels, weights = transposed()
    told = {
        "weights": weights,
        "prior": 1 / (1 + weights),
        "calibration": (scores, labels),
    }[what]
    with pytest.raises(InvalidInput, match=r"transposed"):
        diagnose(scores.T, labels.T, k=5, **{what: told})


def test_transposed_calibration_rows_are_refused_where_names_tell():
    scores, labels, _ = transposed()
    with pytest.raises(InvalidInput, match=r"calibration.*transposed"):
        diagnose(scores, labels, k=5, calibration=(scores.T, labels.T))
