"""Rows that have only some labels: every share of a label is over the rows that have it."""

import numpy as np
import pytest
from scipy import sparse

import oddslip
from oddslip.repairs.fingerprint import take_fingerprint
from oddslip.serving.monitor import compare_with_calibration
from oddslip.serving.performance import perform, rank_by_prior
from oddslip.sources import open_source
from oddslip.sources.open import open_rows
from oddslip.tallies.logodds_histogram import edges_of

K, N_LABELS, N_ROWS = 3, 12, 4000
PRIOR = np.linspace(0.02, 0.4, N_LABELS)
FORMS = ("exclude", "nan", "sparse")


def draw(seed, candidates, shift=0.0):
    """Scores that are right at a shift of 0, true labels, and cells that are no candidates."""
    rng = np.random.default_rng(seed)
    margin = np.log(PRIOR / (1 - PRIOR)) + 1.2 * rng.standard_normal((N_ROWS, N_LABELS))
    true = rng.random(margin.shape) < 1 / (1 + np.exp(-margin))
    absent = rng.random(margin.shape) >= candidates
    return 1 / (1 + np.exp(-margin - shift)), true, absent


def arguments_as(form, scores, absent):
    if form == "exclude":
        return {"scores": scores, "exclude": sparse.csr_array(absent)}
    if form == "nan":
        return {"scores": np.where(absent, np.nan, scores), "nan": "absent"}
    cells = scores[~absent], np.nonzero(~absent)
    return {"scores": sparse.csr_array(cells, shape=scores.shape)}


@pytest.fixture(scope="module")
def repair():
    scores, true, absent = draw(1, 0.6)
    chosen = oddslip.Repair(k=K, rule="isotonic-0")
    return chosen.fit(labels=true, **arguments_as("nan", scores, absent))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_a_fingerprint_counts_the_cells_that_are_there(form, threads):
    scores, _, absent = draw(2, 0.3)
    rows = open_rows(**arguments_as(form, scores, absent), threads=threads)
    fingerprint = take_fingerprint(rows, None, K)
    edges = edges_of("probability")
    log_odds = np.log(scores / (1 - scores))
    for label in range(N_LABELS):
        there = log_odds[~absent[:, label], label]
        expected, _ = np.histogram(there, edges)
        # A cell within rounding of an edge may fall on its other side.
        assert np.abs(np.cumsum(fingerprint.counts[label].astype(int) - expected)).max() <= 1
    assert np.array_equal(fingerprint.n_cells, (~absent).sum(axis=0))
    pairs = [n * (n - 1) for n in fingerprint.counts.astype(float)]
    n = fingerprint.n_cells
    expected = n * (n - 1) / np.sum(pairs, axis=1)
    assert np.allclose(fingerprint.distinct, np.minimum(expected, fingerprint.counts.shape[1]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("candidates", [0.6, 0.25])
def test_fewer_candidates_of_the_same_scores_are_no_drift(repair, form, candidates):
    scores, true, absent = draw(3, candidates)
    result = oddslip.check(
        repair, labels=true, **arguments_as(form, scores, absent), n_replicates=100
    )
    quiet = {"OS501", "OS503", "OS504", "OS505", "OS509", "OS201", "OS406"}
    assert not quiet & {finding.code for finding in result.findings}
    assert quiet <= set(result.looked_for)


def test_candidates_whose_scores_moved_are_found(repair):
    scores, _, absent = draw(4, 0.25, shift=1.0)
    result = oddslip.check(repair, **arguments_as("sparse", scores, absent))
    assert {"OS501", "OS503"} <= set(result.failed)


def test_labels_more_often_true_among_their_candidates_drift(repair):
    scores, true, absent = draw(5, 0.25)
    often = true | (np.random.default_rng(6).random(true.shape) < 0.3)
    result = oddslip.check(
        repair, labels=often, **arguments_as("nan", scores, absent), n_replicates=100
    )
    assert "OS406" in result.failed


def test_shares_of_a_label_are_over_the_rows_that_have_it(repair):
    scores, _, absent = draw(7, 0.25)
    arguments = arguments_as("nan", scores, absent)
    source = open_source(**arguments)
    now = take_fingerprint(source, repair.fitted_.maps, K)
    calibrated = repair.fitted_.fingerprint
    comparison = compare_with_calibration(
        calibrated, now, repair.fitted_.maps, repair.fitted_.record.prior
    )
    ranking = repair.rank(**arguments)
    slots = np.array([(ranking == label).sum() for label in range(N_LABELS)])
    assert np.allclose(comparison.label_columns()["slots_now"], slots / (~absent).sum(axis=0))
    cut, before, after = comparison.furthest
    log_odds = np.where(absent, np.nan, np.log(scores / (1 - scores)))
    above = np.nanmean(np.where(absent, np.nan, log_odds >= cut), axis=0)
    assert np.allclose(after, above, atol=0.01)
    assert np.abs(after - before).max() < 0.1


def test_popularity_is_of_the_labels_that_a_row_has(repair):
    scores, true, absent = draw(8, 0.4)
    arguments = arguments_as("nan", scores, absent)
    source = open_source(labels=true, **arguments)
    popular = np.where(absent, np.nan, np.tile(PRIOR, (N_ROWS, 1)))
    expected = oddslip.rank(popular, k=K, nan="absent")
    assert np.array_equal(rank_by_prior(source, PRIOR, K), expected)
    performance = perform(source, repair.rank(**arguments), PRIOR, None, n_replicates=0)
    levels = [
        oddslip.evaluate(each, true, k=K, nan="absent", n_replicates=0)["map"].value
        for each in (popular, repair.transform(arguments.pop("scores"), **arguments))
    ]
    assert performance.lead.value == pytest.approx(levels[0] - levels[1], abs=1e-12)


def test_a_label_that_no_row_has_any_more_is_no_fault(repair):
    scores, _, absent = draw(9, 0.6)
    absent[:, 0] = True
    result = oddslip.check(repair, **arguments_as("nan", scores, absent))
    assert not result.labels["scores_moved"][0]
    assert not {"OS501", "OS503", "OS504"} & set(result.failed)
