"""A repair applied to scores goes by the names of labels, wherever it is applied, and tells them."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import oddslip
from oddslip import InvalidInput, Repair, Repaired, check, panel_from
from oddslip.calibrators import Isotonic
from oddslip.cli.app import main
from oddslip.serving import load_runtime

RNG = np.random.default_rng(3)
NAMES = ["apple", "pear", "plum", "fig"]
SCORES = RNG.random((400, 4))
TRUTH = RNG.random((400, 4)) < SCORES * [0.9, 0.5, 0.3, 0.2]
FRAME = pd.DataFrame(SCORES, columns=NAMES)
IDS = [f"u{row}" for row in range(400)]
TURNED = ["fig", "plum", "apple", "pear"]
AT = [NAMES.index(name) for name in TURNED]


def fit(names=NAMES):
    return Repair(k=2, rule="isotonic-0").fit(SCORES, TRUTH, label_names=names)


NAMED, UNNAMED = fit(), fit(None)
NUMBERED = Repair(k=2, rule="isotonic-0").fit(
    pd.DataFrame(SCORES[:, AT], columns=AT), pd.DataFrame(TRUTH[:, AT], columns=AT)
)
SHARES = UNNAMED.transform(SCORES)
TOP = UNNAMED.rank(SCORES)


def whole(blocks):
    return np.concatenate([block for _, block in blocks])


@pytest.fixture
def served(tmp_path):
    """Everything that applies a repair to scores: name to (repair, scores) -> answer."""

    def runtime(repair):
        repair.save(tmp_path / "repair.oddslip")
        return load_runtime(tmp_path / "repair.oddslip")

    return {
        "transform": lambda repair, scores: repair.transform(scores),
        "transform_blocks": lambda repair, scores: whole(repair.fitted_.transform_blocks(scores)),
        "rank": lambda repair, scores: repair.rank(scores),
        "rank_blocks": lambda repair, scores: whole(repair.fitted_.rank_blocks(scores, k=2)),
        "prior_shift": lambda repair, scores: repair.fitted_.prior_shift(scores).shift,
        "check": lambda repair, scores: check(repair, scores, n_replicates=0).to_dict(),
        "check_labelled": lambda repair, scores: (
            check(repair, scores, TRUTH, n_replicates=20).metrics["map"].value
        ),
        "runtime": lambda repair, scores: runtime(repair).transform(scores),
        "runtime_rank": lambda repair, scores: runtime(repair).rank(scores, k=2),
    }


EVERYWHERE = [
    "transform",
    "transform_blocks",
    "rank",
    "rank_blocks",
    "prior_shift",
    "check",
    "check_labelled",
    "runtime",
    "runtime_rank",
]


@pytest.mark.parametrize("where", EVERYWHERE)
def test_names_on_one_side_alone_go_by_position_with_one_warning(served, where):
    apply = served[where]
    expected = apply(UNNAMED, SCORES)
    for repair, scores in ((NAMED, SCORES), (UNNAMED, FRAME)):
        with pytest.warns(UserWarning, match="by position") as caught:
            result = apply(repair, scores)
        assert len(caught) == 1
        np.testing.assert_equal(result, expected)


@pytest.mark.parametrize("where", EVERYWHERE)
def test_other_labels_or_another_number_of_them_are_refused(served, where):
    apply = served[where]
    for repair, scores in [
        (NAMED, FRAME.rename(columns={"fig": "kiwi"})),
        (NAMED, FRAME.drop(columns="fig")),
        (NAMED, SCORES[:, :3]),
        (UNNAMED, SCORES[:, :3]),
        (UNNAMED, FRAME.drop(columns="fig")),
    ]:
        with pytest.raises(InvalidInput):
            apply(repair, scores)


@pytest.mark.parametrize("where", ["transform", "runtime", "transform_blocks"])
def test_names_in_another_order_and_numbers_are_matched_without_a_warning(served, where):
    apply = served[where]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(apply(NAMED, FRAME[TURNED]), SHARES[:, AT])
        np.testing.assert_array_equal(apply(NUMBERED, SCORES), SHARES)
        numbered = pd.DataFrame(SCORES[:, AT], columns=AT)
        np.testing.assert_array_equal(apply(UNNAMED, numbered), SHARES[:, AT])
        np.testing.assert_array_equal(
            apply(NUMBERED, numbered[[2, 0, 1, 3]]), SHARES[:, [2, 0, 1, 3]]
        )


def test_the_commands_say_so_in_a_line_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    NAMED.save("repair.oddslip")
    np.save("scores.npy", SCORES)
    for command in (
        ("apply", "repair.oddslip", "scores.npy", "-o", "out.npy"),
        ("apply", "repair.oddslip", "scores.npy", "-k", "2", "-o", "top.npy"),
        ("check", "repair.oddslip", "scores.npy"),
    ):
        process = subprocess.run(
            [sys.executable, "-m", "oddslip", *command], capture_output=True, text=True
        )
        assert process.returncode == 0, process.stderr
        (line,) = process.stderr.strip().splitlines()
        assert line.startswith("oddslip: note: ")
        assert "by position" in line
    np.testing.assert_array_equal(np.load("out.npy"), SHARES)
    np.testing.assert_array_equal(np.load("top.npy"), TOP)
    FRAME.drop(columns="fig").to_parquet("fewer.parquet")
    assert main(["apply", "repair.oddslip", "fewer.parquet", "-o", "out.npy"]) == 2


# ----------------------------------------------------------------------------------------- runtime


def test_a_series_of_one_row_goes_by_the_names_of_its_index(tmp_path):
    NAMED.save(tmp_path / "repair.oddslip")
    runtime = load_runtime(tmp_path / "repair.oddslip")
    row = FRAME[TURNED].iloc[5]
    np.testing.assert_array_equal(runtime.transform(row), SHARES[5, AT])
    expected = NAMED.rank(FRAME[TURNED].iloc[[5]])[0]
    assert runtime.rank(row, k=2).tolist() == expected.tolist()
    assert runtime.rank(row, k=2, names=True).tolist() == np.array(TURNED)[expected].tolist()
    with pytest.raises(InvalidInput, match="kiwi"):
        runtime.transform(row.rename({"fig": "kiwi"}))


def test_a_runtime_that_reads_frames_does_not_load_pandas(tmp_path):
    NAMED.save(tmp_path / "repair.oddslip")
    code = """
import sys
import numpy as np
from oddslip.serving.runtime import load_runtime
class Index(list):
    def to_numpy(self): return np.array(self, object)
class Row:
    index, ndim = Index(["fig", "plum", "apple", "pear"]), 1
    def to_numpy(self): return np.array([0.4, 0.3, 0.2, 0.1])
    __array__ = lambda self, *_, **__: self.to_numpy()
row = load_runtime(sys.argv[1]).transform(Row())
assert "pandas" not in sys.modules
print(*row)
"""
    process = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "repair.oddslip")],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = UNNAMED.transform([[0.2, 0.1, 0.3, 0.4]])[0, AT]
    np.testing.assert_array_equal([float(each) for each in process.stdout.split()], expected)


# ---------------------------------------------------------------------------------------- Repaired

X = RNG.normal(size=(400, 5))
Y = (X[:, :4] + RNG.normal(size=(400, 4)) > [-0.5, 0.5, 1.0, 1.5]).astype(int)
MODEL = OneVsRestClassifier(LogisticRegression()).fit(X[:200], Y[:200])
PARTS = dict(zip(NAMES, MODEL.estimators_, strict=True))


def repair_of(panel):
    return Repair(k=2, kind="margin", rule="isotonic-0").fit(panel)


PLAIN = repair_of(panel_from(MODEL, X[200:], Y[200:]))
WITH_NAMES = repair_of(panel_from(MODEL, X[200:], Y[200:], label_names=NAMES))


def test_a_model_and_its_repair_are_matched_by_name_whatever_their_order():
    expected = Repaired(MODEL, PLAIN).predict_proba(X)
    parts = {name: PARTS[name] for name in TURNED}
    repaired = Repaired(parts, WITH_NAMES)
    np.testing.assert_array_equal(repaired.predict_proba(X), expected[:, AT])
    assert repaired.label_names == tuple(TURNED)
    label_names = np.array(TURNED)[repaired.predict_topk(X)]
    np.testing.assert_array_equal(repaired.predict_topk(X, names=True), label_names)


def test_a_model_or_a_repair_without_names_is_joined_by_position_with_a_warning():
    expected = Repaired(MODEL, PLAIN).predict_proba(X)
    for model, repair in ((MODEL, WITH_NAMES), (PARTS, PLAIN)):
        with pytest.warns(UserWarning, match="by position"):
            served = Repaired(model, repair)
        np.testing.assert_array_equal(served.predict_proba(X), expected)  # and says no more
        assert served.label_names == tuple(NAMES)
    served = Repaired(MODEL, WITH_NAMES, label_names=NAMES)  # who says it is not warned
    np.testing.assert_array_equal(served.predict_proba(X), expected)
    turned = Repaired(PARTS, WITH_NAMES, label_names=TURNED)
    np.testing.assert_array_equal(turned.predict_proba(X), expected[:, AT])
    with pytest.raises(InvalidInput, match="kiwi"):
        Repaired(MODEL, WITH_NAMES, label_names=[*NAMES[:3], "kiwi"])
    with pytest.raises(InvalidInput, match="kiwi"):
        Repaired({**{name: PARTS[name] for name in NAMES[:3]}, "kiwi": PARTS["fig"]}, WITH_NAMES)


def test_names_that_panel_from_is_given_say_the_order_of_the_models_and_no_others():
    expected = panel_from(MODEL, X).scores
    panel = panel_from(PARTS, X, label_names=TURNED)
    assert panel.label_names == tuple(TURNED)
    np.testing.assert_array_equal(panel.scores, expected[:, AT])
    truth = panel_from(PARTS, X, pd.DataFrame(Y, columns=NAMES), label_names=TURNED).truths()
    np.testing.assert_array_equal(truth, Y[:, AT])
    with pytest.raises(InvalidInput, match="kiwi"):
        panel_from(PARTS, X, label_names=[*NAMES[:3], "kiwi"])
    with pytest.raises(InvalidInput, match="label"):
        panel_from(PARTS, X, label_names=NAMES[:3])


def test_rows_of_a_models_panel_are_matched_by_their_ids():
    rows = pd.DataFrame(X, index=IDS)
    truth = pd.DataFrame(Y, index=IDS).iloc[::-1]
    panel = panel_from(MODEL, rows, truth)
    assert panel.row_ids.tolist() == IDS
    np.testing.assert_array_equal(panel.truths(), Y)
    numbered = panel_from(MODEL, pd.DataFrame(X), pd.DataFrame(Y).iloc[::-1])
    np.testing.assert_array_equal(numbered.truths(), Y)
    with pytest.raises(InvalidInput, match="row ids"):
        panel_from(MODEL, rows, Y)


# ----------------------------------------------------------------------------------- names returned


def test_rank_gives_names_for_arrays_and_a_frame_with_its_ids_for_a_frame():
    expected = np.array(NAMES, object)[TOP]
    framed = FRAME.set_axis(IDS)
    for call in (NAMED.rank, NAMED.fitted_.rank):
        turned = call(framed[TURNED], k=2, names=True).to_numpy()
        np.testing.assert_array_equal(turned, np.array(TURNED)[call(framed[TURNED], k=2)])
        result = call(framed, k=2, names=True)
        assert isinstance(result, pd.DataFrame)
        assert result.index.tolist() == IDS
        assert result.columns.tolist() == ["label_1", "label_2"]
        np.testing.assert_array_equal(result.to_numpy(), expected)
        result = call(pl.DataFrame(dict(zip(NAMES, SCORES.T, strict=True))), k=2, names=True)
        assert isinstance(result, np.ndarray)
        np.testing.assert_array_equal(result, expected)
    with pytest.warns(UserWarning, match="by position"):
        np.testing.assert_array_equal(NAMED.rank(SCORES, names=True), expected)
    assert Isotonic().fit(FRAME, TRUTH).rank(framed, k=1, names=True).shape == (400, 1)
    assert UNNAMED.rank(SCORES, names=True).tolist() == TOP.astype(str).tolist()


def test_rank_of_raw_scores_gives_frames_of_names_and_of_scores():
    framed = FRAME.set_axis(IDS)
    labels, scores = oddslip.rank(framed, k=3, names=True, with_scores=True)
    ranking, top_scores = oddslip.rank(SCORES, k=3, with_scores=True)
    assert labels.columns.tolist() == ["label_1", "label_2", "label_3"]
    assert scores.columns.tolist() == ["score_1", "score_2", "score_3"]
    assert labels.index.tolist() == scores.index.tolist() == IDS
    np.testing.assert_array_equal(labels.to_numpy(), np.array(NAMES, object)[ranking])
    np.testing.assert_array_equal(scores.to_numpy(), top_scores)
    assert isinstance(oddslip.rank(framed, k=3), np.ndarray)


def test_an_empty_slot_has_no_name():
    hole = FRAME.copy()
    hole.iloc[0, 1:] = np.nan
    result = NAMED.rank(hole, k=2, nan="absent", names=True)
    assert result.iloc[0].tolist() == ["apple", None]


def test_the_runtime_gives_the_names_that_the_repair_gives(tmp_path):
    NAMED.save(tmp_path / "repair.oddslip")
    runtime, framed = load_runtime(tmp_path / "repair.oddslip"), FRAME.set_axis(IDS)[TURNED]
    pd.testing.assert_frame_equal(
        runtime.rank(framed, k=2, names=True), NAMED.rank(framed, names=True)
    )
    some = runtime.rank(SCORES[0, [3, 1]], k=2, candidates=["fig", "pear"], names=True)
    assert set(some) == {"fig", "pear"}
    assert runtime.rank(SCORES[0, [3]], k=2, candidates=["fig"], names=True).tolist() == [
        "fig",
        None,
    ]


def test_the_top_of_a_frame_of_rows_has_its_ids():
    rows = pd.DataFrame(X, index=IDS)
    with pytest.warns(UserWarning, match="by position"):
        served = Repaired(MODEL, WITH_NAMES)
    result = served.predict_topk(rows, names=True)
    assert result.index.tolist() == IDS
    np.testing.assert_array_equal(result.to_numpy(), served.predict_topk(X, names=True))


# ------------------------------------------------------------------------------- within one call


def test_a_call_that_fits_or_exports_says_nothing_of_names_that_it_was_given_itself(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for names in (None, NAMES):
            repaired = Isotonic().fit_transform(SCORES, TRUTH, label_names=names)
            np.testing.assert_array_equal(repaired, Isotonic().fit(SCORES, TRUTH).transform(SCORES))
        truth = pd.DataFrame(TRUTH, columns=NAMES)
        np.testing.assert_array_equal(Isotonic().fit_transform(SCORES, truth), repaired)
        turned = Isotonic().fit_transform(FRAME[TURNED], truth)
        np.testing.assert_array_equal(turned, repaired[:, AT])
        framed = (
            Isotonic()
            .set_output(transform="pandas")
            .fit_transform(FRAME.set_axis(IDS), truth.set_axis(IDS))
        )
        assert (framed.index.tolist(), framed.columns.tolist()) == (IDS, NAMES)
        NAMED.to_onnx(tmp_path / "repair.onnx", k=2, precision="float32")
        NAMED.to_onnx(tmp_path / "exact.onnx")
