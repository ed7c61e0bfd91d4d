"""`diagnose`: what did the weights do, and what repairs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from oddslip import DEFAULT_SEED
from oddslip.core.arguments import check_replicates
from oddslip.core.panel import Kind
from oddslip.diagnosis.case import Case, open_case
from oddslip.diagnosis.checks import CHECKS
from oddslip.diagnosis.decomposition import decompose
from oddslip.diagnosis.drift import find_drift
from oddslip.diagnosis.findings import order_findings
from oddslip.diagnosis.label_shifts import find_shifts
from oddslip.diagnosis.ladder import Ladder, ladder_of_sums
from oddslip.diagnosis.readings.climb import Climb, climb
from oddslip.diagnosis.result import Diagnosis, Measurements, Missing, Overlap, Ties
from oddslip.diagnosis.signal import find_likeness
from oddslip.diagnosis.verdict import judge
from oddslip.metrics.bootstrap import bootstrap_rows
from oddslip.metrics.reliability import reliability_of
from oddslip.shifts import overlap
from oddslip.sources.open import Nan


def diagnose(
    scores: Any,
    labels: Any = None,
    *,
    k: int = 7,
    metric: str = "map",
    propensities: Any = None,
    weights: Any = None,
    unweighted: Any = None,
    calibration: Any = None,
    prior: Any = None,
    kind: Kind | None = None,
    rounds: int | None = None,
    learning_rate: float | None = None,
    max_delta_step: float | None = None,
    seed: int = DEFAULT_SEED,
    n_replicates: int = 2000,
    keyed: bool = False,
    label_names: Sequence[str] | None = None,
    exclude: Any = None,
    nan: Nan = "refuse",
    threads: int | None = None,
) -> Diagnosis:
    """Find out whether class weights have broken a top-K ranker, how, and what repairs it.

    Works with whatever is there; ``missing`` of the result says what more input would allow.

    Parameters
    ----------
    scores, labels : array-like of shape (n_rows, n_labels), data frames, paths, or a Panel
    k : int
        Slots per row, ``1 <= k <= n_labels``.
    metric : {"map", "precision", "recall", "ndcg", "psp", "hit_rate"}
        What you deploy by, at K: rungs are compared, the repair is chosen, the loss is split and
        the verdict is given in it.
    propensities : array-like or "weights", optional
        For PSP; by default from the counts of the evaluated labels. "weights" are propensities
        1 / w: the metric that weighted training approximates.
    weights : number, array-like of shape (n_labels,) or str, optional
        The positive weight each label was trained with. A name such as "balanced", "sqrt" or
        "10x" is resolved on ``prior`` where given, which makes it the weight of the training
        rows; else on the labels given here: the ratio on those rows, near that in training
        only where labels are as frequent.
    unweighted : optional
        Scores of the unweighted twin for the same rows: the loss and its parts.
    calibration : (scores, labels), (scores, labels, exclude) or Panel, optional
        Rows held out to calibrate on (deployment protocol). Without them the rows calibrate one
        another: maps fitted on all folds but one rank that one (cross-fitted protocol).
    prior : array-like, optional
        Prevalence of each label among the training rows; else that of the calibration rows.
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise.
    rounds, learning_rate, max_delta_step : optional
        Of the booster, for the step budget.
    seed : int
        Same seed, same folds and intervals.
    n_replicates : int
        Bootstrap replicates; 0 for none.
    keyed : bool
        Let the keys of row ids decide folds, draws and samples, as is always done on Spark: the
        same diagnosis however rows are ordered. Needs row ids.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    exclude, nan
        Cells that count for nothing, as in `oddslip.rank`: they take no slot, are neither true
        nor false, and no map is fitted on them.
    threads : int, optional
        Threads to use; all cores available unless told.

    Examples
    --------
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(2000, 30, seed=1)
    >>> diagnosis = diagnose(
    ...     pair.weighted, pair.labels, k=7, weights=pair.weights, n_replicates=100
    ... )
    >>> diagnosis.verdict.code
    'repairable_by_inversion'
    """
    n_replicates = check_replicates(n_replicates)
    case = open_case(
        scores, labels, k=k, metric=metric, propensities=propensities, weights=weights,
        unweighted=unweighted, calibration=calibration, prior=prior, kind=kind, rounds=rounds,
        learning_rate=learning_rate, max_delta_step=max_delta_step, seed=seed, keyed=keyed,
        label_names=label_names, exclude=exclude, nan=nan, threads=threads,
    )  # fmt: skip
    if case.keyed:
        from oddslip.diagnosis.readings.keyed import measure_keyed

        return _conclude(_gather(case, **measure_keyed(case, n_replicates)))
    return _conclude(_measure(case, climb(case), n_replicates))


def _conclude(measured: Measurements) -> Diagnosis:
    """The numbers with all they give rise to say."""
    findings = [finding for check in CHECKS if (finding := check(measured)) is not None]
    return Diagnosis(
        **{field.name: getattr(measured, field.name) for field in fields(measured)},
        findings=order_findings(findings),
        verdict=judge(measured),
    )


def _measure(case: Case, climbed: Climb, n_replicates: int) -> Measurements:
    evaluated = case.arm.positives().counts > 0
    sums = bootstrap_rows(
        np.hstack([*climbed.values.values(), np.ones((int(evaluated.sum()), 1))]),
        case.arm.row_keys()[evaluated],
        n_replicates=n_replicates,
        seed=case.seed,
        threads=case.threads,
    )
    ladder = ladder_of_sums(
        sums,
        list(climbed.values),
        k=case.k,
        n_rows=case.arm.n_rows,
        metric=case.metric,
        seed=case.seed,
    )
    shared = None
    if climbed.raw is not None and climbed.twin is not None:
        counts = overlap(climbed.raw, climbed.twin)
        shown = (climbed.raw >= 0).sum(axis=1)
        shared = Overlap(float(counts.mean()), float(np.mean(counts < shown)))
    return _gather(
        case,
        ladder=ladder,
        chosen=climbed.chosen,
        signal=climbed.signal,
        likeness=find_likeness(climbed.samples, case.seed),
        shifts=find_shifts(case, climbed.asides.realized, climbed.samples),
        saturation=climbed.asides.saturation,
        ties=Ties.of_sums(climbed.n_tied, climbed.bounds, case.metric, ladder.n_evaluated),
        takeover=climbed.takeover,
        overlap=shared,
        drift=find_drift(case, climbed.unseen, climbed.marks),
        shown={name: reliability_of(each, case.k) for name, each in climbed.shown.items()},
    )


def _gather(case: Case, *, ladder: Ladder, **found: Any) -> Measurements:
    """What was found, with what is known of the case."""
    return Measurements(
        **found,
        ladder=ladder,
        decomposition=decompose(ladder),
        missing=tuple(_list_missing(case)),
        protocol=case.protocol,
        k=case.k,
        kind=case.arm.kind,
        dtype=str(case.arm.dtype),
        n_rows=case.arm.n_rows,
        n_calibration_rows=case.calibration.n_rows,
        label_names=case.names,
        weights=case.weights,
        prior=case.prior,
        prior_source=case.prior_source,
        calibration_counts=case.calibration_counts,
        evaluation_counts=case.evaluation_counts,
        seed=case.seed,
    )


def _list_missing(case: Case) -> list[Missing]:
    """What could not be computed, and the input that would allow it."""
    weights, twin = case.weights is None, case.twin is None
    needs = [name for name, lacks in (("weights", weights), ("unweighted", twin)) if lacks]
    table = (
        (weights, "inversion, intended shift and its ratio to the realized", "weights"),
        (twin, "the loss and its parts, direct shift, overlap with the twin", "unweighted"),
        (weights or twin, "what-if and the odds share of the loss", " and ".join(needs)),
        (
            not case.calibration_counts.any(),
            "calibrated rungs",
            "calibration rows with a positive",
        ),
        (case.crossed, "the deployment protocol", "calibration"),
        (
            not case.prior_given,
            "shifts and popularity by training prevalence (calibration's is used)",
            "prior",
        ),
        (case.budget is None, "the step budget", "rounds, learning_rate and max_delta_step"),
    )
    return [Missing(what, needed) for lacks, what, needed in table if lacks]
