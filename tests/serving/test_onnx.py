"""The ONNX graph of a repair, run by onnxruntime, against our own answer."""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import oddslip
from oddslip.cli.app import main
from oddslip.errors import InvalidInput
from oddslip.kernels.maps import IDENTITY
from oddslip.repairs.maps import LabelMaps
from oddslip.serving.onnx import repair_graph

sys.path.insert(0, str(Path(__file__).parent))
from repair_worlds import as_repair, draw_repair

N_REPAIRS = 500
pytestmark = pytest.mark.filterwarnings("ignore:labels of .* are matched by position:UserWarning")
STANDARD = {
    "Abs",
    "Add",
    "Cast",
    "Concat",
    "Div",
    "Equal",
    "Exp",
    "Expand",
    "Gather",
    "GatherElements",
    "Identity",
    "LessOrEqual",
    "Log",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "Shape",
    "Sub",
    "TopK",
    "Where",
}


def run(model, scores):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    raw = model if isinstance(model, str) else model.SerializeToString()
    session = onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"scores": scores}), strict=True))


def only_sums(maps):
    """Whether no exponential or logarithm stands between a score and what is compared."""
    curved = maps.kind == "margin" and (maps.code == IDENTITY).any()
    return maps.scale == "probability" and not curved


def test_five_hundred_repairs_rank_as_ours_and_sums_agree_to_the_bit():
    exact = 0
    for seed in range(N_REPAIRS):
        repair, scores, k = draw_repair(
            seed, label_names=lambda n: tuple(f"l{j}" for j in range(n))
        )
        model = repair_graph(repair, k=k, scores=str(scores.dtype))
        outputs = run(model, scores)
        ranking = repair.rank(scores, k=k, threads=1)
        wide = repair.transform(scores, dtype=np.float64, threads=1)
        np.testing.assert_array_equal(outputs["top_labels"], ranking, err_msg=str(seed))
        tops = np.take_along_axis(outputs["probabilities"], outputs["top_labels"], axis=1)
        np.testing.assert_array_equal(outputs["top_probabilities"], tops)
        if only_sums(repair.maps):
            exact += 1
            np.testing.assert_array_equal(outputs["probabilities"], wide, err_msg=str(seed))
        else:
            np.testing.assert_allclose(outputs["probabilities"], wide, rtol=1e-14, atol=1e-300)
        assert {node.op_type for node in model.graph.node} <= STANDARD
        assert [(each.domain, each.version) for each in model.opset_import] == [("", 18)]
    assert exact > N_REPAIRS // 5


def test_saturated_and_tied_rows_rank_the_lower_label_first():
    zeros = np.zeros(6)
    maps = LabelMaps(
        "probability",
        "probability",
        zeros,
        zeros,
        zeros,
        zeros,
        [0, 0, 0, 2, 2, 2],
        [2, 2, 2, 4, 4, 4],
        [0.2, 0.9, 0.1, 0.9],
        [0.0, 1.0, 0.0, 1.0],
    )
    repair = as_repair(maps)
    scores = np.concatenate([np.ones((3, 6)), np.zeros((2, 6)), np.full((2, 6), 0.5)])
    outputs = run(repair_graph(repair, k=6), scores)
    np.testing.assert_array_equal(outputs["top_labels"], repair.rank(scores, k=6))
    assert outputs["top_labels"][0].tolist() == [0, 1, 2, 3, 4, 5]


def test_the_graph_says_where_it_comes_from(tmp_path):
    names = ("plain", 'it\'s "quoted"\n', "ünïcode\u202e")
    rng = np.random.default_rng(0)
    scores = rng.random((200, 3))
    repair = oddslip.Repair(k=2, rule="isotonic-0").fit(
        scores, rng.random((200, 3)) < scores, label_names=names
    )
    export = repair.to_onnx(tmp_path / "repair.onnx", k=2)
    assert export.n_bytes == (tmp_path / "repair.onnx").stat().st_size
    assert export.largest_deviation == 0.0
    model = onnx.load(tmp_path / "repair.onnx")
    properties = {each.key: each.value for each in model.metadata_props}
    assert json.loads(properties["oddslip:label_names"]) == list(names)
    assert properties["oddslip:calibrator"] == "Repair"
    assert json.loads(properties["oddslip:parameters"])["chosen"] == "isotonic-0"
    assert properties["oddslip:written_by"] == f"oddslip {oddslip.__version__}"
    assert json.loads(properties["oddslip:k"]) == 2
    outputs = run(str(tmp_path / "repair.onnx"), scores)
    np.testing.assert_array_equal(outputs["top_labels"], repair.rank(scores))


def test_a_float32_graph_tells_how_far_off_it_is(tmp_path, capsys):
    repair, scores, _ = draw_repair(8)
    repair.save(tmp_path / "repair.oddslip")
    out = tmp_path / "single.onnx"
    command = ["export", str(tmp_path / "repair.oddslip"), "--to", "onnx", "--precision", "float32"]
    assert main([*command, "--json", "-o", str(out)]) == 0
    export = json.loads(capsys.readouterr().out)
    assert 1e-9 < export["largest_deviation"] < 1e-3
    probabilities = run(str(out), scores.astype(np.float64))["probabilities"]
    assert probabilities.dtype == np.float32
    away = np.abs(probabilities - repair.transform(scores, dtype=np.float64)).max()
    assert away <= 3 * export["largest_deviation"]
    assert main([*command, "-o", str(out)]) == 0
    assert "differs from float64 by up to" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be between 1"),
        ({"scores": "float16"}, 'scores must be "float64" or "float32"'),
        ({"precision": "half"}, 'precision must be "float64" or "float32"'),
    ],
)
def test_invalid_options_are_rejected_and_leave_no_file(options, message, tmp_path):
    repair, _, _ = draw_repair(1)
    with pytest.raises(InvalidInput, match=message):
        repair.to_onnx(tmp_path / "repair.onnx", **options)
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_the_way_to_get_it_is_told(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    repair, _, _ = draw_repair(1)
    with pytest.raises(oddslip.MissingDependency, match=r'pip install "oddslip\[onnx\]"'):
        repair.to_onnx(tmp_path / "repair.onnx")
