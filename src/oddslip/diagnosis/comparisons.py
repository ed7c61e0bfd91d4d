"""When a difference counts: it is material, and its interval lies on one side of zero."""

from __future__ import annotations

from oddslip.diagnosis.diagnoses import Diagnosis
from oddslip.diagnosis.ladders import FITTED, REPAIRS
from oddslip.diagnosis.thresholds import INVERSION_PAYS, MATERIAL, NEAR, SATURATED_SHARE
from oddslip.metrics.evaluations import Estimate


def is_gain(difference: Estimate, level: float) -> bool:
    """A sure gain of at least a hundredth of the level. Without an interval size decides."""
    sure = not difference.low <= 0  # NaN where nothing was resampled
    return sure and difference.value > 0 and difference.value >= MATERIAL * level


def is_loss(difference: Estimate, level: float) -> bool:
    """The same downwards."""
    return is_gain(Estimate(-difference.value, -difference.high, -difference.low), level)


def level_of(diagnosis: Diagnosis, rung: str) -> float:
    """The better of a rung and raw: what a difference is held against."""
    return max(diagnosis.ladder.value(rung), diagnosis.ladder.value("raw"))


def gains(diagnosis: Diagnosis, rung: str) -> bool:
    """Whether a rung is surely and materially above raw."""
    ladder = diagnosis.ladder
    return rung in ladder and is_gain(ladder.gain(rung), level_of(diagnosis, rung))


def loses(diagnosis: Diagnosis, rung: str) -> bool:
    """Whether a rung is surely and materially below raw."""
    ladder = diagnosis.ladder
    return rung in ladder and is_loss(ladder.gain(rung), level_of(diagnosis, rung))


def best_repair(diagnosis: Diagnosis) -> str | None:
    """The best rung that can be deployed, if it surely beats raw."""
    best = diagnosis.ladder.best(REPAIRS)
    return best if best is not None and gains(diagnosis, best) else None


def best_fitted(diagnosis: Diagnosis) -> str | None:
    """The best rung fitted on the calibration rows, if it surely beats raw."""
    best = diagnosis.ladder.best(FITTED)
    return best if best is not None and gains(diagnosis, best) else None


def is_saturated(diagnosis: Diagnosis) -> bool:
    """Whether more than a trace of all cells is stored as exactly 1.0."""
    return diagnosis.saturation.share > SATURATED_SHARE


def is_near(diagnosis: Diagnosis) -> bool:
    """Whether the median realized shift is near the intended one."""
    ratio = diagnosis.shifts.median_ratio
    return ratio is not None and NEAR[0] <= ratio <= NEAR[1]


def inversion_pays(diagnosis: Diagnosis) -> bool:
    """Both conditions of the paper's regime picture, and a measured gain close to the best."""
    best = best_repair(diagnosis)
    if best is None or not gains(diagnosis, "inversion"):
        return False
    ladder = diagnosis.ladder
    enough = ladder.gain("inversion").value >= INVERSION_PAYS * ladder.gain(best).value
    return enough and is_near(diagnosis) and not is_saturated(diagnosis)
