import io
import zipfile

import numpy as np
import pytest
from scipy import sparse

from oddslip.core.panel import FileRows
from oddslip.core.sparse import read_array
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io import inputs
from oddslip.io.arrays import read_arrays, read_npy, read_npz
from oddslip.io.inputs import FileArray
from oddslip.sources import open_source

SCORES = np.random.default_rng(0).random((9, 4)).astype(np.float32)


def refused(path, **options):
    with pytest.raises(UnreadableFile) as caught:
        open_source(path, **options)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("save", [np.save, np.savez])
def test_a_file_is_not_read_before_its_cells_are_used(tmp_path, save):
    path = tmp_path / f"s.{'npy' if save is np.save else 'npz'}"
    save(path, SCORES)
    source = open_source(path)
    assert isinstance(source.panel.scores, FileArray)
    (block,) = source.blocks()
    assert isinstance(block._scores, FileRows)
    assert np.array_equal(block.scores, SCORES)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8", "|i1", ">i8", "|b1"])
@pytest.mark.parametrize("shape", [(17, 5), (17,), (4, 3, 2), (), (0, 3)])
def test_rows_of_a_file_are_those_of_the_array(tmp_path, shape, dtype, order):
    cells = np.asarray(np.random.default_rng(1).integers(0, 2, shape)).astype(dtype, order=order)
    np.save(tmp_path / "a.npy", cells)
    array = read_npy(tmp_path / "a.npy")
    assert (array.shape, array.ndim, array.size) == (cells.shape, cells.ndim, cells.size)
    assert array.dtype.isnative
    assert np.asarray(array).tolist() == cells.tolist()
    assert np.asarray(array, np.float64).dtype == np.float64
    if not shape or not shape[0]:
        return
    for part in (
        slice(1, 3),
        slice(0, 0),
        slice(2, None),
        np.array([3, 0, 1, 1]),
        np.array([], int),
    ):
        assert array[part].tolist() == cells[part].tolist()
        assert array[part].dtype == array.dtype


def test_the_array_of_an_npz_may_lie_behind_another_member(tmp_path):
    with zipfile.ZipFile(tmp_path / "s.npz", "w") as archive:
        archive.writestr("about.txt", "odd" * 37)
        np.save(tmp_path / "s.npy", np.asfortranarray(SCORES))
        archive.write(tmp_path / "s.npy", "scores.npy")
    assert np.array_equal(open_source(tmp_path / "s.npz").panel.scores, SCORES)


def test_an_npz_must_hold_one_array(tmp_path):
    np.savez(tmp_path / "s.npz", p=SCORES, q=SCORES)
    assert "exactly one array, got 2 (p, q)" in refused(tmp_path / "s.npz")
    with zipfile.ZipFile(tmp_path / "s.npz", "w") as archive:
        archive.writestr("about.txt", "odd")
    assert "got 0" in refused(tmp_path / "s.npz")


@pytest.mark.parametrize("name", ["s.npy", "s.npz", "packed.npz"])
def test_python_objects_are_never_loaded(tmp_path, name):
    save = {"s.npy": np.save, "s.npz": np.savez, "packed.npz": np.savez_compressed}[name]
    save(tmp_path / name, np.array([[{}, []]], dtype=object))
    assert "Python objects, which are never loaded" in refused(tmp_path / name)


@pytest.mark.parametrize("name", ["s.npy", "s.npz", "packed.npz"])
def test_a_file_cut_short_anywhere_is_refused_in_one_line(tmp_path, name):
    save = {"s.npy": np.save, "s.npz": np.savez, "packed.npz": np.savez_compressed}[name]
    save(tmp_path / name, SCORES)
    whole = (tmp_path / name).read_bytes()
    for size in range(0, len(whole), 7):
        (tmp_path / name).write_bytes(whole[:size])
        refused(tmp_path / name)


def test_damaged_cells_of_a_packed_npz_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "s.npz", np.random.default_rng(0).random((200, 9)))
    whole = bytearray((tmp_path / "s.npz").read_bytes())
    for at in range(60, len(whole) - 200, 501):
        damaged = whole.copy()
        damaged[at : at + 9] = b"\xff" * 9
        (tmp_path / "s.npz").write_bytes(damaged)
        refused(tmp_path / "s.npz")


@pytest.mark.parametrize("place", [200, -200])
def test_damaged_cells_of_a_stored_npz_are_refused(tmp_path, place):
    path = tmp_path / "s.npz"
    np.savez(path, scores=np.linspace(0, 1, 3000).reshape(1000, 3))
    raw = bytearray(path.read_bytes())
    raw[place if place > 0 else raw.index(b"PK\x01\x02") + place] ^= 1
    path.write_bytes(raw)
    with pytest.raises(UnreadableFile, match="CRC"):
        read_npz(path)


def claim(cells, shape, descr="<f8"):
    """An .npy file with these cells and a header that claims another shape."""
    file = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + cells.tobytes()


def packed(path, raw, method, name="scores.npy", beside=()):
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, raw)
        for other in beside:
            archive.writestr(other, raw)
    return path


@pytest.mark.parametrize("shape", [(10**9, 10**9), (2**62, 4), (4, 6), (-1, 3), (10**30, 1)])
@pytest.mark.parametrize("name", ["s.npy", "stored.npz", "packed.npz", "sparse.npz"])
def test_a_header_that_claims_other_cells_than_there_are_is_refused(tmp_path, name, shape):
    raw = claim(np.zeros((4, 3)), shape)
    path = tmp_path / name
    method = zipfile.ZIP_STORED if name == "stored.npz" else zipfile.ZIP_DEFLATED
    if name == "s.npy":
        path.write_bytes(raw)
        read = read_npy
    elif name == "sparse.npz":
        packed(path, raw, method, "indices.npy")
        read = read_array
    else:
        packed(path, raw, method)
        read = read_npz
    with pytest.raises(UnreadableFile, match="cut short or not a NumPy file"):
        read(path)


def test_an_array_never_reaches_into_the_next_member(tmp_path):
    raw = claim(np.zeros((4, 3)), (8, 3))
    path = packed(tmp_path / "s.npz", raw, zipfile.ZIP_STORED, beside=["notes.txt"])
    with pytest.raises(UnreadableFile, match="claims"):
        read_npz(path)


def test_a_bomb_is_refused_before_it_unpacks(tmp_path, monkeypatch):
    cells = np.zeros((1000, 1000))
    path = packed(tmp_path / "s.npz", claim(cells, cells.shape), zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 20_000
    assert read_npz(path).shape == cells.shape
    monkeypatch.setattr(inputs, "free_memory", lambda: 10**6)
    monkeypatch.setattr(zipfile.ZipFile, "open", None)  # nothing is unpacked
    with pytest.raises(UnreadableFile, match="must fit into memory"):
        read_npz(path)
    with pytest.raises(UnreadableFile, match="must fit into memory"):
        read_arrays(path)


@pytest.mark.parametrize("header", ["(" * 9000, "-" * 9000, "{" * 9000, "[" * 9000 + "]" * 9000])
def test_a_header_nested_too_deeply_is_refused(tmp_path, header):
    text = header.encode() + b"\n"
    raw = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    (tmp_path / "s.npy").write_bytes(raw)
    packed(tmp_path / "s.npz", raw, zipfile.ZIP_STORED)
    for read, name in ((read_npy, "s.npy"), (read_npz, "s.npz")):
        with pytest.raises(UnreadableFile, match=r"NumPy file|not a plain numeric array"):
            read(tmp_path / name)


def test_foreign_and_missing_files_are_refused(tmp_path):
    for name in ("text.npy", "text.npz"):
        (tmp_path / name).write_text("no array in here")
        refused(tmp_path / name)
        assert "does not exist" in refused(tmp_path / name.replace("text", "none"))
    (tmp_path / "s.txt").write_text("a,b")
    assert "must end in .npy, .npz, .csv or .parquet, got '.txt'" in refused(tmp_path / "s.txt")
    assert "does not exist" in refused(tmp_path / "none")


def test_an_archive_under_the_name_of_an_array_is_refused(tmp_path):
    with (tmp_path / "s.npy").open("wb") as file:
        np.savez(file, SCORES)
    assert "Rename it to .npz" in refused(tmp_path / "s.npy")
    (tmp_path / "s.npy").write_bytes((tmp_path / "s.npy").read_bytes()[:60])
    refused(tmp_path / "s.npy")


def test_scores_must_be_a_table(tmp_path):
    np.save(tmp_path / "s.npy", SCORES.ravel())
    with pytest.raises(InvalidInput, match=r"got shape \(36,\)"):
        open_source(tmp_path / "s.npy")


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
@pytest.mark.parametrize("compressed", [True, False])
def test_sparse_labels_may_be_saved_by_scipy(tmp_path, form, compressed):
    truths = SCORES > 0.6
    sparse.save_npz(tmp_path / "y.npz", form(truths.astype(np.int8)), compressed=compressed)
    found = open_source(SCORES, tmp_path / "y.npz").positives()
    assert found.indices.tolist() == np.nonzero(truths)[1].tolist()
    assert found.counts.tolist() == truths.sum(axis=1).tolist()


def test_sparse_labels_that_lack_a_part_are_refused(tmp_path):
    np.savez(tmp_path / "y.npz", indices=np.arange(3))
    with pytest.raises(UnreadableFile, match=r"y\.npz"):
        open_source(SCORES, tmp_path / "y.npz")
    np.savez(tmp_path / "y.npz", indices=np.array([{}]), format=np.array("csr"))
    with pytest.raises(UnreadableFile, match=r"y\.npz"):
        open_source(SCORES, tmp_path / "y.npz")


def test_a_sparse_label_that_is_not_0_or_1_is_named(tmp_path):
    sparse.save_npz(tmp_path / "y.npz", sparse.csr_matrix([[0, 1], [0, 3]]))
    with pytest.raises(InvalidInput, match="got 3 at row 1, label '1'"):
        open_source(SCORES[:2, :2], tmp_path / "y.npz")


def test_dense_labels_of_one_dimension_are_refused(tmp_path):
    np.savez(tmp_path / "y.npz", np.zeros(9))
    with pytest.raises(UnreadableFile, match=r"got shape \(9,\)"):
        open_source(SCORES, tmp_path / "y.npz")
