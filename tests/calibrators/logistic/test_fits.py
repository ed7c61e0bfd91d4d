import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from oddslip.calibrators.logistic.fits import fit_affine, fit_beta
from oddslip.calibrators.logistic.moments import Cells
from oddslip.core.passes import run
from oddslip.errors import InvalidInput
from oddslip.kernels.logistic import add_positives
from oddslip.sources import base as source_module
from oddslip.sources import open_source
from oddslip.sources.open import open_rows

sys.path.insert(0, str(Path(__file__).parent))
from oracles import (
    FITTED,
    OFFSET,
    PLATT,
    TEMPERATURE,
    best_beta,
    best_of,
    features_of,
    log_odds_of,
    loss_of,
    make_panel,
)
from tests.support.passes import plain

fit_affine, fit_beta = plain(fit_affine), plain(fit_beta)

CASES = [(kind, dtype) for kind in ("margin", "probability") for dtype in (np.float32, np.float64)]


# --- arithmetic ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["margin", "probability"])
def test_the_kernels_logarithms_agree_with_scipys(kind):
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(0, 10, 3000), np.linspace(-1e-3, 1e-3, 101), [-700, 700, 0, 37]])
    scores = z if kind == "margin" else np.concatenate([expit(z), [0, 1, 1e-13, 1e-11, 0.5]])
    row = scores[None]
    n = row.shape[1]
    sums = np.zeros((4, n))
    add_positives(
        row,
        kind == "probability",
        np.array([0, n]),
        np.arange(n, dtype=np.int32),
        np.zeros((3, n)),
        sums,
    )
    np.testing.assert_allclose(sums[1], log_odds_of(scores, kind), rtol=1e-14, atol=4e-16)
    expected = features_of(scores, kind)
    far = np.abs(log_odds_of(scores, kind)) < 690
    np.testing.assert_allclose(sums[2][far], expected[far, 0], rtol=1e-14, atol=0)
    np.testing.assert_allclose(sums[3][far], expected[far, 1], rtol=1e-14, atol=0)


def test_the_summary_keeps_count_and_three_moments():
    scores, labels = make_panel(3, n_rows=5000, n_labels=3)
    source = open_source(scores, labels, kind="margin")
    cells = run(source, Cells.read(source))
    run(source, cells.summarise())
    for power in range(4):
        expected = (scores**power).mean(axis=0)
        moment = (cells.points**power * cells.weights).sum(axis=1) / 5000
        np.testing.assert_allclose(moment, expected, rtol=1e-6)
    assert (cells.weights.sum(axis=1) == 5000).all()


# --- against other solvers ----------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "dtype"), CASES)
@pytest.mark.parametrize("model", [OFFSET, PLATT, TEMPERATURE], ids=["offset", "platt", "temp"])
def test_affine_fits_agree_with_scipy(model, kind, dtype):
    scores, labels = make_panel(1, dtype=dtype, kind=kind)
    fit = fit_affine(open_source(scores, labels, kind=kind), **model)
    assert (fit.status == FITTED).all()
    z = log_odds_of(scores, kind)
    for j in range(z.shape[1]):
        columns = [z[:, j]] * model["slope"] + [np.ones(len(z))] * model["intercept"]
        theta, loss = best_of(
            np.column_stack(columns), labels[:, j], 0 if model["slope"] else z[:, j]
        )
        expected = [theta[0] if model["slope"] else 1, theta[-1] if model["intercept"] else 0]
        np.testing.assert_allclose([fit.a[j], fit.b[j]], expected, atol=1e-8)
        assert abs(loss_of(fit.a[j] * z[:, j] + fit.b[j], labels[:, j]) - loss) < 1e-8


def test_platt_agrees_with_scikit_learn():
    scores, labels = make_panel(2, n_rows=1500)
    fit = fit_affine(open_source(scores, labels, kind="margin"), **PLATT)
    for j in range(scores.shape[1]):
        oracle = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky", max_iter=1000)
        oracle.fit(scores[:, [j]], labels[:, j])
        np.testing.assert_allclose(fit.a[j], oracle.coef_[0, 0], atol=1e-6)
        np.testing.assert_allclose(fit.b[j], oracle.intercept_[0], atol=1e-6)


@pytest.mark.parametrize("model", [OFFSET, PLATT, TEMPERATURE], ids=["offset", "platt", "temp"])
def test_a_shared_fit_is_the_fit_of_all_cells_as_one_label(model):
    scores, labels = make_panel(4)
    scores[:, 2] *= 3
    shared = fit_affine(open_source(scores, labels, kind="margin"), shared=True, **model)
    one = open_source(scores.reshape(-1, 1), labels.reshape(-1, 1), kind="margin")
    alone = fit_affine(one, **model)
    np.testing.assert_allclose(shared.a, alone.a[0], atol=1e-10)
    np.testing.assert_allclose(shared.b, alone.b[0], atol=1e-10)
    assert shared.a.shape == (5,)


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_beta_agrees_with_scipy_on_the_best_face(kind, dtype):
    rng = np.random.default_rng(5)
    scores, _ = make_panel(5, n_rows=600, n_labels=8, dtype=dtype, kind=kind)
    u = features_of(scores, kind)
    # Truths with both coefficients, one, the other, and with one that wants to be negative.
    a = np.array([1.0, 0.3, 0.0, 1.2, -0.5, 1.5, 0.8, 0.1])
    b = np.array([0.4, 1.2, 1.0, 0.0, 1.5, -0.6, 0.8, 0.1])
    labels = rng.random(scores.shape) < expit(u[..., 0] * a + u[..., 1] * b - 0.3)
    fit = fit_beta(open_source(scores, labels, kind=kind))
    assert (fit.a >= 0).all()
    assert (fit.b >= 0).all()
    for j in range(8):
        theta, loss = best_beta(u[:, j], labels[:, j])
        np.testing.assert_allclose([fit.a[j], fit.b[j], fit.c[j]], theta, atol=1e-6)
        ours = fit.a[j] * u[:, j, 0] + fit.b[j] * u[:, j, 1] + fit.c[j]
        assert abs(loss_of(ours, labels[:, j]) - loss) < 1e-8
    assert (fit.a == 0).any()
    assert (fit.b == 0).any()


def test_beta_agrees_with_betacal():
    betacal = pytest.importorskip("betacal")
    scores, labels = make_panel(6, n_rows=2000, n_labels=3, kind="probability", a=0.8)
    fit = fit_beta(open_source(scores, labels))
    u = features_of(scores, "probability")
    for j in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            oracle = betacal.BetaCalibration("abm").fit(scores[:, [j]], labels[:, j])
        a, b, _ = oracle.calibrator_.map_
        theirs = logit(oracle.predict(scores[:, j]))
        ours = fit.a[j] * u[:, j, 0] + fit.b[j] * u[:, j, 1] + fit.c[j]
        np.testing.assert_allclose([fit.a[j], fit.b[j]], [a, b], atol=2e-2)
        np.testing.assert_allclose(expit(ours), expit(theirs), atol=1e-3)
        # Its solver stops early; ours must not be worse.
        assert loss_of(ours, labels[:, j]) <= loss_of(theirs, labels[:, j]) + 1e-8


# --- how rows are cut ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["margin", "probability"])
@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_threads_and_order_of_rows_do_not_matter(monkeypatch, kind, threads):
    scores, labels = make_panel(7, n_rows=700, n_labels=6, dtype=np.float32, kind=kind)
    labels[:, 4] = False
    whole = open_rows(scores, labels, kind=kind, threads=1)
    fits = [
        *(fit_affine(whole, **model) for model in (OFFSET, PLATT, TEMPERATURE)),
        fit_beta(whole),
    ]
    monkeypatch.setattr(source_module, "BLOCK_BYTES", 6 * 4 * 17)
    order = np.random.default_rng(0).permutation(700)
    turned = np.asfortranarray(scores[order]), labels[order]
    cut = open_rows(*turned, kind=kind, threads=threads)
    others = [
        *(fit_affine(cut, **model) for model in (OFFSET, PLATT, TEMPERATURE)),
        fit_beta(cut),
    ]
    for one, other in zip(fits, others, strict=True):
        for name in ("a", "b", "c"):
            if hasattr(one, name):
                np.testing.assert_allclose(getattr(other, name), getattr(one, name), atol=1e-10)
        np.testing.assert_array_equal(one.status, other.status)
        np.testing.assert_array_equal(one.label_totals.n_positives, labels.sum(axis=0))


def test_three_passes_are_enough_where_scores_are_smooth():
    scores, labels = make_panel(8, n_rows=5000, n_labels=20)
    source = open_source(scores, labels, kind="margin")
    for model in (OFFSET, PLATT, TEMPERATURE):
        assert fit_affine(source, **model).n_passes <= 4
    assert fit_beta(source).n_passes <= 5


def test_scores_and_labels_are_left_as_they_were():
    scores, labels = make_panel(9)
    before = scores.copy(), labels.copy()
    scores.flags.writeable = labels.flags.writeable = False
    fit_affine(open_source(scores, labels, kind="margin"), **PLATT)
    np.testing.assert_array_equal(scores, before[0])
    np.testing.assert_array_equal(labels, before[1])


def test_more_labels_than_a_strip_are_all_fitted():
    scores, labels = make_panel(10, n_rows=120, n_labels=600)
    labels[:3], labels[3:6] = True, False
    fit = fit_affine(open_source(scores, labels, kind="margin"), **PLATT)
    for j in (0, 255, 256, 511, 512, 599):
        one = fit_affine(open_source(scores[:, [j]], labels[:, [j]], kind="margin"), **PLATT)
        np.testing.assert_allclose([fit.a[j], fit.b[j]], [one.a[0], one.b[0]], atol=1e-10)


# --- what is refused ----------------------------------------------------------------------------


def test_fitting_nothing_is_refused():
    with pytest.raises(InvalidInput, match="slope or intercept"):
        fit_affine(open_source([[0.1]], [[1]]), slope=False, intercept=False)


def test_scores_without_labels_are_refused():
    with pytest.raises(InvalidInput, match="labels are needed"):
        fit_affine(open_source([[0.1]]), **PLATT)


@pytest.mark.parametrize(
    ("cell", "kind", "words"),
    [
        (np.nan, "margin", "NaN"),
        (np.inf, "margin", "infinite"),
        (1.5, "probability", "between 0 and 1"),
        (-0.1, "probability", "between 0 and 1"),
        (1e200, "margin", "within 1e"),
    ],
)
def test_cells_that_are_not_scores_are_refused(cell, kind, words):
    scores = np.full((5, 3), 0.5)
    scores[3, 1] = cell
    for labels in (np.zeros((5, 3), int), np.ones((5, 3), int)):
        with pytest.raises(InvalidInput, match=words):
            fit_beta(open_source(scores, labels, kind=kind))
