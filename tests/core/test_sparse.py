"""Sparse matrices from anywhere: good ones say what they said, broken ones are refused in a line.

Broken ones once ended the process, so they are tried in a child.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from oddslip.adapters.features import as_features, read_features
from oddslip.core.labels import labels_from_sparse
from oddslip.core.sparse import ascends, read_array
from oddslip.errors import InvalidInput, UnreadableFile

ATTACKS = Path(__file__).parents[1] / "attacks"
sys.path.insert(0, str(ATTACKS))

from isolation import run_cases  # noqa: E402
from sparse_matrices import CASES, DENSE, N, good  # noqa: E402

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
USES = sorted({(use, where) for use, where, _ in CASES})


@pytest.mark.parametrize(("use", "where"), USES, ids=str)
def test_a_broken_matrix_is_refused_in_one_line_and_nothing_crashes(use, where):
    pytest.importorskip("lightgbm")
    cases = [case for case in CASES if case[:2] == [use, where]]
    outcomes = run_cases(ATTACKS / "sparse_matrices.py", cases)
    let_through = {
        case[2]: outcome
        for case, outcome in zip(cases, outcomes, strict=True)
        if not outcome.startswith("refused ")
    }
    assert not let_through


def cells_of(labels):
    cells = np.zeros(labels.shape)
    block = labels.positives(0, labels.shape[0])
    cells[np.repeat(np.arange(labels.shape[0]), block.counts), block.indices] = 1
    return cells


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array], ids=["matrix", "array"])
def test_labels_of_every_format_are_the_cells_they_store(kind, form):
    assert np.array_equal(cells_of(labels_from_sparse(form(DENSE).asformat(kind))), DENSE)


@pytest.mark.parametrize("kind", FORMATS)
def test_features_of_every_format_are_the_cells_they_store(kind):
    assert np.array_equal(as_features(good(kind)).toarray(), DENSE)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_files_of_every_format_are_read_as_scipy_wrote_them(kind, tmp_path):
    sp.save_npz(tmp_path / "cells.npz", good(kind))
    assert np.array_equal(cells_of(labels_from_sparse(read_array(tmp_path / "cells.npz"))), DENSE)
    assert np.array_equal(read_features(tmp_path / "cells.npz").toarray(), DENSE)


def test_a_file_of_the_other_byte_order_is_read(tmp_path):
    matrix = good("csr")
    arrays = {name: getattr(matrix, name) for name in ("indptr", "indices", "data")}
    swapped = {name: a.astype(a.dtype.newbyteorder(">")) for name, a in arrays.items()}
    np.savez(tmp_path / "swapped.npz", format=b"csr", shape=matrix.shape, **swapped)
    assert np.array_equal(read_array(tmp_path / "swapped.npz").toarray(), DENSE)


def test_indices_of_a_row_in_any_order_are_the_same_labels():
    matrix = sp.csr_matrix((np.ones(3), [4, 0, 2], [0, 3, 3]), (2, 5))
    block = labels_from_sparse(matrix).positives(0, 2)
    assert block.indices.tolist() == [0, 2, 4]


def test_stored_zeros_are_no_labels():
    matrix = sp.csr_matrix(([1.0, 0.0, 1.0], [0, 1, 2], [0, 2, 3]), (2, 5))
    block = labels_from_sparse(matrix).positives(0, 2)
    assert (block.indptr.tolist(), block.indices.tolist()) == ([0, 1, 2], [0, 2])


def test_a_cell_named_twice_is_refused_with_its_row_and_label():
    matrix = sp.coo_matrix((np.ones(3), ([0, 3, 3], [1, 2, 2])), (N, N))
    with pytest.raises(InvalidInput, match="got row 3, label 'c' twice"):
        labels_from_sparse(matrix, "abcdef".__getitem__)


def test_a_matrix_that_claims_to_have_nothing_twice_is_not_believed():
    matrix = sp.csr_matrix((np.ones(2), [1, 1], [0, 2]), (1, 5))
    matrix.has_canonical_format = True
    with pytest.raises(InvalidInput, match="row 0, label '1' twice"):
        labels_from_sparse(matrix)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_features_stored_twice_are_added_up_without_wrapping(kind):
    rows, columns = [0, 0, 1], [1, 1, 0]
    matrix = sp.coo_matrix((np.array([200, 100, 7], np.uint8), (rows, columns)), (2, 2))
    if kind != "coo":
        form = sp.csr_matrix if kind == "csr" else sp.csc_matrix
        first, second = (rows, columns) if kind == "csr" else (columns, rows)
        order = np.argsort(first, kind="stable")
        indptr = np.searchsorted(np.sort(first), [0, 1, 2])
        cells = np.array([200, 100, 7], np.uint8)[order]
        matrix = form((cells, np.array(second)[order], indptr), (2, 2))
    assert as_features(matrix).toarray().tolist() == [[0, 300], [7, 0]]


def test_checking_features_copies_no_cells():
    matrix = good("csr")
    checked = as_features(matrix)
    assert np.shares_memory(checked.data, matrix.data)
    assert np.shares_memory(checked.indices, matrix.indices)


def test_a_file_of_python_objects_is_refused(tmp_path):
    np.savez(
        tmp_path / "objects.npz",
        format=b"csr",
        shape=[1, 1],
        data=np.array([{}], object),
        indices=[0],
        indptr=[0, 1],
    )
    with pytest.raises(UnreadableFile, match="never loaded"):
        read_array(tmp_path / "objects.npz")


@pytest.mark.parametrize("missing", ["format", "shape", "data", "indices", "indptr"])
def test_a_file_without_one_of_its_arrays_is_refused(missing, tmp_path):
    matrix = good("csr")
    arrays = {name: getattr(matrix, name) for name in ("indptr", "indices", "data")}
    arrays |= {"format": np.array(b"csr"), "shape": np.array(matrix.shape)}
    del arrays[missing]
    np.savez(tmp_path / "part.npz", **arrays)
    with pytest.raises(UnreadableFile):
        read_array(tmp_path / "part.npz")


@pytest.mark.parametrize("kind", ["csc", "coo", "dia"])
def test_a_few_bytes_that_claim_billions_of_rows_are_refused_before_memory_is_taken(kind, tmp_path):
    matrix = good(kind)
    names = {"csc": ("indptr", "indices"), "coo": ("row", "col"), "dia": ("offsets",)}[kind]
    arrays = {name: getattr(matrix, name) for name in (*names, "data")}
    arrays |= {"format": np.array(kind.encode()), "shape": np.array([2**31 - 1, matrix.shape[1]])}
    np.savez(tmp_path / "claims.npz", **arrays)
    with pytest.raises(UnreadableFile, match="rows more than cells"):
        read_array(tmp_path / "claims.npz")


def test_rising_within_rows_is_all_that_counts():
    assert ascends(np.array([0, 2, 2, 4]), np.array([1, 5, 0, 3]))
    assert ascends(np.array([0, 0, 0]), np.array([], np.int32))
    assert not ascends(np.array([0, 2]), np.array([3, 3]))
    assert not ascends(np.array([0, 1, 3]), np.array([0, 4, 2]))


def test_lists_for_training_may_not_ask_for_memory_without_end():
    from oddslip.learners.groups import LabelColumns

    with pytest.raises(InvalidInput, match="must be below 16777216, got 1000000000"):
        LabelColumns([[0], [10**9], [0, 1]])
