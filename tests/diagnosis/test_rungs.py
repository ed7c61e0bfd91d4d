"""Every rung against `evaluate` on scores that its calibrator repaired, one at a time."""

import numpy as np
import pytest
from tests.support.trials import try_candidates

import oddslip
from oddslip.calibrators import (
    Beta,
    Ceiling,
    Inversion,
    Isotonic,
    Offset,
    Platt,
    PooledIsotonic,
    Popularity,
)
from oddslip.diagnosis import diagnose
from oddslip.metrics import evaluate
from oddslip.metrics.at_k import NAMES, metric_values
from oddslip.metrics.ranking import Rankings
from oddslip.selection.folds import assign_folds
from oddslip.selection.rules import RULES, choose_by_fold
from oddslip.shifts import saturation
from oddslip.sources import open_source

K = 7


@pytest.fixture(scope="module")
def inputs(arguments):
    return arguments("dead labels")


@pytest.fixture(scope="module")
def ladder(scene):
    return scene("dead labels").ladder


@pytest.fixture(scope="module")
def crossed(inputs):
    names = ("scores", "labels", "weights", "prior", "k")
    return diagnose(**{name: inputs[name] for name in names}, n_replicates=0)


def calibrators(inputs):
    prior = inputs["prior"]
    return {
        "inversion": Inversion(inputs["weights"]),
        "offset": Offset(prior=prior),
        "isotonic": Isotonic(prior=prior),
        "isotonic, identity": Isotonic(prior=prior, dead="identity"),
        "isotonic, exclude": Isotonic(prior=prior, dead="exclude"),
        "pooled": PooledIsotonic(),
        "platt": Platt(prior=prior),
        "beta": Beta(prior=prior),
        "popularity": Popularity(prior=prior),
    }


def map_of(ranking, labels):
    """MAP of a ranking that was made before."""
    positives = open_source(np.zeros(labels.shape), labels).positives()
    values = metric_values(Rankings.of(ranking, positives, labels.shape[1]))
    return values[:, 0].mean()


def assert_alike(rung, wanted):
    for metric in NAMES:
        one, other = rung[metric], wanted[metric]
        numbers = [(each.value, each.low, each.high) for each in (one, other)]
        np.testing.assert_allclose(*numbers, rtol=0, atol=1e-12, err_msg=metric)


def evaluated(scores, inputs):
    return evaluate(scores, inputs["labels"], k=K, n_replicates=inputs["n_replicates"])


@pytest.mark.filterwarnings("ignore:.*dead labels keep their raw score.*")
@pytest.mark.parametrize("name", ["inversion", "offset", "isotonic", "pooled", "platt", "beta"])
def test_every_rung_is_worth_what_its_repaired_scores_are(inputs, ladder, name):
    calibrator = calibrators(inputs)[name].fit(*inputs["calibration"])
    assert_alike(ladder[name], evaluated(calibrator.transform(inputs["scores"]), inputs))


@pytest.mark.filterwarnings("ignore:.*dead labels keep their raw score.*")
def test_every_rung_ranks_as_its_calibrator_does(inputs, ladder):
    for name, calibrator in calibrators(inputs).items():
        ranking = calibrator.fit(*inputs["calibration"]).rank(inputs["scores"], k=K)
        wanted = map_of(ranking, inputs["labels"])
        assert ladder.value(name) == pytest.approx(wanted, abs=1e-12), name


def test_raw_and_the_twin_rank_as_they_are(inputs, ladder):
    assert_alike(ladder["raw"], evaluated(inputs["scores"], inputs))
    assert_alike(ladder["unweighted"], evaluated(inputs["unweighted"], inputs))


def test_what_if_adds_ln_w_to_the_twin(inputs, ladder):
    twin = inputs["unweighted"].astype(float)
    margin = np.log(twin) - np.log1p(-twin) + np.log(inputs["weights"])
    wanted = evaluate(margin, inputs["labels"], k=K, kind="margin", n_replicates=0)["map"].value
    assert ladder.value("what-if") == pytest.approx(wanted, abs=1e-4)  # a last bit may decide a row


def test_the_ceiling_is_fitted_on_the_evaluated_rows(inputs, ladder):
    ranking = Ceiling().fit(inputs["scores"], inputs["labels"]).rank(inputs["scores"], k=K)
    assert ladder.value("ceiling") == pytest.approx(map_of(ranking, inputs["labels"]), abs=1e-12)


def test_ties_are_those_of_evaluate(scene, arguments):
    inputs, ties = arguments("saturated"), scene("saturated").ties
    wanted = evaluate(inputs["scores"], inputs["labels"], k=K, n_replicates=0)
    assert ties.n_rows == wanted.n_tied > 0
    assert ties.map_worst == pytest.approx(wanted.map_worst, abs=1e-13)
    assert ties.map_best == pytest.approx(wanted.map_best, abs=1e-13)
    assert saturation(inputs["scores"], k=K).share > 0.1


def test_calibration_rows_without_a_positive_leave_the_fitted_rungs_out(arguments):
    inputs = arguments("realized") | {"n_replicates": 0}
    scores, labels = inputs["calibration"]
    ladder = diagnose(**inputs | {"calibration": (scores, np.zeros_like(labels))}).ladder
    assert {"raw", "inversion", "popularity", "ceiling"} <= set(ladder)
    assert not {"isotonic", "pooled", "offset"} & set(ladder)


def test_the_rung_chosen_is_what_repair_deploys_with_the_same_inputs(inputs, scene):
    repair = oddslip.Repair(k=K, prior=inputs["prior"], weights=inputs["weights"])
    repair.fit(*inputs["calibration"])
    diagnosis = scene("dead labels")
    assert diagnosis.chosen[:2] == (repair.chosen_, repair.why_)
    wanted = map_of(repair.rank(inputs["scores"]), inputs["labels"])
    assert diagnosis.ladder.value("chosen") == pytest.approx(wanted, abs=1e-12)


# ------------------------------------------------------------------------------------- cross-fitted


def assign(inputs):
    """The folds of every repeat; the last one is reported."""
    source = open_source(inputs["scores"], inputs["labels"])
    return assign_folds(source, 5, n_repeats=RULES["auto"].repeats_for(source.n_rows))


def folds_of(inputs):
    return assign(inputs)[-1].of_keys(open_source(inputs["scores"]).row_keys())


def crossed_map(inputs, calibrator_of):
    """MAP where each fold is ranked by what was fitted on the others."""
    folds, ranking = folds_of(inputs), np.empty((len(inputs["scores"]), K), np.int32)
    for fold in range(5):
        inside, others = folds == fold, folds != fold
        fitted = calibrator_of(fold).fit(inputs["scores"][others], inputs["labels"][others])
        ranking[inside] = fitted.rank(inputs["scores"][inside], k=K)
    return map_of(ranking, inputs["labels"])


@pytest.mark.parametrize("name", ["offset", "isotonic", "platt"])
def test_without_calibration_rows_each_fold_is_ranked_by_maps_of_the_others(inputs, crossed, name):
    wanted = crossed_map(inputs, lambda fold: calibrators(inputs)[name])
    # Out of fold, logistic maps are fitted on a summary: a near tie may fall the other way.
    near = 1e-12 if name == "isotonic" else 1e-3
    assert crossed.ladder.value(name) == pytest.approx(wanted, abs=near)


def test_what_is_chosen_for_a_fold_is_chosen_without_it(inputs, crossed):
    rule = RULES["auto"]
    named = rule.candidates_for(inputs["weights"])
    source = open_source(inputs["scores"], inputs["labels"])
    folds = assign(inputs)
    trials = try_candidates(
        source, named, k=K, folds=folds, weights=inputs["weights"], prior=inputs["prior"]
    )
    assert crossed.chosen.name == named[rule.choose(trials).place].name
    numbers, ranking = folds_of(inputs), np.empty((source.n_rows, K), np.int32)
    for fold, place in enumerate(choose_by_fold(rule, trials)):
        inside = numbers == fold
        panel = oddslip.Panel(inputs["scores"][inside])
        ranking[inside] = trials.fitted[-1][fold][place].rank_panel(panel, K)
    wanted = map_of(ranking, inputs["labels"])
    assert crossed.ladder.value("chosen") == pytest.approx(wanted, abs=1e-12)


def test_dead_labels_of_a_fold_are_those_whose_positives_all_lie_in_it(inputs, crossed):
    folds, labels = folds_of(inputs), inputs["labels"]
    positives = np.array([labels[folds == fold].sum(axis=0) for fold in range(5)])
    total = positives.sum(axis=0)
    assert np.array_equal(crossed.drift.unseen, (positives.max(axis=0) == total) & (total > 0))


def test_rows_with_few_distinct_ids_have_as_many_folds(inputs):
    scores, labels = inputs["scores"][:40], inputs["labels"][:40]
    panel = oddslip.Panel(scores, labels, row_ids=np.arange(40) % 3)
    assert diagnose(panel, k=K, n_replicates=0).protocol == "cross-fitted"
