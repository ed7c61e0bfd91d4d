"""`evaluate`: all metrics at K with row-bootstrap intervals, and paired comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.core.arguments import check_replicates, check_seed, check_share
from oddslip.core.panel import Kind, check_k, read_sample_weight
from oddslip.core.results import as_frame, html_table, plain
from oddslip.core.row_ids import match_rows
from oddslip.core.row_keys import need_ids
from oddslip.core.weights import resolve_weights
from oddslip.errors import InvalidInput
from oddslip.metrics.at_k import (
    Column,
    Denominator,
    Rows,
    Ties,
    check_choice,
    label_propensities,
    metric_by_row,
    metric_of_sums,
    metric_values,
    need_labels,
    rank_source,
    resolve_propensities,
)
from oddslip.metrics.bootstrap import bootstrap_sums, percentile_interval
from oddslip.sources import Source, open_source
from oddslip.sources.open import Nan
from oddslip.sources.views import WeightedSource, refuse_weights

NAMES = {
    "map": "MAP",
    "precision": "precision",
    "recall": "recall",
    "ndcg": "nDCG",
    "psp": "PSP",
    "hit_rate": "hit rate",
}


def metric_name(metric: str, k: int) -> str:
    """What a metric is called wherever it is shown.

    Examples
    --------
    >>> metric_name("ndcg", 7)
    'nDCG@7'
    """
    return f"{NAMES[metric]}@{k}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its bootstrap interval.

    Attributes
    ----------
    value, low, high : float
        The number and the ends of its interval, which are NaN without replicates.

    Examples
    --------
    >>> str(Estimate(0.5, 0.25, 0.75))
    '0.5000 [0.2500, 0.7500]'
    """

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only; the ends are None where no interval was drawn."""
        return plain({"value": self.value, "low": self.low, "high": self.high})  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def _estimate_of(metric: str, estimates: dict[str, Estimate]) -> Estimate:
    if metric not in estimates:
        raise KeyError(f"metric must be one of {', '.join(estimates)}, got {metric!r}.")
    return estimates[metric]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Paired differences between two rankings of the same rows: first minus second.

    Attributes
    ----------
    k : int
        Slots per row.
    differences : dict
        An `Estimate` for each metric; ``comparison["map"]`` is one of them.
    """

    k: int
    differences: dict[str, Estimate]

    def __getitem__(self, metric: str) -> Estimate:
        return _estimate_of(metric, self.differences)

    def __str__(self) -> str:
        """The differences as a table."""
        from oddslip.reports.text import as_text, show_comparison

        return as_text(show_comparison(self))

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only."""
        return {name: estimate.to_dict() for name, estimate in self.differences.items()}

    def to_frame(self) -> Any:
        """A pandas frame with one line per metric."""
        return _estimate_frame(self.differences, self.k, "difference")

    def _repr_html_(self) -> str:
        return _estimate_table(self.differences, self.k, "difference", "+.4f", "first minus second")


class _Sums(NamedTuple):
    """Sums of the columns, and of the rows they are over: their number, or their weight."""

    sums: NDArray[np.float64]
    n: Any


def _no_values() -> NDArray[np.float64]:
    return np.empty((0, len(Column)))


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Metrics at K of one ranking. ``evaluation["map"]`` is an `Estimate`.

    ``n_evaluated`` rows have a true label. In ``n_tied`` of them ties decide which labels make
    the top K; ``map_worst`` and ``map_best`` say how far the order of tied cells can move MAP.

    Attributes
    ----------
    metrics : dict
        An `Estimate` for each of map, precision, recall, ndcg, psp and hit_rate.
    k, n_rows, n_labels, n_evaluated, n_tied : int
        Slots per row, and counts.
    map_worst, map_best : float
        MAP if every tie were decided against, or for, the true labels.
    mean_auc : float or None
        AUC within labels, where it was asked for.
    ties, denominator, rows, n_replicates, level, seed
        As `evaluate` was told.
    """

    k: int
    n_rows: int
    n_labels: int
    n_evaluated: int
    n_tied: int
    metrics: dict[str, Estimate]
    map_worst: float
    map_best: float
    ties: Ties
    denominator: Denominator
    rows: Rows
    n_replicates: int
    level: float
    seed: int
    mean_auc: float | None = None
    _sample_weight: NDArray[np.float64] | None = field(repr=False, default=None)
    _values: NDArray[np.float64] = field(repr=False, default_factory=_no_values)
    _row_numbers: NDArray[np.int64] = field(repr=False, default_factory=lambda: np.empty(0, int))
    _row_ids: NDArray[Any] | None = field(repr=False, default=None)
    _indexed: bool = field(repr=False, default=False)
    _drawn: _Sums | None = field(repr=False, default=None)  # where rows are known by their keys

    def __getitem__(self, metric: str) -> Estimate:
        return _estimate_of(metric, self.metrics)

    def __repr__(self) -> str:
        values = ", ".join(f"{NAMES[name]} {e.value:.4f}" for name, e in self.metrics.items())
        rows = f"{self.n_evaluated:,} of {self.n_rows:,} rows"
        return f"Evaluation(k={self.k}, {rows} x {self.n_labels:,} labels: {values})"

    def __str__(self) -> str:
        """What `oddslip evaluate` prints."""
        from oddslip.reports.text import as_text, show_evaluation

        return as_text(show_evaluation(self))

    def per_row(self, metric: str = "map") -> NDArray[np.float64]:
        """One number for each evaluated row, in row order; `row_numbers` says which rows."""
        check_choice("metric", metric, NAMES)
        if self._drawn is not None:
            raise InvalidInput(
                "rows known by their keys are summed and not kept, got a call of per_row. "
                "Evaluate them in order, without keyed=True."
            )
        return metric_by_row(self._values, metric)

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """Numbers of the evaluated rows."""
        return self._row_numbers.copy()

    def compare(self, other: Evaluation, *, threads: int | None = None) -> Comparison:
        """Differences to another ranking of the same rows, with paired intervals.

        Where both name their rows, they are paired by these names.

        Parameters
        ----------
        other : Evaluation
            Of the same rows, at the same k.
        threads : int, optional
            Threads to use; all cores available unless told.
        """
        if not isinstance(other, Evaluation):
            raise InvalidInput(f"other must be an Evaluation, got {other!r:.60}.")
        if (self._drawn is None) != (other._drawn is None):
            raise InvalidInput(
                "two evaluations can be compared only if rows are known by their keys in both or "
                "in neither, got one of each."
            )
        other = self._paired(other)
        same_rows = np.array_equal(self._row_numbers, other._row_numbers)
        if not same_rows or (self.k, self.n_rows) != (other.k, other.n_rows):
            raise InvalidInput(
                "two evaluations can be compared only on the same rows with the same k, got "
                f"{self.n_evaluated:,} of {self.n_rows:,} rows at k={self.k} and "
                f"{other.n_evaluated:,} of {other.n_rows:,} rows at k={other.k}."
            )
        if self._drawn is not None and other._drawn is not None:
            return self._compare_keyed(other)
        mine, theirs = self._sample_weight, other._sample_weight
        if (mine is None) != (theirs is None) or (
            mine is not None and not np.array_equal(mine, theirs)  # type: ignore[arg-type]
        ):
            raise InvalidInput(
                "two evaluations can be compared only with the same sample_weight, "
                "got different ones."
            )
        width = self._values.shape[1]
        both = np.hstack([self._values, other._values])
        n_all = self.n_rows if self.rows == "all" else None
        drawn = _resampled(both, mine, n_all, self.n_replicates, self.seed, threads)
        return Comparison(
            self.k, {name: _difference(self, other, name, drawn, width) for name in self.metrics}
        )

    def _paired(self, other: Evaluation) -> Evaluation:
        """The other evaluation with its rows in our order, by their names or numbers."""
        sides, counts = ("first scores", "second scores"), (self.n_rows, other.n_rows)
        indexed = self._indexed if self._row_ids is None else other._indexed
        order = match_rows(self._row_ids, other._row_ids, sides, n_rows=counts, indexed=indexed)
        if order is None:
            return other
        numbers = np.empty(other.n_rows, np.int64)
        numbers[order] = np.arange(other.n_rows)  # our number of each of their rows
        numbers = numbers[other._row_numbers]
        turn = np.argsort(numbers)
        weight = other._sample_weight
        return replace(
            other,
            _row_numbers=numbers[turn],
            _values=other._values[turn],
            _sample_weight=None if weight is None else weight[turn],
            _row_ids=self._row_ids,
        )

    def _compare_keyed(self, other: Evaluation) -> Comparison:
        """A row's draws depend on its key and the seed alone: both were resampled alike."""
        assert self._drawn is not None
        assert other._drawn is not None
        same = (self.seed, self.n_replicates) == (other.seed, other.n_replicates)
        if not same or not np.array_equal(self._drawn.n, other._drawn.n):
            raise InvalidInput(
                "two evaluations can be compared only on the same rows with the same seed and "
                "n_replicates, got different ones."
            )
        drawn = _Sums(np.hstack([self._drawn.sums, other._drawn.sums]), self._drawn.n)
        width = self._drawn.sums.shape[1]
        return Comparison(
            self.k, {name: _difference(self, other, name, drawn, width) for name in self.metrics}
        )

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only: what ``--json`` prints."""
        return plain(  # type: ignore[no-any-return]
            {
                "schema": "oddslip.evaluation/1",
                "k": self.k,
                "n_rows": self.n_rows,
                "n_labels": self.n_labels,
                "n_evaluated": self.n_evaluated,
                "n_tied": self.n_tied,
                "metrics": {name: e.to_dict() for name, e in self.metrics.items()},
                "map_worst": self.map_worst,
                "map_best": self.map_best,
                "mean_auc": self.mean_auc,
                "ties": self.ties,
                "denominator": self.denominator,
                "rows": self.rows,
                "bootstrap": {
                    "replicates": self.n_replicates,
                    "level": self.level,
                    "seed": self.seed,
                },
            }
        )

    def to_frame(self) -> Any:
        """A pandas frame with one line per metric."""
        return _estimate_frame(self.metrics, self.k, "value")

    def plot(self, against: Evaluation | None = None) -> Any:
        """A matplotlib figure: every metric with its interval.

        Parameters
        ----------
        against : Evaluation, optional
            Of other scores of the same rows; its metrics and the paired differences stand beside.

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> found = evaluate([[0.9, 0.2], [0.1, 0.7]], [[1, 0], [1, 0]], k=1, n_replicates=50)
        >>> found.plot().savefig("metrics.png")  # doctest: +SKIP
        """
        # When asked for, as in `Diagnosis.plot`: else reports import results, never the reverse.
        from oddslip.reports.figures.evaluation import draw_evaluation

        return draw_evaluation(self, against)

    def _repr_html_(self) -> str:
        caption = f"{self.n_evaluated:,} rows with a true label, {self.n_labels:,} labels"
        return _estimate_table(self.metrics, self.k, "value", ".4f", caption)


def evaluate(
    scores: Any,
    labels: Any = None,
    *,
    k: int,
    kind: Kind | None = None,
    sample_weight: Any = None,
    label_names: Sequence[str] | None = None,
    exclude: Any = None,
    nan: Nan = "refuse",
    ties: Ties = "stable",
    denominator: Denominator = "min",
    rows: Rows = "with_positives",
    propensities: Any = None,
    weights: Any = None,
    auc: bool = False,
    n_replicates: int = 2000,
    level: float = 0.95,
    seed: int = DEFAULT_SEED,
    keyed: bool = False,
    threads: int | None = None,
) -> Evaluation:
    """MAP, precision, recall, nDCG, PSP and hit rate at K, each with a row-bootstrap interval.

    Parameters
    ----------
    scores, labels : array-like of shape (n_rows, n_labels), data frames, paths, or a Panel
    k : int
        Slots per row, ``1 <= k <= n_labels``.
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts in every mean: for rows that were sampled unequally.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    exclude, nan
        Cells that count for nothing, as in `oddslip.rank`: they take no slot, and a true label
        among them does not count as true.
    ties, denominator, rows
        As in `oddslip.metrics.average_precision_at_k`.
    propensities : array-like, optional
        For PSP; by default from the counts of these labels.
    weights : str, number or array-like, optional
        In place of propensities: the weights each label was trained with, as `diagnose` takes
        them. PSP with propensities 1 / w is what weighted training approximates.
    auc : bool
        Also the mean within-label AUC, which takes two more passes over the scores.
    n_replicates : int
        Bootstrap replicates; 0 for none.
    level : float
        Level of the intervals.
    seed : int
        Same seed, same intervals.
    keyed : bool
        Draw rows by the keys of their ids, as is always done on Spark: the same intervals however
        rows are ordered. Needs row ids. Rows are summed and not kept.
    threads : int, optional
        Threads to use; all cores available unless told.

    Examples
    --------
    >>> result = evaluate([[0.9, 0.2, 0.6], [0.1, 0.7, 0.3]], [[1, 0, 0], [0, 0, 1]], k=2)
    >>> result["map"].value
    0.75
    """
    check_choice("rows", rows, Rows)
    n_replicates, level = check_replicates(n_replicates), check_share("level", level)
    seed = check_seed(seed)
    source = open_source(
        scores, labels, kind=kind, label_names=label_names, exclude=exclude, nan=nan
    )
    ids = source.row_ids() if source.ordered else None
    weight = None
    if sample_weight is not None:
        refuse_weights(source)
        weight = read_sample_weight(sample_weight, source.n_rows, ids, indexed=source.indexed)
    if weight is not None and (rows == "all" or auc):
        wrong = 'rows="all"' if rows == "all" else "auc=True"
        raise InvalidInput(f'sample_weight goes with neither rows="all" nor auc, got {wrong}.')
    if weights is not None:
        if propensities is not None:
            raise InvalidInput("PSP takes propensities or weights, got both. Leave out one.")
        counts, totals = source.label_counts(), source.totals(threads)
        weights = resolve_weights(weights, counts, totals, label_names=source.label_names)
        propensities = "weights"
    propensities = resolve_propensities(propensities, weights, source.n_labels, source.label_names)
    if keyed or not source.ordered:
        return _evaluate_keyed(
            source if weight is None else WeightedSource(source, weight), k, ties=ties,
            denominator=denominator, rows=rows, propensities=propensities, auc=auc,
            n_replicates=n_replicates, level=level, seed=seed, threads=threads,
        )  # fmt: skip
    rankings = rank_source(source, k, threads)
    if not rankings.rows.size:
        raise InvalidInput(
            f"at least one row must have a true label, got none in {rankings.n_rows:,} rows."
        )

    def values_with(policy: Ties) -> NDArray[np.float64]:
        return metric_values(
            rankings, ties=policy, denominator=denominator, propensities_given=propensities
        )

    values = values_with(ties)
    n_all = rankings.n_rows if rows == "all" else None
    times = None if weight is None else weight.times[rankings.rows]
    whole = _summed(values, times, n_all)
    drawn = _resampled(values, times, n_all, n_replicates, seed, threads)
    metrics = {
        name: Estimate(
            float(metric_of_sums(whole.sums, name, whole.n)),
            *percentile_interval(metric_of_sums(drawn.sums, name, drawn.n), level),
        )
        for name in NAMES
    }

    def map_with(policy: Ties) -> float:
        sums, n = _summed(values_with(policy), times, n_all)
        return float(metric_of_sums(sums, "map", n))

    mean_auc = None
    if auc:
        from oddslip.metrics.auc import mean_auc as find_mean_auc

        mean_auc = find_mean_auc(source, threads=threads)
    return Evaluation(
        k=rankings.columns.shape[1],
        n_rows=rankings.n_rows,
        n_labels=rankings.n_labels,
        n_evaluated=int(rankings.rows.size),
        n_tied=int(rankings.decided_by_ties.sum()),
        metrics=metrics,
        map_worst=map_with("worst"),
        map_best=map_with("best"),
        ties=ties,
        denominator=denominator,
        rows=rows,
        n_replicates=n_replicates,
        level=level,
        seed=seed,
        mean_auc=mean_auc,
        _sample_weight=times,
        _values=values,
        _row_numbers=rankings.rows,
        _row_ids=ids,
        _indexed=source.indexed,
    )


def _evaluate_keyed(
    source: Source,
    k: int,
    *,
    propensities: Any,
    auc: bool,
    n_replicates: int,
    level: float,
    seed: int,
    threads: int | None,
    **told: Any,
) -> Evaluation:
    """One pass, or two where propensities come from the labels, that leave sums alone."""
    from oddslip.metrics.keyed import MetricTally

    need_labels(source)
    k = check_k(k, source.n_labels)
    check_choice("ties", told["ties"], Ties)
    check_choice("denominator", told["denominator"], Denominator)
    if n_replicates:
        need_ids(source.has_ids, "drawing rows")
    chances = propensities
    if chances is None:
        chances = label_propensities(source.label_counts(), source.n_rows)
    tally = MetricTally(k, source.n_labels, chances, n_replicates=n_replicates, seed=seed, **told)
    tally = source.run(tally, threads=threads, what="evaluating rows").result()
    if not tally.n_evaluated:
        raise InvalidInput(
            f"at least one row must have a true label, got none in {tally.n_rows:,} rows."
        )
    sums, draws = tally.kept.sums, tally.kept.draws
    drawn = _Sums(draws[:, :-1], draws[:, -1])
    metrics = {
        name: Estimate(
            float(metric_of_sums(sums[:-1], name, sums[-1])),
            *percentile_interval(metric_of_sums(drawn.sums, name, drawn.n), level),
        )
        for name in NAMES
    }
    mean_auc = None
    if auc:
        from oddslip.metrics.auc import mean_auc as find_mean_auc

        mean_auc = find_mean_auc(source, threads=threads)
    worst, best = tally.bounds / sums[-1]
    return Evaluation(
        k=k, n_rows=tally.n_rows, n_labels=source.n_labels, n_evaluated=tally.n_evaluated,
        n_tied=tally.n_tied, metrics=metrics, map_worst=float(worst), map_best=float(best),
        ties=told["ties"], denominator=told["denominator"], rows=told["rows"],
        n_replicates=n_replicates, level=level, seed=seed, mean_auc=mean_auc, _drawn=drawn,
    )  # fmt: skip


def _summed(
    values: NDArray[np.float64], times: NDArray[np.float64] | None, n_all: int | None
) -> _Sums:
    """Sums over the rows as they are."""
    if times is None:
        return _Sums(values.sum(axis=0), len(values) if n_all is None else n_all)
    return _Sums((values * times[:, None]).sum(axis=0), times.sum())


def _resampled(
    values: NDArray[np.float64],
    times: NDArray[np.float64] | None,
    n_all: int | None,
    n_replicates: int,
    seed: int,
    threads: int | None = None,
) -> _Sums:
    """Sums over rows drawn anew, for each replicate."""
    drawn = {"n_replicates": n_replicates, "seed": seed, "threads": threads}
    if times is None:
        sums = bootstrap_sums(values, **drawn, n_rows=n_all)  # type: ignore[arg-type]
        return _Sums(sums, len(values) if n_all is None else n_all)
    weighed = np.hstack([values * times[:, None], times[:, None]])
    sums = bootstrap_sums(weighed, **drawn)  # type: ignore[arg-type]
    return _Sums(sums[:, :-1], sums[:, -1])


def _difference(
    first: Evaluation, second: Evaluation, name: str, drawn: _Sums, width: int
) -> Estimate:
    sums, n = drawn
    replicates = metric_of_sums(sums[:, :width], name, n)
    replicates = replicates - metric_of_sums(sums[:, width:], name, n)
    value = first[name].value - second[name].value
    return Estimate(value, *percentile_interval(replicates, first.level))


def _estimate_frame(estimates: dict[str, Estimate], k: int, value: str) -> Any:
    return as_frame(
        {
            "metric": [metric_name(name, k) for name in estimates],
            value: [e.value for e in estimates.values()],
            "low": [e.low for e in estimates.values()],
            "high": [e.high for e in estimates.values()],
        }
    )


def _estimate_table(
    estimates: dict[str, Estimate], k: int, value: str, style: str, caption: str
) -> str:
    rows = [
        [metric_name(name, k), *(format(number, style) for number in (e.value, e.low, e.high))]
        for name, e in estimates.items()
    ]
    return html_table(["metric", value, "low", "high"], rows, caption)
