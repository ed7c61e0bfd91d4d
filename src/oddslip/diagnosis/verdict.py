"""The verdict: one sentence that comes first."""

from __future__ import annotations

from oddslip.diagnosis.comparison import (
    InversionTrial,
    best_fitted,
    chosen_repair,
    is_gain,
    is_saturated,
    loses,
    try_inversion,
)
from oddslip.diagnosis.findings import count_of, signed
from oddslip.diagnosis.result import Diagnosis, Verdict
from oddslip.diagnosis.thresholds import (
    DRIFT_RULES,
    IDENTITY_KEEPS,
    TAKEN_ROWS,
    TIE_RESIDUE,
    TIED_SHARE,
)
from oddslip.metrics.evaluation import Estimate


def judge(d: Diagnosis) -> Verdict:
    """The verdict on a diagnosis whose numbers are known."""
    repair, hurt = chosen_repair(d), _loses_to_twin(d)
    if d.drift.share >= DRIFT_RULES:
        return Verdict("drift", _drifted(d, hurt))
    if d.weighting in ("none", "common") and repair is None and not hurt:
        if d.weighting == "common":
            return Verdict(
                "common_weight",
                "Healthy: the weight is common to all labels and can not change their order; "
                f"{_no_repair(d)}.",
            )
        return Verdict("healthy", f"Healthy: no label is weighted, and {_no_repair(d)}.")
    if repair is None and not hurt:
        if loses(d, "isotonic"):
            return Verdict(
                "keep_raw",
                f"Calibration does not pay here: per-label isotonic {_moves(d, 'isotonic')} and "
                "nothing surely beats the raw scores; keep them.",
            )
        return Verdict("healthy", f"Healthy as far as these inputs can tell: {_no_repair(d)}.")
    if repair is None:
        return Verdict(
            "keep_raw",
            f"{_cause(d, hurt)}, but calibration does not pay here: no repair surely beats the "
            "raw scores; keep them, use more calibration rows, or retrain without weights.",
        )
    takeover = _takeover(d)
    does, after = _does(d, repair), f"; {takeover}." if takeover else "."
    if _lost_in_ties(d):
        surely = "is" if d.decomposition else "may be"
        return Verdict(
            "keep_margins",
            f"{_cause(d, hurt)}, and part of it {surely} lost in ties: {does}; "
            f"the rest needs the margins or a cap on the leaf step{after}",
        )
    if repair == "inversion":
        return Verdict(
            "repairable_by_inversion",
            f"{_cause(d, hurt)}, repairable by inversion: {does}{after}",
        )
    if takeover:
        return Verdict(
            "dead_labels",
            f"{_cause(d, hurt)}, repairable only if dead labels go to their prior: {does}{after}",
        )
    return Verdict(
        "repairable_by_calibration", f"{_cause(d, hurt)}, repairable by calibration: {does}."
    )


def _does(d: Diagnosis, repair: str) -> str:
    """What the repair does, and whether the rows tell it from the inversion or from the best."""
    trial = try_inversion(d)
    if repair == "inversion":
        beside = "" if trial is None else _beside(d, trial)
        return f"subtracting ln w {_moves(d, repair)}{beside}"
    beside = "" if trial is None else _inversion_beside(d, trial)
    return f"{repair} {_moves(d, repair)}{beside}"


def _beside(d: Diagnosis, trial: InversionTrial) -> str:
    """How the best fitted repair compares, after what the inversion does."""
    if trial.other is None or trial.lead is None:
        return ""
    if not trial.other_gains:
        return ", and no calibrator fitted on these rows surely beats raw"
    value = d.ladder.value(trial.other)
    if trial.to_other == "above":
        return f", surely more than {trial.other} ({value:.4f})"
    if trial.to_other == "level":
        return f", level with {trial.other} ({value:.4f}), which has to be fitted"
    return (
        f", though these rows do not decide between it and {trial.other} ({value:.4f}; "
        f"difference {signed(trial.lead)})"
    )


def _inversion_beside(d: Diagnosis, trial: InversionTrial) -> str:
    """How the inversion compares, where these rows do not decide against it."""
    if trial.outcome != "undecided" or trial.lead is None:
        return ""
    return (
        ", though these rows do not decide between it and subtracting ln w "
        f"({d.ladder.value('inversion'):.4f}; difference {signed(_turned(trial.lead))})"
    )


def _turned(difference: Estimate) -> Estimate:
    return Estimate(-difference.value, -difference.high, -difference.low)


def _lost_in_ties(d: Diagnosis) -> bool:
    """Whether saturated cells tie so that no per-label map returns the whole loss."""
    if not is_saturated(d) or d.ties.n_rows < TIED_SHARE * d.ladder.n_evaluated:
        return False
    residue = None if d.decomposition is None else d.decomposition.share("tie_residue")
    return residue is None or residue >= TIE_RESIDUE


def _takeover(d: Diagnosis) -> str:
    """What the identity policy would do, where it would undo much of the repair."""
    found = d.takeover
    if found is None or found.n_rows < max(1, TAKEN_ROWS * d.n_rows):
        return ""
    kept, whole = d.ladder.gain("isotonic, identity").value, d.ladder.gain("isotonic").value
    if kept > IDENTITY_KEEPS * whole:
        return ""
    dead = count_of(found.n_dead, "dead label")
    return (
        f"calibrated with raw scores for {dead}, {found.n_rows / d.n_rows:.0%} of the rows would "
        "lose slots to them"
    )


def _loses_to_twin(d: Diagnosis) -> bool:
    if "unweighted" not in d.ladder:
        return False
    return is_gain(d.ladder.gain("unweighted"), d.ladder.value("unweighted"))


def _cause(d: Diagnosis, hurt: bool) -> str:
    if hurt:
        loss: Estimate = d.ladder.gain("unweighted")
        return f"Hurt by the weights (MAP@{d.k} {-loss.value:+.4f} against the unweighted twin)"
    if d.weighting == "label-specific":
        return "Hurt, most likely by the label-specific weights"
    if d.weighting == "unknown":
        return "Scores of different labels are not on one scale"
    return "Scores of different labels are not on one scale, though not by the weights"


def _moves(d: Diagnosis, rung: str) -> str:
    value = d.ladder.value(rung)
    return f"takes MAP@{d.k} from {d.ladder.value('raw'):.4f} to {value:.4f}"


def _no_repair(d: Diagnosis) -> str:
    return f"no repair surely beats the raw MAP@{d.k} of {d.ladder.value('raw'):.4f}"


def _drifted(d: Diagnosis, hurt: bool) -> str:
    repair, fitted = chosen_repair(d), best_fitted(d)
    start = f"{_cause(d, hurt)}, and" if hurt or repair else "Undecided:"
    end = (
        f"{fitted} still {_moves(d, fitted)}, but refit it on rows like those you serve"
        if fitted
        else "no map fitted on them surely helps; calibrate on rows like those you serve"
    )
    if repair == "inversion":
        end += f"; subtracting ln w, which needs none of them, {_moves(d, repair)}"
    return (
        f"{start} the calibration rows are not like the evaluated ones (prevalence differs for "
        f"labels with {d.drift.share:.0%} of the positives): {end}."
    )
