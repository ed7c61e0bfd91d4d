"""Row keys: the same for a row however it is reached."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from oddslip.core.row_ids import hash_ids, hash_row_numbers
from oddslip.errors import InvalidInput
from oddslip.selection.folds import assign_folds
from oddslip.sources import open_source
from oddslip.sources.base import MAX_SMALL_ROWS, Source
from oddslip.sources.views import LabelledSource, ReorderedSource, RowSubset, View, take_rows

N = 500
SCORES = np.random.default_rng(0).random((N, 3))
LABELS = SCORES > 0.7
IDS = {
    "none": None,
    "numbers": np.random.default_rng(1).permutation(N),
    "texts": np.array([f"row {n}" for n in range(N)]),
}


@pytest.fixture(params=IDS)
def ids(request):
    return IDS[request.param]


def keys_of(source):
    return np.concatenate([keys for _, keys in source.map(lambda panel: panel.row_keys())])


def test_rows_without_ids_have_the_keys_of_their_numbers():
    assert_array_equal(open_source(SCORES).row_keys(), hash_ids(np.arange(N)))
    assert_array_equal(hash_row_numbers(7, 5), hash_ids(np.arange(7, 12)))


def test_panels_and_their_source_have_the_same_keys(ids):
    source = open_source(SCORES, row_ids=ids)
    first = keys_of(source)  # before the source has found them
    assert_array_equal(source.row_keys(), first)
    assert_array_equal(keys_of(source), first)


def test_keys_of_a_part_are_a_part_of_the_keys(ids):
    source = open_source(SCORES, LABELS, row_ids=ids)
    keys = source.row_keys()
    (panel,) = open_source(SCORES, LABELS, row_ids=ids).blocks()
    rows = np.array([400, 3, 77])
    assert_array_equal(take_rows(panel, rows).row_keys(), keys[rows])
    assert_array_equal(panel.rows(20, 50).row_keys(), keys[20:50])
    assert_array_equal(take_rows(panel.rows(20, 50), rows[1:2]).row_keys(), keys[23:24])
    kept = np.arange(N) % 3 == 0
    part = LabelledSource(RowSubset(source, kept, source.positives()), source.positives())
    assert_array_equal(part.row_keys(), keys[kept])
    assert_array_equal(keys_of(part.whole), keys[kept])


def test_rows_in_another_order_keep_the_keys_of_their_ids():
    order = np.random.default_rng(2).permutation(N)
    source = open_source(SCORES, row_ids=IDS["texts"])
    turned = ReorderedSource(source, order)
    assert_array_equal(turned.row_keys(), source.row_keys()[order])
    assert_array_equal(keys_of(turned), source.row_keys()[order])
    numbered = ReorderedSource(open_source(SCORES), order)
    assert_array_equal(keys_of(numbered), numbered.row_keys())


def test_files_have_the_keys_of_their_rows(tmp_path):
    columns = {f"label {j}": SCORES[:, j] for j in range(3)}
    pq.write_table(pa.table({"row_id": IDS["texts"], **columns}), tmp_path / "s.parquet", 90)
    source = open_source(tmp_path / "s.parquet")
    assert_array_equal(source.row_keys(), hash_ids(IDS["texts"]))
    assert_array_equal(keys_of(source), hash_ids(IDS["texts"]))


def test_every_view_has_the_attributes_of_its_whole():
    source = open_source(SCORES, LABELS, row_ids=IDS["texts"])
    view = View(source)
    for name in Source.__annotations__:
        if name not in ("_totals", "_row_keys", "indexed", "kind_is_stored"):
            assert getattr(view, name) is getattr(source, name), name


def test_few_rows_fall_into_folds_of_equal_size(ids):
    source = open_source(SCORES, row_ids=ids)
    for folds in assign_folds(source, 7, seed=3, n_repeats=3):
        sizes = np.bincount(folds.of_keys(source.row_keys()), minlength=7)
        assert sizes.max() - sizes.min() <= 1


def test_rows_with_one_id_share_a_fold():
    source = open_source(SCORES, row_ids=np.arange(N) // 5)
    (folds,) = assign_folds(source, 4)
    assert (np.ptp(folds.of_keys(source.row_keys()).reshape(-1, 5), axis=1) == 0).all()


def test_more_folds_than_ids_are_refused():
    with pytest.raises(InvalidInput, match="n_folds must be at most 4 row ids, got n_folds=5"):
        assign_folds(open_source(SCORES[:8], row_ids=np.arange(8) // 2), 5)


def test_many_rows_are_cut_without_looking_at_them():
    source = open_source(np.broadcast_to(0.5, (MAX_SMALL_ROWS + 1, 1)))
    (folds,) = assign_folds(source, 4)
    assert_array_equal(folds.cuts, np.array([2**62, 2**63, 3 * 2**62], np.uint64))
