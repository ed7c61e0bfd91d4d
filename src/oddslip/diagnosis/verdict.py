"""The verdict: one sentence that comes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from oddslip.core.formatting import (
    count_of,
    estimated,
    percent,
    score,
    share_of,
    signed,
    signed_estimate,
)
from oddslip.diagnosis.comparison import (
    InversionTrial,
    Standing,
    chosen_repair,
    fitted_repair,
    is_below_popularity,
    is_saturated,
    is_sound,
    lacks_signal,
    loses,
    name_repair,
    popular_list,
    rises,
    rises_in_vain,
    try_inversion,
    twin_standing,
    weights_are_strange,
)
from oddslip.diagnosis.result import Measurements, Verdict
from oddslip.diagnosis.thresholds import (
    DRIFT_RULES,
    IDENTITY_KEEPS,
    MATERIAL,
    REGAINED,
    TAKEN_ROWS,
    TIE_RESIDUE,
    TIED_SHARE,
)
from oddslip.metrics.evaluation import Estimate


def judge(measured: Measurements) -> Verdict:
    """The verdict on what was measured: the first rule whose condition holds."""
    grounds = Grounds(measured, chosen_repair(measured), twin_standing(measured))
    rule = next(rule for rule in RULES if rule.holds(grounds))
    return Verdict(rule.code, rule.sentence.format(g=grounds), grounds.repair)


class Grounds(NamedTuple):
    """What the rules ask, and the pieces of their sentences, each made when it is needed."""

    d: Measurements
    repair: str | None
    twin: Standing | None  # where the unweighted twin stands to raw

    @property
    def hurt(self) -> bool:
        """Whether raw is surely below the unweighted twin."""
        return self.twin == "above"

    @property
    def sound(self) -> bool:
        """Nothing is surely better than raw, neither a repair nor the twin nor popularity."""
        return is_sound(self.d)

    @property
    def no_signal(self) -> str:
        """What the AUC says, and what to look at."""
        signal = self.d.signal
        below = ", but below chance" if signal.standing == "reversed" else ""
        value = score(self.d.ladder.value(popular_list(self.d) or "popularity"))
        return (
            f"No signal within labels{below} (mean AUC {estimated(signal.mean)}), and no repair is "
            f"clearly above the same list in every row ({self.d.metric_name} {value}): nothing to "
            "repair; check that rows of scores and labels belong together, and the sign of the "
            "scores."
        )

    @property
    def popular(self) -> str:
        """How raw and the best rung compare with the same list in every row."""
        d, best = self.d, self.d.ladder.best()
        value = d.ladder.value(popular_list(d) or "popularity")
        end = ""
        if best is not None and rises(d, best):
            end = f"; {best} reaches {score(d.ladder.value(best))}, which is no repair"
        if self.hurt and d.ladder.value("unweighted") > value:
            end += f"; the unweighted twin has {score(d.ladder.value('unweighted'))}"
        return (
            f"the same list in every row has a {d.metric_name} of {score(value)}, the raw scores "
            f"{score(d.ladder.value('raw'))}{end}."
        )

    @property
    def lost_in_ties(self) -> bool:
        """Whether saturated cells tie so that no per-label map returns the whole loss."""
        if not is_saturated(self.d) or self.d.ties.n_rows < TIED_SHARE * self.d.ladder.n_evaluated:
            return False
        parts = self.d.decomposition
        residue = None if parts is None else parts.share("tie_residue")
        return residue is None or residue >= TIE_RESIDUE

    @property
    def takeover(self) -> str:
        """What the identity policy would do, where it would undo much of the repair."""
        d, takeover = self.d, self.d.takeover
        if takeover is None or takeover.n_rows < max(1, TAKEN_ROWS * d.n_rows):
            return ""
        identity_gain, isotonic_gain = (
            d.ladder.gain("isotonic, identity").value,
            d.ladder.gain("isotonic").value,
        )
        if identity_gain > IDENTITY_KEEPS * isotonic_gain:
            return ""
        return (
            f"calibrated with raw scores for {count_of(takeover.n_dead, 'dead label')}, "
            f"{share_of(takeover.n_rows, d.n_rows)} of the rows would lose slots to them"
        )

    def share_returned(self, rung: str) -> float | None:
        """Share of the loss that a rung returns; None where the twin does not tell a loss."""
        if not self.hurt or self.d.decomposition is None:
            return None
        return self.d.decomposition.returned.get(rung)

    def moves(self, rung: str) -> str:
        """What a rung does to the metric, and how much of the loss that is."""
        ladder, share = self.d.ladder, self.share_returned(rung)
        raw, value = score(ladder.value("raw")), score(ladder.value(rung))
        returns = "" if share is None else f", {percent(share)} of the loss"
        return f"takes {self.d.metric_name} from {raw} to {value}{returns}"

    @property
    def returns_less(self) -> bool:
        """Whether the larger part of the loss stays lost under the repair."""
        share = None if self.repair is None else self.share_returned(self.repair)
        return share is not None and share < REGAINED

    @property
    def partly(self) -> str:
        """Whether the repair is one in part."""
        return " in part" if self.returns_less else ""

    @property
    def end(self) -> str:
        """The end of a sentence about a repair: the takeover, and what to do about the rest."""
        rest = ""
        if self.returns_less and not weights_are_strange(self.d):
            rest = "the larger part of the loss is not returned, so retrain without weights"
        return "".join(f"; {each}" for each in (self.takeover, rest) if each) + "."

    @property
    def cure(self) -> str:
        """What keeps saturated cells apart. Leaves are those of a boosted model."""
        boosted = "" if self.d.shifts.budget is not None else ", if the model is boosted,"
        return f"the margins or{boosted} a cap on the leaf step"

    @property
    def cause(self) -> str:
        """What is wrong, as far as it is known."""
        d, strange = self.d, weights_are_strange(self.d)
        scale = "scores of different labels are not on one scale"
        if self.twin == "above":
            change = f"({d.metric_name} {signed(-d.ladder.gain('unweighted').value)} against the "
            change += "unweighted twin)"
            if strange:
                return f"Hurt {change}, though the weights given do not fit the scores"
            return f"Hurt by the weights {change}"
        start = f"S{scale[1:]}"
        if strange:
            return f"{start}, and the weights given do not fit them"
        if self.twin == "below":
            change = signed(-d.ladder.gain("unweighted").value)
            return f"Better than the unweighted twin ({d.metric_name} {change}), but {scale}"
        if self.twin == "level":
            least = percent(MATERIAL)
            return f"{start}, though the weights cost less than {least} against the unweighted twin"
        if d.weighting == "label-specific":
            return "Hurt, most likely by the label-specific weights"
        addition = "" if d.weighting == "unknown" else ", though not by the weights"
        return f"{start}{addition}"

    @property
    def no_repair(self) -> str:
        """That nothing is surely better than raw, and what `Repair` would take all the same."""
        d = self.d
        reason = f"no repair surely beats {self.rivals}"
        if d.chosen is None or d.chosen.name == "raw" or "chosen" not in d.ladder:
            return reason
        return (
            f"{reason} ({d.chosen.name}, which Repair chooses: {score(d.ladder.value('chosen'))})"
        )

    @property
    def rivals(self) -> str:
        """What a repair has to beat: raw, and the same list in every row where that is why."""
        d = self.d
        raw = f"the raw {d.metric_name} of {score(d.ladder.value('raw'))}"
        if not rises_in_vain(d):
            return raw
        popular = score(d.ladder.value(popular_list(d) or "popularity"))
        return f"both {raw} and that of the same list in every row, {popular}"

    @property
    def isotonic(self) -> str:
        """What per-label isotonic does."""
        return f"per-label isotonic {self.moves('isotonic')}"

    @property
    def does(self) -> str:
        """What the repair does, and whether the rows tell it from the inversion or the best."""
        assert self.repair is not None
        trial = try_inversion(self.d)
        inverts = self.repair == "inversion"
        name = "subtracting ln w" if inverts else name_repair(self.d, self.repair)
        if self.repair == "chosen":
            name += ", which Repair chooses,"
        beside = ""
        if trial is not None:
            beside = _beside(self.d, trial) if inverts else _inversion_beside(self.d, trial)
        return f"{name} {self.moves(self.repair)}{beside}"

    @property
    def surely(self) -> str:
        """Without a twin, what ties cost is not known."""
        return "is" if self.d.decomposition else "may be"

    @property
    def drifted(self) -> str:
        """What is known although the calibration rows are not like the evaluated ones."""
        d, fitted = self.d, fitted_repair(self.d)
        start = f"{self.cause}, and" if self.hurt or self.repair else "Undecided:"
        end = (
            f"{name_repair(d, fitted)} still {self.moves(fitted)}, but refit it on rows like those "
            "you serve"
            if fitted
            else "no map fitted on them surely helps; calibrate on rows like those you serve"
        )
        if self.repair == "inversion":
            end += f"; subtracting ln w, which needs none of them, {self.moves(self.repair)}"
        return (
            f"{start} the calibration rows are not like the evaluated ones (prevalence differs for "
            f"labels with {percent(d.drift.share)} of the positives): {end}."
        )


class Rule(NamedTuple):
    """A code and its sentence, for grounds on which the condition holds."""

    code: str
    holds: Callable[[Grounds], bool]
    sentence: str


# The first that holds is the verdict.
RULES = (
    Rule("no_signal", lambda g: lacks_signal(g.d), "{g.no_signal}"),
    Rule("drift", lambda g: g.d.drift.share >= DRIFT_RULES, "{g.drifted}"),
    Rule(
        "below_popularity",
        lambda g: g.repair is None and is_below_popularity(g.d),
        "Below popularity, and no repair is surely above it: {g.popular}",
    ),
    Rule(
        "common_weight",
        lambda g: g.sound and g.d.weighting == "common",
        "Healthy: the weight is common to all labels and cannot change their order; {g.no_repair}.",
    ),
    Rule(
        "healthy",
        lambda g: g.sound and g.d.weighting == "none",
        "Healthy: no label is weighted, and {g.no_repair}.",
    ),
    Rule(
        "keep_raw",
        lambda g: (
            g.sound
            and g.d.weighting == "label-specific"
            and not weights_are_strange(g.d)
            and loses(g.d, "isotonic")
        ),
        "Calibration does not pay here: {g.isotonic} and nothing surely beats the raw scores; "
        "keep them.",
    ),
    Rule(
        "undecided",
        lambda g: (
            g.sound
            and g.d.weighting == "label-specific"
            and not weights_are_strange(g.d)
            and g.twin is None
        ),
        "Undecided without the unweighted twin: weights differ across labels, and {g.no_repair}; "
        "the twin's scores would tell whether the weights cost anything, how much, and what part "
        "of it each repair returns.",
    ),
    Rule(
        "healthy",
        lambda g: g.sound,
        "Healthy as far as these inputs can tell: {g.no_repair}.",
    ),
    Rule(
        "keep_raw",
        lambda g: g.repair is None,
        "{g.cause}, but calibration does not pay here: no repair surely beats {g.rivals}; "
        "keep the raw scores, use more calibration rows, or retrain without weights.",
    ),
    Rule(
        "keep_margins",
        lambda g: g.lost_in_ties,
        "{g.cause}, and part of it {g.surely} lost in ties: {g.does}; the rest needs "
        "{g.cure}{g.end}",
    ),
    Rule(
        "repairable_by_inversion",
        lambda g: g.repair == "inversion",
        "{g.cause}, repairable{g.partly} by inversion: {g.does}{g.end}",
    ),
    Rule(
        "dead_labels",
        lambda g: bool(g.takeover),
        "{g.cause}, repairable only if dead labels go to their prior: {g.does}{g.end}",
    ),
    Rule(
        "repairable_by_calibration",
        lambda g: True,
        "{g.cause}, repairable{g.partly} by calibration: {g.does}{g.end}",
    ),
)


def _beside(d: Measurements, trial: InversionTrial) -> str:
    """How what `Repair` chooses compares, after what the inversion does."""
    if trial.other is None or trial.lead is None:
        return ""
    other, is_chosen = name_repair(d, trial.other), trial.other == "chosen"
    if other == "inversion":
        return ", and Repair chooses it"
    if not trial.other_gains:
        return (
            ", and nothing that is fitted on these rows surely beats raw"
            if not is_chosen
            else (f", and {other}, which Repair chooses, does not surely beat raw")
        )
    value = f"{score(d.ladder.value(trial.other))}" + (", chosen by Repair" if is_chosen else "")
    if trial.to_other == "above":
        return f", surely more than {other} ({value})"
    if trial.to_other == "level":
        return f", level with {other} ({value}), which has to be fitted"
    return (
        f", though these rows do not decide between it and {other} ({value}; "
        f"difference {signed_estimate(trial.lead)})"
    )


def _inversion_beside(d: Measurements, trial: InversionTrial) -> str:
    """How the inversion compares, where these rows do not decide against it."""
    if trial.outcome != "undecided" or trial.lead is None:
        return ""
    behind = Estimate(-trial.lead.value, -trial.lead.high, -trial.lead.low)
    return (
        ", though these rows do not decide between it and subtracting ln w "
        f"({score(d.ladder.value('inversion'))}; difference {signed_estimate(behind)})"
    )
