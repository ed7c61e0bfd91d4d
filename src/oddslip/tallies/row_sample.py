"""Samples of rows that their keys choose: the same rows on every engine, in any order."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from oddslip.core.panel import Panel
from oddslip.core.row_ids import SAMPLES, Keys, hash_ids, hash_with_salt, sample_keys
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Array, Ints
from oddslip.errors import InvalidInput
from oddslip.sources.views import take_rows

HASH_SEED = 20240229  # any number does


class RowSample(MergeableTally):
    """Scores of the rows with the smallest salted keys, and those of their twin.

    Parameters
    ----------
    n_rows : int
        Rows to sample; all rows where there are fewer.
    share : float
        Of all rows that are looked at; see `RowSample.share_of`.
    seed : int

    Examples
    --------
    >>> sample = RowSample(2, 1.0, seed=1)
    >>> sample.add(Panel([[0.1], [0.2], [0.3]]))
    >>> sample.result()[0].shape
    (2, 1)
    """

    JOINED: ClassVar = dict.fromkeys(("_hashes", "_scores", "_twins"), "append")

    def __init__(self, n_rows: int, share: float, seed: int) -> None:
        self.n_rows, self.share, self.seed = n_rows, share, seed
        self._hashes: list[Keys] = []
        self._scores: list[Array] = []
        self._twins: list[Array] = []

    @staticmethod
    def share_of(n_rows: int, n_all: int) -> float:
        """A share of all rows that holds the sample for certain, and little more."""
        return float(n_rows + 10 * np.sqrt(n_rows) + 20) / n_all

    def add(self, panel: Panel) -> None:
        """Take the rows of one block that may belong to the sample."""
        keys = panel.row_keys()
        rows = np.flatnonzero(sample_keys(keys, self.share, seed=self.seed))
        self._hashes.append(hash_with_salt(keys[rows], SAMPLES, self.seed))
        scores = _scores_of(panel, rows)
        self._scores.append(scores)
        self._twins.append(scores if panel.twin is None else _scores_of(panel.twin, rows))

    def result(self) -> tuple[Array, Array]:
        """Scores of the rows and of their twin, by salted key; NaN where a cell is absent."""
        hashes, scores, twins = map(np.concatenate, (self._hashes, self._scores, self._twins))
        if not hashes.size:
            raise InvalidInput("a sample of the rows must hold one, got none. Pass another seed.")
        order = np.argsort(hashes, kind="stable")[: self.n_rows]
        return scores[order], twins[order]


def _scores_of(panel: Panel, rows: Ints) -> Array:
    part = take_rows(panel.checked(), rows)
    present = part.present()
    if present is None:
        return part.scores
    return np.where(present, part.scores, part.dtype.type(np.nan))


class HashSample(MergeableTally):
    """Hashes of a share of the rows: the same rows in every panel that has them.

    Parameters
    ----------
    share : float
        Of all hashes.
    seed : int
    what : {"ids", "text", "cells"}
        Hash ids, or ids as text, or scores and true labels. Of the last, only rows that no other
        row of the panel equals count: coarse models give many rows the same scores.

    Examples
    --------
    >>> sample = HashSample(1.0, seed=1, what="cells")
    >>> sample.add(Panel([[0.1], [0.2], [0.2]], [[1], [0], [0]]))
    >>> sample.result().size
    1
    """

    JOINED: ClassVar = {"_hashes": "append"}

    def __init__(self, share: float, seed: int, what: Literal["ids", "text", "cells"]) -> None:
        self.share, self.seed, self.what = share, seed, what
        self._hashes: list[Keys] = []

    def add(self, panel: Panel) -> None:
        """Hash the rows of one block."""
        if self.what == "cells":
            hashes = hash_cells(panel)
        elif self.what == "text" and panel.row_ids is not None:
            hashes = hash_ids(panel.row_ids.astype(str))
        else:
            hashes = panel.row_keys()
        self._hashes.append(hashes[sample_keys(hashes, self.share, seed=self.seed)])

    def result(self) -> Keys:
        """The hashes."""
        hashes = np.concatenate([np.empty(0, np.uint64), *self._hashes])
        if self.what != "cells":
            return hashes
        values, counts = np.unique(hashes, return_counts=True)
        return np.asarray(values[counts == 1])


def hash_cells(panel: Panel) -> Keys:
    """A hash of the scores and true labels of each row."""
    rng = np.random.default_rng(HASH_SEED)
    factors = rng.integers(1, 2**63, size=(2, panel.n_labels), dtype=np.uint64) * 2 + 1
    hashes = panel.keys().astype(np.uint64) @ factors[0]
    positives = panel.positives()
    rows = np.repeat(np.arange(panel.n_rows), positives.counts)
    np.add.at(hashes, rows, factors[1][positives.indices])
    return np.asarray(hashes)
