"""Every rung that a case allows, fitted, ranked and scored on the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators import Ceiling, build_calibrator
from oddslip.calibrators.catalogue import CANDIDATES, CATALOGUE
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.policy import build_maps
from oddslip.counting import CellCounts
from oddslip.diagnosis.case import Case
from oddslip.diagnosis.drift import Takeover, find_takeover
from oddslip.diagnosis.signal import Signal, find_signal
from oddslip.kernels.maps import AFFINE, EXCLUDED, IDENTITY
from oddslip.labels import Seen
from oddslip.metrics.at_k import Column, Ties, label_propensities, metric_values, rank_source
from oddslip.metrics.ranking import Rankings, rank_panel
from oddslip.panels import Kind, Panel
from oddslip.selection.candidates import Candidate
from oddslip.selection.cross import cross_choose
from oddslip.selection.fold_fits import affordable
from oddslip.selection.folds import Dealt, FoldCounter, Folds, PositiveCells, PositiveCellTally
from oddslip.selection.repair import Repair
from oddslip.selection.rules import read_rule
from oddslip.selection.trials import Trials, try_candidates
from oddslip.sources import Source
from oddslip.sources.views import take_rows

N_FOLDS = 5  # those of `Repair`
Ranking = NDArray[np.int32]
MapsByFold = list[LabelMaps]


class Chosen(NamedTuple):
    """What `Repair` would deploy with the same inputs, and why, in one sentence."""

    name: str
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """What became of all evaluated rows: how every rung ranks them, and what else was seen.

    ``rankings`` and ``values`` are those of the rows with a true label; ``raw`` and ``twin`` are
    rankings of all rows, where there is a twin. ``signal`` is the within-label AUC of raw.
    ``n_tied`` rows of raw are decided by ties; ``map_worst`` and ``map_best`` say how far the
    order of tied cells can move its MAP. ``unseen`` labels have evaluation positives and none
    among the rows that their maps were fitted on.
    """

    rankings: dict[str, Ranking]
    values: dict[str, NDArray[np.float64]]
    raw: Ranking | None
    twin: Ranking | None
    chosen: Chosen | None
    signal: Signal
    takeover: Takeover | None
    unseen: NDArray[np.bool_]
    n_tied: int
    map_worst: float
    map_best: float


def climb(case: Case) -> Climb:
    """Fit, rank and score every rung that the case allows."""
    return _climb_crossed(case) if case.crossed else _climb_held_out(case)


# -------------------------------------------------------------------- calibration rows of their own


def _climb_held_out(case: Case) -> Climb:
    """Maps fitted on the calibration rows rank all evaluated rows."""
    cells, counts = _count(case)
    maps, dead = fit_rungs(case)
    chosen = None
    if case.calibration_counts.any() and case.calibration.n_rows >= N_FOLDS:
        repair = Repair(
            k=case.k, prior=case.prior if case.prior_given else None, weights=case.weights,
            kind=case.arm.kind, seed=case.seed,
        ).fit(case.calibration, threads=case.threads)  # fmt: skip
        chosen = Chosen(repair.chosen_, repair.why_)
        maps["chosen"] = repair.fitted_.maps
    maps["ceiling"] = make_ceiling(case, counts)
    rankings = _rank(case.arm, {name: [each] for name, each in maps.items()}, case)
    takeover = None
    if "isotonic" in rankings:
        takeover = find_takeover(rankings["isotonic, identity"], rankings["isotonic"], dead)
    unseen = (case.calibration_counts == 0) & (case.evaluation_counts > 0)
    return _finish(case, rankings, None, chosen, find_signal(cells, counts), takeover, unseen)


def _count(case: Case) -> tuple[PositiveCells, CellCounts]:
    """Where the cells of the evaluated rows lie among their positives."""
    arm, threads = case.arm, case.threads
    cells = arm.run(PositiveCellTally(arm.dtype), threads=threads, what="positives").result()
    # All rows in one fold.
    together = Dealt.numbered(np.zeros(arm.n_rows, np.int32), 1, cells.positives)
    counted = FoldCounter(arm, cells, [False]).count(together, 1, threads=threads)
    return cells, counted.counts[False].without(None)


def fit_rungs(case: Case) -> tuple[dict[str, LabelMaps], NDArray[np.bool_]]:
    """Maps of all rungs that learn from the calibration rows or invert, and the dead labels."""
    kind, prior = case.arm.kind, case.prior if case.prior_given else None
    maps: dict[str, LabelMaps] = {}
    dead = case.calibration_counts == 0
    if case.weights is not None:
        maps["inversion"] = shift_maps(-np.log(case.weights), kind)
    if not case.calibration_counts.any():
        return maps, dead
    for name in (entry.name for entry in CATALOGUE.values() if entry.rung and entry.fitted):
        calibrator = build_calibrator(name, prior=prior, weights=case.weights, kind=kind)
        maps[name], record = calibrator._map_labels(case.calibration, case.threads)
        if name == "isotonic":
            maps |= dict(other_policies(maps[name], record.dead))
    return maps, dead


# ------------------------------------------------------------------------------------- cross-fitted


def _climb_crossed(case: Case) -> Climb:
    """Maps fitted on all folds but one rank that one; so is what a rule chooses without it."""
    prior = case.prior if case.prior_given else None
    rule = read_rule("auto")
    n_rows = case.arm.n_rows
    n_folds = min(N_FOLDS, n_rows)
    wanted = affordable(rule.candidates_for(case.weights), case.arm)
    named = [
        Candidate(name)
        for name, entry in CATALOGUE.items()
        if entry.rung and name in CANDIDATES and (case.weights is not None or not entry.needs)
    ]
    rungs = {each.form: each for each in affordable(named, case.arm)}
    trials = try_candidates(
        case.arm, tuple(dict.fromkeys((*wanted, *rungs.values()))), k=case.k,
        n_folds=n_folds, n_repeats=rule.repeats_for(n_rows), seed=case.seed,
        prior=prior, weights=case.weights, keep_rankings=True, threads=case.threads,
    )  # fmt: skip
    crossed = cross_choose(rule, trials.of(wanted))
    assert trials.rankings is not None
    assert crossed.rankings is not None
    # One repeat is shown, the last, whose maps are still at hand.
    shown = trials.rankings[-1]
    out_of_fold = {name: shown[trials.candidates.index(each)] for name, each in rungs.items()}
    out_of_fold["chosen"] = crossed.rankings[-1]
    name = wanted[crossed.choice.place].name
    counts = trials.fits.counts(None)
    rankings = _rank(case.arm, _refit(trials) | {"ceiling": [make_ceiling(case, counts)]}, case,
                     trials.fits.folds)  # fmt: skip
    taken = _take_over(case, trials, rankings, out_of_fold["isotonic"])
    held = _held_positives(case, trials.fits.folds)
    unseen = (held.max(axis=0) == held.sum(axis=0)) & (case.evaluation_counts > 0)
    signal = find_signal(trials.fits.cells, counts)
    chosen = Chosen(name, crossed.choice.why)
    out_of_fold.pop("raw", None)
    return _finish(case, rankings, out_of_fold, chosen, signal, taken, unseen)


def _refit(trials: Trials) -> dict[str, MapsByFold]:
    """Isotonic maps of every fold under the other policies for dead labels."""
    by_fold = []
    for fold in range(trials.n_folds):
        maps, record = trials.fits.fit(Candidate("isotonic"), fold)
        by_fold.append(dict(other_policies(maps, record.dead)))
        trials.fits.forget(fold)
    return {name: [maps[name] for maps in by_fold] for name in by_fold[0]}


def _held_positives(case: Case, folds: Folds) -> NDArray[np.int64]:
    """Positives of every label in every fold."""
    truth, n_labels = case.arm.positives(), case.arm.n_labels
    fold_of = np.repeat(folds.astype(np.int64), truth.counts)
    n_folds = int(folds.max()) + 1
    counted = np.bincount(fold_of * n_labels + truth.indices, minlength=n_folds * n_labels)
    return counted.reshape(n_folds, n_labels)


def _take_over(
    case: Case, trials: Trials, rankings: dict[str, Ranking], isotonic: Ranking
) -> Takeover:
    """Slots of labels that are dead without a fold, in the rows of that fold."""
    held = _held_positives(case, trials.fits.folds)
    dead = held.sum(axis=0) - held == 0
    total = Takeover(int(dead.any(axis=0).sum()), 0, np.zeros(case.arm.n_labels, np.int64))
    identity = rankings["isotonic, identity"][trials.rows]
    for fold in range(trials.n_folds):
        inside = trials.folds[-1] == fold
        found = find_takeover(identity[inside], isotonic[inside], dead[fold])
        total = replace(total, n_rows=total.n_rows + found.n_rows, slots=total.slots + found.slots)
    return total


# ----------------------------------------------------------------------------------- maps and ranks


def make_ceiling(case: Case, counts: CellCounts) -> LabelMaps:
    """Isotonic maps of the evaluated rows themselves."""
    kind = case.arm.kind
    record = Ceiling(kind=kind)._record(Seen.alike(counts.n_positives, case.arm.n_rows))
    return build_maps(kind, "probability", record, knots=counts.isotonic_knots())


def other_policies(maps: LabelMaps, dead: NDArray[np.bool_]) -> Iterator[tuple[str, LabelMaps]]:
    """The same isotonic maps under the other policies: they differ in the dead labels alone."""
    for policy, code in (("identity", IDENTITY), ("exclude", EXCLUDED)):
        other = maps
        if dead.any():
            other = replace(
                maps, code=np.where(dead, code, maps.code), a=np.where(dead, 0.0, maps.a)
            )
        yield f"isotonic, {policy}", other


def shift_maps(shift_nat: NDArray[np.float64], kind: Kind) -> LabelMaps:
    """Maps that are known without a fit, and so without a pass over the rows."""
    n, none = shift_nat.size, np.empty(0)
    places = np.zeros(n, np.int64)
    return LabelMaps(
        kind, "log_odds", code=np.full(n, AFFINE, np.int8), a=np.ones(n), b=shift_nat,
        c=np.zeros(n), start=places, stop=places, x=none, y=none,
    )  # fmt: skip


def _rank(
    source: Source, maps: dict[str, MapsByFold], case: Case, folds: Folds | None = None
) -> dict[str, Ranking]:
    """Top K of all rows by every map, each map once, and by raw if it is compared with a twin.

    A rung has one map, or one for each fold, which ranks the rows of that fold.
    """
    k = case.k
    names = (*maps, "raw") if case.twin is not None else tuple(maps)
    ranked_by = {name: np.empty((source.n_rows, k), np.int32) for name in names}

    def rank_block(panel: Panel) -> None:
        place = slice(panel.first_row, panel.first_row + panel.n_rows)
        if "raw" in ranked_by:
            ranked_by["raw"][place] = rank_panel(panel, k)
        n_folds = max((len(each) for each in maps.values()), default=1)
        whole = {name: each[0] for name, each in maps.items() if len(each) == 1}
        _rank_part(panel, whole, k, {name: ranked_by[name][place] for name in whole})
        if folds is None or n_folds == 1:
            return
        for fold in range(n_folds):
            rows = np.flatnonzero(folds[place] == fold)
            parts = {name: each[fold] for name, each in maps.items() if len(each) > 1}
            out = {name: np.empty((rows.size, k), np.int32) for name in parts}
            if rows.size:
                _rank_part(take_rows(panel, rows), parts, k, out)
            for name, block in out.items():
                ranked_by[name][place][rows] = block

    for _ in source.map(rank_block, threads=case.threads, what="climbing the ladder"):
        pass
    return ranked_by


def _rank_part(panel: Panel, maps: dict[str, LabelMaps], k: int, out: dict[str, Ranking]) -> None:
    """Rank the rows of a panel by every map; maps that are the same object, once."""
    done: dict[int, Ranking] = {}
    for name, each in maps.items():
        if id(each) not in done:
            done[id(each)] = each.rank_panel(panel, k)
        out[name][:] = done[id(each)]


def _finish(
    case: Case,
    rankings: dict[str, Ranking],
    out_of_fold: dict[str, Ranking] | None,
    chosen: Chosen | None,
    signal: Signal,
    takeover: Takeover | None,
    unseen: NDArray[np.bool_],
) -> Climb:
    """Score what was ranked: all rows, or out of fold those with a true label."""
    truth = case.arm.positives()
    counted = np.flatnonzero(truth.counts)
    true = truth.take(counted)
    chances = label_propensities(case.evaluation_counts, case.arm.n_rows)
    tied = rank_source(case.arm, case.k, case.threads)
    raw, twin = rankings.get("raw"), None
    if case.twin is not None:
        shifted = {}
        if case.weights is not None:
            shifted["what-if"] = [shift_maps(-np.log(1.0 / case.weights), case.twin.kind)]
        ranked = _rank(case.twin, shifted, case)
        twin = ranked.pop("raw")
        rankings |= ranked | {"unweighted": twin}
    of_rows = {name: ranking[counted] for name, ranking in rankings.items()} | (out_of_fold or {})
    popular = np.argsort(-case.prior, kind="stable")[: case.k].astype(np.int32)
    of_rows["raw"] = tied.columns
    of_rows["popularity"] = np.tile(popular, (counted.size, 1))
    values = {
        name: metric_values(
            Rankings.made(ranking, true, case.arm.n_labels), propensities_given=chances
        )
        for name, ranking in of_rows.items()
    }

    def bound(ties: Ties) -> float:
        return float(metric_values(tied, ties=ties)[:, Column.MAP].mean())

    return Climb(
        rankings=of_rows, values=values, raw=raw, twin=twin, chosen=chosen, signal=signal,
        takeover=takeover, unseen=unseen, n_tied=int(tied.decided_by_ties.sum()),
        map_worst=bound("worst"), map_best=bound("best"),
    )  # fmt: skip
