"""Trials of rows that are known by their keys: the same choice, from sums alone.

The key of a row decides its fold. Every candidate ranks the rows it was not fitted on, and what is
left of a row are its values' part in sums and products, fold by fold: means, differences to raw and
their standard errors follow, and so does what would be chosen without a fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.calibrators.logistic.moments import Ranges
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.policy import find_prior, find_unobservable
from oddslip.core.labels import LabelTotals, Positives
from oddslip.core.panel import Panel, check_k
from oddslip.core.row_keys import need_ids
from oddslip.core.tally import MergeableTally, TallyGroup
from oddslip.errors import InvalidInput
from oddslip.metrics.at_k import (
    METRIC_COLUMN,
    Column,
    check_choice,
    label_propensities,
    metric_values,
)
from oddslip.metrics.evaluation import NAMES
from oddslip.metrics.ranking import Rankings
from oddslip.selection.candidates import RAW, Candidate
from oddslip.selection.fold_fits import (
    FoldFits,
    MapsByFold,
    counts_needed,
    fit_folds,
    summary_needed,
)
from oddslip.selection.folds import Dealt, FoldCounter, HashFolds, PositiveCells, assign_folds
from oddslip.sources import Source
from oddslip.sources.views import take_rows
from oddslip.tallies.cell_counts import Ints, PositiveKeys

Floats = NDArray[np.float64]


class Sums(NamedTuple):
    """Of some rows: their number, the sums of their values, and of the values' products.

    A value is raw's own at raw's place, and the difference to it elsewhere: candidates that rank
    as raw does differ from it by exactly nothing.
    """

    n: Ints
    first: Floats
    second: Floats

    def minus(self, other: Sums) -> Sums:
        """Of these rows without some of them."""
        return Sums(self.n - other.n, self.first - other.first, self.second - other.second)


@dataclass(frozen=True, slots=True, eq=False)
class KeyedTrials:
    """Out-of-fold sums of every candidate: what `Trials` says of rows that are kept.

    Attributes
    ----------
    total : Sums
        Of all rows with a true label.
    by_fold : Sums
        Of those of each fold, in each repeat: one more axis each.
    """

    candidates: tuple[Candidate, ...]
    metric: str
    k: int
    n_folds: int
    n_repeats: int
    seed: int
    total: Sums
    by_fold: Sums
    fits: FoldFits
    fitted: list[MapsByFold]
    n_fits: dict[str, int]

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
        errors = _error(np.diagonal(self.total.second), gains, self.n_evaluated)
        gains[raw] = 0.0
        errors[raw] = 0.0 if self.n_evaluated > 1 else np.inf
        return gains, errors

    def level(self, place: int) -> tuple[float, float]:
        """The out-of-fold metric of a candidate, and its standard error."""
        n, raw = self.n_evaluated, self.candidates.index(RAW)
        own = np.unique([raw, place])  # a candidate's value is raw's and its difference to it
        square = self.total.second[np.ix_(own, own)].sum()
        mean = float(self.means[place])
        error = np.sqrt(max(0.0, square / n - mean**2) / max(1, n - 1))
        return mean, float(error)

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
        return lead, float(_error(np.array(square), np.array(lead), n))

    def of(self, candidates: Sequence[Candidate]) -> KeyedTrials:
        """The same trials of some of the candidates."""
        places = [self.candidates.index(each) for each in candidates]

        def take(sums: Sums) -> Sums:
            second = sums.second[..., places, :][..., places]
            return Sums(sums.n, sums.first[..., places], second)

        return replace(
            self, candidates=tuple(candidates), total=take(self.total), by_fold=take(self.by_fold)
        )

    def without(self, repeat: int, fold: int) -> KeyedTrials:
        """The same trials as the rows outside a fold show them."""
        left_out = Sums(*(each[repeat, fold] for each in self.by_fold))
        return replace(self, total=self.total.minus(left_out))


def _error(squares: Floats, mean: Floats, n: int) -> Floats:
    """Standard error of a mean from a sum of squares; one row says nothing about its spread."""
    if n < 2:
        return np.full(np.shape(squares), np.inf)
    return np.asarray(np.sqrt(np.maximum(squares - n * mean**2, 0.0) / (n - 1) / n))


class KeyedPositives(MergeableTally):
    """The label, the key and, in each repeat, the fold of every positive; rows of every fold.

    With ``partial`` the cells of every fold that are there as well.
    """

    JOINED: ClassVar = {
        "_folds": "append", "n_rows": "add", "n_evaluated": "add", "n_present": "add",
    }  # fmt: skip

    def __init__(
        self, n_labels: int, dtype: Any, deals: Sequence[HashFolds], partial: bool = False
    ) -> None:
        self.deals, self.partial = tuple(deals), partial
        self.cells = PositiveKeys(n_labels, dtype)
        self._folds: list[NDArray[np.uint16]] = []
        self.n_rows = np.zeros((len(self.deals), self.deals[0].n_folds), np.int64)
        self.n_present = np.zeros((*self.n_rows.shape, n_labels if partial else 0))
        self.n_evaluated = 0

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"n_labels": self.cells.n_labels, "dtype": self.cells.dtype, "deals": self.deals,
                "partial": self.partial}  # fmt: skip

    def add(self, panel: Panel) -> None:
        """Take the positives of one block, after a look at every cell."""
        self.cells.add(panel.checked())
        counts = panel.positives().counts
        folds = np.stack([deal.of(panel) for deal in self.deals], axis=1)
        self._folds.append(np.repeat(folds, counts, axis=0).astype(np.uint16))
        self.n_evaluated += int(np.count_nonzero(counts))
        for own, column in zip(self.n_rows, folds.T, strict=True):
            own += np.bincount(column, minlength=own.size)
        if not self.partial:
            return
        for repeat, column in zip(self.n_present, folds.T, strict=True):
            for fold, present in enumerate(repeat):
                present += take_rows(panel, np.flatnonzero(column == fold)).n_present()

    def merge(self, other: Self) -> None:
        """Take over another's positives."""
        super().merge(other)
        self.cells.merge(other.cells)

    def state(self) -> Any:
        """Positives and rows."""
        return super().state() | self.cells.state()

    def restore(self, state: Any) -> None:
        """Take over positives and rows."""
        super().restore(state)
        self.cells.restore(state)

    def result(self) -> tuple[PositiveCells, list[Dealt]]:
        """The positives as if of one row, and how rows fall in every repeat."""
        labels = np.concatenate([np.empty(0, np.int32), *self.cells._labels])
        keys = np.concatenate([np.empty(0, self.cells.key_type), *self.cells._keys])
        none = np.empty((0, len(self.deals)), np.uint16)
        folds = np.concatenate([none, *self._folds]).astype(np.int64)
        cells = PositiveCells(Positives(np.array([0, labels.size]), labels), keys)
        present: Any = self.n_present if self.partial else [None] * len(self.deals)
        dealt = [
            Dealt(deal, np.ascontiguousarray(folds[:, at]), self.n_rows[at], present[at])
            for at, deal in enumerate(self.deals)
        ]
        return cells, dealt


class TrialTally(MergeableTally):
    """Ranks every row by the maps that did not see its fold, and adds up what each is worth.

    Parameters
    ----------
    fitted : list
        Maps by repeat, fold and candidate. Labels that rows say nothing of are out of play.
    deals : list of HashFolds
    raw : int
        The place of raw among the candidates.
    k, metric
    propensities : ndarray of shape (n_labels,)
    """

    JOINED: ClassVar = {"n": "add", "first": "add", "second": "add", "bests": "add"}
    blocks_apart = 1

    def __init__(
        self,
        fitted: list[MapsByFold],
        deals: Sequence[HashFolds],
        raw: int,
        k: int,
        metric: str,
        propensities: Floats,
    ) -> None:
        self.fitted, self.deals, self.raw, self.k = fitted, tuple(deals), raw, k
        self.metric, self.propensities = metric, propensities
        n_folds, size = self.deals[0].n_folds, len(fitted[0][0])
        self.n = np.zeros((len(self.deals), n_folds), np.int64)
        self.first = np.zeros((*self.n.shape, size))
        self.second = np.zeros((*self.n.shape, size, size))
        self.bests = np.zeros(2)  # rows whose best is not 0, and the sum of bests

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        names = ("fitted", "deals", "raw", "k", "metric", "propensities")
        return {name: getattr(self, name) for name in names}

    def add(self, panel: Panel) -> None:
        """Rank one block."""
        positives = panel.positives()
        rows = np.flatnonzero(positives.counts)
        if not rows.size:
            return
        panel = take_rows(panel, rows, positives.take(rows))
        folds = [deal.of(panel) for deal in self.deals]
        values = np.zeros((rows.size, self.first.shape[-1]))
        for fitted, own in zip(self.fitted, folds, strict=True):
            values += self._score(panel, fitted, own)
        values /= len(self.deals)
        raw = values[:, self.raw].copy()
        values -= raw[:, None]
        values[:, self.raw] = raw
        for repeat, own in enumerate(folds):
            for fold in range(self.n.shape[1]):
                part = values[own == fold]
                self.n[repeat, fold] += len(part)
                self.first[repeat, fold] += part.sum(axis=0)
                self.second[repeat, fold] += part.T @ part

    def _score(self, panel: Panel, fitted: MapsByFold, folds: NDArray[np.int32]) -> Floats:
        values = np.empty((panel.n_rows, len(fitted[0])))
        positives = panel.positives()
        for fold, maps in enumerate(fitted):
            inside = np.flatnonzero(folds == fold)
            if not inside.size:
                continue
            true = positives.take(inside)
            part = take_rows(panel, inside, true)
            scored: dict[int, Floats] = {}
            for at, each in enumerate(maps):
                if id(each) not in scored:
                    made = Rankings.made(each.rank_panel(part, self.k), true, panel.n_labels)
                    scored[id(each)] = metric_values(made, propensities_given=self.propensities)
                values[inside, at] = scored[id(each)][:, METRIC_COLUMN[self.metric]]
            best = scored[id(maps[0])][:, Column.PSP_BEST]
            self.bests += np.count_nonzero(best), best.sum()
        return values

    def result(self) -> tuple[Sums, Sums]:
        """Sums over all rows, and those of each fold in each repeat."""
        scale = 1.0
        if self.metric == "psp":
            # A ratio of sums. Over the mean best, which all candidates share, it is a mean.
            scale = self.bests[0] / self.bests[1]
        by_fold = Sums(self.n, self.first * scale, self.second * scale**2)
        return Sums(*(each[0].sum(axis=0) for each in by_fold)), by_fold


def try_keyed(
    source: Source,
    candidates: Sequence[Candidate],
    *,
    also: Sequence[Candidate] = (),
    k: int,
    metric: str = "map",
    propensities: Floats | None = None,
    n_folds: int = 5,
    n_repeats: int = 1,
    seed: int = DEFAULT_SEED,
    dead: str = "prior",
    prior: Any = None,
    weights: Any = None,
    threads: int | None = None,
) -> KeyedTrials:
    """Evaluate every candidate out of fold, by sums; takes the arguments of `try_candidates`.

    Three passes where folds are drawn once: positives and ranges, cells of all folds, and a
    ranking of all rows by all candidates.
    """
    k = check_k(k, source.n_labels)
    check_choice("metric", metric, NAMES)
    need_ids(source.has_ids or source.ordered, "drawing folds")
    if source.sample_weight is not None:
        raise InvalidInput("sample_weight goes with rows in order, got it with rows by keys.")
    deals = assign_folds(source, n_folds, seed=seed, n_repeats=n_repeats)
    first: list[Any] = [KeyedPositives(source.n_labels, source.dtype, deals, source.partial)]
    if summary_needed((*candidates, *also)):
        first.append(Ranges(source.n_labels))
    tally = source.run(TallyGroup(first), threads=threads, what="positives")
    (cells, dealt), n_evaluated = tally.tallies[0].result(), tally.tallies[0].n_evaluated
    if not n_evaluated:
        raise InvalidInput(
            f"at least one row must have a true label, got none in {source.n_rows:,} rows."
        )
    if min(each.n_rows.min() for each in dealt) == 0:
        raise InvalidInput(
            f"every fold must hold a row, got an empty one of {n_folds} for "
            f"{source.n_rows:,} rows. Pass more rows, or fewer folds."
        )
    ranges = tally.tallies[1] if len(first) > 1 else None
    counter = FoldCounter(source, cells, counts_needed((*candidates, *also)), ranges)
    counts = np.bincount(cells.positives.indices, minlength=source.n_labels)
    totals = source.totals(threads) if source.partial else source.n_rows
    silent = find_unobservable(
        LabelTotals.alike(counts, totals), *find_prior(prior, counts, totals)
    )
    counted = counter.count_all(dealt, n_folds, threads=threads)
    del first, tally, ranges, counter  # large, and of no use to fits
    fitted, fits, n_fits = fit_folds(
        source, cells, dealt, counted, candidates, n_folds,
        dead=dead, prior=prior, weights=weights, threads=threads,
    )  # fmt: skip
    if propensities is None:
        propensities = label_propensities(counts, source.n_rows)
    trial = TrialTally(
        _silence(fitted, silent), deals, tuple(candidates).index(RAW), k, metric, propensities
    )
    total, by_fold = source.run(trial, threads=threads, what="rows out of fold").result()
    return KeyedTrials(
        candidates=tuple(candidates), metric=metric, k=k, n_folds=n_folds, n_repeats=n_repeats,
        seed=seed, total=total, by_fold=by_fold, fits=fits, fitted=fitted, n_fits=dict(n_fits),
    )  # fmt: skip


def _silence(fitted: list[MapsByFold], silent: NDArray[np.bool_]) -> list[MapsByFold]:
    """The same maps, with labels that are unheard out of play; what is one map stays one."""
    if not silent.any() or silent.all():
        return fitted
    made: dict[int, LabelMaps] = {}
    for maps in (each for repeat in fitted for fold in repeat for each in fold):
        if id(maps) not in made:
            made[id(maps)] = maps.without(silent)
    return [[[made[id(each)] for each in fold] for fold in repeat] for repeat in fitted]
