"""Long tables in any order: the same rows as the table in order, within bounded memory."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oddslip import InvalidInput, open_source
from oddslip.sources.long import sorting


def long_table(scores, truths, order):
    n_labels = scores.shape[1]
    rows, labels = np.divmod(order, n_labels)
    return pa.table(
        {
            "row": pa.array([f"u{row}" for row in rows]),
            "label": labels,
            "score": scores[rows, labels],
            "true": truths[rows, labels],
        }
    )


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 5)),
    seed=st.integers(0, 999),
    bucket=st.integers(1, 300),
    cells=st.integers(1, 50),
)
def test_any_order_of_cells_gives_the_same_rows(shape, seed, bucket, cells):
    rng = np.random.default_rng(seed)
    scores, truths = rng.random(shape), rng.random(shape) < 0.5
    order = rng.permutation(scores.size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "BUCKET_BYTES", bucket)
        patch.setattr(sorting, "CELLS", cells)
        patch.setattr(sorting, "LOOK_EVERY", 3)
        names = [str(label) for label in range(shape[1])]
        source = open_source(long_table(scores, truths, order), label_names=names)
        panels = list(source.blocks())
        rows = np.array([int(name[1:]) for name in source.row_ids()])
        assert rows.tolist() == list(dict.fromkeys((order // shape[1]).tolist()))
        scores_read = np.concatenate([panel.scores for panel in panels])
        assert scores_read.tobytes() == scores[rows].tobytes()
        assert np.array_equal(np.concatenate([panel.truths() for panel in panels]), truths[rows])


def refusal(columns, tmp_path):
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    with pytest.raises(InvalidInput) as error:
        open_source(tmp_path / "s.parquet")
    return str(error.value)


def test_a_cell_that_is_missing_or_comes_twice_is_named(tmp_path):
    cells = {"row": [1, 2, 1, 2, 3], "label": list("aabba"), "score": [0.5] * 5}
    assert "row 3 lacks label 'b'" in refusal(cells, tmp_path)
    assert 'nan="absent"' in refusal(cells, tmp_path)
    cells = {"row": [1, 2, 1, 2, 1], "label": list("aabba"), "score": [0.5] * 5}
    assert "label 'a' again at row 1" in refusal(cells, tmp_path)
    cells = {"row": [1, 2, 1, 2], "label": list("aaba"), "score": [0.5] * 4}
    assert "label 'a' again at row 2" in refusal(cells, tmp_path)
    cells = {"row": [1, 2, 1, 2], "label": list("aabb"), "score": [0.5, 0.5, None, 0.5]}
    assert "null at row 1, label 'b'" in refusal(cells, tmp_path)


def test_a_cell_that_does_not_come_again_when_it_is_sorted_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(sorting, "_batches", lambda files: ())  # a damaged column of scores
    cells = {"row": [1, 2, 1, 2], "label": list("aabb"), "score": [0.5] * 4}
    assert "got label 'a' not at all at row 1" in refusal(cells, tmp_path)


def test_whole_rows_of_the_same_name_stay_two_rows(tmp_path):
    cells = {"row": [1, 1, 2, 2, 1, 1], "label": list("ababab"), "score": np.arange(6) / 8}
    pq.write_table(pa.table(cells), tmp_path / "s.parquet")
    assert open_source(tmp_path / "s.parquet").row_ids().tolist() == [1, 2, 1]
