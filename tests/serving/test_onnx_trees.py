"""LightGBM and a repair in one ONNX graph, and the trap of float32 thresholds."""

import lightgbm
import numpy as np
import onnxruntime
import pytest
from onnx import compose

import oddslip
from oddslip.errors import InvalidInput
from oddslip.serving import onnx_trees, repair_graph, trees_graph

N_LABELS = 5
RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(1500, 6)).round(2).astype(np.float32)
TRUTH = RNG.random((1500, N_LABELS)) < 1 / (
    1 + np.exp(2 - FEATURES @ RNG.normal(size=(6, N_LABELS)))
)
SETTING = {"objective": "binary", "verbose": -1, "num_threads": 1, "scale_pos_weight": 15.0}


def train(features, **more):
    return [
        lightgbm.train(SETTING | more, lightgbm.Dataset(features, truth), 30)
        for truth in TRUTH[: len(features)].T
    ]


def run(model, features):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"features": features})


def raw_scores(boosters, features):
    return np.column_stack([each.predict(features, raw_score=True) for each in boosters])


@pytest.fixture(scope="module")
def boosters():
    return train(FEATURES[:700])


def test_margins_of_the_graph_are_lightgbms_but_for_the_rounding_of_sums(boosters):
    (margins,) = run(trees_graph(boosters), FEATURES)
    np.testing.assert_allclose(margins, raw_scores(boosters, FEATURES), atol=1e-5)


def test_thresholds_rounded_to_the_nearest_send_rows_the_wrong_way(boosters, monkeypatch):
    monkeypatch.setattr(onnx_trees, "_round_down", lambda threshold: float(np.float32(threshold)))
    (margins,) = run(trees_graph(boosters), FEATURES)
    assert np.abs(margins - raw_scores(boosters, FEATURES)).max() > 0.05


def test_missing_features_go_where_lightgbm_sends_them(boosters):
    holed = FEATURES.copy()
    holed[RNG.random(holed.shape) < 0.2] = np.nan
    for each in (train(holed[:700]), boosters):  # one has met missing values, one has not
        (margins,) = run(trees_graph(each), holed)
        np.testing.assert_allclose(margins, raw_scores(each, holed), atol=1e-5)


def test_boosters_and_repair_rank_in_one_graph_as_apart(boosters):
    model = trees_graph(boosters)
    (margins,) = run(model, FEATURES)
    repair = oddslip.Repair(k=2, kind="margin", rule="isotonic-0").fit(margins[700:], TRUTH[700:])
    whole = compose.merge_models(
        model, repair_graph(repair, k=2, scores="float32"), io_map=[("margins", "scores")]
    )
    probabilities, top, _ = run(whole, FEATURES)
    np.testing.assert_array_equal(top, repair.rank(margins))
    wide = repair.fitted_.transform(margins, dtype=np.float64)
    np.testing.assert_array_equal(probabilities, wide)


def test_trees_that_onnx_can_not_hold_are_refused():
    codes = RNG.integers(0, 9, (700, 1))
    category = lightgbm.Dataset(
        codes.astype(float), codes[:, 0] % 2, categorical_feature=[0], params={"verbose": -1}
    )
    with pytest.raises(InvalidInput, match="got a category"):
        trees_graph([lightgbm.train(SETTING, category, 5)])
    with pytest.raises(InvalidInput, match="zero_as_missing=false"):
        trees_graph(train(FEATURES[:700], zero_as_missing=True))
    with pytest.raises(InvalidInput, match="got none"):
        trees_graph([])
