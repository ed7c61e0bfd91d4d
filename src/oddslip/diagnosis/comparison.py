"""When a difference counts: it is material, and its interval lies on one side of zero."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from oddslip.core.formatting import percent
from oddslip.diagnosis.ladder import FITTED, LISTS
from oddslip.diagnosis.result import Measurements
from oddslip.diagnosis.thresholds import (
    CLEAR,
    MATERIAL,
    MIN_LEAKED_POSITIVES,
    SATURATED_SHARE,
    UNSHIFTED,
    UNTRACED,
)
from oddslip.metrics.evaluation import Estimate

Standing = Literal["above", "below", "level", "undecided"]
Outcome = Literal["pays", "behind", "fails", "undecided"]


def is_gain(difference: Estimate, level: float) -> bool:
    """A sure gain of at least a hundredth of the level. Without an interval size decides."""
    sure = not difference.low <= 0  # NaN where nothing was resampled
    return sure and difference.value > 0 and difference.value >= MATERIAL * level


def is_loss(difference: Estimate, level: float) -> bool:
    """The same downwards."""
    return is_gain(Estimate(-difference.value, -difference.high, -difference.low), level)


def standing_of(difference: Estimate, level: float) -> Standing:
    """Surely above or below, surely within a hundredth of the level, or not decided.

    Examples
    --------
    >>> standing_of(Estimate(0.02, 0.01, 0.03), 0.5), standing_of(Estimate(0.02, -0.01, 0.05), 0.5)
    ('above', 'undecided')
    >>> standing_of(Estimate(0.001, -0.002, 0.004), 0.5)
    'level'
    """
    if is_gain(difference, level):
        return "above"
    if is_loss(difference, level):
        return "below"
    margin = MATERIAL * level
    inside = abs(difference.value) < margin or difference.value == 0
    # NaN where nothing was resampled: then size decides here too.
    inside = inside and not (difference.low < -margin or difference.high > margin)
    return "level" if inside else "undecided"


# ----------------------------------------------------------------------------------- rungs and twin


def level_of(measured: Measurements, rung: str) -> float:
    """The better of a rung and raw: what a difference is held against."""
    return max(measured.ladder.value(rung), measured.ladder.value("raw"))


def rises(measured: Measurements, rung: str) -> bool:
    """Whether a rung is surely and materially above raw."""
    ladder = measured.ladder
    return rung in ladder and is_gain(ladder.gain(rung), level_of(measured, rung))


def loses(measured: Measurements, rung: str) -> bool:
    """Whether a rung is surely and materially below raw."""
    ladder = measured.ladder
    return rung in ladder and is_loss(ladder.gain(rung), level_of(measured, rung))


def popular_list(measured: Measurements) -> str | None:
    """The best list that is the same in every row: by the prior, or by the calibration rows."""
    return measured.ladder.best(LISTS)


def beats_popularity(measured: Measurements, rung: str) -> bool:
    """Whether a rung is surely above the same list in every row."""
    popular = popular_list(measured)
    if popular is None:
        return True
    lead = measured.ladder.lead(rung, popular)
    return lead.value > 0 and not lead.low <= 0  # NaN where nothing was resampled


def ranks_clearly(measured: Measurements) -> str | None:
    """The best of what could be deployed that is clearly above the same list in every row.

    Clearly is more than surely: several rungs are looked at, and their scores are in doubt.
    None where nothing was resampled.
    """
    ladder, popular = measured.ladder, popular_list(measured)
    if popular is None:
        return None
    clear = []
    for rung in ("raw", "chosen", "inversion"):
        if rung not in ladder:
            continue
        lead = ladder.lead(rung, popular)
        level = max(ladder.value(rung), ladder.value(popular))
        if is_gain(lead, level) and lead.low >= CLEAR * lead.value:
            clear.append(rung)
    return ladder.best(tuple(clear))


def lacks_signal(measured: Measurements) -> bool:
    """Whether there is nothing to repair: AUC about chance, and no rung clearly above a list.

    The mean AUC counts every label alike. Where most labels are rare it may be about chance
    although the frequent ones, which fill the slots, are ranked well.
    """
    return measured.signal.absent and ranks_clearly(measured) is None


def gains(measured: Measurements, rung: str) -> bool:
    """Whether a rung repairs: surely and materially above raw, and surely above popularity."""
    return rises(measured, rung) and beats_popularity(measured, rung)


def rises_in_vain(measured: Measurements) -> bool:
    """Whether what could be deployed is surely above raw, but none of it above popularity."""
    rungs = [rung for rung in ("chosen", "inversion") if rises(measured, rung)]
    return bool(rungs) and not any(beats_popularity(measured, rung) for rung in rungs)


def holds_labels(measured: Measurements) -> bool:
    """Whether every true cell stands above every other cell of its label."""
    areas = measured.signal.areas
    finite = np.isfinite(areas)
    if measured.evaluation_counts[finite].sum() < MIN_LEAKED_POSITIVES:
        return False
    return bool((areas[finite] == 1.0).all())


def is_below_popularity(measured: Measurements) -> bool:
    """Whether the same list in every row is surely and materially better than raw."""
    return rises(measured, popular_list(measured) or "")


def fitted_repair(measured: Measurements) -> str | None:
    """The rung "chosen" if it repairs: never the best in hindsight, which rows chose themselves.

    A ladder without that rung has only hindsight.
    """
    if measured.chosen is not None and measured.chosen.name == "raw":
        return None
    names = ("chosen",) if "chosen" in measured.ladder else FITTED
    return measured.ladder.best(tuple(name for name in names if gains(measured, name)))


def helps(measured: Measurements) -> bool:
    """Whether any rung that is fitted repairs, be it in hindsight."""
    return any(gains(measured, name) for name in ("chosen", *FITTED))


def twin_standing(measured: Measurements) -> Standing | None:
    """Where the unweighted twin stands to raw; None without a twin whose rows are the same."""
    if not measured.twin_follows or "unweighted" not in measured.ladder:
        return None
    return standing_of(measured.ladder.gain("unweighted"), level_of(measured, "unweighted"))


def twin_effect(measured: Measurements) -> str:
    """What the twin says of the weights' effect, where they do not surely cost much."""
    standing, gain = twin_standing(measured), measured.ladder.gain("unweighted")
    if standing == "below":
        return "The label weights help"
    if standing == "level":
        return f"The label weights cost less than {percent(MATERIAL)}"
    if gain.low > 0:
        return f"The label weights cost little, perhaps less than {percent(MATERIAL)}"
    if gain.high < 0:
        return f"The label weights help little, perhaps by less than {percent(MATERIAL)}"
    return "These rows do not show whether the label weights cost anything"


def is_saturated(measured: Measurements) -> bool:
    """Whether more than a trace of all cells is stored as exactly 1.0."""
    return measured.saturation.share > SATURATED_SHARE


# -------------------------------------------------------------------------------------- the weights


class InversionTrial(NamedTuple):
    """What the rows say of the inversion: against raw, and against what `Repair` would deploy.

    ``repairs`` says whether it beats popularity as well as raw. ``other`` is "chosen"; in a ladder
    without it, the best fitted rung.
    """

    gain: Estimate
    to_raw: Standing
    repairs: bool
    other: str | None
    other_gains: bool
    lead: Estimate | None
    to_other: Standing | None

    @property
    def outcome(self) -> Outcome:
        """It pays where it is surely above raw and no sure repair is, or may be, better."""
        if self.other_gains and self.to_other == "below":
            return "behind"
        if self.to_raw == "above":
            if not self.repairs:
                return "fails"
            unsure = self.other_gains and self.to_other == "undecided"
            return "undecided" if unsure else "pays"
        return "undecided" if self.to_raw == "undecided" else "fails"


def try_inversion(measured: Measurements) -> InversionTrial | None:
    """The measured, paired trial of the inversion; None without label-specific weights."""
    ladder = measured.ladder
    if measured.weighting != "label-specific" or "inversion" not in ladder:
        return None
    if weights_are_logarithms(measured):
        return None
    gain, repairs = ladder.gain("inversion"), gains(measured, "inversion")
    to_raw = standing_of(gain, level_of(measured, "inversion"))
    sure = fitted_repair(measured)
    other = sure or ("chosen" if "chosen" in ladder else ladder.best(FITTED))
    if other is None:
        return InversionTrial(gain, to_raw, repairs, None, False, None, None)
    lead = ladder.lead("inversion", other)
    level = max(ladder.value("inversion"), ladder.value(other))
    standing = standing_of(lead, level)
    return InversionTrial(gain, to_raw, repairs, other, sure is not None, lead, standing)


def inversion_pays(measured: Measurements) -> bool:
    """Whether the inversion is measured to gain, and no other repair to gain surely more."""
    trial = try_inversion(measured)
    return trial is not None and trial.outcome == "pays"


def weights_are_logarithms(measured: Measurements) -> bool:
    """Whether the shifts fit the weights as they are, and not their logarithm."""
    weight_fit = measured.weight_fit
    return weight_fit is not None and weight_fit.fit == "logarithms"


def shifts_are_felt(measured: Measurements) -> bool:
    """Whether moving every label to its prevalence, which undoes a shift, surely gains.

    The scores of an overfit model miss the prevalence too, most where labels are rare, although
    nothing has moved one label against another.
    """
    return rises(measured, "label_free") or rises(measured, "offset")


def weights_are_strange(measured: Measurements) -> bool:
    """Whether the weights do not fit the scores; not where subtracting ln w is seen to gain."""
    weight_fit = measured.weight_fit
    if weight_fit is None or weight_fit.fit == "fits":
        return False
    if weight_fit.fit in ("reversed", "unrelated") and not shifts_are_felt(measured):
        return False
    return weights_are_logarithms(measured) or not rises(measured, "inversion")


def are_corrected(measured: Measurements) -> bool:
    """Whether labels fit their prevalence as if there were no weights, which intend far more."""
    size, intended = measured.shift_size, measured.shifts.reachable
    if size is None or intended is None:
        return False
    return size < UNSHIFTED and size < UNTRACED * float(np.sqrt(np.mean(intended**2)))


# ------------------------------------------------------------------------------------- what to take


def chosen_repair(measured: Measurements) -> str | None:
    """The repair to take: what `Repair` would deploy, or the inversion if level with it.

    Either has to surely beat raw and popularity. None without a signal: what maps fitted on
    scores that say nothing gain over raw is that of a list by prevalence.
    """
    if lacks_signal(measured):
        return None
    if inversion_pays(measured):
        return "inversion"
    names = [fitted_repair(measured)]
    if gains(measured, "inversion") and not weights_are_logarithms(measured):
        names.append("inversion")
    return measured.ladder.best(tuple(name for name in names if name is not None))


def name_repair(measured: Measurements, rung: str) -> str:
    """What a rung is called in a sentence: what was chosen goes by its own name."""
    return measured.chosen.name if rung == "chosen" and measured.chosen is not None else rung


def is_sound(measured: Measurements) -> bool:
    """Whether the raw scores may stay: nothing is surely better, and there is a signal."""
    return (
        not lacks_signal(measured)
        and chosen_repair(measured) is None
        and twin_standing(measured) != "above"
        and not is_below_popularity(measured)
    )
