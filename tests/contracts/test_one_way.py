"""One way to compute: the same rows give the same answer however they are stored, cut or ordered.

Folds, choices and intervals follow from the keys of the rows. Counts and choices agree to the bit,
sums to 1e-12.
"""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.processes import Processes

import oddslip.sources.base as sources
from oddslip import Repair, diagnose, evaluate, open_source
from oddslip.datasets import synthetic_pair
from oddslip.selection.folds import assign_folds
from oddslip.sources.table import TableSource
from oddslip.spark.rows import Layout

pytestmark = pytest.mark.filterwarnings("ignore")

N, N_LABELS, K = 600, 8, 3
PAIR = synthetic_pair(N, N_LABELS, seed=3)
SCORES, TWIN = (np.asarray(each, np.float32) for each in (PAIR.weighted, PAIR.unweighted))
LABELS = np.asarray(PAIR.labels)
NAMES = tuple(f"label {label}" for label in range(N_LABELS))
ORDER = np.random.default_rng(0).permutation(N)
NUMBERS = np.arange(N)


def columns(cells, ids):
    return pa.table({"row_id": ids} | dict(zip(NAMES, cells.T, strict=True)))


def as_array(folder):
    return SCORES, LABELS, TWIN


def as_npy(folder):
    for name, cells in (("scores", SCORES), ("labels", LABELS.astype(np.uint8)), ("twin", TWIN)):
        np.save(folder / f"{name}.npy", cells)
    return tuple(folder / f"{name}.npy" for name in ("scores", "labels", "twin"))


def as_parquet(folder, label_order=NUMBERS, row_order=NUMBERS):
    """Files of several row groups, whose rows and labels may be in different orders."""
    parts = {
        "scores": (SCORES, row_order),
        "labels": (LABELS.astype(np.uint8), label_order),
        "twin": (TWIN, row_order),
    }
    for name, (cells, rows) in parts.items():
        pq.write_table(columns(cells[rows], rows), folder / f"{name}.parquet", row_group_size=97)
    return tuple(folder / f"{name}.parquet" for name in parts)


FORMS = {
    "array": as_array,
    "npy": as_npy,
    "parquet": as_parquet,
    "parquet, labels in another order": lambda folder: as_parquet(folder, label_order=ORDER),
    "parquet, all rows in another order": lambda folder: as_parquet(folder, ORDER, ORDER),
}


def flatten(value, place=""):
    """Numbers and texts of nested results, by their place."""
    if isinstance(value, dict):
        return {
            key: leaf
            for name, each in value.items()
            for key, leaf in flatten(each, f"{place}/{name}").items()
        }
    if isinstance(value, list | tuple):
        return flatten(dict(enumerate(value)), place)
    return {place: value}


def without_line(diagnosis):
    """The answer without the line of Python, which repeats what was passed."""
    found = diagnosis.to_dict()
    assert found["summary"].pop("python")
    return found


def answer(scores, labels, twin, threads=None):
    """Folds by row id, and the results of the three verbs."""
    options = {"label_names": None if isinstance(scores, Path) else NAMES, "threads": threads}
    source = open_source(scores)
    ids = source.row_ids()
    ids = NUMBERS if ids is None else ids.astype(int)
    (folds,) = assign_folds(source, 5)
    weights = dict(zip(NAMES, PAIR.weights, strict=True))
    if isinstance(scores, Path) and scores.suffix == ".npy":
        options["label_names"] = NAMES
    repair = Repair(k=K, weights=weights).fit(scores, labels, **options)
    found = diagnose(
        scores, labels, k=K, weights=weights, unweighted=twin, n_replicates=60, **options
    )
    return {
        "folds": folds.of_keys(source.row_keys())[np.argsort(ids)].tolist(),
        "evaluate": evaluate(scores, labels, k=K, n_replicates=60, **options).to_dict(),
        "chosen": repair.chosen_,
        "why": repair.why_,
        "table": repair.table_.to_dict(),
        "diagnose": without_line(found),
    }


def assert_one(first, second):
    one, other = flatten(first), flatten(second)
    assert one.keys() == other.keys()
    for place, value in one.items():
        if isinstance(value, float) and isinstance(other[place], float):
            # Rounded sums decide where iterative fits stop: these agree to fewer digits.
            assert value == pytest.approx(other[place], rel=1e-9, abs=1e-9, nan_ok=True), place
        else:
            assert value == other[place], place
    for metric, estimate in first["evaluate"]["metrics"].items():
        twin = second["evaluate"]["metrics"][metric]
        assert estimate == pytest.approx(twin, rel=0, abs=1e-12), metric


@pytest.fixture(scope="module")
def wanted():
    return answer(SCORES, LABELS, TWIN)


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_and_any_threads_give_one_answer(form, threads, wanted, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4000)  # so that there is more than one block
    assert_one(answer(*form(tmp_path), threads=threads), wanted)


# ------------------------------------------------------------------------------------------- tables


def as_table():
    """The rows in another order, labels by name, with the scores of the twin."""
    ends = pa.array(np.arange(0, N * N_LABELS + 1, N_LABELS, dtype=np.int32))
    lists = [
        pa.ListArray.from_arrays(ends, pa.array(cells[ORDER].ravel())) for cells in (SCORES, TWIN)
    ]
    true = [[NAMES[label] for label in np.flatnonzero(LABELS[row])] for row in ORDER]
    columns = {"row": ORDER, "scores": lists[0], "twin": lists[1]}
    return pa.table(columns | {"labels": pa.array(true, pa.list_(pa.string()))})


def open_tasks():
    parts = [as_table().slice(start, 150).to_batches() for start in range(0, N, 150)]
    layout = Layout(N_LABELS, "probability", SCORES.dtype, NAMES, "scores", "labels", "row")
    return TableSource(Processes(parts, 1), layout)


def assert_table(source, wanted):
    (folds,) = assign_folds(source, 5)
    assert folds.of_keys(open_source(SCORES).row_keys()).tolist() == wanted["folds"]
    weights = dict(zip(NAMES, PAIR.weights, strict=True))
    repair = Repair(k=K, weights=weights).fit(source)
    found = diagnose(source, k=K, weights=weights, unweighted="twin", n_replicates=60)
    answers = {
        "folds": wanted["folds"],
        "evaluate": evaluate(source, k=K, n_replicates=60).to_dict(),
        "chosen": repair.chosen_,
        "why": repair.why_,
        "table": repair.table_.to_dict(),
        "diagnose": without_line(found),
    }
    assert_one(answers, wanted)


def test_tasks_that_see_rows_in_any_order_give_the_same_answer(wanted):
    assert_table(open_tasks(), wanted)


@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17")
def test_spark_gives_the_same_answer(wanted):
    pytest.importorskip("pyspark")
    from oddslip.spark.session import start_session

    session = start_session("local[2]")
    try:
        frame = session.createDataFrame(as_table()).repartition(3)
        named = {"scores": "scores", "labels": "labels", "row_id": "row"}
        assert_table(open_source(frame, **named, label_names=NAMES), wanted)
    finally:
        session.stop()
