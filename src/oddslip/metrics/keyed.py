"""Metrics at K as sums: what is left of rows that have no order, or are too many to keep."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.core.panel import Panel
from oddslip.metrics.at_k import Column, Denominator, Rows, Ties, metric_values
from oddslip.metrics.bootstrap import KeyedSums, Resampled
from oddslip.metrics.ranking import RankingTally

Floats = NDArray[np.float64]


class MetricTally(Resampled):
    """Ranks rows and adds up their metrics: no number of a row is kept.

    The columns summed are those of `Column`, and one more: rows, or their weight, or all rows
    where those without a true label count too.

    Parameters
    ----------
    k, n_labels : int
    propensities : ndarray of shape (n_labels,)
    ties, denominator, rows
        As in `oddslip.evaluate`.
    n_replicates, seed : int
        Of the bootstrap, which needs row ids.
    """

    JOINED: ClassVar = {"n_rows": "add", "n_evaluated": "add", "n_tied": "add", "bounds": "add"}

    def __init__(
        self,
        k: int,
        n_labels: int,
        propensities: Floats,
        *,
        ties: Ties = "stable",
        denominator: Denominator = "min",
        rows: Rows = "with_positives",
        n_replicates: int = 0,
        seed: int = 0,
    ) -> None:
        self.k, self.n_labels, self.propensities = k, n_labels, propensities
        self.ties, self.denominator, self.rows = ties, denominator, rows
        self.n_replicates, self.seed = n_replicates, seed
        self.n_rows = self.n_evaluated = self.n_tied = 0
        self.bounds = np.zeros(2)  # sums of average precision, ties at their worst and best
        self.kept = KeyedSums(len(Column) + 1, n_replicates, seed)
        self.blocks_apart = max(1, self.kept.draws.nbytes >> 20)

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        names = ("k", "n_labels", "propensities", "ties", "denominator", "rows", "n_replicates",
                 "seed")  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def add(self, panel: Panel) -> None:
        """Rank one block and add it up."""
        ranked = RankingTally(self.k, self.n_labels)
        ranked.add(panel)
        rankings = ranked.result()
        chosen = rankings.rows - panel.first_row

        def values_with(ties: Ties) -> Floats:
            return metric_values(
                rankings, ties=ties, denominator=self.denominator,
                propensities_given=self.propensities,
            )  # fmt: skip

        values = np.column_stack([values_with(self.ties), np.ones(chosen.size)])
        worst, best = (values_with(ties)[:, Column.MAP] for ties in ("worst", "best"))
        if panel.sample_weight is not None:
            times = panel.sample_weight.times[chosen]
            values *= times[:, None]
            worst, best = worst * times, best * times
        self.n_rows += panel.n_rows
        self.n_evaluated += chosen.size
        self.n_tied += int(rankings.decided_by_ties.sum())
        self.bounds += worst.sum(), best.sum()
        if self.rows == "all":
            values, some = np.zeros((panel.n_rows, values.shape[1])), values
            values[chosen] = some
            values[:, -1] = 1.0
            chosen = np.arange(panel.n_rows)
        self.kept.take(values, panel.row_keys()[chosen] if self.n_replicates else None)

    def result(self) -> Self:
        """The sums."""
        return self
