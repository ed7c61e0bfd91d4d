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
from oddslip.diagnosis.ladder import climb
from oddslip.shifts import saturation


@pytest.fixture(scope="module")
def told(arguments):
    return arguments("dead labels")


@pytest.fixture(scope="module")
def climbed(told):
    return climb(
        open_case(**{name: value for name, value in told.items() if name != "n_replicates"})
    )


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
        wanted = calibrator.fit(*told["calibration"]).rank(told["scores"], k=7)
        assert np.array_equal(climbed.rankings[name], wanted), name


def test_raw_and_the_twin_rank_as_they_are(told, climbed):
    assert np.array_equal(climbed.rankings["raw"], oddslip.rank(told["scores"], k=7))
    assert np.array_equal(climbed.rankings["unweighted"], oddslip.rank(told["unweighted"], k=7))


def test_what_if_adds_ln_w_to_the_twin(told, climbed):
    margin = np.log(told["unweighted"].astype(float))
    margin -= np.log1p(-told["unweighted"].astype(float))
    wanted = np.argsort(-(margin + np.log(told["weights"])), axis=1, kind="stable")[:, :7]
    same = (climbed.rankings["what-if"] == wanted).all(axis=1)
    assert same.mean() > 0.999  # the last bit of a logarithm may decide a row


def test_the_ceiling_is_fitted_on_the_evaluated_rows(told, climbed):
    wanted = Ceiling().fit(told["scores"], told["labels"]).rank(told["scores"], k=7)
    assert np.array_equal(climbed.rankings["ceiling"], wanted)


def test_ties_are_those_of_evaluate(arguments):
    told = arguments("saturated")
    told.pop("n_replicates")
    climbed = climb(open_case(**told))
    wanted = oddslip.evaluate(told["scores"], told["labels"], k=7, n_replicates=0)
    assert climbed.n_tied == wanted.n_tied > 0
    assert climbed.map_worst == pytest.approx(wanted.map_worst, abs=1e-15)
    assert climbed.map_best == pytest.approx(wanted.map_best, abs=1e-15)
    assert saturation(told["scores"], k=7).share > 0.1


def test_calibration_rows_without_a_positive_leave_the_fitted_rungs_out(arguments):
    told = arguments("realized")
    told.pop("n_replicates")
    scores, labels = told["calibration"]
    climbed = climb(open_case(**told | {"calibration": (scores, np.zeros_like(labels))}))
    assert {"raw", "inversion", "popularity", "ceiling"} <= set(climbed.rankings)
    assert not {"isotonic", "pooled", "offset"} & set(climbed.rankings)
