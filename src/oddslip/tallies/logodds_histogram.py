"""Histogram of each label's log-odds, with its extremes and its saturated cells.

The bins are the same for all panels of a kind, so histograms of two days can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from oddslip.core.panel import Kind, Panel, SparsePanel
from oddslip.core.passes import Passes
from oddslip.core.tally import MergeableTally
from oddslip.core.threads import available_threads
from oddslip.core.types import Array, Floats, Ints
from oddslip.sources import Source
from oddslip.sources.views import ColumnSource, collect_labels

# Halfway between 1 and the float32 below it; the tie goes to the even neighbour, which is 1.
SATURATED_PROBABILITY = 1 - 2.0**-25

# The sigmoid computed in float64 reaches that probability here, at 17.33, and casts to 1.0.
SATURATED_MARGIN = 25 * math.log(2)

# The sigmoid computed in float32 is 1 / (1 + e) with e = exp(-margin); from here on, at 16.64,
# the sum itself rounds to 1.
SATURATED_MARGIN_FLOAT32 = 24 * math.log(2)


def saturated_key(dtype: np.dtype[Any], kind: Kind, *, sigmoid: str = "float64") -> Any:
    """The smallest key of a saturated cell, as a scalar of the keys' type.

    ``sigmoid`` names the type in which margins become probabilities.
    """
    from oddslip.kernels.keys import keys_of

    bound = SATURATED_PROBABILITY
    if kind == "margin":
        bound = SATURATED_MARGIN if sigmoid == "float64" else SATURATED_MARGIN_FLOAT32
    least = dtype.type(bound)
    if float(least) < bound:
        least = np.nextafter(least, dtype.type(np.inf))
    return keys_of(np.full((1, 1), least, dtype), kind)[0, 0]


class LogOddsHistogram(MergeableTally):
    """Counts of each label's log-odds in bins, its extremes, and its saturated cells.

    About 2.5 kB per label, in each thread.
    """

    JOINED: ClassVar = {
        "counts": "add",
        "n_saturated": "add",
        "lowest": "min",
        "highest": "max",
        "n_rows": "add",
    }

    def __init__(self, n_labels: int, kind: Kind) -> None:
        self.n_labels, self.kind = n_labels, kind
        self.counts = np.zeros((n_labels, n_bins(kind)), np.uint32)
        self.n_saturated = np.zeros(n_labels, np.int64)
        self.lowest = np.full(n_labels, np.inf)
        self.highest = np.full(n_labels, -np.inf)
        self.n_rows = 0
        self._filled: Any = (
            None  # one score per label that fills absent cells, and how often it did
        )

    def add(self, panel: Panel) -> None:
        """Count one block of rows."""
        from oddslip.kernels.logits import bin_margins, bin_probabilities, count_reaching

        panel = panel.checked()
        if isinstance(panel, SparsePanel):
            return self._add_sparse(panel)
        keys = panel.present_keys()
        bound = saturated_key(panel.dtype, panel.kind)
        count_reaching(keys, bound, self.n_saturated, np.empty(panel.n_rows, np.int64))
        scores = np.ascontiguousarray(panel.scores)
        if panel.absent is not None:
            column_scores, before = self._filled or (None, 0)
            scores, column_scores, _ = panel.filled(column_scores)
            # Cells are counted, whatever the weight of their rows.
            self._filled = (
                column_scores,
                before + np.bincount(panel.absent.indices, minlength=self.n_labels),
            )
        if self.kind == "probability":
            bin_probabilities(scores, self.counts)
        else:
            bin_margins(scores, self.counts)
            np.minimum(self.lowest, scores.min(axis=0), out=self.lowest)
            np.maximum(self.highest, scores.max(axis=0), out=self.highest)
        self.n_rows += panel.n_rows
        return None

    def _add_sparse(self, panel: SparsePanel) -> None:
        """Count the stored cells of a sparse block, as the kernels count dense ones."""
        from oddslip.kernels import logits

        labels, cells = panel.positions.indices.astype(np.int64), panel.cells
        saturated = panel.cell_keys() >= saturated_key(panel.dtype, panel.kind)
        self.n_saturated += np.bincount(labels[saturated], minlength=self.n_labels)
        if self.kind == "probability":
            clip, one = cells.dtype.type(logits.CLIP), cells.dtype.type(1)
            odds = (np.maximum(cells, clip) / np.maximum(one - cells, clip)).astype(np.float32)
            bins = (odds.view(np.uint32) >> logits.ODDS_SHIFT).astype(np.int64) - logits.ODDS_FIRST
        else:
            at = (cells.astype(np.float64) + logits.REACH) * logits.PER_NAT
            bins = np.clip(at, 0.0, logits.MARGIN_BINS - 1.0).astype(np.int64)
            np.minimum.at(self.lowest, labels, cells)
            np.maximum.at(self.highest, labels, cells)
        np.add.at(self.counts.reshape(-1), labels * self.counts.shape[1] + bins, np.uint32(1))
        self.n_rows += panel.n_rows

    def settle(self) -> None:
        """Subtract the scores that filled absent cells."""
        from oddslip.kernels.logits import bin_margins, bin_probabilities

        if self._filled is None:
            return
        some, times = self._filled
        once = np.zeros_like(self.counts)
        (bin_probabilities if self.kind == "probability" else bin_margins)(some, once)
        self.counts -= once * times[:, None].astype(np.uint32)
        self._filled = None

    def result(self) -> tuple[Floats, Floats, Floats]:
        """Centres of the bins, and how far below or above them a cell of each label can lie."""
        self.settle()
        nat = edges_of(self.kind)
        centres = (nat[1:] + nat[:-1]) / 2
        # Odds are rounded to float32 before they are binned; allow for that.
        most = np.full(self.n_labels, np.diff(nat).max() / 2 + 1e-6)
        if self.kind == "probability":
            return centres, most, most
        return (
            centres,
            np.maximum(most, centres[0] - self.lowest),
            np.maximum(most, self.highest - centres[-1]),
        )


def n_bins(kind: Kind) -> int:
    """Number of bins per label."""
    from oddslip.kernels.logits import MARGIN_BINS, ODDS_BINS

    return int(ODDS_BINS if kind == "probability" else MARGIN_BINS)


def edges_of(kind: Kind) -> Floats:
    """Log-odds at which the bins begin and end; the outer ones are open.

    Examples
    --------
    >>> edges_of("margin")[:2].round(6)
    array([-32. , -31.9])
    """
    from oddslip.kernels import logits

    if kind == "margin":
        return np.linspace(-logits.REACH, logits.REACH, logits.MARGIN_BINS + 1)
    edges = np.arange(logits.ODDS_FIRST, logits.ODDS_FIRST + logits.ODDS_BINS + 1)
    odds: Array = (edges << logits.ODDS_SHIFT).astype(np.uint32).view(np.float32)
    return np.asarray(np.log(odds.astype(np.float64)))


def spread_parts(source: Source, most_bytes: int) -> Iterator[Ints]:
    """Yield groups of labels whose bins take at most ``most_bytes``.

    On every thread, the bins of a label take as much memory as hundreds of its cells.
    """
    step = max(1024, most_bytes // (4 * n_bins(source.kind) * available_threads(source.threads)))
    for start in range(0, source.n_labels, step):
        yield np.arange(start, min(start + step, source.n_labels))


def collect_histogram(source: Source, labels: Ints) -> Passes[LogOddsHistogram]:
    """The histogram of some labels, in one pass."""
    whole = labels.size == source.n_labels
    narrowing = None if whole else ColumnSource(source, labels).narrowing
    return collect_labels(LogOddsHistogram(labels.size, source.kind), narrowing)
