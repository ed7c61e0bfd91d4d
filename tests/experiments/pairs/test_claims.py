"""Claims are computed from cells: change a number and the answer changes."""

import pytest

from experiments.pairs import claims as pair_claims
from experiments.pairs import claims as pair_repair_claims
from experiments.pairs import claims as pair_sweep_claims
from experiments.pairs.claims import LOSS_CLAIMS, REPAIR_CLAIMS, SWEEP_CLAIMS, find_claims

CLAIMS = (*LOSS_CLAIMS, *REPAIR_CLAIMS, *SWEEP_CLAIMS)


def set_loss(cell, loss):
    loss_interval = cell["test-split"]["ladder"]["rungs"]["unweighted"]["minus_raw"]
    loss_interval |= {"value": loss, "low": loss - 0.01, "high": loss + 0.01}


def set_rung(cells, key, name, value, protocol="test-split"):
    cells[key][protocol]["ladder"]["rungs"][name]["map"]["value"] = value


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_a_claim_without_its_cells_is_not_made(claim):
    assert claim({}) is None


def test_every_claim_is_made_once_all_cells_are_finished(cells):
    for key in ("lightgbm-r", "mlp-r"):  # where nothing was lost, two claims have nothing to say
        set_loss(cells[key], 0.2)
        cells[key]["test-split"]["decomposition"]["shares"]["odds"] = 0.4
        cells[key]["test-split"]["decomposition"]["returned"] = {"inversion": 0.1}
        cells[key]["reordered"]["by_twin"]["share"] = 0.1
        cells[key]["reordered"]["by_oracle"]["share"] = 0.2
    claims = find_claims(cells)
    assert len(claims) == len(CLAIMS)
    assert len({claim.what for claim in claims}) == len(claims)
    assert all(claim.numbers for claim in claims)


@pytest.mark.parametrize("raw", [0.1, 0.3])
def test_weighted_below_popularity(cells, raw):
    for learner in ("lightgbm", "mlp"):
        set_rung(cells, f"{learner}-r", "popularity", 0.2)
        set_rung(cells, f"{learner}-r", "raw", 0.1)
    set_rung(cells, "mlp-r", "raw", raw)
    claim = pair_claims.weighted_below_popularity(cells)
    assert claim.holds == (raw < 0.2)
    assert f"mlp {raw:.4f} against 0.2000" in claim.numbers


@pytest.mark.parametrize("share", [0.49, 0.51])
def test_the_odds_shift_is_a_minority(cells, share):
    set_loss(cells["lightgbm-r"], 0.2)
    cells["lightgbm-r"]["test-split"]["decomposition"]["shares"]["odds"] = share
    assert pair_claims.odds_a_minority(cells).holds == (share < 0.5)


def test_shares_of_a_loss_that_is_not_sure_decide_nothing(cells):
    for cell in cells.values():
        if "reordered" in cell:
            set_loss(cell, 0.005)
    assert pair_claims.odds_a_minority(cells) is None
    assert pair_claims.ties_decide(cells) is None
    assert pair_claims.inversion_needs_both(cells) is None


@pytest.mark.parametrize(
    ("ratio", "saturated", "returned", "holds"),
    [(1.0, 0.0, 0.9, True), (0.3, 0.0, 0.9, False), (1.0, 0.2, 0.9, False), (0.3, 0.2, 0.1, True)],
)
def test_inversion_pays_only_under_both_conditions(cells, ratio, saturated, returned, holds):
    cell = cells["lightgbm-r"]
    set_loss(cell, 0.2)
    cell["test-split"]["decomposition"] |= {"returned": {"inversion": returned}}
    cell["deployment"]["shifts"]["median_ratio"] = ratio
    cell["saturated_share"] = saturated
    assert pair_claims.inversion_needs_both({"lightgbm-r": cell}).holds == holds


def test_the_best_rung_is_named(cells):
    for learner in ("lightgbm", "mlp"):
        for rung, value in {"raw": 0.1, "inversion": 0.2, "pooled": 0.1, "isotonic": 0.3}.items():
            set_rung(cells, f"{learner}-r", rung, value)
    assert pair_repair_claims.isotonic_the_best_rung(cells).holds
    set_rung(cells, "mlp-r", "inversion", 0.4)
    claim = pair_repair_claims.isotonic_the_best_rung(cells)
    assert not claim.holds
    assert "mlp: inversion 0.4000, isotonic 0.3000; not in that table" in claim.numbers


def test_fallbacks_are_judged_only_where_labels_are_dead(cells):
    for learner in ("lightgbm", "mlp"):
        cell = cells[f"{learner}-r"]
        cell["test-split"]["calibration_positives"]["n_dead"] = 0
        set_rung(cells, f"{learner}-r", "isotonic", 0.5, "deployment")
        set_rung(cells, f"{learner}-r", "isotonic, identity", 0.4, "deployment")
    claim = pair_repair_claims.identity_hurts(cells)
    assert claim.holds
    assert "test-split" not in claim.numbers
    set_rung(cells, "mlp-r", "isotonic, identity", 0.6, "deployment")
    assert not pair_repair_claims.identity_hurts(cells).holds


@pytest.mark.parametrize("largest", [0.9, 0.91])
def test_a_shift_beyond_the_budget_is_seen(cells, largest):
    cells["lightgbm-r-cap-0.3"]["deployment"]["shifts"]["largest_realized"] = largest
    assert pair_sweep_claims.shift_inside_budget(cells).holds == (largest == 0.9)


def test_the_step_budget_holds_on_trained_models(finished_study):
    assert pair_sweep_claims.shift_inside_budget(finished_study[1]).holds
    assert pair_sweep_claims.caps_never_saturate(finished_study[1]).holds


@pytest.mark.parametrize(("low", "holds"), [(-0.01, True), (0.001, False)])
def test_a_weighted_arm_surely_ahead_of_its_capped_twin_is_seen(cells, low, holds):
    for cap in ("0.3", "5"):
        cells[f"lightgbm-r-cap-{cap}"]["test-split"]["repaired_minus_twin"]["low"] = -0.1
    cells["lightgbm-r-cap-5"]["test-split"]["repaired_minus_twin"]["low"] = low
    assert pair_sweep_claims.gain_is_the_caps(cells).holds == holds


def test_saturation_under_a_cap_is_seen(cells):
    cells["lightgbm-r-cap-5"]["saturated_share"] = 0.001
    assert not pair_sweep_claims.caps_never_saturate(cells).holds


def test_protocols_that_differ_are_seen(cells):
    for key in ("lightgbm-r", "lightgbm-1", "mlp-r", "mlp-1"):
        for protocol in ("test-split", "deployment"):
            set_rung(cells, key, "isotonic", 0.5, protocol)
    assert pair_repair_claims.protocols_agree(cells).holds
    set_rung(cells, "mlp-1", "isotonic", 0.52, "deployment")
    assert "mlp w=1 +0.0200" in pair_repair_claims.protocols_agree(cells).numbers
    assert not pair_repair_claims.protocols_agree(cells).holds
