"""The metric at every list length, with intervals: how many labels to show of every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from oddslip.core.panel import Panel
from oddslip.core.results import as_frame, html_table, plain
from oddslip.core.types import Floats, JsonObject
from oddslip.metrics.at_k import METRIC_COLUMN, metric_values
from oddslip.metrics.bootstrap import BootstrapSums, BootstrapTally, percentile_interval
from oddslip.metrics.evaluation import Estimate
from oddslip.metrics.ranking import Rankings, rank_panel
from oddslip.repairs.maps import LabelMaps

LengthMetric = Literal["f1", "precision", "recall", "map", "ndcg", "hit_rate"]
METRICS = ("precision", "recall", "map", "ndcg", "hit_rate")  # in the order of the columns
N_COLUMNS = len(METRICS) + 1  # and F1


@dataclass(frozen=True, eq=False)
class LengthTable:
    """Metrics of lists of 1 to K labels, over the rows with a true label.

    Attributes
    ----------
    metrics : dict
        For each metric an `Estimate` of every length, from 1.
    n_evaluated : int
        Rows with a true label.

    Examples
    --------
    >>> LengthTable({"f1": (Estimate(0.4, 0.3, 0.5), Estimate(0.6, 0.5, 0.7))}, 10).best("f1")
    2
    """

    metrics: dict[str, tuple[Estimate, ...]]
    n_evaluated: int

    def best(self, metric: LengthMetric) -> int:
        """The length that is best for a metric; of equal ones the shortest."""
        return 1 + int(np.argmax([estimate.value for estimate in self.metrics[metric]]))

    def to_dict(self) -> JsonObject:
        """Built-in types only."""
        lengths = {
            name: [estimate.to_dict() for estimate in estimates]
            for name, estimates in self.metrics.items()
        }
        return plain({"n_evaluated": self.n_evaluated, "metrics": lengths})  # type: ignore[no-any-return]

    def to_frame(self) -> Any:
        """A pandas frame with one line per length and metric."""
        lines = [
            (k + 1, name, estimate.value, estimate.low, estimate.high)
            for name, estimates in self.metrics.items()
            for k, estimate in enumerate(estimates)
        ]
        columns = zip(*lines, strict=True)
        return as_frame(dict(zip(("k", "metric", "value", "low", "high"), columns, strict=True)))

    def _repr_html_(self) -> str:
        rows = [
            [str(k + 1), *(str(estimates[k]) for estimates in self.metrics.values())]
            for k in range(len(self.metrics["f1"]))
        ]
        return html_table(["K", *self.metrics], rows, f"{self.n_evaluated:,} rows")


class LengthTally(BootstrapTally):
    """Adds up the metrics of lists of 1 to K labels.

    Parameters
    ----------
    maps : LabelMaps or None
        None ranks raw scores.
    k_max, n_replicates, seed : int
    """

    JOINED: ClassVar = {"n_evaluated": "add"}

    def __init__(self, maps: LabelMaps | None, k_max: int, n_replicates: int, seed: int) -> None:
        self.maps, self.k_max, self.n_replicates, self.seed = maps, k_max, n_replicates, seed
        self.n_evaluated = 0
        self.sums = BootstrapSums(k_max * N_COLUMNS + 1, n_replicates, seed)
        self.blocks_apart = max(1, self.sums.draws.nbytes >> 20)

    def add(self, panel: Panel) -> None:
        """Rank one block once, and evaluate every length."""
        positives = panel.positives()
        rows = np.flatnonzero(positives.counts)
        rank = rank_panel if self.maps is None else self.maps.rank_panel
        columns = rank(panel, self.k_max)
        equal = np.ones(panel.n_labels)
        values = [
            _evaluate(Rankings.of(columns[:, : k + 1], positives, panel.n_labels), equal)
            for k in range(self.k_max)
        ]
        keys = panel.row_keys()[rows] if self.n_replicates else None
        self.n_evaluated += rows.size
        self.sums.add_rows(np.column_stack([*values, np.ones(rows.size)]), keys)

    def result(self) -> LengthTally:
        """The sums."""
        return self

    def table(self, level: float = 0.95) -> LengthTable:
        """Means with intervals."""
        with np.errstate(invalid="ignore"):
            means = self.sums.total[:-1] / self.sums.total[-1]
            draws = self.sums.draws[:, :-1] / self.sums.draws[:, -1:]
        estimates = [
            Estimate(float(mean), *percentile_interval(draws[:, at], level))
            for at, mean in enumerate(means)
        ]
        names = (*METRICS, "f1")
        by_metric = {name: tuple(estimates[at::N_COLUMNS]) for at, name in enumerate(names)}
        return LengthTable(by_metric, self.n_evaluated)


def _evaluate(rankings: Rankings, propensities: Floats) -> Floats:
    """The columns of a length: `METRICS`, and F1."""
    values = metric_values(rankings, propensities_given=propensities)
    k, n_true = rankings.columns.shape[1], np.diff(rankings.indptr)
    columns = [values[:, METRIC_COLUMN[name]] for name in METRICS]
    hits = np.rint(values[:, METRIC_COLUMN["precision"]] * k)
    return np.column_stack([*columns, 2 * hits / (k + n_true)])
