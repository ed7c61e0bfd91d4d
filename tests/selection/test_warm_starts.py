"""With many labels, hierarchical fits of nearly the same rows start from one another."""

import numpy as np
from tests.support.trials import try_candidates

import oddslip.calibrators.logistic.hierarchy as hierarchy
from oddslip.calibrators import Hierarchical
from oddslip.datasets import synthetic_pair
from oddslip.selection.candidates import HIERARCHICAL, RAW
from oddslip.selection.folds import assign_folds
from oddslip.sources import open_source

PAIR = synthetic_pair(700, 40, prevalence=(0.01, 0.3), noise=0.5, seed=5)


def try_both(monkeypatch, many):
    """Trials of raw and hierarchical where ``many`` labels are many, and the rounds of each fit."""
    for place in ("calibrators.hierarchical", "selection.fold_fits"):
        monkeypatch.setattr(f"oddslip.{place}.MANY_LABELS", many)
    n_rounds, fit = [], hierarchy.fit_hierarchical

    def count_rounds(*arguments, **options):
        answer = fit(*arguments, **options)
        n_rounds.append(answer.n_rounds)
        return answer

    monkeypatch.setattr("oddslip.calibrators.hierarchical.fit_hierarchical", count_rounds)
    source = open_source(PAIR.weighted, PAIR.labels)
    folds = assign_folds(source, 5, n_repeats=2)
    return try_candidates(source, (RAW, HIERARCHICAL), k=5, folds=folds), n_rounds


def parameters(trials):
    maps = [fold[1] for repeat in trials.fitted for fold in repeat]
    return np.array([[each.a, each.b] for each in maps])


def test_warm_fits_take_fewer_rounds_and_end_nearer_to_the_optimum(monkeypatch):
    few, cold_rounds = try_both(monkeypatch, many=41)
    many, warm_rounds = try_both(monkeypatch, many=40)
    assert warm_rounds[0] == cold_rounds[0]
    assert sum(warm_rounds[1:]) < 0.6 * sum(cold_rounds[1:])
    monkeypatch.setattr(hierarchy, "TOLERANCE", 1e-10)
    monkeypatch.setattr(hierarchy, "ROUNDS", 5_000)
    best = parameters(try_both(monkeypatch, many=41)[0])
    far_cold, far_warm = (np.abs(parameters(each) - best).mean() for each in (few, many))
    assert far_warm < far_cold
    assert abs(many.means[1] - few.means[1]) < 1e-3


def test_a_fit_of_all_rows_starts_from_none(monkeypatch):
    trials, _ = try_both(monkeypatch, many=40)
    alone = Hierarchical().fit(PAIR.weighted, PAIR.labels).fitted_.maps
    maps, _ = trials.fits.fit(HIERARCHICAL, None)
    np.testing.assert_allclose(maps.b, alone.b, rtol=0, atol=5e-3)
