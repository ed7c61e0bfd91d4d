"""`check`: compare served rows with the calibration rows, or gate raw scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from oddslip import DEFAULT_SEED
from oddslip.core.arguments import check_replicates, check_seed, is_number
from oddslip.core.formatting import count_of, estimated, score, signed_estimate
from oddslip.core.panel import Kind, Panel, check_k
from oddslip.core.results import as_frame, html_findings, html_table, label_frame, plain
from oddslip.core.types import Array, Ints, JsonObject, LabelsLike, ScoresLike
from oddslip.decisions.fitted_decision import FittedDecision, load_served
from oddslip.diagnosis.diagnose import diagnose
from oddslip.diagnosis.findings import CODES, Finding, Severity, order_findings
from oddslip.errors import InvalidInput
from oddslip.io.paths import is_path
from oddslip.metrics.at_k import NAMES, metric_name
from oddslip.metrics.evaluation import Estimate
from oddslip.metrics.ranking import rank
from oddslip.repairs.fingerprint import Fingerprint, take_fingerprint
from oddslip.repairs.fitted_repair import (
    FittedRepair,
    align_labels,
    check_kind,
    match_kind,
    rank_mapped,
)
from oddslip.serving.alarms import (
    COMPARED,
    COMPARED_AT_K,
    LABELLED,
    comparison_alarms,
    guarantee_broken,
    no_fingerprint,
    performance_alarms,
    raw_alarms,
    verdict_alarm,
)
from oddslip.serving.monitor import CalibrationComparison, compare_with_calibration
from oddslip.serving.performance import (
    DROP_LEVEL,
    Baseline,
    BaselineLike,
    Performance,
    check_guarantee,
    drifted_labels,
    perform,
    read_baseline,
)
from oddslip.shifts import saturation
from oddslip.sources import Source
from oddslip.sources.open import Nan, kind_for, open_rows

if TYPE_CHECKING:
    from pandas import DataFrame

Measures = dict[str, dict[str, Any]]  # numbers now and before, by name
RepairLike = object  # a fitted repair, the path of a saved one, or None
LEVEL = 0.95
_Z = 1.959963984540054  # standard errors of such an interval


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class CheckResult:
    """The result of `check`; ``str(result)`` explains it.

    Attributes
    ----------
    passed : bool
        Whether no finding of ``fail_on`` and no significant drop was found.
    findings : tuple of Finding
        All findings, the most severe first.
    failed : tuple of str
        Codes of the findings that made the check fail.
    metrics : dict
        With labels, an `Estimate` of each metric at K; empty without.
    changes : dict
        Each metric now minus baseline, with 99% intervals; empty without labels or baseline.
    against : str
        Description of the baseline.
    measures : dict
        Numbers that need no labels, now and before: shares of saturated cells and of rows decided
        by ties, distinct scores, labels that drifted, expected precision. Before is None without a
        fingerprint. The expected precision is the mean probability of the labels shown, over all
        rows; with labels, ``measured`` is the share of the same labels that is true.
    looked_for : tuple of str
        Codes that these arguments allow to look for.
    k, n_rows, n_labels : int
        Slots per row, rows and labels.
    n_evaluated : int or None
        Rows with a true label, over which metrics are averaged; None without labels.
    label_names : tuple of str or None
        Names of the labels.
    labels : dict
        Columns with one value per label; empty without a fingerprint.
    """

    passed: bool
    findings: tuple[Finding, ...]
    failed: tuple[str, ...]
    metrics: dict[str, Estimate]
    changes: dict[str, Estimate]
    against: str
    measures: Measures
    looked_for: tuple[str, ...]
    k: int
    n_rows: int
    n_labels: int
    n_evaluated: int | None
    label_names: tuple[str, ...] | None
    labels: dict[str, Array]

    def finding(self, code: str) -> Finding | None:
        """The finding with this code, or None.

        Parameters
        ----------
        code : str
            Such as "OS501".
        """
        return next((finding for finding in self.findings if finding.code == code), None)

    @property
    def sentence(self) -> str:
        """The outcome in one line."""
        if not self.passed:
            return f"Not passed: {', '.join(self.failed)}."
        others = count_of(len(self.findings), "finding")
        return "Passed." if not self.findings else f"Passed, with {others}."

    def to_dict(self) -> JsonObject:
        """Built-in types: the output of ``--json``, and a line of the log."""
        return plain(  # type: ignore[no-any-return]
            {
                "schema": "oddslip.check/1",
                "passed": self.passed,
                "failed": self.failed,
                "findings": [finding.to_dict() for finding in self.findings],
                "looked_for": self.looked_for,
                "k": self.k,
                "n_rows": self.n_rows,
                "n_labels": self.n_labels,
                "n_evaluated": self.n_evaluated,
                "measures": self.measures,
                "metrics": {name: each.to_dict() for name, each in self.metrics.items()},
                "changes": {name: each.to_dict() for name, each in self.changes.items()},
                "against": self.against,
                "bootstrap": {"level": LEVEL, "change_level": DROP_LEVEL},
            }
        )

    def to_frame(self, what: Literal["measures", "labels"] = "measures") -> DataFrame:
        """A pandas data frame.

        Parameters
        ----------
        what : {"measures", "labels"}
            One row per measure and metric, or one row per label.
        """
        if what == "labels":
            if not self.labels:
                raise InvalidInput("labels need a repair with a fingerprint, got none.")
            return label_frame(self.labels, self.label_names)
        lines = self._lines()
        return as_frame(
            {
                name: [line[at] for line in lines]
                for at, name in enumerate(("what", "before", "now", "low", "high"))
            }
        )

    def _lines(self) -> list[tuple[str, float | None, float | None, float | None, float | None]]:
        """Name, value before, value now, and interval of every number."""
        lines = [
            (name, each["before"], each["now"], each.get("low"), each.get("high"))
            for name, each in self.measures.items()
        ]
        for name, each in self.metrics.items():
            change = self.changes.get(name)
            before = None if change is None else each.value - change.value
            lines.append((metric_name(name, self.k), before, each.value, each.low, each.high))
        return lines

    def __str__(self) -> str:
        """The result as text for a terminal or a log."""
        lines = [self.sentence, f"{self.n_rows:,} rows x {self.n_labels:,} labels, K = {self.k}."]
        for finding in self.findings:
            mark = "FAILED " if finding.code in self.failed else ""
            lines.append(f"\n{mark}{finding.code} {finding.severity}: {finding.sentence}")
            lines.append(f"    {finding.advice}")
        lines.append("")
        if self.n_evaluated is not None:
            lines.append(f"Over the {self.n_evaluated:,} rows with a true label:")
        for name, each in self.metrics.items():
            change = self.changes.get(name)
            suffix = "" if change is None else f", change {signed_estimate(change)}"
            lines.append(f"{metric_name(name, self.k)} {estimated(each)}{suffix}")
        if self.against:
            lines.append(f"Changes are against {self.against}, with {DROP_LEVEL:.0%} intervals.")
        expected = self.measures.get("expected_precision")
        if expected is not None:
            estimate = Estimate(expected["now"], expected["low"], expected["high"])
            others = "".join(
                f", {name} {score(expected[name])}"
                for name in ("before", "measured")
                if expected[name] is not None
            )
            doubt = "" if expected["trusted"] else " Scores drifted: do not trust the expectation."
            lines.append(
                f"Precision of the labels shown, over all {self.n_rows:,} rows: "
                f"expected {estimated(estimate)}{others}.{doubt}"
            )
        return "\n".join(lines).rstrip()

    def __repr__(self) -> str:
        return f"CheckResult({self.sentence!r}, n_rows={self.n_rows}, k={self.k})"

    def _repr_html_(self) -> str:
        rows = [
            [name.replace("_", " "), *("-" if each is None else f"{each:.4g}" for each in numbers)]
            for name, *numbers in self._lines()
        ]
        table = html_table(["", "before", "now", "low", "high"], rows, self.sentence)
        return f"<div>{table}{html_findings(self.findings)}</div>"


def check(
    repair: RepairLike,
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    k: int | None = None,
    baseline: BaselineLike = None,
    fail_on: str | Iterable[str] | None = None,
    max_drop: float = 0.01,
    kind: Kind | None = None,
    label_names: Sequence[str] | None = None,
    exclude: LabelsLike = None,
    nan: Nan = "refuse",
    n_replicates: int = 1000,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
) -> CheckResult:
    """Compare served rows with the calibration rows, or decide whether raw scores can be shipped.

    Without labels the scores and the top K are compared with the fingerprint of the calibration
    rows. With labels the metrics, the prevalences and the labels that were dead before are checked
    as well. On quiet days fewer than one run in twenty finds anything.

    Parameters
    ----------
    repair : Repair, FittedRepair, Decision, FittedDecision, path or None
        The repair that is served, or the decision: with labels its guarantee is checked too, unless
        it is by group. None for raw scores: with labels they are diagnosed, without
        labels they are searched for saturation and ties.
    scores, labels
        Rows to check, in any form `oddslip.evaluate` takes; labels are optional.
    k : int, optional
        Slots per row; default: the k of the repair. Required without one.
    baseline : optional
        Baseline of the metrics: a diagnosis, an evaluation or an earlier check, or the path of its
        JSON (two-sample intervals); another repair, or scores of the same rows (paired intervals).
        Default: the out-of-fold estimate of the repair.
    fail_on : str or sequence of str, optional
        "warning", "critical", "none", or codes such as "OS501,OS406". Default: "warning", and
        "critical" if raw scores are diagnosed. A significant drop always fails.
    max_drop : float
        A significant drop only fails if it is larger than this.
    kind : {"probability", "margin"}, optional
        What the scores are; default: probabilities, or what the repair was fitted on. Scores of a
        repair that look like the other kind are an error, unless it is given.
    label_names : sequence of str, optional
        Names of the labels; default: those of a frame or a file.
    exclude, nan
        Cells to ignore, as in `oddslip.rank`. Shares of a label are then over the rows that have
        it.
    n_replicates : int
        Bootstrap replicates of metrics.
    seed : int
        Seed of the intervals and levels.
    threads : int, optional
        Threads to use; default: all available cores.

    Returns
    -------
    CheckResult

    Examples
    --------
    >>> import oddslip
    >>> rng = np.random.default_rng(3)
    >>> scores = rng.random((600, 5))
    >>> repair = oddslip.Repair(k=2, rule="isotonic-0").fit(scores, rng.random((600, 5)) < scores)
    >>> print(check(repair, rng.random((400, 5))).sentence)
    Passed.
    >>> print(check(repair, rng.random((400, 5)) ** 4).failed)
    ('OS501', 'OS503', 'OS506', 'OS507', 'OS509')
    """
    n_replicates, seed = check_replicates(n_replicates), check_seed(seed)
    if not (is_number(max_drop) and 0 <= max_drop <= 1):
        raise InvalidInput(f"max_drop must be between 0 and 1, got {max_drop!r:.40}.")
    sampling = {"n_replicates": n_replicates, "seed": seed}
    settings = _Settings(baseline, _read_fail_on(fail_on), float(max_drop), sampling)
    options: dict[str, Any] = {"label_names": label_names, "exclude": exclude, "nan": nan}
    options["threads"] = threads
    if repair is None:
        source = open_rows(scores, labels, kind=kind, **options)
        if k is None:
            raise InvalidInput("k is needed to check raw scores: how many labels does a row show?")
        return _check_raw(source, check_k(k, source.n_labels), settings)
    fitted, decision = _read_served(repair)
    if kind is not None:
        match_kind(fitted, kind)
    declared = kind is not None or isinstance(scores, Source | Panel)
    kind = kind_for(scores, fitted.maps.kind)
    source = open_rows(scores, labels, kind=kind, **options)
    check_kind(fitted, source, declared=declared)
    fingerprint_k = fitted.fingerprint and fitted.fingerprint.k
    slots = fingerprint_k if k is None else k
    slots = fitted.parameters.get("k") if slots is None else slots
    if slots is None:
        raise InvalidInput("k is needed: this repair was fitted without one.")
    k = check_k(slots, source.n_labels)
    if fingerprint_k is not None and k != fingerprint_k:
        raise InvalidInput(
            f"k must be that of the repair's fingerprint, k={fingerprint_k}, got k={k}."
        )
    return _check_repaired(fitted, decision, source, k, settings)


class _Settings(NamedTuple):
    """Arguments of a check that do not depend on the rows."""

    baseline: BaselineLike
    fail_on: tuple[str, ...] | str
    max_drop: float
    sampling: dict[str, Any]


def _check_raw(source: Source, k: int, settings: _Settings) -> CheckResult:
    """Check raw scores before deployment."""
    baseline, fail_on, max_drop, sampling = settings
    performance, looked_for = None, ["OS202", "OS203"]
    if source.has_labels:
        diagnosis = diagnose(source, k=k, **sampling)
        findings = [*diagnosis.findings]
        if verdict := verdict_alarm(diagnosis):
            findings.append(verdict)
        before = read_baseline(baseline, source, k, source.kind, False)
        performance = perform(source, rank(source, k=k), diagnosis.prior, before, **sampling)
        findings += performance_alarms(performance, max_drop, "map", k, None, None, str)
        looked_for = [*(code for code in CODES if code < "OS5"), "OS508", "OS510"]
        stored = diagnosis.saturation
    else:
        _reject_baseline(baseline)
        stored = saturation(source, k=k, distinct=False)
        findings = [*raw_alarms(stored, source.kind)]
    measures = {
        "saturated_share": {"before": None, "now": stored.share},
        "tied_share": {"before": None, "now": stored.tied_rows / stored.n_rows},
    }
    default = "critical" if source.has_labels else "warning"
    return _conclude(
        source, k, findings, fail_on or default, performance, measures, looked_for, labels={}
    )


def _check_repaired(
    fitted: FittedRepair,
    decision: FittedDecision | None,
    source: Source,
    k: int,
    settings: _Settings,
) -> CheckResult:
    """Check the scores that a repair serves."""
    baseline, fail_on, max_drop, sampling = settings
    order = align_labels(fitted.label_names, fitted.maps.n_labels, source)
    at: slice | Ints = slice(None) if order is None else order
    maps = fitted.maps if order is None else fitted.maps.take(order)
    prior, before = fitted.record.prior[at], fitted.record.n_positives[at]
    now = take_fingerprint(source, maps, k)
    calibrated = fitted.fingerprint and fitted.fingerprint.take(order)
    findings: list[Finding] = []
    looked_for: list[str] = []
    comparison = None

    def name_of(label: int) -> str:
        return str(label) if source.label_names is None else source.label_names[label]

    if calibrated is None:
        findings.append(no_fingerprint())
    else:
        comparison = compare_with_calibration(calibrated, now, maps, prior, seed=sampling["seed"])
        findings += comparison_alarms(comparison, name_of)
        looked_for += [*COMPARED, *(COMPARED_AT_K if calibrated.k is not None else ())]
    performance = None
    if source.has_labels:
        earlier = read_baseline(baseline, source, k, fitted.maps.kind, True)
        metric = "map"
        if earlier is None:
            earlier, metric = _out_of_fold(calibrated)
        ranking = rank_mapped(source, maps, k)
        performance = perform(source, ranking, prior, earlier, **sampling)
        n_before: int | Ints = (
            fitted.n_rows if calibrated is None else np.maximum(1, calibrated.n_cells)
        )
        drift = drifted_labels(before, n_before, performance.counts, np.maximum(1, now.n_cells))
        findings += performance_alarms(performance, max_drop, metric, k, before, drift, name_of)
        looked_for += LABELLED
    else:
        _reject_baseline(baseline)
    guarantee = None if decision is None else check_guarantee(decision, source, order)
    if guarantee is not None:
        looked_for.append("OS512")
        if broken := guarantee_broken(guarantee):
            findings.append(broken)
    labels = {} if comparison is None else comparison.label_columns()
    measures = _measure(now, calibrated, comparison, performance)
    if guarantee is not None:
        measures[f"{guarantee.loss}_share"] = {
            "before": guarantee.risk_before,
            "now": guarantee.risk,
        }
    return _conclude(
        source, k, findings, fail_on or "warning", performance, measures, looked_for, labels
    )


def _out_of_fold(calibrated: Fingerprint | None) -> tuple[Baseline | None, str]:
    """What the repair reached on its calibration rows, if that was stored, and its metric."""
    if calibrated is None or calibrated.expected is None:
        return None, "map"
    expected = calibrated.expected
    metric = expected.metric if expected.metric in NAMES else "map"
    return Baseline("what the repair reached out of fold", {metric: expected[1:]}), metric


def _measure(
    now: Fingerprint,
    calibrated: Fingerprint | None,
    comparison: CalibrationComparison | None,
    performance: Performance | None,
) -> Measures:
    """Numbers that need no labels, now and before, and the measured precision."""

    def both(of: Callable[[Fingerprint], float], ranked: bool = False) -> dict[str, float | None]:
        missing = calibrated is None or (ranked and calibrated.k is None)
        return {"before": None if calibrated is None or missing else of(calibrated), "now": of(now)}

    value, error = now.shown
    drifted = None if comparison is None else int(comparison.drifted.sum())
    return {
        "saturated_share": both(lambda each: float(each.saturated.sum() / each.counts.sum())),
        "distinct_scores": both(lambda each: float(np.median(each.distinct))),
        "tied_share": both(lambda each: each.n_tied / each.n_rows, ranked=True),
        "drifted_labels": {"before": None, "now": drifted},
        "expected_precision": {
            **both(lambda each: each.shown[0], ranked=True),
            "low": value - _Z * error,
            "high": value + _Z * error,
            "trusted": not drifted,
            "measured": None if performance is None else performance.shown_true,
        },
    }


def _conclude(
    source: Source,
    k: int,
    findings: list[Finding],
    fail_on: tuple[str, ...] | str,
    performance: Performance | None,
    measures: Measures,
    looked_for: Sequence[str],
    labels: dict[str, Array],
) -> CheckResult:
    ordered = order_findings(findings)
    failed = tuple(
        dict.fromkeys(
            each.code for each in ordered if each.code == "OS508" or _fails(each, fail_on)
        )
    )
    return CheckResult(
        passed=not failed,
        findings=ordered,
        failed=failed,
        metrics={} if performance is None else performance.metrics,
        changes={} if performance is None else performance.changes,
        against="" if performance is None else performance.against,
        measures=measures,
        looked_for=tuple(sorted(looked_for)),
        k=k,
        n_rows=source.n_rows,
        n_labels=source.n_labels,
        n_evaluated=None if performance is None else performance.n_evaluated,
        label_names=source.label_names,
        labels=labels,
    )


def _fails(finding: Finding, fail_on: tuple[str, ...] | str) -> bool:
    if isinstance(fail_on, tuple):
        return finding.code in fail_on
    severities = get_args(Severity)
    return fail_on != "none" and severities.index(finding.severity) <= severities.index(fail_on)


def _read_fail_on(value: str | Iterable[str] | None) -> tuple[str, ...] | str:
    """A severity unchanged, codes as a tuple; empty for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        if value in ("critical", "warning", "none"):
            return value
        value = value.split(",")
    codes = tuple(str(code).strip().upper() for code in value)
    wrong = [code for code in codes if code not in CODES]
    if wrong or not codes:
        actual = repr(wrong[0])[:40] if wrong else "none"
        raise InvalidInput(
            f'fail_on must be "warning", "critical", "none" or codes of findings, got {actual}. '
            "docs/findings.md lists them."
        )
    return codes


def _read_served(value: RepairLike) -> tuple[FittedRepair, FittedDecision | None]:
    """The repair that is served, and the decision if there is one."""
    if is_path(value):
        value = load_served(value)
    fitted = getattr(value, "fitted_", value)
    if isinstance(fitted, FittedDecision):
        return fitted.repair, fitted
    if not isinstance(fitted, FittedRepair):
        raise InvalidInput(
            "repair must be a fitted Repair or Decision, the path of a saved one, or None, "
            f"got {value!r:.60}."
        )
    return fitted, None


def _reject_baseline(baseline: BaselineLike) -> None:
    if baseline is not None:
        raise InvalidInput("a baseline of metrics needs labels, got scores alone.")


__all__ = ["CheckResult", "check"]
