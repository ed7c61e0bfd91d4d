"""Findings of a check: sentences, evidence and advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from oddslip.core.formatting import (
    count_of,
    nat,
    percent,
    score,
    signed_estimate,
    small_percent,
)
from oddslip.core.types import Bools, Floats, Ints, JsonObject
from oddslip.diagnosis.comparison import is_gain
from oddslip.diagnosis.findings import Finding, Severity
from oddslip.diagnosis.result import Diagnosis
from oddslip.diagnosis.thresholds import (
    DRIFT_RULES,
    DRIFT_SHARE,
    SATURATED_SHARE,
    TIED_SHARE,
    UNSEEN_POSITIVES,
)
from oddslip.metrics.at_k import metric_name
from oddslip.metrics.evaluation import Estimate
from oddslip.serving.monitor import CalibrationComparison
from oddslip.serving.performance import GuaranteeCheck, Performance
from oddslip.shifts import Saturation

NameOf = Callable[[int], str]
MAX_NAMED = 10  # labels named in the evidence
SAFE = ("healthy", "common_weight", "keep_raw")  # verdicts under which raw scores may be shipped
COMPARED = ("OS501", "OS503", "OS504", "OS505", "OS509")
COMPARED_AT_K = ("OS502", "OS506", "OS507")
LABELLED = ("OS201", "OS404", "OS406", "OS508")


def comparison_alarms(comparison: CalibrationComparison, name_of: NameOf) -> Iterator[Finding]:
    """OS501 to OS507 and OS509: differences from the calibration rows."""
    alarms = (scores_moved, slots_moved, shift_moved, more_saturated, coarser, more_ties)
    for alarm in (*alarms, precision_moved, unexplained):
        if finding := alarm(comparison, name_of):
            yield finding


def scores_moved(comparison: CalibrationComparison, name_of: NameOf) -> Finding | None:
    """OS501."""
    which = comparison.scores_moved
    if not which.any():
        return None
    cut, before, now = comparison.furthest
    at = _furthest(which, now - before)
    return Finding(
        "OS501",
        _severity(comparison, which),
        f"The scores of {_count(which)} moved. Furthest {name_of(at)!r:.60}: "
        f"{small_percent(now[at])} of its rows lie above log-odds of {nat(cut[at])}, "
        f"{small_percent(before[at])} did.",
        _evidence(comparison, which, now - before, name_of),
        _advise_drift(comparison),
    )


def slots_moved(comparison: CalibrationComparison, name_of: NameOf) -> Finding | None:
    """OS502."""
    which = comparison.slots_moved
    if not which.any():
        return None
    before, now = (each.per_cell(each.slots) for each in (comparison.calibrated, comparison.now))
    at = _furthest(which, now - before)
    are = "is" if which.sum() == 1 else "are"
    return Finding(
        "OS502",
        _severity(comparison, which),
        f"{_count(which)} {are} shown more or less often. Furthest {name_of(at)!r:.60}: in "
        f"{small_percent(now[at])} of {_rows_of(comparison)}, "
        f"before in {small_percent(before[at])}.",
        _evidence(comparison, which, now - before, name_of),
        "See whether scores moved (OS501, OS503) or other rows are served.",
    )


def shift_moved(comparison: CalibrationComparison, name_of: NameOf) -> Finding | None:
    """OS503."""
    which, gap = comparison.shifted, comparison.shift_now - comparison.shift_before
    if not which.any():
        return None
    at = _furthest(which, gap)
    return Finding(
        "OS503",
        _severity(comparison, which),
        f"The label-free shift of {_count(which)} moved. Furthest {name_of(at)!r:.60}: by "
        f"{gap[at]:+.2f} nat, to {nat(comparison.shift_now[at])}.",
        _evidence(comparison, which, gap, name_of),
        _advise_drift(comparison),
    )


def more_saturated(comparison: CalibrationComparison, name_of: NameOf) -> Finding | None:
    """OS504."""
    which = comparison.saturated
    if not which.any():
        return None
    before, now = (
        float(each.saturated.sum() / each.counts.sum())
        for each in (comparison.calibrated, comparison.now)
    )
    have = "has" if which.sum() == 1 else "have"
    return Finding(
        "OS504",
        "critical" if now > SATURATED_SHARE else "warning",
        f"{_count(which)} {have} more cells at exactly 1.0: {small_percent(now)} of all cells, "
        f"before {small_percent(before)}.",
        _evidence(comparison, which, comparison.now.saturated, name_of)
        | {"share_before": before, "share_now": now},
        "Do not deploy a model retrained so. Retrain with a cap on the leaf step "
        "(max_delta_step), or without label-specific weights.",
    )


def coarser(comparison: CalibrationComparison, name_of: NameOf) -> Finding | None:
    """OS505."""
    which, before, now = comparison.coarser, comparison.calibrated.distinct, comparison.now.distinct
    if not which.any():
        return None
    at = _furthest(which, before / now)
    return Finding(
        "OS505",
        _severity(comparison, which),
        f"The scores of {_count(which)} became coarser. Furthest {name_of(at)!r:.60}: as if of "
        f"{now[at]:.3g} different scores, before of {before[at]:.3g}.",
        _evidence(comparison, which, before / now, name_of),
        "Look for rounding on the way, a default in place of a score, or a model of a few leaves.",
    )


def more_ties(comparison: CalibrationComparison, name_of: NameOf) -> Finding | None:
    """OS506."""
    if not comparison.ties:
        return None
    before, now = (each.n_tied / each.n_rows for each in (comparison.calibrated, comparison.now))
    return Finding(
        "OS506",
        "critical" if now >= 0.5 else "warning",
        f"Ties decide the top {comparison.now.k} in {small_percent(now)} of the rows, before in "
        f"{small_percent(before)}.",
        {"share_before": before, "share_now": now, "n_rows": comparison.now.n_tied},
        "Equal values rank by label index. Remove the cause: saturated, rounded or very coarse "
        "scores.",
    )


def precision_moved(comparison: CalibrationComparison, name_of: NameOf) -> Finding | None:
    """OS507."""
    if not comparison.precision_moved:
        return None
    (before, _), (now, _) = comparison.calibrated.shown, comparison.now.shown
    drifted = bool(comparison.drifted.any())
    doubt = " Scores drifted, so it is not to be trusted." if drifted else ""
    return Finding(
        "OS507",
        "warning",
        f"The expected precision of the labels shown is {score(now)}, before {score(before)}."
        f"{doubt}",
        {"before": before, "now": now, "trusted": not drifted},
        "It is the mean probability of what is shown, and right as long as the repair is. Check "
        "with labels as soon as they are there.",
    )


def unexplained(comparison: CalibrationComparison, name_of: NameOf) -> Finding | None:
    """OS509."""
    if comparison.prior_shift is None:
        return None
    which = comparison.drifted & ~comparison.prior_shift.fits
    if not which.any():
        return None
    gap = comparison.shift_now - comparison.shift_before
    return Finding(
        "OS509",
        "warning",
        f"No change of prevalence explains how the scores of {_count(which)} moved: they moved "
        "among the true or the false rows as well.",
        _evidence(comparison, which, gap, name_of),
        'Do not correct them with prior_shift="em", which leaves them as they are. Fit the repair '
        "again on recent rows.",
    )


def _advise_drift(comparison: CalibrationComparison) -> str:
    if comparison.prior_shift is not None and comparison.prior_shift.fits[comparison.drifted].all():
        return (
            'Moved prevalences explain it: rank and transform correct them with prior_shift="em". '
            "Fit the repair again on recent rows as soon as their labels are there."
        )
    return (
        "Find out what changed upstream: a retrained model, a feature, the rows that are served. "
        "The repair was not fitted on such scores; fit it again on recent rows."
    )


def _evidence(
    comparison: CalibrationComparison, which: Bools, values: Floats | Ints, name_of: NameOf
) -> JsonObject:
    """Number of labels, their share of slots, and those that changed most by name."""
    order = np.argsort(-np.where(which, np.abs(values), -1.0), kind="stable")[:MAX_NAMED]
    return {
        "n_labels": int(which.sum()),
        "share_of_slots": _slots(comparison, which),
        "labels": {name_of(int(at)): values[at] for at in order if which[at]},
        "level": comparison.level,
    }


def _furthest(which: Bools, values: Floats | Ints) -> int:
    return int(np.where(which, np.abs(values), -1.0).argmax())


def no_fingerprint() -> Finding:
    """OS511."""
    return Finding(
        "OS511",
        "info",
        "The repair has no fingerprint of its calibration rows, so nothing was compared without "
        "labels.",
        {"fingerprint": False},
        "Fit and save it again with this version.",
    )


def guarantee_broken(stored: GuaranteeCheck) -> Finding | None:
    """OS512."""
    if not stored.broken:
        return None
    what = {"missed": "true labels are missed", "wrong": "labels shown are wrong"}[stored.loss]
    return Finding(
        "OS512",
        "critical",
        f"The guarantee of the decision is surely broken: {percent(stored.risk)} of the {what} on "
        f"average over rows, and at most {percent(stored.target)} were guaranteed.",
        {
            "loss": stored.loss,
            "target": stored.target,
            "before": stored.risk_before,
            "now": stored.risk,
            "standard_error": stored.error,
            "n_rows": stored.n_rows,
        },
        "These rows are not exchangeable with those of the decision. Fit the repair and the "
        "decision again on recent rows.",
    )


def raw_alarms(stored: Saturation, kind: str) -> Iterator[Finding]:
    """OS202 and OS203 of scores without labels, with the thresholds of `diagnose`."""
    if stored.share > SATURATED_SHARE:
        would = "are" if kind == "probability" else "would be"
        yield Finding(
            "OS202",
            "warning",
            f"{small_percent(stored.share)} of all cells {would} stored as exactly 1.0, in "
            f"{count_of(stored.n_labels_hit, 'label')}.",
            {"n_cells": stored.n_cells, "share": stored.share, "n_labels": stored.n_labels_hit},
            "Retrain with a cap on the leaf step (max_delta_step). `oddslip plan` says which.",
        )
    share = stored.tied_rows / stored.n_rows
    if share >= TIED_SHARE:
        yield Finding(
            "OS203",
            "critical" if share >= 0.5 else "warning",
            f"Ties decide the top {stored.k} in {small_percent(share)} of the rows.",
            {"n_rows": stored.tied_rows, "share": share},
            "Keep margins or float64, or remove the cause: saturated or very coarse leaves.",
        )


def verdict_alarm(diagnosis: Diagnosis) -> Finding | None:
    """OS510: the verdict of `diagnose`, if raw scores should not be shipped."""
    if diagnosis.verdict.code in SAFE:
        return None
    return Finding(
        "OS510",
        "critical",
        f"Not safe to ship at K = {diagnosis.k}: {diagnosis.verdict.sentence}",
        {"verdict": diagnosis.verdict.code},
        "Follow the advice of the other findings; `oddslip fit` makes the repair.",
    )


def performance_alarms(
    performance: Performance,
    max_drop: float,
    metric: str,
    k: int,
    before: Ints | None,
    drift: tuple[Bools, float] | None,
    name_of: NameOf,
) -> Iterator[Finding]:
    """OS508, OS201, OS404 and OS406: findings that need labels."""
    findings = [metric_dropped(performance, max_drop, metric, k)]
    if before is not None:
        findings += [
            below_popularity(performance, k),
            labels_came_alive(performance, before, name_of),
            prevalence_drifted(drift, name_of),
        ]
    yield from (finding for finding in findings if finding is not None)


def metric_dropped(
    performance: Performance, max_drop: float, metric: str, k: int
) -> Finding | None:
    """OS508."""
    change = performance.changes.get(metric)
    if change is None or not is_drop(change, max_drop):
        return None
    now = performance.metrics[metric].value
    before = now - change.value
    return Finding(
        "OS508",
        "critical",
        f"{metric_name(metric, k)} surely dropped: {score(now)}, before {score(before)} "
        f"({signed_estimate(change)}), against {performance.against}.",
        {
            "before": before,
            "now": now,
            "change": change.value,
            "change_low": change.low,
            "change_high": change.high,
            "max_drop": max_drop,
            "against": performance.against,
        },
        "Do not deploy this ranking. Fit the repair again on recent rows, and see what moved.",
    )


def below_popularity(performance: Performance, k: int) -> Finding | None:
    """OS201."""
    ranking, lead = performance.metrics["map"].value, performance.lead
    if not is_gain(lead, ranking + max(0.0, lead.value)):
        return None
    popularity = ranking + lead.value
    return Finding(
        "OS201",
        "critical",
        f"The ranking is below popularity: MAP@{k} {score(ranking)} against {score(popularity)} "
        "for the same list in every row.",
        {"ranking": ranking, "popularity": popularity, "difference": -lead.value},
        "Do not deploy it. Check that rows and labels belong together, then fit again.",
    )


def labels_came_alive(performance: Performance, before: Ints, name_of: NameOf) -> Finding | None:
    """OS404."""
    counts = performance.counts
    alive = (before == 0) & (counts > 0)
    share = counts[alive].sum() / max(1, counts.sum())
    if not alive.any() or share < UNSEEN_POSITIVES:
        return None
    order = np.argsort(-counts * alive, kind="stable")[:MAX_NAMED]
    return Finding(
        "OS404",
        "warning",
        f"{_count(alive)} without a calibration positive came alive, with "
        f"{small_percent(share)} of all positives: at their prior they are hardly shown.",
        {
            "n_labels": int(alive.sum()),
            "share": float(share),
            "labels": {name_of(int(at)): int(counts[at]) for at in order if alive[at]},
        },
        "Fit the repair again on rows that hold these labels.",
    )


def prevalence_drifted(drift: tuple[Bools, float] | None, name_of: NameOf) -> Finding | None:
    """OS406."""
    if drift is None or drift[1] < DRIFT_SHARE:
        return None
    drifted, share = drift
    return Finding(
        "OS406",
        "critical" if share >= DRIFT_RULES else "warning",
        f"The prevalence of {_count(drifted)} with {percent(share)} of all positives differs from "
        "that of the calibration rows.",
        {
            "n_labels": int(drifted.sum()),
            "share": share,
            "labels": [name_of(int(at)) for at in np.flatnonzero(drifted)[:MAX_NAMED]],
        },
        "Fit the repair again on recent rows.",
    )


def is_drop(change: Estimate, max_drop: float) -> bool:
    """Whether a metric fell significantly, and by more than is allowed."""
    return change.high < 0 and -change.value > max_drop


def _severity(comparison: CalibrationComparison, which: Bools) -> Severity:
    """Critical if these labels hold many of the slots."""
    return "critical" if _slots(comparison, which) >= DRIFT_RULES else "warning"


def _slots(comparison: CalibrationComparison, which: Bools) -> float:
    """Share of the slots that these labels hold, now or before."""
    shares = [
        float(each.slots[which].sum() / each.slots.sum())
        for each in (comparison.calibrated, comparison.now)
        if each.k is not None
    ]
    return max(shares, default=float(which.mean()))


def _rows_of(comparison: CalibrationComparison) -> str:
    """The rows in which a label can be shown, in words."""
    whole = all(
        (each.n_cells == each.n_rows).all() for each in (comparison.calibrated, comparison.now)
    )
    return "the rows" if whole else "the rows that have it"


def _count(which: Bools) -> str:
    return count_of(int(which.sum()), "label")
