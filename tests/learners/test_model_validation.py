"""Saved models with a right checksum and wrong contents are refused in one line, in any learner.

They once ended the process or hung, so they are tried in a child.
"""

import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lightgbm")

from oddslip.errors import UnreadableFile
from oddslip.io import inputs
from oddslip.learners import OneVsRest
from oddslip.learners.model_validation.arrays import read_arrays

sys.path.insert(0, str(Path(__file__).parents[1] / "attacks"))

from isolation import run_cases

from attacks import model_files
from attacks.model_files import (
    CASES,
    HEAD,
    QUICK,
    join_group,
    line_of,
    make_rows,
    retell_sizes,
    saved,
    seal_older,
    split_group,
    use,
)

KINDS = sorted({kind for kind, _ in CASES})
NEEDS = {"xgboost": "xgboost", "dart": "xgboost", "mlp": "torch"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_crafted_model_is_refused_in_one_line_and_nothing_crashes(kind):
    pytest.importorskip(NEEDS.get(kind, "lightgbm"))
    cases = [case for case in CASES if case[0] == kind]
    root = str(Path(model_files.__file__).parents[1])
    outcomes = run_cases(model_files.__file__, cases, environment={"PYTHONPATH": root})
    let_through = {
        case[1]: outcome
        for case, outcome in zip(cases, outcomes, strict=True)
        if not outcome.startswith("refused UnreadableFile")
    }
    assert not let_through


@pytest.mark.parametrize("name", QUICK)
def test_a_model_as_it_was_saved_is_let_through(name):
    pytest.importorskip(NEEDS.get(name, "lightgbm"))
    parts = dict(saved(name))
    head = json.loads(parts.pop(HEAD))
    assert use(head, parts) == use(head, parts, seal_older)


SORTS = {
    "trees of one leaf": {"min_gain_to_split": 1e9},
    "no rounds": {"num_iterations": 0},
    "constraints": {"monotone_constraints": [0, 1, 0, 0, -1]},
    "missing values": {"zero_as_missing": True},
    "many leaves": {"num_leaves": 100, "min_data_in_leaf": 1},
    "a random forest": {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
    "dropped trees": {"boosting": "dart"},
    "interactions": {"interaction_constraints": [[0, 1], [2, 3, 4]]},
    "gains as importance": {"saved_feature_importance_type": 1},
}


@pytest.mark.parametrize("sort", SORTS)
def test_whatever_lightgbm_was_told_it_can_be_saved_and_loaded(sort, tmp_path):
    X, Y = make_rows()
    told = {"num_iterations": 2, "num_leaves": 4, **SORTS[sort]}
    model = OneVsRest(mode="exact", parameters=told, threads=1).fit(X, Y)
    model.save(tmp_path / "m")
    loaded = OneVsRest.load(tmp_path / "m")
    assert np.array_equal(loaded.predict_margin(X), model.predict_margin(X))


def test_trees_with_categories_are_let_through_and_wrong_ones_are_not():
    import lightgbm as lgb

    from oddslip.learners.model_validation.lightgbm import check_model_text

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 40, 400), rng.normal(size=400)]).astype(float)
    told = {"objective": "binary", "verbosity": -1, "min_data_per_group": 5, "cat_smooth": 1}
    rows = lgb.Dataset(X, np.isin(X[:, 0], [1, 3, 33, 35]), categorical_feature=[0])
    text = lgb.train(told, rows, 2).model_to_string()
    assert "num_cat=1" in text
    assert check_model_text(text, 2) == 1
    for key, value in (("cat_threshold", 7), ("cat_boundaries", "0 9"), ("num_cat", 3)):
        with pytest.raises(UnreadableFile, match="damaged"):
            check_model_text(retell_sizes(line_of(key, value)(text)), 2)


def test_a_checkpoint_with_crafted_trees_is_refused_and_names_the_file(tmp_path):
    from oddslip.learners.checkpoint import read_group, write_group

    X, Y = make_rows()
    told = {"parameters": QUICK["lightgbm"], "threads": 1, "checkpoint": tmp_path}
    OneVsRest(**told).fit(X, Y)
    path = tmp_path / "group-00000.lgb.txt"
    line, text = split_group(read_group(path))
    write_group(path, join_group(line, line_of("left_child", "0 0 0 0 0")(text)))
    with pytest.raises(UnreadableFile, match=r"group-00000.*later node.*Remove it"):
        OneVsRest(**told).fit(X, Y)


@pytest.mark.parametrize("groups", [[], [[0]], [[0, 0]], [[0, 1], [1]], [[0, 9]], [["0", "1"]], 7])
def test_a_checkpoint_whose_groups_leave_labels_out_or_repeat_them_is_refused(groups, tmp_path):
    X, Y = make_rows()
    told = {"parameters": QUICK["lightgbm"], "threads": 1, "checkpoint": tmp_path}
    OneVsRest(**told).fit(X, Y)
    manifest = json.loads((tmp_path / "training.json").read_text())
    (tmp_path / "training.json").write_text(json.dumps({**manifest, "groups": groups}))
    with pytest.raises(UnreadableFile, match="was altered"):
        OneVsRest(**told).fit(X, Y)


def test_a_booster_of_crafted_trees_is_not_laid_out():
    from oddslip.adapters.forest import lay_forest

    _, text = split_group(saved("lightgbm")["group-00000.lgb.txt"])
    assert lay_forest([text]) is not None
    for key, value in (
        ("left_child", "9 9 9 9 9"),
        ("right_child", "-99 -2 -3 -4 -5"),
        ("split_feature", "5 0 0 0 0"),
        ("threshold", "nan 0 0 0 0"),
        ("leaf_value", "0 0"),
        ("num_leaves", "60"),
        ("num_tree_per_iteration", "5"),
    ):
        assert lay_forest([line_of(key, value)(text)]) is None, key


def test_a_forest_refuses_more_features_than_it_knows():
    from oddslip.adapters.forest import lay_forest

    _, text = split_group(saved("lightgbm")["group-00000.lgb.txt"])
    with pytest.raises(ValueError, match="must have the 5 features of training, got 6"):
        lay_forest([text]).sum_rows(np.zeros((3, 6)))


def test_a_format_of_several_lines_is_told_in_one():
    parts = dict(saved("logistic"))
    head = {**json.loads(parts.pop(HEAD)), "format": "a\nb" * 50}
    with pytest.raises(UnreadableFile, match=r"has format 'a\\nb") as refused:
        use(head, parts, seal_older)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("inside", [False, True], ids=["in the archive", "in a group"])
def test_a_model_that_would_unpack_to_more_than_memory_holds_is_not_unpacked(
    inside, tmp_path, monkeypatch
):
    zeros = io.BytesIO()
    np.save(zeros, np.zeros(2_000_000))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("slope0.npy", zeros.getvalue())
        archive.writestr("model.json", "{}")
    monkeypatch.setattr(inputs, "free_memory", lambda: 10**6)
    monkeypatch.setattr(zipfile.ZipFile, "open", None)  # nothing is unpacked
    path = tmp_path / "m.oddmodel"
    path.write_bytes(packed.getvalue())
    with pytest.raises(UnreadableFile, match="must fit into memory"):
        read_arrays(path.read_bytes()) if inside else OneVsRest.load(path)
