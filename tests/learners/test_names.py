"""Features, rows and labels of a model go by their names: see `oddslip.core.row_ids` for the rule."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from oddslip import InvalidInput, MatchedPair, OneVsRest
from oddslip.learners import score_to_file
from oddslip.learners.checkpoint import read_model, write_model

RNG = np.random.default_rng(4)
FEATURES, LABELS = ["age", "income", "visits"], ["a", "b"]
X = pd.DataFrame(RNG.normal(size=(120, 3)) * [1, 5, 0.2], columns=FEATURES)
Y = pd.DataFrame(
    (X.to_numpy()[:, :2] + RNG.normal(size=(120, 2)) > 0.5).astype(int), columns=LABELS
)
IDS = [f"u{row}" for row in range(120)]
TURNED = ["visits", "age", "income"]
SHUFFLED = np.random.default_rng(1).permutation(120)


def fitted(rows=X, truth=Y, **options):
    return OneVsRest("logistic", **options).fit(rows, truth)


MODEL = fitted()
MARGINS = MODEL.predict_margin(X)


def in_polars(frame):
    return pl.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


# -------------------------------------------------------------------------------------- features


@pytest.mark.parametrize("library", [lambda frame: frame, in_polars], ids=["pandas", "polars"])
def test_features_in_another_order_are_matched_by_name(library, tmp_path):
    shuffled_truth = library(X[TURNED])
    for model in (MODEL, fitted(library(X))):
        np.testing.assert_array_equal(model.predict_margin(shuffled_truth), MARGINS)
        np.testing.assert_array_equal(model.predict_proba(shuffled_truth), model.predict_proba(X))
        np.testing.assert_array_equal(model.predict_stored(shuffled_truth), model.predict_stored(X))
        np.testing.assert_array_equal(model.panel(shuffled_truth).scores, MARGINS)
        score_to_file(model, shuffled_truth, tmp_path / "scores.npy", kind="margin")
        np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), MARGINS)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (X.rename(columns={"age": "years"}), "'years'"),
        (X.drop(columns="income"), "'income'"),
        (X.assign(extra=1.0), "'extra'"),
        (pd.concat([X, X["age"]], axis=1), "'age'"),
    ],
    ids=["unknown", "missing", "extra", "twice"],
)
def test_other_features_than_those_of_training_are_refused_by_name(rows, words, tmp_path):
    calls = (
        MODEL.predict_margin,
        MODEL.predict_proba,
        MODEL.predict_stored,
        MODEL.panel,
        lambda X: score_to_file(MODEL, X, tmp_path / "scores.npy"),
    )
    for call in calls:
        with pytest.raises(InvalidInput, match=words):
            call(rows)


def test_rows_without_feature_names_go_by_position_with_a_warning():
    with pytest.warns(UserWarning, match="X has none"):
        margins = MODEL.predict_margin(X.to_numpy())
    np.testing.assert_array_equal(margins, MARGINS)
    unnamed = fitted(X.to_numpy())
    with pytest.warns(UserWarning, match="the model has none"):
        margins = unnamed.predict_margin(X)
    np.testing.assert_array_equal(margins, MARGINS)


def test_a_default_numbering_of_columns_is_no_name():
    numbered = X.set_axis(range(3), axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unnamed = fitted(numbered)
        np.testing.assert_array_equal(unnamed.predict_margin(X.to_numpy()), MARGINS)
        np.testing.assert_array_equal(unnamed.predict_margin(numbered[[2, 0, 1]]), MARGINS)
    assert not hasattr(unnamed, "feature_names_in_")


def test_feature_names_are_saved_with_the_model(tmp_path):
    MODEL.save(tmp_path / "model.oddmodel")
    loaded = OneVsRest.load(tmp_path / "model.oddmodel")
    assert loaded.feature_names_in_.tolist() == FEATURES
    np.testing.assert_array_equal(loaded.predict_margin(X[TURNED]), MARGINS)


def test_a_model_saved_without_feature_names_is_read(tmp_path):
    fitted(X.to_numpy()).save(tmp_path / "model.oddmodel")
    head, groups = read_model(tmp_path / "model.oddmodel")
    names = [f"group-{number}.npz" for number in range(len(groups))]
    del head["feature_names"]
    write_model(tmp_path / "old.oddmodel", head, dict(zip(names, groups, strict=True)))
    loaded = OneVsRest.load(tmp_path / "old.oddmodel")
    np.testing.assert_array_equal(loaded.predict_margin(X.to_numpy()), MARGINS)


@pytest.mark.parametrize("names", [["age"], "abc", [1, 2, 3]])
def test_a_saved_model_with_wrong_feature_names_is_refused(tmp_path, names):
    MODEL.save(tmp_path / "model.oddmodel")
    head, groups = read_model(tmp_path / "model.oddmodel")
    group_names = [f"group-{number}.npz" for number in range(len(groups))]
    head["feature_names"] = names
    write_model(tmp_path / "odd.oddmodel", head, dict(zip(group_names, groups, strict=True)))
    with pytest.raises(InvalidInput.__base__, match="feature_names"):
        OneVsRest.load(tmp_path / "odd.oddmodel")


def test_a_frame_whose_columns_stand_in_order_is_not_copied():
    from oddslip.adapters.features import check_features

    frame = pd.DataFrame(np.asfortranarray(X.to_numpy()), columns=FEATURES)
    assert np.shares_memory(check_features(frame, 3, FEATURES), frame.to_numpy())


def test_validation_rows_are_matched_by_feature_row_and_label():
    options = {"early_stopping": 2, "k": 1, "parameters": {"max_iter": 8}}
    plain = OneVsRest("hist", **options).fit(X, Y, validation=(X, Y))
    rows_with_ids, truth = X.set_axis(IDS)[TURNED], Y.set_axis(IDS)[["b", "a"]].iloc[SHUFFLED]
    other = OneVsRest("hist", **options).fit(X, Y, validation=(rows_with_ids, truth))
    np.testing.assert_array_equal(other.validation_map_, plain.validation_map_)


# ------------------------------------------------------------------------------------------ rows


def test_rows_of_training_are_matched_by_their_ids():
    rows_with_ids, shuffled_truth = X.set_axis(IDS), Y.set_axis(IDS).iloc[SHUFFLED]
    for rows, truth in [
        (rows_with_ids, shuffled_truth),
        (X, Y.iloc[SHUFFLED]),
        (X.iloc[SHUFFLED], Y),
        (in_polars(X).with_columns(row_id=pl.Series(IDS)), shuffled_truth),
        (
            rows_with_ids,
            in_polars(shuffled_truth).with_columns(row_id=pl.Series(shuffled_truth.index)),
        ),
    ]:
        model = fitted(rows, truth)
        np.testing.assert_allclose(model.predict_margin(X), MARGINS, atol=1e-6)
        assert model.label_names_ == tuple(LABELS)


def test_rows_that_one_side_names_alone_are_refused():
    rows_with_ids = X.set_axis(IDS)
    for rows, truth in [
        (rows_with_ids, Y),
        (rows_with_ids, Y.to_numpy()),
        (X, Y.set_axis(IDS)),
        (X[3:], Y),
    ]:
        with pytest.raises(InvalidInput, match="X and Y must"):
            fitted(rows, truth)


def test_numbers_in_another_order_are_matched_beside_an_array_with_a_warning():
    with pytest.warns(UserWarning, match="matched by number"):
        model = fitted(X.iloc[SHUFFLED], Y.to_numpy())
    np.testing.assert_allclose(model.predict_margin(X), MARGINS, atol=1e-6)


def test_a_panel_has_the_ids_of_its_rows_and_matches_labels_by_them():
    panel = MODEL.panel(X.set_axis(IDS), Y.set_axis(IDS).iloc[SHUFFLED])
    assert panel.row_ids.tolist() == IDS
    np.testing.assert_array_equal(panel.truths(), Y.to_numpy())
    panel = MODEL.panel(X, Y.iloc[SHUFFLED])
    np.testing.assert_array_equal(panel.truths(), Y.to_numpy())


def test_scores_in_a_file_have_the_ids_of_their_rows(tmp_path):
    score_to_file(MODEL, X.set_axis(IDS), tmp_path / "scores.parquet")
    assert pd.read_parquet(tmp_path / "scores.parquet")["row_id"].tolist() == IDS


def test_a_pair_goes_by_features_and_rows_of_what_was_prepared():
    rows_with_ids, shuffled_truth = X.set_axis(IDS), Y.set_axis(IDS).iloc[SHUFFLED]
    pair = MatchedPair(OneVsRest("logistic")).fit(rows_with_ids, shuffled_truth)
    np.testing.assert_allclose(pair.unweighted_.predict_margin(X[TURNED]), MARGINS, atol=1e-6)
    assert pair.panels(X[TURNED].set_axis(IDS)).weighted.row_ids.tolist() == IDS
    for _, capped in MatchedPair(OneVsRest("hist", parameters={"max_iter": 2})).sweep_caps(
        rows_with_ids, shuffled_truth, [None]
    ):
        assert capped.weighted_.feature_names_in_.tolist() == FEATURES


# ---------------------------------------------------------------------------------------- labels


def test_label_names_say_the_order_of_a_frames_columns_and_no_others():
    model = OneVsRest("logistic").fit(X, Y, label_names=["b", "a"])
    assert model.label_names_ == ("b", "a")
    np.testing.assert_allclose(model.predict_margin(X), MARGINS[:, ::-1], atol=1e-9)
    with pytest.raises(InvalidInput, match="'c'"):
        OneVsRest("logistic").fit(X, Y, label_names=["a", "c"])


def test_a_default_numbering_of_labels_is_no_name():
    assert fitted(X, Y.set_axis([0, 1], axis=1)).label_names_ == ("0", "1")
    assert fitted(X, Y.set_axis(range(2), axis=1)).label_names_ is None
