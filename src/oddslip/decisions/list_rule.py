"""`ListRule`: which labels of a ranked row are shown. NumPy only, so that any runtime can use it.

Probabilities are summed as whole multiples of 2**-32, so sums do not depend on the order of labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from oddslip.core.row_ids import match_rows, row_names
from oddslip.errors import InvalidInput, OddslipError, UnreadableFile

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Form = Literal["threshold", "length", "precision", "recall", "f1", "cost"]
SCALE = 2**32  # units per probability of 1


def units_of(probabilities: Floats) -> Ints:
    """Probabilities in units of 2**-32; 0 where a cell is absent.

    Examples
    --------
    >>> units_of(np.array([0.5, np.nan])).tolist()
    [2147483648, 0]
    """
    return np.rint(np.nan_to_num(probabilities) * SCALE).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ListRule:
    """Which labels of a row are shown.

    Parameters
    ----------
    form : {"threshold", "length", "precision", "recall", "f1", "cost"}
        "threshold": labels whose probability reaches that of ``thresholds`` and the level. The
        others show the first labels of the ranking: "length" as many as the level, "precision" as
        many as keep the expected precision at the level, "recall" as few as bring the expected
        recall to it, "f1" as many as are best for the expected F1, "cost" as few as bring the
        expected cost down to the level, or as many as are cheapest.
    levels : ndarray of shape (n_groups,)
        One number, or one per group of rows.
    k_max : int
        Never show more labels.
    thresholds : ndarray of shape (n_labels,), optional
        Of the form "threshold".
    groups : tuple of str, optional
        Names of the groups of rows.
    costs : tuple of float
        Of a wrong label, and of a missed one.

    Examples
    --------
    >>> rule = ListRule("recall", np.array([0.8]), k_max=3)
    >>> rule.lengths(np.array([[0.6, 0.3, 0.1]]), np.array([SCALE]), np.zeros(1, np.int64))
    array([2])
    """

    form: Form
    levels: Floats
    k_max: int
    thresholds: Floats | None = None
    groups: tuple[str, ...] | None = None
    costs: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise InvalidInput(f"form must be one of {get_args(Form)}, got {self.form!r:.60}.")
        n_levels = 1 if self.groups is None else len(self.groups)
        if self.levels.shape != (n_levels,) or np.isnan(self.levels).any():
            raise InvalidInput(f"levels must be {n_levels} numbers, got {self.levels!r:.60}.")
        if type(self.k_max) is not int or self.k_max < 1:
            raise InvalidInput(f"k_max must be a whole number from 1, got {self.k_max!r:.60}.")
        if (self.thresholds is None) != (self.form != "threshold"):
            raise InvalidInput("thresholds must go with the form threshold, and with no other.")
        if self.thresholds is not None and np.isnan(self.thresholds).any():
            raise InvalidInput("thresholds must be numbers, got NaN.")

    def read_groups(self, groups: Any, n_rows: int, row_ids: Any = None) -> Ints:
        """Place of the group of each row among those of the rule, see `group_names`."""
        if self.groups is None:
            if groups is not None:
                raise InvalidInput("groups must be left out: this decision was fitted without.")
            return np.zeros(n_rows, np.int64)
        if groups is None:
            raise InvalidInput(
                f"groups are needed: this decision was fitted for {len(self.groups)} groups, "
                f"such as {self.groups[0]!r:.60}. Pass the group of each row."
            )
        names = group_names(groups, n_rows, row_ids)
        order = np.argsort(self.groups)
        ordered = np.array(self.groups)[order]
        at = np.minimum(np.searchsorted(ordered, names), ordered.size - 1)
        unknown = np.flatnonzero(ordered[at] != names)
        if unknown.size:
            raise InvalidInput(
                f"groups must be among the {len(self.groups)} of the fit, "
                f"got {str(names[unknown[0]])!r:.60} at row {unknown[0]}."
            )
        return np.asarray(order[at])

    def cutoffs(self, groups: Ints) -> Floats:
        """Lowest probability that is shown, by row and label; of the form "threshold"."""
        assert self.thresholds is not None
        return np.maximum(self.thresholds, self.levels[groups][:, None])

    def lengths(self, probabilities: Floats, totals: Ints, groups: Ints) -> Ints:
        """Labels to show of each row, of the forms other than "threshold".

        Parameters
        ----------
        probabilities : ndarray of shape (n_rows, at most k_max)
            Of the ranked labels, best first; NaN in empty slots.
        totals : ndarray of shape (n_rows,)
            Units of all labels of each row, see `units_of`.
        groups : ndarray of shape (n_rows,)
        """
        level = self.levels[groups]
        filled = ~np.isnan(probabilities)
        most = filled.sum(axis=1)
        if self.form == "length":
            return np.asarray(np.minimum(most, level).astype(np.int64))
        sums = np.cumsum(units_of(probabilities), axis=1)
        if self.form == "recall":
            shown = (mass_before(probabilities, totals) < level[:, None]) & filled
            return np.asarray(shown.sum(axis=1))
        return np.asarray(np.minimum(most, self._best_prefix(sums, totals, level)))

    def _best_prefix(self, sums: Ints, totals: Ints, level: Floats) -> Ints:
        sizes = np.arange(sums.shape[1] + 1)
        sums = np.column_stack([np.zeros(len(sums), np.int64), sums])
        if self.form == "precision":
            # The mean of a ranked prefix falls with its length.
            means = sums[:, 1:] / (sizes[1:] * float(SCALE))
            below = means < level[:, None]
            return np.asarray(np.where(below.any(axis=1), below.argmax(axis=1), sizes[-1]))
        if self.form == "f1":
            possible = sizes * SCALE + totals[:, None]
            return np.asarray((2.0 * sums / np.maximum(possible, 1)).argmax(axis=1))
        wrong, missed = sizes - sums / SCALE, (totals[:, None] - sums) / SCALE
        costs = self.costs[0] * wrong + self.costs[1] * missed
        low = costs <= level[:, None]
        return np.asarray(np.where(low.any(axis=1), low.argmax(axis=1), costs.argmin(axis=1)))


def mass_before(probabilities: Floats, totals: Ints) -> Floats:
    """Share of a row's expected true labels that is ranked before each slot.

    1 where none is expected: nothing is left to find.

    Examples
    --------
    >>> mass_before(np.array([[0.5, 0.25]]), np.array([SCALE])).tolist()
    [[0.0, 0.5]]
    """
    units = units_of(probabilities)
    before = np.cumsum(units, axis=1) - units
    return np.asarray(np.where(totals[:, None] > 0, before / np.maximum(totals, 1)[:, None], 1.0))


def group_names(groups: Any, n_rows: int, row_ids: Any = None) -> NDArray[np.str_]:
    """Names of the groups of rows, as text; a series is matched with the ids of the rows."""
    try:
        names = np.asarray(groups)
    except ValueError:
        raise InvalidInput("groups must hold one name per row, got lists of them.") from None
    if names.shape != (n_rows,):
        raise InvalidInput(
            f"groups must hold one name per row, n_rows={n_rows:,}, got shape {names.shape}."
        )
    ids = row_names(groups)
    if ids is not None:
        what, counts = ("scores", "groups"), (n_rows, n_rows)
        order = match_rows(row_ids, ids, what, n_rows=counts)
        names = names if order is None else names[order]
    return names.astype(str)


def read_rule(path: Any, stored: Any) -> ListRule:
    """The validated rule of the file of a repair, see `oddslip.repairs.repair_file`."""
    header, arrays = stored.decision, stored.arrays
    if header is None:
        raise InvalidInput(f"{path} holds a repair without a decision. Make one: oddslip decide.")
    n_labels, groups = int(stored.maps.code.size), None
    try:
        if header["groups"] is not None:
            groups = tuple(map(str, header["groups"]))
        wrong, missed = map(float, header["costs"])
        thresholds = arrays["threshold"] if header["form"] == "threshold" else None
        if thresholds is not None and thresholds.size != n_labels:
            raise InvalidInput(f"there must be one threshold per label, n_labels={n_labels}.")
        k_max = header["k_max"]
        levels = arrays["level"]
        rule = ListRule(header["form"], levels, k_max, thresholds, groups, (wrong, missed))
        if k_max > n_labels or len(set(groups or ())) < len(groups or ()):
            raise InvalidInput("k_max and groups must be those of a fit.")
    except (OddslipError, LookupError, TypeError, ValueError) as error:
        raise UnreadableFile(f"{path} holds a decision that does not add up: {error}") from error
    return rule
