"""The metrics at K: MAP, precision, recall, nDCG, hit rate and PSP, of rows and over rows.

PSP weighs hits by label propensities (Jain et al. 2016): how likely a true rare label is to be
seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from oddslip.core.arguments import as_numbers, check_whole, is_number
from oddslip.core.panel import check_k
from oddslip.core.types import Floats, Ints, LabelsLike, PerLabel, ScoresLike
from oddslip.core.weights import by_label, per_label
from oddslip.errors import InvalidInput
from oddslip.metrics.ranking import Rankings, RankingTally
from oddslip.sources import Source
from oddslip.sources.open import RowOptions, open_rows

MIN_PROPENSITY = 1e-150  # sums of inverses stay finite
Ties = Literal["stable", "expected", "best", "worst"]
Denominator = Literal["min", "relevant", "hits"]
Rows = Literal["with_positives", "all"]


class Column(IntEnum):
    """The columns of `metric_values`, in the order in which `kernels.hits.score_rows` fills them.

    PSP is a ratio of sums and so has two: what a row gained, and the best it allows.
    """

    MAP = 0
    PRECISION = 1
    RECALL = 2
    NDCG = 3
    HIT_RATE = 4
    PSP_GAIN = 5
    PSP_BEST = 6


# The column that is summed for each metric.
METRIC_COLUMN = {
    "map": Column.MAP,
    "precision": Column.PRECISION,
    "recall": Column.RECALL,
    "ndcg": Column.NDCG,
    "psp": Column.PSP_GAIN,
    "hit_rate": Column.HIT_RATE,
}


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


@dataclass(frozen=True, slots=True, eq=False)
class Scoring:
    """What candidates and rungs are compared by: a metric at K, with the propensities of PSP.

    Without propensities those of PSP follow from label counts, see `propensities_for`.
    """

    k: int
    metric: str = "map"
    propensities: Floats | None = None

    def propensities_for(self, counts: Ints, n_rows: int) -> Floats:
        """The propensities, or those of labels that are true in ``counts`` of the rows."""
        if self.propensities is not None:
            return self.propensities
        return label_propensities(counts, n_rows)


class MetricOptions(RowOptions, total=False):
    """What every metric takes; see `average_precision_at_k`."""

    ties: Ties
    rows: Rows
    per_row: bool


def average_precision_at_k(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    k: int,
    denominator: Denominator = "min",
    **options: Unpack[MetricOptions],
) -> Any:
    """MAP@K: mean over ranks of precision at each hit. Higher is better.

    Parameters
    ----------
    scores, labels : array-like of shape (n_rows, n_labels), or paths
    k : int
        Slots per row, ``1 <= k <= n_labels``.
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    exclude, nan
        Cells that count for nothing, as in `oddslip.rank`: they take no slot, and a true label
        among them does not count as true.
    ties : {"stable", "expected", "best", "worst"}
        Tied cells by label index, or over all of their orders.
    denominator : {"min", "relevant", "hits"}
        Divide by min(K, true labels) as Kaggle does, by the true labels as trec_eval and ranx do,
        or by the hits in the top K as torchmetrics does.
    rows : {"with_positives", "all"}
        Average over the rows with a true label, or over all rows, the others counting zero.
    per_row : bool
        One number for each row with a true label instead of their mean.
    threads : int, optional
        Threads to use; all available cores by default.

    Examples
    --------
    >>> average_precision_at_k([[0.9, 0.2, 0.6]], [[1, 1, 0]], k=2)
    0.5
    """
    return _metric("map", scores, labels, k, denominator=denominator, **options)


def precision_at_k(
    scores: ScoresLike, labels: LabelsLike = None, *, k: int, **options: Unpack[MetricOptions]
) -> Any:
    """Share of the K slots filled by a true label. Higher is better.

    Takes the arguments of `average_precision_at_k`.

    Examples
    --------
    >>> precision_at_k([[0.9, 0.2, 0.6]], [[1, 0, 0]], k=2)
    0.5
    """
    return _metric("precision", scores, labels, k, **options)


def recall_at_k(
    scores: ScoresLike, labels: LabelsLike = None, *, k: int, **options: Unpack[MetricOptions]
) -> Any:
    """Share of a row's true labels found in its K slots. Higher is better.

    Takes the arguments of `average_precision_at_k`.

    Examples
    --------
    >>> recall_at_k([[0.9, 0.2, 0.6]], [[1, 1, 0]], k=2)
    0.5
    """
    return _metric("recall", scores, labels, k, **options)


def ndcg_at_k(
    scores: ScoresLike, labels: LabelsLike = None, *, k: int, **options: Unpack[MetricOptions]
) -> Any:
    """Discounted gain of the hits over the best possible. Higher is better.

    Takes the arguments of `average_precision_at_k`. ``ties="expected"`` is scikit-learn's.

    Examples
    --------
    >>> ndcg_at_k([[0.9, 0.2, 0.6]], [[1, 0, 0]], k=2)
    1.0
    """
    return _metric("ndcg", scores, labels, k, **options)


def hit_rate_at_k(
    scores: ScoresLike, labels: LabelsLike = None, *, k: int, **options: Unpack[MetricOptions]
) -> Any:
    """Share of rows with at least one true label in their K slots. Higher is better.

    Takes the arguments of `average_precision_at_k`.

    Examples
    --------
    >>> hit_rate_at_k([[0.9, 0.2], [0.9, 0.2]], [[1, 0], [0, 1]], k=1)
    0.5
    """
    return _metric("hit_rate", scores, labels, k, **options)


def psp_at_k(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    k: int,
    propensities: PerLabel = None,
    **options: Unpack[MetricOptions],
) -> Any:
    """Propensity-scored precision: hits weighted by 1 / propensity, over the best possible.

    The sums over rows are divided, as in the extreme classification repository. Propensities
    come from `oddslip.metrics.label_propensities`, or else from the counts of these labels.
    Takes the other arguments of `average_precision_at_k`; rows without a true label add nothing.

    Examples
    --------
    >>> psp_at_k([[0.9, 0.2, 0.6]], [[1, 1, 0]], k=1, propensities=[0.5, 0.25, 1.0])
    0.5
    """
    return _metric("psp", scores, labels, k, propensities=propensities, **options)


def label_propensities(
    label_counts: ArrayLike, n_rows: int, *, a: float = 0.55, b: float = 1.5
) -> Floats:
    """Propensity of each label: ``1 / (1 + C exp(-a ln(count + b)))``.

    ``C = (ln n_rows - 1) (b + 1)^a``. The defaults of a and b are those of the extreme
    classification repository for data sets of its own kind.

    Examples
    --------
    >>> label_propensities([1, 1000], 10_000).round(3)
    array([0.109, 0.767])
    """
    counts = as_numbers("label_counts", label_counts)
    check_whole("n_rows", n_rows, 1)
    if counts.ndim != 1 or not ((counts >= 0) & (counts <= n_rows)).all():
        raise InvalidInput(
            f"label_counts must hold one count between 0 and n_rows={n_rows} per label, "
            f"got {label_counts!r:.60}."
        )
    for name, value in (("a", a), ("b", b)):
        if not (is_number(value) and 0 < value < np.inf):
            raise InvalidInput(f"{name} must be above 0, got {name}={value!r:.60}.")
    c = (np.log(n_rows) - 1.0) * (b + 1.0) ** a
    return np.asarray(1.0 / (1.0 + max(c, 0.0) * np.exp(-a * np.log(counts + b))))


def rank_source(source: Source, k: int) -> Rankings:
    """Rankings of a source that has labels."""
    tally = RankingTally(check_k(k, source.n_labels), source.n_labels)
    return source.run(tally, what="evaluating rows").result()


def metric_values(
    rankings: Rankings,
    *,
    ties: Ties = "stable",
    denominator: Denominator = "min",
    propensities_given: Floats | None = None,
) -> Floats:
    """Per row with a true label: the columns of `Column`. Propensities were checked before."""
    from oddslip.kernels.hits import score_rows

    policy = check_choice("ties", ties, Ties)
    by = check_choice("denominator", denominator, Denominator)
    chances = propensities_given
    if chances is None:
        counts = np.bincount(rankings.indices, minlength=rankings.n_labels)
        chances = label_propensities(counts, rankings.n_rows)
    values = np.empty((rankings.rows.size, len(Column)))
    score_rows(
        rankings.columns,
        rankings.joined,
        rankings.at_kth,
        rankings.indptr,
        rankings.indices,
        rankings.sides,
        1.0 / chances,
        policy,
        by,
        values,
    )
    return values


def metric_of_sums(sums: Floats, metric: str, n_rows: Any) -> Floats:
    """A metric over ``n_rows`` rows from the sums of the columns, which are the last axis.

    Examples
    --------
    >>> metric_of_sums(np.array([3.0, 2.0, 2.0, 3.0, 4.0, 1.0, 5.0]), "map", 4).item()
    0.75
    """
    n = sums[..., Column.PSP_BEST] if metric == "psp" else n_rows
    with np.errstate(invalid="ignore"):  # a replicate of few rows may take none of them
        return np.asarray(sums[..., METRIC_COLUMN[metric]] / n)


def metric_by_row(values: Floats, metric: str) -> Floats:
    """A metric of each row, from the columns of `metric_values`."""
    summed = values[:, METRIC_COLUMN[metric]]
    return summed / values[:, Column.PSP_BEST] if metric == "psp" else summed.copy()


def check_choice(name: str, value: str, choices: Any) -> int:
    """Place of a named choice among those allowed: those of a Literal, or a collection of names."""
    allowed = get_args(choices) or tuple(choices)
    if value not in allowed:
        choices = ", ".join(f'"{choice}"' for choice in allowed)
        raise InvalidInput(f"{name} must be one of {choices}, got {value!r}.")
    return allowed.index(value)


def _read_propensities(
    propensities: PerLabel, n_labels: int, label_names: Sequence[str] | None
) -> Floats | None:
    """Propensities as float64, one per label, each above 0 and at most 1."""
    if propensities is None:
        return None
    propensities = by_label("propensities", propensities, label_names)
    array = per_label("propensities", propensities, n_labels)
    wrong = np.flatnonzero(~((array >= MIN_PROPENSITY) & (array <= 1)))
    if wrong.size:
        value = array[wrong[0]]
        least = f" The least is {MIN_PROPENSITY:g}." if 0 < value <= 1 else ""
        raise InvalidInput(
            f"propensities must be above 0 and at most 1, got {value:g} for label {wrong[0]}."
            + least
        )
    return array


def resolve_propensities(
    propensities: PerLabel,
    weights: Floats | None,
    n_labels: int,
    label_names: Sequence[str] | None = None,
) -> Floats | None:
    """Propensities one per label, by name, or those that training weights amount to.

    None stays None: then the labels of the rows say them, by `label_propensities`.

    Parameters
    ----------
    propensities : array-like, mapping, "weights" or None
        "weights": propensities 1 / w, whose PSP weighted training approximates (Corollary 1c).
    weights : numpy.ndarray or None
        The weight each label was trained with, where it is known.
    n_labels : int
    label_names : sequence of str, optional

    Examples
    --------
    >>> resolve_propensities("weights", np.array([2.0, 8.0]), 2)
    array([1.  , 0.25])
    """
    if isinstance(propensities, str) and propensities == "weights":
        if weights is None:
            raise InvalidInput(
                'propensities="weights" needs the weights that labels were trained with. '
                "Pass weights as well."
            )
        return np.asarray(weights.min() / weights)  # a common factor does not matter
    if isinstance(propensities, str) and not Path(propensities).exists():
        raise InvalidInput(
            'propensities must be one per label, a file of them, or "weights", '
            f"got {propensities!r:.60}."
        )
    return _read_propensities(propensities, n_labels, label_names)


def _metric(
    metric: str,
    scores: ScoresLike,
    labels: LabelsLike,
    k: int,
    *,
    propensities: PerLabel = None,
    denominator: Denominator = "min",
    **options: Any,
) -> Any:
    """A metric of rows, whose options are `MetricOptions`."""
    ties, rows = options.pop("ties", "stable"), options.pop("rows", "with_positives")
    per_row = options.pop("per_row", False)
    check_choice("rows", rows, Rows)
    source = open_rows(scores, labels, **options, purpose="evaluate")
    rankings = rank_source(source, k)
    chances = _read_propensities(propensities, source.n_labels, source.label_names)
    values = metric_values(rankings, ties=ties, denominator=denominator, propensities_given=chances)
    if per_row:
        return metric_by_row(values, metric)
    n_rows = rankings.n_rows if rows == "all" else len(values)
    return float(metric_of_sums(values.sum(axis=0), metric, n_rows)) if n_rows else float("nan")
