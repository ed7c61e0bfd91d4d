"""Ranking through maps against mapping every cell and sorting."""

import numpy as np
import pytest
from scipy.special import expit

from oddslip.kernels.fused import LEVELS, invert_maps, rank_cells, rank_lists
from oddslip.kernels.keys import LIMITS, keys_of
from oddslip.kernels.maps import AFFINE, BETA, CONSTANT, EXCLUDED, IDENTITY, KNOTS, map_cells


def world(dtype, seed, n, n_labels, kind):
    """Scores and maps of every form; on the log-odds scale there are no knots."""
    rng = np.random.default_rng(seed)
    z = np.round(rng.normal(-2, 3, (n, n_labels)), 1)
    scores = (z if kind == "margin" else expit(z)).astype(dtype)
    code = rng.choice([AFFINE, BETA, CONSTANT, IDENTITY, EXCLUDED], n_labels).astype(np.int8)
    code[0] = AFFINE
    a, b, c = rng.uniform(0, 2, (3, n_labels))
    none = np.zeros(n_labels, np.int64)
    return scores, (
        code,
        a,
        b,
        c,
        none,
        none,
        np.zeros(0),
        np.zeros((0, 4)),
        int(kind == "margin"),
        1,
    )


def knotted(dtype, seed, n, n_labels):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random((n_labels, 6)), axis=1)
    y = np.sort(np.round(rng.random((n_labels, 6)), 1), axis=1)
    knots = np.zeros((n_labels, 6, 4))
    knots[:, :, 0], knots[:, :, 1], knots[:, :, 3] = x, y, y
    knots[:, :-1, 3] = y[:, 1:]
    knots[:, :-1, 2] = np.diff(y, axis=1) / np.diff(x, axis=1)
    knots = knots.reshape(-1, 4)
    zeros, start = np.zeros(n_labels), 6 * np.arange(n_labels)
    maps = np.full(n_labels, KNOTS, np.int8), zeros, zeros, zeros, start, start + 6
    scores = np.round(rng.random((n, n_labels)), 2).astype(dtype)
    return scores, (*maps, np.ascontiguousarray(knots[:, 0]), knots, 0, 0)


def values_of(scores, maps):
    values = np.empty(scores.shape)
    map_cells(scores, *maps, -np.inf, np.inf, False, values)
    return values


def freeze(frozen, maps):
    return *frozen(*maps[:8]), *maps[8:]


def no_levels(keys):
    none = np.empty((0, keys.shape[1]), keys.dtype)
    return np.full(1, np.inf), none, np.empty(0, np.int64), none


def levels_of(scores, keys, maps):
    """For each level and label the lowest key in sight that reaches it; more is never needed."""
    values = values_of(scores, maps)
    finite = values[np.isfinite(values)]
    taus = np.quantile(finite, np.linspace(1, 0.3, LEVELS))
    top = np.iinfo(keys.dtype).max >> 1
    ladder = np.full((keys.shape[1], LEVELS), top, keys.dtype)
    for level, tau in enumerate(taus):
        ladder[:, level] = np.where(values >= tau, keys, top).min(axis=0)
    sweeps = np.array([LEVELS // 2, LEVELS - 1])
    return taus, ladder, sweeps, np.ascontiguousarray(ladder[:, sweeps].T)


@pytest.mark.parametrize("form", ["margin", "probability", "knots"])
@pytest.mark.parametrize("n_labels", [1, 40, 127, 128, 300])
@pytest.mark.parametrize("swept", [False, True])
def test_the_top_k_are_those_of_mapping_every_cell_and_sorting(
    dtype, frozen, form, n_labels, swept
):
    if form == "knots":
        scores, maps = knotted(dtype, n_labels, 60, n_labels)
    else:
        scores, maps = world(dtype, n_labels, 60, n_labels, form)
    kind = "margin" if form == "margin" else "probability"
    keys = keys_of(scores, kind)
    order = np.argsort(-values_of(scores, maps), axis=1, kind="stable")
    levels = levels_of(scores, keys, maps) if swept else no_levels(keys)
    limit = LIMITS[keys.dtype, kind]
    for k in {1, 7, 16, 17, 40, 100, 101, 140, n_labels}:
        if k > n_labels:
            continue
        columns = np.empty((len(scores), k), np.int32)
        evaluated = rank_cells(
            *frozen(scores, keys), limit, k, *freeze(frozen, maps), *frozen(*levels), columns
        )
        np.testing.assert_array_equal(columns, order[:, :k])
        assert 0 <= evaluated <= 3 * scores.size


@pytest.mark.parametrize("form", ["margin", "probability", "knots"])
def test_for_every_k_listed_cells_rank_as_if_mapped_and_sorted(dtype, frozen, form):
    n_labels = 220
    if form == "knots":
        scores, maps = knotted(dtype, 3, 8, n_labels)
    else:
        scores, maps = world(dtype, 3, 8, n_labels, form)
    present = np.random.default_rng(4).random(scores.shape) < np.linspace(0, 1, 8)[:, None]
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    labels = np.nonzero(present)[1].astype(np.int32)
    orders = [
        [j for j in np.argsort(-row, kind="stable") if there[j]]
        for row, there in zip(values_of(scores, maps), present, strict=True)
    ]
    for k in range(1, n_labels + 1):
        columns = np.empty((len(scores), k), np.int32)
        rank_lists(*frozen(indptr, labels, scores[present]), k, *freeze(frozen, maps), columns)
        expected = [[*order[:k], *[-1] * (k - len(order))] for order in orders]
        np.testing.assert_array_equal(columns, expected)


@pytest.mark.parametrize("swept", [False, True])
def test_an_invalid_cell_stops_it(dtype, frozen, swept):
    scores, maps = knotted(dtype, 0, 50, 200)
    keys = keys_of(scores, "probability")
    levels = levels_of(scores, keys, maps) if swept else no_levels(keys)
    scores[49, 150] = np.nan
    columns = np.empty((50, 3), np.int32)
    limit = LIMITS[keys.dtype, "probability"]
    assert rank_cells(scores, keys, limit, 3, *maps, *frozen(*levels), columns) == -1


def test_keys_narrower_than_scores_are_refused():
    scores, maps = knotted(np.float64, 0, 2, 3)
    keys = keys_of(scores.astype(np.float32), "probability")
    with pytest.raises(TypeError, match="as wide as"):
        rank_cells(scores, keys, 1, 1, *maps, *no_levels(keys), np.empty((2, 1), np.int32))


@pytest.mark.parametrize("form", ["margin", "probability", "knots"])
def test_inverted_values_are_met_at_the_score_found(frozen, form):
    if form == "knots":
        scores, maps = knotted(np.float64, 5, 30, 50)
    else:
        scores, maps = world(np.float64, 5, 30, 50, form)
    low, high = (-30.0, 30.0) if form == "margin" else (0.0, 1.0)
    targets = np.clip(values_of(scores, maps), -25, 25)
    guesses = np.empty(targets.shape)
    invert_maps(frozen(targets), *freeze(frozen, maps), low, high, guesses)
    inside = np.isfinite(guesses)
    met = values_of(np.where(inside, guesses, low), maps)
    np.testing.assert_allclose(met[inside], targets[inside], atol=1e-6)
    assert inside.mean() > 0.2
    # No score reaches more than the most; all reach the least.
    least, most = (values_of(np.full(targets.shape, end), maps) for end in (low, high))
    np.testing.assert_array_equal(guesses == np.inf, targets > most)
    np.testing.assert_array_equal(guesses == -np.inf, (targets <= most) & (targets <= least))
