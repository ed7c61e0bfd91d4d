"""Every rung against the calibrator it stands for, one at a time."""

import numpy as np
import pytest

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
from oddslip.diagnosis.case import open_case
from oddslip.diagnosis.readings.climb import climb
from oddslip.metrics.at_k import Column
from oddslip.selection.cross import cross_choose
from oddslip.selection.folds import draw_folds
from oddslip.selection.rules import RULES
from oddslip.selection.trials import try_candidates
from oddslip.shifts import saturation
from oddslip.sources import open_source


@pytest.fixture(scope="module")
def told(arguments):
    return arguments("dead labels")


@pytest.fixture(scope="module")
def climbed(told):
    return climb(
        open_case(**{name: value for name, value in told.items() if name != "n_replicates"})
    )


def counted(told):
    """Rows with a true label: those that are ranked by every rung."""
    return told["labels"].any(axis=1)


def rungs(told):
    prior = told["prior"]
    return {
        "inversion": Inversion(told["weights"]),
        "offset": Offset(prior=prior),
        "isotonic": Isotonic(prior=prior),
        "isotonic, identity": Isotonic(prior=prior, dead="identity"),
        "isotonic, exclude": Isotonic(prior=prior, dead="exclude"),
        "pooled": PooledIsotonic(),
        "platt": Platt(prior=prior),
        "beta": Beta(prior=prior),
        "popularity": Popularity(prior=prior),
    }


@pytest.mark.filterwarnings("ignore:.*dead labels keep their raw score.*")
def test_every_rung_ranks_as_its_calibrator_does(told, climbed):
    for name, calibrator in rungs(told).items():
        wanted = calibrator.fit(*told["calibration"]).rank(told["scores"], k=7)[counted(told)]
        assert np.array_equal(climbed.rankings[name], wanted), name


def test_raw_and_the_twin_rank_as_they_are(told, climbed):
    assert np.array_equal(climbed.raw, oddslip.rank(told["scores"], k=7))
    assert np.array_equal(climbed.twin, oddslip.rank(told["unweighted"], k=7))
    assert np.array_equal(climbed.rankings["raw"], climbed.raw[counted(told)])
    assert np.array_equal(climbed.rankings["unweighted"], climbed.twin[counted(told)])


def test_what_if_adds_ln_w_to_the_twin(told, climbed):
    margin = np.log(told["unweighted"].astype(float))
    margin -= np.log1p(-told["unweighted"].astype(float))
    wanted = np.argsort(-(margin + np.log(told["weights"])), axis=1, kind="stable")[:, :7]
    wanted = wanted[counted(told)]
    same = (climbed.rankings["what-if"] == wanted).all(axis=1)
    assert same.mean() > 0.999  # the last bit of a logarithm may decide a row


def test_the_ceiling_is_fitted_on_the_evaluated_rows(told, climbed):
    wanted = Ceiling().fit(told["scores"], told["labels"]).rank(told["scores"], k=7)
    assert np.array_equal(climbed.rankings["ceiling"], wanted[counted(told)])


def test_ties_are_those_of_evaluate(arguments):
    told = arguments("saturated")
    told.pop("n_replicates")
    climbed = climb(open_case(**told))
    wanted = oddslip.evaluate(told["scores"], told["labels"], k=7, n_replicates=0)
    assert climbed.n_tied == wanted.n_tied > 0
    worst, best = climbed.bounds[:, Column.MAP] / wanted.n_evaluated
    assert worst == pytest.approx(wanted.map_worst, abs=1e-15)
    assert best == pytest.approx(wanted.map_best, abs=1e-15)
    assert saturation(told["scores"], k=7).share > 0.1


def test_calibration_rows_without_a_positive_leave_the_fitted_rungs_out(arguments):
    told = arguments("realized")
    told.pop("n_replicates")
    scores, labels = told["calibration"]
    climbed = climb(open_case(**told | {"calibration": (scores, np.zeros_like(labels))}))
    assert {"raw", "inversion", "popularity", "ceiling"} <= set(climbed.rankings)
    assert not {"isotonic", "pooled", "offset"} & set(climbed.rankings)


def test_the_rung_chosen_is_what_repair_deploys_with_the_same_inputs(told, climbed):
    repair = oddslip.Repair(k=7, prior=told["prior"], weights=told["weights"])
    repair.fit(*told["calibration"])
    assert climbed.chosen == (repair.chosen_, repair.why_)
    wanted = repair.rank(told["scores"])[counted(told)]
    assert np.array_equal(climbed.rankings["chosen"], wanted)


CROSSED = ("offset", "isotonic", "platt")


@pytest.fixture(scope="module")
def crossed(told):
    names = ("scores", "labels", "weights", "prior", "k")
    return climb(open_case(**{name: told[name] for name in names}))


def folds_of(told):
    """The folds of the repeat that is shown, of the rows with a true label."""
    n_rows = len(told["scores"])
    return draw_folds(n_rows, 5, n_repeats=RULES["auto"].repeats_for(n_rows))[-1]


@pytest.mark.parametrize("name", CROSSED)
def test_without_calibration_rows_each_fold_is_ranked_by_maps_of_the_others(told, crossed, name):
    folds, calibrator = folds_of(told), rungs(told)[name]
    for fold in range(5):
        inside, others = folds == fold, folds != fold
        fitted = calibrator.fit(told["scores"][others], told["labels"][others])
        wanted = fitted.rank(told["scores"][inside & counted(told)], k=7)
        found = crossed.rankings[name][inside[counted(told)]]
        # Out of fold, logistic maps are fitted on a summary: a near tie may fall the other way.
        assert (found == wanted).all(axis=1).mean() > (0.98 if name != "isotonic" else 0.9999)


def test_what_is_chosen_for_a_fold_is_chosen_without_it(told, crossed):
    rule = RULES["auto"]
    candidates = rule.candidates_for(told["weights"])
    source = open_source(told["scores"], told["labels"])
    trials = try_candidates(
        source, candidates, k=7, n_repeats=rule.repeats_for(source.n_rows),
        weights=told["weights"], prior=told["prior"], keep_rankings=True,
    )  # fmt: skip
    wanted = cross_choose(rule, trials)
    assert np.array_equal(crossed.rankings["chosen"], wanted.rankings[-1])
    assert crossed.chosen.name == candidates[wanted.choice.place].name


def test_dead_labels_of_a_fold_are_those_whose_positives_all_lie_in_it(told, crossed):
    folds, labels = folds_of(told), told["labels"]
    held = np.array([labels[folds == fold].sum(axis=0) for fold in range(5)])
    lonely = (held.max(axis=0) == held.sum(axis=0)) & (held.sum(axis=0) > 0)
    assert np.array_equal(crossed.unseen, lonely)
