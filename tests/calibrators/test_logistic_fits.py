import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.linear_model import LogisticRegression

from oddslip.calibrators.logistic_fits import Status, fit_affine, fit_beta
from oddslip.calibrators.logistic_models import Cells
from oddslip.errors import InvalidInput
from oddslip.kernels.logistic_sums import add_positives
from oddslip.sources import open_source
from oddslip.sources import source as source_module

OFFSET = {"slope": False, "intercept": True}
PLATT = {"slope": True, "intercept": True}
TEMPERATURE = {"slope": True, "intercept": False}
FITTED = int(Status.FITTED)


def make_panel(seed=0, n_rows=400, n_labels=5, dtype=np.float64, kind="margin", a=0.6, b=-1.0):
    """Margins and labels that a logistic model made, as scores of the kind."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-1, 2, (n_rows, n_labels))
    labels = rng.random((n_rows, n_labels)) < expit(a * z + b)
    scores = (z if kind == "margin" else expit(z)).astype(dtype)
    return scores, labels


def log_odds_of(scores, kind):
    scores = np.asarray(scores, np.float64)
    return scores if kind == "margin" else logit(np.clip(scores, 1e-12, 1 - 1e-12))


def features_of(scores, kind):
    """ln s and -ln(1 - s)."""
    scores = np.asarray(scores, np.float64)
    if kind == "margin":
        return np.stack([log_expit(scores), -log_expit(-scores)], axis=-1)
    s = np.clip(scores, 1e-12, 1 - 1e-12)
    return np.stack([np.log(s), -np.log1p(-s)], axis=-1)


def loss_of(logits, y):
    return -np.sum(np.where(y, log_expit(logits), log_expit(-logits)))


def best_of(x, y, fixed=0.0):
    """Unconstrained optimum of a logistic loss with these columns, by scipy."""

    def loss(theta):
        return loss_of(x @ theta + fixed, y)

    def gradient(theta):
        return x.T @ (expit(x @ theta + fixed) - y)

    def curvature(theta):
        p = expit(x @ theta + fixed)
        return x.T @ (x * (p * (1 - p))[:, None])

    found = minimize(
        loss, np.zeros(x.shape[1]), jac=gradient, hess=curvature, method="trust-exact",
        options={"gtol": 1e-10, "maxiter": 500},
    )  # fmt: skip
    theta = found.x
    for _ in range(3):  # the last digits
        theta = theta - np.linalg.solve(curvature(theta), gradient(theta))
    return theta, loss(theta)


def best_beta(u, y):
    """Best of the optima on every face a = 0 or free, b = 0 or free that is feasible."""
    best = None
    for used in product([False, True], repeat=2):
        x = np.column_stack([u[:, list(used)], np.ones(len(y))])
        theta, loss = best_of(x, y)
        if (theta[:-1] >= 0).all() and (best is None or loss < best[1]):
            full = np.zeros(3)
            full[[*np.flatnonzero(used), 2]] = theta
            best = full, loss
    return best


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
        row, kind == "probability", np.array([0, n]), np.arange(n, dtype=np.int32),
        np.zeros((3, n)), sums,
    )  # fmt: skip
    np.testing.assert_allclose(sums[1], log_odds_of(scores, kind), rtol=1e-14, atol=4e-16)
    expected = features_of(scores, kind)
    far = np.abs(log_odds_of(scores, kind)) < 690
    np.testing.assert_allclose(sums[2][far], expected[far, 0], rtol=1e-14, atol=0)
    np.testing.assert_allclose(sums[3][far], expected[far, 1], rtol=1e-14, atol=0)


def test_the_summary_keeps_count_and_three_moments():
    scores, labels = make_panel(3, n_rows=5000, n_labels=3)
    cells = Cells(open_source(scores, labels, kind="margin"), False, 1)
    cells.summarise()
    for power in range(4):
        expected = (scores**power).mean(axis=0)
        found = (cells.points**power * cells.weights).sum(axis=1) / 5000
        np.testing.assert_allclose(found, expected, rtol=1e-6)
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
    whole = open_source(scores, labels, kind=kind)
    fits = [
        *(fit_affine(whole, **model, threads=1) for model in (OFFSET, PLATT, TEMPERATURE)),
        fit_beta(whole, threads=1),
    ]
    monkeypatch.setattr(source_module, "BLOCK_BYTES", 6 * 4 * 17)
    order = np.random.default_rng(0).permutation(700)
    cut = open_source(np.asfortranarray(scores[order]), labels[order], kind=kind)
    others = [
        *(fit_affine(cut, **model, threads=threads) for model in (OFFSET, PLATT, TEMPERATURE)),
        fit_beta(cut, threads=threads),
    ]
    for one, other in zip(fits, others, strict=True):
        for name in ("a", "b", "c"):
            if hasattr(one, name):
                np.testing.assert_allclose(getattr(other, name), getattr(one, name), atol=1e-10)
        np.testing.assert_array_equal(one.status, other.status)
        np.testing.assert_array_equal(one.n_positives, labels.sum(axis=0))


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


# --- labels that can not be fitted --------------------------------------------------------------


def statuses_and_fits(columns, kind="margin"):
    scores = np.column_stack([np.asarray(column[0], float) for column in columns])
    labels = np.column_stack([column[1] for column in columns])
    source = open_source(scores, labels, kind=kind)
    return fit_affine(source, **PLATT), fit_beta(source), fit_affine(source, **OFFSET)


def test_a_label_of_one_class_keeps_its_score():
    z = [0.3, -1.0, 2.0, 0.1]
    platt, beta, offset = statuses_and_fits(
        [(z, [0, 0, 0, 0]), (z, [1, 1, 1, 1]), (z, [1, 0, 0, 1])]
    )
    for fit in (platt, beta, offset):
        assert list(fit.status[:2]) == [Status.NO_POSITIVE, Status.NO_NEGATIVE]
        assert (fit.a[:2] == 1).all()
    assert (platt.b[:2] == 0).all()
    assert (offset.b[:2] == 0).all()
    assert (beta.b[:2] == 1).all()
    assert (beta.c[:2] == 0).all()


def test_nothing_but_one_class_takes_one_pass():
    fit = fit_affine(open_source([[0.1, 0.2], [0.3, 0.4]], [[0, 1], [0, 1]]), **PLATT)
    assert fit.n_passes == 1
    assert list(fit.status) == [Status.NO_POSITIVE, Status.NO_NEGATIVE]


def test_a_separable_label_keeps_slope_one_and_gets_the_offset():
    parted = ([-2.0, -1.0, 0.5, 3.0], [0, 0, 1, 1])
    touching = ([-2.0, 0.5, 0.5, 3.0], [0, 0, 1, 1])
    constant = ([0.7] * 4, [0, 1, 0, 0])
    platt, beta, offset = statuses_and_fits([parted, touching, constant])
    assert (platt.status == Status.SEPARABLE).all()
    assert (beta.status == Status.SEPARABLE).all()
    assert (offset.status == FITTED).all()
    assert (platt.a == 1).all()
    assert (beta.a == 1).all()
    assert (beta.b == 1).all()
    np.testing.assert_allclose(platt.b, offset.b, atol=1e-10)
    np.testing.assert_allclose(beta.c, offset.b, atol=1e-10)
    np.testing.assert_allclose(offset.b[2], logit(1 / 4) - 0.7, atol=1e-12)


def test_a_label_whose_scores_fall_gets_its_prevalence():
    falling = ([-2.0, -1.0, 0.5, 3.0, 1.0], [1, 0, 1, 0, 0])
    parted_the_wrong_way = ([-2.0, -1.0, 0.5, 3.0, 1.0], [1, 1, 0, 0, 0])
    platt, beta, _ = statuses_and_fits([falling, parted_the_wrong_way])
    assert (platt.status == Status.NOT_INCREASING).all()
    assert (beta.status == Status.NOT_INCREASING).all()
    assert (platt.a == 0).all()
    assert (beta.a == 0).all()
    assert (beta.b == 0).all()
    np.testing.assert_allclose(platt.b, logit(0.4), atol=1e-12)
    np.testing.assert_allclose(beta.c, logit(0.4), atol=1e-12)


def test_temperature_says_where_zero_separates_and_where_scores_are_inflated():
    scores = np.array([[-1.0, 1.0, 0.0], [-2.0, 2.0, 0.0], [3.0, 3.0, 0.0], [0.0, 9.0, 0.0]])
    labels = [[0, 0, 1], [0, 0, 0], [1, 1, 0], [0, 0, 0]]
    fit = fit_affine(open_source(scores, labels, kind="margin"), **TEMPERATURE)
    assert list(fit.status) == [Status.SEPARABLE, Status.NOT_INCREASING, Status.SEPARABLE]
    np.testing.assert_allclose(fit.a, [1, 0, 1])
    np.testing.assert_allclose(fit.b, [0, logit(0.25), 0])


def test_dead_labels_take_the_shared_temperature_and_say_so():
    scores, labels = make_panel(11)
    labels[:, 1] = False
    fit = fit_affine(open_source(scores, labels, kind="margin"), shared=True, **TEMPERATURE)
    assert fit.status[1] == Status.NO_POSITIVE
    assert (np.delete(fit.status, 1) == FITTED).all()
    assert np.unique(fit.a).size == 1


def test_one_positive_is_enough():
    scores, labels = make_panel(12, n_rows=300, n_labels=2)
    labels[:] = False
    labels[np.argsort(scores[:, 0])[-3], 0] = True
    labels[np.argsort(scores[:, 1])[150], 1] = True
    fit = fit_affine(open_source(scores, labels, kind="margin"), **PLATT)
    for j in range(2):
        x = np.column_stack([scores[:, j], np.ones(300)])
        theta, _ = best_of(x, labels[:, j])
        if theta[0] > 0:
            np.testing.assert_allclose([fit.a[j], fit.b[j]], theta, rtol=1e-7)
        else:
            assert fit.status[j] == Status.NOT_INCREASING
    assert fit.status[0] == FITTED


# --- saturated and extreme cells ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saturated_probabilities_fit_like_their_clipped_log_odds(dtype):
    rng = np.random.default_rng(13)
    scores = expit(rng.normal(0, 3, (500, 3))).astype(dtype)
    scores[rng.random((500, 3)) < 0.3] = 1.0
    scores[rng.random((500, 3)) < 0.2] = 0.0
    labels = rng.random((500, 3)) < 0.2 + 0.3 * (scores > 0.5)
    z = log_odds_of(scores, "probability")
    for model in (OFFSET, PLATT, TEMPERATURE):
        fit = fit_affine(open_source(scores, labels), **model)
        other = fit_affine(open_source(z, labels, kind="margin"), **model)
        np.testing.assert_allclose(fit.a, other.a, atol=1e-9)
        np.testing.assert_allclose(fit.b, other.b, atol=1e-9)
        assert (fit.status == other.status).all()
    assert (fit_beta(open_source(scores, labels)).status == FITTED).all()


@pytest.mark.parametrize("far", [30.0, 700.0, 1e6])
@pytest.mark.parametrize("n_true", [1, 300, 499, 500, 501, 999])
def test_the_offset_converges_between_far_groups_of_cells(far, n_true):
    """Half the cells at -far, half at +far: the root lies in one group, or between them."""
    z = np.repeat([-far, far], 500)[:, None]
    labels = (np.arange(1000) < n_true)[:, None]
    fit = fit_affine(open_source(z, labels, kind="margin"), **OFFSET)
    assert fit.status[0] == FITTED
    if n_true < 500:
        expected = -far + logit(n_true / 500)
    elif n_true > 500:
        expected = far + logit((n_true - 500) / 500)
    else:
        expected = 0.0
    if far < 1e6 or n_true != 500:
        np.testing.assert_allclose(fit.b[0], expected, rtol=1e-9, atol=1e-9)
    assert np.isfinite(fit.b[0])
    assert fit.n_passes <= 60


def test_the_offset_is_exact_where_saturated_cells_separate_the_classes():
    """The gradient is a difference of terms of 1e-12 beside terms of 1."""
    rng = np.random.default_rng(14)
    scores = np.repeat([1.0, 0.0], [300, 700])[:, None]
    labels = np.repeat([True, False], [300, 700])[:, None]
    order = rng.permutation(1000)
    fit = fit_affine(open_source(scores[order], labels[order]), **OFFSET)
    np.testing.assert_allclose(fit.b[0], 0.5 * np.log(300 / 700), atol=1e-4)
    assert fit.n_passes <= 5


def test_margins_of_seven_hundred_beside_common_ones_fit():
    scores, labels = make_panel(15, n_rows=800, n_labels=3)
    scores[:4] = [[700.0], [-700.0], [700.0], [-700.0]]
    labels[:4] = [[1], [0], [1], [0]]
    source = open_source(scores, labels, kind="margin")
    platt, beta = fit_affine(source, **PLATT), fit_beta(source)
    assert (platt.status == FITTED).all()
    assert (beta.status == FITTED).all()
    u = features_of(scores, "margin")
    for j in range(3):
        x = np.column_stack([scores[:, j], np.ones(800)])
        theta, _ = best_of(x[4:], labels[4:, j])  # those cells are predicted without a doubt
        np.testing.assert_allclose([platt.a[j], platt.b[j]], theta, atol=1e-6)
        theta, _ = best_beta(u[4:, j], labels[4:, j])
        np.testing.assert_allclose([beta.a[j], beta.b[j], beta.c[j]], theta, atol=1e-6)


def test_scores_far_from_zero_with_little_spread_fit():
    scores, labels = make_panel(16)
    fit = fit_affine(open_source(scores, labels, kind="margin"), **PLATT)
    moved = open_source(1000 + scores / 1024, labels, kind="margin")
    other = fit_affine(moved, **PLATT)
    np.testing.assert_allclose(other.a, fit.a * 1024, rtol=1e-7)
    np.testing.assert_allclose(other.b + 1000 * other.a, fit.b, atol=1e-7)


def test_scores_of_two_values_reproduce_both_frequencies():
    z = np.repeat([-1.0, 2.0], [60, 40])[:, None]
    labels = np.r_[np.arange(60) < 6, np.arange(40) < 30][:, None]
    source = open_source(z, labels, kind="margin")
    platt, beta = fit_affine(source, **PLATT), fit_beta(source)
    expected = logit([0.1, 0.75])
    values = np.array([-1.0, 2.0])
    np.testing.assert_allclose(platt.a[0] * values + platt.b[0], expected, atol=1e-9)
    u = features_of(values, "margin")
    np.testing.assert_allclose(
        beta.a[0] * u[:, 0] + beta.b[0] * u[:, 1] + beta.c[0], expected, atol=1e-8
    )


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


# --- laws ---------------------------------------------------------------------------------------


@st.composite
def panels(draw):
    """Small panels with ties, saturation, far margins and rare labels."""
    n_rows = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([1e-3, 0.5, 3.0, 50.0]))
    z = rng.normal(draw(st.sampled_from([-3.0, 0.0, 5.0])), spread, (n_rows, 4))
    if draw(st.booleans()):
        z = np.round(z / spread * 2) * spread / 2  # ties
    if draw(st.booleans()):
        z[rng.random(z.shape) < 0.2] = draw(st.sampled_from([-700.0, 40.0, 700.0]))
    kind = draw(st.sampled_from(["margin", "probability"]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    labels = rng.random(z.shape) < draw(st.sampled_from([0.05, 0.3, 0.7]))
    return (z if kind == "margin" else expit(z)).astype(dtype), labels, kind


@settings(deadline=None, max_examples=60)
@given(panels(), st.sampled_from([OFFSET, PLATT, TEMPERATURE]))
def test_the_gradient_of_a_fitted_label_vanishes(panel, model):
    scores, labels, kind = panel
    fit = fit_affine(open_source(scores, labels, kind=kind), threads=1, **model)
    z = log_odds_of(scores, kind)
    assert np.isfinite([fit.a, fit.b]).all()
    assert (fit.a >= 0).all()
    assert (fit.status != Status.NOT_CONVERGED).all()
    fitted = fit.status == FITTED
    residual = expit(fit.a * z + fit.b) - labels
    size = np.abs(z).max(axis=0) + 1
    if model["intercept"]:
        assert (np.abs(residual.sum(axis=0))[fitted] < 1e-7).all()
    if model["slope"]:
        slack = np.abs((residual * z).sum(axis=0))
        assert (slack[fitted] < 1e-7 * size[fitted]).all()


@settings(deadline=None, max_examples=60)
@given(panels())
def test_a_beta_fit_can_not_be_improved_within_its_bounds(panel):
    scores, labels, kind = panel
    fit = fit_beta(open_source(scores, labels, kind=kind), threads=1)
    assert np.isfinite([fit.a, fit.b, fit.c]).all()
    assert (np.minimum(fit.a, fit.b) >= 0).all()
    assert (fit.status != Status.NOT_CONVERGED).all()
    u = features_of(scores, kind)
    residual = expit(fit.a * u[..., 0] + fit.b * u[..., 1] + fit.c) - labels
    for j in np.flatnonzero(np.isin(fit.status, (FITTED, Status.NOT_INCREASING))):
        assert abs(residual[:, j].sum()) < 1e-7
        for k, coefficient in enumerate((fit.a[j], fit.b[j])):
            slack = residual[:, j] @ u[:, j, k]
            size = 1e-7 * (np.abs(u[:, j, k]).max() + 1)
            assert slack > -size
            if coefficient > 0:
                assert slack < size


@settings(deadline=None, max_examples=40)
@given(panels())
def test_the_offset_makes_the_mean_probability_the_prevalence(panel):
    scores, labels, kind = panel
    fit = fit_affine(open_source(scores, labels, kind=kind), threads=1, **OFFSET)
    mean = expit(log_odds_of(scores, kind) + fit.b).mean(axis=0)
    both = fit.status == FITTED
    np.testing.assert_allclose(mean[both], labels.mean(axis=0)[both], atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(-50, 50))
def test_moving_all_margins_moves_the_offset_back(seed, shift):
    scores, labels = make_panel(seed, n_rows=60)
    labels[0], labels[1] = True, False
    fit = fit_affine(open_source(scores, labels, kind="margin"), threads=1, **OFFSET)
    moved = fit_affine(open_source(scores + shift, labels, kind="margin"), threads=1, **OFFSET)
    np.testing.assert_allclose(moved.b, fit.b - shift, atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3))
def test_stretching_margins_shrinks_platts_slope(seed, stretch):
    scores, labels = make_panel(seed, n_rows=60)
    labels[0], labels[1] = True, False
    fit = fit_affine(open_source(scores, labels, kind="margin"), threads=1, **PLATT)
    other = fit_affine(open_source(scores * stretch, labels, kind="margin"), threads=1, **PLATT)
    assert (fit.status == other.status).all()
    fitted = fit.status == FITTED
    np.testing.assert_allclose(other.a[fitted] * stretch, fit.a[fitted], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.b[fitted], fit.b[fitted], rtol=1e-7, atol=1e-8)
