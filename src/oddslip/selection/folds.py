"""Folds: the key of a row decides its fold, in each repeat independently."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.core.panel import Panel
from oddslip.core.row_ids import FOLDS, Keys, hash_with_salt
from oddslip.errors import InvalidInput
from oddslip.sources import Source

FoldNumbers = NDArray[np.int32]


class FoldAssignment(Protocol):
    """Decides the fold of every row."""

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        ...

    def of(self, panel: Panel) -> FoldNumbers:
        """The fold of each row of a block."""
        ...


class HashFolds(NamedTuple):
    """Folds decided by row keys: intervals of the salted key.

    ``cuts`` are the n_folds - 1 thresholds between them.
    """

    n_folds: int
    seed: int
    repeat: int
    cuts: NDArray[np.uint64]

    def of(self, panel: Panel) -> FoldNumbers:
        """The fold of each row of a panel."""
        return self.of_keys(panel.row_keys())

    def of_keys(self, keys: Keys) -> FoldNumbers:
        """The fold of each key."""
        hashes = hash_with_salt(keys, FOLDS, self.seed, self.repeat)
        return np.searchsorted(self.cuts, hashes, side="right").astype(np.int32)


def assign_folds(
    source: Source, n_folds: Any, *, seed: Any = DEFAULT_SEED, n_repeats: int = 1
) -> list[HashFolds]:
    """Folds of all rows, one assignment per repeat.

    Up to `MAX_SMALL_ROWS` rows the cuts are quantiles of the salted keys, so that folds differ by
    at most one id. Above, they are equal parts of all hashes, and the rows need not be known.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> (folds,) = assign_folds(open_source(np.full((7, 2), 0.5)), 3)
    >>> np.bincount(folds.of_keys(open_source(np.full((7, 2), 0.5)).row_keys())).tolist()
    [3, 2, 2]
    """
    _check_whole("n_folds", n_folds, 2)
    _check_whole("seed", seed, 0)
    keys = source.small_keys()
    if keys is not None:
        keys = np.unique(keys)
        if n_folds > keys.size:
            rows = f"n_rows={keys.size}" if keys.size == source.n_rows else f"{keys.size} row ids"
            raise InvalidInput(
                f"n_folds must be at most {rows}, got n_folds={n_folds}. Pass more rows."
            )
    return [
        HashFolds(n_folds, seed, repeat, _find_cuts(keys, n_folds, seed, repeat))
        for repeat in range(n_repeats)
    ]


def _find_cuts(keys: Keys | None, n_folds: int, seed: int, repeat: int) -> Keys:
    if keys is None:
        return np.array([2**64 * fold // n_folds for fold in range(1, n_folds)], np.uint64)
    hashes = np.sort(hash_with_salt(keys, FOLDS, seed, repeat))
    sizes = [len(part) for part in np.array_split(hashes, n_folds)]
    cuts: Keys = hashes[np.cumsum(sizes)[:-1]]
    return cuts


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInput(f"{name} must be a whole number, at least {least}, got {value!r}.")
