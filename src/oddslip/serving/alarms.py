"""What a check found, as findings: sentences for people, evidence and advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.core.formatting import (
    count_of,
    nat,
    percent,
    score,
    signed_estimate,
    small_percent,
)
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
from oddslip.metrics.evaluation import Estimate, metric_name
from oddslip.serving.monitor import Watch
from oddslip.serving.performance import Performance
from oddslip.shifts import Saturation

Bools = NDArray[np.bool_]
NameOf = Callable[[int], str]
SHOWN = 10  # labels named in the evidence
SAFE = ("healthy", "common_weight", "keep_raw")  # verdicts under which raw scores may be shipped
WATCHED = ("OS501", "OS503", "OS504", "OS505", "OS509")
WATCHED_AT_K = ("OS502", "OS506", "OS507")
LABELLED = ("OS201", "OS404", "OS406", "OS508")


def watch_alarms(seen: Watch, name_of: NameOf) -> Iterator[Finding]:
    """OS501 to OS507 and OS509: what differs from the calibration rows."""
    for alarm in (
        scores_moved, slots_moved, shift_moved, more_saturated, coarser, more_ties, precision_moved,
        unexplained,
    ):  # fmt: skip
        if finding := alarm(seen, name_of):
            yield finding


def scores_moved(seen: Watch, name_of: NameOf) -> Finding | None:
    """OS501."""
    which = seen.moved
    if not which.any():
        return None
    cut, before, now = seen.furthest
    at = _furthest(which, now - before)
    return Finding(
        "OS501",
        _severity(seen, which),
        f"The scores of {_of(which)} moved. Furthest {name_of(at)!r:.60}: "
        f"{small_percent(now[at])} of its rows lie above log-odds of {nat(cut[at])}, "
        f"{small_percent(before[at])} did.",
        _evidence(seen, which, now - before, name_of),
        _advise_drift(seen),
    )


def slots_moved(seen: Watch, name_of: NameOf) -> Finding | None:
    """OS502."""
    which = seen.slots_moved
    if not which.any():
        return None
    before, now = (each.per_cell(each.slots) for each in (seen.calibrated, seen.now))
    at = _furthest(which, now - before)
    are = "is" if which.sum() == 1 else "are"
    return Finding(
        "OS502",
        _severity(seen, which),
        f"{_of(which)} {are} shown more or less often. Furthest {name_of(at)!r:.60}: in "
        f"{small_percent(now[at])} of {_rows_of(seen)}, before in {small_percent(before[at])}.",
        _evidence(seen, which, now - before, name_of),
        "See whether scores moved (OS501, OS503) or other rows are served.",
    )


def shift_moved(seen: Watch, name_of: NameOf) -> Finding | None:
    """OS503."""
    which, gap = seen.shifted, seen.shift_now - seen.shift_before
    if not which.any():
        return None
    at = _furthest(which, gap)
    return Finding(
        "OS503",
        _severity(seen, which),
        f"The label-free shift of {_of(which)} moved. Furthest {name_of(at)!r:.60}: by "
        f"{gap[at]:+.2f} nat, to {nat(seen.shift_now[at])}.",
        _evidence(seen, which, gap, name_of),
        _advise_drift(seen),
    )


def more_saturated(seen: Watch, name_of: NameOf) -> Finding | None:
    """OS504."""
    which = seen.saturated
    if not which.any():
        return None
    before, now = (
        float(each.saturated.sum() / each.counts.sum()) for each in (seen.calibrated, seen.now)
    )
    have = "has" if which.sum() == 1 else "have"
    return Finding(
        "OS504",
        "critical" if now > SATURATED_SHARE else "warning",
        f"{_of(which)} {have} more cells at exactly 1.0: {small_percent(now)} of all cells, "
        f"before {small_percent(before)}.",
        _evidence(seen, which, seen.now.saturated, name_of)
        | {"share_before": before, "share_now": now},
        "Do not deploy a model retrained so. Retrain with a cap on the leaf step "
        "(max_delta_step), or without label-specific weights.",
    )


def coarser(seen: Watch, name_of: NameOf) -> Finding | None:
    """OS505."""
    which, before, now = seen.coarser, seen.calibrated.distinct, seen.now.distinct
    if not which.any():
        return None
    at = _furthest(which, before / now)
    return Finding(
        "OS505",
        _severity(seen, which),
        f"The scores of {_of(which)} became coarser. Furthest {name_of(at)!r:.60}: as if of "
        f"{now[at]:.3g} different scores, before of {before[at]:.3g}.",
        _evidence(seen, which, before / now, name_of),
        "Look for rounding on the way, a default in place of a score, or a model of a few leaves.",
    )


def more_ties(seen: Watch, name_of: NameOf) -> Finding | None:
    """OS506."""
    if not seen.ties:
        return None
    before, now = (each.n_tied / each.n_rows for each in (seen.calibrated, seen.now))
    return Finding(
        "OS506",
        "critical" if now >= 0.5 else "warning",
        f"Ties decide the top {seen.now.k} in {small_percent(now)} of the rows, before in "
        f"{small_percent(before)}.",
        {"share_before": before, "share_now": now, "n_rows": seen.now.n_tied},
        "Equal values rank by label index. Remove the cause: saturated, rounded or very coarse "
        "scores.",
    )


def precision_moved(seen: Watch, name_of: NameOf) -> Finding | None:
    """OS507."""
    if not seen.shown:
        return None
    (before, _), (now, _) = seen.calibrated.shown, seen.now.shown
    drifted = bool(seen.drifted.any())
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


def unexplained(seen: Watch, name_of: NameOf) -> Finding | None:
    """OS509."""
    if seen.prior_shift is None:
        return None
    which = seen.drifted & ~seen.prior_shift.fits
    if not which.any():
        return None
    gap = seen.shift_now - seen.shift_before
    return Finding(
        "OS509",
        "warning",
        f"No change of prevalence explains how the scores of {_of(which)} moved: they moved among "
        "the true or the false rows as well.",
        _evidence(seen, which, gap, name_of),
        'Do not correct them with prior_shift="em", which leaves them as they are. Fit the repair '
        "again on recent rows.",
    )


def _advise_drift(seen: Watch) -> str:
    if seen.prior_shift is not None and seen.prior_shift.fits[seen.drifted].all():
        return (
            'Moved prevalences explain it: rank and transform correct them with prior_shift="em". '
            "Fit the repair again on recent rows as soon as their labels are there."
        )
    return (
        "Find out what changed upstream: a retrained model, a feature, the rows that are served. "
        "The repair was not fitted on such scores; fit it again on recent rows."
    )


def _evidence(seen: Watch, which: Bools, values: Any, name_of: NameOf) -> dict[str, Any]:
    """How many labels, how much of what is shown, and the furthest of them by name."""
    order = np.argsort(-np.where(which, np.abs(values), -1.0), kind="stable")[:SHOWN]
    return {
        "n_labels": int(which.sum()),
        "share_of_slots": _slots(seen, which),
        "labels": {name_of(int(at)): values[at] for at in order if which[at]},
        "level": seen.level,
    }


def _furthest(which: Bools, values: Any) -> int:
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


def raw_alarms(stored: Saturation, kind: str) -> Iterator[Finding]:
    """OS202 and OS203 of scores without labels, by the thresholds of `diagnose`."""
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
    """OS510: the verdict of `diagnose`, where raw scores had better not be shipped."""
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
    done: Performance,
    max_drop: float,
    metric: str,
    k: int,
    before: NDArray[np.int64] | None,
    drift: tuple[Bools, float] | None,
    name_of: NameOf,
) -> Iterator[Finding]:
    """OS508, OS201, OS404 and OS406: what labels say."""
    change = done.changes.get(metric)
    if change is not None and is_drop(change, max_drop):
        was, is_now = done.metrics[metric].value - change.value, done.metrics[metric].value
        yield Finding(
            "OS508",
            "critical",
            f"{metric_name(metric, k)} surely dropped: {score(is_now)}, before {score(was)} "
            f"({signed_estimate(change)}), against {done.against}.",
            {"before": was, "now": is_now, "change": change.value, "change_low": change.low,
             "change_high": change.high, "max_drop": max_drop, "against": done.against},
            "Do not deploy this ranking. Fit the repair again on recent rows, and see what moved.",
        )  # fmt: skip
    own = done.metrics["map"].value
    if before is not None and is_gain(done.lead, own + max(0.0, done.lead.value)):
        yield Finding(
            "OS201",
            "critical",
            f"The ranking is below popularity: MAP@{k} {score(own)} against "
            f"{score(own + done.lead.value)} for the same list in every row.",
            {"ranking": own, "popularity": own + done.lead.value, "difference": -done.lead.value},
            "Do not deploy it. Check that rows and labels belong together, then fit again.",
        )
    if before is None:
        return
    alive = (before == 0) & (done.counts > 0)
    share = done.counts[alive].sum() / max(1, done.counts.sum())
    if alive.any() and share >= UNSEEN_POSITIVES:
        yield Finding(
            "OS404",
            "warning",
            f"{_of(alive)} without a calibration positive came alive, with "
            f"{small_percent(share)} of all positives: at their prior they are hardly shown.",
            {"n_labels": int(alive.sum()), "share": float(share),
             "labels": {name_of(int(at)): int(done.counts[at])
                        for at in np.argsort(-done.counts * alive, kind="stable")[:SHOWN]
                        if alive[at]}},
            "Fit the repair again on rows that hold these labels.",
        )  # fmt: skip
    if drift is not None and drift[1] >= DRIFT_SHARE:
        drifted, held = drift
        yield Finding(
            "OS406",
            "critical" if held >= DRIFT_RULES else "warning",
            f"The prevalence of {_of(drifted)} with {percent(held)} of all positives differs from "
            "that of the calibration rows.",
            {"n_labels": int(drifted.sum()), "share": held,
             "labels": [name_of(int(at)) for at in np.flatnonzero(drifted)[:SHOWN]]},
            "Fit the repair again on recent rows.",
        )  # fmt: skip


def is_drop(change: Estimate, max_drop: float) -> bool:
    """Whether a metric surely fell, and by more than is allowed."""
    return change.high < 0 and -change.value > max_drop


def _severity(seen: Watch, which: Bools) -> Severity:
    """Critical where these labels hold much of what is shown."""
    return "critical" if _slots(seen, which) >= DRIFT_RULES else "warning"


def _slots(seen: Watch, which: Bools) -> float:
    """Share of the slots that these labels hold, or held."""
    shares = [
        float(each.slots[which].sum() / each.slots.sum())
        for each in (seen.calibrated, seen.now)
        if each.k is not None
    ]
    return max(shares, default=float(which.mean()))


def _rows_of(seen: Watch) -> str:
    """The rows that a label can be shown in."""
    whole = all((each.n_cells == each.n_rows).all() for each in (seen.calibrated, seen.now))
    return "the rows" if whole else "the rows that have it"


def _of(which: Bools) -> str:
    return count_of(int(which.sum()), "label")
