import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.sources import open_source
from oddslip.sources.parquet.files import ParquetFiles
from oddslip.sources.parquet.labels import read_label_table


def read_labels_parquet(path, label_names=None, **options):
    return read_label_table(ParquetFiles(path), label_names, **options)


def write(path, columns, metadata=None, row_group=3):
    table = pa.table(columns)
    if metadata:
        table = table.replace_schema_metadata(metadata)
    pq.write_table(table, path, row_group_size=row_group)
    return path


def dense(labels):
    cells = np.zeros(labels.shape, int)
    cells[np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr)), labels.indices] = 1
    return cells.tolist()


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int8(), pa.int64(), pa.uint8(), pa.float64()])
def test_wide_labels_are_aligned_by_name(tmp_path, kind):
    columns = {
        "user_id": ["u", "v", "w", "x"],
        "b": pa.array([0, 1, 0, 1], pa.int8()).cast(kind),
        "a": pa.array([1, 1, 0, 0], pa.int8()).cast(kind),
    }
    path = write(tmp_path / "y.parquet", columns)
    assert dense(read_labels_parquet(path, ["a", "b"])) == [[1, 0], [1, 1], [0, 0], [0, 1]]
    assert dense(read_labels_parquet(path)) == [[0, 1], [1, 1], [0, 0], [1, 0]]


def test_wide_labels_of_other_names_are_refused(tmp_path):
    path = write(tmp_path / "y.parquet", {"a": [1], "b": [0]})
    with pytest.raises(InvalidInput, match="lacks 'c'"):
        read_labels_parquet(path, ["a", "c"])
    with pytest.raises(InvalidInput, match="'b' is missing"):
        read_labels_parquet(path, ["a"])


@pytest.mark.parametrize("wrong", [2, None])
def test_a_wide_cell_that_is_not_0_or_1_is_named(tmp_path, wrong):
    path = write(tmp_path / "y.parquet", {"a": [1, 0, 1, 0, 1], "b": [0, 0, 0, 0, wrong]})
    with pytest.raises(InvalidInput, match="row 4, label 'b'"):
        read_labels_parquet(path)


def test_a_column_of_strings_is_refused_by_name(tmp_path):
    path = write(tmp_path / "y.parquet", {"a": [1], "city": ["x"]})
    with pytest.raises(InvalidInput, match="'city'"):
        read_labels_parquet(path)


def test_pairs_may_come_in_any_order_and_twice(tmp_path):
    columns = {"row": [2, 0, 2, 0], "label": ["b", "a", "a", "a"]}
    labels = read_labels_parquet(write(tmp_path / "y.parquet", columns), ["a", "b"], shape=(4, 2))
    assert dense(labels) == [[1, 0], [0, 0], [1, 1], [0, 0]]


def test_pairs_marked_untrue_do_not_count(tmp_path):
    columns = {"row": [0, 0, 1], "label": [1, 0, 1], "true": [True, False, True]}
    labels = read_labels_parquet(write(tmp_path / "y.parquet", columns), shape=(2, 3))
    assert dense(labels) == [[0, 1, 0], [0, 1, 0]]


def test_the_number_of_rows_may_stand_in_the_metadata(tmp_path):
    columns = {"row": [1], "label": pa.array(["b"]).dictionary_encode()}
    path = write(tmp_path / "y.parquet", columns, {"oddslip.n_rows": "3"})
    assert dense(read_labels_parquet(path, ["a", "b"])) == [[0, 0], [0, 1], [0, 0]]
    with pytest.raises(InvalidInput, match="shape of scores"):
        open_source(np.full((2, 2), 0.5), path, label_names=["a", "b"])


def test_pairs_alone_do_not_tell_the_shape(tmp_path):
    path = write(tmp_path / "y.parquet", {"row": [1], "label": ["b"]})
    with pytest.raises(InvalidInput, match="number of rows must be known"):
        read_labels_parquet(path, ["a", "b"])
    with pytest.raises(InvalidInput, match="number of labels must be known"):
        read_labels_parquet(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"row": [0, 5], "label": ["a", "a"]}, "between 0 and n_rows - 1 = 2, got 5"),
        ({"row": [0, -1], "label": ["a", "a"]}, "got -1"),
        ({"row": [0, None], "label": ["a", "a"]}, "row must not be null"),
        ({"row": ["u"], "label": ["a"]}, "row must be a row number"),
        ({"row": [0, 2], "label": ["a", "z"]}, "among label_names, got 'z' at row 2"),
        ({"row": [0, 2], "label": ["a", None]}, "null at row 2"),
        ({"row": [0, 1], "label": [0, 2]}, "n_labels - 1 = 1, got 2 at row 1"),
        ({"row": [0], "label": [0.5]}, "names or indices"),
        ({"row": [0, 1], "label": [0, 1], "true": [1, 3]}, "got 3 at row 1"),
    ],
)
def test_a_wrong_pair_is_named(tmp_path, columns, message):
    path = write(tmp_path / "y.parquet", columns)
    with pytest.raises(InvalidInput, match=message):
        read_labels_parquet(path, ["a", "b"], shape=(3, 2))


@pytest.mark.parametrize("lists", [[[1, 0], [], [1, 1], None], [["b", "a"], [], ["b"], None]])
def test_a_list_names_the_true_labels_of_its_row(tmp_path, lists):
    path = write(tmp_path / "y.parquet", {"id": [1, 2, 3, 4], "labels": lists})
    assert dense(read_labels_parquet(path, ["a", "b"])) == [[1, 1], [0, 0], [0, 1], [0, 0]]


def test_a_list_of_bools_or_as_long_as_the_labels_holds_cells(tmp_path):
    cells = [[True, False], [False, True]]
    path = write(tmp_path / "y.parquet", {"y": cells})
    assert dense(read_labels_parquet(path, ["a", "b"])) == [[1, 0], [0, 1]]
    fixed = pa.array([[1, 0], [0, 1]], pa.list_(pa.int8(), 2))
    path = write(tmp_path / "y.parquet", {"y": fixed})
    assert dense(read_labels_parquet(path, shape=(2, 2))) == [[1, 0], [0, 1]]


def test_a_wrong_index_in_a_list_is_named(tmp_path):
    path = write(tmp_path / "y.parquet", {"y": [[0], [1], [], [0, 7]]})
    with pytest.raises(InvalidInput, match="got 7 at row 3"):
        read_labels_parquet(path, ["a", "b"])


def test_names_in_lists_need_label_names(tmp_path):
    path = write(tmp_path / "y.parquet", {"y": [["a"]]})
    with pytest.raises(InvalidInput, match="Pass label_names"):
        read_labels_parquet(path, shape=(1, 2))


def test_names_of_a_frame_align_the_labels_of_a_file(tmp_path):
    import pandas as pd

    path = write(tmp_path / "y.parquet", {"b": [1, 0], "a": [0, 0]})
    source = open_source(pd.DataFrame([[0.1, 0.2], [0.3, 0.4]], columns=["a", "b"]), path)
    assert source.positives().indices.tolist() == [1]


def test_a_missing_file_of_labels_is_refused(tmp_path):
    with pytest.raises(UnreadableFile, match="does not exist"):
        open_source([[0.5]], tmp_path / "y.parquet")


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    cells=st.integers(1, 9).flatmap(
        lambda width: st.lists(
            st.lists(st.booleans(), min_size=width, max_size=width), min_size=1, max_size=12
        )
    ),
    row_group=st.integers(1, 9),
    block_bytes=st.integers(1, 50),
)
def test_all_layouts_of_labels_agree(tmp_path, cells, row_group, block_bytes):
    cells = np.array(cells)
    names = [f"l{j}" for j in range(cells.shape[1])]
    rows, labels = np.nonzero(cells)
    lists = pa.array([np.flatnonzero(row) for row in cells], pa.list_(pa.int32()))
    layouts = [
        {name: cells[:, j] for j, name in enumerate(names)},
        {"true": lists},
        *([{"row": rows, "label": labels}] if len(rows) else []),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oddslip.sources.base.BLOCK_BYTES", block_bytes)
        patch.setattr("oddslip.sources.parquet.labels.PAIRS", block_bytes)
        for columns in layouts:
            path = write(tmp_path / "y.parquet", columns, row_group=row_group)
            actual = read_labels_parquet(path, names, shape=cells.shape)
            assert dense(actual) == cells.astype(int).tolist()
