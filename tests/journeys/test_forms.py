"""Journeys with data as people have it: every form gives what the arrays give, to the bit."""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oddslip
from oddslip.cli.app import main

sys.path.insert(0, str(Path(__file__).parent))
from large_file import measure, write_large

K = 2
RNG = np.random.default_rng(5)
NAMES = ["=milk", "bread", "eggs", "tea"]
IDS = [f"u{row}" for row in range(300)]
CHANCE = RNG.random((300, 4)) * [0.8, 0.4, 0.2, 0.1]
LABELS = RNG.random((300, 4)) < CHANCE
SCORES = CHANCE * 5 / (1 + 4 * CHANCE)  # as if each label had been trained with a weight of 5
LISTS = [np.array(NAMES)[row].tolist() for row in LABELS]
CELLS = pl.DataFrame(
    {
        "row": np.repeat(IDS, 4),
        "label": NAMES * 300,
        "score": SCORES.ravel(),
        "true": LABELS.ravel(),
    }
)


def travel(scores, labels=None, **names):
    """Evaluate, diagnose, repair, rank: all that is shown at the end."""
    source = oddslip.open_source(scores, labels, **names)
    seen = oddslip.evaluate(source, k=K, n_replicates=50)
    told = oddslip.diagnose(source, k=K, weights=5.0, n_replicates=0)
    repair = oddslip.Repair(k=K, rule="isotonic-5").fit(source)
    values = {name: each.value for name, each in seen.metrics.items()}
    return values, told.verdict, repair.rank(source, k=K).tolist()


@pytest.fixture(scope="module")
def wanted():
    return travel(SCORES, LABELS, label_names=NAMES)


def test_a_duckdb_relation_travels_from_end_to_end(wanted):
    where = duckdb.connect()
    where.register("cells", CELLS.sample(fraction=1, shuffle=True, seed=1).to_arrow())
    lists = where.sql(
        "select row as user_id, list(score order by label) as scores, "
        'list(label) filter ("true") as labels from cells group by row '
        "order by cast(row[2:] as int)"
    )
    found = travel(lists, label_names=sorted(NAMES))
    assert found[0].keys() == wanted[0].keys()
    assert found[0] == pytest.approx(wanted[0], abs=1e-12)  # labels stand in another order
    long = where.sql("from cells order by cast(row[2:] as int), hash(label)")
    assert travel(long, label_names=NAMES) == wanted


def test_a_lazy_frame_and_names_of_polars_and_pandas_travel(wanted):
    frame = pl.DataFrame({"id": IDS, **dict(zip(NAMES, SCORES.T, strict=True))})
    labels = pl.DataFrame({"id": IDS, "labels": LISTS}).reverse()
    assert travel(frame.lazy().filter(pl.col("tea") >= 0), labels.lazy()) == wanted
    scores = pd.DataFrame(SCORES, index=IDS, columns=NAMES)
    truths = pd.DataFrame(LABELS, index=IDS, columns=NAMES).astype("boolean")
    assert travel(scores, truths.iloc[::-1, ::-1]) == wanted


def test_long_and_candidate_tables_travel(tmp_path, wanted):
    CELLS.sort("label", "row").write_parquet(tmp_path / "long.parquet")
    turned = oddslip.open_source(tmp_path / "long.parquet", label_names=NAMES)
    assert sorted(turned.row_ids().tolist()) == sorted(IDS)
    assert oddslip.evaluate(turned, k=K, n_replicates=0)["map"].value == pytest.approx(
        wanted[0]["map"], abs=1e-12
    )
    some = CELLS.filter(pl.col("score") > 0.3)
    dense = np.where(SCORES > 0.3, SCORES, np.nan)
    kept = ~np.isnan(dense).all(axis=1)
    found = oddslip.evaluate(some, k=K, nan="absent", label_names=NAMES, n_replicates=0)
    array = oddslip.evaluate(dense[kept], LABELS[kept], k=K, nan="absent", n_replicates=0)
    assert found["map"].value == array["map"].value


def test_csv_goes_through_the_command_line_and_comes_back(tmp_path, monkeypatch, capsys, wanted):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(SCORES, index=IDS, columns=NAMES)
    frame.to_csv("scores.csv", index_label="user_id")
    labels = pd.DataFrame(LABELS.astype(int), index=IDS, columns=NAMES)
    labels.iloc[::-1].to_csv("labels.csv", index_label="user_id")
    told = ["scores.csv", "labels.csv", "-k", str(K)]
    assert main(["evaluate", *told, "--bootstrap", "0", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["metrics"]["map"]["value"] == wanted[0]["map"]
    assert main(["fit", *told, "--rule", "isotonic-5", "-o", "r.oddslip"]) == 0
    assert main(["apply", "r.oddslip", "scores.csv", "-o", "repaired.csv"]) == 0
    assert main(["apply", "r.oddslip", "scores.csv", "--top-k", "2", "-o", "ranked.csv"]) == 0
    shown = pd.read_csv("ranked.csv")
    place = {name if name[0] != "=" else f"'{name}": at for at, name in enumerate(NAMES)}
    assert shown["row"].tolist() == IDS
    found = shown[["label_1", "label_2"]].map(place.get).to_numpy().tolist()
    assert found == wanted[2]
    capsys.readouterr()
    assert main(["evaluate", "repaired.csv", "labels.csv", "-k", str(K), "--json"]) == 0
    repaired = json.loads(capsys.readouterr().out)["metrics"]["map"]["value"]
    truth = pd.DataFrame(LABELS, index=IDS)
    array = oddslip.evaluate("repaired.csv", truth, k=K, n_replicates=0)["map"].value
    assert repaired == array


def test_a_table_of_spark_in_one_parquet_file_needs_no_second(
    tmp_path, monkeypatch, wanted, capsys
):
    monkeypatch.chdir(tmp_path)
    table = pa.table({"customer_id": IDS, "scores": SCORES.tolist(), "labels": LISTS})
    pq.write_table(table, "table.parquet")
    (tmp_path / "names.txt").write_text("\n".join(NAMES))
    assert travel("table.parquet", label_names=NAMES) == wanted
    told = ["table.parquet", "-k", "2", "--label-names", "names.txt", "--bootstrap", "0", "--json"]
    assert main(["evaluate", *told]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["map"]["value"] == wanted[0]["map"]


def test_a_float16_file_of_seven_times_the_rows_takes_little_more_memory(tmp_path):
    n_bytes = {"small.parquet": 24_000_000, "large.parquet": 168_000_000}
    rows = [write_large(tmp_path / name, size) for name, size in n_bytes.items()]
    small, large = (measure(tmp_path / name) for name in n_bytes)
    assert rows == [24_000, 168_000]
    assert small["map"] == large["map"]
    # What is known of each row is held; its 500 scores are not.
    assert large["peak_mb"] - small["peak_mb"] < 72


def test_the_measuring_script_tells_what_it_found(tmp_path):
    script = Path(__file__).parent / "large_file.py"
    command = [sys.executable, script, "--gigabytes", "0.005", "--folder", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {"map", "before_mb", "peak_mb", "file_gb"} <= json.loads(done.stdout).keys()
