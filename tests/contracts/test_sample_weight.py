"""Rows of unequal weight, in fits, in the choice of a repair, and in metrics."""

import json

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from tests.support.trials import try_candidates

import oddslip
from oddslip import InvalidInput, Repair
from oddslip.calibrators import Isotonic, Platt, build_calibrator
from oddslip.cli.app import main
from oddslip.core.panel import read_sample_weight
from oddslip.core.passes import run
from oddslip.datasets import synthetic_pair
from oddslip.selection.candidates import read_candidate
from oddslip.selection.folds import assign_folds
from oddslip.sources import open_source
from oddslip.sources.views import RowSubset, WeightedSource

PAIR = synthetic_pair(3000, 25, prevalence=(0.003, 0.2), noise=0.3, saturate=0.05, n_dead=2, seed=3)
N = 900
LABELS = PAIR.labels[:N]
TIMES = np.random.default_rng(5).integers(1, 4, N)
UNEQUAL = np.random.default_rng(6).gamma(2.0, 1.0, N) + 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_isotonic_maps_are_those_of_scikit_learn(dtype):
    scores = PAIR.weighted[:N].astype(dtype)
    fitted = Isotonic().fit(scores, LABELS, sample_weight=UNEQUAL).fitted_
    found = fitted.transform(scores, dtype=np.float64)
    for label in np.flatnonzero(LABELS.sum(axis=0)):
        peer = IsotonicRegression(out_of_bounds="clip")
        peer.fit(scores[:, label].astype(float), LABELS[:, label], sample_weight=UNEQUAL)
        wanted = peer.predict(scores[:, label].astype(float))
        np.testing.assert_allclose(found[:, label], wanted, atol=1e-8)


def test_platt_maps_are_those_of_scikit_learn():
    margins = PAIR.weighted_margin[:N]
    platt = Platt(kind="margin").fit(margins, LABELS, sample_weight=UNEQUAL)
    found = platt.transform(margins)
    label = int(LABELS.sum(axis=0).argmax())
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    peer.fit(margins[:, [label]], LABELS[:, label], sample_weight=UNEQUAL)
    wanted = peer.predict_proba(margins[:, [label]])[:, 1]
    np.testing.assert_allclose(found[:, label], wanted, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["isotonic-0", "pooled", "offset", "platt", "hierarchical", "raw", "inversion"]
)
def test_a_candidate_without_a_fold_is_the_calibrator_on_the_other_weighed_rows(name):
    whole = open_source(PAIR.weighted_margin[:N], LABELS, kind="margin")
    source = WeightedSource(whole, read_sample_weight(UNEQUAL, N))
    candidate = read_candidate(name)
    raw = read_candidate("raw")
    tried = {raw: None, candidate: None}
    assignment = assign_folds(source, 5)
    trials = try_candidates(source, tuple(tried), k=7, folds=assignment, weights="balanced")
    maps, record = trials.fits.fit(candidate, 0)
    folds = assignment[0].of_keys(source.row_keys())
    part = RowSubset(source, folds != 0, source.positives())
    calibrator = build_calibrator(
        candidate.form, dead="prior", prior=None, weights="balanced", kind="margin"
    )
    wanted, own_record = run(part, calibrator._map_labels(part))
    panel = oddslip.Panel(PAIR.weighted_margin[N:1200], kind="margin")
    np.testing.assert_allclose(maps.values(panel), wanted.values(panel), rtol=1e-4, atol=1e-6)
    if name != "pooled":  # whose prior is told and not used
        np.testing.assert_allclose(record.prior, own_record.prior, rtol=1e-9)


def test_a_repair_is_chosen_by_the_rows_that_count():
    """Half of the rows were scored by a healthy model, half by a weighted one."""
    n = 1500
    scores = np.concatenate([PAIR.unweighted[:n], PAIR.weighted[n : 2 * n]])
    labels = PAIR.labels[: 2 * n]
    healthy = np.repeat([1.0, 1e-6], n)
    kept = Repair(k=7, rule="auto").fit(scores, labels, sample_weight=healthy)
    mended = Repair(k=7, rule="auto").fit(scores, labels, sample_weight=healthy[::-1].copy())

    def gain(repair):
        return max(line.difference.value for line in repair.table_.lines)

    assert gain(mended) > gain(kept) + 0.05


def test_evaluations_are_weighted_means_of_rows():
    scores = PAIR.weighted[:N]
    plain = oddslip.evaluate(scores, LABELS, k=7)
    weighed = oddslip.evaluate(scores, LABELS, k=7, sample_weight=UNEQUAL)
    for metric in ("map", "precision", "recall", "ndcg", "hit_rate"):
        wanted = np.average(plain.per_row(metric), weights=UNEQUAL[plain.row_numbers])
        assert weighed[metric].value == pytest.approx(wanted, abs=1e-12)
        assert weighed[metric].low < weighed[metric].value < weighed[metric].high
    repeated = oddslip.evaluate(
        scores.repeat(TIMES, axis=0), LABELS.repeat(TIMES, axis=0), k=7, propensities=np.ones(25)
    )
    by_weight = oddslip.evaluate(scores, LABELS, k=7, sample_weight=TIMES, propensities=np.ones(25))
    for metric in plain.metrics:
        assert by_weight[metric].value == pytest.approx(repeated[metric].value, abs=1e-12)
    assert by_weight.map_worst == pytest.approx(repeated.map_worst, abs=1e-12)


def test_weighed_evaluations_compare_only_with_the_same_weights():
    first = oddslip.evaluate(PAIR.weighted[:N], LABELS, k=7, sample_weight=UNEQUAL)
    second = oddslip.evaluate(PAIR.unweighted[:N], LABELS, k=7, sample_weight=UNEQUAL)
    difference = second.compare(first)["map"]
    assert difference.value == pytest.approx(second["map"].value - first["map"].value)
    assert difference.low < difference.value < difference.high
    with pytest.raises(InvalidInput, match="same sample_weight"):
        first.compare(oddslip.evaluate(PAIR.weighted[:N], LABELS, k=7))


WRONG = {
    "too few": (np.ones(N - 1), "must hold one number per row, n_rows=900"),
    "a table": (np.ones((N, 2)), "must hold one number per row"),
    "zero": (np.r_[0.0, np.ones(N - 1)], "must be positive and finite, got 0 at row 0"),
    "negative": (np.r_[1.0, -2.0, np.ones(N - 2)], "got -2 at row 1"),
    "NaN": (np.r_[np.nan, np.ones(N - 1)], "got nan at row 0"),
    "infinite": (np.r_[np.inf, np.ones(N - 1)], "got inf at row 0"),
    "text": (["heavy"] * N, "sample_weight must be numbers"),
    "too far apart": (np.r_[1e300, np.ones(N - 1)], "must not differ by more than"),
    "too large together": (np.full(N, 1e308), "must not differ by more than"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_weights_that_can_not_be_are_refused_in_one_line(wrong):
    given, line = WRONG[wrong]
    with pytest.raises(InvalidInput, match=line):
        Isotonic().fit(PAIR.weighted[:N], LABELS, sample_weight=given)
    with pytest.raises(InvalidInput, match=line):
        oddslip.evaluate(PAIR.weighted[:N], LABELS, k=7, sample_weight=given)


@pytest.mark.parametrize("option", [{"rows": "all"}, {"auc": True}])
def test_evaluations_refuse_what_weights_do_not_go_with(option):
    with pytest.raises(InvalidInput, match="sample_weight goes with neither"):
        oddslip.evaluate(PAIR.weighted[:N], LABELS, k=7, sample_weight=TIMES, **option)


def test_the_command_line_takes_weights_from_a_file(tmp_path, capsys):
    np.save(tmp_path / "scores.npy", PAIR.weighted[:N])
    np.save(tmp_path / "labels.npy", LABELS)
    np.savetxt(tmp_path / "times.txt", UNEQUAL)
    files = [str(tmp_path / name) for name in ("scores.npy", "labels.npy")]
    weighed = ["--sample-weight", str(tmp_path / "times.txt")]
    assert main(["evaluate", *files, "-k", "7", *weighed, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)["metrics"]["map"]["value"]
    read = np.loadtxt(tmp_path / "times.txt")
    evaluation = oddslip.evaluate(PAIR.weighted[:N], LABELS, k=7, sample_weight=read)
    assert value == evaluation["map"].value
    saved = tmp_path / "repair.oddslip"
    assert main(["fit", *files, "--calibrator", "platt", *weighed, "-o", str(saved)]) == 0
    wanted = Platt().fit(PAIR.weighted[:N], LABELS, sample_weight=read)
    np.testing.assert_array_equal(oddslip.load_repair(saved).maps.a, wanted.fitted_.maps.a)
    (tmp_path / "times.txt").write_text("heavy")
    assert main(["evaluate", *files, "-k", "7", *weighed]) == 2
    assert "cannot be read as one number per row" in capsys.readouterr().err


def test_a_metric_that_knows_no_weights_refuses_them():
    from oddslip.metrics import precision_at_k, psp_at_k

    for metric in (precision_at_k, psp_at_k):
        with pytest.raises(TypeError, match="sample_weight"):
            metric(PAIR.weighted[:N], LABELS, k=3, sample_weight=UNEQUAL)
