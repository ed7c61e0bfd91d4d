"""Whatever a repair was fitted on, it is saved, loaded, served and exported with the same ranks."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import oddslip
from oddslip.calibrators.catalogue import CANDIDATES, NAMES, build_calibrator
from oddslip.cli.app import main
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.repairs.repair_file import read_repair_file
from oddslip.repairs.row_aware import RowAwareMaps
from oddslip.selection.rules import RULES
from oddslip.serving import load_runtime

# Repairs with names are applied to arrays here.
pytestmark = pytest.mark.filterwarnings("ignore:labels of .* are matched by position:UserWarning")

ROWS, LABELS, K = 240, 6, 3
RNG = np.random.default_rng(8)
PROBABILITIES = RNG.beta(1, 3, (ROWS, LABELS))
MARGINS = np.log(PROBABILITIES) - np.log1p(-PROBABILITIES)
TRUTH = (RNG.random((ROWS, LABELS)) < PROBABILITIES).astype(np.int8)
TRUTH[:, 5] = 0  # a dead label
GONE = RNG.random((ROWS, LABELS)) < 0.3
GONE[:3] = True  # rows with fewer candidates than slots
GONE[:3, 1] = False
NOWHERE = GONE.copy()
NOWHERE[:, 4] = True  # a label that is nowhere a candidate
WEIGHTS = np.linspace(1.0, 9.0, LABELS)
PRIOR = np.linspace(0.1, 0.4, LABELS)
TIMES = RNG.integers(1, 5, ROWS).astype(np.float64)
NAMED = [f"label {j}" for j in range(LABELS)]


def dense(scores):
    return {"scores": scores}


def one_nan(scores):
    cells = scores.copy()
    cells[7, 2] = np.nan
    return {"scores": cells, "nan": "absent"}


def nan_absent(scores, gone=GONE):
    return {"scores": np.where(gone, scores.dtype.type(np.nan), scores), "nan": "absent"}


def nowhere(scores):
    return nan_absent(scores, NOWHERE)


def excluded(scores):
    return {"scores": scores, "exclude": sparse.csr_array(GONE.astype(np.int8))}


def sparse_scores(scores):
    rows, labels = np.nonzero(~GONE)
    return {"scores": sparse.csr_array((scores[rows, labels], (rows, labels)), scores.shape)}


def long_table(scores):
    rows, labels = np.nonzero(~GONE)
    columns = {
        "row": rows,
        "label": [NAMED[j] for j in labels],
        "score": scores[rows, labels],
        "true": TRUTH[rows, labels].astype(bool),
    }
    return pd.DataFrame(columns)


WAYS = {
    "dense": dense,
    "one NaN": one_nan,
    "NaN absent": nan_absent,
    "nowhere a candidate": nowhere,
    "exclude": excluded,
    "sparse": sparse_scores,
}
STAGED = replace(RULES["row_aware"], row_guard=-np.inf)
EVERY = {
    **{name: lambda name=name, **told: build_calibrator(name, **told) for name in NAMES},
    **{
        f"rule {name}": lambda name=name, **told: oddslip.Repair(k=K, rule=name, **told)
        for name in (*CANDIDATES, "auto", "paper")
    },
    "row-aware stage": lambda **told: oddslip.Repair(k=K, rule=STAGED, **told),
}


def fit(name, way, kind="probability", dtype=np.float64, names=None, weighted=False):
    scores = (PROBABILITIES if kind == "probability" else MARGINS).astype(dtype)
    calibrator = EVERY[name](kind=kind, weights=WEIGHTS, prior=PRIOR)
    times = TIMES if weighted else None
    return calibrator.fit(
        **WAYS[way](scores), labels=TRUTH, sample_weight=times, label_names=names
    ).fitted_


def check_everywhere(repair, folder, sql=False):
    """Loaded, served and exported it ranks the cells that are there as it did when fitted."""
    kind = repair.maps.kind
    scores = PROBABILITIES if kind == "probability" else MARGINS
    candidates = np.where(GONE, np.nan, scores)
    ranks = repair.rank(candidates, k=K, nan="absent")
    path = folder / "repair.oddslip"
    repair.save(path)
    loaded = oddslip.load_repair(path)
    np.testing.assert_array_equal(loaded.rank(candidates, k=K, nan="absent"), ranks)
    assert loaded.to_dict() == repair.to_dict()
    for name in ("counts", "saturated", "slots"):
        mine, theirs = getattr(repair.fingerprint, name), getattr(loaded.fingerprint, name)
        np.testing.assert_array_equal(mine, theirs)
    assert loaded.fingerprint.to_dict() == repair.fingerprint.to_dict()
    runtime = load_runtime(path)
    np.testing.assert_array_equal(runtime.rank(candidates, k=K, nan="absent"), ranks)
    dense_ranks = repair.rank(scores, k=K)
    np.testing.assert_array_equal(loaded.rank(scores, k=K), dense_ranks)
    loaded.to_json(folder / "repair.json")
    document = json.loads((folder / "repair.json").read_text(encoding="utf-8"))
    assert len(document["labels"]) == LABELS
    np.testing.assert_array_equal(run_onnx(loaded, scores), dense_ranks)
    if isinstance(repair.maps, RowAwareMaps):
        with pytest.raises(InvalidInput, match="SQL needs a map per label"):
            run_duckdb(loaded, candidates, folder)
    elif sql:
        np.testing.assert_array_equal(run_duckdb(loaded, candidates, folder), ranks)


def run_onnx(repair, scores):
    from onnx.reference import ReferenceEvaluator

    from oddslip.serving import repair_graph

    graph = ReferenceEvaluator(repair_graph(repair, k=K))
    return graph.run(["top_labels"], {"scores": scores})[0]


def run_duckdb(repair, candidates, folder):
    import duckdb

    rows, labels = np.nonzero(~np.isnan(candidates))
    names = repair.label_names or range(LABELS)
    long = pd.DataFrame(
        {
            "row": rows,
            "label": [names[j] for j in labels],
            "score": candidates[rows, labels],
        }
    )
    repair.to_sql(folder / "repair.sql", dialect="duckdb", k=K)
    connection = duckdb.connect(config={"threads": 1})
    connection.register("loaded", long)
    connection.execute("CREATE TABLE scores AS SELECT * FROM loaded")
    connection.execute((folder / "repair.sql").read_text(encoding="utf-8"))
    view = connection.execute("SELECT * FROM oddslip_ranking").fetchdf()
    ranks = np.full((len(candidates), K), -1)
    ranks[view["row"], view["slot"] - 1] = view["place"]
    return ranks


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EVERY)
def test_a_repair_ranks_alike_wherever_it_is_read(name, way, tmp_path):
    check_everywhere(fit(name, way), tmp_path, sql=name in ("isotonic", "platt", "rule auto"))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("names", [None, NAMED])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["probability", "margin"])
@pytest.mark.parametrize("way", WAYS)
def test_types_kinds_names_and_weights_of_rows_do_not_matter(
    way, kind, dtype, names, weighted, tmp_path
):
    check_everywhere(fit("isotonic", way, kind, dtype, names, weighted), tmp_path, sql=True)


def test_a_repair_of_a_long_table_of_candidates_ranks_alike_wherever_it_is_read(tmp_path):
    long_table(PROBABILITIES).to_parquet(tmp_path / "long.parquet")
    repair = oddslip.Repair(k=K).fit(tmp_path / "long.parquet", nan="absent", label_names=NAMED)
    check_everywhere(repair.fitted_, tmp_path, sql=True)


def test_on_the_command_line_what_was_saved_can_be_applied(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("s.npy", one_nan(PROBABILITIES)["scores"])
    np.save("y.npy", TRUTH)
    assert main(["fit", "s.npy", "y.npy", "-k", "3", "--nan", "absent", "-o", "r.oddslip"]) == 0
    assert "Saved to r.oddslip" in capsys.readouterr().out
    apply = ["apply", "r.oddslip", "s.npy", "--nan", "absent", "-k", "3", "-o", "t.npy"]
    assert main(apply) == 0


@pytest.mark.parametrize(
    ("array", "at", "value", "line"),
    [
        ("bin_counts", 0, 10**6, "cells"),
        ("slots", 1, ROWS, "slots"),
        ("saturated", 0, ROWS, "saturated"),
    ],
)
def test_counts_that_no_present_cells_can_have_left_are_refused(
    array, at, value, line, tmp_path, monkeypatch
):
    import oddslip.repairs.repair_file as stored

    repair = fit("rule isotonic", "NaN absent")
    arrays = repair.fingerprint.to_arrays()
    arrays[array][at] = value
    monkeypatch.setattr(type(repair.fingerprint), "to_arrays", lambda _: arrays)
    with pytest.raises(UnreadableFile, match=line):
        repair.save(tmp_path / "r.oddslip")
    assert not list(tmp_path.iterdir())
    # Past the check of what was written, the same is refused when it is read.
    monkeypatch.setattr(stored, "read_repair_file", lambda _: None)
    repair.save(tmp_path / "r.oddslip")
    with pytest.raises(UnreadableFile, match=line):
        read_repair_file(tmp_path / "r.oddslip")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("way", ["NaN absent", "exclude", "sparse"])
def test_a_fingerprint_counts_each_cell_that_is_there_once(way, weighted):
    fingerprint = fit("isotonic", way, weighted=weighted).fingerprint
    np.testing.assert_array_equal(fingerprint.n_cells, (~GONE).sum(axis=0))
    assert fingerprint.counts.max() <= ROWS


def test_a_file_without_a_number_of_absent_cells_is_read_as_version_0_2_wrote_it(
    tmp_path, monkeypatch
):
    repair = fit("rule isotonic", "NaN absent")
    header = repair.fingerprint.to_dict()
    assert header.pop("n_absent") == int(GONE.sum())
    monkeypatch.setattr(type(repair.fingerprint), "to_dict", lambda _: header)
    repair.save(tmp_path / "r.oddslip")
    loaded = oddslip.load_repair(tmp_path / "r.oddslip")
    np.testing.assert_array_equal(loaded.fingerprint.counts, repair.fingerprint.counts)


def test_a_number_of_absent_cells_that_the_bins_do_not_have_is_refused(tmp_path, monkeypatch):
    repair = fit("rule isotonic", "NaN absent")
    header = repair.fingerprint.to_dict() | {"n_absent": 0}
    monkeypatch.setattr(type(repair.fingerprint), "to_dict", lambda _: header)
    with pytest.raises(UnreadableFile, match="n_absent=0"):
        repair.save(tmp_path / "r.oddslip")
