"""What `diagnose` promises: any input, any form, the same numbers, nothing hidden."""

import json
import sys
from dataclasses import fields
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

import oddslip
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import Verdict, diagnose
from oddslip.errors import InvalidInput
from oddslip.reports.numbers import tell_residual
from oddslip.shifts import (
    direct_shift,
    inversion_bounds,
    overlap,
    realized_shift,
    residual,
    saturation,
)

PAIR = synthetic_pair(900, 20, noise=0.3, n_dead=2, seed=4)
QUICK = {"k": 5, "n_replicates": 20}


@cache
def plain_diagnosis():
    """Of scores and labels alone."""
    return diagnose(PAIR.weighted, PAIR.labels, **QUICK)


def points(found):
    return {name: rung["map"].value for name, rung in found.ladder.rungs.items()}


def test_scores_and_labels_alone_are_enough():
    diagnosis = plain_diagnosis()
    assert {"raw", "isotonic", "pooled", "popularity", "ceiling"} <= set(diagnosis.ladder)
    assert not {"inversion", "what-if", "unweighted"} & set(diagnosis.ladder)
    assert diagnosis.decomposition is None
    assert diagnosis.weighting == "unknown"


@pytest.mark.parametrize(
    ("more", "gone"),
    [
        ({"weights": PAIR.weights}, "weights"),
        ({"unweighted": PAIR.unweighted}, "unweighted"),
        ({"weights": PAIR.weights, "unweighted": PAIR.unweighted}, "weights and unweighted"),
        ({"prior": PAIR.prior}, "prior"),
        ({"calibration": (PAIR.weighted, PAIR.labels)}, "calibration"),
        (
            {"rounds": 60, "learning_rate": 0.1, "max_delta_step": 1},
            "rounds, learning_rate and max_delta_step",
        ),
    ],
)
def test_what_is_missing_names_the_input_that_would_allow_it(more, gone):
    before = {missing.needs for missing in plain_diagnosis().missing}
    after = {m.needs for m in diagnose(PAIR.weighted, PAIR.labels, **QUICK, **more).missing}
    assert gone in before
    assert gone not in after


def test_without_calibration_rows_all_rows_are_evaluated_and_none_by_maps_that_saw_it():
    told = {"weights": PAIR.weights, **QUICK}
    found = diagnose(PAIR.weighted, PAIR.labels, unweighted=PAIR.unweighted, seed=7, **told)
    assert (found.n_calibration_rows, found.n_rows) == (900, 900)
    assert found.protocol == found.to_dict()["protocol"]["name"] == "cross-fitted"
    seen = diagnose(
        PAIR.weighted, PAIR.labels, seed=7, calibration=(PAIR.weighted, PAIR.labels), **told
    )
    for name in ("isotonic", "platt"):
        assert found.ladder.value(name) < seen.ladder.value(name)  # which has seen its rows
    assert (found.optimistic, seen.optimistic) == (True, False)
    assert found.drift.n_shared_rows == found.drift.share == 0


def test_what_a_model_gains_by_cross_fitting_is_not_called_healthy():
    # 300 rows: too few to find a repair on 30% of them, enough on four fifths.
    pair = synthetic_pair(300, 20, realized=0.6, prevalence=(0.02, 0.4), seed=3)
    found = diagnose(pair.weighted, pair.labels, k=5, n_replicates=200)
    assert found.verdict.code == "repairable_by_calibration"
    assert found.ladder.gain("chosen").low > 0


def test_files_give_the_numbers_of_arrays(tmp_path):
    np.save(tmp_path / "w.npy", PAIR.weighted)
    np.save(tmp_path / "u.npy", PAIR.unweighted)
    sp.save_npz(tmp_path / "y.npz", sp.csr_array(PAIR.labels.astype(np.int8)))
    told = {"weights": PAIR.weights, "label_names": PAIR.label_names, **QUICK}
    here = diagnose(PAIR.weighted, PAIR.labels, unweighted=PAIR.unweighted, **told)
    there = diagnose(tmp_path / "w.npy", tmp_path / "y.npz", unweighted=tmp_path / "u.npy", **told)
    assert here.to_dict() == there.to_dict()


def assert_near(one, other):
    """Two dictionaries with the same texts, counts and, to 1e-12, numbers."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_near(one[name], other[name])
    elif isinstance(one, list):
        for mine, theirs in zip(one, other, strict=True):
            assert_near(mine, theirs)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=0, abs=1e-12)
    else:
        assert one == other


def test_how_rows_are_cut_into_blocks_changes_nothing(monkeypatch):
    told = {"weights": PAIR.weights, "unweighted": PAIR.unweighted, **QUICK}
    whole = diagnose(PAIR.weighted, PAIR.labels, **told).to_dict()
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 37 * 20 * 4)
    cut = diagnose(PAIR.weighted, PAIR.labels, **told).to_dict()
    assert_near(cut["ladder"], whole["ladder"])
    assert cut["takeover"] == whole["takeover"]
    close = [part["labels"].pop("realized_shift") for part in (whole, cut)]
    assert np.allclose(*close, atol=1e-9)


def test_inputs_are_not_changed():
    arrays = [PAIR.weighted, PAIR.unweighted, PAIR.labels, PAIR.weights, PAIR.prior]
    kept = [array.copy() for array in arrays]
    diagnose(
        PAIR.weighted,
        PAIR.labels,
        unweighted=PAIR.unweighted,
        weights=PAIR.weights,
        prior=PAIR.prior,
        **QUICK,
    )
    assert all(np.array_equal(a, b) for a, b in zip(arrays, kept, strict=True))


def test_shifts_saturation_and_overlap_are_those_of_the_verbs(scene, arguments):
    found, told = scene("capped"), arguments("capped")
    assert np.allclose(
        found.shifts.realized, realized_shift(told["scores"], told["prior"]).shift, atol=1e-9
    )
    assert np.array_equal(found.shifts.direct, direct_shift(told["scores"], told["unweighted"]))
    assert found.saturation.share == saturation(told["scores"], k=7).share
    rankings = [oddslip.rank(told[name], k=7) for name in ("scores", "unweighted")]
    assert found.overlap.mean == overlap(*rankings).mean()


def test_no_label_shifts_beyond_the_budget_of_a_capped_arm(scene):
    shifts = scene("capped").shifts
    assert shifts.budget == pytest.approx(3.0)
    assert np.array_equal(shifts.unrealizable, np.abs(shifts.intended) > shifts.budget)
    assert np.abs(shifts.direct).max() <= 3.0 + 1e-4


def test_a_common_weight_leaves_what_if_and_raw_where_the_twin_is(scene):
    ladder = scene("common weight").ladder
    assert ladder.value("what-if") == ladder.value("unweighted")
    assert ladder.value("raw") == pytest.approx(ladder.value("unweighted"), abs=1e-3)


def test_one_number_as_weight_is_common_to_all_labels():
    found = diagnose(PAIR.weighted, PAIR.labels, weights=3.0, **QUICK)
    assert found.weighting == "common"
    assert points(found)["inversion"] == pytest.approx(points(found)["raw"], abs=1e-12)


def test_a_twin_may_be_a_panel_of_margins():
    told = {"weights": PAIR.weights, **QUICK}
    other = oddslip.Panel(PAIR.unweighted_margin, kind="margin")
    found = points(diagnose(PAIR.weighted, PAIR.labels, unweighted=other, **told))
    wanted = points(diagnose(PAIR.weighted, PAIR.labels, unweighted=PAIR.unweighted, **told))
    assert found == pytest.approx(wanted, abs=1e-3)


def test_the_json_is_complete_and_plain(scene, scenes):
    for name in scenes:
        told = json.loads(json.dumps(scene(name).to_dict(), allow_nan=False))
        assert told["schema"] == "oddslip.diagnosis/1"
        assert {len(column) for column in told["labels"].values()} == {40}
        assert [rung["rung"] for rung in told["ladder"]["rungs"]] == list(scene(name).ladder)
        assert all(finding["doc"].startswith("findings.md#") for finding in told["findings"])


def test_frames_hold_the_ladder_or_the_labels(scene):
    pytest.importorskip("pandas")
    found = scene("capped")
    assert len(found.to_frame("labels")) == 40
    assert set(found.to_frame().rung) == set(found.ladder)


def test_a_notebook_escapes_what_it_shows(scene):
    assert "<table>" in scene("capped")._repr_html_()


SCORES, LABELS = PAIR.weighted, PAIR.labels


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"labels": None}, "labels are needed"),
        ({"k": 0}, "k must be"),
        ({"k": 21}, "k must be"),
        ({"weights": [1.0]}, "weights must hold one number per label"),
        ({"weights": -1.0}, "weights must be positive"),
        ({"unweighted": SCORES[:5]}, "same shape"),
        ({"calibration": SCORES}, "calibration must be"),
        ({"calibration": (SCORES[:, :3], LABELS[:, :3])}, "calibration scores must have"),
        ({"calibration": (SCORES, None)}, "calibration needs labels"),
        ({"prior": [0.1]}, "prior must hold"),
        ({"prior": np.full(20, 2.0)}, "prior must be between"),
        ({"rounds": 10}, "step budget needs both"),
        ({"max_delta_step": 1.0}, "step budget needs both"),
        ({"n_replicates": -1}, "n_replicates must be"),
        ({"seed": -1}, "seed must be"),
        ({"labels": np.zeros_like(LABELS)}, "true label"),
        ({"kind": "odds"}, "kind must be"),
    ],
)
def test_bad_input_is_refused_in_one_line(told, message):
    arguments = {"scores": SCORES, "labels": LABELS, **QUICK} | told
    with pytest.raises(InvalidInput, match=message) as error:
        diagnose(**arguments)
    assert "\n" not in str(error.value)


def test_one_row_can_not_be_split():
    with pytest.raises(InvalidInput, match="at least 2 rows"):
        diagnose(SCORES[:1], np.ones((1, 20), bool), **QUICK)


def test_checks_and_verdict_read_measurements_that_hold_neither_findings_nor_a_verdict(monkeypatch):
    seen = []
    module = sys.modules["oddslip.diagnosis.diagnose"]

    def look(measured):
        seen.append(measured)

    def judge(measured):
        seen.append(measured)
        return Verdict("healthy", "Healthy.")

    monkeypatch.setattr(module, "CHECKS", (look,))
    monkeypatch.setattr(module, "judge", judge)
    found = diagnose(PAIR.weighted, PAIR.labels, **QUICK)
    assert len(seen) == 2
    for measured in seen:
        assert not hasattr(measured, "verdict")
        assert not hasattr(measured, "findings")
        assert measured.ladder is found.ladder


def test_a_diagnosis_can_not_be_made_without_its_verdict():
    found = diagnose(PAIR.weighted, PAIR.labels, **QUICK)
    known = {field.name: getattr(found, field.name) for field in fields(found)}
    with pytest.raises(TypeError, match="verdict"):
        type(found)(**{name: value for name, value in known.items() if name != "verdict"})


def test_a_diagnosis_on_a_terminal_begins_with_its_verdict():
    found = diagnose(PAIR.weighted, PAIR.labels, **QUICK)
    assert repr(found).startswith(f"Diagnosis({found.verdict.code}")


def test_what_the_inversion_leaves_is_measured_beside_its_bounds():
    pair = synthetic_pair(300, 8, realized=0.5, seed=2)
    found = diagnose(
        pair.weighted,
        pair.labels,
        k=3,
        weights=pair.weights,
        unweighted=pair.unweighted,
        rounds=60,
        learning_rate=0.05,
        max_delta_step=0.3,
        n_replicates=0,
    )
    left = residual(pair.weighted, pair.unweighted, pair.weights)
    told = found.to_dict()["shifts"]
    assert told["residual"] == left.to_dict()
    assert told["inversion"] == inversion_bounds(pair.weights, found.shifts.budget).to_dict()
    np.testing.assert_allclose(found.label_columns()["residual"], left.mean, rtol=0, atol=1e-12)
    sentences = " ".join(tell_residual(found.shifts))
    assert "What inverting by ln w leaves" in sentences
    assert "2 T eta c" in sentences
    alone = diagnose(pair.weighted, pair.labels, k=3, weights=pair.weights, n_replicates=0)
    assert alone.shifts.residual is None
