"""A diagnosis of rows that are known by their keys: every number is a sum, or from a sample.

What `climb` keeps of every row is added up here in one pass over all rungs. Medians and rank
correlations are those of a sample of rows, which their keys choose.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.catalogue import CANDIDATES, CATALOGUE
from oddslip.calibrators.maps import LabelMaps
from oddslip.core.panel import Panel
from oddslip.core.row_keys import sample_keys
from oddslip.core.tally import MergeableTally, TallyGroup
from oddslip.diagnosis.case import Case
from oddslip.diagnosis.drift import SharedRows, Takeover, find_drift, find_takeover
from oddslip.diagnosis.label_shifts import find_shifts
from oddslip.diagnosis.ladder import ladder_of_sums
from oddslip.diagnosis.readings.climb import (
    N_FOLDS,
    Chosen,
    count_chosen,
    fit_maps,
    make_ceiling,
    other_policies,
    rank_popular,
    shift_maps,
    sum_bounds,
)
from oddslip.diagnosis.result import Overlap, Ties
from oddslip.diagnosis.signal import find_likeness, parts_of_positives, signal_of
from oddslip.errors import InvalidInput
from oddslip.kernels.keys import keys_of
from oddslip.metrics.at_k import Column, metric_values
from oddslip.metrics.bootstrap import BootstrapSums, BootstrapTally
from oddslip.metrics.ranking import Rankings, RankingTally, rank_panel
from oddslip.metrics.reliability import N_BINS, count_shown, raw_shown, reliability_of
from oddslip.selection.candidates import Candidate
from oddslip.selection.fold_fits import affordable
from oddslip.selection.folds import HashFolds
from oddslip.selection.keyed import KeyedTrials, try_keyed
from oddslip.selection.rules import read_rule
from oddslip.shifts import overlap, realized_shift, saturation
from oddslip.sources import Source
from oddslip.sources.passes import read_together
from oddslip.sources.views import take_rows
from oddslip.tallies.cell_counts import CellCounts, IntervalCounts, PositiveKeys

Floats = NDArray[np.float64]

SAMPLED_CELLS = 2**22  # of either arm, that come here to be compared cell by cell
SAMPLED_IDS = 2**20  # rows whose keys come here to be looked for in another table


class Rungs(NamedTuple):
    """All that ranks the rows: maps by rung, one or one for each fold, and what needs no map."""

    maps: dict[str, list[LabelMaps]]
    folds: HashFolds | None
    popular: dict[str, Any]  # by rung, a list, or maps where each row has labels of its own
    what_if: LabelMaps | None
    dead: NDArray[np.bool_]  # (folds, labels): whom the identity policy may hand slots to

    @property
    def names(self) -> list[str]:
        """Rungs that every case has, and those of the maps."""
        return ["raw", *self.popular, *self.maps]


class Climbed(NamedTuple):
    """The rungs, where cells lie among the positives, and what is chosen."""

    rungs: Rungs
    counts: CellCounts
    chosen: Chosen | None
    unseen: NDArray[np.bool_]


def measure_keyed(case: Case, n_replicates: int) -> dict[str, Any]:
    """All that is measured by passes over the rows; what can share a pass does."""
    arm, threads = case.arm, case.threads
    ids = KeySample(SAMPLED_IDS / max(case.calibration.n_rows, arm.n_rows), case.seed)
    fitted, known = (None, None) if case.crossed else _read_calibration(case, ids)
    climbed, realized, saturated = read_together(
        arm,
        [
            partial(_climb_crossed, case) if fitted is None
            else partial(_climb_held_out, case, fitted),
            lambda rows: realized_shift(rows, case.named_prior, threads=threads),
            lambda rows: saturation(rows, k=case.k, distinct=False, threads=threads),
        ],
        threads=threads,
        what="reading the evaluated rows",
    )  # fmt: skip
    rungs, counts, chosen, unseen = climbed
    ladder = LadderTally(
        rungs, case.k, case.find_propensities(), case.twin is not None, n_replicates, case.seed
    )
    sample = RowSample(SAMPLED_CELLS / arm.n_labels / arm.n_rows, case.seed)
    parts = RowParts(counts.indptr, counts.keys, parts_of_positives(counts))
    beside: list[Any] = (
        [ladder, parts] + [sample] * (case.twin is not None) + [ids] * (not case.crossed)
    )
    done = arm.run(TallyGroup(beside), threads=threads, what="climbing the ladder").tallies
    ladder, squares = done[0], done[1].result()
    samples = done[2].result() if case.twin is not None else None
    shared = SharedRows(0, False)
    if known is not None:
        found = float(np.isin(known, done[-1].result()).sum())
        shared = SharedRows(round(found / min(1.0, ids.share)), True)
    n = ladder.n_evaluated
    takeover = None
    if "isotonic" in rungs.maps:
        takeover = Takeover(int(rungs.dead.any(axis=0).sum()), ladder.n_risen, ladder.slots)
    return {
        "ladder": ladder_of_sums(
            ladder.sums, ladder.names, k=case.k, n_rows=arm.n_rows, metric=case.metric,
            seed=case.seed,
        ),
        "chosen": chosen,
        "signal": signal_of(counts, squares),
        "likeness": find_likeness(samples, case.seed),
        "shifts": find_shifts(case, realized, samples),
        "saturation": saturated,
        "ties": Ties.of_sums(ladder.n_tied, ladder.bounds, case.metric, n),
        "takeover": takeover,
        "overlap": None if case.twin is None else Overlap(
            ladder.n_shared / arm.n_rows, ladder.n_changed / arm.n_rows
        ),
        "drift": find_drift(case, unseen, shared=shared),
        "shown": {
            name: reliability_of(counts, case.k)
            for name, counts in zip(("raw", "chosen"), ladder.shown, strict=True)
            if counts.any()
        },
    }  # fmt: skip


def _climb_crossed(case: Case, arm: Source) -> Climbed:
    """Maps fitted on all folds but one rank that one; so is what a rule chooses without it."""
    rule = read_rule("auto")
    wanted = affordable(rule.candidates_for(case.weights), arm)
    named = [
        Candidate(name)
        for name, entry in CATALOGUE.items()
        if entry.rung and name in CANDIDATES and (case.weights is not None or not entry.needs)
    ]
    rungs = {each.form: each for each in affordable(named, arm)}
    trials = try_keyed(
        arm, tuple(dict.fromkeys((*wanted, *rungs.values()))), **case.scoring, n_folds=N_FOLDS,
        n_repeats=rule.repeats_for(arm.n_rows), seed=case.seed,
        prior=case.prior if case.prior_given else None, weights=case.weights,
        threads=case.threads,
    )  # fmt: skip
    own = trials.of(wanted)
    choice, last = rule.choose(own), trials.n_repeats - 1
    fitted = trials.fitted[last]  # one repeat is shown, the last

    def by_fold(candidates: list[Candidate]) -> list[LabelMaps]:
        return [
            maps[trials.candidates.index(each)]
            for maps, each in zip(fitted, candidates, strict=True)
        ]

    maps = {name: by_fold([each] * N_FOLDS) for name, each in rungs.items() if name != "raw"}
    maps["chosen"] = by_fold(
        [wanted[_choose_without(own, rule, last, fold)] for fold in range(N_FOLDS)]
    )
    held = np.array([seen.n_positives for seen in trials.fits._seen])
    dead = held.sum(axis=0) - held == 0
    for fold in range(N_FOLDS):
        isotonic, record = trials.fits.fit(Candidate("isotonic"), fold)
        for name, other in other_policies(isotonic, record.dead):
            maps.setdefault(name, []).append(other)
        trials.fits.forget(fold)
    counts = trials.fits.counts(None)
    maps["ceiling"] = [make_ceiling(case, counts)]
    unseen = (held.max(axis=0) == held.sum(axis=0)) & (case.evaluation_counts > 0)
    chosen = Chosen(wanted[choice.place].name, choice.why)
    return Climbed(_rungs(case, maps, trials.fits.folds, dead), counts, chosen, unseen)


def _choose_without(trials: KeyedTrials, rule: Any, repeat: int, fold: int) -> int:
    """The place of what is taken without a fold; all rows choose where no other can."""
    outside = trials.without(repeat, fold)
    place: int = rule.choose(outside if outside.n_evaluated else trials).place
    return place


def _read_calibration(
    case: Case, ids: KeySample
) -> tuple[tuple[dict[str, LabelMaps], Chosen | None], NDArray[np.uint64] | None]:
    """Maps of all rungs that are fitted, what is chosen, and keys of the calibration rows."""
    asked: list[Any] = [partial(_fit_rungs, case)]
    if case.calibration.has_ids:
        asked.append(lambda rows: rows.run(ids.empty_like()).result())
    found = read_together(
        case.calibration, asked, threads=case.threads, what="reading the calibration rows"
    )
    return found[0], found[1] if len(found) > 1 else None


def _fit_rungs(case: Case, rows: Source) -> tuple[dict[str, LabelMaps], Chosen | None]:
    maps: dict[str, LabelMaps] = {}
    if case.weights is not None:
        maps["inversion"] = shift_maps(-np.log(case.weights), case.arm.kind)
    if not case.calibration_counts.any():
        return maps, None
    fitted, chosen = fit_maps(case, rows)
    return maps | fitted, chosen


def _climb_held_out(
    case: Case, fitted: tuple[dict[str, LabelMaps], Chosen | None], arm: Source
) -> Climbed:
    """Maps fitted on the calibration rows rank all evaluated rows."""
    threads = case.threads
    distinct = arm.run(PositiveKeys(arm.n_labels, arm.dtype), threads=threads, what="positives")
    cells = IntervalCounts(distinct.result(), arm.kind)
    counts = arm.run(cells, threads=threads, what="cells").result()
    maps = fitted[0] | {"ceiling": make_ceiling(case, counts)}
    unseen = (case.calibration_counts == 0) & (case.evaluation_counts > 0)
    whole = {name: [each] for name, each in maps.items()}
    dead = (case.calibration_counts == 0)[None]
    return Climbed(_rungs(case, whole, None, dead), counts, fitted[1], unseen)


def _rungs(
    case: Case,
    maps: dict[str, list[LabelMaps]],
    folds: HashFolds | None,
    dead: NDArray[np.bool_],
) -> Rungs:
    what_if = None
    if case.twin is not None and case.weights is not None:
        what_if = shift_maps(-np.log(1.0 / case.weights), case.arm.kind)
    return Rungs(maps, folds, rank_popular(case), what_if, dead)


# ------------------------------------------------------------------------------------- the tallies


class LadderTally(BootstrapTally):
    """Ranks every row by every rung, and adds up what each is worth.

    Parameters
    ----------
    rungs : Rungs
    k : int
    propensities : ndarray of shape (n_labels,)
    twin : bool
        Whether panels bring a twin's scores.
    n_replicates, seed : int
        Of the bootstrap.
    """

    JOINED: ClassVar = {
        "n_evaluated": "add", "n_tied": "add", "bounds": "add", "n_shared": "add",
        "n_changed": "add", "n_risen": "add", "slots": "add", "shown": "add",
    }  # fmt: skip

    def __init__(
        self, rungs: Rungs, k: int, propensities: Floats, twin: bool, n_replicates: int, seed: int
    ) -> None:
        self.rungs, self.k, self.propensities, self.twin = rungs, k, propensities, twin
        self.n_replicates, self.seed = n_replicates, seed
        self.names = rungs.names
        if twin:
            self.names += ["unweighted"] + ["what-if"] * (rungs.what_if is not None)
        self.n_evaluated = self.n_tied = self.n_shared = self.n_changed = self.n_risen = 0
        self.bounds = np.zeros((2, len(Column)))
        self.slots = np.zeros(propensities.size, np.int64)
        self.shown = np.zeros((2, 3, N_BINS), np.int64)  # by raw scores, and by what is chosen
        self.sums = BootstrapSums(len(self.names) * len(Column) + 1, n_replicates, seed)
        self.blocks_apart = max(1, self.sums.draws.nbytes >> 20)

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        names = ("rungs", "k", "propensities", "twin", "n_replicates", "seed")
        return {name: getattr(self, name) for name in names}

    def add(self, panel: Panel) -> None:
        """Rank one block."""
        ranked = RankingTally(self.k, panel.n_labels)
        ranked.add(panel)
        tied = ranked.result()
        rows = tied.rows - panel.first_row
        truth = panel.positives().take(rows)
        part = take_rows(panel, rows, truth)
        columns = {
            "raw": tied.columns,
            **self._rank_popular(part),
            **self._rank_by_maps(part),
        }
        if self.twin:
            columns |= self._rank_twin(panel, rows)
        values = [
            metric_values(
                Rankings.made(columns[name], truth, panel.n_labels),
                propensities_given=self.propensities,
            )
            for name in self.names
        ]
        self.n_evaluated += rows.size
        self.n_tied += int(tied.decided_by_ties.sum())
        self.bounds += sum_bounds(tied, self.propensities)
        self._take_over(panel, part, columns)
        self._count_shown(panel)
        keys = panel.row_keys()[rows] if self.n_replicates else None
        self.sums.add_rows(np.column_stack([*values, np.ones(rows.size)]), keys)

    def _rank_popular(self, part: Panel) -> dict[str, NDArray[np.int32]]:
        return {
            name: each.rank_panel(part, self.k)
            if isinstance(each, LabelMaps)
            else np.tile(each, (part.n_rows, 1))
            for name, each in self.rungs.popular.items()
        }

    def _rank_by_maps(self, part: Panel) -> dict[str, NDArray[np.int32]]:
        """Every map once: maps that are one object rank alike."""
        ranked = {name: np.empty((part.n_rows, self.k), np.int32) for name in self.rungs.maps}
        folds = None if self.rungs.folds is None else self.rungs.folds.of(part)
        whole = {name: maps[0] for name, maps in self.rungs.maps.items() if len(maps) == 1}
        _rank_each(part, whole, self.k, np.arange(part.n_rows), ranked)
        if folds is None or self.rungs.folds is None:
            return ranked
        for fold in range(self.rungs.folds.n_folds):
            rows = np.flatnonzero(folds == fold)
            own = {name: maps[fold] for name, maps in self.rungs.maps.items() if len(maps) > 1}
            if rows.size:
                _rank_each(take_rows(part, rows), own, self.k, rows, ranked)
        return ranked

    def _rank_twin(self, panel: Panel, rows: NDArray[np.int64]) -> dict[str, NDArray[np.int32]]:
        """The twin as it is and with ln w added; and how far it shows the same labels."""
        if panel.twin is None:
            raise InvalidInput("a twin must come with every row, got a block without one.")
        twin = panel.rows(0, panel.n_rows)
        twin.scores, twin.twin = panel.twin, None
        both = rank_panel(panel, self.k), rank_panel(twin, self.k)
        shared = overlap(*both)
        self.n_shared += int(shared.sum())
        self.n_changed += int((shared < self.k).sum())
        found = {"unweighted": both[1][rows]}
        if self.rungs.what_if is not None:
            found["what-if"] = self.rungs.what_if.rank_panel(take_rows(twin, rows), self.k)
        return found

    def _count_shown(self, panel: Panel) -> None:
        """What is shown of all rows, with a true label or not, in bins of its probability."""
        panel = panel.checked()
        columns = rank_panel(panel, self.k)
        self.shown[0] += count_shown(panel, columns, raw_shown(panel, columns))
        chosen, truth = self.rungs.maps.get("chosen", []), panel.positives()
        folds = None if self.rungs.folds is None else self.rungs.folds.of(panel)
        for fold, maps in enumerate(chosen):
            rows = np.arange(panel.n_rows) if folds is None else np.flatnonzero(folds == fold)
            if rows.size:
                part = take_rows(panel, rows, truth.take(rows))
                self.shown[1] += count_chosen(part, maps.rank_panel(part, self.k), maps)

    def _take_over(self, panel: Panel, part: Panel, columns: dict[str, NDArray[np.int32]]) -> None:
        """Slots of dead labels: in all rows, or fold by fold in those with a true label."""
        if "isotonic, identity" not in self.rungs.maps or not self.rungs.dead.any():
            return
        both = ("isotonic, identity", "isotonic")
        if self.rungs.folds is None:
            parts = [tuple(self.rungs.maps[name][0].rank_panel(panel, self.k) for name in both)]
        else:
            folds = self.rungs.folds.of(part)
            parts = [
                tuple(columns[name][folds == fold] for name in both)
                for fold in range(self.rungs.folds.n_folds)
            ]
        for (identity, prior), dead in zip(parts, self.rungs.dead, strict=True):
            found = find_takeover(identity, prior, dead)
            self.n_risen += found.n_rows
            self.slots += found.slots

    def result(self) -> Self:
        """The sums."""
        return self


def _rank_each(
    part: Panel,
    maps: dict[str, LabelMaps],
    k: int,
    rows: NDArray[np.int64],
    out: dict[str, NDArray[np.int32]],
) -> None:
    done: dict[int, NDArray[np.int32]] = {}
    for name, each in maps.items():
        if id(each) not in done:
            done[id(each)] = each.rank_panel(part, k)
        out[name][rows] = done[id(each)]


class RowParts(MergeableTally):
    """The parts of a row's positives, summed over the row and squared: see `find_signal`.

    Parameters
    ----------
    indptr, keys : ndarray
        Distinct keys of the positives of every label.
    parts : ndarray
        The part of a positive at each.
    """

    JOINED: ClassVar = {"squares": "add"}
    blocks_apart = 1

    def __init__(self, indptr: NDArray[np.int64], keys: NDArray[Any], parts: Floats) -> None:
        self.indptr, self.keys, self.parts = indptr, keys, parts
        self.squares = np.zeros(1)

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"indptr": self.indptr, "keys": self.keys, "parts": self.parts}

    def add(self, panel: Panel) -> None:
        """Take the positives of one block."""
        positives = panel.positives()
        rows = np.repeat(np.arange(panel.n_rows), positives.counts)
        labels = positives.indices
        scores = panel.scores[rows, labels] + panel.scores.dtype.type(0)  # -0.0 is 0.0
        keys = keys_of(np.ascontiguousarray(scores[None]), panel.kind)[0]
        order = np.argsort(labels, kind="stable")
        firsts = np.searchsorted(labels[order], np.arange(panel.n_labels + 1))
        parts = np.empty(labels.size)
        for label in np.unique(labels).tolist():
            own = order[firsts[label] : firsts[label + 1]]
            start, stop = self.indptr[label : label + 2]
            parts[own] = self.parts[start + np.searchsorted(self.keys[start:stop], keys[own])]
        self.squares += (np.bincount(rows, parts, minlength=panel.n_rows) ** 2).sum()

    def result(self) -> float:
        """The sum of squares."""
        return float(self.squares[0])


class RowSample(MergeableTally):
    """Rows that their keys choose, with the twin's scores: as many as can be looked at here.

    Parameters
    ----------
    share : float
        Of all rows.
    seed : int
    """

    JOINED: ClassVar = dict.fromkeys(("_keys", "_scores", "_twins"), "append")

    def __init__(self, share: float, seed: int) -> None:
        self.share, self.seed = share, seed
        self._keys: list[NDArray[np.uint64]] = []
        self._scores: list[NDArray[Any]] = []
        self._twins: list[NDArray[Any]] = []

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"share": self.share, "seed": self.seed}

    def add(self, panel: Panel) -> None:
        """Take the chosen rows of one block."""
        keys = panel.row_keys()
        rows = np.flatnonzero(sample_keys(keys, self.share, seed=self.seed))
        self._keys.append(keys[rows])
        self._scores.append(panel.scores[rows])
        twin = panel.scores if panel.twin is None else panel.twin
        self._twins.append(twin[rows])

    def result(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Scores of both, in the order of the rows' keys."""
        keys, scores, twins = map(np.concatenate, (self._keys, self._scores, self._twins))
        if not keys.size:
            raise InvalidInput("a sample of the rows must hold one, got none. Pass another seed.")
        order = np.argsort(keys, kind="stable")
        return scores[order], twins[order]


class KeySample(MergeableTally):
    """Keys of a share of the rows, which are the same rows in every table that has them."""

    JOINED: ClassVar = {"_keys": "append"}

    def __init__(self, share: float, seed: int) -> None:
        self.share, self.seed = share, seed
        self._keys: list[NDArray[np.uint64]] = []

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"share": self.share, "seed": self.seed}

    def add(self, panel: Panel) -> None:
        """Take the chosen keys of one block."""
        keys = panel.row_keys()
        self._keys.append(keys[sample_keys(keys, self.share, seed=self.seed)])

    def result(self) -> NDArray[np.uint64]:
        """The keys."""
        return np.concatenate([np.empty(0, np.uint64), *self._keys])
