"""Trials: every candidate ranks the rows it was not fitted on; sums over folds compare them.

A row's values enter sums and sums of products, fold by fold. Means, differences to raw and their
standard errors follow from these, and so does what would be chosen without a fold.

One pass collects the positives, one counts the cells of all folds of all repeats, and one ranks all
rows by all candidates. Where a rule says which candidates can still win after one repeat, only
these are counted and ranked in the others, by two more passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np

from oddslip import DEFAULT_SEED
from oddslip.calibrators.logistic.moments import Ranges
from oddslip.calibrators.policy import DeadLabelPolicy, find_prior, find_unobservable
from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Panel, check_k
from oddslip.core.passes import Passes
from oddslip.core.tally import MergeableTally, TallyGroup
from oddslip.core.types import Bools, Floats, Ints
from oddslip.errors import InvalidInput
from oddslip.metrics.at_k import (
    METRIC_COLUMN,
    NAMES,
    Column,
    Scoring,
    check_choice,
    metric_values,
)
from oddslip.metrics.ranking import Rankings
from oddslip.repairs.maps import PATIENCE, LabelMaps
from oddslip.selection.candidates import RAW, Candidate
from oddslip.selection.fold_counts import (
    FoldCounter,
    FoldedPositives,
    FoldStatistics,
    PositiveTally,
    find_starting,
    make_buckets,
)
from oddslip.selection.fold_fits import (
    FoldFits,
    MapsByFold,
    counts_needed,
    fit_folds,
    summary_needed,
)
from oddslip.selection.folds import FoldAssignment, FoldNumbers, assign_folds
from oddslip.sources import Source
from oddslip.sources.views import take_rows

NO_DIFFERENCE = 1e-8  # share of the level: smaller errors of a lead are rounding of the products


class TrialSums(NamedTuple):
    """Number of rows, sums of their values, and sums of the products of their values.

    The value of raw is its metric; that of any other candidate is its difference to raw, which is
    exactly 0 where both rank alike.
    """

    n: Ints
    first: Floats
    second: Floats

    def minus(self, other: TrialSums) -> TrialSums:
        """Sums without those of some of the rows."""
        return TrialSums(self.n - other.n, self.first - other.first, self.second - other.second)

    def with_candidates(self, places: Sequence[int], other: TrialSums) -> TrialSums:
        """Sums with those of some of the candidates replaced by others of the same rows.

        The squared difference of a candidate that is replaced to one that is not stays what it was:
        only the means of the two move.
        """
        first, second = self.first.copy(), self.second.copy()
        first[..., places] = other.first
        moved = np.zeros_like(first)
        moved[..., places] = _squares(other) - _squares(self)[..., places]
        second += (moved[..., :, None] + moved[..., None, :]) / 2
        rows, columns = np.ix_(places, places)
        second[..., rows, columns] = other.second
        return TrialSums(self.n, first, second)


def _squares(sums: TrialSums) -> Floats:
    """Sums of the squared values of every candidate."""
    return np.diagonal(sums.second, axis1=-2, axis2=-1)


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """Out-of-fold sums of every candidate, over the rows with a true label.

    Attributes
    ----------
    total : TrialSums
        Of all rows. Values are averaged over repeats. Where rows have weights, each is multiplied
        by its weight over the mean weight.
    by_fold : TrialSums
        Of the rows of each fold in each repeat, on two more axes.
    fits : FoldFits
        Fits of the last repeat, from which a candidate is fitted on all rows.
    fitted : list
        `LabelMaps` by repeat, fold and candidate; None where a loser was not fitted.
    n_fits : dict
        Fits made out of fold, by what was fitted.
    losers : frozenset of Candidate
        Those that could not win after the last repeat, and were tried in no other. Their sums are
        of that repeat alone, and so are the errors of their differences to the others.
    """

    candidates: tuple[Candidate, ...]
    metric: str
    k: int
    n_folds: int
    n_repeats: int
    seed: int
    total: TrialSums
    by_fold: TrialSums
    fits: FoldFits
    fitted: list[list[list[Any]]]
    n_fits: dict[str, int]
    losers: frozenset[Candidate] = frozenset()

    @property
    def n_evaluated(self) -> int:
        """Rows with a true label."""
        return int(self.total.n)

    @property
    def means(self) -> Floats:
        """The out-of-fold metric of every candidate."""
        means = self.total.first / self.n_evaluated
        raw = self.candidates.index(RAW)
        level: Floats = means + means[raw]
        level[raw] = means[raw]
        return level

    def gains(self) -> tuple[Floats, Floats]:
        """Mean paired difference of every candidate to raw, and its standard error over rows."""
        raw = self.candidates.index(RAW)
        gains = self.total.first / self.n_evaluated
        errors = _error(_squares(self.total), gains, self.n_evaluated)
        gains[raw] = 0.0
        errors[raw] = 0.0 if self.n_evaluated > 1 else np.inf
        return gains, errors

    def level(self, place: int) -> tuple[float, float]:
        """The out-of-fold metric of a candidate, and its standard error."""
        n, raw = self.n_evaluated, self.candidates.index(RAW)
        places = np.unique([raw, place])  # a candidate's value is raw's and its difference to it
        square = self.total.second[np.ix_(places, places)].sum()
        mean = float(self.means[place])
        error = np.sqrt(max(0.0, square / n - mean**2) / max(1, n - 1))
        return mean, float(error)

    def repeats_of(self, candidate: Candidate) -> int:
        """Repeats of the folds in which a candidate was tried."""
        return 1 if candidate in self.losers else self.n_repeats

    def lead(self, place: int, other: int) -> tuple[float, float]:
        """What a candidate has over another, and its standard error."""
        first, second, n = self.total.first, self.total.second, self.n_evaluated
        raw = self.candidates.index(RAW)
        signs = {place: 1.0, other: -1.0} if place != other else {}
        signs.pop(raw, None)  # the difference of a candidate to raw is its own value
        lead = sum(sign * float(first[at]) for at, sign in signs.items()) / n
        square = sum(
            one * two * float(second[at, to])
            for at, one in signs.items()
            for to, two in signs.items()
        )
        error = float(_error(np.array(square), np.array(lead), n))
        return lead, 0.0 if error < NO_DIFFERENCE * abs(self.level(place)[0]) else error

    def of(self, candidates: Sequence[Candidate]) -> Trials:
        """The same trials of some of the candidates."""
        places = [self.candidates.index(each) for each in candidates]

        def take(sums: TrialSums) -> TrialSums:
            second = sums.second[..., places, :][..., places]
            return TrialSums(sums.n, sums.first[..., places], second)

        return replace(
            self, candidates=tuple(candidates), total=take(self.total), by_fold=take(self.by_fold)
        )

    def without_fold(self, repeat: int, fold: int) -> Trials:
        """The same trials as the rows outside a fold show them."""
        left_out = TrialSums(*(each[repeat, fold] for each in self.by_fold))
        return replace(self, total=self.total.minus(left_out))


Screen = Callable[[Trials], Sequence[Candidate]]


def _error(squares: Floats, mean: Floats, n: int) -> Floats:
    """Standard error of a mean from a sum of squares; one row says nothing about its spread."""
    if n < 2:
        return np.full(np.shape(squares), np.inf)
    return np.asarray(np.sqrt(np.maximum(squares - n * mean**2, 0.0) / (n - 1) / n))


class TrialTally(MergeableTally):
    """Ranks every row by the maps that did not see its fold, and adds up what each is worth.

    Parameters
    ----------
    fitted : list
        Maps by repeat, fold and candidate. Labels that no row can tell about are left out. No maps
        for a repeat in which rows are not ranked.
    folds : sequence of FoldAssignment
    raw : int
        The place of raw among the candidates.
    scoring : Scoring
        With propensities.
    """

    JOINED: ClassVar = {
        "n": "add",
        "first": "add",
        "second": "add",
        "bests": "add",
        "weight": "add",
    }
    blocks_apart = 1

    def __init__(
        self,
        fitted: list[MapsByFold],
        folds: Sequence[FoldAssignment],
        raw: int,
        scoring: Scoring,
    ) -> None:
        self.fitted, self.folds, self.raw = fitted, tuple(folds), raw
        self.scoring = scoring
        n_folds, size = self.folds[0].n_folds, len(fitted[-1][0])
        self.n = np.zeros((len(self.folds), n_folds), np.int64)
        self.first = np.zeros((*self.n.shape, size))
        self.second = np.zeros((*self.n.shape, size, size))
        self.bests = np.zeros(2)  # rows whose best is not 0, and the sum of bests
        self.weight = 0.0

    def add(self, panel: Panel) -> None:
        """Rank one block."""
        positives = panel.positives()
        rows = np.flatnonzero(positives.counts)
        if not rows.size:
            return
        folds = [each.of(panel)[rows] for each in self.folds]
        panel = take_rows(panel, rows, positives.take(rows))
        values = np.zeros((rows.size, self.first.shape[-1]))
        for fitted, numbers in zip(self.fitted, folds, strict=True):
            if fitted:
                values += self._score(panel, fitted, numbers)
        values /= sum(map(bool, self.fitted))
        raw = values[:, self.raw].copy()
        values -= raw[:, None]
        values[:, self.raw] = raw
        self.weight += rows.size
        if panel.sample_weight is not None:
            times = panel.sample_weight.times
            self.weight += times.sum() - rows.size
            values *= times[:, None]
        for repeat, numbers in enumerate(folds):
            for fold in range(self.n.shape[1]):
                part = values[numbers == fold]
                self.n[repeat, fold] += len(part)
                self.first[repeat, fold] += part.sum(axis=0)
                self.second[repeat, fold] += part.T @ part

    def _score(self, panel: Panel, fitted: MapsByFold, folds: FoldNumbers) -> Floats:
        values = np.empty((panel.n_rows, len(fitted[0])))
        positives, scoring = panel.positives(), self.scoring
        column = METRIC_COLUMN[scoring.metric]
        for fold, maps in enumerate(fitted):
            inside = np.flatnonzero(folds == fold)
            if not inside.size:
                continue
            true = positives.take(inside)
            part = take_rows(panel, inside, true)
            scored: dict[int, Floats] = {}
            for at, each in enumerate(maps):
                if id(each) not in scored:
                    ranked = Rankings.of(each.rank_panel(part, scoring.k), true, panel.n_labels)
                    scored[id(each)] = metric_values(
                        ranked, propensities_given=scoring.propensities
                    )
                values[inside, at] = scored[id(each)][:, column]
            best = scored[id(maps[0])][:, Column.PSP_BEST]
            self.bests += np.count_nonzero(best), best.sum()
        return values

    def result(self) -> tuple[TrialSums, TrialSums]:
        """Sums over all rows, and those of each fold in each repeat."""
        scale = float(self.n[0].sum() / self.weight)
        if self.scoring.metric == "psp":
            # A ratio of sums. Over the mean best, which all candidates share, it is a mean.
            scale *= self.bests[0] / self.bests[1]
        by_fold = TrialSums(self.n, self.first * scale, self.second * scale**2)
        return TrialSums(*(each[0].sum(axis=0) for each in by_fold)), by_fold


def try_candidates(
    source: Source,
    candidates: Sequence[Candidate],
    scoring: Scoring,
    policy: DeadLabelPolicy | None = None,
    *,
    folds: Sequence[FoldAssignment] | None = None,
    seed: int = DEFAULT_SEED,
    also: Sequence[Candidate] = (),
    screen: Screen | None = None,
) -> Passes[Trials]:
    """Evaluate every candidate out of fold.

    Parameters
    ----------
    source : Source
        Calibration rows, with labels.
    candidates : sequence of Candidate
        Raw must be among them.
    scoring : Scoring
        How rows are scored; propensities are by default those of the labels of all rows.
    policy : DeadLabelPolicy, optional
        With the weights, where a candidate needs them.
    folds : sequence of FoldAssignment, optional
        One for each repeat; by default five folds, once. See `assign_folds`.
    seed : int
        Of the default folds.
    also : sequence of Candidate
        Others that can be fitted on all rows afterwards, and are not tried.
    screen : callable, optional
        Given the trials of the last repeat alone, the candidates to try in the other repeats too.
        Raw must be among them.

    Examples
    --------
    >>> from oddslip.core.passes import run
    >>> from oddslip.selection.candidates import PAPER
    >>> from oddslip.sources import open_source
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random((60, 4))
    >>> source = open_source(scores, rng.random((60, 4)) < scores * [0.1, 0.2, 0.4, 0.8])
    >>> trials = run(source, try_candidates(source, PAPER, Scoring(k=2)))
    >>> trials.means.shape
    (7,)
    """
    scoring = replace(scoring, k=check_k(scoring.k, source.n_labels))
    check_choice("metric", scoring.metric, NAMES)
    policy = policy or DeadLabelPolicy()
    folds = assign_folds(source, 5, seed=seed) if folds is None else tuple(folds)
    positives, counter = yield from _collect_positives(source, (*candidates, *also), folds)
    setting = Setting.of(source, folds, positives, policy, scoring)
    first = len(folds) - 1 if screen is not None else 0
    statistics = yield from counter.count(folds[first:], first)
    if not first:
        counter.narrow([], False)
    fitted, fits, n_fits = setting.fit(dict(enumerate(statistics, first)), candidates)
    del statistics
    total, by_fold = yield from setting.rank([*([[]] * first), *fitted], candidates)
    trials = Trials(
        candidates=tuple(candidates),
        metric=scoring.metric,
        k=scoring.k,
        n_folds=folds[0].n_folds,
        n_repeats=len(folds),
        seed=seed,
        total=total,
        by_fold=by_fold,
        fits=fits,
        fitted=fitted,
        n_fits=dict(n_fits),
    )
    if screen is None or not first:
        return trials
    return (yield from _try_again(setting, counter, trials, screen(trials)))


class Setting(NamedTuple):
    """What candidates are tried on, and how; ``ignored`` labels are never ranked."""

    source: Source
    folds: Sequence[FoldAssignment]
    positives: FoldedPositives
    policy: DeadLabelPolicy
    scoring: Scoring
    ignored: Bools

    @classmethod
    def of(
        cls,
        source: Source,
        folds: Sequence[FoldAssignment],
        positives: FoldedPositives,
        policy: DeadLabelPolicy,
        scoring: Scoring,
    ) -> Setting:
        """With propensities of all rows, and without the labels that no row can tell about."""
        counts = positives.counts(source.n_labels)
        totals = source.totals() if source.partial else source.n_rows
        unobservable = find_unobservable(
            LabelTotals.alike(counts, totals), *find_prior(policy.prior, counts, totals)
        )
        propensities = scoring.propensities_for(counts, source.n_rows)
        scoring = replace(scoring, propensities=propensities)
        return cls(source, folds, positives, policy, scoring, unobservable)

    def fit(
        self,
        statistics: dict[int, FoldStatistics],
        candidates: Sequence[Candidate],
        near: Mapping[str, Any] | None = None,
    ) -> tuple[list[MapsByFold], FoldFits, Counter[str]]:
        """Maps of candidates without each fold of some repeats."""
        return fit_folds(self.source, self.positives, statistics, candidates, self.policy, near)

    def rank(
        self, fitted: list[MapsByFold], candidates: Sequence[Candidate]
    ) -> Passes[tuple[TrialSums, TrialSums]]:
        """Sums of all rows and of each fold, as these maps rank them."""
        ranked = _without_labels(fitted, self.ignored)
        if self.positives.n_rows.min() >= PATIENCE:
            for maps in chain.from_iterable(ranked):
                for guide, each in zip(ranked[-1][0], maps, strict=True):
                    each.follow(guide)
        tally = TrialTally(ranked, self.folds, list(candidates).index(RAW), self.scoring)
        sums: tuple[TrialSums, TrialSums] = (yield tally).result()
        return sums


def _try_again(
    setting: Setting, counter: FoldCounter, once: Trials, candidates: Sequence[Candidate]
) -> Passes[Trials]:
    """Trials of the last repeat, with the other repeats of some of the candidates."""
    counter.narrow(counts_needed(candidates), summary_needed(candidates))
    statistics = yield from counter.count(setting.folds[:-1])
    counter.narrow([], False)
    more, _, n_more = setting.fit(dict(enumerate(statistics)), candidates, once.fits.near)
    del statistics
    places = [once.candidates.index(each) for each in candidates]
    last = [[maps[place] for place in places] for maps in once.fitted[-1]]
    total, by_fold = yield from setting.rank([*more, last], candidates)
    fitted = []
    for repeat in more:
        by_candidate = [dict(zip(candidates, maps, strict=True)) for maps in repeat]
        fitted.append([[maps.get(each) for each in once.candidates] for maps in by_candidate])
    return replace(
        once,
        total=once.total.with_candidates(places, total),
        by_fold=once.by_fold.with_candidates(places, by_fold),
        fitted=[*fitted, *once.fitted],
        n_fits=dict(Counter(once.n_fits) + n_more),
        losers=frozenset(once.candidates) - frozenset(candidates),
    )


def _collect_positives(
    source: Source, candidates: Sequence[Candidate], folds: Sequence[FoldAssignment]
) -> Passes[tuple[FoldedPositives, FoldCounter]]:
    """All positives with their folds, and what counts the folds between them."""
    ranges = [Ranges(source.n_labels)] if summary_needed(candidates) else []
    needed = counts_needed(candidates)
    buckets = make_buckets(source, folds) if True in needed else []
    tally = PositiveTally(source.n_labels, source.dtype, folds, source.partial)
    group = TallyGroup([tally, *ranges, *buckets])
    tally, *others = (yield group).tallies
    positives = tally.result()
    if not positives.n_evaluated:
        raise InvalidInput(
            f"at least one row must have a true label, got none in {source.n_rows:,} rows."
        )
    starting = find_starting(others[len(ranges) :], positives)
    return positives, FoldCounter(
        source, positives, needed, others[0] if ranges else None, starting
    )


def _without_labels(fitted: list[MapsByFold], labels: Bools) -> list[MapsByFold]:
    """The same maps, by which some labels are never ranked; what is one map stays one.

    Every slot of a label that is unobservable would count as a miss, though no row can tell.
    """
    if not labels.any() or labels.all():
        return fitted
    changed: dict[int, LabelMaps] = {}
    for maps in (each for repeat in fitted for fold in repeat for each in fold):
        if id(maps) not in changed:
            changed[id(maps)] = maps.without(labels)
    return [[[changed[id(each)] for each in fold] for fold in repeat] for repeat in fitted]
