"""A row-aware repair keeps its values in files, in the runtime and in exports."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

import oddslip
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.repairs.repair_file import read_repair_file
from oddslip.serving import load_runtime
from oddslip.serving.json import describe_maps

sys.path.insert(0, str(Path(__file__).parent))
from repair_worlds import draw_row_aware

SEEDS = range(12)


def name_labels(n_labels=12):
    return tuple(f"label {at}" for at in range(n_labels))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loaded_repair_and_the_runtime_give_the_same_bits(seed, tmp_path):
    repair, scores = draw_row_aware(seed)
    repair.save(tmp_path / "repair.oddslip")
    loaded, runtime = (
        each(tmp_path / "repair.oddslip") for each in (oddslip.load_repair, load_runtime)
    )
    wide = repair.transform(scores, dtype=np.float64)
    ranking = repair.rank(scores, k=5)
    for other in (loaded, runtime):
        np.testing.assert_array_equal(other.transform(scores, dtype=np.float64), wide)
        np.testing.assert_array_equal(other.rank(scores, k=5), ranking)
        np.testing.assert_array_equal(other.transform(scores), wide.astype(scores.dtype))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_runtime_leaves_out_the_same_cells(seed, tmp_path):
    repair, scores = draw_row_aware(seed)
    repair.save(tmp_path / "repair.oddslip")
    runtime, rng = load_runtime(tmp_path / "repair.oddslip"), np.random.default_rng(seed)
    mask = rng.random(scores.shape) < 0.3
    exclude = [np.flatnonzero(row).tolist() for row in mask]
    ranking = repair.rank(scores, k=8, exclude=exclude)
    np.testing.assert_array_equal(runtime.rank(scores, k=8, exclude=exclude), ranking)
    missing = np.where(mask, np.nan, scores).astype(scores.dtype)
    np.testing.assert_array_equal(runtime.rank(missing, k=8, nan="absent"), ranking)
    np.testing.assert_array_equal(
        runtime.transform(missing, nan="absent"), repair.transform(missing, nan="absent")
    )


def test_candidates_of_the_runtime_are_rows_with_the_other_labels_absent(tmp_path):
    repair, scores = draw_row_aware(3)
    repair.save(tmp_path / "repair.oddslip")
    candidates = [7, 2, 5, 11]
    absent = np.full_like(scores, np.nan)
    absent[:, candidates] = scores[:, candidates]
    runtime = load_runtime(tmp_path / "repair.oddslip")
    np.testing.assert_array_equal(
        runtime.rank(scores[:, candidates], k=3, candidates=candidates),
        repair.rank(absent, k=3, nan="absent"),
    )


def test_columns_in_another_order_are_matched_by_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    repair, scores = draw_row_aware(5, label_names=name_labels())
    repair.save(tmp_path / "repair.oddslip")
    order = np.random.default_rng(0).permutation(12)
    frame = pandas.DataFrame(scores[:, order], columns=[name_labels()[at] for at in order])
    expected = repair.transform(pandas.DataFrame(scores, columns=name_labels()))[:, order]
    for each in (repair, load_runtime(tmp_path / "repair.oddslip")):
        np.testing.assert_array_equal(each.transform(frame), expected)


@np.errstate(over="ignore")
def read_by_the_schema(document, row):
    """Values of one row by the text of the schema, label by label."""
    labels, stage = document["labels"], document["stage"]
    clipped = np.clip(row, 1e-12, 1 - 1e-12)
    z = row if document["kind"] == "margin" else logit(clipped)
    values, chances = [], []
    for label, score, odds in zip(labels, row, z, strict=True):
        value = odds
        if label["form"] == "affine":
            value = label["a"] * odds + label["b"]
        elif label["form"] == "constant":
            value = float(label["value"])
        elif label["form"] == "excluded":
            value = -np.inf
        values.append(value)
        plain = label["form"] == "identity" and document["kind"] == "probability"
        chances.append(score if plain else expit(value))
    outcome = []
    for at, value in enumerate(values):
        support = sum(
            lift * (chances[other] - stage["prevalence"][other])
            for other, lift in zip(stage["partners"][at], stage["lift"][at], strict=True)
            if labels[other]["form"] != "excluded"
        )
        moved = (1 + stage["slope"]) * value + stage["intercept"] + stage["support"] * support
        outcome.append(expit(moved))
    return outcome


def test_a_reader_of_the_json_gets_the_same_probabilities():
    n_read = 0
    for seed in range(30):
        repair, scores = draw_row_aware(seed)
        document = describe_maps(repair)
        assert document["schema"] == "oddslip.maps/2"
        if any(label["form"] == "beta" for label in document["labels"]):
            continue
        theirs = [read_by_the_schema(document, row.astype(float)) for row in scores]
        np.testing.assert_allclose(
            theirs, repair.transform(scores, dtype=np.float64), rtol=1e-9, atol=1e-300
        )
        n_read += 1
    assert n_read


@pytest.mark.parametrize("seed", SEEDS)
def test_onnx_gives_the_same_probabilities_and_lists(seed, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    repair, scores = draw_row_aware(seed)
    repair.to_onnx(tmp_path / "repair.onnx", k=5)
    session = runtime.InferenceSession(tmp_path / "repair.onnx")
    wide = scores.astype(np.float64)
    theirs, labels = session.run(["probabilities", "top_labels"], {"scores": wide})
    ours = repair.transform(wide)
    np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-300)
    values = np.take_along_axis(ours, repair.rank(wide, k=5).astype(np.int64), axis=1)
    listed = np.take_along_axis(ours, labels, axis=1)  # near ties may swap: same probabilities
    np.testing.assert_allclose(listed, values, rtol=1e-9, atol=1e-300)
    assert (labels == repair.rank(wide, k=5)).mean() > 0.99


@pytest.mark.parametrize(
    "use",
    [
        lambda repair, scores, path: repair.to_sql(path / "maps.sql", dialect="duckdb"),
        lambda repair, scores, path: repair.transform(scores, prior_shift="em"),
        lambda repair, scores, path: repair.maps.probabilities_at(scores[0], np.arange(12)),
    ],
    ids=["sql", "prior_shift", "cells"],
)
def test_what_maps_labels_one_by_one_refuses_it_and_says_what_to_fit(use, tmp_path):
    repair, scores = draw_row_aware(1)
    with pytest.raises(InvalidInput, match='rule="hierarchical"'):
        use(repair, scores, tmp_path)


def test_a_fold_refuses_it_and_says_what_to_fit():
    from oddslip.folding.affine import affine_of

    with pytest.raises(InvalidInput, match='rule="hierarchical"'):
        affine_of(draw_row_aware(1)[0])


@pytest.mark.parametrize("numbers", [{"slope": -1.0}, {"slope": -2.0}])
def test_a_file_with_an_invalid_stage_is_refused(numbers, tmp_path, monkeypatch):
    from oddslip.repairs import fitted_repair, repair_file

    repair, _ = draw_row_aware(2)
    monkeypatch.setattr(repair_file, "check_stage", lambda stage, maps: None)
    object.__setattr__(repair.maps, "stage", repair.maps.stage._replace(**numbers))
    path = tmp_path / "repair.oddslip"
    fitted_repair.save_repair(repair, path)
    monkeypatch.undo()
    with pytest.raises(UnreadableFile, match="row stage"):
        read_repair_file(path)
