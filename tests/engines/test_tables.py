"""Laws of tables: whatever an engine, a cut or an order of the rows, the answers are one.

The same laws run on processes of this machine, on Spark with two threads, and on a real cluster of
a master and two workers. ``ODDSLIP_SPARK=full`` runs all of them everywhere, and the slow faults;
else Spark runs those that differ from processes.
"""

import json
import os
import shutil
import signal
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oddslip
from oddslip import InvalidInput, Repair, diagnose, evaluate, open_source
from oddslip.calibrators import build_calibrator
from oddslip.calibrators.catalogue import NAMES
from oddslip.datasets import synthetic_pair
from oddslip.engines import base, task
from oddslip.engines.processes import Processes
from oddslip.engines.rows import Layout
from oddslip.sources.table import TableSource

sys.path.insert(0, str(Path(__file__).parent))
from cluster import SETTINGS, start_cluster

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.filterwarnings("ignore")]

FULL = os.environ.get("ODDSLIP_SPARK") == "full"
ENGINES = ("processes", "local", "cluster")
PAIR = synthetic_pair(700, 8, seed=3)
N, N_LABELS, K = 700, 8, 3
SCORES, TWIN = (np.asarray(each, np.float32) for each in (PAIR.weighted, PAIR.unweighted))
LABELS = np.asarray(PAIR.labels)
IDS = np.array([f"customer {row}" for row in range(N)])
LABEL_NAMES = tuple(f"label {label}" for label in range(N_LABELS))
EVALUATED, HELD_OUT = np.arange(450), np.arange(450, N)


def as_arrow(rows, scores=SCORES):
    """Rows as a table, labels by name."""
    ends = pa.array(np.arange(0, rows.size * N_LABELS + 1, N_LABELS, dtype=np.int32))

    def lists(cells):
        return pa.ListArray.from_arrays(ends, pa.array(cells[rows].reshape(-1)))

    true = [[LABEL_NAMES[label] for label in np.flatnonzero(LABELS[row])] for row in rows]
    return pa.table(
        {
            "customer": IDS[rows].tolist(),
            "scores": lists(scores),
            "scores0": lists(TWIN),
            "labels": pa.array(true, pa.list_(pa.string())),
        }
    )


def local(rows):
    return open_source(SCORES[rows], LABELS[rows], row_ids=IDS[rows], label_names=LABEL_NAMES)


class Tables:
    """Opens rows as tables of one engine."""

    def __init__(self, name, session=None):
        self.name, self.session = name, session

    def open(self, rows, n_parts=3, scores=SCORES, **told):
        rows = np.random.default_rng(1).permutation(rows)
        table = as_arrow(rows, scores)
        if self.session is None:
            cuts = np.linspace(0, rows.size, n_parts + 1).astype(int)
            parts = [
                table.slice(start, stop - start).to_batches() for start, stop in pairwise(cuts)
            ]
            layout = Layout(
                N_LABELS, "probability", np.dtype(np.float32), LABEL_NAMES,
                "scores", "labels", "customer",
            )  # fmt: skip
            return TableSource(Processes(parts, 1), layout._replace(**told))
        return self.of_frame(self.frame(rows, n_parts, scores), **told)

    def frame(self, rows, n_parts=3, scores=SCORES):
        frame = self.session.createDataFrame(as_arrow(rows, scores))
        return frame.coalesce(1) if n_parts == 1 else frame.repartition(n_parts)

    def of_frame(self, frame, **told):
        named = {"scores": "scores", "labels": "labels", "row_id": "customer"}
        return open_source(frame, **named, label_names=LABEL_NAMES, **told)


@pytest.fixture(scope="module", params=ENGINES)
def tables(request, tmp_path_factory):
    if request.param == "processes":
        yield Tables("processes")
        return
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    from oddslip.engines.spark import start_session

    folder = tmp_path_factory.mktemp("spark")
    if request.param == "local":
        session = start_session("local[2,3]", **SETTINGS)
        yield Tables("local", session)
        session.stop()
        return
    with start_cluster(folder) as address:
        speculation = {"spark_speculation": "true"} if FULL else {}
        session = start_session(address, **SETTINGS, **speculation)
        yield Tables("cluster", session)
        session.stop()


def numbers_of(result):
    """Every number and word of a result, by where it stands."""

    def walk(thing, place):
        if isinstance(thing, dict):
            for name, each in thing.items():
                yield from walk(each, f"{place}/{name}")
        elif isinstance(thing, list):
            for at, each in enumerate(thing):
                yield from walk(each, f"{place}/{at}")
        else:
            yield place, thing

    return dict(walk(result.to_dict(), ""))


def assert_alike(one, other):
    mine, theirs = numbers_of(one), numbers_of(other)
    assert mine.keys() == theirs.keys()
    for place, value in mine.items():
        if isinstance(value, float):
            assert value == pytest.approx(theirs[place], rel=1e-9, abs=1e-12), place
        else:
            assert value == theirs[place], place


def assert_same_maps(one, other):
    for name in ("code", "start", "stop"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in ("a", "b", "c", "x", "y"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12), name


# ------------------------------------------------------------------------------------------- verbs


HERE = pytest.mark.mainly("processes")
SPARK = pytest.mark.needs("local", "cluster")


@pytest.mark.parametrize(
    "n_parts", [pytest.param(1, marks=HERE), 3, 7, pytest.param(40, marks=HERE)]
)
def test_evaluate_is_the_same_however_rows_are_cut(tables, n_parts):
    rows = np.arange({7: 12, 40: 20}.get(n_parts, N))  # some, and most, parts are empty
    source = tables.open(rows, n_parts)
    found = evaluate(source, k=K, n_replicates=100, auc=n_parts == 3)
    wanted = evaluate(local(rows), k=K, n_replicates=100, auc=n_parts == 3, keyed=True)
    assert_alike(found, wanted)
    assert source.n_passes == (4 if n_parts == 3 else 2)


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("isotonic", "hierarchical_isotonic") else pytest.param(name, marks=HERE)
        for name in NAMES
    ],
)
def test_every_calibrator_fits_the_same_maps(tables, name):
    one, other = (
        build_calibrator(name, weights=PAIR.weights).fit(rows)
        for rows in (tables.open(HELD_OUT), local(HELD_OUT))
    )
    assert_same_maps(one.fitted_.maps, other.fitted_.maps)
    assert np.array_equal(one.record_.n_positives, other.record_.n_positives)


@pytest.mark.parametrize(
    "rule", [pytest.param("auto", marks=pytest.mark.mainly("processes", "local")), "paper"]
)
def test_repair_makes_the_same_choice_for_the_same_reason(tables, rule):
    source = tables.open(HELD_OUT)
    one = Repair(k=K, rule=rule, weights=PAIR.weights).fit(source)
    other = Repair(k=K, rule=rule, weights=PAIR.weights, keyed=True).fit(local(HELD_OUT))
    assert (one.chosen_, one.why_) == (other.chosen_, other.why_)
    assert_same_maps(one.fitted_.maps, other.fitted_.maps)
    assert_alike(one.table_, other.table_)


@pytest.mark.parametrize(
    "held_out", [False, pytest.param(True, marks=HERE)], ids=["cross-fitted", "deployment"]
)
def test_a_diagnosis_is_the_same_word_by_word(tables, held_out):
    told = {"k": K, "weights": PAIR.weights, "n_replicates": 100}
    source = tables.open(EVALUATED)
    calibration = (tables.open(HELD_OUT), local(HELD_OUT)) if held_out else (None, None)
    found = diagnose(source, unweighted="scores0", calibration=calibration[0], **told)
    wanted = diagnose(
        local(EVALUATED), unweighted=TWIN[EVALUATED], calibration=calibration[1], keyed=True, **told
    )
    assert_alike(found, wanted)


def test_rows_are_ranked_and_repaired_where_they_are(tables):
    repair = Repair(k=K, rule="isotonic").fit(local(HELD_OUT))
    source = tables.open(EVALUATED)
    ranked, repaired = repair.rank(source), repair.transform(source)
    if tables.session is not None:
        ranked, repaired = ranked.toArrow(), repaired.toArrow()
    top = {row["customer"]: row["top"] for row in ranked.to_pylist()}
    labels = repair.rank(local(EVALUATED))
    assert [[cell["label"] for cell in top[each]] for each in IDS[EVALUATED]] == [
        [LABEL_NAMES[label] for label in row] for row in labels
    ]
    values = repair.transform(local(EVALUATED), threads=1)
    scores = {row["customer"]: row["scores"] for row in repaired.to_pylist()}
    assert np.array_equal(np.array([scores[each] for each in IDS[EVALUATED]], np.float32), values)
    shown = np.array([[cell["score"] for cell in top[each]] for each in IDS[EVALUATED]])
    assert np.allclose(shown, np.take_along_axis(values, labels.astype(int), 1), atol=1e-7)


def test_large_states_are_merged_by_the_tasks_in_pieces(tables, monkeypatch):
    monkeypatch.setattr(base, "SHARD_BYTES", 4000)
    one = build_calibrator("isotonic").fit(tables.open(HELD_OUT, 4))
    other = build_calibrator("isotonic").fit(local(HELD_OUT))
    assert_same_maps(one.fitted_.maps, other.fitted_.maps)


# ----------------------------------------------------------------------------------------- refusals


def test_a_cell_that_is_not_valid_is_named_by_its_row_and_label(tables):
    scores = SCORES.copy()
    scores[17, 2] = np.nan
    with pytest.raises(InvalidInput, match="1 NaN cell, one at row customer 17, label 'label 2'"):
        evaluate(tables.open(np.arange(N), scores=scores), k=K)


def test_another_version_in_a_task_is_one_line(tables, monkeypatch):
    monkeypatch.setattr(base, "versions", lambda: task.versions() | {"oddslip": "9.9"})
    with pytest.raises(InvalidInput, match=r"every executor must run oddslip 9\.9, .* got 0"):
        evaluate(tables.open(np.arange(N)), k=K)


@pytest.mark.mainly("processes", "local")
def test_rows_without_ids_are_refused_where_ids_decide_and_only_there(tables):
    source = tables.open(EVALUATED)
    source = TableSource(source.engine, source.layout._replace(row_id=None))
    with pytest.raises(InvalidInput, match="needs row ids"):
        evaluate(source, k=K)
    found = evaluate(source, k=K, n_replicates=0)
    wanted = evaluate(local(EVALUATED), k=K, n_replicates=0)
    assert found["map"].value == pytest.approx(wanted["map"].value, abs=1e-12)


def test_rows_do_not_come_here_one_by_one(tables):
    source = tables.open(EVALUATED)
    for ask in (source.positives, source.blocks, lambda: source.map(len)):
        with pytest.raises(InvalidInput, match="stay on its machines"):
            ask()


# -------------------------------------------------------------------------------- of Spark alone


@SPARK
def test_a_table_that_changes_between_passes_is_an_error(tables):
    frame = tables.frame(np.arange(N)).filter("rand() < 0.5")
    with pytest.raises(InvalidInput, match="same rows in every pass"):
        evaluate(tables.of_frame(frame), k=K)


@pytest.mark.needs("local")
def test_batches_of_any_size_vectors_and_numbers_as_labels_are_read(tables):
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions as columns

    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    wanted = evaluate(local(np.arange(N)), k=K, n_replicates=0)
    tables.session.conf.set(setting, "100")
    frame = tables.frame(np.arange(N))
    numbers = columns.transform("labels", lambda name: columns.substring(name, 7, 3).cast("int"))
    frame = frame.withColumn("labels", numbers).withColumn("scores", array_to_vector("scores"))
    found = evaluate(open_source(frame, labels="labels", row_id="customer"), k=K, n_replicates=0)
    tables.session.conf.set(setting, "10000")
    assert found["map"].value == pytest.approx(wanted["map"].value, abs=1e-12)


@SPARK
def test_tasks_read_parquet_files_themselves(tables, tmp_path):
    for at, rows in enumerate(np.array_split(np.arange(N), 3)):
        pq.write_table(as_arrow(rows), tmp_path / f"part-{at}.parquet", row_group_size=100)
    source = open_source(
        tmp_path, scores="scores", labels="labels", row_id="customer", label_names=LABEL_NAMES,
        engine=tables.session,
    )  # fmt: skip
    found = evaluate(source, k=K, n_replicates=50)
    assert_alike(found, evaluate(local(np.arange(N)), k=K, n_replicates=50, keyed=True))
    top = oddslip.rank(source, k=K).toArrow()
    assert sorted(top.column("customer").to_pylist()) == sorted(IDS.tolist())


@SPARK
def test_what_tasks_are_told_travels_as_a_file_if_it_is_large(tables, monkeypatch):
    from oddslip.engines import spark

    monkeypatch.setattr(spark, "CLOSURE_BYTES", 100)
    wanted = evaluate(local(EVALUATED), k=K, n_replicates=0)
    for _ in range(2):  # the same file twice
        found = evaluate(tables.open(EVALUATED), k=K, n_replicates=0)
        assert found["map"].value == pytest.approx(wanted["map"].value, abs=1e-12)


@pytest.mark.needs("local")
def test_commands_let_spark_read_files_and_write_a_folder(tables, tmp_path, capsys):
    from oddslip.cli.app import _run as main

    folder, names = tmp_path / "rows", tmp_path / "names.txt"
    folder.mkdir()
    names.write_text("\n".join(LABEL_NAMES))
    pq.write_table(as_arrow(EVALUATED), folder / "part.parquet")
    spark = ["--engine", "spark", "--row-id", "customer", "--label-names", str(names)]

    def run(*arguments):
        assert main([*map(str, arguments), *spark]) == 0
        return capsys.readouterr().out

    found = json.loads(run("evaluate", folder, "-k", K, "--bootstrap", 50, "--json"))
    wanted = evaluate(local(EVALUATED), k=K, n_replicates=50, keyed=True).to_dict()
    assert found["metrics"]["map"] == pytest.approx(wanted["metrics"]["map"], abs=1e-12)
    run("rank", folder, "-k", K, "-o", tmp_path / "top")
    assert pq.read_table(tmp_path / "top").num_rows == EVALUATED.size
    assert main(["rank", str(folder), "-k", "3", "-o", str(tmp_path / "top"), *spark]) == 2


def struck(frame, marker, how):
    """The rows of a frame, by tasks of which the first one fails in some way."""

    def pass_on(batches):
        for batch in batches:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield batch
                continue
            if how == "raise":
                raise RuntimeError("struck")
            if how == "sleep":
                time.sleep(25)
                yield batch
                continue
            pid = os.getpid()
            while how == "kill":  # the JVM that this worker belongs to
                stat = Path(f"/proc/{pid}/stat").read_text()
                if "(java)" in stat:
                    os.kill(pid, signal.SIGKILL)
                    time.sleep(60)
                pid = int(stat.rpartition(")")[2].split()[1])

    return frame.mapInArrow(pass_on, frame.schema)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("raise", marks=SPARK),
        pytest.param("kill", marks=pytest.mark.needs("cluster")),
        pytest.param("sleep", marks=[pytest.mark.needs("cluster"), pytest.mark.slow]),
    ],
)
def test_a_task_that_is_struck_is_run_again_and_counts_once(tables, tmp_path, how):
    frame = struck(tables.frame(EVALUATED, 4), str(tmp_path / "marker"), how)
    found = evaluate(tables.of_frame(frame), k=K, n_replicates=50)
    assert_alike(found, evaluate(local(EVALUATED), k=K, n_replicates=50, keyed=True))
    assert (tmp_path / "marker").exists()
