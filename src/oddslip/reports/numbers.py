"""Every number that a page, a picture or a terminal derives from a result, computed once."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from oddslip.core.formatting import estimated, nat, score
from oddslip.diagnosis.thresholds import NEAR, REGAINED, SATURATED_SHARE, conditions_hold
from oddslip.metrics.at_k import NAMES

if TYPE_CHECKING:
    from oddslip.diagnosis.label_shifts import LabelShifts
    from oddslip.diagnosis.ladder import Ladder
    from oddslip.diagnosis.result import Diagnosis
    from oddslip.metrics.reliability import Reliability

HERE = "this model"
REFERENCE_METRIC = "map"  # the metric of the reference models of the package


# --------------------------------------------------------------------- the repair of a diagnosis


class DiagnosedRepair(NamedTuple):
    """The repair of a diagnosis: its rung, its name, and the metric it reaches.

    ``share`` is the part of the loss that it returns, below zero if it hurts; None without a loss.
    """

    rung: str
    name: str
    value: float
    share: float | None


def repair_of(diagnosis: Diagnosis) -> DiagnosedRepair | None:
    """The repair of the verdict, or what `Repair` would choose if the verdict recommends none.

    None if nothing can be fitted.

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(300, 9)
    >>> repair_of(diagnose(pair.weighted, pair.labels, k=3, n_replicates=0)).rung
    'chosen'
    """
    from oddslip.diagnosis.comparison import name_repair  # only loaded for a diagnosis

    rung, parts = diagnosis.verdict.repair or "chosen", diagnosis.decomposition
    if rung not in diagnosis.ladder:
        return None
    name = name_repair(diagnosis, rung)
    share = None if parts is None else parts.returned.get(rung)
    return DiagnosedRepair(rung, name, diagnosis.ladder.value(rung), share)


MAX_RUNGS = 7
# The rungs of the first screen, the most important first.
MAIN_RUNGS = (
    "raw",
    "unweighted",
    "chosen",
    "inversion",
    "isotonic",
    "popularity",
    "ceiling",
    "what-if",
    "hierarchical",
)


def main_rungs(diagnosis: Diagnosis) -> list[str]:
    """At most seven rungs, in the order of the ladder; the repair of the verdict is among them.

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(300, 9)
    >>> main_rungs(diagnose(pair.weighted, pair.labels, k=3, n_replicates=0))
    ['raw', 'chosen', 'isotonic', 'hierarchical', 'popularity', 'ceiling']
    """
    ladder, repair = diagnosis.ladder, diagnosis.verdict.repair
    names = [name for name in ("raw", repair, *MAIN_RUNGS) if name is not None and name in ladder]
    main = list(dict.fromkeys(names))[:MAX_RUNGS]
    return [name for name in ladder if name in main]


# ------------------------------------------------------------------------- the waterfall, figure 1A


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The loss of one matched pair, and what repairs return (the paper's figure 1A).

    ``unweighted_repaired`` is the twin under the same calibrator, where that is known. ``repair``
    names the calibrator: isotonic in the paper.
    """

    name: str
    metric: str
    unweighted: float
    what_if: float
    weighted: float
    inversion: float | None
    repaired: float
    ceiling: float
    unweighted_repaired: float | None = None
    repair: str = "isotonic"


def waterfall_of(diagnosis: Diagnosis) -> Waterfall | None:
    """The loss and what repairs return; None if `lacks_waterfall` gives a reason.

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(300, 9)
    >>> diagnosis = diagnose(
    ...     pair.weighted, pair.labels, k=3, n_replicates=0,
    ...     weights=pair.weights, unweighted=pair.unweighted,
    ... )
    >>> waterfall_of(diagnosis).metric
    'MAP@3'
    """
    ladder, repair = diagnosis.ladder, repair_of(diagnosis)
    if repair is None or lacks_waterfall(diagnosis):
        return None
    has_inversion = "inversion" in ladder and repair.rung != "inversion"
    return Waterfall(
        name=HERE,
        metric=diagnosis.metric_name,
        unweighted=ladder.value("unweighted"),
        what_if=ladder.value("what-if"),
        weighted=ladder.value("raw"),
        inversion=ladder.value("inversion") if has_inversion else None,
        repaired=repair.value,
        ceiling=ladder.value("ceiling"),
        repair=repair.name,
    )


def lacks_waterfall(diagnosis: Diagnosis) -> str:
    """Why there is no waterfall and what would allow it; empty if there is one."""
    needs = {
        "unweighted": "The scores of the unweighted twin for the same rows (unweighted=, "
        "--unweighted) would show what the weights cost, and by which cause.",
        "what-if": "The weight of every label (weights=, --weights) would tell the odds shift from "
        "the slippage.",
    }
    if repair_of(diagnosis) is None:
        needs["chosen"] = "Calibration rows with a true label would show what calibration returns."
    return next((need for rung, need in needs.items() if rung not in diagnosis.ladder), "")


def has_loss(waterfall: Waterfall) -> bool:
    """Whether the weights cost anything, so that parts can be shares of it."""
    return waterfall.unweighted > waterfall.weighted


class Step(NamedTuple):
    """One bar of a waterfall: a model, from zero to its level, or a change between two levels.

    ``share`` is the part of the loss that a cause took or that a repair returned: below zero for
    a cause that gained and for a repair that hurt. None for a model, and where nothing was lost.
    """

    name: str
    start: float
    stop: float
    is_model: bool
    share: float | None = None

    @property
    def change(self) -> float:
        """The height with its sign: below zero where the metric falls."""
        return self.stop - self.start

    @property
    def falls(self) -> bool:
        """Whether the metric falls."""
        return self.stop < self.start

    @property
    def joint(self) -> float:
        """The level where the previous bar ends."""
        return self.stop if self.is_model else self.start


def waterfall_steps(waterfall: Waterfall) -> list[Step]:
    """The bars from the twin down to the weighted model, and from there to each repair.

    Examples
    --------
    >>> hurt = Waterfall("a pair", "MAP@7", 0.5, 0.45, 0.4, None, repaired=0.35, ceiling=0.5)
    >>> [(step.name, round(step.share, 2)) for step in waterfall_steps(hurt) if step.share]
    [('odds shift', 0.5), ('slippage', 0.5), ('isotonic', -0.5)]
    """

    def model(name: str, level: float) -> Step:
        return Step(name, 0.0, level, True)

    def change(name: str, start: float, stop: float, part: float) -> Step:
        loss = waterfall.unweighted - waterfall.weighted
        return Step(name, start, stop, False, part / loss if has_loss(waterfall) else None)

    def cause(name: str, start: float, stop: float) -> Step:
        return change(name, start, stop, start - stop)

    def repair(name: str, level: float) -> Step:
        return change(name, waterfall.weighted, level, level - waterfall.weighted)

    inversion = [] if waterfall.inversion is None else [repair("inversion", waterfall.inversion)]
    return [
        model("unweighted", waterfall.unweighted),
        cause("odds shift", waterfall.unweighted, waterfall.what_if),
        cause("slippage", waterfall.what_if, waterfall.weighted),
        model("weighted", waterfall.weighted),
        *inversion,
        repair(waterfall.repair, waterfall.repaired),
        model("repaired", waterfall.repaired),
    ]


# -------------------------------------------------------------------------------- regimes, figure 2


@dataclass(frozen=True, slots=True)
class RegimePoint:
    """One weighted model in the regime picture (figure 2).

    ``ratio`` is the median realized over intended shift, ``returned`` the share of the loss that
    the inversion returns, ``here`` marks the model that a report is about.
    """

    name: str
    series: str
    ratio: float
    returned: float
    saturated_share: float
    here: bool = False


def regime_of(diagnosis: Diagnosis) -> RegimePoint | None:
    """This model in the regime picture; None if `lacks_regime` gives a reason.

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(300, 9)
    >>> regime_of(diagnose(pair.weighted, pair.labels, k=3, n_replicates=0)) is None
    True
    """
    parts, ratio = diagnosis.decomposition, diagnosis.shifts.median_ratio
    if lacks_regime(diagnosis) or parts is None or ratio is None:
        return None
    return RegimePoint(
        name=HERE,
        series=HERE,
        ratio=ratio,
        returned=parts.returned["inversion"],
        saturated_share=diagnosis.saturation.share,
        here=True,
    )


def lacks_regime(diagnosis: Diagnosis) -> str:
    """Why this model has no place in the regime picture; empty if it has one."""
    parts, ratio = diagnosis.decomposition, diagnosis.shifts.median_ratio
    inputs = {
        "the weight of every label (weights=, --weights)": diagnosis.weights,
        "the scores of the unweighted twin (unweighted=, --unweighted)": parts,
    }
    needs = [name for name, value in inputs.items() if value is None]
    if needs:
        return f"Its place needs {' and '.join(needs)}."
    if parts is not None and parts.loss <= 0:
        return "It lost nothing against its unweighted twin, so there is no loss to return."
    if ratio is None:
        return "No weighted label has a shift that can be read: weights of 1, or saturated cells."
    return ""


def is_open(point: RegimePoint) -> bool:
    """Whether a relevant share of cells is saturated; such marks are drawn open."""
    return point.saturated_share > SATURATED_SHARE


class Regimes(NamedTuple):
    """Reference points and their origin; no points if the package has none."""

    source: str
    points: tuple[RegimePoint, ...]


def read_regimes() -> Regimes:
    """The reference points that come with the package."""
    file = resources.files("oddslip.reports").joinpath("regimes.json")
    if not file.is_file():
        return Regimes("", ())
    stored = json.loads(file.read_text(encoding="utf-8"))
    points = tuple(
        RegimePoint(
            name=str(point["name"]),
            series=str(point["series"]),
            ratio=float(point["ratio"]),
            returned=float(point["returned"]),
            saturated_share=float(point["saturated_share"]),
        )
        for point in stored["points"]
        # A model without a loss or without a readable shift is not in the picture.
        if point["ratio"] is not None and point["returned"] is not None
    )
    return Regimes(str(stored["source"]), points)


class RegimeCounts(NamedTuple):
    """Models with and without both conditions, and how many regained half of their loss."""

    n_inside: int
    n_inside_regained: int
    n_outside: int
    n_outside_regained: int

    @property
    def n_models(self) -> int:
        """All models counted."""
        return self.n_inside + self.n_outside

    @property
    def n_regained(self) -> int:
        """Those that regained at least half of their loss by inversion."""
        return self.n_inside_regained + self.n_outside_regained


def count_regimes(points: Iterable[RegimePoint]) -> RegimeCounts:
    """How often the paper's association holds among these models, without the report's own model.

    Examples
    --------
    >>> count_regimes([
    ...     RegimePoint("realized", "a", 0.98, 0.9, 0.0),
    ...     RegimePoint("saturated", "a", 0.98, 0.1, 0.2),
    ...     RegimePoint("short", "a", 0.40, 0.7, 0.0),
    ... ])
    RegimeCounts(n_inside=1, n_inside_regained=1, n_outside=2, n_outside_regained=1)
    """
    counts = {True: [0, 0], False: [0, 0]}
    for point in points:
        if not point.here:
            count = counts[conditions_hold(point.ratio, point.saturated_share)]
            count[0] += 1
            count[1] += point.returned >= REGAINED
    return RegimeCounts(*counts[True], *counts[False])


def tell_association(counts: RegimeCounts, diagnosis: Diagnosis | None = None) -> list[str]:
    """The paper's association in words, and how often it held.

    A diagnosis in another metric than that of the reference models is distinguished from them.

    Examples
    --------
    >>> tell_association(RegimeCounts(2, 2, 4, 1))[1]
    'Of 6 weighted models trained before, 3 regained at least half of their loss by subtracting \
ln w: 2 of the 2 that meet both conditions, and 1 of the 4 that do not.'
    """
    sentences = [
        "The paper's association: subtracting ln w pays where the learner realized the shift "
        f"(median {NEAR[0]:g} to {NEAR[1]:g} of ln w) and essentially no cell is saturated."
    ]
    if counts.n_models:
        sentences.append(
            f"Of {counts.n_models} weighted models trained before, {counts.n_regained} regained at "
            f"least half of their loss by subtracting ln w: {counts.n_inside_regained} of the "
            f"{counts.n_inside} that meet both conditions, and {counts.n_outside_regained} of the "
            f"{counts.n_outside} that do not."
        )
        if diagnosis is not None and diagnosis.metric != REFERENCE_METRIC:
            sentences.append(
                f"Their losses are in {NAMES[REFERENCE_METRIC]}@K, this model's in "
                f"{diagnosis.metric_name}."
            )
    return sentences


# ---------------------------------------------------------------------------- rungs, shifts, labels


def kind_of(rung: str) -> Literal["raw", "repair", "reference"]:
    """Whether a rung is raw, something to deploy in its place, or something to compare with."""
    if rung == "raw":
        return "raw"
    from oddslip.diagnosis.ladder import REPAIRS  # only loaded for a diagnosis

    return "repair" if rung in (*REPAIRS, "isotonic, identity") else "reference"


def hurts(ladder: Ladder, rung: str) -> bool:
    """Whether a repair is below raw, in the metric of the ladder."""
    return kind_of(rung) == "repair" and ladder.value(rung) < ladder.value("raw")


def tell_signal(diagnosis: Diagnosis) -> str:
    """The within-label AUC in words."""
    signal = diagnosis.signal
    n_labels = int(np.isfinite(signal.areas).sum())
    if not n_labels:
        return "Within-label AUC: no label is true in some evaluated rows and not in others."
    over = "1 label" if n_labels == 1 else f"{n_labels:,} labels"
    return f"Within-label AUC: {estimated(signal.mean)}, mean over {over}."


def tell_likeness(diagnosis: Diagnosis) -> str:
    """How closely the twin follows the scores, in words; empty if that is not known."""
    agreement = diagnosis.likeness
    if agreement is None or agreement.mean is None:
        return ""
    return f"Ranks within labels correlate with the twin's by {estimated(agreement.mean)}."


def tell_shown(diagnosis: Diagnosis) -> str:
    """Whether the probabilities of the labels shown are right, raw and repaired."""
    before, after = diagnosis.shown["raw"], diagnosis.shown.get("chosen")
    text = f"Probabilities of the labels shown are off by {_off(before)} (ECE@{diagnosis.k})"
    if after is None or diagnosis.chosen is None or diagnosis.chosen.name == "raw":
        return f"{text}."
    return f"{text}; under {diagnosis.chosen.name}, which Repair chooses, by {_off(after)}."


def _off(reliability: Reliability) -> str:
    """How far probabilities are from the share that is true: on average, and in sum."""
    way = "high" if reliability.bias > 0 else "low"
    return (
        f"{score(reliability.ece)} on average, too {way} by {score(abs(reliability.bias))} in all"
    )


def finite_budget(shifts: LabelShifts) -> float | None:
    """The step budget, if there is one and it can bind."""
    budget = shifts.budget
    return budget if budget is not None and math.isfinite(budget) else None


def tell_residual(shifts: LabelShifts) -> list[str]:
    """The error that the inversion leaves within rows, and its bounds; empty if unknown."""
    rest, bounds = shifts.residual, shifts.inversion
    sentences = []
    if rest is not None and rest.median_spread is not None and rest.largest_spread is not None:
        sentences.append(
            f"What inverting by ln w leaves spreads by {nat(rest.median_spread)} nat within the "
            f"median row, {nat(rest.largest_spread)} at most; 0 would return the twin's order."
        )
        gap = rest.to_dict()["largest_gap"]
        if bounds is not None and math.isfinite(bounds.gap):
            sentences.append(
                f"No cell lies further than {nat(gap)} nat from the twin's; the cap allows "
                f"{nat(bounds.gap)} (2 T eta c)."
            )
    if bounds is not None and math.isfinite(bounds.gap):
        sentences.append(f"Inverting by ln w {bounds.sentence}.")
    return sentences


def lacks_shifts(diagnosis: Diagnosis) -> str:
    """Why there is no picture of the shifts and what would allow it; empty if there is one."""
    if diagnosis.shifts.intended is None:
        return (
            "The weight of every label (weights=, --weights) would give the shift that each was "
            "meant to have."
        )
    return ""


def label_columns(diagnosis: Diagnosis) -> dict[str, Any]:
    """The columns of the table of labels; a shift that cannot be read is left empty."""
    shifts = diagnosis.shifts
    realized = np.where(shifts.identified, shifts.realized, np.nan)
    return diagnosis.label_columns() | {"realized_shift": realized}
