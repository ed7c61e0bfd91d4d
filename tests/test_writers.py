import numpy as np
import pyarrow.parquet as pq
import pytest

from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.files import atomic_write
from oddslip.sources import open_source
from oddslip.writers import write_ranking, write_scores

SCORES = np.random.default_rng(0).random((23, 5)).astype(np.float32)
RANKING = np.argsort(-SCORES, axis=1)[:, :3].astype(np.int32)
NAMES = ["a", "b", "c", "d", "e"]
ENDINGS = pytest.mark.parametrize("ending", ["npy", "parquet"])


def cut(*arrays, step=4, order=1):
    starts = list(range(0, len(arrays[0]), step))[::order]
    return [(start, *(array[start : start + step] for array in arrays)) for start in starts]


def shape(n_rows=23, n_labels=5, dtype=np.float32):
    return {"n_rows": n_rows, "n_labels": n_labels, "dtype": dtype}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@ENDINGS
def test_what_is_written_is_read_back(tmp_path, ending, dtype, order):
    path = tmp_path / f"s.{ending}"
    cells = SCORES.astype(dtype)
    write_scores(path, cut(cells, order=order), **shape(dtype=dtype))
    source = open_source(path)
    scores_read = np.concatenate([panel.scores for panel in source.blocks()])
    assert scores_read.dtype == dtype
    assert scores_read.tobytes() == cells.tobytes()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_an_npy_file_is_one_numpy_wrote(tmp_path):
    write_scores(tmp_path / "s.npy", cut(np.asfortranarray(SCORES)), **shape())
    assert np.array_equal(np.load(tmp_path / "s.npy"), SCORES)


@pytest.mark.parametrize("ids", [list(range(40, 63)), [f"u{i}" for i in range(23)]])
def test_names_and_ids_survive_in_parquet(tmp_path, ids):
    path = tmp_path / "s.parquet"
    write_scores(path, cut(SCORES, order=-1), **shape(), label_names=NAMES, row_ids=np.array(ids))
    source = open_source(path)
    assert source.label_names == tuple(NAMES)
    assert source.row_ids().tolist() == ids
    with pytest.raises(InvalidInput, match="Leave them out"):
        open_source(path, label_names=NAMES[::-1])


def test_a_ranking_is_written_with_names_and_scores(tmp_path):
    best = np.take_along_axis(SCORES, RANKING, axis=1)
    write_ranking(
        tmp_path / "r.parquet",
        cut(RANKING, best, order=-1),
        n_rows=23,
        k=3,
        scores_dtype=np.float32,
        label_names=NAMES,
    )
    table = pq.read_table(tmp_path / "r.parquet").to_pydict()
    assert table["row"] == list(range(23))
    assert table["labels"] == [[NAMES[label] for label in row] for row in RANKING]
    assert np.array_equal(np.float32(table["scores"]), best)


def test_a_ranking_without_names_holds_indices(tmp_path):
    ids = np.array([f"u{row}" for row in range(23)])
    write_ranking(tmp_path / "r.parquet", cut(RANKING), n_rows=23, k=3, row_ids=ids)
    table = pq.read_table(tmp_path / "r.parquet").to_pydict()
    assert table == {"row": ids.tolist(), "labels": RANKING.tolist()}
    write_ranking(tmp_path / "r.npy", cut(RANKING, order=-1), n_rows=23, k=3)
    assert np.array_equal(np.load(tmp_path / "r.npy"), RANKING)


def test_an_npy_ranking_has_no_place_for_scores(tmp_path):
    with pytest.raises(InvalidInput, match="must go to"):
        write_ranking(tmp_path / "r.npy", [], n_rows=1, k=1, scores_dtype=np.float32)


@pytest.mark.parametrize("stop", [RuntimeError("no"), KeyboardInterrupt()])
@pytest.mark.parametrize("before", [None, b"old"])
@ENDINGS
def test_a_write_that_breaks_off_leaves_what_was_there(tmp_path, ending, before, stop):
    path = tmp_path / f"s.{ending}"
    if before is not None:
        path.write_bytes(before)

    def broken():
        yield from cut(SCORES)[:3]
        raise stop

    with pytest.raises(type(stop)):
        write_scores(path, broken(), **shape())
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert files == ({} if before is None else {path.name: before})


@ENDINGS
def test_an_old_file_is_replaced_once_all_went_well(tmp_path, ending):
    path = tmp_path / f"s.{ending}"
    path.write_bytes(b"old")

    def watched():
        for block in cut(SCORES):
            assert path.read_bytes() == b"old"
            yield block

    write_scores(path, watched(), **shape())
    assert open_source(path).n_rows == 23


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (cut(SCORES)[1:], "row 0 not at all"),
        (cut(SCORES)[:-1], "row 20 not at all"),
        ([*cut(SCORES), cut(SCORES)[2]], "row 8 twice"),
        ([(20, SCORES[:4])], "at row 20"),
        ([(-1, SCORES[:4])], "at row -1"),
        ([(0, SCORES[:, :4])], "must fit"),
    ],
)
@ENDINGS
def test_every_row_must_come_once(tmp_path, ending, blocks, message):
    with pytest.raises(InvalidInput, match=message):
        write_scores(tmp_path / f"s.{ending}", blocks, **shape())
    assert list(tmp_path.iterdir()) == []


def test_paths_that_can_not_be_written_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="must end in"):
        write_scores(tmp_path / "s.xls", [], **shape())
    with pytest.raises(InvalidInput, match="existing folder"):
        write_scores(tmp_path / "none" / "s.npy", [], **shape())
    (tmp_path / "s.npy").mkdir()
    with pytest.raises(InvalidInput, match="folder"):
        write_scores(tmp_path / "s.npy", [], **shape())
    with pytest.raises(UnreadableFile, match=r"can ?not be written"), atomic_write("/proc/none"):
        pass


def test_row_ids_must_match_the_rows(tmp_path):
    with pytest.raises(InvalidInput, match="one id per row, n_rows=23, got 2"):
        write_scores(tmp_path / "s.parquet", [], **shape(), row_ids=[1, 2])


def test_the_unfinished_file_keeps_the_ending(tmp_path):
    with atomic_write(tmp_path / "a.npz") as unfinished:
        assert unfinished.suffix == ".npz"
        assert unfinished.parent == tmp_path
        np.savez(unfinished, np.arange(3))
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]
