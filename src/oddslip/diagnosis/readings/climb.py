"""Every rung that a case allows, fitted, ranked and scored on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators import Ceiling, build_calibrator
from oddslip.calibrators.catalogue import CANDIDATES, CATALOGUE
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.policy import build_maps, find_prior
from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Kind, Panel, take_cells
from oddslip.core.threads import release_memory
from oddslip.diagnosis.case import Case
from oddslip.diagnosis.drift import Takeover, find_takeover, unique_row_hashes
from oddslip.diagnosis.readings.asides import Asides, read_arm, sampled_rows, take_sample
from oddslip.diagnosis.signal import Signal, find_signal
from oddslip.kernels.maps import AFFINE, CONSTANT, EXCLUDED, IDENTITY
from oddslip.metrics.at_k import Column, Ties, metric_values, rank_source
from oddslip.metrics.ranking import Rankings, rank_panel
from oddslip.metrics.reliability import N_BINS, ReliabilityTally, count_shown
from oddslip.selection.candidates import Candidate
from oddslip.selection.cross import cross_choose
from oddslip.selection.fold_fits import affordable
from oddslip.selection.folds import Dealt, FoldCounter, Folds, PositiveCells, PositiveCellTally
from oddslip.selection.keyed import try_keyed
from oddslip.selection.rules import read_rule
from oddslip.selection.trials import Trials, try_candidates
from oddslip.sources import Source
from oddslip.sources.passes import read_together
from oddslip.sources.views import take_rows
from oddslip.tallies.cell_counts import CellCounts

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
    ``n_tied`` rows of raw are decided by ties; ``bounds`` are the sums of its columns with tied
    cells in their worst order, and in their best. ``unseen`` labels have evaluation positives and
    none among the rows that their maps were fitted on. ``asides`` is what was read of the
    evaluated rows on the way, ``samples`` the same rows of model and twin, ``marks`` those of
    calibration and evaluated rows. ``shown`` counts what is shown and true in bins of its
    probability, by raw scores and by what is chosen: see `oddslip.metrics.reliability`.
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
    bounds: NDArray[np.float64]
    asides: Asides
    samples: tuple[NDArray[Any], NDArray[Any]] | None
    marks: tuple[NDArray[np.uint64] | None, NDArray[np.uint64] | None]
    shown: dict[str, NDArray[np.int64]]


def climb(case: Case) -> Climb:
    """Fit, rank and score every rung that the case allows."""
    return _climb_crossed(case) if case.crossed else _climb_held_out(case)


# -------------------------------------------------------------------- calibration rows of their own


def _climb_held_out(case: Case) -> Climb:
    """Maps fitted on the calibration rows rank all evaluated rows."""
    (cells, counts), asides = read_arm(case, partial(_count, case))
    fitted = _fit_rungs(case)
    maps = fitted.maps | {"ceiling": make_ceiling(case, counts)}
    ranked = _rank(case.arm, {name: [each] for name, each in maps.items()}, case, tied=True)
    takeover = None
    if "isotonic" in maps:
        takeover = find_takeover(
            ranked.rankings["isotonic, identity"], ranked.rankings["isotonic"],
            case.calibration_counts == 0,
        )  # fmt: skip
    unseen = (case.calibration_counts == 0) & (case.evaluation_counts > 0)
    return _finish(
        case, ranked, asides, None, chosen=fitted.chosen, signal=find_signal(cells, counts),
        takeover=takeover, unseen=unseen, marks=fitted.marks,
    )  # fmt: skip


def _count(case: Case, arm: Source) -> tuple[PositiveCells, CellCounts]:
    """Where the cells of the evaluated rows lie among their positives."""
    threads = case.threads
    cells = arm.run(PositiveCellTally(arm.dtype), threads=threads, what="positives").result()
    # All rows in one fold.
    together = Dealt.numbered(np.zeros(arm.n_rows, np.int32), 1, cells.positives)
    counted = FoldCounter(arm, cells, [False]).count(together, 1, threads=threads)
    return cells, counted.counts[False].without(None)


class FittedRungs(NamedTuple):
    """Maps of the rungs that are fitted or invert, what is chosen, and marks of the rows."""

    maps: dict[str, LabelMaps]
    chosen: Chosen | None
    marks: NDArray[np.uint64] | None


def _fit_rungs(case: Case) -> FittedRungs:
    """All rungs that learn from the calibration rows or invert, and what `Repair` would deploy.

    The rule's trials count and summarise the calibration rows, and rungs are made of that.
    """
    maps: dict[str, LabelMaps] = {}
    if case.weights is not None:
        maps["inversion"] = shift_maps(-np.log(case.weights), case.arm.kind)
    asked: list[Callable[[Source], Any]] = []
    if case.calibration_counts.any():
        asked.append(partial(fit_maps, case))
    if case.marked:
        asked.append(partial(unique_row_hashes, threads=case.threads))
    found = read_together(
        case.calibration, asked, threads=case.threads, what="reading the calibration rows"
    )
    marks = found.pop() if case.marked else None
    chosen = None
    if found:
        fitted, chosen = found[0]
        maps |= fitted
    return FittedRungs(maps, chosen, marks)


def fit_maps(case: Case, rows: Source) -> tuple[dict[str, LabelMaps], Chosen | None]:
    """Maps of every rung that is fitted, on all calibration rows, and what is chosen."""
    rungs = [entry.name for entry in CATALOGUE.values() if entry.rung and entry.fitted]
    candidates = {name: Candidate(name) for name in rungs}
    prior = case.prior if case.prior_given else None
    maps: dict[str, LabelMaps] = {}
    chosen, fitted = None, {}
    if rows.n_rows >= N_FOLDS:
        rule = read_rule("auto")
        tried = affordable(rule.candidates_for(case.weights), rows)
        also = affordable(list(candidates.values()), rows)
        try_all: Any = try_keyed if case.keyed else try_candidates
        trials = try_all(
            rows, tried, also=also, **case.scoring, n_folds=N_FOLDS,
            n_repeats=rule.repeats_for(rows.n_rows), seed=case.seed, prior=prior,
            weights=case.weights, threads=case.threads,
        )  # fmt: skip
        choice = rule.choose(trials)
        taken = tried[choice.place]
        names = [name for name in rungs if candidates[name] in also]
        made = trials.fits.fit_together([*(candidates[name] for name in names), taken])
        fitted = dict(zip(names, made, strict=False))
        maps["chosen"], chosen = made[-1][0], Chosen(taken.name, choice.why)
    for name in rungs:
        if name not in fitted:  # too few rows for folds, or too many labels for summaries
            calibrator = build_calibrator(name, prior=prior, weights=case.weights, kind=rows.kind)
            fitted[name] = calibrator._map_labels(rows, case.threads)
        maps[name], record = fitted[name]
        if name == "isotonic":
            maps |= dict(other_policies(maps[name], record.dead))
    return maps, chosen


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
    tried = tuple(dict.fromkeys((*wanted, *rungs.values())))
    trials, asides = read_arm(case, lambda arm: try_candidates(
        arm, tried, **case.scoring,
        n_folds=n_folds, n_repeats=rule.repeats_for(n_rows), seed=case.seed,
        prior=prior, weights=case.weights, keep_rankings=True, threads=case.threads,
    ))  # fmt: skip
    crossed = cross_choose(rule, replace(trials, rankings=None).of(wanted))
    assert trials.rankings is not None
    assert trials.fitted is not None
    # One repeat is shown, the last, whose maps are still at hand.
    shown = trials.rankings[-1]
    out_of_fold = {name: shown[trials.candidates.index(each)] for name, each in rungs.items()}
    places = [trials.candidates.index(wanted[place]) for place in crossed.places[-1]]
    out_of_fold["chosen"] = np.empty_like(shown[0])
    for fold, place in enumerate(places):
        inside = trials.folds[-1] == fold
        out_of_fold["chosen"][inside] = shown[place, inside]
    name = wanted[crossed.choice.place].name
    counts = trials.fits.counts(None)
    maps = _other_rungs(trials) | {"ceiling": [make_ceiling(case, counts)]}
    trials.fits.release()
    signal = find_signal(trials.fits.cells, counts)
    del counts
    release_memory()
    maps["chosen"] = [fitted[place] for fitted, place in zip(trials.fitted, places, strict=True)]
    ranked = _rank(case.arm, maps, case, trials.fits.folds, tied=True)
    taken = _take_over(case, trials, ranked.rankings, out_of_fold["isotonic"])
    held = _held_positives(case, trials.fits.folds)
    unseen = (held.max(axis=0) == held.sum(axis=0)) & (case.evaluation_counts > 0)
    out_of_fold.pop("raw", None)
    return _finish(
        case, ranked, asides, out_of_fold, chosen=Chosen(name, crossed.choice.why),
        signal=signal, takeover=taken, unseen=unseen, marks=None,
    )  # fmt: skip


def _other_rungs(trials: Trials) -> dict[str, MapsByFold]:
    """Isotonic maps of every fold under the other policies for dead labels."""
    assert trials.fitted is not None
    isotonic = Candidate("isotonic")
    by_fold = []
    for fold, fitted in enumerate(trials.fitted):
        dead = trials.fits.record(isotonic.tau, fold).dead
        by_fold.append(dict(other_policies(fitted[trials.candidates.index(isotonic)], dead)))
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
    record = Ceiling(kind=kind)._record(LabelTotals.alike(counts.n_positives, case.arm.totals()))
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


def constant_maps(prior: NDArray[np.float64], kind: Kind) -> LabelMaps:
    """Maps that give every row the prior: what is popular among the labels it has."""
    n, none = prior.size, np.empty(0)
    zeros = np.zeros(n, np.int64)
    return LabelMaps(
        kind, "probability", code=np.full(n, CONSTANT, np.int8), a=prior,
        b=np.zeros(n), c=np.zeros(n), start=zeros, stop=zeros, x=none, y=none,
    )  # fmt: skip


def rank_popular(case: Case) -> dict[str, Any]:
    """The top K by prevalence, or maps to it where rows have labels of their own, by rung.

    The prior is one prevalence. Where it is given, that of the calibration rows is another: what
    maps fitted on those rows come to if the scores say nothing.
    """
    priors = {"popularity": case.prior}
    if case.prior_given and case.calibration_counts.any():
        totals = case.calibration.totals(case.threads)
        priors["popularity, calibration"] = find_prior(None, case.calibration_counts, totals)[0]
    if case.arm.partial:
        return {name: constant_maps(prior, case.arm.kind) for name, prior in priors.items()}
    return {
        name: np.argsort(-prior, kind="stable")[: case.k].astype(np.int32)
        for name, prior in priors.items()
    }


class Ranked(NamedTuple):
    """Top K of all rows by rung; where asked for, raw with its ties, and scores of some rows.

    ``shown`` counts what the chosen maps show.
    """

    rankings: dict[str, Ranking]
    shown: dict[str, NDArray[np.int64]]
    tied: Rankings | None
    sample: NDArray[Any] | None


def _rank(
    source: Source,
    maps: dict[str, MapsByFold],
    case: Case,
    folds: Folds | None = None,
    *,
    tied: bool = False,
    sampled: bool = False,
) -> Ranked:
    """Top K of all rows by every map, each map once, and by raw if it is compared with a twin.

    A rung has one map, or one for each fold, which ranks the rows of that fold.
    """
    k = case.k
    names = (*maps, "raw") if case.twin is not None else tuple(maps)
    ranked_by = {name: np.empty((source.n_rows, k), np.int32) for name in names}

    def rank_block(panel: Panel) -> NDArray[np.int64] | None:
        """Fill in the rows of a block; gives what the chosen maps show of it."""
        chosen = maps.get("chosen") if tied else None
        place = slice(panel.first_row, panel.first_row + panel.n_rows)
        if "raw" in ranked_by:
            ranked_by["raw"][place] = rank_panel(panel, k)
        n_folds = max((len(each) for each in maps.values()), default=1)
        whole = {name: each[0] for name, each in maps.items() if len(each) == 1}
        _rank_part(panel, whole, k, {name: ranked_by[name][place] for name in whole})
        if folds is None or n_folds == 1:
            if chosen is None:
                return None
            return count_chosen(panel, ranked_by["chosen"][place], chosen[0])
        counted = np.zeros((3, N_BINS), np.int64)
        truth = None if chosen is None else panel.positives()
        for fold in range(n_folds):
            rows = np.flatnonzero(folds[place] == fold)
            parts = {name: each[fold] for name, each in maps.items() if len(each) > 1}
            out = {name: np.empty((rows.size, k), np.int32) for name in parts}
            if rows.size:
                part = take_rows(panel, rows, None if truth is None else truth.take(rows))
                _rank_part(part, parts, k, out)
                if chosen is not None:
                    counted += count_chosen(part, out["chosen"], chosen[fold])
            for name, block in out.items():
                ranked_by[name][place][rows] = block
        return counted

    def climb_all(rows: Source) -> NDArray[np.int64] | None:
        blocks = rows.map(rank_block, threads=case.threads, what="climbing the ladder")
        counted = [block for _, block in blocks if block is not None]
        return np.sum(counted, axis=0) if counted and "chosen" in maps else None

    asked: list[Callable[[Source], Any]] = [climb_all]
    if tied:
        asked.append(lambda rows: rank_source(rows, k, case.threads))
        asked.append(lambda rows: rows.run(ReliabilityTally(k), threads=case.threads).counts)
    if sampled:
        asked.append(lambda rows: take_sample(rows, sampled_rows(case), case.threads))
    found = read_together(source, asked, threads=case.threads, what="climbing the ladder")
    shown = {"raw": found[2], "chosen": found[0]} if tied else {}
    shown = {name: counts for name, counts in shown.items() if counts is not None}
    return Ranked(ranked_by, shown, found[1] if tied else None, found[-1] if sampled else None)


def count_chosen(panel: Panel, columns: Ranking, maps: LabelMaps) -> NDArray[np.int64]:
    """What a map shows of some rows, in bins of its probability."""
    panel = panel.checked()
    there = columns >= 0
    shown = maps.probabilities_at(take_cells(panel, columns)[there], columns[there])
    return count_shown(panel, columns, shown)


def _rank_part(panel: Panel, maps: dict[str, LabelMaps], k: int, out: dict[str, Ranking]) -> None:
    """Rank the rows of a panel by every map; maps that are the same object, once."""
    done: dict[int, Ranking] = {}
    for name, each in maps.items():
        if id(each) not in done:
            done[id(each)] = each.rank_panel(panel, k)
        out[name][:] = done[id(each)]


def _finish(
    case: Case,
    ranked: Ranked,
    asides: Asides,
    out_of_fold: dict[str, Ranking] | None,
    *,
    chosen: Chosen | None,
    signal: Signal,
    takeover: Takeover | None,
    unseen: NDArray[np.bool_],
    marks: NDArray[np.uint64] | None,
) -> Climb:
    """Score what was ranked: all rows, or out of fold those with a true label."""
    truth = case.arm.positives()
    counted = np.flatnonzero(truth.counts)
    true = truth.take(counted)
    chances = case.find_propensities()
    rankings, tied = ranked.rankings, ranked.tied
    assert tied is not None
    raw, twin, samples = rankings.get("raw"), None, None
    if case.twin is not None:
        shifted = {}
        if case.weights is not None:
            shifted["what-if"] = [shift_maps(-np.log(1.0 / case.weights), case.twin.kind)]
        beside = _rank(case.twin, shifted, case, sampled=True)
        twin = beside.rankings.pop("raw")
        rankings |= beside.rankings | {"unweighted": twin}
        assert asides.sample is not None
        assert beside.sample is not None
        samples = asides.sample, beside.sample
    of_rows = {name: ranking[counted] for name, ranking in rankings.items()} | (out_of_fold or {})
    of_rows["raw"] = tied.columns
    lists = rank_popular(case)
    if case.arm.partial:  # each row has the most popular of its own
        ranked_lists = _rank(case.arm, {name: [each] for name, each in lists.items()}, case)
        of_rows |= {name: ranked_lists.rankings[name][counted] for name in lists}
    else:
        of_rows |= {name: np.tile(each, (counted.size, 1)) for name, each in lists.items()}
    release_memory()
    values = {
        name: metric_values(
            Rankings.made(ranking, true, case.arm.n_labels), propensities_given=chances
        )
        for name, ranking in of_rows.items()
    }

    return Climb(
        rankings=of_rows, values=values, raw=raw, twin=twin, chosen=chosen, signal=signal,
        takeover=takeover, unseen=unseen, n_tied=int(tied.decided_by_ties.sum()),
        bounds=sum_bounds(tied, chances), asides=asides, samples=samples,
        marks=(marks, asides.marks), shown=ranked.shown,
    )  # fmt: skip


def sum_bounds(tied: Rankings, propensities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of every column, of shape (2, columns): tied cells in their worst order, and best."""

    def sums(ties: Ties) -> list[float]:
        values = metric_values(tied, ties=ties, propensities_given=propensities)
        return [values[:, column].sum() for column in Column]

    return np.array([sums("worst"), sums("best")])
