"""Features from files: what is read is what was written, and damage is one line."""

import numpy as np
import pytest
from scipy import sparse

from oddslip.adapters.features import hash_features, read_features
from oddslip.errors import UnreadableFile


def write_sparse(path):
    X = sparse.random(60, 20, 0.3, format="csr", random_state=0)
    sparse.save_npz(path, X)
    return X


def test_a_sparse_file_and_a_dense_one_are_read_as_they_were_written(tmp_path):
    X = write_sparse(tmp_path / "sparse.npz")
    np.savez_compressed(tmp_path / "dense.npz", X.toarray())
    assert (read_features(tmp_path / "sparse.npz") != X).nnz == 0
    assert np.array_equal(read_features(tmp_path / "dense.npz"), X.toarray())


def test_a_damaged_byte_of_a_sparse_file_never_ends_in_a_fault_of_ours(tmp_path):
    path = tmp_path / "X.npz"
    write_sparse(path)
    sound, refusals = path.read_bytes(), []
    for at in range(0, len(sound), 9):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x55]) + sound[at + 1 :])
        try:
            read_features(path)
        except UnreadableFile as error:
            refusals.append(str(error))
    assert len(refusals) > len(sound) // 18
    assert not any("\n" in line for line in refusals)


@pytest.mark.parametrize("name", ["X.npy", "X.npz"])
def test_a_file_that_is_not_there_is_said_so(tmp_path, name):
    with pytest.raises(UnreadableFile, match="does not exist"):
        read_features(tmp_path / name)


def test_the_fingerprint_of_features_is_that_of_earlier_versions():
    """Checkpoints hold it: with another one, a training would start again."""
    X = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert hash_features(X).startswith("5935481f18c14eb6")
    assert hash_features(sparse.csr_matrix(X)).startswith("327b1a22e3a9f6c0")
