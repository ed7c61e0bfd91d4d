"""`Fingerprint`: counts of the scores and of the top K of the calibration rows.

It is stored with a repair, so that later rows can be compared with it without labels. It only holds
counts, which the same tallies compute for later rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.core.panel import Kind, Panel, SparsePanel, check_k
from oddslip.core.tally import MergeableTally, TallyGroup
from oddslip.core.types import Array, Floats, Ints, JsonObject
from oddslip.repairs.maps import LabelMaps
from oddslip.repairs.repair_file import (
    FINGERPRINT_ARRAYS,
    FINGERPRINT_COUNTS,
    UNIT,
    RepairFile,
)
from oddslip.sources import Source
from oddslip.sources.views import ColumnSource
from oddslip.tallies.logodds_histogram import LogOddsHistogram, edges_of, n_bins, spread_parts

SPREAD_BYTES = 128 * 1024 * 1024  # for the bins of one pass, on all threads


class Expected(NamedTuple):
    """Out-of-fold estimate of a metric at K on the calibration rows."""

    metric: str
    value: float
    standard_error: float


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """Counts of the scores and of the top K of a panel, per label.

    Attributes
    ----------
    kind : {"probability", "margin"}
        Scale of the scores.
    n_rows : int
        Number of rows.
    counts : numpy.ndarray of shape (n_labels, n_bins)
        Cells of each label in bins of log-odds, see `oddslip.tallies.logodds_histogram`.
    saturated : numpy.ndarray
        Cells of each label that float32 would store as exactly 1.0.
    k : int or None
        Slots per row; if None, nothing was ranked, and the counts below are empty or 0.
    slots : numpy.ndarray
        Rows that have each label in their top k.
    n_tied : int
        Rows whose top k is decided by ties.
    shown_sum, shown_squares : int
        Sums over rows of the mean probability of the top k and of its square, in units of 2**-32.
    expected : Expected or None
        Out-of-fold value of the repair.
    """

    kind: Kind
    n_rows: int
    counts: NDArray[np.uint32]
    saturated: Ints
    k: int | None
    slots: Ints
    n_tied: int
    shown_sum: int
    shown_squares: int
    expected: Expected | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.counts)

    @property
    def n_cells(self) -> Ints:
        """Rows in which each label is present."""
        return np.asarray(self.counts.sum(axis=1, dtype=np.int64))

    def per_cell(self, counts: Array) -> Floats:
        """Counts of each label, divided by the rows in which it is present; 0 if there are none."""
        n_cells = np.maximum(1, self.n_cells)
        return np.asarray(counts / (n_cells[:, None] if counts.ndim == 2 else n_cells))

    @property
    def shown(self) -> tuple[float, float]:
        """Mean over rows of the mean probability of the top k, and its standard error."""
        mean = self.shown_sum * UNIT / self.n_rows
        spread = max(0.0, self.shown_squares * UNIT / self.n_rows - mean**2)
        return mean, float(np.sqrt(spread / max(1, self.n_rows - 1)))

    @property
    def distinct(self) -> Floats:
        """Effective number of scores of each label: 1 / the chance that two rows share a bin.

        Unlike the number of occupied bins it does not grow with the number of rows.
        """
        counts, n = self.counts.astype(np.float64), self.n_cells
        collision_rate = (counts * (counts - 1)).sum(axis=1) / np.maximum(1, n * (n - 1))
        return np.asarray(1.0 / np.maximum(collision_rate, 1.0 / self.counts.shape[1]))

    def take(self, labels: Ints | None) -> Fingerprint:
        """The fingerprint of some labels, in this order; of all labels for None."""
        if labels is None:
            return self
        slots = self.slots[labels] if self.k is not None else self.slots
        return replace(
            self, counts=self.counts[labels], saturated=self.saturated[labels], slots=slots
        )

    def to_dict(self) -> JsonObject:
        """The fields for JSON; `to_arrays` has the arrays."""
        return {
            **{name: int(getattr(self, name)) for name in FINGERPRINT_COUNTS},
            "n_absent": self.n_rows * self.n_labels - int(self.n_cells.sum()),
            "k": self.k,
            "expected": self.expected and list(self.expected),
        }

    def to_arrays(self) -> dict[str, Array]:
        """The arrays to store; of each label the bins between its first and last occupied one."""
        occupied = self.counts > 0
        first = occupied.argmax(axis=1)
        size = occupied.shape[1] - occupied[:, ::-1].argmax(axis=1) - first
        place = np.arange(occupied.shape[1])
        inside = (place >= first[:, None]) & (place < (first + size)[:, None])
        arrays = {
            "bin_first": first,
            "bin_size": size,
            "bin_counts": self.counts[inside],
            "saturated": self.saturated,
            "slots": self.slots,
        }
        return {
            name: np.ascontiguousarray(arrays[name], dtype)
            for name, dtype in FINGERPRINT_ARRAYS.items()
        }

    @classmethod
    def read(cls, stored: RepairFile) -> Self | None:
        """The fingerprint in a file; None if it has none."""
        fields, arrays = stored.fingerprint, stored.arrays
        if fields is None:
            return None
        first, size = arrays["bin_first"][:, None], arrays["bin_size"][:, None]
        place = np.arange(n_bins(stored.maps.kind))
        counts = np.zeros((len(first), place.size), np.uint32)
        counts[(place >= first) & (place < first + size)] = arrays["bin_counts"]
        return cls(
            kind=stored.maps.kind,
            counts=counts,
            saturated=arrays["saturated"],
            k=fields["k"],
            slots=arrays["slots"],
            expected=fields["expected"] and Expected(*fields["expected"]),
            **{name: fields[name] for name in FINGERPRINT_COUNTS},
        )


# ------------------------------------------------------------------------------------- the tallies


class TopKTally(MergeableTally):
    """Labels in the top k, rows decided by ties, and mean probabilities of the top k.

    ``maps`` are those of a repair; without them labels are compared by their scores.
    """

    JOINED: ClassVar = dict.fromkeys(("slots", "n_tied", "shown_sum", "shown_squares"), "add")

    def __init__(self, n_labels: int, k: int, maps: LabelMaps | None) -> None:
        self.k, self.maps = k, maps
        self.slots = np.zeros(n_labels, np.int64)
        self.n_tied = self.shown_sum = self.shown_squares = 0

    def spec(self) -> dict[str, Any]:
        """Constructor arguments of an empty copy."""
        return {"n_labels": self.slots.size, "k": self.k, "maps": self.maps}

    def add(self, panel: Panel) -> None:
        """Rank one block of rows."""
        from oddslip.kernels.keys import keys_of, scores_of
        from oddslip.kernels.topk import rank_keys, rank_lists

        panel = panel.checked()
        if self.maps is None:
            cells = panel.cells if isinstance(panel, SparsePanel) else panel.scores
            values, odds = cells.astype(np.float64), panel.kind == "margin"
        elif isinstance(panel, SparsePanel):
            values, odds = self.maps.listed_values(panel), self.maps.scale == "log_odds"
        else:
            values, odds = self.maps.values(panel), self.maps.scale == "log_odds"
        largest = np.finfo(np.float64).max
        np.clip(values, -largest, largest, out=values)  # excluded labels, at -inf, have no key
        if isinstance(panel, SparsePanel):
            keys = keys_of(values[None], "margin")[0]
            columns, best, at_kth = rank_lists(*panel.positions, keys, self.k)
            top = scores_of(best, "margin")
        else:
            keys = keys_of(np.ascontiguousarray(values), "margin")
            columns, best, at_kth = rank_keys(keys, self.k, None, panel.absent)
            top = np.take_along_axis(values, np.maximum(columns, 0).astype(np.int64), axis=1)
        filled = columns >= 0
        self.slots += np.bincount(columns[filled], minlength=self.slots.size)
        tied = at_kth > (best == best[:, -1:]).sum(axis=1)
        self.n_tied += int((tied & filled[:, -1]).sum())
        top = 0.5 * (1 + np.tanh(top / 2)) if odds else np.clip(top, 0.0, 1.0)
        means = top.mean(axis=1)
        if not filled.all():  # rows with fewer than k labels: the mean over these
            means = np.where(filled, top, 0.0).sum(axis=1) / np.maximum(1, filled.sum(axis=1))
        self.shown_sum += int(np.rint(means / UNIT).astype(np.int64).sum())
        self.shown_squares += int(np.rint(means**2 / UNIT).astype(np.int64).sum())

    def result(self) -> dict[str, Any]:
        """The part of a fingerprint that needs k."""
        return {
            "k": self.k,
            "slots": self.slots,
            "n_tied": self.n_tied,
            "shown_sum": self.shown_sum,
            "shown_squares": self.shown_squares,
        }


NOT_RANKED: dict[str, Any] = {
    "k": None,
    "slots": np.empty(0, np.int64),
    "n_tied": 0,
    "shown_sum": 0,
    "shown_squares": 0,
}


def join_fingerprint(histogram: LogOddsHistogram, top: TopKTally | None = None) -> Fingerprint:
    """The fingerprint of a histogram of cells, with the top K if it was counted."""
    histogram.settle()
    return Fingerprint(
        histogram.kind,
        histogram.n_rows,
        histogram.counts,
        histogram.n_saturated.copy(),
        **(NOT_RANKED if top is None else top.result()),
    )


def take_fingerprint(
    source: Source, maps: LabelMaps | None = None, k: int | None = None
) -> Fingerprint:
    """The fingerprint of a source, in one pass, or more if the bins of all labels need it."""
    k = None if k is None else check_k(k, source.n_labels)
    top = None if k is None else TopKTally(source.n_labels, k, maps)
    parts = list(spread_parts(source, SPREAD_BYTES))
    fingerprints: list[Fingerprint] = []
    for labels in parts:
        part = source if len(parts) == 1 else ColumnSource(source, labels)
        tallies: list[Any] = [LogOddsHistogram(part.n_labels, part.kind)]
        if top is not None and len(parts) == 1:
            tallies.append(top)
        group = part.run(TallyGroup(tallies), what="taking the fingerprint")
        fingerprints.append(join_fingerprint(*group.tallies))
    if len(fingerprints) == 1:
        return fingerprints[0]
    ranked = NOT_RANKED if top is None else source.run(top).result()
    return replace(
        fingerprints[0],
        counts=np.concatenate([each.counts for each in fingerprints]),
        saturated=np.concatenate([each.saturated for each in fingerprints]),
        **ranked,
    )


def probabilities_of(maps: LabelMaps) -> Floats:
    """Probability of each map at the centre of every bin, shape (n_labels, n_bins)."""
    edges = edges_of(maps.kind)
    centres = (edges[1:] + edges[:-1]) / 2
    if maps.kind == "probability":
        centres = 1 / (1 + np.exp(-centres))
    scores = np.repeat(centres[:, None], maps.n_labels, axis=1)
    # The maps alone: these are no rows, of which a row-aware stage could tell anything.
    mapped = LabelMaps.transform_panel(maps, Panel(scores, kind=maps.kind), np.float64)
    return np.ascontiguousarray(mapped.T)
