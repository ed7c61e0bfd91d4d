"""What the selection rules choose in a matched-pair study."""

import numpy as np
import pytest

from experiments.pairs.arms import Arm
from experiments.pairs.cells import RULES, compare_choices
from experiments.pairs.page import choice_section
from experiments.pairs.training import Bench
from oddslip.metrics import evaluate
from oddslip.selection import Repair


@pytest.fixture
def bench(products, tmp_path):
    return Bench(products(), tmp_path)


def test_choices_are_those_of_a_repair_fitted_on_the_validation_period(bench, few_replicates):
    data, own = bench.data, bench.scores(Arm("lightgbm", "r"))
    told = compare_choices(own, data, 5)
    validation, test = np.load(own.validation), np.load(own.test)
    raw = evaluate(test, data.test.Y, k=5, n_replicates=0)["map"].value
    assert told["raw"] == pytest.approx(raw, abs=1e-12)
    for rule in RULES:
        repair = Repair(k=5, rule=rule, prior=own.prior).fit(validation, data.validation.Y)
        scores = repair.fitted_.transform(test, dtype=np.float64)
        wanted = evaluate(scores, data.test.Y, k=5, n_replicates=0)["map"].value
        assert told[rule]["chosen"] == repair.chosen_
        assert told[rule]["map"] == pytest.approx(wanted, abs=1e-12)
        gap = told[rule]["difference"]
        assert gap["value"] == pytest.approx(wanted - raw, abs=1e-12)
        assert gap["low"] <= gap["value"] <= gap["high"]


def test_the_section_counts_the_arms_that_a_rule_harmed():
    def cell(paper, auto):
        told = {
            rule: {"chosen": "raw", "difference": {"value": v, "low": v, "high": v}}
            for rule, v in (("paper", paper), ("auto", auto))
        }
        return {"choices": {"raw": 0.5, **told}}

    cells = {"choices-a": cell(-0.02, 0.0), "choices-b": cell(-0.009, 0.1), "a": {}}
    page = "\n".join(choice_section(cells))
    assert "of 2 arms: paper 1, auto 0" in page
    assert "-0.0200" in page


def test_without_choices_there_is_no_section():
    assert choice_section({"lightgbm-r": {}}) == []
