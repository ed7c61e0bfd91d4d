"""Laws of tables: whatever an engine, a cut or an order of the rows, the answers are one.

The same laws run on processes of this machine, on Spark with two threads, on a real cluster of a
master and two workers, and through Spark Connect. ``make test-spark`` (``ODDSLIP_SPARK=full``) runs
all of them everywhere, and the slow faults; else Spark runs those that differ from processes.
"""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.decisions.decision_worlds import DECISIONS
from tests.support.processes import Processes

import oddslip
from oddslip import Decision, InvalidInput, OneVsRest, Repair, diagnose, evaluate, open_source
from oddslip.calibrators import build_calibrator
from oddslip.calibrators.catalogue import NAMES
from oddslip.datasets import synthetic_pair
from oddslip.learners import distributed_training
from oddslip.sources.table import TableSource
from oddslip.spark import base, tasks
from oddslip.spark.jobs import open_workers
from oddslip.spark.rows import Layout
from oddslip.spark.session import SparkTable

sys.path.insert(0, str(Path(__file__).parent))
from cluster import SETTINGS, start_cluster, start_connect

pytestmark = pytest.mark.filterwarnings("ignore")

FULL = os.environ.get("ODDSLIP_SPARK") == "full"
ENGINES = ("processes", "local", "cluster", "connect")
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


def local_twin():
    return open_source(TWIN[EVALUATED], row_ids=IDS[EVALUATED], label_names=LABEL_NAMES)


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
                N_LABELS,
                "probability",
                np.dtype(np.float32),
                LABEL_NAMES,
                "scores",
                "labels",
                "customer",
            )
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
    from oddslip.spark.session import start_session

    folder = tmp_path_factory.mktemp("spark")
    if request.param == "local":
        session = start_session("local[2,3]", **SETTINGS)
        yield Tables("local", session)
        session.stop()
        return
    if request.param == "connect":
        with start_connect(folder) as address:
            session = start_session(address)
            assert not hasattr(type(session), "_jsparkSession")  # it has no context
            yield Tables("connect", session)
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
WITHIN = pytest.mark.mainly("processes", "local")
CONNECT = pytest.mark.connect
SPARK = pytest.mark.needs("local", "cluster")


@pytest.mark.parametrize(
    "n_parts",
    [
        pytest.param(1, marks=WITHIN),
        pytest.param(3, marks=CONNECT),
        7,
        pytest.param(40, marks=WITHIN),
    ],
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
        pytest.param(name, marks={"isotonic": CONNECT, "hierarchical_isotonic": ()}.get(name, HERE))
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
    "rule", [pytest.param("auto", marks=WITHIN), pytest.param("paper", marks=CONNECT)]
)
def test_repair_makes_the_same_choice_for_the_same_reason(tables, rule):
    source = tables.open(HELD_OUT)
    one = Repair(k=K, rule=rule, weights=PAIR.weights).fit(source)
    other = Repair(k=K, rule=rule, weights=PAIR.weights, keyed=True).fit(local(HELD_OUT))
    assert source.n_passes == {"auto": 7, "paper": 5}[rule]  # two more to drop candidates
    assert (one.chosen_, one.why_) == (other.chosen_, other.why_)
    assert_same_maps(one.fitted_.maps, other.fitted_.maps)
    assert_alike(one.table_, other.table_)


@pytest.mark.parametrize(
    "held_out",
    [pytest.param(False, marks=CONNECT), pytest.param(True, marks=HERE)],
    ids=["cross-fitted", "deployment"],
)
def test_a_diagnosis_is_the_same_word_by_word(tables, held_out, monkeypatch):
    metric = "ndcg" if held_out else "map"
    told = {"k": K, "metric": metric, "weights": PAIR.weights, "n_replicates": 100, "keyed": True}
    source = tables.open(EVALUATED)
    calibration = (tables.open(HELD_OUT), local(HELD_OUT)) if held_out else (None, None)
    passes = Counter()

    def counted(engine, *told, **more):
        passes[id(engine)] += 1
        return base.run_tally(engine, *told, **more)

    monkeypatch.setattr("oddslip.sources.table.run_tally", counted)
    found = diagnose(source, unweighted="scores0", calibration=calibration[0], **told)
    # Of the rows that repairs are fitted on: five, two to drop candidates, three for the stage that
    # sees the row.
    assert list(passes.values()) == ([5, 10] if held_out else [10])
    wanted = diagnose(local(EVALUATED), unweighted=local_twin(), calibration=calibration[1], **told)
    assert_alike(found, wanted)


@CONNECT
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


@HERE
@pytest.mark.parametrize("form", ["rows", "candidates"])
def test_every_state_of_a_repair_survives_being_cut_into_pieces(tables, form, monkeypatch):
    monkeypatch.setattr(base, "SHARD_BYTES", 200)
    opened = tables.open if form == "rows" else lambda rows: open_candidates(tables, rows)
    wanted = local if form == "rows" else local_candidates
    one = Repair(k=K, rule="paper", weights=PAIR.weights).fit(opened(SOME))
    other = Repair(k=K, rule="paper", weights=PAIR.weights, keyed=True).fit(wanted(SOME))
    assert_same_maps(one.fitted_.maps, other.fitted_.maps)
    assert_alike(one.table_, other.table_)


# ----------------------------------------------------------------------------------------- refusals


def test_a_cell_that_is_not_valid_is_named_by_its_row_and_label(tables):
    scores = SCORES.copy()
    scores[17, 2] = np.nan
    with pytest.raises(InvalidInput, match="1 NaN cell, one at row customer 17, label 'label 2'"):
        evaluate(tables.open(np.arange(N), scores=scores), k=K)


def test_another_version_in_a_task_is_one_line(tables, monkeypatch):
    monkeypatch.setattr(base, "versions", lambda: tasks.versions() | {"oddslip": "9.9"})
    with pytest.raises(InvalidInput, match=r"every executor must run oddslip 9\.9, .* got 0"):
        evaluate(tables.open(np.arange(N)), k=K)


@WITHIN
def test_rows_without_ids_are_refused_where_ids_decide_and_only_there(tables):
    source = tables.open(EVALUATED)
    source = TableSource(source.engine, source.layout._replace(row_id=None))
    with pytest.raises(InvalidInput, match="needs row ids"):
        evaluate(source, k=K)
    found = evaluate(source, k=K, n_replicates=0)
    wanted = evaluate(local(EVALUATED), k=K, n_replicates=0)
    assert found["map"].value == pytest.approx(wanted["map"].value, abs=1e-12)


@pytest.mark.mainly("processes")
def test_weights_of_rows_are_refused_in_one_line(tables):
    source = tables.open(EVALUATED)
    for ask in (
        lambda: evaluate(source, k=K, sample_weight="scores0"),
        lambda: build_calibrator("isotonic").fit(source, sample_weight=np.ones(450)),
        lambda: Repair(k=K).fit(source, sample_weight=np.ones(450)),
    ):
        with pytest.raises(InvalidInput, match="sample_weight goes with rows of this machine"):
            ask()
    assert not source.n_passes


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
    frame = tables.frame(np.arange(N))
    numbers = columns.transform("labels", lambda name: columns.substring(name, 7, 3).cast("int"))
    frame = frame.withColumn("labels", numbers).withColumn("scores", array_to_vector("scores"))
    for batch in ("100", "10000"):
        tables.session.conf.set(setting, batch)
        rows = open_source(frame, labels="labels", row_id="customer")
        found = evaluate(rows, k=K, n_replicates=0)
        assert found["map"].value == pytest.approx(wanted["map"].value, abs=1e-12)


@pytest.mark.needs("local")
def test_a_column_called_labels_is_found_without_being_named(tables, tmp_path):
    rows = EVALUATED
    told = {"row_id": "customer", "label_names": LABEL_NAMES}
    wanted = evaluate(local(rows), k=K, n_replicates=20, keyed=True)
    frame = tables.frame(rows)
    assert_alike(evaluate(open_source(frame, **told), k=K, n_replicates=20), wanted)
    pq.write_table(as_arrow(rows), tmp_path / "part.parquet")
    files = open_source(tmp_path, engine=tables.session, **told)
    assert_alike(evaluate(files, k=K, n_replicates=20), wanted)
    alone = open_source(frame.drop("labels"), **told)
    assert not alone.has_labels
    assert oddslip.rank(alone, k=K).count() == rows.size


@pytest.mark.needs("local")
def test_a_column_called_labels_that_does_not_list_them_is_left_alone(tables, tmp_path):
    rows = EVALUATED[:30]
    told = {"row_id": "customer"}
    frame, table = tables.frame(rows), as_arrow(rows)
    text = frame.withColumn("labels", frame.customer)
    pq.write_table(table, tmp_path / "by_name.parquet")
    pq.write_table(table.set_column(3, "labels", table["customer"]), tmp_path / "text.parquet")
    unknown = {"by_name": {}, "text": {"label_names": LABEL_NAMES}}  # whose names nobody says
    for form, given in {"by_name": frame, "text": text}.items():
        files = open_source(
            tmp_path / f"{form}.parquet", engine=tables.session, **told, **unknown[form]
        )
        for source in (open_source(given, **told, **unknown[form]), files):
            assert not source.has_labels
            assert oddslip.rank(source, k=K).count() == rows.size


@SPARK
def test_tasks_read_parquet_files_themselves(tables, tmp_path):
    for at, rows in enumerate(np.array_split(np.arange(N), 3)):
        pq.write_table(as_arrow(rows), tmp_path / f"part-{at}.parquet", row_group_size=100)
    source = open_source(
        tmp_path,
        scores="scores",
        labels="labels",
        row_id="customer",
        label_names=LABEL_NAMES,
        engine=tables.session,
    )
    found = evaluate(source, k=K, n_replicates=50)
    assert_alike(found, evaluate(local(np.arange(N)), k=K, n_replicates=50, keyed=True))
    top = oddslip.rank(source, k=K).toArrow()
    assert sorted(top.column("customer").to_pylist()) == sorted(IDS.tolist())


@SPARK
def test_what_tasks_are_told_travels_as_a_file_if_it_is_large(tables, monkeypatch):
    from oddslip.spark import session

    monkeypatch.setattr(session, "CLOSURE_BYTES", 100)
    wanted = evaluate(local(EVALUATED), k=K, n_replicates=0)
    for _ in range(2):  # the same file twice
        found = evaluate(tables.open(EVALUATED), k=K, n_replicates=0)
        assert found["map"].value == pytest.approx(wanted["map"].value, abs=1e-12)


@pytest.mark.needs("local")
def test_commands_let_spark_read_files_and_write_a_folder(tables, tmp_path, capsys):
    from oddslip.cli.app import main

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


def test_a_worker_looks_for_garbage_once_among_the_same_modules():
    from oddslip.spark import session

    session.set_modules_aside.cache_clear()
    try:
        for n_calls in range(2):
            assert list(session.run_in_worker(lambda message, batches: batches, None, [7])) == [7]
            assert session.set_modules_aside.cache_info().hits == n_calls
        assert gc.get_freeze_count() > len(gc.get_objects())
    finally:
        gc.unfreeze()


def striker(marker, how):
    """What makes the first task that calls it fail in some way. Travels by value."""

    def strike(again=""):
        try:
            os.close(os.open(f"{marker}{again}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        if how == "raise":
            raise RuntimeError("struck")
        if how == "sleep":
            time.sleep(25)
            return
        pid = os.getpid()
        while True:  # kill the JVM that this worker belongs to
            stat = Path(f"/proc/{pid}/stat").read_text()
            if "(java)" in stat:
                os.kill(pid, signal.SIGKILL)
                time.sleep(60)
            pid = int(stat.rpartition(")")[2].split()[1])

    return strike


def struck(frame, marker, how):
    """The rows of a frame, by tasks of which the first one fails in some way."""
    strike = striker(marker, how)

    def pass_on(batches):
        for batch in batches:
            strike()
            yield batch

    return frame.mapInArrow(pass_on, frame.schema)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("raise", marks=SPARK),
        pytest.param("kill", marks=pytest.mark.needs("cluster")),
        pytest.param("sleep", marks=[pytest.mark.needs("cluster"), pytest.mark.full]),
    ],
)
def test_a_task_that_is_struck_is_run_again_and_counts_once(tables, tmp_path, how):
    frame = struck(tables.frame(EVALUATED, 4), str(tmp_path / "marker"), how)
    found = evaluate(tables.of_frame(frame), k=K, n_replicates=50)
    assert_alike(found, evaluate(local(EVALUATED), k=K, n_replicates=50, keyed=True))
    assert (tmp_path / "marker").exists()


@pytest.mark.needs("cluster")
@pytest.mark.full
def test_a_diagnosis_outlives_an_executor_in_each_of_its_passes(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "SHARD_BYTES", 4000)  # so that executors hold pieces of others
    begun, strike = tmp_path / "begun", striker(str(tmp_path / "struck-"), "kill")
    begun.mkdir()

    def pass_on(batches):
        for batch in batches:
            strike(len(os.listdir(begun)))
            yield batch

    collect, passes = SparkTable.collect, []

    def counted(*told):
        passes.append(1)
        (begun / str(len(passes))).touch()
        return collect(*told)

    monkeypatch.setattr(SparkTable, "collect", counted)
    frame = tables.frame(EVALUATED, 4)
    source = tables.of_frame(frame.mapInArrow(pass_on, frame.schema))
    told = {"k": K, "weights": PAIR.weights, "n_replicates": 50, "keyed": True}
    found = diagnose(source, unweighted="scores0", **told)
    wanted = diagnose(local(EVALUATED), unweighted=local_twin(), **told)
    assert_alike(found, wanted)
    assert len(list(tmp_path.glob("struck-*"))) == len(passes) == source.n_passes + 4


FULL_DISK = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from cluster import SETTINGS, start_cluster
from oddslip import OddslipError, OneVsRest, evaluate, open_source
from oddslip.spark.session import start_session
X = np.random.default_rng(0).normal(size=(40_000, 10))
Y = X[:, :3] > 1
with start_cluster(Path(sys.argv[2]), local=Path(sys.argv[3])) as address:
    session = start_session(address, **SETTINGS)
    session.sparkContext.setLogLevel("OFF")
    try:
        OneVsRest(engine=session, parameters={"num_iterations": 2}).fit(X, Y)
        print("trained")
    except OddslipError as error:
        print("refused:", error)
    rows = session.range(400_000).selectExpr(
        "id % 5000 as row", "id div 5000 as label", "rand(7) as score", "id % 7 = 0 as true"
    )
    table = open_source(rows, labels="true", row_id="row", label_names=[str(n) for n in range(80)])
    try:
        evaluate(table, k=3, n_replicates=0)
        print("evaluated")
    except OddslipError as error:
        print("refused:", error)
    session.stop()
"""


@pytest.mark.needs("cluster")
@pytest.mark.full
def test_a_full_disk_of_the_workers_is_one_line(tables, tmp_path):
    tiny = tmp_path / "tiny"
    tiny.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tiny]).returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        told = [str(Path(__file__).parent), str(tmp_path), str(tiny)]
        done = subprocess.run(
            [sys.executable, "-c", FULL_DISK, *told], capture_output=True, text=True
        )
    finally:
        subprocess.run(["umount", "-l", tiny])
    lines = done.stdout.splitlines()
    assert len(lines) == 2, (lines, done.stderr[-2000:])
    for line in lines:
        assert line.startswith("refused: a Spark job failed: the disk of a worker is full"), line


# --------------------------------------------------------------------------------------- candidates


GONE = np.random.default_rng(8).random(SCORES.shape) < 0.3
GONE[5], GONE[:, 6] = True, True  # a row without candidates, a label that nobody has


def local_candidates(rows):
    there = ~GONE[rows]
    cells = sparse.csr_array((SCORES[rows][there], np.nonzero(there)), shape=there.shape)
    return open_source(cells, LABELS[rows], row_ids=IDS[rows], label_names=LABEL_NAMES)


def listed(rows):
    """Candidates in lists, in no order; labels by name."""
    rng = np.random.default_rng(2)
    cells = [
        [
            {"item": LABEL_NAMES[label], "score": SCORES[row, label].item()}
            for label in rng.permutation(np.flatnonzero(~GONE[row]))
        ]
        for row in rows
    ]
    cell = pa.struct([("item", pa.string()), ("score", pa.float32())])
    table = as_arrow(rows).drop_columns(["scores", "scores0"])
    return table.append_column("scores", pa.array(cells, pa.list_(cell)))


def long(rows):
    """A row for each cell, in no order."""
    at, label = np.nonzero(~GONE[rows])
    order = np.random.default_rng(3).permutation(at.size)
    row, label = rows[at[order]], label[order]
    return pa.table(
        {
            "customer": IDS[row].tolist(),
            "label": [LABEL_NAMES[each] for each in label],
            "score": SCORES[row, label],
            "true": LABELS[row, label] == 1,
        }
    )


def open_candidates(tables, rows, form="listed", n_parts=3):
    if tables.session is None:
        table = listed(np.random.default_rng(1).permutation(rows))
        cuts = np.linspace(0, rows.size, n_parts + 1).astype(int)
        parts = [table.slice(start, stop - start).to_batches() for start, stop in pairwise(cuts)]
        layout = Layout(
            N_LABELS,
            "probability",
            np.dtype(np.float32),
            LABEL_NAMES,
            "scores",
            "labels",
            "customer",
            listed=True,
        )
        return TableSource(Processes(parts, 1), layout)
    if form == "long":
        frame = tables.session.createDataFrame(long(rows)).repartition(n_parts)
        told = {"scores": "score", "labels": "true"}
    else:
        frame = tables.session.createDataFrame(listed(rows)).repartition(n_parts)
        told = {"scores": "scores", "labels": "labels"}
    return open_source(frame, row_id="customer", label_names=LABEL_NAMES, **told)


SOME = np.setdiff1d(EVALUATED, [5])  # a long table has no row without a cell


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("listed", marks=pytest.mark.mainly("processes", "local")),
        pytest.param("long", marks=[SPARK, pytest.mark.mainly("cluster")]),
    ],
)
def test_candidates_are_evaluated_as_they_are_here(tables, form):
    rows = EVALUATED if form == "listed" else SOME
    source = open_candidates(tables, rows, form)
    told = {"k": K, "n_replicates": 50, "auc": True, "weights": PAIR.weights}
    assert_alike(evaluate(source, **told), evaluate(local_candidates(rows), keyed=True, **told))


@HERE
@pytest.mark.parametrize("name", NAMES)
def test_every_calibrator_fits_the_same_maps_on_candidates(tables, name):
    one, other = (
        build_calibrator(name, weights=PAIR.weights).fit(rows)
        for rows in (open_candidates(tables, HELD_OUT), local_candidates(HELD_OUT))
    )
    assert_same_maps(one.fitted_.maps, other.fitted_.maps)
    assert np.array_equal(one.record_.n_positives, other.record_.n_positives)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("listed", marks=HERE),
        pytest.param("long", marks=[SPARK, pytest.mark.mainly("local")]),
    ],
)
def test_a_repair_of_candidates_chooses_ranks_and_repairs_as_here(tables, form):
    source = open_candidates(tables, SOME, form)
    one = Repair(k=K, rule="paper", weights=PAIR.weights).fit(source)
    other = Repair(k=K, rule="paper", weights=PAIR.weights, keyed=True).fit(local_candidates(SOME))
    assert (one.chosen_, one.why_) == (other.chosen_, other.why_)
    assert_same_maps(one.fitted_.maps, other.fitted_.maps)
    assert_alike(one.table_, other.table_)
    repair = Repair(k=K, rule="isotonic").fit(local_candidates(HELD_OUT))
    made = [oddslip.rank(source, k=6), repair.rank(source), repair.transform(source)]
    if tables.session is not None:
        made = [each.toArrow() for each in made]
    top, ranked, repaired = ({row["customer"]: row for row in each.to_pylist()} for each in made)
    here = local_candidates(SOME)
    for found, wanted in ((top, oddslip.rank(here, k=6)), (ranked, repair.rank(here))):
        assert [[cell["label"] for cell in found[each]["top"]] for each in IDS[SOME]] == [
            [LABEL_NAMES[label] for label in row if label >= 0] for row in wanted
        ]
    values = repair.transform(here, threads=1)
    found = np.full(values.shape, np.nan, values.dtype)
    for at, each in enumerate(IDS[SOME]):
        for cell in repaired[each]["scores"]:
            found[at, LABEL_NAMES.index(cell["label"])] = cell["score"]
    assert np.array_equal(found, values, equal_nan=True)


@HERE
@pytest.mark.parametrize("held_out", [False, True], ids=["cross-fitted", "deployment"])
def test_a_diagnosis_of_candidates_is_the_same_word_by_word(tables, held_out):
    told = {"k": K, "weights": PAIR.weights, "n_replicates": 50, "keyed": True}
    calibration = [None, None]
    if held_out:
        calibration = [open_candidates(tables, HELD_OUT), local_candidates(HELD_OUT)]
    found = diagnose(open_candidates(tables, EVALUATED), calibration=calibration[0], **told)
    wanted = diagnose(local_candidates(EVALUATED), calibration=calibration[1], **told)
    assert_alike(found, wanted)


@HERE
def test_a_twin_of_candidates_is_refused_in_one_line(tables):
    source = open_candidates(tables, EVALUATED)
    with pytest.raises(InvalidInput, match="go with rows that have every label") as refused:
        diagnose(source, k=K, unweighted="scores0", n_replicates=0)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("label", "score", "message"),
    [
        ("label 1", 0.5, "a cell must be there once, got two at row customer 1, label 'label 1'"),
        ("label 99", 0.5, "among label_names, got 'label 99' at row customer 1"),
        (None, 0.5, "label of a candidate must not be null, got one at row customer 1"),
        ("label 2", None, "score of a candidate must not be null, got one at row customer 1"),
        ("label 2", 1.5, "between 0 and 1, got 1.5 at row customer 1, label 'label 2'"),
    ],
)
@HERE
def test_a_candidate_that_is_not_valid_is_named(tables, label, score, message):
    cells = [{"item": "label 1", "score": 0.25}, {"item": label, "score": score}]
    cell = pa.struct([("item", pa.string()), ("score", pa.float32())])
    table = pa.table(
        {
            "customer": ["customer 1"],
            "labels": pa.array([["label 1"]], pa.list_(pa.string())),
            "scores": pa.array([cells], pa.list_(cell)),
        }
    )
    layout = Layout(
        N_LABELS,
        "probability",
        np.dtype(np.float32),
        LABEL_NAMES,
        "scores",
        "labels",
        "customer",
        listed=True,
    )
    engine = Processes([table.to_batches()], 1)
    if tables.session is not None:
        engine = type(tables.open(EVALUATED).engine)(tables.session.createDataFrame(table))
    with pytest.raises(InvalidInput, match=message):
        evaluate(TableSource(engine, layout), k=K, n_replicates=0)


@pytest.mark.needs("local")
def test_tables_of_candidates_that_say_too_little_are_refused(tables, tmp_path):
    frame = tables.session.createDataFrame(listed(EVALUATED))
    cells = tables.session.createDataFrame(long(EVALUATED))
    told = {"row_id": "customer", "labels": "labels"}
    with pytest.raises(InvalidInput, match="candidates need label_names"):
        open_source(frame, **told)
    with pytest.raises(InvalidInput, match="rows that score every label, got candidates"):
        open_source(frame, **told, label_names=LABEL_NAMES, unweighted="scores")
    with pytest.raises(InvalidInput, match="label must name a column"):
        open_source(
            cells.withColumnRenamed("label", "product"),
            row_id="customer",
            labels="true",
            label_names=LABEL_NAMES,
        )
    pq.write_table(listed(EVALUATED), tmp_path / "rows.parquet")
    rows = open_source(
        tmp_path, scores="scores", **told, label_names=LABEL_NAMES, engine=tables.session
    )
    found = evaluate(rows, k=K, n_replicates=0)
    wanted = evaluate(local_candidates(EVALUATED), k=K, n_replicates=0)
    assert found["map"].value == pytest.approx(wanted["map"].value, abs=1e-12)


# --------------------------------------------------------------------------------------- decisions


def assert_same_decision(decide, new, here, wanted, collect=lambda table: table):
    """Decisions on a table and here agree, and so do their lists of new rows."""
    assert decide.fitted_.to_dict() == wanted.fitted_.to_dict()
    assert decide.fitted_.evaluate(new) == wanted.fitted_.evaluate(here)
    if hasattr(wanted, "table_"):
        assert_alike(decide.table_, wanted.table_)
        assert_alike(decide.raw_table_, wanted.raw_table_)
    shown = {row["customer"]: row["top"] for row in collect(decide.lists(new)).to_pylist()}
    lists, ids = wanted.lists(here), here.row_ids()
    probabilities = decide.repair.transform(here, dtype=np.float64)
    for at, each in enumerate(ids):
        columns = lists[at][lists[at] >= 0]
        assert [cell["label"] for cell in shown[each]] == [LABEL_NAMES[label] for label in columns]
        assert [cell["score"] for cell in shown[each]] == pytest.approx(probabilities[at, columns])


@pytest.fixture(scope="module")
def isotonic():
    return build_calibrator("isotonic").fit(local(HELD_OUT)).fitted_


@pytest.mark.parametrize("form", ["rows", "candidates"])
@pytest.mark.parametrize("arguments", DECISIONS, ids=lambda each: "-".join(map(str, each.values())))
@HERE
def test_a_decision_is_the_same_on_a_table(tables, isotonic, form, arguments):
    opened = tables.open if form == "rows" else lambda rows: open_candidates(tables, rows)
    wanted = local if form == "rows" else local_candidates
    one = Decision(isotonic, **arguments).fit(opened(EVALUATED))
    other = Decision(isotonic, **arguments).fit(wanted(EVALUATED))
    assert_same_decision(one, opened(HELD_OUT), wanted(HELD_OUT), other)


@pytest.mark.parametrize(
    "arguments",
    [
        {"goal": "f1"},
        {"rule": "row", "goal": "missed", "target": 0.3},
        {"rule": "length", "goal": "ndcg", "n_replicates": 20},
    ],
    ids=["thresholds", "guarantee", "length"],
)
@pytest.mark.needs("local", "cluster")
@pytest.mark.mainly("local")
def test_a_decision_is_the_same_on_spark_and_lists_a_frame(tables, isotonic, arguments):
    one = Decision(isotonic, **arguments).fit(tables.open(EVALUATED))
    other = Decision(isotonic, **arguments).fit(local(EVALUATED))
    new, here = tables.open(HELD_OUT), local(HELD_OUT)
    assert_same_decision(one, new, here, other, lambda table: table.toArrow())
    frame = tables.frame(HELD_OUT)
    assert one.lists(frame).sort("customer").toArrow() == one.lists(new).sort("customer").toArrow()


@HERE
def test_every_state_of_a_decision_survives_being_cut_into_pieces(tables, isotonic, monkeypatch):
    monkeypatch.setattr(base, "SHARD_BYTES", 200)
    for arguments in DECISIONS:
        one = Decision(isotonic, **arguments).fit(tables.open(EVALUATED, 7))
        other = Decision(isotonic, **arguments).fit(local(EVALUATED))
        assert one.fitted_.to_dict() == other.fitted_.to_dict()


@HERE
def test_what_a_decision_needs_order_ids_or_rows_for_is_refused_in_one_line(tables, isotonic):
    source = tables.open(EVALUATED)
    groups = np.arange(EVALUATED.size) % 2
    guarantee = Decision(isotonic, "row", goal="missed", target=0.3)
    by_group = Decision(isotonic, "row", goal="missed", target=0.3)
    by_group.fit(local(EVALUATED), groups=groups)
    bare = TableSource(source.engine, source.layout._replace(row_id=None))
    length = Decision(isotonic, "length", goal="ndcg")
    for ask, message in (
        (lambda: guarantee.fit(source, groups=groups), "groups go with rows of this machine"),
        (lambda: by_group.lists(source), "groups go with rows of this machine"),
        (lambda: by_group.fitted_.evaluate(source), "groups go with rows of this machine"),
        (lambda: by_group.fitted_.list_blocks(source, groups=groups), "groups go with rows"),
        (lambda: length.fit(bare), "needs row ids"),
        (lambda: Decision(isotonic).fit(bare).lists(bare), "need an id"),
        (lambda: guarantee.fit(source).fitted_.list_blocks(source), "stay on its machines"),
    ):
        with pytest.raises(InvalidInput, match=message) as refused:
            ask()
        assert "\n" not in str(refused.value)


# ----------------------------------------------------------------------------------------- training


X = np.random.default_rng(5).normal(size=(300, 5))
Y = X @ np.random.default_rng(6).normal(size=(5, 6)) > 2


def arm(**told):
    return OneVsRest(weights="balanced", parameters={"num_iterations": 4, "num_leaves": 5}, **told)


@SPARK
@pytest.mark.mainly("cluster")
def test_tasks_train_models_with_the_bits_of_this_machine(tables, tmp_path):
    one = arm(engine=tables.session).fit(X, Y)
    other = arm(threads=open_workers(tables.session).width()).fit(X, Y)
    one.save(tmp_path / "one")
    other.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.needs("local")
def test_what_a_learner_refuses_in_a_task_of_spark_is_one_line(tables):
    model = OneVsRest(parameters={"num_iterations": 2, "max_bin": -7}, engine="spark")
    with pytest.raises(InvalidInput, match=r"^LightGBM refuses this: .*max_bin"):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("how", "kept"),
    [
        pytest.param("raise", False, marks=pytest.mark.needs("local")),
        pytest.param("kill", True, marks=pytest.mark.needs("cluster")),
        pytest.param("kill", False, marks=[pytest.mark.needs("cluster"), pytest.mark.full]),
        pytest.param("sleep", True, marks=[pytest.mark.needs("cluster"), pytest.mark.full]),
    ],
)
def test_a_group_that_is_struck_is_trained_again_and_no_other(
    tables, tmp_path, monkeypatch, how, kept
):
    begun, folder = tmp_path / "begun", tmp_path / "kept" if kept else None
    begun.mkdir()
    strike = striker(str(tmp_path / "marker"), how)

    def train(shared, number):
        from oddslip.learners.distributed_training import train_group

        (begun / f"{number}-{os.getpid()}-{time.time()}").touch()
        if number == 1:
            strike()
        return train_group(shared, number)

    monkeypatch.setattr(distributed_training, "train_group", train)
    found = arm(engine=tables.session, memory_bytes=1, checkpoint=folder).fit(X, Y)
    assert np.array_equal(found.predict_margin(X), arm().fit(X, Y).predict_margin(X))
    begun_groups = Counter(path.name[0] for path in begun.iterdir())
    extra = begun_groups - Counter("012345")
    speculated = extra - Counter("1") if FULL else Counter()  # in full, Spark may run one twice
    assert set(begun_groups) == set("012345")
    assert extra - speculated == Counter("1")
    assert speculated.total() <= 1


@pytest.mark.needs("local")
def test_a_command_trains_in_tasks(tables, tmp_path):
    from oddslip.cli.app import main

    for name, cells in {"X": X, "Y": Y}.items():
        np.save(tmp_path / f"{name}.npy", cells)
    files = [str(tmp_path / f"{name}.npy") for name in "XY"]
    told = ["-p", "num_iterations=4", "--weights", "balanced"]
    for out, engine in (("one", ["--engine", "spark"]), ("other", ["--threads", "2"])):
        assert main(["train", *files, "-o", str(tmp_path / out), *told, *engine]) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert main(["train", *files, "-o", str(tmp_path / "one"), "--engine", "dask"]) == 2
