"""Tables of other libraries: read once where they come once, refused in one line where they fail."""

import subprocess
import sys
import tempfile

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.preprocessing import MultiLabelBinarizer

import oddslip
from oddslip import open_source
from oddslip.errors import OddslipError
from oddslip.sources import spool
from oddslip.sources.spool import SpooledBatches

RNG = np.random.default_rng(3)
SCORES, LABELS, NAMES = RNG.random((40, 4)), RNG.random((40, 4)) < 0.4, ["a", "b", "c", "d"]
LISTS = [np.array(NAMES)[row].tolist() for row in LABELS]


def map_of(scores, labels=None, **options):
    return oddslip.evaluate(scores, labels, k=2, n_replicates=0, **options)["map"].value


WANTED = map_of(SCORES, LABELS)


def refusal(*arguments, **options):
    with pytest.raises(OddslipError) as error:
        map_of(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_stream_that_comes_once_can_be_read_as_often_as_a_verb_wants():
    numbers = []

    def batches():
        for start in range(0, 40, 8):
            numbers.append(start)
            rows = slice(start, start + 8)
            yield pa.record_batch(dict(zip(NAMES, SCORES[rows].T, strict=True)))

    schema = pa.schema([(name, pa.float64()) for name in NAMES])
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    options = {"k": 2, "rule": "isotonic-5"}
    actual = oddslip.Repair(**options).fit(reader, LABELS).fitted_
    expected = oddslip.Repair(**options).fit(SCORES, LABELS, label_names=NAMES).fitted_
    assert numbers == [0, 8, 16, 24, 32]
    panel = oddslip.Panel(SCORES, label_names=NAMES)
    np.testing.assert_array_equal(actual.transform(panel), expected.transform(panel))


def test_a_stream_that_was_used_up_says_so():
    reader = pa.table(dict(zip(NAMES, SCORES.T, strict=True))).to_reader()
    assert map_of(reader, LABELS) == WANTED
    assert "A stream is read once" in refusal(reader, LABELS)


def test_two_readers_of_a_spool_do_not_disturb_each_other(monkeypatch):
    monkeypatch.setattr(spool, "BATCH_BYTES", 64)
    table = pa.table({"x": range(100), "y": range(100, 200)})
    spooled = SpooledBatches("it", table.schema, table.to_batches(max_chunksize=30))
    one, two = spooled.batches(["x"], 7), spooled.batches(["y", "x"], 11)
    mixed = [(next(one), next(two)) for _ in range(5)]
    values = [x for batch, _ in mixed for x in batch.column("x").to_pylist()]
    assert values == list(range(len(values)))
    assert mixed[0][1].schema.names == ["y", "x"]
    whole = pa.Table.from_batches([*(b for _, b in mixed), *two])
    assert whole.column("y").to_pylist() == list(range(100, 200))


def test_a_spool_has_no_name_that_could_stay_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = open_source(pl.DataFrame(SCORES, schema=NAMES).lazy(), LABELS)
    assert list(tmp_path.iterdir()) == []
    assert source.n_rows == 40


def test_a_full_disk_is_one_line():
    code = (
        "import resource, signal, numpy as np, polars as pl, oddslip\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "frame = pl.DataFrame(np.full((5000, 4), 0.5), schema=list('abcd'))\n"
        "cells = frame.with_row_index('row').unpivot(index='row', variable_name='label',\n"
        "    value_name='score')\n"
        "for table in (frame.lazy(), cells):\n"
        "    try: oddslip.rank(table, k=1)\n"
        "    except oddslip.UnreadableFile as error: print(error)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.count("Free space there, or set TMPDIR") == 2
    assert len(process.stdout.splitlines()) == 2


def test_a_query_that_fails_is_one_line():
    failing = duckdb.sql("select 0.5::double as a, error('no such ghost') as b from range(3)")
    assert "no such ghost" in refusal(failing, LABELS)
    assert "unable to find column" in refusal(pl.LazyFrame({"a": [1.0]}).select("zz"), LABELS)


def test_decimals_of_a_query_are_scores():
    relation = duckdb.sql("select 0.25 as a, 0.75 as b from range(3)")
    assert oddslip.rank(relation, k=1).ravel().tolist() == [1, 1, 1]


def test_names_of_columns_and_rows_come_along():
    frame = pl.DataFrame({"user": [f"u{i}" for i in range(40)], "scores": SCORES.tolist()})
    labels = pl.DataFrame({"user": [f"u{i}" for i in range(40)][::-1], "labels": LISTS[::-1]})
    assert map_of(frame, labels, label_names=NAMES) == WANTED
    assert map_of(frame.lazy(), labels.lazy(), label_names=NAMES) == WANTED
    framed = pd.DataFrame({"scores": list(SCORES), "labels": LISTS}, index=frame["user"].to_list())
    assert open_source(framed, label_names=NAMES).row_ids()[0] == "u0"


@pytest.mark.parametrize(
    "labels",
    [
        LISTS,
        pd.Series(LISTS),
        pl.Series(LISTS),
        pa.array(LISTS),
        pa.chunked_array([LISTS]),
        MultiLabelBinarizer(classes=NAMES).fit_transform(LISTS),
        MultiLabelBinarizer(classes=NAMES, sparse_output=True).fit_transform(LISTS),
        pd.DataFrame(LABELS, columns=NAMES).astype("boolean"),
        pd.DataFrame(LABELS.astype(int), columns=NAMES).astype("Int64"),
        pd.DataFrame(LABELS, columns=NAMES).astype("bool[pyarrow]"),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_labels_come_in_every_form_that_people_have(labels):
    for kind in ("float64", "Float64", "double[pyarrow]"):
        scores = pd.DataFrame(SCORES, columns=NAMES).astype(kind)
        assert map_of(scores, labels) == WANTED


def test_a_missing_cell_of_a_nullable_frame_is_named():
    scores = pd.DataFrame(SCORES, columns=NAMES).astype("Float32")
    scores.iloc[2, 1] = pd.NA
    assert "at row 2, label 'b'" in refusal(scores, LABELS)
    array = SCORES.astype(np.float32)
    array[2, 1] = np.nan
    assert map_of(scores, LABELS, nan="absent") == map_of(array, LABELS, nan="absent")
    for kind in ("Int64", "boolean"):
        labels = pd.DataFrame(LABELS.astype(int), columns=NAMES).astype(kind)
        labels.iloc[3, 2] = pd.NA
        assert "got a null at row 3, label 'c'" in refusal(SCORES, labels)
    nulls = pl.DataFrame(LABELS, schema=NAMES).with_columns(b=pl.lit(None, dtype=pl.Boolean))
    assert "got a null at row 0, label 'b'" in refusal(SCORES, nulls)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"scores": SCORES.tolist(), "note": ["x"] * 40}, "'note'"),
        ({"scores": SCORES.tolist(), "labels": [[0, 4]] * 40}, "got 4 at row 0"),
        ({"scores": SCORES.tolist(), "labels": LISTS}, "Pass label_names"),
        ({"scores": SCORES.tolist(), "labels": [[0, 1, 1]] * 40}, "got one twice at row 0"),
        ({"scores": [*SCORES[:39].tolist(), [0.5]]}, "got 1 at row 39"),
    ],
)
def test_lists_that_do_not_fit_are_refused(frame, message):
    assert message in refusal(pl.DataFrame(frame), None if "labels" in frame else LABELS)


def test_a_cell_list_of_another_length_never_makes_lists_of_indices_of_all():
    lists = [*LABELS.astype(int).tolist()[:39], [1, 0, 0]]
    assert "Cells of 0/1 must be one per label, 4" in refusal(
        pl.DataFrame({"scores": SCORES.tolist(), "labels": lists})
    )


def test_the_library_loads_without_any_of_them():
    code = (
        "import sys, oddslip, numpy as np\n"
        "oddslip.rank(np.array([[0.1, 0.2]]), k=1)\n"
        "print([m for m in ('polars', 'duckdb', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"
