"""The maps of every rung that a case allows, fitted on other rows than those they rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from oddslip.calibrators import Ceiling, build_calibrator
from oddslip.calibrators.catalogue import CANDIDATES, CATALOGUE
from oddslip.calibrators.policy import build_maps, find_prior
from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Kind
from oddslip.core.passes import Passes
from oddslip.core.types import Bools, Floats
from oddslip.diagnosis.case import Case
from oddslip.kernels.maps import AFFINE, CONSTANT, EXCLUDED, IDENTITY
from oddslip.repairs.maps import LabelMaps
from oddslip.selection.candidates import Candidate
from oddslip.selection.fold_fits import affordable
from oddslip.selection.folds import FoldAssignment, HashFolds, assign_folds
from oddslip.selection.row_aware import can_try_stage, try_stage
from oddslip.selection.rules import Choice, choose_by_fold, read_rule
from oddslip.selection.trials import Trials, try_candidates
from oddslip.sources import Source
from oddslip.tallies.cell_counts import CellCounts, count_cells

N_FOLDS = 5  # those of `Repair`
MAX_STAGE_CELLS = 3_000_000  # above, the row-aware stage is not tried: it takes seconds

MapsByRung = dict[str, list[LabelMaps]]


class Chosen(NamedTuple):
    """What `Repair` would deploy with the same inputs, and why, in one sentence.

    ``row_gain`` is what the row-aware stage would add to it out of fold, with its standard error;
    None where it was not tried.
    """

    name: str
    why: str
    row_gain: float | None = None
    row_gain_error: float | None = None


class Rungs(NamedTuple):
    """Everything that ranks rows.

    ``places`` names the maps of each rung by their place in ``maps``: one that ranks all rows, or
    one for each fold. ``popular`` holds a list of labels by rung, or maps where each row has labels
    of its own. ``dead`` marks, for each fold, the labels that the identity policy may give slots
    to.
    """

    maps: list[LabelMaps]
    places: dict[str, list[int]]
    folds: FoldAssignment | None
    popular: dict[str, Any]
    what_if: LabelMaps | None
    dead: Bools

    @classmethod
    def of_case(
        cls, case: Case, maps: MapsByRung, folds: FoldAssignment | None, dead: Bools
    ) -> Rungs:
        """The rungs of a case; maps that are one object have one place."""
        distinct = {id(each): each for by_fold in maps.values() for each in by_fold}
        order = {number: place for place, number in enumerate(distinct)}
        places = {name: [order[id(each)] for each in by_fold] for name, by_fold in maps.items()}
        what_if = None
        if case.twin is not None and case.weights is not None:
            what_if = shift_maps(-np.log(1.0 / case.weights), case.twin.kind)
        return cls(list(distinct.values()), places, folds, rank_popular(case), what_if, dead)


class FittedRungs(NamedTuple):
    """Rungs, cells of the evaluated rows between their positives, the choice, and unseen labels.

    ``unseen`` labels have evaluation positives and none among the rows that their maps were fitted
    on.
    """

    rungs: Rungs
    counts: CellCounts
    chosen_rung: Chosen | None
    unseen: Bools


# ------------------------------------------------------------------------------------- cross-fitted


def fit_crossed(case: Case) -> Passes[FittedRungs]:
    """Maps fitted on all folds but one rank that fold; so does what a rule chooses without it."""
    arm = case.arm
    rule = read_rule("auto")
    candidates = affordable(rule.candidates_for(case.weights), arm)
    named = [
        Candidate(name)
        for name, entry in CATALOGUE.items()
        if entry.rung and name in CANDIDATES and (case.weights is not None or not entry.needs)
    ]
    by_name = {each.form: each for each in affordable(named, arm)}
    folds = _assign_folds(case, arm, rule.repeats_for(arm.n_rows))
    trials = yield from try_candidates(
        arm,
        tuple(dict.fromkeys((*candidates, *by_name.values()))),
        case.scoring,
        case.policy,
        folds=folds,
        seed=case.seed,
        screen=rule.contenders,
    )
    tried = trials.of(candidates)
    choice = rule.choose(tried)
    chosen_by_fold = [candidates[place] for place in choose_by_fold(rule, tried)]
    maps = {
        name: _maps_by_fold(trials, [each] * trials.n_folds)
        for name, each in by_name.items()
        if name != "raw"
    }
    maps["chosen"] = _maps_by_fold(trials, chosen_by_fold)
    for fold, isotonic in enumerate(maps["isotonic"]):
        dead_record = trials.fits.record(Candidate("isotonic").tau, fold).dead
        for name, other in other_policies(isotonic, dead_record):
            maps.setdefault(name, []).append(other)
    chosen_rung = yield from _try_rows(case, tried, choice, folds)
    counts = trials.fits.counts(None)
    maps["ceiling"] = [make_ceiling(case, counts)]
    positives = np.array([totals.n_positives for totals in trials.fits._totals])
    trials.fits.release()
    dead = positives.sum(axis=0) - positives == 0
    unseen = (positives.max(axis=0) == positives.sum(axis=0)) & (case.evaluation_counts > 0)
    return FittedRungs(Rungs.of_case(case, maps, folds[-1], dead), counts, chosen_rung, unseen)


def _maps_by_fold(trials: Trials, candidates: list[Candidate]) -> list[LabelMaps]:
    """Maps of a candidate for each fold, in the last repeat: the one that is reported."""
    return [
        maps[trials.candidates.index(each)]
        for maps, each in zip(trials.fitted[-1], candidates, strict=True)
    ]


def _try_rows(
    case: Case, trials: Trials, choice: Choice, folds: Sequence[FoldAssignment]
) -> Passes[Chosen]:
    """The choice, and what the row-aware stage would add to it in the first folds."""
    rung = Chosen(trials.candidates[choice.place].name, choice.why)
    source = trials.fits.source
    if source.n_rows * source.n_labels > MAX_STAGE_CELLS or not can_try_stage(trials):
        return rung
    stage = yield from try_stage(trials, choice.place, folds[:1], case.scoring, case.policy)
    return rung if stage is None else Chosen(rung.name, rung.why, *stage.gain())


def _assign_folds(case: Case, source: Source, n_repeats: int) -> list[HashFolds]:
    return assign_folds(source, _n_folds(source), seed=case.seed, n_repeats=n_repeats)


def _n_folds(source: Source) -> int:
    """Five, or as many as there are distinct row keys."""
    keys = source.small_keys()
    return N_FOLDS if keys is None else min(N_FOLDS, np.unique(keys).size)


# -------------------------------------------------------------------- calibration rows of their own


def fit_held_out(
    case: Case, maps: dict[str, LabelMaps], chosen_rung: Chosen | None
) -> Passes[FittedRungs]:
    """Maps fitted on the calibration rows rank all evaluated rows."""
    counts = yield from count_cells(case.arm)
    dead = case.calibration_counts == 0
    whole = {name: [each] for name, each in maps.items()} | {
        "ceiling": [make_ceiling(case, counts)]
    }
    rungs = Rungs.of_case(case, whole, None, dead[None])
    return FittedRungs(rungs, counts, chosen_rung, dead & (case.evaluation_counts > 0))


def fit_maps(case: Case) -> Passes[tuple[dict[str, LabelMaps], Chosen | None]]:
    """Maps of the inversion and of every rung fitted on all calibration rows, and the choice.

    The rule's trials count and summarise the calibration rows, and rungs are made of that.
    """
    rows, maps = case.calibration, dict[str, LabelMaps]()
    if case.weights is not None:
        maps["inversion"] = shift_maps(-np.log(case.weights), case.arm.kind)
    if not case.calibration_counts.any():
        return maps, None
    names = [entry.name for entry in CATALOGUE.values() if entry.rung and entry.fitted]
    chosen_rung, fitted = None, {}
    if _n_folds(rows) == N_FOLDS:
        rule = read_rule("auto")
        candidates = affordable(rule.candidates_for(case.weights), rows)
        also = affordable([Candidate(name) for name in names], rows)
        folds = _assign_folds(case, rows, rule.repeats_for(rows.n_rows))
        trials = yield from try_candidates(
            rows,
            candidates,
            case.scoring,
            case.policy,
            folds=folds,
            seed=case.seed,
            also=also,
            screen=rule.contenders,
        )
        choice = rule.choose(trials)
        best = candidates[choice.place]
        fits = yield from trials.fits.fit_together([*also, best])
        fitted = {each.form: fit for each, fit in zip(also, fits, strict=False)}
        maps["chosen"] = fits[-1][0]
        chosen_rung = yield from _try_rows(case, trials, choice, folds)
    for name in names:
        if name not in fitted:  # too few rows for folds, or too many labels for summaries
            arguments = {"prior": case.policy.prior, "weights": case.weights}
            calibrator = build_calibrator(name, **arguments, kind=rows.kind)
            fitted[name] = yield from calibrator._map_labels(rows)
        maps[name], record = fitted[name]
        if name == "isotonic":
            maps |= dict(other_policies(maps[name], record.dead))
    return maps, chosen_rung


# ----------------------------------------------------------------------------------------- the maps


def make_ceiling(case: Case, counts: CellCounts) -> LabelMaps:
    """Isotonic maps of the evaluated rows themselves."""
    kind = case.arm.kind
    record = Ceiling(kind=kind)._record(LabelTotals.alike(counts.n_positives, case.arm.totals()))
    return build_maps(kind, "probability", record, knots=counts.isotonic_knots())


def other_policies(maps: LabelMaps, dead: Bools) -> Iterator[tuple[str, LabelMaps]]:
    """The same isotonic maps under the other policies: they differ in the dead labels alone."""
    for policy, code in (("identity", IDENTITY), ("exclude", EXCLUDED)):
        other = maps
        if dead.any():
            other = replace(
                maps, code=np.where(dead, code, maps.code), a=np.where(dead, 0.0, maps.a)
            )
        yield f"isotonic, {policy}", other


def shift_maps(shift_nat: Floats, kind: Kind) -> LabelMaps:
    """Maps that are known without a fit, and so without a pass over the rows."""
    n = shift_nat.size
    return _plain_maps(kind, "log_odds", AFFINE, np.ones(n), shift_nat)


def constant_maps(prior: Floats, kind: Kind) -> LabelMaps:
    """Maps that give every row the prior: what is popular among the labels it has."""
    return _plain_maps(kind, "probability", CONSTANT, prior, np.zeros(prior.size))


def _plain_maps(kind: Kind, unit: Any, code: int, a: Floats, b: Floats) -> LabelMaps:
    """Maps of one code for all labels, without knots."""
    n, none = a.size, np.empty(0)
    places = np.zeros(n, np.int64)
    codes = np.full(n, code, np.int8)
    return LabelMaps(
        kind, unit, code=codes, a=a, b=b, c=np.zeros(n), start=places, stop=places, x=none, y=none
    )


def rank_popular(case: Case) -> dict[str, Any]:
    """The top K by prevalence, or maps to it where rows have labels of their own, by rung.

    The prior is one prevalence. Where it is given, that of the calibration rows is another: what
    maps fitted on those rows come to if the scores say nothing.
    """
    priors = {"popularity": case.prior}
    if case.prior_given and case.calibration_counts.any():
        totals = case.calibration.totals()
        priors["popularity, calibration"] = find_prior(None, case.calibration_counts, totals)[0]
    if case.arm.partial:
        return {name: constant_maps(prior, case.arm.kind) for name, prior in priors.items()}
    return {
        name: np.argsort(-prior, kind="stable")[: case.scoring.k].astype(np.int32)
        for name, prior in priors.items()
    }
