"""The row-aware stage: when it is used, and what does not matter to it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from oddslip.diagnosis.checks.rows import check_together
from oddslip.errors import InvalidInput
from oddslip.selection import Repair
from oddslip.selection.rules import RULES
from oddslip.sources import base as sources

STAGED = replace(RULES["row_aware"], row_guard=-np.inf)  # uses the stage in any case


def draw_rows(seed, together, n_rows=1500, n_labels=16):
    """Scores that see a label's own features, and rows whose labels share a topic beside them."""
    rng = np.random.default_rng(seed)
    world = np.random.default_rng(99)
    level, shift = world.normal(-2, 0.5, n_labels), world.normal(0, 1, n_labels)
    topic = rng.integers(0, n_labels // 4, n_rows)
    inside = np.arange(n_labels) // 4 == topic[:, None]
    own = rng.normal(size=(n_rows, n_labels)) + level
    truth = rng.random(own.shape) < expit(own + together * inside)
    return expit(own + shift + 0.5 * together * inside), truth


def test_labels_that_occur_together_use_the_stage_and_gain_on_other_rows():
    from oddslip import evaluate

    repair = Repair(k=3, rule="row_aware").fit(*draw_rows(0, 2.0))
    assert repair.chosen_ == "row_aware"
    assert "occur together" in repair.why_
    scores, truth = draw_rows(1, 2.0)
    alone = Repair(k=3, rule="hierarchical").fit(*draw_rows(0, 2.0))
    maps = [evaluate(each.transform(scores), truth, k=3)["map"].value for each in (repair, alone)]
    assert maps[0] > maps[1] + 0.005


@pytest.mark.parametrize("seed", range(6))
def test_independent_labels_do_not_pass_the_guard(seed):
    assert Repair(k=3, rule="row_aware").fit(*draw_rows(seed, 0.0, 800)).chosen_ != "row_aware"


def test_threads_change_no_bit_and_blocks_no_rank(monkeypatch):
    scores, truth = draw_rows(2, 2.0)
    whole = Repair(k=3, rule=STAGED).fit(scores, truth, threads=1)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 16 * 8 * 100)
    cut = Repair(k=3, rule=STAGED).fit(scores, truth, threads=1)
    shared = Repair(k=3, rule=STAGED).fit(scores, truth, threads=3)
    np.testing.assert_array_equal(
        shared.transform(scores, threads=3), cut.transform(scores, threads=1)
    )
    assert shared.table_.to_dict() == cut.table_.to_dict()
    np.testing.assert_allclose(cut.transform(scores), whole.transform(scores), rtol=1e-9)
    np.testing.assert_array_equal(cut.rank(scores), whole.rank(scores))


def test_a_weight_of_two_is_a_row_twice():
    scores, truth = draw_rows(3, 2.0, 600)
    times = 1 + (np.arange(600) % 2)
    ids = np.repeat(np.arange(600), times)
    weighted = Repair(k=3, rule=STAGED).fit(scores, truth, sample_weight=times)
    stage = weighted.fitted_.maps.stage
    np.testing.assert_allclose(stage.prevalence, truth[ids].mean(axis=0), rtol=1e-12)


def test_without_a_guard_the_stage_is_used_in_any_case():
    repair = Repair(k=3, rule=STAGED).fit(*draw_rows(4, 0.0, 500))
    assert repair.chosen_ == "row_aware"
    assert repair.fitted_.fingerprint.expected.value == pytest.approx(repair.table_.means[-1])


def test_a_stage_that_is_not_used_is_in_the_table_and_the_reason():
    repair = Repair(k=3, rule="row_aware").fit(*draw_rows(4, 0.0, 500))
    assert repair.table_.candidates[-1] == "row_aware"
    assert "stage is not used" in repair.why_


@pytest.mark.parametrize(("n_labels", "foldable"), [(16, True), (2, False)])
def test_what_the_stage_cannot_do_is_refused(n_labels, foldable):
    scores, truth = draw_rows(0, 2.0)
    with pytest.raises(InvalidInput, match='rule="auto"'):
        Repair(k=1, rule="row_aware", foldable=foldable).fit(
            scores[:, :n_labels], truth[:, :n_labels]
        )


@pytest.mark.parametrize("held_out", [False, True])
def test_the_diagnosis_says_what_labels_that_occur_together_could_give(held_out):
    from oddslip import diagnose

    def codes(together):
        calibration = draw_rows(1, together) if held_out else None
        found = diagnose(*draw_rows(0, together), k=3, calibration=calibration, n_replicates=0)
        return {each.code: each for each in found.findings}

    assert codes(2.0)["OS408"].evidence["gain"] > 0.002
    assert "OS408" not in codes(0.0)


def test_a_stage_is_not_advised_for_a_gain_that_is_sure_but_immaterial():
    from oddslip import diagnose

    diagnosis = diagnose(*draw_rows(0, 2.0), k=3, n_replicates=0)
    small = diagnosis.chosen._replace(row_gain=0.0005, row_gain_error=0.0001)
    assert check_together(diagnosis) is not None
    assert check_together(replace(diagnosis, chosen=small)) is None


def test_labels_that_no_row_has_and_absent_cells_leave_no_gaps():
    scores, truth = draw_rows(5, 2.0, 600)
    truth[:, 0] = False
    scores[np.random.default_rng(0).random(scores.shape) < 0.1] = np.nan
    repair = Repair(k=3, rule=STAGED).fit(scores, truth, nan="absent")
    probabilities = repair.transform(scores, nan="absent")
    assert (np.isfinite(probabilities) == np.isfinite(scores)).all()
