"""Fitted maps: their values, their transform and their ranking."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from oddslip.core.panel import Panel
from oddslip.errors import InvalidInput
from oddslip.kernels.keys import scores_of
from oddslip.kernels.maps import AFFINE, BETA, CONSTANT, EXCLUDED, IDENTITY, KNOTS
from oddslip.repairs.maps import LabelMaps, bounds_of, choose_levels

sys.path.insert(0, str(Path(__file__).parent))
from map_worlds import (
    SETTINGS,
    draw_maps,
    draw_scores,
    reference_values,
    simple_maps,
    sort_rows,
    worlds,
)


@SETTINGS
@given(worlds)
def test_values_agree_with_numpy_and_scipy(world):
    seed, kind, scale, dtype, n_labels, step = world
    rng = np.random.default_rng(seed)
    scores = draw_scores(rng, kind, dtype, 40, n_labels)
    maps = draw_maps(rng, kind, scale, scores, step)
    expected = reference_values(maps, scores)
    values = maps.values(Panel(scores, kind=kind))
    assert values.dtype == np.float64
    live = maps.code != EXCLUDED
    assert np.isneginf(values[:, ~live]).all()
    np.testing.assert_array_equal(values[:, live] >= -np.finfo(float).max, True)
    expected[:, live] = np.maximum(expected[:, live], -np.finfo(float).max)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-13)


@SETTINGS
@given(worlds)
def test_transform_is_the_probability_of_the_value(world):
    seed, kind, scale, dtype, n_labels, step = world
    rng = np.random.default_rng(seed)
    scores = draw_scores(rng, kind, dtype, 40, n_labels)
    maps = draw_maps(rng, kind, scale, scores, step)
    values = reference_values(maps, scores)
    expected = expit(values) if scale == "log_odds" else values
    expected[:, maps.code == EXCLUDED] = 0.0
    identity = maps.code == IDENTITY
    raw = expit(scores.astype(float)) if kind == "margin" else scores
    expected[:, identity] = raw[:, identity]
    probabilities = maps.transform_panel(Panel(scores, kind=kind), np.float64)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12, atol=1e-13)
    assert not np.signbit(probabilities).any()
    narrow = maps.transform_panel(Panel(scores, kind=kind), np.float32)
    np.testing.assert_array_equal(narrow, probabilities.astype(np.float32))
    assert maps.transform_panel(Panel(scores, kind=kind)).dtype == dtype


@settings(deadline=None, max_examples=150)
@given(worlds, st.floats(0, 1), st.sampled_from([1, 30, 130, 200]))
def test_ranking_equals_a_stable_sort_of_the_values(world, share, n_rows):
    seed, kind, scale, dtype, n_labels, step = world
    rng = np.random.default_rng(seed)
    scores = draw_scores(rng, kind, dtype, n_rows, n_labels)
    maps = draw_maps(rng, kind, scale, scores, step)
    k = 1 + int(share**3 * (n_labels - 1))
    panel = Panel(scores, kind=kind)
    ranking = maps.rank_panel(panel, k)
    assert ranking.dtype == np.int32
    np.testing.assert_array_equal(ranking, sort_rows(maps.values(panel), k))


@SETTINGS
@given(worlds, st.integers(1, 30))
def test_levels_chosen_from_other_rows_do_not_change_the_ranking(world, k):
    seed, kind, scale, dtype, n_labels, step = world
    n_labels = max(n_labels, 4 * k)
    rng = np.random.default_rng(seed)
    scores = draw_scores(rng, kind, dtype, 150, n_labels)
    maps = draw_maps(rng, kind, scale, scores, step)
    other = draw_scores(rng, kind, dtype, 130, n_labels)
    other = other * dtype(0.2) if kind == "probability" else np.clip(other, -50, 50) - 10
    maps.rank_panel(Panel(other.astype(dtype), kind=kind), k)
    panel = Panel(scores, kind=kind)
    np.testing.assert_array_equal(maps.rank_panel(panel, k), sort_rows(maps.values(panel), k))


@pytest.mark.parametrize("codes", [(KNOTS,), (AFFINE,), (BETA,), (IDENTITY,), (CONSTANT,)])
@pytest.mark.parametrize("kind", ["probability", "margin"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_cell_below_a_levels_key_reaches_the_level(codes, kind, dtype):
    rng = np.random.default_rng(5)
    scale = "log_odds" if codes[0] in (AFFINE, BETA) else "probability"
    scores = draw_scores(rng, kind, dtype, 64, 400)
    maps = draw_maps(rng, kind, scale, scores, codes=codes)
    levels = choose_levels(maps, scores, maps.evaluate(scores), k=5)
    assert (np.diff(levels.taus) <= 0).all()
    for level, tau in enumerate(levels.taus):
        key = levels.ladder[:, level]
        for below in (1, 2, 1000):
            there = key >= below
            row = scores_of(np.where(there, key - np.minimum(key, below), 0)[None], kind)
            assert (maps.evaluate(row)[0, there] < tau).all()


def test_sweeping_at_levels_evaluates_few_cells():
    rng = np.random.default_rng(0)
    scores = expit(rng.normal(-3, 2, (2000, 500))).astype(np.float32)
    maps = LabelMaps(
        "probability",
        "log_odds",
        np.full(500, AFFINE),
        rng.uniform(0.5, 2, 500),
        rng.normal(0, 1, 500),
        *np.zeros((3, 500)),
        [],
        [],
    )
    panel = Panel(scores)
    levels = choose_levels(maps, scores[:64], maps.evaluate(scores[:64]), k=7)
    columns = np.empty((2000, 7), np.int32)
    assert maps._rank(panel, 7, levels, columns) < 2000 * 20
    np.testing.assert_array_equal(columns, sort_rows(maps.values(panel), 7))


def test_saturated_rows_take_the_first_labels_without_evaluating_all():
    rng = np.random.default_rng(0)
    scores = np.ones((300, 1000), np.float32)
    scores[rng.random(scores.shape) < 0.5] = 0.25
    pooled = LabelMaps(
        "probability",
        "probability",
        np.zeros(1000),
        *np.zeros((3, 1000)),
        np.zeros(1000),
        np.full(1000, 2),
        [0.2, 0.9],
        [0.0, 0.5],
    )
    levels = choose_levels(pooled, scores[:64], pooled.evaluate(scores[:64]), k=7)
    columns = np.empty((300, 7), np.int32)
    assert pooled._rank(Panel(scores), 7, levels, columns) < 300 * 200
    np.testing.assert_array_equal(columns, sort_rows(scores, 7))


def test_a_knotted_map_is_numpy_interp_to_the_last_bit():
    rng = np.random.default_rng(1)
    scores = draw_scores(rng, "probability", np.float64, 2000, 30)
    maps = draw_maps(rng, "probability", "probability", scores, codes=(KNOTS,))
    expected = reference_values(maps, scores)
    values = maps.values(Panel(scores))
    # Interpolation may overshoot the next knot by a rounding; ours never does.
    overshot = values != expected
    assert overshot.mean() < 0.001
    np.testing.assert_allclose(values, expected, rtol=4e-16)


def test_knots_of_scikit_learn_give_its_predictions():
    rng = np.random.default_rng(2)
    scores = rng.beta(0.5, 3, (3000, 4))
    labels = rng.random(scores.shape) < scores**2
    fits = [
        IsotonicRegression(out_of_bounds="clip").fit(scores[:2000, j], labels[:2000, j])
        for j in range(4)
    ]
    stop = np.cumsum([fit.X_thresholds_.size for fit in fits])
    maps = LabelMaps(
        "probability",
        "probability",
        np.zeros(4),
        *np.zeros((3, 4)),
        np.r_[0, stop[:-1]],
        stop,
        np.concatenate([fit.X_thresholds_ for fit in fits]),
        np.concatenate([fit.y_thresholds_ for fit in fits]),
    )
    expected = np.stack([fit.predict(scores[:, j]) for j, fit in enumerate(fits)], axis=1)
    np.testing.assert_allclose(
        maps.transform_panel(Panel(scores)), expected, rtol=1e-14, atol=1e-16
    )


@pytest.mark.parametrize("step", [False, True])
def test_a_knotted_map_never_descends_from_one_float_to_the_next(step):
    rng = np.random.default_rng(3)
    scores = draw_scores(rng, "probability", np.float32, 200, 50)
    maps = draw_maps(rng, "probability", "probability", scores, step, codes=(KNOTS,))
    around = [np.clip(maps.x, 0, 1).astype(np.float32)]
    for toward in (np.float32(0), np.float32(1)):
        for _ in range(3):
            around.append(np.nextafter(around[-1], toward))
    ascending = np.unique(np.concatenate([np.concatenate(around), scores.ravel()])) + np.float32(0)
    values = maps.values(Panel(np.repeat(ascending[:, None], 50, axis=1)))
    assert (np.diff(values, axis=0) >= 0).all()


def test_a_step_map_jumps_at_its_knot_and_is_flat_before():
    maps = simple_maps(step=True)
    scores = [[0.1, 0], [0.2, 0], [np.nextafter(0.8, 0), 0], [0.8, 0], [1.0, 0]]
    np.testing.assert_array_equal(maps.values(Panel(scores))[:, 0], [0, 0, 0, 0.6, 0.6])


def test_a_single_knot_is_a_constant():
    maps = simple_maps(stop=[1, 0], y=[0.3, 0.6])
    scores = [[0.0, 0], [0.2, 0], [1.0, 0]]
    np.testing.assert_array_equal(maps.values(Panel(scores))[:, 0], 0.3)


def test_knots_a_denormal_apart_stay_between_their_values():
    maps = simple_maps(x=[0.0, 1e-323], y=[0.1, 0.6])
    values = maps.values(Panel([[0.0, 0], [5e-324, 0], [1e-323, 0]]))[:, 0]
    assert values[0] == 0.1
    assert 0.1 <= values[1] <= 0.6
    assert values[2] == 0.6


def test_an_excluded_label_ranks_below_a_constant_of_zero_on_both_scales():
    for scale in ("probability", "log_odds"):
        maps = simple_maps(scale=scale, code=[EXCLUDED, CONSTANT], a=[0, 0])
        assert maps.rank_panel(Panel([[0.9, 0.1]]), 2).tolist() == [[1, 0]]
        assert maps.transform_panel(Panel([[0.9, 0.1]])).tolist() == [[0, 0]]


def test_excluded_labels_rank_by_index_among_themselves():
    n_labels = 40
    maps = LabelMaps(
        "probability",
        "probability",
        np.full(n_labels, EXCLUDED),
        *np.zeros((3, n_labels)),
        *np.zeros((2, n_labels)),
        [],
        [],
    )
    scores = np.random.default_rng(0).random((200, n_labels))
    np.testing.assert_array_equal(maps.rank_panel(Panel(scores), 5), [[0, 1, 2, 3, 4]] * 200)


def test_negative_zero_is_zero():
    scores = np.zeros((200, 40), np.float32)
    scores[:, 20:] = 0.5
    minus = np.where(scores == 0, np.float32(-0.0), scores)
    maps = draw_maps(np.random.default_rng(0), "probability", "probability", scores)
    np.testing.assert_array_equal(maps.values(Panel(minus)), maps.values(Panel(scores)))
    np.testing.assert_array_equal(
        maps.rank_panel(Panel(minus), 3), sort_rows(maps.values(Panel(scores)), 3)
    )


@pytest.mark.parametrize(
    ("kind", "cell"),
    [(kind, cell) for kind in ("probability", "margin") for cell in (np.nan, np.inf, -np.inf)]
    + [("probability", 1.5), ("probability", -0.1)],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_invalid_cell_is_named_by_every_verb(kind, cell, dtype):
    rng = np.random.default_rng(4)
    scores = draw_scores(rng, kind, dtype, 200, 150)
    maps = draw_maps(rng, kind, "probability", scores)
    good = Panel(scores, kind=kind)
    maps.rank_panel(good, 3)  # now levels are chosen
    broken = scores.copy()
    broken[107, 3] = cell
    panel = Panel(broken, kind=kind)
    for verb in (
        lambda: maps.rank_panel(panel, 3),
        lambda: maps.rank_panel(panel, 150),
        lambda: maps.transform_panel(panel),
        lambda: maps.values(panel),
    ):
        with pytest.raises(InvalidInput, match="row 107, label '3'"):
            verb()


def test_blocks_rank_as_the_whole():
    rng = np.random.default_rng(6)
    scores = draw_scores(rng, "margin", np.float32, 700, 90)
    maps = draw_maps(rng, "margin", "log_odds", scores)
    panel = Panel(scores, kind="margin")
    whole = maps.rank_panel(panel, 4)
    cut = maps.take(np.arange(90))
    parts = [cut.rank_panel(panel.rows(start, start + 37), 4) for start in range(0, 700, 37)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_memory_order_and_read_only_memory_do_not_matter(tmp_path):
    rng = np.random.default_rng(7)
    scores = draw_scores(rng, "probability", np.float32, 300, 70) + np.float32(0)
    maps = draw_maps(rng, "probability", "probability", scores)
    np.save(tmp_path / "scores.npy", scores)
    mapped = np.load(tmp_path / "scores.npy", mmap_mode="r")
    for other in (np.asfortranarray(scores), mapped):
        for verb in (maps.transform_panel, lambda panel: maps.rank_panel(panel, 6)):
            np.testing.assert_array_equal(verb(Panel(other)), verb(Panel(scores)))


def test_taking_labels_takes_their_maps_along():
    rng = np.random.default_rng(8)
    scores = draw_scores(rng, "probability", np.float64, 50, 30)
    maps = draw_maps(rng, "probability", "probability", scores)
    order = rng.permutation(30)[:20]
    np.testing.assert_array_equal(
        maps.take(order).values(Panel(scores[:, order])), maps.values(Panel(scores))[:, order]
    )


def test_inputs_stay_as_they_were():
    rng = np.random.default_rng(9)
    scores = draw_scores(rng, "probability", np.float32, 200, 40)
    maps = draw_maps(rng, "probability", "probability", scores)
    before = scores.copy()
    maps.rank_panel(Panel(scores), 3)
    maps.transform_panel(Panel(scores))
    np.testing.assert_array_equal(scores.view(np.uint32), before.view(np.uint32))


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"code": [7, 3]}, "codes must be"),
        ({"code": [AFFINE, 3]}, "log_odds"),
        ({"a": [0.0, 1.5]}, "constants must be"),
        ({"a": [0.0]}, "per label"),
        ({"b": [np.nan, 0.0]}, "finite"),
        ({"stop": [3, 0]}, "knots must lie"),
        ({"stop": [0, 0]}, "at least one"),
        ({"x": [0.8, 0.2]}, "descend"),
        ({"y": [0.6, 0.0]}, "descend"),
        ({"y": [0.0, 1.2]}, "between 0 and 1"),
        ({"x": [0.0, 0.5, 1.0]}, "one y per x"),
        ({"code": [KNOTS, KNOTS], "stop": [2, 1]}, "share all"),
        ({"scale": "odds"}, "scale"),
        ({"kind": "odds"}, "kind"),
        ({"scale": "log_odds", "code": [KNOTS, 3]}, "probability"),
        ({"scale": "log_odds", "a": [-1.0, 0.5]}, "a, b >= 0"),
        ({"scale": "log_odds", "code": [BETA, 3], "b": [-1.0, 0.0]}, "a, b >= 0"),
    ],
)
def test_maps_that_do_not_add_up_are_refused(changed, rule):
    with pytest.raises(InvalidInput, match=rule):
        simple_maps(**changed)


def test_scores_of_another_kind_or_width_are_refused():
    maps = simple_maps()
    with pytest.raises(InvalidInput, match='kind "probability"'):
        maps.transform_panel(Panel([[0.1, 0.2]], kind="margin"))
    with pytest.raises(InvalidInput, match="n_labels=2"):
        maps.rank_panel(Panel([[0.1, 0.2, 0.3]]), 1)
    with pytest.raises(InvalidInput, match="float32 or float64"):
        maps.transform_panel(Panel([[0.1, 0.2]]), np.int64)
    with pytest.raises(InvalidInput, match="k must be between"):
        maps.rank_panel(Panel([[0.1, 0.2]]), 3)


def test_the_bounds_are_the_lowest_and_highest_valid_scores():
    assert bounds_of("probability", np.float32) == (0.0, 1.0)
    for dtype in (np.float32, np.float64):
        low, high = bounds_of("margin", dtype)
        Panel(np.array([[low, high]], dtype), kind="margin").checked()
