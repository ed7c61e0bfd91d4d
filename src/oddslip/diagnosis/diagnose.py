"""`diagnose`: what did the weights do, and what repairs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from oddslip import DEFAULT_SEED
from oddslip.core.arguments import check_replicates
from oddslip.core.panel import Kind
from oddslip.core.results import plain
from oddslip.core.row_ids import need_ids
from oddslip.core.types import LabelsLike, PerLabel, ScoresLike
from oddslip.diagnosis.case import OtherScores, Training, open_case
from oddslip.diagnosis.checks import CHECKS
from oddslip.diagnosis.findings import order_findings
from oddslip.diagnosis.measurements import measure
from oddslip.diagnosis.result import Diagnosis, Measurements, Variable
from oddslip.diagnosis.verdict import judge
from oddslip.metrics.at_k import NAMES, Scoring, check_choice
from oddslip.sources.open import Nan, open_rows

# Arguments that a line of Python repeats as variables.
DATA = (
    *("labels", "propensities", "weights", "unweighted", "calibration", "prior"),
    *("label_names", "exclude"),
)


def diagnose(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    k: int = 7,
    metric: str = "map",
    propensities: PerLabel = None,
    weights: PerLabel = None,
    unweighted: ScoresLike = None,
    calibration: Any = None,
    prior: PerLabel = None,
    kind: Kind | None = None,
    rounds: int | None = None,
    learning_rate: float | None = None,
    max_delta_step: float | None = None,
    seed: int = DEFAULT_SEED,
    n_replicates: int = 2000,
    keyed: bool = False,
    label_names: Sequence[str] | None = None,
    exclude: LabelsLike = None,
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
        Require row ids. Folds, draws and samples follow from them where rows have ids, and from
        row numbers elsewhere; with ids they are the same however rows are ordered.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    exclude, nan
        Cells that count for nothing, as in `oddslip.rank`: they take no slot, are neither true
        nor false, and no map is fitted on them.
    threads : int, optional
        Threads to use; all available cores by default.

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
    passed = dict(locals())
    n_replicates = check_replicates(n_replicates)
    check_choice("metric", metric, NAMES)
    whole = open_rows(
        scores,
        labels,
        kind=kind,
        label_names=label_names,
        exclude=exclude,
        nan=nan,
        threads=threads,
        purpose="diagnose",
    )
    if keyed or not whole.ordered:
        need_ids(whole.has_ids, "diagnosing rows")
    case = open_case(
        whole,
        Scoring(k, metric, propensities),
        Training(weights, prior, rounds, learning_rate, max_delta_step),
        OtherScores(unweighted, calibration, exclude, nan),
        seed=seed,
    )
    return _with_verdict(measure(case, n_replicates), _describe_arguments(passed))


def _with_verdict(measured: Measurements, arguments: dict[str, Any]) -> Diagnosis:
    """Attach findings and the verdict."""
    findings = [finding for check in CHECKS if (finding := check(measured)) is not None]
    return Diagnosis(
        **{field.name: getattr(measured, field.name) for field in fields(measured)},
        findings=order_findings(findings),
        verdict=judge(measured),
        arguments=arguments,
    )


def _describe_arguments(passed: dict[str, Any]) -> dict[str, Any]:
    """The arguments that are not at their default: settings by value, data as variables."""
    arguments: dict[str, Any] = {}
    for name, default in {"labels": None, **(diagnose.__kwdefaults__ or {})}.items():
        value = passed[name]
        if name == "threads":  # these change no answer
            continue
        if name == "calibration" and isinstance(value, tuple | list):
            arguments[name] = _describe_rows(value)
        elif name in DATA and value is not None:
            arguments[name] = Variable(name)
        elif name not in DATA and value != default:
            arguments[name] = plain(value)
    return arguments


def _describe_rows(calibration: Sequence[Any]) -> tuple[Variable | None, ...]:
    """Variables for calibration rows in the form that was passed, without a last None."""
    names = ("scores", "labels", "exclude")
    variables = [
        None if value is None else Variable(f"calibration_{name}")
        for name, value in zip(names, calibration, strict=False)
    ]
    return tuple(variables if variables[-1] is not None else variables[:2])
