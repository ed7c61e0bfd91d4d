"""Two counts of rows: do they differ beyond chance, and by how much?

Counts may be sums of weights between 0 and 1. Given their total, the share that falls to the second
sample is binomial if nothing changed; where more than half of the rows are counted, the others are.
That is exact for rare events and errs on the side of silence for common ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oddslip.core.types import Floats

_EXACT = 64  # pairs looked at closely


def rate_chances(first: Any, n_first: Any, second: Any, n_second: Any) -> Floats:
    """Chance of two counts at least as far apart, of so many rows each, if nothing changed.

    Examples
    --------
    >>> rate_chances([10, 10], 1000, [30, 12], 1000).round(4)
    array([0.0022, 0.8318])
    """
    from scipy.special import betainc

    one, n_one, two, n_two = (
        np.asarray(each, np.float64) for each in (first, n_first, second, n_second)
    )
    common = one + two > 0.5 * (n_one + n_two)
    one = np.where(common, n_one - one, one)
    two = np.where(common, n_two - two, two)
    share = n_two / np.maximum(n_one + n_two, 1e-300)  # of none: nothing differs
    # P(X >= two) and P(X <= two) of a binomial of one + two draws, which need not be whole.
    more = np.where(two > 0, betainc(np.maximum(two, 1e-300), one + 1, share), 1.0)
    less = np.where(one > 0, betainc(np.maximum(one, 1e-300), two + 1, 1 - share), 1.0)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(more, less)))


def odds_apart(first: Any, n_first: Any, second: Any, n_second: Any) -> Floats:
    """By how many nat the log-odds of the second share exceed those of the first.

    Half a row is added to either side, so that none and all have odds.

    Examples
    --------
    >>> odds_apart(10, 1000, 20, 1000).round(2).item()
    0.68
    """
    one, two = np.asarray(first, np.float64), np.asarray(second, np.float64)
    return np.asarray(
        np.log((two + 0.5) / (n_second - two + 0.5)) - np.log((one + 0.5) / (n_first - one + 0.5))
    )


def smallest_chance(first: Any, n_first: Any, second: Any, n_second: Any) -> float:
    """The smallest of many `rate_chances`, found without computing most of them.

    The chance of a pair falls, nearly, with its deviance, which is cheap.
    """
    one, n_one, two, n_two = (
        np.ravel(each)
        for each in np.broadcast_arrays(
            *(np.asarray(each, np.float64) for each in (first, n_first, second, n_second))
        )
    )
    if one.size > _EXACT:
        common = one + two > 0.5 * (n_one + n_two)
        less, more = np.where(common, n_one - one, one), np.where(common, n_two - two, two)
        rate = (less + more) / np.maximum(n_one + n_two, 1e-300)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.where(less > 0, less * np.log(less / (n_one * rate)), 0.0)
            far += np.where(more > 0, more * np.log(more / (n_two * rate)), 0.0)
        farthest = np.argpartition(-far, _EXACT)[:_EXACT]
        one, n_one, two, n_two = one[farthest], n_one[farthest], two[farthest], n_two[farthest]
    return float(rate_chances(one, n_one, two, n_two).min(initial=1.0))
