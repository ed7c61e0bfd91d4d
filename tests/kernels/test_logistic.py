"""Sums of logistic fits against SciPy's functions, cell by cell."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, logit

from oddslip.kernels import logistic

KINDS = [True, False]
WIDTHS = [1, 6, 257]


def world(dtype, probable, n_labels, n=30):
    rng = np.random.default_rng(n_labels)
    z = rng.normal(-1, 4, (n, n_labels))
    z[0, 0], z[1, 0] = (40, -40) if probable else (900, -900)
    scores = (expit(z) if probable else z).astype(dtype)
    true = rng.random(z.shape) < 0.2
    true[:, -1] = False
    indptr = np.concatenate([[0], np.cumsum(true.sum(axis=1))])
    return scores, true, indptr, np.nonzero(true)[1].astype(np.int32)


def features(scores, probable):
    """Log-odds, ln s and -ln(1 - s)."""
    s = scores.astype(float)
    if not probable:
        return s, log_expit(s), -log_expit(-s)
    s = np.clip(s, logistic.CLIP, 1 - logistic.CLIP)
    return logit(s), np.log(s), -np.log1p(-s)


@pytest.mark.parametrize("n_labels", WIDTHS)
def test_ranges_are_those_of_negatives_and_positives_apart(dtype, frozen, n_labels):
    scores, true, indptr, indices = world(dtype, False, n_labels)
    result = np.zeros((5, n_labels))
    result[0:4:2], result[1:4:2] = np.inf, -np.inf
    logistic.range_rows(*frozen(scores, indptr, indices), result)
    for row, (cells, how, empty) in enumerate(
        [
            (~true, np.min, np.inf),
            (~true, np.max, -np.inf),
            (true, np.min, np.inf),
            (true, np.max, -np.inf),
        ]
    ):
        expected = [how(s[c], initial=empty) for s, c in zip(scores.T, cells.T, strict=True)]
        np.testing.assert_array_equal(result[row], expected)
    assert not result[4].any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_cell_that_is_not_finite_spoils_its_label_alone(dtype, frozen, value):
    scores, _, indptr, indices = world(dtype, False, 6)
    scores[3, 2] = value
    result = np.zeros((5, 6))
    logistic.range_rows(*frozen(scores, indptr, indices), result)
    np.testing.assert_array_equal(np.isnan(result[4]), np.arange(6) == 2)


@pytest.mark.parametrize("probable", KINDS)
@pytest.mark.parametrize("n_labels", WIDTHS)
def test_moments_are_those_of_the_cells_of_a_bin(dtype, frozen, probable, n_labels):
    scores, *_ = world(dtype, probable, n_labels)
    z = features(scores, probable)[0]
    n_bins, low = 8, np.full(n_labels, -10.0)
    per_bin = np.full(n_labels, 0.4)
    moments = np.zeros((n_labels, n_bins, logistic.N_MOMENTS))
    logistic.add_moments(frozen(scores), probable, *frozen(low, per_bin), moments)
    at = (z - low) * per_bin
    bins = np.clip(at, 0, n_bins - 0.5).astype(int)
    place = at - bins - 0.5
    for power in range(logistic.N_MOMENTS):
        expected = np.zeros((n_labels, n_bins))
        np.add.at(
            expected, (np.tile(np.arange(n_labels), len(z)), bins.ravel()), place.ravel() ** power
        )
        np.testing.assert_allclose(moments[:, :, power], expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("probable", KINDS)
@pytest.mark.parametrize("n_labels", WIDTHS)
def test_positives_are_summed_from_their_centers(dtype, frozen, probable, n_labels):
    scores, true, indptr, indices = world(dtype, probable, n_labels)
    center = np.random.default_rng(0).normal(size=(3, n_labels))
    sums = np.zeros((4, n_labels))
    logistic.add_positives(frozen(scores), probable, *frozen(indptr, indices, center), sums)
    np.testing.assert_array_equal(sums[0], true.sum(axis=0))
    for row, feature in enumerate(features(scores, probable)):
        expected = ((feature - center[row]) * true).sum(axis=0)
        np.testing.assert_allclose(sums[1 + row], expected, rtol=1e-12, atol=1e-12)


def plain_sums(logits, columns):
    p, w = expit(logits), expit(logits) * expit(-logits)
    high = logits >= 0
    rows = [high, np.where(high, -expit(-logits), p)]
    rows += [p * u for u in columns[1:]]
    rows += [
        w * columns[i] * columns[k] for i in range(len(columns)) for k in range(i, len(columns))
    ]
    return np.stack([row.sum(axis=0) for row in rows])


@pytest.mark.parametrize("probable", KINDS)
@pytest.mark.parametrize("form", ["affine", "beta"])
@pytest.mark.parametrize("n_labels", WIDTHS)
@pytest.mark.parametrize("some", [False, True])
def test_gradient_and_curvature_are_those_of_the_logistic_loss(
    dtype, frozen, probable, form, n_labels, some
):
    scores, *_ = world(dtype, probable, n_labels)
    scores = np.clip(scores, -700, 700)
    columns = np.arange(0, n_labels, 2) if some and n_labels > 1 else np.arange(n_labels)
    rng = np.random.default_rng(1)
    used = features(scores[:, columns], probable)
    used = used[:1] if form == "affine" else used[1:]
    frame = rng.uniform(0.1, 0.3, (2 * len(used), columns.size))
    theta = rng.normal(size=(1 + len(used), columns.size))
    units = [np.ones(used[0].shape)]
    units += [(f - frame[2 * i]) * frame[2 * i + 1] for i, f in enumerate(used)]
    expected = plain_sums(sum(t * u for t, u in zip(theta, units, strict=True)), units)
    kernel = logistic.add_affine_sums if form == "affine" else logistic.add_beta_sums
    sums = np.zeros(expected.shape)
    kernel(frozen(scores), probable, *frozen(columns, frame, theta), sums)
    assert len(sums) == (logistic.N_AFFINE if form == "affine" else logistic.N_BETA)
    np.testing.assert_allclose(sums, expected, rtol=1e-10, atol=1e-12)
