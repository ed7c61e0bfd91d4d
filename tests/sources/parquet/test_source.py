from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io import inputs
from oddslip.sources import open_source
from oddslip.sources.parquet.columns import LabelIndex
from oddslip.sources.parquet.files import ParquetFiles
from oddslip.sources.parquet.list import ListTable
from oddslip.sources.parquet.source import ParquetSource

SCORES = np.array([[0.1, 0.9], [0.4, 0.3], [0.2, 0.8]], np.float32)


def write(path, columns, row_group=2, **options):
    pq.write_table(pa.table(columns), path, row_group_size=row_group, **options)
    return path


def wide(path, **extra):
    return write(path, {**extra, "a": SCORES[:, 0], "b": SCORES[:, 1]})


def long(path, rows, labels, scores=None, **extra):
    scores = np.linspace(0, 1, len(rows)) if scores is None else scores
    return write(path, {"row": rows, "label": labels, "score": scores, **extra})


def read(path, **options):
    source = ParquetSource(path, kind="probability", **options)
    return np.concatenate([panel.scores for panel in source.blocks()])


@pytest.mark.parametrize("name", ["row_id", "user", "customer_id", "index"])
@pytest.mark.parametrize("ids", [[7, 8, 9], ["x", "y", "z"]])
def test_a_known_first_column_names_the_rows(tmp_path, name, ids):
    source = open_source(wide(tmp_path / "s.parquet", **{name: ids}))
    assert source.row_ids().tolist() == ids
    assert source.label_names == ("a", "b")
    assert [i for panel in source.blocks() for i in panel.row_ids] == ids


def test_a_pandas_index_names_the_rows(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(SCORES, columns=["a", "b"], index=["x", "y", "z"])
    frame.to_parquet(tmp_path / "s.parquet")
    source = open_source(tmp_path / "s.parquet")
    assert source.row_ids().tolist() == ["x", "y", "z"]
    assert source.label_names == ("a", "b")


@pytest.mark.parametrize("extra", [{"city": ["p", "q", "r"]}, {"n": [1, 2, 3]}, {"id": [True] * 3}])
def test_an_unknown_column_is_refused_by_name(tmp_path, extra):
    with pytest.raises(InvalidInput, match=next(iter(extra)) + ".*rename it to row_id"):
        open_source(wide(tmp_path / "s.parquet", **extra))


def test_a_second_column_of_ids_is_refused_by_name(tmp_path):
    with pytest.raises(InvalidInput, match="'user'"):
        open_source(wide(tmp_path / "s.parquet", id=[1, 2, 3], user=[1, 2, 3]))


def test_label_names_order_the_columns(tmp_path):
    path = wide(tmp_path / "s.parquet")
    assert np.array_equal(read(path, label_names=["b", "a"]), SCORES[:, ::-1])
    with pytest.raises(InvalidInput, match="lacks 'c'"):
        read(path, label_names=["a", "c"])
    with pytest.raises(InvalidInput, match="'b' is missing"):
        read(path, label_names=["a"])


def test_label_names_order_the_labels_of_a_long_table(tmp_path):
    path = long(tmp_path / "s.parquet", [0, 0, 1, 1], ["a", "b", "b", "a"], [0.1, 0.2, 0.3, 0.4])
    assert read(path).tolist() == [[0.1, 0.2], [0.4, 0.3]]
    assert read(path, label_names=["b", "a"]).tolist() == [[0.2, 0.1], [0.3, 0.4]]


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(pa.float16(), np.float32), (pa.float32(), np.float32), (pa.float64(), np.float64)],
)
def test_floats_keep_their_width_and_halves_become_singles(tmp_path, kind, dtype):
    cells = np.array([0.5, 0.25, 1.0], kind.to_pandas_dtype())
    path = write(tmp_path / "s.parquet", {"a": pa.array(cells, kind)})
    assert read(path).dtype == dtype
    assert read(path).ravel().tolist() == [0.5, 0.25, 1.0]


def test_columns_of_two_widths_take_the_wider(tmp_path):
    path = write(tmp_path / "s.parquet", {"a": np.float32([0.1]), "b": np.float64([0.1])})
    assert read(path).tolist() == [[np.float32(0.1), 0.1]]


def test_whole_numbers_in_lists_and_long_tables_are_doubles(tmp_path):
    path = write(tmp_path / "s.parquet", {"scores": [[0, 1], [1, 0]]})
    assert read(path).dtype == np.float64
    path = long(tmp_path / "l.parquet", [0, 0, 1, 1], [5, 3, 5, 3], np.array([0, 1, 1, 0]))
    assert read(path).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert open_source(path).label_names == ("3", "5")


@pytest.mark.parametrize("group_bytes", [1 << 20, 1])
def test_a_null_in_a_wide_table_is_named(tmp_path, monkeypatch, group_bytes):
    monkeypatch.setattr("oddslip.sources.parquet.wide.GROUP_BYTES", group_bytes)
    path = write(tmp_path / "s.parquet", {"a": [0.1, 0.2, 0.3], "b": [0.1, 0.2, None]})
    with pytest.raises(InvalidInput, match="null at row 2, label 'b'"):
        read(path)


def test_a_null_in_a_list_is_named(tmp_path):
    path = write(tmp_path / "s.parquet", {"scores": [[0.1, 0.2], [0.1, 0.2], [None, 0.3]]})
    with pytest.raises(InvalidInput, match="null at row 2, label 'x'"):
        read(path, label_names=["x", "y"])
    path = write(tmp_path / "s.parquet", {"scores": [[0.1, 0.2], [0.1, 0.2], None]})
    with pytest.raises(InvalidInput, match="null instead of a list at row 2"):
        read(path)


def test_a_null_in_a_long_table_is_named(tmp_path):
    path = long(tmp_path / "s.parquet", [4, 4, 9, 9], list("abba"), [0.1, 0.2, None, 0.4])
    with pytest.raises(InvalidInput, match="null at row 9, label 'b'"):
        read(path)
    path = long(tmp_path / "s.parquet", [4, 4, None, 9], list("abba"))
    with pytest.raises(InvalidInput, match="row must not be null, got a null at cell 2"):
        read(path)


def test_a_null_row_id_is_named(tmp_path):
    with pytest.raises(InvalidInput, match="null at row 2"):
        open_source(wide(tmp_path / "s.parquet", id=[1, 2, None])).row_ids()


def test_lists_of_different_lengths_are_refused(tmp_path):
    path = write(tmp_path / "s.parquet", {"scores": [[0.1, 0.2], [0.1, 0.2], [0.3]]})
    with pytest.raises(InvalidInput, match="2 cells in every row, got 1 at row 2"):
        read(path)


def test_a_list_column_whose_rows_do_not_come_has_no_label():
    columns = pa.schema({"scores": pa.list_(pa.float32())})
    none = SimpleNamespace(
        path="s", schema=columns, n_rows=3, metadata=lambda _: None, batches=lambda *_, **__: ()
    )
    with pytest.raises(InvalidInput, match="at least one label, got s with none"):
        ListTable(none, None)


def test_a_label_name_that_can_not_be_decoded_is_shown_as_bytes():
    ends = pa.py_buffer(np.array([0, 1], np.int32).tobytes())
    broken = pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(b"\xe3")])
    for names in (("a", "b"), None):
        with pytest.raises(InvalidInput, match=r"got b'\\xe3' at row 7"):
            LabelIndex(names, 2).indices(broken, lambda at: f"row {7 + at}")


def test_a_column_of_unknown_meaning_beside_a_list_is_refused(tmp_path):
    path = write(tmp_path / "s.parquet", {"scores": [[0.1]], "weight": [2.0]})
    with pytest.raises(InvalidInput, match="'weight'"):
        read(path)


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 100])
@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        ("ppqqrr", "abbaac", "unknown label 'c' at row 'r'"),
        ("ppqqrr", "abbbab", "label 'b' again at row 'q'"),
        ("ppqrr", "abbab", "row 'q' lacks label 'a'"),
        ("ppqqqrr", "abbabab", "label 'b' again at row 'q'"),
        ("ppqqr", "abbaa", "row 'r' lacks label 'b'"),
        ("pprrqqq", "abbaaba", "label 'a' again at row 'q'"),
        ("ppqqrrpp", "abbaabaa", "label 'a' again at row 'p'"),
        ("ppqqqq", "ababab", "label 'a' again at row 'q'"),
        ("ppqsss", "abaabb", "row 'q' lacks label 'b'"),
        ("pp", "aa", "'a' more than once at row 'p'"),
    ],
)
def test_a_long_row_must_hold_every_label_once(tmp_path, monkeypatch, rows, labels, message, batch):
    monkeypatch.setattr("oddslip.sources.long.table.CELLS", batch)
    path = long(tmp_path / "s.parquet", list(rows), list(labels))
    with pytest.raises(InvalidInput, match=message):
        read(path)


def test_the_first_faulty_row_is_the_one_named(tmp_path):
    path = long(tmp_path / "s.parquet", list("ppqqrrsss"), list("ababbbabb"))
    with pytest.raises(InvalidInput, match="again at row 'r'"):
        read(path)


def test_a_null_label_is_refused(tmp_path):
    path = long(tmp_path / "s.parquet", [0, 0, 1, 1], ["a", "b", "a", None])
    with pytest.raises(InvalidInput, match="null label at row 1"):
        read(path)


def test_a_column_of_unknown_meaning_in_a_long_table_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="'fold'"):
        open_source(long(tmp_path / "s.parquet", [0], ["a"], fold=[1]))


@pytest.mark.parametrize("wrong", [2, -1, 7])
def test_a_label_that_is_not_0_or_1_is_named(tmp_path, wrong):
    path = long(tmp_path / "s.parquet", [0, 0, 1, 1], list("abab"), true=[0, 1, 0, wrong])
    with pytest.raises(InvalidInput, match=f"got {wrong} at row 1, label 'b'"):
        open_source(path).positives()
    path = write(tmp_path / "s.parquet", {"scores": [[0.1, 0.2]], "labels": [[0, wrong]]})
    with pytest.raises(InvalidInput, match=f"got {wrong} at row 0, label '1'"):
        open_source(path).positives()


def test_labels_from_two_places_are_refused(tmp_path):
    path = write(tmp_path / "s.parquet", {"scores": [[0.1, 0.2]], "labels": [[0, 1]]})
    with pytest.raises(InvalidInput, match="labels must come from one place"):
        open_source(path, [[0, 1]])


def test_labels_of_another_shape_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"shape of scores, \(3, 2\)"):
        open_source(wide(tmp_path / "s.parquet"), np.zeros((2, 2)))


def test_a_wrong_label_given_apart_is_named_by_its_row_in_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 8)
    source = open_source(wide(tmp_path / "s.parquet"), np.array([[0, 1], [0, 1], [0, 5]]))
    with pytest.raises(InvalidInput, match="row 2, label 'b'"):
        source.positives()


def test_a_nan_is_named_by_its_row_in_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 8)
    path = write(tmp_path / "s.parquet", {"a": [0.1, 0.2, np.nan]})
    with pytest.raises(InvalidInput, match="row 2, label 'a'"):
        [panel.checked() for panel in open_source(path).blocks()]


def columns_read(monkeypatch):
    names = set()
    plain = ParquetFiles.file_batches

    def watched(self, file, columns, *args, **options):
        names.update(columns)
        return plain(self, file, columns, *args, **options)

    monkeypatch.setattr(ParquetFiles, "file_batches", watched)
    return names


def test_labels_are_read_without_the_scores(tmp_path, monkeypatch):
    path = write(tmp_path / "s.parquet", {"scores": [[0.1, 0.2]], "labels": [[0, 1]]})
    source = open_source(path)
    table = open_source(long(tmp_path / "l.parquet", [0, 0], ["a", "b"], true=[0, 1]))
    apart = open_source(wide(tmp_path / "w.parquet"), np.ones((3, 2)))
    columns = columns_read(monkeypatch)
    for each in (source, table, apart):
        assert each.positives().indices.size
    assert columns == {"labels", "row", "label", "true"}


def test_row_ids_are_read_alone(tmp_path, monkeypatch):
    path = write(tmp_path / "s.parquet", {"scores": [[0.1, 0.2]], "labels": [[0, 1]], "id": [3]})
    sources = [
        open_source(path),
        open_source(wide(tmp_path / "w.parquet", user=[1, 2, 3])),
        open_source(long(tmp_path / "l.parquet", [0, 0], ["a", "b"])),
    ]
    columns = columns_read(monkeypatch)
    for source in sources:
        assert len(source.row_ids()) == source.n_rows
    assert columns == {"id", "user", "row"}


def test_a_label_whose_name_starts_like_another_with_a_dot_is_read(tmp_path):
    columns = {"a": [0.1], "a.b": [0.2], "a.b.c": [0.3]}
    path = write(tmp_path / "s.parquet", columns)
    source = open_source(path)
    assert source.label_names == ("a", "a.b", "a.b.c")
    assert read(path).tolist() == [[0.1, 0.2, 0.3]]


def test_a_file_cut_short_anywhere_is_refused_in_one_line(tmp_path):
    whole = wide(tmp_path / "whole.parquet").read_bytes()
    path = tmp_path / "s.parquet"
    for size in [0, 1, 4, 7, 12, len(whole) // 2, len(whole) - 8, len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(UnreadableFile) as caught:
            open_source(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_damaged_pages_are_refused_in_one_line(tmp_path):
    rng = np.random.default_rng(0)
    path = write(tmp_path / "s.parquet", {"a": rng.random(5000)}, 5000, compression="zstd")
    cells = bytearray(path.read_bytes())
    cells[200:20_000] = bytes(19_800)
    path.write_bytes(cells)
    with pytest.raises(UnreadableFile, match=r"s\.parquet is cut short, damaged") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_foreign_missing_and_empty_files_are_refused(tmp_path):
    (tmp_path / "text.parquet").write_text("hello, this is no Parquet file")
    (tmp_path / "folder").mkdir()
    empty = write(tmp_path / "empty.parquet", {"a": np.empty(0, np.float32)})
    for path, why in [
        (tmp_path / "text.parquet", "not a Parquet file"),
        (tmp_path / "none.parquet", "does not exist"),
        (tmp_path / "folder", "without .parquet files"),
        (empty, "holds no rows"),
    ]:
        with pytest.raises(UnreadableFile, match=why):
            open_source(path)


def test_files_of_a_folder_must_agree(tmp_path):
    write(tmp_path / "1.parquet", {"a": [0.1]})
    write(tmp_path / "2.parquet", {"b": [0.1]})
    with pytest.raises(InvalidInput, match=r"2\.parquet differs from 1\.parquet"):
        open_source(tmp_path)


def test_row_ids_apart_from_the_file_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="row_ids must be a column"):
        open_source(wide(tmp_path / "s.parquet"), row_ids=[1, 2, 3])


def test_a_file_that_shrinks_while_read_is_refused(tmp_path):
    source = open_source(wide(tmp_path / "s.parquet"))
    write(tmp_path / "s.parquet", {"a": np.float32([0.5]), "b": np.float32([0.5])})
    with pytest.raises(UnreadableFile):
        list(source.blocks())


@pytest.mark.parametrize("layout", ["list", "wide", "long"])
def test_a_large_row_group_never_lies_in_memory_whole(tmp_path, monkeypatch, layout):
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 1 << 20)
    monkeypatch.setattr("oddslip.sources.parquet.wide.GROUP_BYTES", 4 << 20)
    n_rows, n_labels = 16_000, 500
    cells = np.random.default_rng(0).random((n_rows, n_labels), np.float32)
    flat = pa.array(cells.ravel())
    columns = {
        "list": lambda: {"scores": pa.FixedSizeListArray.from_arrays(flat, n_labels)},
        "wide": lambda: {f"l{j}": cells[:, j] for j in range(n_labels)},
        "long": lambda: {
            "row": np.repeat(np.arange(n_rows), n_labels),
            "label": np.tile(np.arange(n_labels), n_rows),
            "score": flat,
        },
    }[layout]()
    write(tmp_path / "s.parquet", columns, cells.size)
    pool, default = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        total = sum(panel.scores.size for panel in open_source(tmp_path / "s.parquet").blocks())
    finally:
        pa.set_memory_pool(default)
    assert total == cells.size
    assert 1 << 20 < pool.max_memory() < cells.nbytes / 2


@pytest.mark.parametrize("name", ["scores", "labels"])
def test_a_few_bytes_of_lists_that_memory_can_not_hold_are_not_unpacked(
    tmp_path, monkeypatch, name
):
    zeros = np.zeros(3_000_000, np.float32 if name == "scores" else np.int32)
    path = tmp_path / "s.parquet"
    write(path, {name: pa.LargeListArray.from_arrays([0, 1, zeros.size], zeros)}, 2)
    assert path.stat().st_size < 30_000
    monkeypatch.setattr(inputs, "free_memory", lambda: 10**6)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)  # nothing is unpacked
    arguments = (path, None) if name == "scores" else (np.zeros((2, 3)), path)
    with pytest.raises(UnreadableFile, match="must fit into memory"):
        open_source(*arguments)
