"""The lists of a block of rows by a `ListRule`, and what they reach."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.core.labels import DenseLabels
from oddslip.core.panel import Panel, SparsePanel
from oddslip.core.tally import MergeableTally, State
from oddslip.core.types import Bools, Floats, Ints, JsonObject
from oddslip.decisions.list_rule import SCALE, ListRule, units_of
from oddslip.repairs.maps import LabelMaps, rank_values
from oddslip.repairs.row_aware import RowAwareMaps

Columns = NDArray[np.int32]


class RankedBlock(NamedTuple):
    """The ranked labels of each row, -1 in empty slots, with their probabilities.

    ``totals`` are the units of all labels of a row.
    """

    columns: Columns
    probabilities: Floats
    totals: Ints


def rank_block(panel: Panel, maps: LabelMaps, k: int, below: Floats | None = None) -> RankedBlock:
    """Rank the labels of a block; with ``below`` those whose probability reaches it."""
    cells = maps.transform_panel(panel, np.float64)
    totals = units_of(cells).sum(axis=1)
    shown = panel if below is None else _without(panel, ~(cells >= below))
    if isinstance(maps, RowAwareMaps):  # labels that are not shown support others all the same
        columns = rank_values(maps.values(panel), shown, k)
    else:
        columns = maps.rank_panel(shown, k)
    probabilities = np.take_along_axis(cells, np.maximum(columns, 0).astype(np.int64), axis=1)
    return RankedBlock(columns, np.where(columns < 0, np.nan, probabilities), totals)


def _without(panel: Panel, hidden: Bools) -> Panel:
    """The panel without the hidden cells, among which are all that are absent."""
    excluded = DenseLabels(hidden).positives(0, panel.n_rows)
    if isinstance(panel, SparsePanel):
        return panel.without(excluded)
    block = panel.rows(0, panel.n_rows)
    block.excluded = excluded
    return block


def places_in(panel: Panel, groups: Ints | None) -> Ints:
    """Place of the group of each row of a block; 0 without groups."""
    if groups is None:
        return np.zeros(panel.n_rows, np.int64)
    return groups[panel.first_row : panel.first_row + panel.n_rows]


def list_cells(panel: Panel, *, maps: LabelMaps, rule: ListRule) -> tuple[Columns, Floats]:
    """The labels to show of each row of a table, with their probabilities."""
    block = list_block(panel, maps, rule, None)
    return block.columns, block.probabilities


def list_block(panel: Panel, maps: LabelMaps, rule: ListRule, groups: Ints | None) -> RankedBlock:
    """The labels to show of each row; the slots that follow them are empty.

    ``groups`` are the places of the groups of all rows of the panel's source, if there are any.
    """
    places = places_in(panel, groups)
    if rule.form == "threshold":
        return rank_block(panel, maps, rule.k_max, rule.cutoffs(places))
    block = rank_block(panel, maps, rule.k_max)
    lengths = rule.lengths(block.probabilities, block.totals, places)
    hidden = np.arange(rule.k_max) >= lengths[:, None]
    columns = np.where(hidden, np.int32(-1), block.columns)
    return RankedBlock(columns, np.where(hidden, np.nan, block.probabilities), block.totals)


class ListTotals(MergeableTally):
    """What the lists of all rows reach, added up in units of 2**-32.

    Parameters
    ----------
    maps : LabelMaps
    rule : ListRule
        With thresholds in the order of the maps.
    groups : ndarray of shape (n_rows,) or None
        Place of the group of every row.
    labelled : bool
        Whether rows have true labels.
    """

    COUNTS = ("n_rows", "n_shown", "n_empty", "n_hits", "n_true", "n_with_true")
    UNITS = ("expected_hits", "expected_true", "missed", "wrong", "missed_squares", "wrong_squares")
    JOINED: ClassVar = dict.fromkeys((*COUNTS, *UNITS), "add")

    def __init__(
        self, maps: LabelMaps, rule: ListRule, groups: Ints | None, labelled: bool
    ) -> None:
        self.maps, self.rule, self.groups, self.labelled = maps, rule, groups, labelled
        self.n_rows = self.n_shown = self.n_empty = self.n_hits = self.n_true = 0
        self.n_with_true = self.expected_hits = self.expected_true = self.missed = self.wrong = 0
        self.missed_squares = self.wrong_squares = 0

    def add(self, panel: Panel) -> None:
        """Make the lists of one block."""
        block = list_block(panel, self.maps, self.rule, self.groups)
        shown = (block.columns >= 0).sum(axis=1)
        self.n_rows += panel.n_rows
        self.n_shown += int(shown.sum())
        self.n_empty += int((shown == 0).sum())
        self.expected_hits += int(units_of(block.probabilities).sum())
        self.expected_true += int(block.totals.sum())
        if not self.labelled:
            return
        hits = true_slots(panel, block.columns).sum(axis=1)
        true = panel.positives().counts
        some = true > 0
        self.n_hits, self.n_true = self.n_hits + int(hits.sum()), self.n_true + int(true.sum())
        self.n_with_true += int(some.sum())
        missed, wrong = 1 - hits[some] / true[some], 1 - hits[shown > 0] / shown[shown > 0]
        self.missed, self.wrong = self.missed + _sum(missed), self.wrong + _sum(wrong)
        self.missed_squares += _sum(missed**2)
        self.wrong_squares += _sum(wrong**2)

    def state(self) -> State:
        """Each sum as a multiple of 2**32 and a rest: units may outgrow 64 bits."""
        sums = {name: divmod(getattr(self, name), SCALE) for name in self.JOINED}
        return {name: (np.array(parts), "add") for name, parts in sums.items()}

    def restore(self, state: State) -> None:
        """Replace the sums."""
        for name in self.JOINED:
            high, low = state[name][0].tolist()
            setattr(self, name, high * SCALE + low)

    def result(self) -> JsonObject:
        """Means over rows, and precision and recall over all cells; None where undefined."""

        def ratio(part: float, whole: float) -> float | None:
            return part / whole if whole else None

        expected = {
            "n_rows": self.n_rows,
            "mean_length": ratio(self.n_shown, self.n_rows),
            "empty_share": ratio(self.n_empty, self.n_rows),
            "expected_precision": ratio(self.expected_hits / SCALE, self.n_shown),
            "expected_recall": ratio(self.expected_hits, self.expected_true),
        }
        if not self.labelled:
            return expected
        return expected | {
            "precision": ratio(self.n_hits, self.n_shown),
            "recall": ratio(self.n_hits, self.n_true),
            "missed_share": ratio(self.missed / SCALE, self.n_with_true),
            "wrong_share": ratio(self.wrong / SCALE, self.n_rows),
        }

    def loss(self, name: Literal["missed", "wrong"]) -> tuple[float, float, int]:
        """Mean and variance over rows of the loss of a guarantee, and the number of rows."""
        n_rows = self.n_with_true if name == "missed" else self.n_rows
        mean, square = (
            getattr(self, part) / SCALE / max(1, n_rows) for part in (name, f"{name}_squares")
        )
        return mean, max(0.0, square - mean**2), n_rows


def _sum(values: Floats) -> int:
    return int(units_of(values).sum())


def true_slots(panel: Panel, columns: Columns) -> Bools:
    """Which slots hold a true label."""
    truths = panel.truths().astype(np.bool_)
    hits = np.take_along_axis(truths, np.maximum(columns, 0).astype(np.int64), axis=1)
    return np.asarray(hits & (columns >= 0))
