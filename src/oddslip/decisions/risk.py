"""Conformal risk control: the level at which the expected loss of new rows is at most alpha.

Lists grow with a level: their length, a falling threshold, or the share of the expected true labels
that they hold. For rows that are exchangeable with the new one, the expected loss of the new one is
at most alpha if n / (n + 1) times the mean loss of n rows, plus 1 / (n + 1), is (Angelopoulos et
al., Conformal Risk Control, ICLR 2024; the loss is at most 1 and monotone in the level).
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from oddslip.core.panel import Panel
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Floats, Ints
from oddslip.decisions.list_rule import SCALE, mass_before
from oddslip.decisions.lists import RankedBlock, places_in, rank_block, true_slots
from oddslip.repairs.maps import LabelMaps

Loss = Literal["missed", "wrong"]
Family = Literal["common_threshold", "length", "row"]


class Losses(NamedTuple):
    """Changes of the loss of rows as their lists grow: where, by how much, of which group."""

    entries: Floats  # where a slot is first shown; ascending within a row
    units: Ints  # of 2**-32, rounded up
    groups: Ints
    n_rows: Ints  # that have a loss, by group


class RiskTally(MergeableTally):
    """Collects where the loss of each row changes.

    The loss "missed" is the share of the true labels that is not shown, of rows with a true label;
    a true label takes its share away where it is first shown. The loss "wrong" is the largest share
    of wrong labels among the first slots, over all lists up to the row's: so it never falls.

    Parameters
    ----------
    maps : LabelMaps
    loss : {"missed", "wrong"}
    family : {"common_threshold", "length", "row"}
    k_max, n_groups : int
    groups : ndarray of shape (n_rows,) or None
        Place of the group of every row.
    """

    JOINED: ClassVar = {
        "n_rows": "add",
        **dict.fromkeys(("_entries", "_units", "_groups"), "append"),
    }

    def __init__(
        self,
        maps: LabelMaps,
        loss: Loss,
        family: Family,
        k_max: int,
        n_groups: int,
        groups: Ints | None,
    ) -> None:
        self.maps, self.loss, self.family = maps, loss, family
        self.k_max, self.n_groups, self.groups = k_max, n_groups, groups
        self.n_rows = np.zeros(n_groups, np.int64)
        self._entries: list[Floats] = []
        self._units: list[Ints] = []
        self._groups: list[Ints] = []

    def add(self, panel: Panel) -> None:
        """Collect one block of rows."""
        groups = places_in(panel, self.groups)
        block = rank_block(panel, self.maps, self.k_max)
        entries = enter(block, self.family)
        if self.loss == "missed":
            counts = panel.positives().counts
            self.n_rows += np.bincount(groups[counts > 0], minlength=self.n_groups)
            slots = true_slots(panel, block.columns)
            shares = -(-SCALE // np.maximum(counts, 1))  # rounded up
            units = np.where(slots, shares[:, None], 0)
            # True labels that are not ranked are missed at every level.
            rest = (counts - slots.sum(axis=1)) * shares
            entries = np.column_stack([entries, np.full(len(entries), np.inf)])
            units = np.column_stack([units, rest])
        else:
            self.n_rows += np.bincount(groups, minlength=self.n_groups)
            filled = block.columns >= 0
            wrong = np.cumsum(filled & ~true_slots(panel, block.columns), axis=1)
            shares = np.maximum.accumulate(wrong / np.arange(1, self.k_max + 1), axis=1)
            rises = np.diff(shares, axis=1, prepend=0.0)
            units = np.where(filled, np.ceil(rises * SCALE), 0).astype(np.int64)
        rows, slots_at = np.nonzero(units)
        self._entries.append(entries[rows, slots_at])
        self._units.append(units[rows, slots_at])
        self._groups.append(groups[rows])

    def result(self) -> Losses:
        """The changes of all rows."""
        whole = np.empty(0, np.int64)
        return Losses(
            np.concatenate([np.empty(0), *self._entries]),
            np.concatenate([whole, *self._units]),
            np.concatenate([whole, *self._groups]),
            self.n_rows,
        )


def enter(block: RankedBlock, family: Family) -> Floats:
    """Level from which each slot is shown: its number, -probability, or the mass before it."""
    shape = block.columns.shape
    if family == "length":
        entries = np.broadcast_to(np.arange(1.0, shape[1] + 1), shape)
    elif family == "common_threshold":
        entries = -block.probabilities
    else:
        entries = mass_before(block.probabilities, block.totals)
    return np.where(block.columns < 0, np.inf, entries)


class Control(NamedTuple):
    """The level of a group, with the risk of its rows and the bound on that of new ones."""

    level: float
    n_rows: int
    risk: float
    bound: float
    holds: bool


def rows_needed(alpha: float) -> int:
    """Rows that a guarantee takes: with fewer, 1 / (n + 1) alone is above alpha.

    Examples
    --------
    >>> rows_needed(0.1)
    9
    """
    return max(1, math.ceil(1 / alpha) - 1)


def control(losses: Losses, group: int, alpha: float, loss: Loss, family: Family) -> Control:
    """The level for a group: the shortest lists that miss no more, or the longest that err no more.

    Where no level has the guarantee, all labels that lists can hold are shown, or none.

    Parameters
    ----------
    losses : Losses
    group : int
    alpha : float
        Largest expected loss.
    loss, family
        As in `RiskTally`.
    """
    mine = losses.groups == group
    order = np.argsort(losses.entries[mine], kind="stable")
    entries, units = losses.entries[mine][order], losses.units[mine][order]
    n = int(losses.n_rows[group])
    n_finite = int(np.isfinite(entries).sum())
    never = int(units[n_finite:].sum())  # true labels that no list shows
    entries, units = entries[:n_finite], units[:n_finite]
    shown = np.concatenate([[0], np.cumsum(units)])
    # A level shows all slots of equal entry or none.
    steps = np.concatenate([[0], np.flatnonzero(np.diff(entries, append=np.inf)) + 1])
    budget = (alpha * (n + 1) - 1) * SCALE
    nothing, everything = LIMITS[family]
    sums = never + shown[-1] - shown[steps] if loss == "missed" else shown[steps]
    fits = np.flatnonzero(sums <= budget)
    if loss == "missed":
        at, level = len(steps) - 1, everything
        if fits.size:
            at = int(fits[0])
            level = nothing if at == 0 else _up_to(entries[steps[at] - 1], family)
    else:
        at, level = 0, nothing
        if fits.size:
            at = int(fits[-1])
            level = everything if at == len(steps) - 1 else _before(entries[steps[at]], family)
    risk = int(sums[at]) / SCALE / n if n else 0.0
    return Control(float(level), n, risk, (n * risk + 1) / (n + 1), fits.size > 0)


# Levels that show nothing and everything.
LIMITS = {"length": (0.0, np.inf), "common_threshold": (np.inf, 0.0), "row": (0.0, np.inf)}


def _up_to(entry: float, family: Family) -> float:
    """The level that shows the slots of this entry and of lower ones."""
    if family == "common_threshold":
        return -entry
    return float(np.nextafter(entry, np.inf)) if family == "row" else entry


def _before(entry: float, family: Family) -> float:
    """The level that shows the slots of lower entries alone."""
    if family == "common_threshold":
        return float(np.nextafter(-entry, np.inf))
    return entry if family == "row" else entry - 1
