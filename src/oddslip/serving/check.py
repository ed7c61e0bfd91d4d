"""`check`: is what is served still what was calibrated, and is a model safe to ship?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from oddslip import DEFAULT_SEED
from oddslip.calibrators.fingerprint import Fingerprint, take_fingerprint
from oddslip.calibrators.fitted_repair import (
    FittedRepair,
    align_labels,
    load_repair,
    open_as,
    rank_mapped,
)
from oddslip.core.arguments import check_replicates, check_seed, is_number
from oddslip.core.formatting import count_of, estimated, score, signed_estimate
from oddslip.core.panel import Kind, check_k
from oddslip.core.results import as_frame, html_findings, html_table, label_frame, plain
from oddslip.diagnosis.diagnose import diagnose
from oddslip.diagnosis.findings import CODES, Finding, Severity, order_findings
from oddslip.errors import InvalidInput
from oddslip.io.paths import is_path
from oddslip.metrics.evaluation import NAMES, Estimate, metric_name
from oddslip.metrics.ranking import rank
from oddslip.serving.alarms import (
    LABELLED,
    WATCHED,
    WATCHED_AT_K,
    no_fingerprint,
    performance_alarms,
    raw_alarms,
    verdict_alarm,
    watch_alarms,
)
from oddslip.serving.monitor import Watch, watch
from oddslip.serving.performance import (
    DROP_LEVEL,
    Baseline,
    Performance,
    drifted_labels,
    perform,
    read_baseline,
)
from oddslip.shifts import saturation
from oddslip.sources import Source, open_source
from oddslip.sources.open import Nan

LEVEL = 0.95
_REACH = 1.959963984540054  # standard errors of such an interval


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class CheckResult:
    """What `check` found. ``passed`` says whether to go on; ``str(result)`` says why not.

    Attributes
    ----------
    passed : bool
        No finding that was asked to fail, and no sure drop.
    findings : tuple of Finding
        The gravest first.
    failed : tuple of str
        Codes of the findings for which it did not pass.
    metrics : dict
        With labels, an `Estimate` of each metric at K; empty without.
    changes : dict
        Each metric now minus baseline, with intervals at 99%; empty without labels or baseline.
    against : str
        What the baseline was, in words.
    measures : dict
        What needs no labels, now and before: shares of saturated cells and of rows decided by
        ties, distinct scores, labels that drifted, expected precision. Before is None without a
        fingerprint. The expected precision is the mean probability of the labels shown, over all
        rows; with labels, ``measured`` is the share of the same labels that is true.
    looked_for : tuple of str
        Codes that could have been found with what was given.
    k, n_rows, n_labels : int
        Slots per row, and the size of what was checked.
    n_evaluated : int or None
        Rows with a true label, over which metrics are averaged; None without labels.
    label_names : tuple of str or None
    """

    passed: bool
    findings: tuple[Finding, ...]
    failed: tuple[str, ...]
    metrics: dict[str, Estimate]
    changes: dict[str, Estimate]
    against: str
    measures: dict[str, dict[str, Any]]
    looked_for: tuple[str, ...]
    k: int
    n_rows: int
    n_labels: int
    n_evaluated: int | None
    label_names: tuple[str, ...] | None
    labels: dict[str, Any]

    def finding(self, code: str) -> Finding | None:
        """The finding of this code, if it was made."""
        return next((finding for finding in self.findings if finding.code == code), None)

    @property
    def sentence(self) -> str:
        """The outcome in one line."""
        if not self.passed:
            return f"Not passed: {', '.join(self.failed)}."
        others = count_of(len(self.findings), "finding")
        return "Passed." if not self.findings else f"Passed, with {others}."

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only: what ``--json`` prints, and a line of the log."""
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

    def to_frame(self, what: Literal["measures", "labels"] = "measures") -> Any:
        """A pandas frame of all numbers, or with one line per label."""
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

    def _lines(self) -> list[tuple[str, Any, Any, Any, Any]]:
        """Every number: what it is, before, now, and the ends of its interval."""
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
        """Words for a terminal or a log."""
        told = [self.sentence, f"{self.n_rows:,} rows x {self.n_labels:,} labels, K = {self.k}."]
        for finding in self.findings:
            mark = "FAILED " if finding.code in self.failed else ""
            told.append(f"\n{mark}{finding.code} {finding.severity}: {finding.sentence}")
            told.append(f"    {finding.advice}")
        told.append("")
        if self.n_evaluated is not None:
            told.append(f"Over the {self.n_evaluated:,} rows with a true label:")
        for name, each in self.metrics.items():
            change = self.changes.get(name)
            beside = "" if change is None else f", change {signed_estimate(change)}"
            told.append(f"{metric_name(name, self.k)} {estimated(each)}{beside}")
        if self.against:
            told.append(f"Changes are against {self.against}, with {DROP_LEVEL:.0%} intervals.")
        expected = self.measures.get("expected_precision")
        if expected is not None:
            estimate = Estimate(expected["now"], expected["low"], expected["high"])
            others = "".join(
                f", {name} {score(expected[name])}"
                for name in ("before", "measured")
                if expected[name] is not None
            )
            doubt = "" if expected["trusted"] else " Scores drifted: do not trust the expectation."
            told.append(
                f"Precision of the labels shown, over all {self.n_rows:,} rows: "
                f"expected {estimated(estimate)}{others}.{doubt}"
            )
        return "\n".join(told).rstrip()

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
    repair: Any,
    scores: Any,
    labels: Any = None,
    *,
    k: int | None = None,
    baseline: Any = None,
    fail_on: str | Iterable[str] | None = None,
    max_drop: float = 0.01,
    kind: Kind | None = None,
    label_names: Sequence[str] | None = None,
    exclude: Any = None,
    nan: Nan = "refuse",
    n_replicates: int = 1000,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
) -> CheckResult:
    """Hold what is served against what was calibrated; or say whether raw scores may be shipped.

    Without labels the scores, and what the repair shows of them, are compared with the fingerprint
    of the calibration rows. With labels the metrics, the prevalences and the labels that came alive
    are looked at as well. On quiet days fewer than one run in twenty finds anything.

    Parameters
    ----------
    repair : Repair, FittedRepair, path or None
        What is served. None for raw scores: with labels they are diagnosed, without labels they are
        searched for saturation and ties.
    scores, labels
        Of the rows to check, in any form `oddslip.evaluate` takes; labels may be left out.
    k : int, optional
        Slots per row; as many as the repair was made for unless told, needed without one.
    baseline : optional
        What metrics are compared with: a diagnosis, an evaluation or an earlier check, or the path
        of its JSON (two-sample intervals); another repair, or scores of the same rows (paired
        intervals). Unless told, what the repair reached out of fold.
    fail_on : str or sequence of str, optional
        "warning", "critical", "none", or codes such as "OS501,OS406". Unless told "warning", and
        "critical" where raw scores are diagnosed. A sure drop always fails.
    max_drop : float
        A drop that is sure fails if it is larger than this.
    kind : {"probability", "margin"}, optional
        What the scores are; a repair knows.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    exclude, nan
        Cells that count for nothing, as in `oddslip.rank`. Every share of a label is then over the
        rows that have it.
    n_replicates : int
        Bootstrap replicates of metrics.
    seed : int
        Same seed, same intervals and levels.
    threads : int, optional
        Threads to use; all cores available unless told.

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
    wanted = _read_fail_on(fail_on)
    drawn: dict[str, Any] = {"n_replicates": n_replicates, "seed": seed, "threads": threads}
    if repair is None:
        source = open_source(
            scores, labels, kind=kind, label_names=label_names, exclude=exclude, nan=nan
        )
        if k is None:
            raise InvalidInput("k is needed to check raw scores: how many labels does a row show?")
        k = check_k(k, source.n_labels)
        return _check_raw(source, k, baseline, wanted, float(max_drop), drawn)
    fitted = _read_repair(repair)
    if kind is not None and kind != fitted.maps.kind:
        raise InvalidInput(f"this repair was fitted on {fitted.maps.kind} scores, got {kind!r}.")
    source = open_as(fitted.maps.kind, scores, labels, label_names, exclude=exclude, nan=nan)
    known = fitted.fingerprint and fitted.fingerprint.k
    chosen = known if k is None else k
    chosen = fitted.parameters.get("k") if chosen is None else chosen
    if chosen is None:
        raise InvalidInput("k is needed: this repair was fitted without one.")
    k = check_k(chosen, source.n_labels)
    if known is not None and k != known:
        raise InvalidInput(f"k must be that of the repair's fingerprint, k={known}, got k={k}.")
    return _check_repaired(fitted, source, k, baseline, wanted, float(max_drop), drawn)


def _check_raw(
    source: Source,
    k: int,
    baseline: Any,
    fail_on: tuple[str, ...] | str,
    max_drop: float,
    drawn: dict[str, Any],
) -> CheckResult:
    """Raw scores before deployment."""
    threads = drawn["threads"]
    done, looked_for = None, ["OS202", "OS203"]
    if source.has_labels:
        diagnosis = diagnose(source, k=k, **drawn)
        findings = [*diagnosis.findings]
        if verdict := verdict_alarm(diagnosis):
            findings.append(verdict)
        before = read_baseline(baseline, source, k, source.kind, False, threads)
        done = perform(source, rank(source, k=k, threads=threads), diagnosis.prior, before, **drawn)
        findings += performance_alarms(done, max_drop, "map", k, None, None, str)
        looked_for = [*(code for code in CODES if code < "OS5"), "OS508", "OS510"]
        stored = diagnosis.saturation
    else:
        _refuse_baseline(baseline)
        stored = saturation(source, k=k, distinct=False, threads=threads)
        findings = [*raw_alarms(stored, source.kind)]
    measures = {
        "saturated_share": {"before": None, "now": stored.share},
        "tied_share": {"before": None, "now": stored.tied_rows / stored.n_rows},
    }
    unless_told = "critical" if source.has_labels else "warning"
    return _conclude(
        source, k, findings, fail_on or unless_told, done, measures, looked_for, labels={}
    )


def _check_repaired(
    fitted: FittedRepair,
    source: Source,
    k: int,
    baseline: Any,
    fail_on: tuple[str, ...] | str,
    max_drop: float,
    drawn: dict[str, Any],
) -> CheckResult:
    """What a repair serves."""
    threads = drawn["threads"]
    order = align_labels(fitted.label_names, fitted.maps.n_labels, source)
    at: Any = slice(None) if order is None else order
    maps = fitted.maps if order is None else fitted.maps.take(order)
    prior, before = fitted.record.prior[at], fitted.record.n_positives[at]
    now = take_fingerprint(source, maps, k, threads)
    kept = fitted.fingerprint and fitted.fingerprint.take(order)
    findings: list[Finding] = []
    looked_for: list[str] = []
    seen = None

    def name_of(label: int) -> str:
        return str(label) if source.label_names is None else source.label_names[label]

    if kept is None:
        findings.append(no_fingerprint())
    else:
        seen = watch(kept, now, maps, prior, seed=drawn["seed"])
        findings += watch_alarms(seen, name_of)
        looked_for += [*WATCHED, *(WATCHED_AT_K if kept.k is not None else ())]
    done = None
    if source.has_labels:
        earlier = read_baseline(baseline, source, k, fitted.maps.kind, True, threads)
        metric = "map"
        if earlier is None and kept is not None and kept.expected is not None:
            metric = kept.expected.metric if kept.expected.metric in NAMES else "map"
            earlier = Baseline("what the repair reached out of fold", {metric: kept.expected[1:]})
        ranking = rank_mapped(source, maps, k, threads=threads)
        done = perform(source, ranking, prior, earlier, **drawn)
        n_before: Any = fitted.n_rows if kept is None else np.maximum(1, kept.n_cells)
        drift = drifted_labels(before, n_before, done.counts, np.maximum(1, now.n_cells))
        findings += performance_alarms(done, max_drop, metric, k, before, drift, name_of)
        looked_for += LABELLED
    else:
        _refuse_baseline(baseline)
    labels = {} if seen is None else seen.label_columns()
    measures = _measure(now, kept, seen, done)
    return _conclude(source, k, findings, fail_on or "warning", done, measures, looked_for, labels)


def _measure(
    now: Fingerprint, kept: Fingerprint | None, seen: Watch | None, done: Performance | None
) -> dict[str, dict[str, Any]]:
    """The numbers that need no labels, now and before; beside the expected precision the true."""

    def both(of: Any, ranked: bool = False) -> dict[str, Any]:
        missing = kept is None or (ranked and kept.k is None)
        return {"before": None if missing else of(kept), "now": of(now)}

    value, error = now.shown
    drifted = None if seen is None else int(seen.drifted.sum())
    return {
        "saturated_share": both(lambda each: float(each.saturated.sum() / each.counts.sum())),
        "distinct_scores": both(lambda each: float(np.median(each.distinct))),
        "tied_share": both(lambda each: each.n_tied / each.n_rows, ranked=True),
        "drifted_labels": {"before": None, "now": drifted},
        "expected_precision": {
            **both(lambda each: each.shown[0], ranked=True),
            "low": value - _REACH * error,
            "high": value + _REACH * error,
            "trusted": not drifted,
            "measured": None if done is None else done.shown_true,
        },
    }


def _conclude(
    source: Source,
    k: int,
    findings: list[Finding],
    fail_on: tuple[str, ...] | str,
    done: Performance | None,
    measures: dict[str, dict[str, Any]],
    looked_for: Sequence[str],
    labels: dict[str, Any],
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
        metrics={} if done is None else done.metrics,
        changes={} if done is None else done.changes,
        against="" if done is None else done.against,
        measures=measures,
        looked_for=tuple(sorted(looked_for)),
        k=k,
        n_rows=source.n_rows,
        n_labels=source.n_labels,
        n_evaluated=None if done is None else done.n_evaluated,
        label_names=source.label_names,
        labels=labels,
    )


def _fails(finding: Finding, fail_on: tuple[str, ...] | str) -> bool:
    if isinstance(fail_on, tuple):
        return finding.code in fail_on
    grave = get_args(Severity)
    return fail_on != "none" and grave.index(finding.severity) <= grave.index(fail_on)


def _read_fail_on(given: Any) -> tuple[str, ...] | str:
    """A severity as it is, codes as a tuple; empty where nothing was told."""
    if given is None:
        return ""
    if isinstance(given, str):
        if given in ("critical", "warning", "none"):
            return given
        given = given.split(",")
    codes = tuple(str(code).strip().upper() for code in given)
    wrong = [code for code in codes if code not in CODES]
    if wrong or not codes:
        came = repr(wrong[0])[:40] if wrong else "none"
        raise InvalidInput(
            f'fail_on must be "warning", "critical", "none" or codes of findings, got {came}. '
            "docs/findings.md lists them."
        )
    return codes


def _read_repair(given: Any) -> FittedRepair:
    if is_path(given):
        return load_repair(given)
    fitted = getattr(given, "fitted_", given)
    if not isinstance(fitted, FittedRepair):
        raise InvalidInput(
            f"repair must be a fitted Repair, the path of a saved one, or None, got {given!r:.60}."
        )
    return fitted


def _refuse_baseline(baseline: Any) -> None:
    if baseline is not None:
        raise InvalidInput("a baseline of metrics needs labels, got scores alone.")


__all__ = ["CheckResult", "check"]
