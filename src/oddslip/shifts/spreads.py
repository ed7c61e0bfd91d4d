"""The two tallies behind the realized shift: where cells lie, and sums of their sigmoids."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.panels import Kind, Panel
from oddslip.shifts.thresholds import saturated_key


class SpreadTally:
    """Counts of each label's log-odds in bins, its extremes, and its saturated cells.

    About 2.5 kB per label, in each thread.
    """

    def __init__(self, n_labels: int, kind: Kind) -> None:
        from oddslip.kernels.logits import MARGIN_BINS, ODDS_BINS

        self.n_labels, self.kind = n_labels, kind
        n_bins = ODDS_BINS if kind == "probability" else MARGIN_BINS
        self.counts = np.zeros((n_labels, n_bins), np.uint32)
        self.n_saturated = np.zeros(n_labels, np.int64)
        self.lowest = np.full(n_labels, np.inf)
        self.highest = np.full(n_labels, -np.inf)
        self.n_rows = 0

    def fresh(self) -> Self:
        """An empty tally for another thread."""
        return type(self)(self.n_labels, self.kind)

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        from oddslip.kernels.logits import bin_margins, bin_probabilities, count_reaching

        panel = panel.checked()
        keys = panel.keys()
        bound = saturated_key(panel.scores.dtype, panel.kind)
        count_reaching(keys, bound, self.n_saturated, np.empty(panel.n_rows, np.int64))
        scores = np.ascontiguousarray(panel.scores)
        if self.kind == "probability":
            bin_probabilities(scores, self.counts)
        else:
            bin_margins(scores, self.counts)
            np.minimum(self.lowest, scores.min(axis=0), out=self.lowest)
            np.maximum(self.highest, scores.max(axis=0), out=self.highest)
        self.n_rows += panel.n_rows

    def merge(self, other: Self) -> None:
        """Take over what another tally has seen."""
        self.counts += other.counts
        self.n_saturated += other.n_saturated
        np.minimum(self.lowest, other.lowest, out=self.lowest)
        np.maximum(self.highest, other.highest, out=self.highest)
        self.n_rows += other.n_rows

    def result(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Centres of the bins, and how far a cell of each label can lie below or above its own."""
        from oddslip.kernels import logits

        if self.kind == "probability":
            edges = np.arange(logits.ODDS_FIRST, logits.ODDS_FIRST + logits.ODDS_BINS + 1)
            edges = (edges << logits.ODDS_SHIFT).astype(np.uint32).view(np.float32)
            nat = np.log(edges.astype(np.float64))
        else:
            nat = np.linspace(-logits.REACH, logits.REACH, logits.MARGIN_BINS + 1)
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


class SigmoidTally:
    """Per label, the sums of sigmoid(F - shift), of its complement and its derivatives."""

    blocks_apart = 1

    def __init__(self, shift: NDArray[np.float64]) -> None:
        from oddslip.kernels.logits import N_SUMS

        self.shift = shift
        self.sums = np.zeros((N_SUMS, shift.size))

    def fresh(self) -> Self:
        """An empty tally for another thread."""
        return type(self)(self.shift)

    def add(self, panel: Panel) -> None:
        """Take one block of rows. A block is summed apart, which keeps rounding small."""
        from oddslip.kernels.logits import sum_odds_sigmoids, sum_sigmoids

        sums = np.zeros_like(self.sums)
        if panel.kind == "probability":
            sum_sigmoids(np.ascontiguousarray(panel.scores), np.exp(self.shift), sums)
        else:
            odds: NDArray[Any] = np.subtract(panel.scores, self.shift, order="C", dtype=np.float64)
            # Beyond this e^x leaves float64; the sigmoid has long been 0 or 1.
            np.clip(odds, -700.0, 700.0, out=odds)
            sum_odds_sigmoids(np.exp(odds, out=odds), sums)
        self.sums += sums

    def merge(self, other: Self) -> None:
        """Take over what another tally has seen."""
        self.sums += other.sums

    def result(self) -> NDArray[np.float64]:
        """The sums, one row each."""
        return self.sums
