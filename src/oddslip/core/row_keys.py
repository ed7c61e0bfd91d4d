"""Row keys: the hash of a row's id, or of its number where it has no id.

A row's key decides its fold, its place in samples and its bootstrap weights. So these are the same
however rows are cut, sorted, or spread over threads and machines.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oddslip.core.types import Array, Bools
from oddslip.errors import InvalidInput

Keys = NDArray[np.uint64]

FOLDS, SAMPLES = 1, 2  # salts, so that folds and samples are independent


def hash_ids(ids: Array) -> Keys:
    """Keys of rows by their ids. Whole numbers hash by value, everything else as text.

    Examples
    --------
    >>> hash_ids(np.array([7, 8], np.int32))[0] == hash_ids(np.array([7]))[0]
    np.True_
    """
    from oddslip.kernels.resampling import hash_numbers, hash_texts

    keys = np.empty(ids.size, np.uint64)
    if ids.dtype.kind in "biu":
        wide = np.uint64 if ids.dtype.kind == "u" else np.int64
        hash_numbers(np.ascontiguousarray(ids, wide).view(np.uint64), 0, keys)
        return keys
    texts = [str(each).encode("utf-8", "surrogatepass") for each in ids.tolist()]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    hash_texts(offsets, np.frombuffer(b"".join(texts) or b"\0", np.uint8), keys)
    return keys


def hash_row_numbers(first: int, n_rows: int) -> Keys:
    """Keys of rows without ids: those of ids 0, 1, 2, ...

    Examples
    --------
    >>> bool((hash_row_numbers(5, 3) == hash_ids(np.arange(5, 8))).all())
    True
    """
    return hash_ids(np.arange(first, first + n_rows))


def hash_with_salt(keys: Keys, *salt: int) -> Keys:
    """Hashes of keys and some numbers."""
    from oddslip.kernels.resampling import hash_numbers

    for number in salt:
        hashes = np.empty_like(keys)
        hash_numbers(keys, number % 2**64, hashes)
        keys = hashes
    return keys


def sample_keys(keys: Keys, share: float, *, seed: int) -> Bools:
    """Which rows belong to a sample of about this share."""
    if share >= 1:
        return np.ones(keys.size, np.bool_)
    return np.asarray(hash_with_salt(keys, SAMPLES, seed) < np.uint64(share * 2.0**64))


def need_ids(has_ids: bool, what: str) -> None:
    """Reject rows without ids and without order."""
    if not has_ids:
        raise InvalidInput(
            f"{what} by keys needs row ids, got none. Pass row_ids=..., or row_id= of a table."
        )
