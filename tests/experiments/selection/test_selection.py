"""The selection study: a cell says what Repair says, and the page adds its cells up."""

import json

import numpy as np
import pytest

from experiments.folds import PaperRepair
from experiments.mulan.arms import LEARNERS
from experiments.mulan.study import DATASETS
from experiments.selection.cells import CHOOSING, CONTENDERS, OLD, measure_cell
from experiments.selection.page import best_candidate, split_cells, summarise, write_page
from experiments.selection.study import (
    WEIGHTS,
    is_tuned,
    read_finished,
    settings,
)
from experiments.store import CellStore
from oddslip.datasets import synthetic_pair
from oddslip.errors import InvalidInput
from oddslip.learners.backends.base import preset_parameters
from oddslip.metrics import average_precision_at_k
from oddslip.sources import open_source

PAIR = synthetic_pair(700, 8, prevalence=(0.01, 0.3), noise=0.4, seed=4)
CAL, TEST = PAIR.calibration, ~PAIR.calibration
CELL = measure_cell(
    open_source(PAIR.weighted[CAL], PAIR.labels[CAL]),
    open_source(PAIR.weighted[TEST], PAIR.labels[TEST]),
    k=3,
    prior=PAIR.prior,
    weights=PAIR.weights,
)


@pytest.mark.parametrize("rule", CHOOSING.values(), ids=lambda rule: rule.name)
def test_a_cell_holds_what_repair_chooses_and_what_it_reaches(rule):
    repair = PaperRepair(k=3, rule=rule, prior=PAIR.prior, weights=PAIR.weights)
    repair.fit(PAIR.weighted[CAL], PAIR.labels[CAL])
    contest = CELL["contenders"][rule.name]
    assert contest["chosen"] == repair.chosen_
    # A cell compares all candidates; Repair drops some early, and may name another runner-up.
    assert CELL["why"][rule.name].partition(";")[0] == repair.why_.partition(";")[0]
    raw, after = (
        average_precision_at_k(scores, PAIR.labels[TEST], k=3, kind="margin")
        for scores in (
            PAIR.weighted[TEST],
            repair.fitted_.transform(PAIR.weighted[TEST], dtype=float),
        )
    )
    assert CELL["raw"]["test"] == pytest.approx(raw, abs=1e-12)
    assert contest["difference"] == pytest.approx(after - raw, abs=1e-6)


def test_the_earlier_default_is_what_it_was():
    assert [each.name for each in OLD.candidates] == [
        "raw",
        "pooled",
        "offset",
        "shrunk-5",
        "shrunk-20",
        "isotonic-0",
        "isotonic-1",
        "isotonic-2",
        "isotonic-5",
        "isotonic-10",
    ]
    assert (OLD.guard, OLD.guards, OLD.favourite, OLD.n_repeats) == (1.0, (), None, 3)


def test_every_candidate_has_its_gain_out_of_fold_and_on_test_rows():
    expected = {each.name for rule in CHOOSING.values() for each in rule.candidates}
    assert expected <= set(CELL["candidates"])
    assert CELL["candidates"]["raw"] == {"out_of_fold": 0.0, "standard_error": 0.0, "test": 0.0}


def made(gain, error=0.01):
    contest = {"difference": gain, "standard_error": error}
    return {
        "contenders": {"auto": contest | {"minus_auto": {"difference": 0, "standard_error": 0}}}
    }


def test_harm_is_a_loss_of_more_than_a_hundredth():
    summary = summarise({"flags-a-1": made(-0.011), "flags-b-1": made(-0.009)}, "auto")
    assert (summary.harmed, summary.worst) == (1, -0.011)


def test_cells_of_one_set_are_dependent_and_those_of_two_are_not():
    one = summarise({"flags-a-1": made(0.0), "flags-b-1": made(0.0)}, "auto")
    two = summarise({"flags-a-1": made(0.0), "yeast-a-1": made(0.0)}, "auto")
    assert one.high == pytest.approx(1.96 * 0.01)
    assert two.high == pytest.approx(1.96 * 0.01 / np.sqrt(2))


def test_tuning_sets_are_told_apart():
    cells = dict.fromkeys(("birds-mlp-r", "flags-mlp-r", "tafeng-mlp-r", "tafeng-lightgbm-r"), CELL)
    groups = split_cells(cells)
    assert list(groups["tuning sets"]) == ["birds-mlp-r", "tafeng-mlp-r"]
    assert list(groups["the others"]) == ["flags-mlp-r", "tafeng-lightgbm-r"]
    assert not is_tuned("tmc2007-500-mlp-r")


def test_the_page_tells_every_contender_and_every_cell():
    page = write_page({"birds-mlp-r": CELL, "flags-mlp-r": CELL})
    assert page.count("| mean gain over raw |") == 2
    assert "| flags-mlp-r |" in page
    assert len(CONTENDERS) == 7
    best, gain = best_candidate({"flags-mlp-r": CELL})
    assert gain == max(each["test"] for each in CELL["candidates"].values())
    assert CELL["candidates"][best]["test"] == gain


def test_the_page_names_the_cells_that_are_missing():
    cells = {f"flags-{one}-r": CELL for one in LEARNERS} | {
        "yeast-mlp-1": CELL,
        "yeast-mlp-r": CELL,
    }
    text = " ".join(write_page(cells).split())
    assert "Not measured, or not with the presets of today: emotions, all; " in text
    assert "; flags, lightgbm at 1, lightgbm-regularised at 1, xgboost at 1, logistic at 1" in text
    assert "; yeast, lightgbm, lightgbm-regularised, xgboost, logistic; birds, all; " in text
    keys = [f"{name}-{one}-{weight}" for name in DATASETS for one in LEARNERS for weight in WEIGHTS]
    assert "Not measured" not in write_page(dict.fromkeys(keys, CELL))


def test_the_page_says_what_one_cell_makes_and_which_cells_were_chosen_for_anew():
    far = json.loads(json.dumps(CELL)) | {"rechosen": True}
    best, gain = best_candidate({"flags-mlp-r": CELL})
    far["candidates"][best]["test"] = gain + 0.5
    page = write_page({"flags-mlp-r": CELL, "yeast-mlp-r": far})
    auto = CELL["contenders"]["auto"]["difference"]
    assert "They are furthest apart in yeast-mlp-r" in page
    assert f"Without that cell: {gain:+.4f}, and `auto` {auto:+.4f}." in page
    assert "1 cells (`rechosen`) were not measured again" in page
    assert "rechosen" not in write_page({"flags-mlp-r": CELL})


def test_cells_of_other_rules_are_not_read(tmp_path):
    store = CellStore(tmp_path, "selection")
    store.write("flags-mlp-r", settings() | {"measures": 0}, CELL, seconds=1.0, command="x")
    with pytest.raises(InvalidInput, match="must hold finished cells"):
        read_finished(store)
    store.write("flags-mlp-r", settings(), CELL, seconds=1.0, command="x")
    assert read_finished(store) == {"flags-mlp-r": json.loads(json.dumps(CELL))}


def test_cells_of_other_presets_are_not_read(tmp_path):
    store, preset = CellStore(tmp_path, "selection"), "paper-mlp"
    parameters = preset_parameters(preset)
    for key, trained in {
        "flags-mlp-r": parameters,
        "flags-mlp-1": parameters | {"seen": 1},
    }.items():
        about = settings() | {"preset": preset, "parameters": trained}
        store.write(key, about, CELL, seconds=1.0, command="")
    assert list(read_finished(store)) == ["flags-mlp-r"]
