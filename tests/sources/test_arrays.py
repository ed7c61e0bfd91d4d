import numpy as np
import pytest

from oddslip import evaluate, rank
from oddslip.core.panel import Panel
from oddslip.errors import InvalidInput
from oddslip.sources import open_source
from oddslip.sources.arrays import BEHIND, ArraySource

SCORES = np.random.default_rng(0).random((50, 6)).astype(np.float32)


@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks_are_views(monkeypatch, order):
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 7 * 24)
    scores = np.asarray(SCORES, order=order)
    blocks = list(open_source(scores).blocks())
    assert [len(block) for block in blocks] == [7] * 7 + [1]
    assert all(np.shares_memory(block.scores, scores) for block in blocks)


def test_a_wide_row_is_a_block_of_its_own(monkeypatch):
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 1)
    assert [len(block) for block in open_source(SCORES).blocks()] == [1] * 50


def test_a_panel_or_source_is_passed_alone():
    panel = Panel(SCORES, SCORES > 0.5)
    source = open_source(panel)
    assert open_source(source) is source
    for extra in (
        {"labels": SCORES > 0.5},
        {"kind": "margin"},
        {"label_names": "abcdef"},
        {"row_ids": range(50)},
    ):
        for brought in (panel, source):
            with pytest.raises(InvalidInput, match="brings its own"):
                open_source(brought, **extra)


def test_row_ids_go_with_their_rows(monkeypatch):
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 5 * 24)
    ids = [f"u{row}" for row in range(50)]
    source = open_source(SCORES, row_ids=ids)
    assert source.row_ids().tolist() == ids
    assert [i for block in source.blocks() for i in block.row_ids] == ids


def test_labels_are_needed_to_ask_for_positives():
    with pytest.raises(InvalidInput, match="labels are needed"):
        open_source(SCORES).positives()


@pytest.mark.parametrize("rows", [slice(None), slice(1000, 9000), slice(None, None, 2)])
def test_pages_given_back_are_read_again(tmp_path, monkeypatch, rows):
    # Large enough that pages are given back while the walk goes on.
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 16 * 1024)
    scores = np.random.default_rng(0).random((10_000, 32))
    assert scores.nbytes > 2 * BEHIND * 16 * 1024
    np.save(tmp_path / "s.npy", scores)
    mapped = np.load(tmp_path / "s.npy", mmap_mode="r")[rows]
    source = open_source(mapped)
    blocks = list(source.blocks())
    assert np.array_equal(np.concatenate([block.scores for block in blocks]), scores[rows])
    assert np.array_equal(np.concatenate([b.scores for b in source.blocks()]), scores[rows])


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_cells_written_to_a_map_are_never_dropped(tmp_path, mode):
    np.save(tmp_path / "s.npy", SCORES)
    mapped = np.load(tmp_path / "s.npy", mmap_mode=mode)
    mapped[:] = 0.25
    list(open_source(mapped).blocks())
    assert (mapped == 0.25).all()


@pytest.mark.parametrize("dtype", [">f4", ">f8", "<f4", "<f8"])
def test_cells_keep_their_width_in_any_byte_order(dtype):
    source = open_source(SCORES.astype(dtype), (SCORES > 0.5).astype(">i2"))
    assert source.dtype == np.dtype(dtype).newbyteorder("=")
    assert np.array_equal(next(source.blocks()).scores, SCORES)
    assert source.positives().indices.tolist() == np.nonzero(SCORES > 0.5)[1].tolist()


def test_a_read_only_array_is_fine():
    scores = SCORES.copy()
    scores.flags.writeable = False
    source = ArraySource(Panel(scores))
    assert all(len(block.checked().keys()) for block in source.blocks())


@pytest.mark.parametrize("shape", [(), (3,)])
def test_label_files_that_are_no_tables_are_refused_also_in_a_list(tmp_path, shape):
    path = tmp_path / "y.npy"
    np.save(path, np.ones(shape))
    for labels in (path, [path, path]):
        with pytest.raises(InvalidInput, match="labels must be of shape"):
            open_source(np.zeros((6, 3)), labels)


def test_a_panel_cut_from_another_is_a_panel_of_its_own():
    labels = np.random.default_rng(1).random(SCORES.shape) < 0.4
    whole, alone = Panel(SCORES, labels), Panel(SCORES[20:30], labels[20:30])
    whole.row_keys()
    part = whole.rows(20, 30)
    assert np.array_equal(rank(part, k=2), rank(alone, k=2))
    one, other = (evaluate(panel, k=2, n_replicates=20) for panel in (part, alone))
    assert one.to_dict() == other.to_dict()
    assert np.array_equal(one.row_numbers, other.row_numbers)
