"""What a rule is worth on rows that had no say in its choice, from the trials it chooses by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from oddslip.selection.rules import Choice, Rule
from oddslip.selection.trials import Trials


@dataclass(frozen=True, slots=True, eq=False)
class CrossChoice:
    """A rule applied to all evaluated rows, and, fold by fold, to the rows outside the fold.

    Attributes
    ----------
    choice : Choice
        What the rule takes on all rows: what `Repair` deploys.
    places : ndarray of shape (repeats, folds)
        What it takes without a fold, as a place among the candidates.
    values : ndarray of shape (rows,)
        The metric of every evaluated row under the choice made without its fold, by maps fitted
        without its fold; averaged over repeats.
    rankings : ndarray of shape (repeats, rows, k), optional
        The labels ranked by these, where trials keep rankings.
    """

    choice: Choice
    places: NDArray[np.int64]
    values: NDArray[np.float64]
    rankings: NDArray[np.int32] | None


def cross_choose(rule: Rule, trials: Trials) -> CrossChoice:
    """Choose for every fold from the out-of-fold values of the other folds' rows.

    The mean of the best of many candidates is too high, since the rows that it is the mean of
    chose it. Here no row has a say in its own choice, so the mean is that of the rule itself. No
    fit is made beyond those of the trials.

    Parameters
    ----------
    rule : Rule
    trials : Trials
        Of the rule's candidates.

    Examples
    --------
    >>> from oddslip.selection.rules import read_rule
    >>> from oddslip.selection.trials import try_candidates
    >>> from oddslip.sources import open_source
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random((60, 4))
    >>> source = open_source(scores, rng.random((60, 4)) < scores * [0.1, 0.2, 0.4, 0.8])
    >>> rule = read_rule("paper")
    >>> trials = try_candidates(source, rule.candidates, k=2)
    >>> crossed = cross_choose(rule, trials)
    >>> bool(crossed.values.mean() <= trials.values.mean(axis=0).max())
    True
    """
    choice = rule.choose(trials)
    values_alone = replace(trials, rankings=None)  # which rankings of other rows say nothing of
    places = np.full((trials.n_repeats, trials.n_folds), choice.place)
    values = np.empty((trials.n_repeats, trials.rows.size))
    rankings = None
    if trials.rankings is not None:
        rankings = np.empty((trials.n_repeats, trials.rows.size, trials.k), np.int32)
    for repeat, folds in enumerate(trials.folds):
        for fold in range(trials.n_folds):
            inside = folds == fold
            if not inside.all():  # else no other row has a true label, and none can choose
                places[repeat, fold] = rule.choose(values_alone.among(~inside)).place
            taken = places[repeat, fold]
            values[repeat, inside] = trials.repeated[repeat, inside, taken]
            if rankings is not None and trials.rankings is not None:
                rankings[repeat, inside] = trials.rankings[repeat, taken, inside]
    return CrossChoice(choice, places, values.mean(axis=0), rankings)
