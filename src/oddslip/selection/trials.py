"""Trials: every candidate ranks the rows it was not fitted on, and each row is scored.

The scores of a panel are read once for the positives, once per repeat to count the cells of all
folds, and once per repeat to rank all rows by all candidates. Only logistic candidates need more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.calibrators.maps import LabelMaps
from oddslip.errors import InvalidInput
from oddslip.labels import Positives
from oddslip.metrics.at_k import SUMMED, Column, check_choice, label_propensities, metric_values
from oddslip.metrics.evaluation import NAMES
from oddslip.metrics.ranking import Rankings
from oddslip.panels import Panel, check_k
from oddslip.selection.candidates import Candidate
from oddslip.selection.fold_fits import FoldFits, counts_needed
from oddslip.selection.folds import FoldCounter, Folds, PositiveCellTally, draw_folds
from oddslip.sources import Source
from oddslip.sources.views import take_rows

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """Out-of-fold values of the rows with a true label, for every candidate.

    ``values`` has shape (rows, candidates): the metric of a row, averaged over repeats. Its
    column means are the out-of-fold metric. ``fits`` holds the fits of the last repeat, from
    which a candidate is fitted on all rows without another pass. ``n_fits`` counts the fits made
    out of fold, by what was fitted.
    """

    candidates: tuple[Candidate, ...]
    metric: str
    k: int
    n_folds: int
    n_repeats: int
    seed: int
    rows: NDArray[np.int64]
    values: Floats
    fits: FoldFits
    n_fits: dict[str, int]


def try_candidates(
    source: Source,
    candidates: Sequence[Candidate],
    *,
    k: int,
    metric: str = "map",
    n_folds: int = 5,
    n_repeats: int = 1,
    seed: int = DEFAULT_SEED,
    dead: str = "prior",
    prior: Any = None,
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
        PSP takes its propensities from the labels of all rows.
    n_folds, n_repeats, seed
        See `draw_folds`.
    dead, prior
        As in `oddslip.calibrators.Isotonic`.
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
    tally = PositiveCellTally(source.dtype)
    cells = source.run(tally, threads=threads, what="positives").result()
    rows = np.flatnonzero(cells.positives.counts)
    if not rows.size:
        raise InvalidInput(
            f"at least one row must have a true label, got none in {source.n_rows:,} rows."
        )
    counter = FoldCounter(source, cells, counts_needed(candidates))
    scorer = _Scorer(source, cells.positives, k, metric)
    total = np.zeros((rows.size, len(candidates)))
    n_fits: Counter[str] = Counter()
    for repeat in folds:
        fits = FoldFits(
            source, cells, counter, repeat, n_folds, dead=dead, prior=prior, threads=threads
        )
        fitted = [[fits.fit(each, fold)[0] for each in candidates] for fold in range(n_folds)]
        for fold in range(n_folds):
            fits.forget(fold)
        total += scorer.score(repeat, fitted, threads)[rows]
        n_fits += fits.n_fits
    return Trials(
        candidates=tuple(candidates), metric=metric, k=k, n_folds=n_folds, n_repeats=n_repeats,
        seed=seed, rows=rows, values=total / n_repeats, fits=fits, n_fits=dict(n_fits),
    )  # fmt: skip


class _Scorer:
    """Scores the rows of each fold by the maps fitted without it."""

    def __init__(self, source: Source, positives: Positives, k: int, metric: str) -> None:
        self.source, self.positives, self.k, self.metric = source, positives, k, metric
        counts = np.bincount(positives.indices, minlength=source.n_labels)
        self.propensities = label_propensities(counts, source.n_rows)

    def score(
        self, folds: Folds, fitted: list[list[LabelMaps]], threads: int | None = None
    ) -> Floats:
        """Values of all rows, shape (n_rows, candidates); 0 for rows without a true label."""
        values = np.zeros((self.source.n_rows, len(fitted[0])))
        bests = np.zeros(self.source.n_rows)

        def score_block(panel: Panel) -> None:
            self._score_block(panel, folds, fitted, values, bests)

        for _ in self.source.map(score_block, threads=threads, what="rows out of fold"):
            pass
        # PSP is a ratio of sums. Over the mean best, which all candidates share, it is a mean.
        return values * np.count_nonzero(bests) / bests.sum() if self.metric == "psp" else values

    def _score_block(
        self,
        panel: Panel,
        folds: Folds,
        fitted: list[list[LabelMaps]],
        values: Floats,
        bests: Floats,
    ) -> None:
        """Fill in the rows of one block, which no other thread touches."""
        numbers = np.arange(panel.first_row, panel.first_row + panel.n_rows)
        counted = self.positives.counts[numbers] > 0
        for fold, maps in enumerate(fitted):
            inside = np.flatnonzero(counted & (folds[numbers] == fold))
            if not inside.size:
                continue
            rows = numbers[inside]
            positives = self.positives.take(rows)
            part = take_rows(panel, inside)
            scored: dict[int, Floats] = {}
            for at, each in enumerate(maps):
                if id(each) not in scored:
                    ranked = each.rank_panel(part, self.k)
                    scored[id(each)] = metric_values(
                        Rankings.made(ranked, positives, panel.n_labels),
                        propensities_given=self.propensities,
                    )
                own = scored[id(each)]
                values[rows, at] = own[:, SUMMED[self.metric]]
                bests[rows] = own[:, Column.PSP_BEST]
