"""`Fingerprint`: what scores, and what was shown of them, looked like on the calibration rows.

It is kept with a repair, so that a later day can be held against it without labels. It holds counts
alone, and nothing that follows from them: the same tally is run over the rows of a day.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.repair_file import (
    FINGERPRINT_ARRAYS,
    FINGERPRINT_COUNTS,
    UNIT,
    RepairFile,
)
from oddslip.core.panel import Kind, Panel, SparsePanel, check_k
from oddslip.core.tally import MergeableTally, TallyGroup
from oddslip.sources import Source
from oddslip.tallies.logodds_histogram import LogOddsHistogram, edges_of, n_bins, spread_parts

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SPREAD_BYTES = 128 * 1024 * 1024  # for the bins of the labels looked at together, on all threads


class Expected(NamedTuple):
    """What a metric at K was, out of fold, on calibration rows."""

    metric: str
    value: float
    standard_error: float


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """Counts of one panel's scores and of its top K, label by label.

    Attributes
    ----------
    kind : {"probability", "margin"}
        What the scores are.
    n_rows : int
        Rows that were counted.
    counts : numpy.ndarray of shape (n_labels, n_bins)
        Cells of each label in bins of log-odds: see `oddslip.tallies.logodds_histogram`.
    saturated : numpy.ndarray
        Cells of each label that float32 would store as exactly 1.0.
    k : int or None
        Slots per row; without it nothing was ranked, and what follows is empty or 0.
    slots : numpy.ndarray
        Rows that show each label.
    n_tied : int
        Rows whose top k is decided by ties of what labels are compared by.
    shown_sum, shown_squares : int
        Of each row's mean probability of what it shows, in units of 2**-32: sums over rows.
    expected : Expected or None
        What the choice of the repair was worth out of fold.
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
        """Labels that were counted."""
        return len(self.counts)

    @property
    def n_cells(self) -> Ints:
        """Rows that have each label: all of them, but where cells are absent."""
        return np.asarray(self.counts.sum(axis=1, dtype=np.int64))

    def per_cell(self, counted: NDArray[Any]) -> Floats:
        """Counts of each label, over the rows that have it; 0 where none has."""
        n_cells = np.maximum(1, self.n_cells)
        return np.asarray(counted / (n_cells[:, None] if counted.ndim == 2 else n_cells))

    @property
    def shown(self) -> tuple[float, float]:
        """Mean over rows of the mean probability of what they show, and its standard error."""
        mean = self.shown_sum * UNIT / self.n_rows
        spread = max(0.0, self.shown_squares * UNIT / self.n_rows - mean**2)
        return mean, float(np.sqrt(spread / max(1, self.n_rows - 1)))

    @property
    def distinct(self) -> Floats:
        """How many scores each label seems to have: 1 / the chance that two rows share a bin.

        Unlike the number of bins in use it does not grow with the number of rows.
        """
        counts, n = self.counts.astype(np.float64), self.n_cells
        alike = (counts * (counts - 1)).sum(axis=1) / np.maximum(1, n * (n - 1))
        return np.asarray(1.0 / np.maximum(alike, 1.0 / self.counts.shape[1]))

    def take(self, labels: Ints | None) -> Fingerprint:
        """That of some labels, in the order given; all of them for None."""
        if labels is None:
            return self
        slots = self.slots[labels] if self.k is not None else self.slots
        return replace(
            self, counts=self.counts[labels], saturated=self.saturated[labels], slots=slots
        )

    def to_dict(self) -> dict[str, Any]:
        """What fits into JSON; the arrays are apart: see `to_arrays`."""
        return {
            **{name: int(getattr(self, name)) for name in FINGERPRINT_COUNTS},
            "n_absent": self.n_rows * self.n_labels - int(self.n_cells.sum()),
            "k": self.k,
            "expected": self.expected and list(self.expected),
        }

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a saved repair: of the bins of a label, those between its outermost."""
        used = self.counts > 0
        first = used.argmax(axis=1)
        size = used.shape[1] - used[:, ::-1].argmax(axis=1) - first
        place = np.arange(used.shape[1])
        inside = (place >= first[:, None]) & (place < (first + size)[:, None])
        arrays = {
            "bin_first": first, "bin_size": size, "bin_counts": self.counts[inside],
            "saturated": self.saturated, "slots": self.slots,
        }  # fmt: skip
        return {
            name: np.ascontiguousarray(arrays[name], dtype)
            for name, dtype in FINGERPRINT_ARRAYS.items()
        }

    @classmethod
    def read(cls, stored: RepairFile) -> Self | None:
        """What `to_dict` and `to_arrays` gave, from a file; None where it has none."""
        kept, arrays = stored.fingerprint, stored.arrays
        if kept is None:
            return None
        first, size = arrays["bin_first"][:, None], arrays["bin_size"][:, None]
        place = np.arange(n_bins(stored.maps.kind))
        counts = np.zeros((len(first), place.size), np.uint32)
        counts[(place >= first) & (place < first + size)] = arrays["bin_counts"]
        return cls(
            kind=stored.maps.kind, counts=counts, saturated=arrays["saturated"], k=kept["k"],
            slots=arrays["slots"], expected=kept["expected"] and Expected(*kept["expected"]),
            **{name: kept[name] for name in FINGERPRINT_COUNTS},
        )  # fmt: skip


# ------------------------------------------------------------------------------------- the tallies


class TopKTally(MergeableTally):
    """Who is shown in the top k, how often ties decide it, and how probable what is shown is.

    ``maps`` are those of a repair; without them labels are compared by the scores as they are.
    """

    JOINED: ClassVar = dict.fromkeys(("slots", "n_tied", "shown_sum", "shown_squares"), "add")

    def __init__(self, n_labels: int, k: int, maps: LabelMaps | None) -> None:
        self.k, self.maps = k, maps
        self.slots = np.zeros(n_labels, np.int64)
        self.n_tied = self.shown_sum = self.shown_squares = 0

    def empty_like(self) -> Self:
        """An empty tally for another thread."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"n_labels": self.slots.size, "k": self.k, "maps": self.maps}

    def add(self, panel: Panel) -> None:
        """Rank one block of rows."""
        from oddslip.kernels.keys import keys_of, scores_of
        from oddslip.kernels.topk import rank_keys, rank_lists

        panel = panel.checked()
        listed = isinstance(panel, SparsePanel)
        if self.maps is None:
            cells = panel.cells if isinstance(panel, SparsePanel) else panel.scores
            values, odds = cells.astype(np.float64), panel.kind == "margin"
        elif isinstance(panel, SparsePanel):
            values, odds = self.maps.listed_values(panel), self.maps.scale == "log_odds"
        else:
            values, odds = self.maps.values(panel), self.maps.scale == "log_odds"
        most = np.finfo(np.float64).max
        np.clip(values, -most, most, out=values)  # the excluded, at -inf, have no key
        if isinstance(panel, SparsePanel):
            keys = keys_of(values[None], "margin")[0]
            columns, best, at_kth = rank_lists(*panel.listed, keys, self.k)
        else:
            keys = keys_of(np.ascontiguousarray(values), "margin")
            columns, best, at_kth = rank_keys(keys, self.k, None, panel.absent)
        there = columns >= 0
        self.slots += np.bincount(columns[there], minlength=self.slots.size)
        tied = at_kth > (best == best[:, -1:]).sum(axis=1)
        self.n_tied += int((tied & there[:, -1]).sum())
        if listed:
            shown = scores_of(best, "margin")
        else:
            shown = np.take_along_axis(values, np.maximum(columns, 0).astype(np.int64), axis=1)
        shown = 0.5 * (1 + np.tanh(shown / 2)) if odds else np.clip(shown, 0.0, 1.0)
        means = shown.mean(axis=1)
        if not there.all():  # rows that show fewer than k: the mean over what they show
            means = np.where(there, shown, 0.0).sum(axis=1) / np.maximum(1, there.sum(axis=1))
        self.shown_sum += int(np.rint(means / UNIT).astype(np.int64).sum())
        self.shown_squares += int(np.rint(means**2 / UNIT).astype(np.int64).sum())

    def result(self) -> dict[str, Any]:
        """The part of a fingerprint that needs k."""
        return {
            "k": self.k, "slots": self.slots, "n_tied": self.n_tied,
            "shown_sum": self.shown_sum, "shown_squares": self.shown_squares,
        }  # fmt: skip


NOT_SHOWN: dict[str, Any] = {
    "k": None, "slots": np.empty(0, np.int64), "n_tied": 0, "shown_sum": 0, "shown_squares": 0,
}  # fmt: skip


def join_fingerprint(spread: LogOddsHistogram, shown: TopKTally | None = None) -> Fingerprint:
    """Where cells lie, and what is shown where that was counted, as one."""
    spread.settle()
    return Fingerprint(
        spread.kind, spread.n_rows, spread.counts, spread.n_saturated.copy(),
        **(NOT_SHOWN if shown is None else shown.result()),
    )  # fmt: skip


def take_fingerprint(
    source: Source, maps: LabelMaps | None = None, k: int | None = None, threads: int | None = None
) -> Fingerprint:
    """The fingerprint of a source, in one pass; more where the bins of all labels are too many."""
    k = None if k is None else check_k(k, source.n_labels)
    shown = None if k is None else TopKTally(source.n_labels, k, maps)
    parts = list(spread_parts(source, SPREAD_BYTES, threads))
    kept: list[Fingerprint] = []
    for _, part in parts:
        tallies: list[Any] = [LogOddsHistogram(part.n_labels, part.kind)]
        if shown is not None and len(parts) == 1:
            tallies.append(shown)
        ran = part.run(TallyGroup(tallies), threads=threads, what="taking the fingerprint")
        kept.append(join_fingerprint(*ran.tallies))
    if len(kept) == 1:
        return kept[0]
    ranked = NOT_SHOWN if shown is None else source.run(shown, threads=threads).result()
    return replace(
        kept[0],
        counts=np.concatenate([each.counts for each in kept]),
        saturated=np.concatenate([each.saturated for each in kept]),
        **ranked,
    )


def probabilities_of(maps: LabelMaps) -> Floats:
    """What each map makes of the middle of every bin, shape (n_labels, n_bins)."""
    edges = edges_of(maps.kind)
    centres = (edges[1:] + edges[:-1]) / 2
    if maps.kind == "probability":
        centres = 1 / (1 + np.exp(-centres))
    scores = np.repeat(centres[:, None], maps.n_labels, axis=1)
    mapped = maps.transform_panel(Panel(scores, kind=maps.kind), np.float64)
    return np.ascontiguousarray(mapped.T)
