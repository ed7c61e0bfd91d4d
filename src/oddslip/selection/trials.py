"""Trials: every candidate ranks the rows it was not fitted on, and each row is scored.

The scores of a panel are read once for the positives and the range of each label, once to count
and to summarise the cells of all folds of all repeats, and once to rank all rows by all candidates,
however many there are. What is chosen takes one pass more as a rule, if its optimum is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.calibrators.logistic.moments import Ranges
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.policy import find_prior, find_unobservable
from oddslip.core.labels import LabelTotals, Positives
from oddslip.core.panel import Panel, check_k
from oddslip.core.tally import TallyGroup
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
    counts_needed,
    fit_folds,
    summary_needed,
)
from oddslip.selection.folds import (
    Dealt,
    FoldCounter,
    Folds,
    PositiveCells,
    PositiveCellTally,
    draw_folds,
    find_starting,
    make_buckets,
)
from oddslip.sources import Source
from oddslip.sources.views import take_rows

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """Out-of-fold values of the rows with a true label, for every candidate.

    Attributes
    ----------
    rows : ndarray of shape (rows,)
        Which rows have a true label; only these are evaluated.
    values : ndarray of shape (rows, candidates)
        The metric of a row, averaged over repeats. Column means are the out-of-fold metric. Where
        rows have weights, each is multiplied by its weight over the mean of these rows'.
    repeated : ndarray of shape (repeats, rows, candidates)
        The same for every repeat.
    folds : ndarray of shape (repeats, rows)
        The fold of each of these rows: its values come from maps that did not see that fold.
    rankings : ndarray of shape (repeats, candidates, rows, k), optional
        The labels ranked out of fold, best first, where they were asked for.
    fits : FoldFits
        The fits of the last repeat, from which a candidate is fitted on all rows.
    n_fits : dict
        Fits made out of fold, by what was fitted.
    fitted : list, optional
        Maps of the last repeat by fold and candidate tried, where rankings were asked for.
    """

    candidates: tuple[Candidate, ...]
    metric: str
    k: int
    n_folds: int
    n_repeats: int
    seed: int
    rows: NDArray[np.int64]
    values: Floats
    repeated: Floats
    folds: Folds
    rankings: NDArray[np.int32] | None
    fits: FoldFits
    n_fits: dict[str, int]
    fitted: list[list[LabelMaps]] | None = None

    @property
    def n_evaluated(self) -> int:
        """Rows with a true label."""
        return len(self.values)

    @property
    def means(self) -> Floats:
        """The out-of-fold metric of every candidate."""
        return np.asarray(self.values.mean(axis=0))

    def gains(self) -> tuple[Floats, Floats]:
        """Mean paired difference of every candidate to raw, and its standard error over rows."""
        return paired(self.values - self.values[:, [self.candidates.index(RAW)]])

    def level(self, place: int) -> tuple[float, float]:
        """The out-of-fold metric of a candidate, and its standard error."""
        values = self.values[:, place]
        return float(values.mean()), float(values.std() / np.sqrt(max(1, values.size - 1)))

    def lead(self, place: int, other: int) -> tuple[float, float]:
        """What a candidate has over another, and its standard error."""
        lead, error = paired(self.values[:, place] - self.values[:, other])
        return float(lead), float(error)

    def of(self, candidates: Sequence[Candidate], n_repeats: int | None = None) -> Trials:
        """The same trials of some of the candidates, and of the first repeats alone."""
        places = [self.candidates.index(each) for each in candidates]
        n_repeats = self.n_repeats if n_repeats is None else n_repeats
        repeated = self.repeated[:n_repeats, :, places]
        return replace(
            self,
            candidates=tuple(candidates),
            n_repeats=n_repeats,
            values=repeated.mean(axis=0),
            repeated=repeated,
            folds=self.folds[:n_repeats],
            rankings=None if self.rankings is None else self.rankings[:n_repeats, places],
        )

    def among(self, chosen: NDArray[np.bool_]) -> Trials:
        """The same trials as some of the evaluated rows alone show them."""
        return replace(
            self,
            rows=self.rows[chosen],
            values=self.values[chosen],
            repeated=self.repeated[:, chosen],
            folds=self.folds[:, chosen],
            rankings=None if self.rankings is None else self.rankings[:, :, chosen],
        )


def paired(differences: Floats) -> tuple[Any, Any]:
    """Mean over rows, and its standard error."""
    n = len(differences)
    if n < 2:  # one row says nothing about its spread
        return differences.mean(axis=0), np.full(differences.shape[1:], np.inf)
    return differences.mean(axis=0), differences.std(axis=0, ddof=1) / np.sqrt(n)


def try_candidates(
    source: Source,
    candidates: Sequence[Candidate],
    *,
    k: int,
    metric: str = "map",
    propensities: Floats | None = None,
    n_folds: int = 5,
    n_repeats: int = 1,
    seed: int = DEFAULT_SEED,
    dead: str = "prior",
    prior: Any = None,
    weights: Any = None,
    also: Sequence[Candidate] = (),
    keep_rankings: bool = False,
    threads: int | None = None,
) -> Trials:
    """Evaluate every candidate out of fold.

    Parameters
    ----------
    source : Source
        Calibration rows, with labels.
    candidates : sequence of Candidate
    k, metric
        What rows are scored by: "map", "precision", "recall", "ndcg", "psp" or "hit_rate" at K.
    propensities : ndarray of shape (n_labels,), optional
        Of PSP; from the labels of all rows unless told.
    n_folds, n_repeats, seed
        See `draw_folds`.
    dead, prior
        As in `oddslip.calibrators.Isotonic`.
    weights : number, array-like or str, optional
        As in `oddslip.calibrators.Inversion`; needed where a candidate needs them.
    also : sequence of Candidate
        Others that can be fitted on all rows afterwards, and are not tried.
    keep_rankings : bool
        Keep what was ranked: repeats x candidates x rows x K numbers.
    threads : int, optional
        Threads to use; all cores available unless told.

    Examples
    --------
    >>> from oddslip.selection.candidates import PAPER
    >>> from oddslip.sources import open_source
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random((60, 4))
    >>> source = open_source(scores, rng.random((60, 4)) < scores * [0.1, 0.2, 0.4, 0.8])
    >>> trials = try_candidates(source, PAPER, k=2)
    >>> trials.values.shape == (trials.rows.size, 7)
    True
    """
    k = check_k(k, source.n_labels)
    check_choice("metric", metric, NAMES)
    folds = draw_folds(source.n_rows, n_folds, seed=seed, n_repeats=n_repeats)
    fittable = (*candidates, *also)
    ranges = Ranges(source.n_labels) if summary_needed(fittable) else None
    needed = counts_needed(fittable)
    buckets = make_buckets(source, folds, n_folds) if True in needed else []
    first = TallyGroup([PositiveCellTally(source.dtype, ranges), *buckets])
    tally, *buckets = source.run(first, threads=threads, what="positives").tallies
    cells = tally.result()
    rows = np.flatnonzero(cells.positives.counts)
    if not rows.size:
        raise InvalidInput(
            f"at least one row must have a true label, got none in {source.n_rows:,} rows."
        )
    deals = [Dealt.numbered(repeat, n_folds, cells.positives) for repeat in folds]
    starting = find_starting(buckets, deals, cells.keys)
    counter = FoldCounter(source, cells, needed, tally.ranges, starting)
    unheard = _find_unheard(source, cells, prior)
    scorer = _Scorer(source, cells.positives, k, metric, propensities, unheard)
    repeated = np.zeros((n_repeats, rows.size, len(candidates)))
    rankings = None
    if keep_rankings:
        rankings = np.zeros((n_repeats, len(candidates), rows.size, k), np.int32)
    counted = counter.count_all(deals, n_folds, threads=threads)
    del first, counter, tally, buckets, starting  # large, and of no use to fits
    fitted, fits, n_fits = fit_folds(
        source, cells, deals, counted, candidates, n_folds,
        dead=dead, prior=prior, weights=weights, threads=threads,
    )  # fmt: skip
    scorer.score(folds, fitted, repeated, rankings, threads)
    if source.sample_weight is not None:
        times = source.sample_weight.times[rows]
        repeated *= (times / times.mean())[:, None]
    return Trials(
        candidates=tuple(candidates), metric=metric, k=k, n_folds=n_folds, n_repeats=n_repeats,
        seed=seed, rows=rows, values=repeated.mean(axis=0), repeated=repeated,
        folds=folds[:, rows], rankings=rankings, fits=fits, n_fits=dict(n_fits),
        fitted=fitted[-1] if keep_rankings else None,
    )  # fmt: skip


def _find_unheard(source: Source, cells: PositiveCells, prior: Any) -> NDArray[np.bool_]:
    counts = np.bincount(cells.positives.indices, minlength=source.n_labels)
    totals = source.totals() if source.partial else source.n_rows
    return find_unobservable(LabelTotals.alike(counts, totals), *find_prior(prior, counts, totals))


class _Scorer:
    """Scores the rows of each fold by the maps fitted without it.

    Labels that are ``unheard`` take no part, whoever ranks: every slot of theirs would count as a
    miss, though these rows can not tell.
    """

    def __init__(
        self,
        source: Source,
        positives: Positives,
        k: int,
        metric: str,
        propensities: Floats | None,
        unheard: NDArray[np.bool_],
    ) -> None:
        self.source, self.positives, self.k, self.metric = source, positives, k, metric
        self.unheard = unheard
        if propensities is None:
            counts = np.bincount(positives.indices, minlength=source.n_labels)
            propensities = label_propensities(counts, source.n_rows)
        self.propensities = propensities
        self.counted = positives.counts > 0
        self.places = np.cumsum(self.counted) - 1  # among the rows with a true label

    def score(
        self,
        folds: Folds,
        fitted: list[list[list[LabelMaps]]],
        values: Floats,
        rankings: NDArray[np.int32] | None,
        threads: int | None = None,
    ) -> None:
        """Fill in values (repeats, rows, candidates) and, if kept, rankings of rows that count."""
        bests = np.zeros(values.shape[1])
        judged = self._silence(fitted)

        def score_block(panel: Panel) -> None:
            for at, maps in enumerate(fitted):
                kept = None if rankings is None else rankings[at]
                self._score_block(panel, folds[at], maps, judged, values[at], kept, bests)

        for _ in self.source.map(score_block, threads=threads, what="rows out of fold"):
            pass
        if self.metric == "psp":
            # A ratio of sums. Over the mean best, which all candidates share, it is a mean.
            values *= np.count_nonzero(bests) / bests.sum()

    def _silence(self, fitted: list[list[list[LabelMaps]]]) -> dict[int, LabelMaps]:
        """The same maps, each by its id, with labels that are unheard out of play."""
        maps = {id(each): each for repeat in fitted for fold in repeat for each in fold}
        if not self.unheard.any() or self.unheard.all():
            return maps
        return {name: each.without(self.unheard) for name, each in maps.items()}

    def _score_block(
        self,
        panel: Panel,
        folds: Folds,
        fitted: list[list[LabelMaps]],
        judged: dict[int, LabelMaps],
        values: Floats,
        rankings: NDArray[np.int32] | None,
        bests: Floats,
    ) -> None:
        """Fill in the rows of one block, which no other thread touches."""
        numbers = np.arange(panel.first_row, panel.first_row + panel.n_rows)
        for fold, maps in enumerate(fitted):
            inside = np.flatnonzero(self.counted[numbers] & (folds[numbers] == fold))
            if not inside.size:
                continue
            rows = self.places[numbers[inside]]
            positives = self.positives.take(numbers[inside])
            part = take_rows(panel, inside)
            ranked: dict[int, NDArray[np.int32]] = {}
            scored: dict[int, Floats] = {}
            for at, each in enumerate(maps):
                if id(each) not in scored:
                    heard = judged[id(each)].rank_panel(part, self.k)
                    scored[id(each)] = metric_values(
                        Rankings.made(heard, positives, panel.n_labels),
                        propensities_given=self.propensities,
                    )
                    if rankings is not None:
                        same = judged[id(each)] is each
                        ranked[id(each)] = heard if same else each.rank_panel(part, self.k)
                own = scored[id(each)]
                values[rows, at] = own[:, METRIC_COLUMN[self.metric]]
                bests[rows] = own[:, Column.PSP_BEST]
                if rankings is not None:
                    rankings[at, rows] = ranked[id(each)]
