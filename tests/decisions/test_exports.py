"""Decisions in ONNX, SQL and JSON list what Python lists."""

import json

import numpy as np
import pyarrow as pa
import pytest
from tests.decisions.decision_worlds import DECISIONS, draw_rows, fit_decision, fit_repair

from oddslip import Decision
from oddslip.calibrators import Beta, Isotonic, Platt
from oddslip.errors import InvalidInput

N_DECISIONS = 100
SIMPLE = [each for each in DECISIONS if each["rule"] != "row"]
BY_JSON = [each for each in DECISIONS if each["rule"] != "row" or each["goal"] == "recall"]
ROWS = [each for each in DECISIONS if each["rule"] == "row"]


def draw_decision(seed, calibrators=(Isotonic, Platt, Beta), kinds=SIMPLE):
    """A fitted decision of a random kind, by random thresholds where it has some, and new rows."""
    from dataclasses import replace

    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(2, 9))
    calibrator = calibrators[seed % len(calibrators)]()
    repair = calibrator.fit(*draw_rows(seed, 150, n_labels)).fitted_
    arguments = dict(kinds[seed % len(kinds)])
    if "k_max" in arguments or seed % 2:
        arguments["k_max"] = int(rng.integers(1, n_labels + 1))
    decision = Decision(repair, **arguments).fit(*draw_rows(seed + 1000, 120, n_labels)).fitted_
    rule = decision.rule
    if rule.thresholds is not None:
        some = rng.random(n_labels)
        some[rng.random(n_labels) < 0.1] = np.inf
        decision = replace(decision, rule=replace(rule, thresholds=some))
    elif rule.form == "length" and rule.levels[0] < 1:
        decision = replace(decision, rule=replace(rule, levels=np.ones(1)))
    return decision, draw_rows(seed + 2000, 30, n_labels)[0]


@pytest.mark.filterwarnings("ignore:.*cannot reach")
def test_a_hundred_decisions_list_alike_in_onnx(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    for seed in range(N_DECISIONS):
        decision, scores = draw_decision(seed)
        decision.to_onnx(tmp_path / "d.onnx")
        session = runtime.InferenceSession(tmp_path / "d.onnx")
        (labels,) = session.run(["top_labels"], {"scores": scores})
        expected = decision.lists(scores)
        assert np.array_equal(labels, expected[:, : labels.shape[1]]), seed
        assert (expected[:, labels.shape[1] :] < 0).all()


@pytest.mark.filterwarnings("ignore:.*cannot reach")
def test_a_hundred_decisions_list_alike_in_sql(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    for seed in range(N_DECISIONS):
        decision, scores = draw_decision(seed)
        decision.to_sql(tmp_path / "d.sql", dialect="duckdb")
        base = duckdb.connect()
        rows, labels = np.indices(scores.shape)
        cells = {"row": rows.ravel(), "label": labels.ravel(), "score": scores.ravel()}
        base.register("cells", pa.table(cells))
        base.execute("CREATE TABLE scores AS SELECT * FROM cells")
        base.execute((tmp_path / "d.sql").read_text())
        lists = np.full((len(scores), decision.rule.k_max), -1)
        for row, label, slot in base.execute(
            "SELECT row, label, slot FROM oddslip_ranking"
        ).fetchall():
            lists[row, slot - 1] = label
        assert np.array_equal(lists, decision.lists(scores)), seed


def list_by_json(document, scores):
    """Lists by the document alone, for maps of knots: what a reader in another language does."""
    decision, labels = document["decision"], document["labels"]
    cells = np.empty(scores.shape)
    for at, label in enumerate(labels):
        knots = document["knots"][label["knots"]]
        cells[:, at] = np.interp(scores[:, at], knots["x"], knots["y"])
    level = float(decision["levels"][0])
    for row in cells:
        order = sorted(range(len(labels)), key=lambda at: (-row[at], at))
        total = row.sum()
        if decision["form"] == "threshold":
            limits = [max(float(each), level) for each in decision["thresholds"]]
            shown = [at for at in order if row[at] >= limits[at]]
        elif decision["form"] == "length":
            shown = order[: int(min(level, len(order)))]
        elif decision["form"] == "recall":
            before = np.cumsum([0.0, *row[order]])[:-1] / total
            shown = [at for at, mass in zip(order, before, strict=True) if mass < level]
        else:
            raise NotImplementedError
        yield shown[: decision["k_max"]]


@pytest.mark.filterwarnings("ignore:.*cannot reach")
def test_a_hundred_decisions_list_alike_by_json(tmp_path):
    for seed in range(N_DECISIONS):
        decision, scores = draw_decision(seed, (Isotonic,), BY_JSON)
        decision.to_json(tmp_path / "d.json")
        lists = list_by_json(json.loads((tmp_path / "d.json").read_text()), scores)
        for mine, theirs in zip(decision.lists(scores), lists, strict=True):
            assert mine[mine >= 0].tolist() == theirs, seed


@pytest.mark.parametrize("arguments", ROWS)
def test_lists_that_need_sums_over_a_row_are_refused_in_one_line(arguments, tmp_path):
    decision = fit_decision(fit_repair(), arguments).fitted_
    for write in (decision.to_onnx, lambda path: decision.to_sql(path, dialect="duckdb")):
        with pytest.raises(InvalidInput, match="takes thresholds and lists of one length"):
            write(tmp_path / "d.file")
    assert not list(tmp_path.iterdir())


def test_the_command_line_does_the_same_as_python(tmp_path, capsys):
    import oddslip
    from oddslip.cli.app import main

    repair = fit_repair()
    repair.save(tmp_path / "r.oddslip")
    scores, labels = draw_rows(1)
    np.save(tmp_path / "s.npy", scores)
    np.save(tmp_path / "y.npy", labels)
    decision = tmp_path / "d.oddslip"
    fit = ["decide", *(str(tmp_path / name) for name in ("r.oddslip", "s.npy", "y.npy"))]
    fit += [
        "--rule",
        "common_threshold",
        "--goal",
        "missed",
        "--target",
        "0.2",
        "-o",
        str(decision),
    ]
    assert main(fit) == 0
    assert "Guarantee: the expected share of missed labels is at most 20%" in " ".join(
        capsys.readouterr().out.split()
    )
    expected = Decision(repair, "common_threshold", goal="missed", target=0.2).fit(scores, labels)
    assert oddslip.load_decision(decision).to_dict() == expected.fitted_.to_dict()
    apply = [
        "apply",
        str(decision),
        str(tmp_path / "s.npy"),
        "--lists",
        "-o",
        str(tmp_path / "l.npy"),
    ]
    assert main(apply) == 0
    assert np.array_equal(np.load(tmp_path / "l.npy"), expected.lists(scores))
    export = ["export", str(decision), "--to", "json", "--lists", "-o", str(tmp_path / "d.json")]
    assert main(export) == 0
    assert json.loads((tmp_path / "d.json").read_text())["decision"]["form"] == "threshold"
