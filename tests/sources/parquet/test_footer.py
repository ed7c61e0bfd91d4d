"""The footer tells what pyarrow tells of it, and what is damaged is a ValueError."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oddslip.sources.parquet.footer import MAGIC, read_chunks


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    lists = [rng.random(rng.integers(0, 9)).tolist() for _ in range(300)]
    table = pa.table({"ä": np.arange(300), "scores": lists, "s": [str(n) for n in range(300)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=70)
    return tmp_path / "a.parquet"


def test_chunks_are_those_that_pyarrow_knows(file):
    footer = pq.read_metadata(file)
    expected = [
        [
            (
                footer.row_group(group).column(at).path_in_schema.split(".")[0],
                footer.row_group(group).column(at).num_values,
            )
            for at in range(footer.num_columns)
        ]
        for group in range(footer.num_row_groups)
    ]
    assert [list(map(tuple, group)) for group in read_chunks(file)] == expected


def test_a_damaged_footer_is_read_or_is_a_value_error(file, tmp_path):
    whole, rng = file.read_bytes(), np.random.default_rng(1)
    n_errors = 0
    for _ in range(2000):
        data = bytearray(whole)
        for at in rng.integers(len(whole) - 1500, len(whole) - 8, 3):
            data[at] = rng.integers(256)
        (tmp_path / "b.parquet").write_bytes(data)
        try:
            read_chunks(tmp_path / "b.parquet")
        except ValueError:
            n_errors += 1
    assert n_errors


@pytest.mark.parametrize(
    "data", [b"", MAGIC, b"\xff\xff\xff\xff" + MAGIC, b"\x1c" * 99 + b"c\0\0\0" + MAGIC]
)
def test_what_is_no_footer_is_a_value_error(tmp_path, data):
    (tmp_path / "b.parquet").write_bytes(data)
    with pytest.raises(ValueError, match=r".+"):
        read_chunks(tmp_path / "b.parquet")
