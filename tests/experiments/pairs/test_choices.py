"""What the selection rules choose in a matched-pair study."""

import numpy as np
import pytest

from experiments.folds import PaperRepair
from experiments.pairs.arms import Arm
from experiments.pairs.cells import RULES, compare_choices
from experiments.pairs.page import choice_section
from experiments.pairs.training import Bench
from oddslip.metrics import evaluate


@pytest.fixture
def bench(products, tmp_path):
    return Bench(products(), tmp_path)


def test_choices_are_those_of_a_repair_fitted_on_the_validation_period(bench, few_replicates):
    data, arm_scores = bench.data, bench.scores(Arm("lightgbm", "r"))
    choices = compare_choices(arm_scores, data, 5)
    validation, test = np.load(arm_scores.validation), np.load(arm_scores.test)
    raw = evaluate(test, data.test.Y, k=5, n_replicates=0)["map"].value
    assert choices["raw"] == pytest.approx(raw, abs=1e-12)
    for rule in RULES:
        repair = PaperRepair(k=5, rule=rule, prior=arm_scores.prior).fit(
            validation, data.validation.Y
        )
        scores = repair.fitted_.transform(test, dtype=np.float64)
        expected = evaluate(scores, data.test.Y, k=5, n_replicates=0)["map"].value
        assert choices[rule]["chosen"] == repair.chosen_
        assert choices[rule]["map"] == pytest.approx(expected, abs=1e-12)
        gap = choices[rule]["difference"]
        assert gap["value"] == pytest.approx(expected - raw, abs=1e-12)
        assert gap["low"] <= gap["value"] <= gap["high"]


def test_the_section_counts_the_arms_that_a_rule_harmed():
    def cell(paper, auto):
        values = {
            rule: {"chosen": "raw", "difference": {"value": v, "low": v, "high": v}}
            for rule, v in (("paper", paper), ("auto", auto))
        }
        return {"choices": {"raw": 0.5, **values}}

    cells = {"choices-a": cell(-0.02, 0.0), "choices-b": cell(-0.009, 0.1), "a": {}}
    page = "\n".join(choice_section(cells))
    assert "of 2 arms: paper 1, auto 0" in page
    assert "-0.0200" in page


def test_without_choices_there_is_no_section():
    assert choice_section({"lightgbm-r": {}}) == []
