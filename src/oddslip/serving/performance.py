"""Performance of served rows with labels: metrics and prevalences, and whether guarantees hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.core.arguments import is_number
from oddslip.core.labels import Positives
from oddslip.core.panel import Kind, Panel
from oddslip.core.types import Bools, Floats, Ints, ScoresLike
from oddslip.decisions.fitted_decision import FittedDecision
from oddslip.diagnosis.drift import find_drifted
from oddslip.diagnosis.ladder import LEVEL
from oddslip.diagnosis.rungs import constant_maps
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.json import read_json
from oddslip.io.paths import is_path
from oddslip.metrics.at_k import NAMES, Column, metric_of_sums, metric_values
from oddslip.metrics.bootstrap import bootstrap_rows, percentile_interval
from oddslip.metrics.evaluation import Estimate
from oddslip.metrics.ranking import Rankings, rank
from oddslip.repairs.fitted_repair import FittedRepair, load_repair
from oddslip.shifts.twin import open_twin
from oddslip.sources import Source
from oddslip.sources.views import CandidateSource

# A result or its JSON, a repair, or scores of the same rows.
BaselineLike = ScoresLike
DROP_LEVEL = 0.99  # of the interval of a change: one quiet week in 200 looks like a drop
MIN_ROWS = 20  # with fewer, an interval by the normal distribution says too often that it is sure
Z99 = 2.5758293035489004  # standard errors of a 99% interval

# Where earlier results keep their metrics.
SCHEMAS = ("oddslip.diagnosis/1", "oddslip.evaluation/1", "oddslip.check/1")


@dataclass(frozen=True, slots=True, eq=False)
class Performance:
    """Metrics of the ranking that is served, and how they changed.

    Attributes
    ----------
    metrics : dict
        An `Estimate` for each metric, on the rows with a true label.
    changes : dict
        Now minus baseline, for every metric that the baseline has.
    against : str
        What the baseline is, in words; empty without one.
    n_evaluated : int
        Rows with a true label: those that metrics are averaged over.
    shown_true : float
        Share of the labels shown that is true, mean over all rows: what the expected precision
        expects.
    counts : numpy.ndarray
        Rows in which each label is true.
    lead : Estimate
        MAP of the same list in every row, labels by their prior, minus that of the ranking.
    """

    metrics: dict[str, Estimate]
    changes: dict[str, Estimate]
    against: str
    n_evaluated: int
    shown_true: float
    counts: Ints
    lead: Estimate


class Baseline(NamedTuple):
    """Earlier metrics: estimates on other rows, or another ranking of these rows."""

    against: str
    metrics: dict[str, tuple[float, float]]  # value and standard error
    columns: NDArray[np.int32] | None = None


def perform(
    source: Source,
    columns: NDArray[np.int32],
    prior: Floats,
    baseline: Baseline | None,
    *,
    n_replicates: int,
    seed: int = DEFAULT_SEED,
) -> Performance:
    """Evaluate a ranking of labelled rows, and compare it with the baseline."""
    positives = source.positives()
    rows = np.flatnonzero(positives.counts)
    if not rows.size:
        raise InvalidInput(
            f"at least one row must have a true label, got none in {source.n_rows:,} rows."
        )
    k = columns.shape[1]
    rankings = [columns, rank_by_prior(source, prior, k)]
    if baseline is not None and baseline.columns is not None:
        rankings.append(baseline.columns)
    values = [_score(ranking, positives, source.n_labels) for ranking in rankings]
    n, width = rows.size, values[0].shape[1]
    sums = bootstrap_rows(
        np.hstack([*values, np.ones((n, 1))]),
        source.row_keys()[rows],
        n_replicates=n_replicates,
        seed=seed,
        threads=source.threads,
    )

    def replicates(metric: str, at: int) -> Floats:
        of_ranking = sums.draws[:, at * width : (at + 1) * width]
        return metric_of_sums(of_ranking, metric, sums.draws[:, -1])

    def estimate(metric: str, at: int, minus: int | None = None, level: float = LEVEL) -> Estimate:
        value = float(metric_of_sums(values[at].sum(axis=0), metric, n))
        samples = replicates(metric, at)
        if minus is not None:
            value -= float(metric_of_sums(values[minus].sum(axis=0), metric, n))
            samples = samples - replicates(metric, minus)
        return Estimate(value, *percentile_interval(samples, level))

    metrics = {name: estimate(name, 0) for name in NAMES}
    changes: dict[str, Estimate] = {}
    if baseline is not None and baseline.columns is not None:
        changes = {name: estimate(name, 0, 2, DROP_LEVEL) for name in NAMES}
    elif baseline is not None:
        for name, (value, error) in baseline.metrics.items():
            changes[name] = _two_sample(metrics[name].value, replicates(name, 0), value, error)
    return Performance(
        metrics,
        changes,
        "" if baseline is None else baseline.against,
        int(n),
        _share_true(values[0][:, Column.PRECISION] * k, columns[rows], source.n_rows),
        np.bincount(positives.indices, minlength=source.n_labels),
        estimate("map", 1, 0),
    )


def rank_by_prior(source: Source, prior: Floats, k: int) -> NDArray[np.int32]:
    """The labels with the highest prior, of those that each row has."""
    if not source.partial:
        popular = np.argsort(-prior, kind="stable")[:k].astype(np.int32)
        return np.tile(popular, (source.n_rows, 1))
    maps = constant_maps(prior, source.kind)
    blocks = source.map(lambda panel: maps.rank_panel(panel, k))
    return np.concatenate([block for _, block in blocks])


def drifted_labels(
    before: Ints, n_before: int | Ints, now: Ints, n_now: int | Ints
) -> tuple[Bools, float]:
    """Labels whose prevalence drifted, and the share of all positives that they hold."""
    drifted = find_drifted(before, now, n_before, n_now)
    shares = [float(each[drifted].sum() / max(1, each.sum())) for each in (before, now)]
    return drifted, float(np.mean(shares))


def _score(columns: NDArray[np.int32], positives: Positives, n_labels: int) -> Floats:
    return metric_values(Rankings.of(columns, positives, n_labels))


def _share_true(hits: Floats, columns: NDArray[np.int32], n_rows: int) -> float:
    """Hits over labels shown, mean over all rows; a row may show fewer than K, or hold no truth."""
    return float((hits / np.maximum(1, (columns >= 0).sum(axis=1))).sum() / n_rows)


def _two_sample(value: float, samples: Floats, before: float, error: float) -> Estimate:
    """The change between two sets of rows; the errors of both count."""
    samples = samples[np.isfinite(samples)]
    spread = float(samples.std()) if samples.size else float("nan")
    reach = NormalDist().inv_cdf((1 + DROP_LEVEL) / 2) * math.sqrt(spread**2 + error**2)
    return Estimate(value - before, value - before - reach, value - before + reach)


# --------------------------------------------------------------------------------------- guarantees


class GuaranteeCheck(NamedTuple):
    """The risk of new rows beside the one that was guaranteed."""

    loss: str
    target: float
    risk: float
    risk_before: float
    error: float  # standard error of the difference, of both samples of rows
    n_rows: int

    @property
    def broken(self) -> bool:
        """Whether the risk is surely above the target: by a 99% interval."""
        return self.risk - self.target > Z99 * self.error


def check_guarantee(
    decision: FittedDecision, source: Source, order: Ints | None
) -> GuaranteeCheck | None:
    """Compare the risk of labelled rows with the guarantee; None where there is none to compare.

    It takes `MIN_ROWS` rows, and for "missed" only those with a true label count. A guarantee by
    group needs the groups of the rows, which a source does not have.
    """
    stored = decision.summary.get("guarantee")
    if not stored or len(stored) != 1 or stored[0]["group"] is not None or not stored[0]["holds"]:
        return None
    if not (source.has_labels and source.ordered and source.sample_weight is None):
        return None
    loss: Any = decision.goal
    risk, variance, n_rows = decision._total(source, order).loss(loss)
    if n_rows < MIN_ROWS:
        return None
    n_before, target = stored[0]["n_rows"], float(decision.target or 0.0)
    error = math.sqrt(variance * (1 / n_rows + 1 / max(1, n_before)))
    return GuaranteeCheck(loss, target, risk, stored[0]["risk"], error, n_rows)


# ---------------------------------------------------------------------------------------- baselines


def read_baseline(
    baseline: BaselineLike, source: Source, k: int, kind: Kind, repaired: bool
) -> Baseline | None:
    """A baseline from what a user has: a result or its JSON, a repair, or scores of these rows."""
    if baseline is None:
        return None
    if is_path(baseline) and Path(baseline).suffix == ".json":
        try:
            document = read_json(Path(baseline))
        except (ValueError, UnicodeDecodeError) as error:
            raise UnreadableFile(
                f"{baseline} must be JSON that oddslip wrote, got none."
            ) from error
        return _read_document(document, f"{baseline}", k, repaired)
    if isinstance(baseline, Mapping) or (
        hasattr(baseline, "to_dict") and hasattr(baseline, "findings")
    ):
        document = baseline if isinstance(baseline, Mapping) else baseline.to_dict()
        return _read_document(document, "the result given", k, repaired)
    if type(baseline).__name__ == "Evaluation":
        return _read_document(baseline.to_dict(), "the evaluation given", k, repaired)
    if is_path(baseline) and Path(baseline).suffix == ".oddslip":
        baseline = load_repair(baseline)
    baseline = getattr(baseline, "fitted_", baseline)
    if isinstance(baseline, FittedRepair):
        return Baseline("another repair of the same rows", {}, baseline.rank(source, k=k))
    has_kind = isinstance(baseline, Panel | Source)
    scores = open_twin(
        baseline, None if has_kind else kind, source, what="scores and baseline scores"
    )
    if source.partial:
        scores = CandidateSource(scores, source)
    return Baseline("other scores of the same rows", {}, rank(scores, k=k))


def _read_document(document: Any, name: str, k: int, repaired: bool) -> Baseline:
    schema = document.get("schema") if isinstance(document, Mapping) else None
    if schema not in SCHEMAS:
        raise InvalidInput(
            f"baseline must be the JSON of a diagnosis, an evaluation or a check, got {name} "
            f"with schema {schema!r:.40}."
        )
    if document.get("k") != k:
        raise InvalidInput(f"baseline must be at k={k}, got k={document.get('k')!r:.20} in {name}.")
    try:
        if schema == "oddslip.diagnosis/1":
            rungs = {rung["rung"]: rung["metrics"] for rung in document["ladder"]["rungs"]}
            rung = "chosen" if repaired and "chosen" in rungs else "raw"
            metrics_before, level = rungs[rung], document["ladder"]["bootstrap"]["level"]
            name = f"{rung} of {name}"
        else:
            metrics_before = document["metrics"]
            level = document["bootstrap"]["level"]
        reach = 2 * NormalDist().inv_cdf((1 + level) / 2)
        metrics = {}
        for metric in (metric for metric in NAMES if metric in metrics_before):
            value, low, high = (metrics_before[metric][part] for part in ("value", "low", "high"))
            if not all(is_number(each) for each in (value, low, high)):
                raise ValueError("no interval")
            metrics[metric] = (float(value), abs(float(high) - float(low)) / reach)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise InvalidInput(
            f"baseline must hold metrics with intervals, which {name} does not. Write it again, "
            "with labels and bootstrap replicates."
        ) from error
    return Baseline(name, metrics)
