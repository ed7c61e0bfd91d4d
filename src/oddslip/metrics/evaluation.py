"""`evaluate`: all metrics at K with row-bootstrap intervals, and paired comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from oddslip import DEFAULT_SEED
from oddslip.core.arguments import check_replicates, check_seed, check_share
from oddslip.core.panel import Kind, Panel, check_k
from oddslip.core.results import as_frame, html_table, plain
from oddslip.core.row_ids import Keys, match_rows, need_ids
from oddslip.core.threads import available_threads
from oddslip.core.types import Array, Floats, Ints, JsonObject, LabelsLike, PerLabel, ScoresLike
from oddslip.core.weights import resolve_weights
from oddslip.errors import InvalidInput
from oddslip.metrics.at_k import (
    NAMES,
    Column,
    Denominator,
    Rows,
    Ties,
    check_choice,
    label_propensities,
    metric_by_row,
    metric_name,
    metric_of_sums,
    metric_values,
    resolve_propensities,
)
from oddslip.metrics.auc import mean_auc
from oddslip.metrics.bootstrap import (
    BootstrapSums,
    BootstrapTally,
    bootstrap_rows,
    percentile_interval,
)
from oddslip.metrics.ranking import rank_rows
from oddslip.sources import Source
from oddslip.sources.open import Nan, open_rows, weigh_rows
from oddslip.sources.views import LabelledSource, WeightedSource


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

    def to_dict(self) -> JsonObject:
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

    def to_dict(self) -> JsonObject:
        """Built-in types only."""
        return {name: estimate.to_dict() for name, estimate in self.differences.items()}

    def to_frame(self) -> Any:
        """A pandas frame with one line per metric."""
        return _estimate_frame(self.differences, self.k, "difference")

    def _repr_html_(self) -> str:
        return _estimate_table(self.differences, self.k, "difference", "+.4f", "first minus second")


class EvaluatedRows(NamedTuple):
    """The rows with a true label, in row order: their numbers, keys and columns of `Column`."""

    numbers: Ints
    keys: Keys
    values: Floats

    def ordered_by(self, numbers: Ints) -> EvaluatedRows:
        """The same rows with other numbers, in the order of these."""
        order = np.argsort(numbers)
        return EvaluatedRows(numbers[order], self.keys[order], self.values[order])


class MetricTally(BootstrapTally):
    """Ranks rows and adds up their metrics.

    The columns summed are those of `Column`, and one more: the number of rows, or their weight.

    Parameters
    ----------
    k : int
    propensities : ndarray of shape (n_labels,)
    ties, denominator, rows
        As in `oddslip.evaluate`.
    n_replicates, seed : int
        Of the bootstrap.
    keep_rows : bool
        Whether the values of every row are kept, which needs rows in order.
    """

    JOINED: ClassVar = {
        **dict.fromkeys(("n_rows", "n_evaluated", "n_tied", "bounds", "key_sum"), "add"),
        **dict.fromkeys(("_numbers", "_keys", "_values"), "append"),
    }

    def __init__(
        self,
        k: int,
        propensities: Floats,
        *,
        ties: Ties = "stable",
        denominator: Denominator = "min",
        rows: Rows = "with_positives",
        n_replicates: int = 0,
        seed: int = 0,
        keep_rows: bool = False,
    ) -> None:
        self.k, self.n_labels, self.propensities = k, propensities.size, propensities
        self.ties, self.denominator, self.rows = ties, denominator, rows
        self.n_replicates, self.seed, self.keep_rows = n_replicates, seed, keep_rows
        self.n_rows = self.n_evaluated = self.n_tied = 0
        self.bounds = np.zeros(2)  # sums of average precision, ties at their worst and best
        self.key_sum = np.zeros(1, np.uint64)  # two tallies of the same rows have the same
        self.sums = BootstrapSums(len(Column) + 1, n_replicates, seed)
        self._numbers: list[Ints] = []
        self._keys: list[Keys] = []
        self._values: list[Floats] = []
        self.blocks_apart = max(1, self.sums.draws.nbytes >> 20)

    def add(self, panel: Panel) -> None:
        """Rank one block and add it up."""
        rankings = rank_rows(panel, self.k)
        places = rankings.rows - panel.first_row

        def values_with(ties: Ties) -> Floats:
            return metric_values(
                rankings,
                ties=ties,
                denominator=self.denominator,
                propensities_given=self.propensities,
            )

        values = values_with(self.ties)
        worst, best = (values_with(ties)[:, Column.MAP] for ties in ("worst", "best"))
        keys = panel.row_keys() if self.n_replicates else None
        self.n_rows += panel.n_rows
        self.n_evaluated += places.size
        self.n_tied += int(rankings.decided_by_ties.sum())
        if keys is not None:
            self.key_sum += keys[places].sum()
        if self.keep_rows:
            self._numbers.append(rankings.rows)
            self._keys.append(np.empty(0, np.uint64) if keys is None else keys[places])
            self._values.append(values)
        weighted = np.column_stack([values, np.ones(places.size)])
        if panel.sample_weight is not None:
            times = panel.sample_weight.times[places]
            weighted *= times[:, None]
            worst, best = worst * times, best * times
        self.bounds += worst.sum(), best.sum()
        if self.rows == "all":
            weighted, evaluated = np.zeros((panel.n_rows, weighted.shape[1])), weighted
            weighted[places] = evaluated
            weighted[:, -1] = 1.0
            places = np.arange(panel.n_rows)
        self.sums.add_rows(weighted, None if keys is None else keys[places])

    def result(self) -> Self:
        """The sums."""
        return self

    def evaluated_rows(self) -> EvaluatedRows | None:
        """The rows with a true label, where rows are kept."""
        if not self.keep_rows:
            return None
        numbers = np.concatenate([np.empty(0, np.int64), *self._numbers])
        keys = np.concatenate([np.empty(0, np.uint64), *self._keys])
        keys = keys if keys.size == numbers.size else np.zeros(numbers.size, np.uint64)
        values = np.concatenate([np.empty((0, len(Column))), *self._values])
        return EvaluatedRows(numbers, keys, values).ordered_by(numbers)


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
        The arguments of `evaluate`.
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
    _draws: Floats = field(repr=False, default_factory=lambda: np.empty((0, len(Column) + 1)))
    _key_sum: int = field(repr=False, default=0)
    _evaluated: EvaluatedRows | None = field(repr=False, default=None)  # where rows are in order
    _sample_weight: Floats | None = field(repr=False, default=None)
    _row_ids: Array | None = field(repr=False, default=None)
    _indexed: bool = field(repr=False, default=False)

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

    def per_row(self, metric: str = "map") -> Floats:
        """One number for each evaluated row, in row order; `row_numbers` says which rows."""
        check_choice("metric", metric, NAMES)
        if self._evaluated is None:
            raise InvalidInput(
                "rows of a table without order are summed and not kept, got a call of per_row. "
                "Collect a sample of the rows, and evaluate that."
            )
        return metric_by_row(self._evaluated.values, metric)

    @property
    def row_numbers(self) -> Ints:
        """Numbers of the evaluated rows."""
        none = np.empty(0, np.int64)
        return none if self._evaluated is None else self._evaluated.numbers.copy()

    def compare(self, other: Evaluation, *, threads: int | None = None) -> Comparison:
        """Differences to another ranking of the same rows, with paired intervals.

        Where both name their rows, they are paired by these names.

        Parameters
        ----------
        other : Evaluation
            Of the same rows, at the same k.
        threads : int, optional
            Threads to use; all available cores by default.

        Returns
        -------
        Comparison

        Examples
        --------
        >>> labels = [[1, 0], [0, 1], [0, 1]]
        >>> one = evaluate([[0.9, 0.2], [0.1, 0.7], [0.3, 0.5]], labels, k=1)
        >>> other = evaluate([[0.9, 0.2], [0.1, 0.7], [0.6, 0.5]], labels, k=1)
        >>> round(one.compare(other)["map"].value, 3)
        0.333
        """
        available_threads(threads)
        if not isinstance(other, Evaluation):
            raise InvalidInput(f"other must be an Evaluation, got {other!r:.60}.")
        if self._evaluated is not None and other._evaluated is not None:
            other = self._in_our_order(other)
            same_rows = np.array_equal(self.row_numbers, other.row_numbers)
        else:
            same_rows = (self.n_evaluated, self._key_sum) == (other.n_evaluated, other._key_sum)
        if not same_rows or (self.k, self.n_rows) != (other.k, other.n_rows):
            raise InvalidInput(
                "two evaluations can be compared only on the same rows with the same k, got "
                f"{self.n_evaluated:,} of {self.n_rows:,} rows at k={self.k} and "
                f"{other.n_evaluated:,} of {other.n_rows:,} rows at k={other.k}."
            )
        mine, theirs = self._sample_weight, other._sample_weight
        if (mine is None) != (theirs is None) or (
            mine is not None and not np.array_equal(mine, theirs)  # type: ignore[arg-type]
        ):
            raise InvalidInput(
                "two evaluations can be compared only with the same sample_weight, "
                "got different ones."
            )
        draws = self._draws_of(other, threads)
        return Comparison(
            self.k, {name: _difference(self, other, name, draws) for name in self.metrics}
        )

    def _in_our_order(self, other: Evaluation) -> Evaluation:
        """The other evaluation with its rows in our order, by their names or numbers."""
        assert other._evaluated is not None
        sides, counts = ("first scores", "second scores"), (self.n_rows, other.n_rows)
        indexed = self._indexed if self._row_ids is None else other._indexed
        order = match_rows(self._row_ids, other._row_ids, sides, n_rows=counts, indexed=indexed)
        if order is None:
            return other
        numbers = np.empty(other.n_rows, np.int64)
        numbers[order] = np.arange(other.n_rows)  # our number of each of their rows
        numbers = numbers[other._evaluated.numbers]
        weight = other._sample_weight
        return replace(
            other,
            _evaluated=other._evaluated.ordered_by(numbers),
            _sample_weight=None if weight is None else weight[np.argsort(numbers)],
        )

    def _draws_of(self, other: Evaluation, threads: int | None) -> Floats:
        """Replicates of the other's sums in which every row counts as often as in ours."""
        alike = (self.seed, self.n_replicates) == (other.seed, other.n_replicates)
        if self._evaluated is None or other._evaluated is None:
            if alike:
                return other._draws
            raise InvalidInput(
                "two evaluations of a table can be compared only with the same seed and "
                f"n_replicates, got {self.seed} and {self.n_replicates}, {other.seed} and "
                f"{other.n_replicates}."
            )
        keys = self._evaluated.keys
        if alike and np.array_equal(keys, other._evaluated.keys):
            return other._draws
        values = other._evaluated.values
        if self._sample_weight is not None:
            values = values * self._sample_weight[:, None]
        bootstrap = bootstrap_rows(
            values, keys, n_replicates=self.n_replicates, seed=self.seed, threads=threads
        )
        return np.column_stack([bootstrap.draws, self._draws[:, -1]])

    def to_dict(self) -> JsonObject:
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
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    k: int,
    kind: Kind | None = None,
    sample_weight: Any = None,
    label_names: Sequence[str] | None = None,
    exclude: LabelsLike = None,
    nan: Nan = "refuse",
    ties: Ties = "stable",
    denominator: Denominator = "min",
    rows: Rows = "with_positives",
    propensities: PerLabel = None,
    weights: PerLabel = None,
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
        Require row ids. Intervals follow from them where rows have ids, and from row numbers
        elsewhere; with ids they are the same however rows are ordered.
    threads : int, optional
        Threads to use; all available cores by default.

    Examples
    --------
    >>> result = evaluate([[0.9, 0.2, 0.6], [0.1, 0.7, 0.3]], [[1, 0, 0], [0, 0, 1]], k=2)
    >>> result["map"].value
    0.75
    """
    check_choice("rows", rows, Rows)
    n_replicates, level = check_replicates(n_replicates), check_share("level", level)
    seed = check_seed(seed)
    source = open_rows(
        scores,
        labels,
        kind=kind,
        label_names=label_names,
        exclude=exclude,
        nan=nan,
        threads=threads,
        purpose="evaluate",
    )
    source = weigh_rows(source, sample_weight)
    if source.sample_weight is not None and (rows == "all" or auc):
        wrong = 'rows="all"' if rows == "all" else "auc=True"
        raise InvalidInput(f'sample_weight goes with neither rows="all" nor auc, got {wrong}.')
    chances = _read_propensities(propensities, weights, source)
    k = check_k(k, source.n_labels)
    check_choice("ties", ties, Ties)
    check_choice("denominator", denominator, Denominator)
    if n_replicates and (keyed or not source.ordered):
        need_ids(source.has_ids, "drawing rows")
    if chances is None and source.ordered:  # dense labels are searched once
        source = LabelledSource(source, source.positives())
    if n_replicates and source.ordered:
        source.row_keys()  # ids are hashed once, before threads need them
    tally = MetricTally(
        k,
        label_propensities(source.label_counts(), source.n_rows) if chances is None else chances,
        ties=ties,
        denominator=denominator,
        rows=rows,
        n_replicates=n_replicates,
        seed=seed,
        keep_rows=source.ordered,
    )
    tally = source.run(tally, what="evaluating rows")
    if not tally.n_evaluated:
        raise InvalidInput(
            f"at least one row must have a true label, got none in {tally.n_rows:,} rows."
        )
    return _summarise(tally, source, level, mean_auc(source) if auc else None)


def _read_propensities(propensities: PerLabel, weights: PerLabel, source: Source) -> Floats | None:
    """Propensities of PSP, given or made of training weights; None if the labels decide."""
    names = source.label_names
    if weights is None:
        return resolve_propensities(propensities, None, source.n_labels, names)
    if propensities is not None:
        raise InvalidInput("PSP takes propensities or weights, got both. Leave out one.")
    rows = source.whole if isinstance(source, WeightedSource) else source
    counts = rows.label_counts(), rows.totals()
    trained = resolve_weights(weights, *counts, label_names=names)
    return resolve_propensities("weights", trained, source.n_labels, names)


def _summarise(
    tally: MetricTally, source: Source, level: float, mean_auc: float | None
) -> Evaluation:
    """The evaluation that a tally of all rows amounts to."""
    total, draws = tally.sums.total, tally.sums.draws
    worst, best = tally.bounds / total[-1]
    evaluated = tally.evaluated_rows()
    times, weight = None, source.sample_weight
    if weight is not None and evaluated is not None:
        times = weight.times[evaluated.numbers]
    return Evaluation(
        k=tally.k,
        n_rows=tally.n_rows,
        n_labels=tally.n_labels,
        n_evaluated=tally.n_evaluated,
        n_tied=tally.n_tied,
        metrics={
            name: Estimate(
                float(_metric(total, name)), *percentile_interval(_metric(draws, name), level)
            )
            for name in NAMES
        },
        map_worst=float(worst),
        map_best=float(best),
        ties=tally.ties,
        denominator=tally.denominator,
        rows=tally.rows,
        n_replicates=tally.n_replicates,
        level=level,
        seed=tally.seed,
        mean_auc=mean_auc,
        _draws=draws,
        _key_sum=int(tally.key_sum[0]),
        _evaluated=evaluated,
        _sample_weight=times,
        _row_ids=source.row_ids() if source.ordered else None,
        _indexed=source.indexed,
    )


def _metric(sums: Floats, name: str) -> Floats:
    """A metric from the sums of a `MetricTally`, whose last column is the number of rows."""
    return metric_of_sums(sums[..., :-1], name, sums[..., -1])


def _difference(first: Evaluation, second: Evaluation, name: str, draws: Floats) -> Estimate:
    """``draws`` are those of the second, paired with the first's own."""
    replicates = _metric(first._draws, name) - _metric(draws, name)
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
