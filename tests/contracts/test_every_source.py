"""Laws that hold for every source: the same panel gives the same cells, labels and names."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from oddslip.sources import base as blocks_of
from oddslip.sources import open_source
from oddslip.sources.views import LabelledSource, RowSubset

ROW_GROUP = 7


def make(n_rows=23, n_labels=5, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.random((n_rows, n_labels)).astype(dtype)
    scores.flat[0], scores.flat[-1] = 0.0, 1.0
    truths = rng.random((n_rows, n_labels)) < 0.3
    names = tuple(f"l{j}" for j in range(n_labels))
    return scores, truths, names


def write(path, columns, row_group=ROW_GROUP, metadata=None):
    table = pa.table(columns)
    if metadata:
        table = table.replace_schema_metadata(metadata)
    pq.write_table(table, path, row_group_size=row_group)
    return path


def open_c(folder, scores, truths, names):
    return open_source(np.ascontiguousarray(scores), truths, label_names=names)


def open_f(folder, scores, truths, names):
    return open_source(np.asfortranarray(scores), truths, label_names=names)


def open_foreign(folder, scores, truths, names):
    return open_source(scores.astype(scores.dtype.newbyteorder()), truths, label_names=names)


def open_sparse(folder, scores, truths, names):
    return open_source(scores, sparse.coo_array(truths.astype(np.int8)), label_names=names)


def open_lists(folder, scores, truths, names):
    return open_source(scores, [np.flatnonzero(row) for row in truths], label_names=names)


def open_frame(folder, scores, truths, names):
    import pandas as pd

    return open_source(
        pd.DataFrame(scores, columns=names), pd.DataFrame(truths, columns=names).iloc[:, ::-1]
    )


def open_npy(folder, scores, truths, names):
    np.save(folder / "s.npy", scores)
    np.save(folder / "y.npy", truths.astype(np.uint8))
    return open_source(folder / "s.npy", folder / "y.npy", label_names=names)


def open_npy_f(folder, scores, truths, names):
    np.save(folder / "s.npy", np.asfortranarray(scores))
    np.save(folder / "y.npy", np.asfortranarray(truths))
    return open_source(str(folder / "s.npy"), str(folder / "y.npy"), label_names=names)


def open_npy_foreign(folder, scores, truths, names):
    np.save(folder / "s.npy", scores.astype(scores.dtype.newbyteorder()))
    np.save(folder / "y.npy", truths.astype(">i4"))
    return open_source(folder / "s.npy", folder / "y.npy", label_names=names)


def open_memmap(folder, scores, truths, names):
    np.save(folder / "s.npy", scores)
    return open_source(np.load(folder / "s.npy", mmap_mode="r"), truths, label_names=names)


def open_npz(folder, scores, truths, names):
    np.savez(folder / "s.npz", scores)
    sparse.save_npz(folder / "y.npz", sparse.csr_matrix(truths.astype(np.int8)))
    return open_source(folder / "s.npz", folder / "y.npz", label_names=names)


def open_npz_packed(folder, scores, truths, names):
    np.savez_compressed(folder / "s.npz", scores)
    np.savez_compressed(folder / "y.npz", truths)
    return open_source(folder / "s.npz", folder / "y.npz", label_names=names)


def open_wide(folder, scores, truths, names):
    columns = {name: scores[:, j] for j, name in enumerate(names)}
    write(folder / "s.parquet", columns)
    columns = {name: truths[:, j] for j, name in reversed(list(enumerate(names)))}
    write(folder / "y.parquet", columns, 5)
    return open_source(folder / "s.parquet", folder / "y.parquet")


def open_wide_spilled(folder, scores, truths, names):
    source = open_wide(folder, scores, truths, names)
    source.table._streamed = None  # every row group takes the way over the disk
    return source


def open_folder(folder, scores, truths, names):
    inner = folder / "parts"
    inner.mkdir(exist_ok=True)
    for part, start in enumerate(range(0, len(scores), 9)):
        rows = slice(start, start + 9)
        columns = {name: scores[rows, j] for j, name in enumerate(names)}
        write(inner / f"part-{part:03}.parquet", columns)
    (inner / "_SUCCESS").touch()
    return open_source(inner, truths)


def listed(cells, kind):
    flat = pa.array(np.ascontiguousarray(cells).ravel())
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(flat, cells.shape[1])
    return pa.ListArray.from_arrays(
        np.arange(len(cells) + 1, dtype=np.int32) * cells.shape[1], flat
    )


def open_list(folder, scores, truths, names):
    write(
        folder / "s.parquet",
        {"scores": listed(scores, "fixed"), "labels": listed(truths.astype(np.int8), "fixed")},
    )
    return open_source(folder / "s.parquet", label_names=names)


def open_loose_list(folder, scores, truths, names):
    write(
        folder / "s.parquet",
        {"p": listed(scores, "loose"), "true": listed(truths, "loose")},
    )
    return open_source(folder / "s.parquet", label_names=names)


def long_columns(scores, truths, names, shuffle=True):
    rng = np.random.default_rng(5)
    n_rows, n_labels = scores.shape
    order = np.array([rng.permutation(n_labels) for _ in range(n_rows)])
    order[0] = np.arange(n_labels)
    if not shuffle:
        order[:] = np.arange(n_labels)
    rows = np.repeat(np.arange(n_rows), n_labels)
    return {
        "row": rows,
        "label": np.array(names)[order.ravel()],
        "score": scores[rows, order.ravel()],
        "true": truths[rows, order.ravel()].astype(np.int32),
    }


def open_long(folder, scores, truths, names):
    write(folder / "s.parquet", long_columns(scores, truths, names))
    return open_source(folder / "s.parquet")


def open_long_text(folder, scores, truths, names):
    columns = long_columns(scores, truths, names)
    columns["row"] = pa.array([f"u{row}" for row in columns["row"]]).dictionary_encode()
    columns["label"] = pa.array(columns["label"]).dictionary_encode()
    columns["true"] = columns["true"].astype(bool)
    write(folder / "s.parquet", columns, 11)
    return open_source(folder / "s.parquet", label_names=names)


def open_pairs(folder, scores, truths, names):
    rows, labels = np.nonzero(truths)
    order = np.random.default_rng(1).permutation(len(rows))
    write(folder / "s.parquet", {"scores": listed(scores, "fixed")})
    if len(rows) == 0:
        return open_source(folder / "s.parquet", truths, label_names=names)
    write(folder / "y.parquet", {"row": rows[order], "label": np.array(names)[labels[order]]})
    return open_source(folder / "s.parquet", folder / "y.parquet", label_names=names)


def open_index_lists(folder, scores, truths, names):
    np.save(folder / "s.npy", scores)
    lists = pa.array([np.flatnonzero(row)[::-1] for row in truths], pa.list_(pa.int64()))
    write(folder / "y.parquet", {"true": lists})
    return open_source(folder / "s.npy", folder / "y.parquet", label_names=names)


def with_names(truths, names):
    return pa.array([np.array(names)[row][::-1].tolist() for row in truths], pa.list_(pa.string()))


def with_indices(truths):
    return pa.array([np.flatnonzero(row)[::-1] for row in truths], pa.list_(pa.int32()))


def open_list_beside_names(folder, scores, truths, names):
    columns = {"scores": listed(scores, "loose"), "labels": with_names(truths, names)}
    return open_source(write(folder / "s.parquet", columns), label_names=names)


def open_list_beside_indices(folder, scores, truths, names):
    columns = {"labels": with_indices(truths), "scores": listed(scores, "fixed")}
    if (truths.sum(axis=1) == truths.shape[1]).all():  # cells of 0/1 look the same
        columns["labels"] = listed(truths.astype(np.int32), "loose")
    return open_source(write(folder / "s.parquet", columns), label_names=names)


def open_arrow_wide(folder, scores, truths, names):
    return open_source(
        pa.table({name: scores[:, j] for j, name in enumerate(names)}),
        pa.table({name: truths[:, j] for j, name in reversed(list(enumerate(names)))}),
    )


def open_arrow_reader(folder, scores, truths, names):
    table = pa.table({"scores": listed(scores, "loose"), "labels": with_names(truths, names)})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=4))
    return open_source(reader, label_names=names)


def open_polars_lists(folder, scores, truths, names):
    import polars as pl

    labels = pl.Series([np.array(names)[row].tolist() for row in truths], dtype=pl.List(pl.String))
    frame = pl.DataFrame({"scores": pl.Series(scores.tolist(), dtype=polars_list(scores))})
    return open_source(frame.with_columns(labels=labels), label_names=names)


def polars_list(scores):
    import polars as pl

    return pl.List(pl.Float32 if scores.dtype == np.float32 else pl.Float64)


def open_polars_ids(folder, scores, truths, names):
    import polars as pl

    ids = [f"u{row}" for row in range(len(scores))]
    frame = pl.DataFrame({"customer_id": ids, **dict(zip(names, scores.T, strict=True))})
    labels = pl.DataFrame({"customer_id": ids, **dict(zip(names, truths.T, strict=True))})
    return open_source(frame, labels[::-1])


def open_lazy(folder, scores, truths, names):
    import polars as pl

    frame = pl.DataFrame(dict(zip(names, scores.T, strict=True))).lazy()
    return open_source(frame, pl.DataFrame(dict(zip(names, truths.T, strict=True))).lazy())


def open_polars_long(folder, scores, truths, names):
    import polars as pl

    columns = long_columns(scores, truths, names)
    return open_source(pl.DataFrame(columns).with_columns(pl.col("label").cast(pl.Categorical)))


def open_pandas_lists(folder, scores, truths, names):
    import pandas as pd

    lists = [np.array(names)[row].tolist() for row in truths]
    return open_source(pd.DataFrame({"scores": list(scores), "labels": lists}), label_names=names)


def open_duckdb(folder, scores, truths, names):
    import duckdb

    where = duckdb.connect()
    where.register("s", pa.table(dict(zip(names, scores.T, strict=True))))
    where.register("y", pa.table(dict(zip(names, truths.T, strict=True))))
    return open_source(where.sql("from s"), where.sql("from y"))


def open_duckdb_long(folder, scores, truths, names):
    import duckdb

    where = duckdb.connect()
    where.register("cells", pa.table(long_columns(scores, truths, names, shuffle=False)))
    return open_source(where.sql("from cells order by row, score"), label_names=names)


def scattered(scores, truths, names):
    """Sorted by label, rows in order of their names."""
    columns = long_columns(scores, truths, names, shuffle=False)
    order = np.lexsort((columns["row"], columns["label"]))
    return {name: np.asarray(cells)[order] for name, cells in columns.items()}


def open_long_scattered(folder, scores, truths, names):
    write(folder / "s.parquet", scattered(scores, truths, names))
    return open_source(folder / "s.parquet")


def open_long_scattered_reader(folder, scores, truths, names):
    table = pa.table(scattered(scores, truths, names))
    return open_source(table.to_reader(max_chunksize=5), label_names=names)


def open_npy_parts(folder, scores, truths, names):
    cuts = [0, *sorted({len(scores) // 3, 2 * len(scores) // 3} - {0}), len(scores)]
    for part, (start, stop) in enumerate(itertools.pairwise(cuts)):
        np.save(folder / f"part-s-{part + 9}.npy", scores[start:stop])
        np.save(folder / f"part-y-{part + 9}.npy", truths[start:stop])
    files = [folder / f"part-s-{part + 9}.npy" for part in range(len(cuts) - 1)]
    return open_source(files, str(folder / "part-y-*.npy"), label_names=names)


def open_glob(folder, scores, truths, names):
    for part, start in enumerate(range(0, len(scores), 2)):  # more than ten: 10 comes after 9
        rows = slice(start, start + 2)
        write(folder / f"glob-{part}.parquet", dict(zip(names, scores[rows].T, strict=True)))
    return open_source(str(folder / "glob-*.parquet"), truths)


def open_address(folder, scores, truths, names):
    write(folder / "s.parquet", {"scores": listed(scores, "fixed")})
    write(folder / "y.parquet", {"labels": with_indices(truths)})
    there = [(folder / name).as_uri() for name in ("s.parquet", "y.parquet")]
    return open_source(*there, label_names=names)


def write_csv(path, columns):
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(np.asarray(c).tolist() for c in columns.values()), strict=True))
    return path


def open_csv(folder, scores, truths, names):
    cells = {"id": range(7, 7 + len(scores)), **dict(zip(names, scores.T.tolist(), strict=True))}
    labels = {"id": cells["id"], **dict(zip(names, truths.T.tolist(), strict=True))}
    turned = {name: list(column)[::-1] for name, column in labels.items()}
    return open_source(write_csv(folder / "s.csv", cells), str(write_csv(folder / "y.csv", turned)))


def open_csv_long(folder, scores, truths, names):
    return open_source(write_csv(folder / "s.csv", scattered(scores, truths, names)))


def open_labelled(folder, scores, truths, names):
    bare = open_source(scores, label_names=names)
    return LabelledSource(bare, open_c(folder, scores, truths, names).positives())


def open_fold(folder, scores, truths, names):
    """Every second row of a source whose other rows hold other scores and labels."""
    twice, doubled = np.repeat(scores, 2, 0), np.repeat(truths, 2, 0)
    twice[1::2], doubled[1::2] = 0.5, ~truths
    whole = open_c(folder, twice, doubled, names)
    kept = np.arange(whole.n_rows) % 2 == 0
    return RowSubset(whole, kept, whole.positives())


OPENERS = [thing for name, thing in sorted(globals().items()) if name.startswith("open_")]
OPENERS.remove(open_source)


def all_cells(source):
    panels = list(source.blocks())
    starts = np.cumsum([0, *(len(panel) for panel in panels)])
    assert [panel.first_row for panel in panels] == starts[:-1].tolist()
    return np.concatenate([panel.scores for panel in panels]), panels


def dense(positives, shape):
    cells = np.zeros(shape, bool)
    cells[np.repeat(np.arange(shape[0]), positives.counts), positives.indices] = True
    return cells


@pytest.mark.parametrize("block_bytes", [1, 300, 1 << 22])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("opened", OPENERS)
def test_every_source_yields_the_same_panel(tmp_path, monkeypatch, opened, dtype, block_bytes):
    monkeypatch.setattr(blocks_of, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr("oddslip.sources.long.table.CELLS", max(3, min(block_bytes, 1000)))
    if opened is open_wide_spilled:
        monkeypatch.setattr("oddslip.sources.parquet.wide.GROUP_BYTES", 90)
    scores, truths, names = make(dtype=dtype)
    source = opened(tmp_path, scores, truths, names)
    cells, panels = all_cells(source)
    if "csv" in opened.__name__:  # text has no types
        dtype, scores = np.float64, scores.astype(np.float64)
    assert cells.dtype == dtype == source.dtype
    assert cells.tobytes() == scores.tobytes()
    assert (source.n_rows, source.n_labels) == scores.shape
    assert source.label_names == names
    assert source.has_labels
    assert all(panel.label_names == names and panel.kind == "probability" for panel in panels)
    found = np.concatenate([dense(panel.positives(), panel.scores.shape) for panel in panels])
    assert np.array_equal(found, truths)
    assert np.array_equal(dense(source.positives(), truths.shape), truths)
    again, _ = all_cells(source)
    assert again.tobytes() == scores.tobytes()


@pytest.mark.parametrize(
    ("opened", "shape"),
    [
        (opened, shape)
        for opened in OPENERS
        for shape in [(1, 5), (6, 1), (1, 1)]
        # [[0]] for one label reads as a 0/1 cell, not as the index 0.
        if (opened, shape) != (open_lists, (1, 1))
    ],
)
def test_one_row_and_one_label_are_enough(tmp_path, monkeypatch, opened, shape):
    if opened is open_wide_spilled:
        monkeypatch.setattr("oddslip.sources.parquet.wide.GROUP_BYTES", 1)
    scores, truths, names = make(*shape)
    truths[0, 0] = True
    source = opened(tmp_path, scores, truths, names)
    assert np.array_equal(all_cells(source)[0], scores)
    assert np.array_equal(dense(source.positives(), shape), truths)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 6)),
    row_group=st.integers(1, 40),
    batch=st.integers(1, 40),
    block_bytes=st.integers(1, 200),
    seed=st.integers(0, 99),
)
def test_a_long_table_may_be_cut_anywhere(tmp_path, shape, row_group, batch, block_bytes, seed):
    scores, truths, names = make(*shape, seed=seed)
    write(tmp_path / "s.parquet", long_columns(scores, truths, names), row_group)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_of, "BLOCK_BYTES", block_bytes)
        patch.setattr("oddslip.sources.long.table.CELLS", batch)
        source = open_source(tmp_path / "s.parquet")
        cells, panels = all_cells(source)
        assert cells.tobytes() == scores.tobytes()
        assert np.array_equal(dense(source.positives(), shape), truths)
        ids = np.concatenate([panel.row_ids for panel in panels])
        assert ids.tolist() == source.row_ids().tolist() == list(range(shape[0]))
