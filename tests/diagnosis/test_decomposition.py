"""The parts of the loss add up to it, and are what the definitions say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oddslip.diagnosis.decomposition import decompose
from oddslip.diagnosis.ladder import Ladder, Rung
from oddslip.metrics.evaluation import Estimate

levels = st.floats(0, 1, allow_nan=False)


def ladder_of(**values):
    point = {name: Estimate(value, value, value) for name, value in values.items()}
    rungs = {
        name.replace("_", "-"): Rung(name, {"map": value}, {"map": value})
        for name, value in point.items()
    }
    return Ladder(rungs, k=7, n_rows=10, n_evaluated=10, n_replicates=0, seed=0)


def test_the_parts_add_up_in_every_scene(scene, scenes):
    for name in scenes:
        parts = scene(name).decomposition
        assert sum(parts.by_cause.values()) == pytest.approx(parts.loss, abs=1e-15)
        assert sum(parts.by_repair.values()) == pytest.approx(parts.loss, abs=1e-15)
        assert parts.odds + parts.slippage == pytest.approx(parts.loss, abs=1e-15)


@settings(max_examples=200, deadline=None)
@given(levels, levels, levels, levels, levels)
def test_the_parts_add_up_whatever_the_ladder(unweighted, raw, what_if, isotonic, ceiling):
    parts = decompose(
        ladder_of(
            unweighted=unweighted, raw=raw, what_if=what_if, isotonic=isotonic, ceiling=ceiling
        )
    )
    assert sum(parts.by_cause.values()) == pytest.approx(parts.loss, abs=1e-14)
    assert sum(parts.by_repair.values()) == pytest.approx(parts.loss, abs=1e-14)


def test_the_shares_are_those_of_the_conventions():
    parts = decompose(
        ladder_of(unweighted=0.8, raw=0.3, what_if=0.6, isotonic=0.6, ceiling=0.7, inversion=0.4)
    )
    assert parts.share("odds") == pytest.approx(0.4)
    assert parts.share("slippage") == pytest.approx(0.6)
    assert parts.share("tie_residue") == pytest.approx(0.2)
    assert parts.share("recoverable_slippage") == pytest.approx(0.4)
    assert parts.returned["isotonic"] == pytest.approx(0.6)
    assert parts.returned["inversion"] == pytest.approx(0.2)


def test_without_a_loss_there_are_no_shares():
    parts = decompose(ladder_of(unweighted=0.3, raw=0.3, what_if=0.3, isotonic=0.3, ceiling=0.4))
    assert parts.returned == {}
    assert parts.share("odds") is None


def test_without_the_twin_there_is_no_loss():
    assert decompose(ladder_of(raw=0.3, ceiling=0.4)) is None


def test_a_realized_shift_is_all_odds_and_no_slippage(scene):
    parts = scene("realized").decomposition
    assert parts.share("odds") == pytest.approx(1, abs=0.01)
    assert parts.returned["inversion"] == pytest.approx(1, abs=0.01)


def test_saturation_leaves_a_tie_residue_that_a_realized_shift_does_not(scene):
    assert scene("saturated").decomposition.tie_residue > 0.02
    assert scene("realized").decomposition.tie_residue < 0
