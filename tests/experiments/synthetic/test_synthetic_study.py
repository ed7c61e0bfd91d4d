"""The synthetic study: its truth is what the page says, cells are kept, the page is theirs."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit

from experiments.synthetic import study
from experiments.synthetic.page import COLUMNS, PRINTED, mean_over_seeds, printed, write_page
from experiments.synthetic.study import LEARNERS, SEEDS, cell_key
from oddslip.errors import InvalidInput

ROOT = Path(__file__).parents[3]


@pytest.fixture
def few_rows(monkeypatch):
    monkeypatch.setattr(study, "N_ROWS", 800)


@pytest.mark.parametrize("decade", study.DECADES)
def test_marginals_have_the_prevalences_that_the_page_states(decade, few_rows):
    world = study.draw_world(decade, seed=0)
    low, high = study.prevalence_range(decade)
    np.testing.assert_allclose(np.sort(world.prevalence), np.geomspace(low, high, 20))
    spread = world.marginals.std(axis=0) / np.sqrt(world.n_rows)
    assert (np.abs(world.marginals.mean(axis=0) - world.prevalence) < 5 * spread).all()


def test_the_truth_is_logistic_in_the_features_with_the_stated_deviation(few_rows):
    world = study.draw_world(2, seed=1)
    design = np.column_stack([np.ones(world.n_rows), world.X])
    odds = logit(world.marginals)
    slopes, *_ = np.linalg.lstsq(design, odds, rcond=None)
    np.testing.assert_allclose(design @ slopes, odds, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(slopes[1:], axis=0), study.SIGNAL, rtol=1e-4)


def test_labels_are_drawn_from_the_marginals(few_rows):
    world = study.draw_world(1, seed=2)
    error = np.sqrt((world.marginals * (1 - world.marginals)).sum(axis=0))
    assert (np.abs((world.labels - world.marginals).sum(axis=0)) < 5 * error).all()


def run(folder, **options):
    return study.reproduce_synthetic(
        decades=[1],
        exponents=[0.0, 1.0],
        learners=["logistic"],
        seeds=[0],
        results=folder,
        **options,
    )


def test_the_inversion_undoes_the_weight_of_a_learner_that_can_be_right(few_rows, tmp_path):
    cells = run(tmp_path)
    plain = cells[study.cell_key(1, 0.0, "logistic", 0)]
    weighted = cells[study.cell_key(1, 1.0, "logistic", 0)]
    assert plain["raw"] == pytest.approx(plain["inversion"], abs=1e-12)
    assert plain["spread"] == 0 < weighted["spread"]
    assert weighted["raw"] < weighted["inversion"]
    assert abs(weighted["inversion"] - plain["raw"]) < 0.05


def test_finished_cells_are_not_trained_again(few_rows, tmp_path, monkeypatch):
    first = run(tmp_path)
    monkeypatch.setattr(study, "measure_cell", lambda *_: pytest.fail("was computed again"))
    assert run(tmp_path) == run(tmp_path, finished=True) == first


def test_another_world_is_another_cell(few_rows, tmp_path, monkeypatch):
    run(tmp_path)
    monkeypatch.setattr(study, "SIGNAL", 1.1)
    assert run(tmp_path, finished=True) == {}


def test_an_unknown_learner_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="learners must be among logistic"):
        study.reproduce_synthetic(learners=["forest"], results=tmp_path)


def test_the_printed_table_is_whole():
    assert PRINTED.keys() == {(d, e) for d in study.DECADES for e in study.EXPONENTS}
    assert {len(line) for line in PRINTED.values()} == {len(COLUMNS)}
    assert printed(3, 1.0, "saturated", "lightgbm-300x31") == 14
    assert printed(2, 1.5, "inversion", "mlp") == 0.494


def test_means_are_over_the_seeds_that_are_finished():
    cell = dict.fromkeys(("spread", "truth", "inversion", "ceiling", "saturated_share"), 0.0)
    cells = {
        study.cell_key(1, 0.5, "mlp", seed): cell | {"raw": raw}
        for seed, raw in ((0, 0.2), (2, 0.4))
    }
    mean = mean_over_seeds(cells, 1, 0.5, "mlp")
    assert (mean["n"], round(mean["raw"], 12)) == (2, 0.3)
    assert mean_over_seeds(cells, 2, 0.5, "mlp") == {}


def test_cells_as_printed_have_the_papers_shape_in_every_cell():
    cells = {}
    for decade, exponent in PRINTED:
        for learner in LEARNERS:
            values = {"ceiling": 0.0, "saturated": 0.0}
            for (what, whose), number in zip(COLUMNS, PRINTED[decade, exponent], strict=True):
                if whose in (None, learner):
                    values[what] = number
            values["saturated_share"] = values.pop("saturated") / 100
            cells |= {cell_key(decade, exponent, learner, seed): values for seed in SEEDS}
    page = " ".join(write_page(cells).split())
    assert "here and there: 126 of 126 in all" in page
    assert "is 1.000 over 45 cells" in page
    assert "spread 1.00 to 1.00 times" in page
