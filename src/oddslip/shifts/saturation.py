"""Saturation: cells whose probability is exactly 1.0 in float32, and the ties they cause."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from oddslip.core.arguments import check_whole
from oddslip.core.panel import Kind, Panel, check_k
from oddslip.core.passes import Passes, run
from oddslip.core.results import label_frame, plain
from oddslip.core.tally import MergeableTally, State
from oddslip.core.types import Array, Ints, JsonObject, ScoresLike
from oddslip.sources import Source
from oddslip.sources.open import open_rows
from oddslip.tallies.logodds_histogram import saturated_key

MAX_DISTINCT_BYTES = 2**28  # of scores in memory while distinct ones are counted


@dataclass(frozen=True, slots=True, eq=False)
class Saturation:
    """Saturated cells of a panel, and their effect on its top K.

    Attributes
    ----------
    n_rows, n_labels, k : int
        Shape of the panel, slots per row.
    n_saturated : numpy.ndarray
        Per label, cells that float32 stores as exactly 1.0. For margins this is 17.33 and above,
        where the sigmoid is computed in float64 and then cast.
    n_saturated_float32 : numpy.ndarray or None
        The same for margins whose sigmoid is computed in float32: 16.64 and above.
    full_rows : int
        Rows with at least k saturated cells.
    tied_rows : int
        Rows whose top k is decided by ties: more cells equal the k-th than there are free slots.
    n_distinct : numpy.ndarray or None
        Distinct scores of each label; None if not counted.
    label_names : tuple of str or None
        Names of the labels.
    n_present : int or None
        Present cells; None if no cell is absent.
    n_unit : int or None
        Margins between 0 and 1; None for probabilities.
    """

    n_rows: int
    n_labels: int
    k: int
    n_saturated: Ints
    n_saturated_float32: Ints | None
    full_rows: int
    tied_rows: int
    n_distinct: Ints | None = None
    label_names: tuple[str, ...] | None = None
    n_present: int | None = None
    n_unit: int | None = None

    @property
    def n_cells_there(self) -> int:
        """Cells of the panel without the absent ones."""
        return self.n_rows * self.n_labels if self.n_present is None else self.n_present

    @property
    def n_cells(self) -> int:
        """Saturated cells of all labels."""
        return int(self.n_saturated.sum())

    @property
    def n_labels_hit(self) -> int:
        """Labels with a saturated cell."""
        return int((self.n_saturated > 0).sum())

    @property
    def share(self) -> float:
        """Share of all cells that are saturated."""
        return float(self.n_saturated.sum() / max(1, self.n_cells_there))

    @property
    def share_float32(self) -> float:
        """Share of all cells that are saturated if the sigmoid is computed in float32."""
        counts = self.n_saturated_float32
        if counts is None:
            return self.share
        return float(counts.sum() / max(1, self.n_cells_there))

    @property
    def mean_per_row(self) -> float:
        """Saturated cells of a row, mean over rows."""
        return float(self.n_saturated.sum() / self.n_rows)

    @property
    def mean_distinct(self) -> float | None:
        """Distinct scores of a label, mean over labels."""
        return None if self.n_distinct is None else float(self.n_distinct.mean())

    def to_dict(self) -> JsonObject:
        """All fields and derived values as lists and numbers."""
        names = [field.name for field in fields(self)]
        names += ["share", "share_float32", "mean_per_row", "mean_distinct"]
        return plain({name: getattr(self, name) for name in names})  # type: ignore[no-any-return]

    def to_frame(self) -> Any:
        """A pandas data frame with one row per label."""
        names = ("n_saturated", "n_saturated_float32", "n_distinct")
        columns = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return label_frame(columns, self.label_names)


def saturation(
    scores: ScoresLike,
    *,
    k: int,
    kind: Kind | None = None,
    distinct: bool = True,
    decimals: int | None = None,
    threads: int | None = None,
) -> Saturation:
    """Count saturated cells, rows full of them, rows decided by ties, and distinct scores.

    A cell is saturated if float32 stores its probability as exactly 1.0, whatever the dtype of the
    panel. Ties are counted on the scores as they are stored.

    Parameters
    ----------
    scores : anything of shape (n_rows, n_labels)
        An array, a panel, a source or a path.
    k : int
        Slots per row.
    kind : {"probability", "margin"}, optional
        Scale of the scores; default: probability.
    distinct : bool
        Whether to count distinct scores, which sorts the scores of every label.
    decimals : int, optional
        Round scores to this many decimals before counting distinct ones; the paper uses 12.
    threads : int, optional
        Threads to use; default: all available cores.

    Returns
    -------
    Saturation

    Examples
    --------
    >>> counts = saturation([[1.0, 1.0, 0.2], [0.9, 0.5, 0.2]], k=1)
    >>> counts.n_saturated.tolist(), counts.full_rows, counts.tied_rows, counts.n_distinct.tolist()
    ([1, 1, 0], 1, 1, [2, 2, 1])
    """
    source = open_rows(scores, kind=kind, threads=threads)
    k = check_k(k, source.n_labels)
    if decimals is not None:
        check_whole("decimals", decimals, 0)
    counts = run(source, count_saturated(source, k), what="counting saturated cells")
    if not distinct:
        return counts
    return replace(counts, n_distinct=count_distinct(source, decimals))


def count_saturated(source: Source, k: int) -> Passes[Saturation]:
    """Everything but distinct scores, in one pass."""
    tally: SaturationTally = yield SaturationTally(source.n_labels, k)
    return Saturation(
        source.n_rows,
        source.n_labels,
        k,
        tally.per_label,
        tally.per_label_float32 if source.kind == "margin" else None,
        tally.full_rows,
        tally.tied_rows,
        None,
        source.label_names,
        int(np.sum(source.totals())) if source.partial else None,
        tally.n_unit if source.kind == "margin" else None,
    )


class SaturationTally(MergeableTally):
    """Saturated cells per label, full rows and tied rows."""

    JOINED: ClassVar = dict.fromkeys(
        ("per_label", "per_label_float32", "full_rows", "tied_rows", "n_unit"), "add"
    )

    def __init__(self, n_labels: int, k: int) -> None:
        self.k = k
        self.per_label = np.zeros(n_labels, np.int64)
        self.per_label_float32 = np.zeros(n_labels, np.int64)
        self.full_rows = self.tied_rows = self.n_unit = 0

    def spec(self) -> dict[str, Any]:
        """Constructor arguments of an empty copy."""
        return {"n_labels": self.per_label.size, "k": self.k}

    def add(self, panel: Panel) -> None:
        """Add one block of rows."""
        from oddslip.kernels.logits import count_reaching
        from oddslip.kernels.topk import rank_keys

        panel = panel.checked()
        keys, dtype, absent = panel.present_keys(), panel.dtype, panel.absent
        per_row = np.empty(panel.n_rows, np.int64)
        if panel.kind == "margin":
            float32_key = saturated_key(dtype, "margin", sigmoid="float32")
            count_reaching(keys, float32_key, self.per_label_float32, per_row)
            unit = (panel.scores >= 0) & (panel.scores <= 1)
            present = panel.present()
            self.n_unit += int((unit if present is None else unit & present).sum())
        count_reaching(keys, saturated_key(dtype, panel.kind), self.per_label, per_row)
        self.full_rows += int((per_row >= self.k).sum())
        columns, best, at_kth = rank_keys(keys, self.k, None, absent)
        slots = (best == best[:, -1:]).sum(axis=1)
        self.tied_rows += int(((at_kth > slots) & (columns[:, -1] >= 0)).sum())

    def result(self) -> Self:
        """The counts."""
        return self


def count_distinct(
    source: Source, decimals: int | None = None, *, max_bytes: int = MAX_DISTINCT_BYTES
) -> Ints:
    """Exact number of distinct scores per label; one pass over the rows per tile of labels."""
    itemsize = source.dtype.itemsize if decimals is None else 8
    tile = max(1, max_bytes // (source.n_rows * itemsize))
    counts = [
        source.run(DistinctTally(first, min(first + tile, source.n_labels), decimals)).result()
        for first in range(0, source.n_labels, tile)
    ]
    return np.concatenate(counts)


class DistinctTally:
    """Distinct scores of the labels ``first`` to ``last``, counted once all rows are added."""

    def __init__(self, first: int, last: int, decimals: int | None) -> None:
        self.first, self.last, self.decimals = first, last, decimals
        self.columns: list[Array] = []

    def empty_like(self) -> Self:
        """An empty tally for another thread."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """Constructor arguments of an empty copy."""
        return {"first": self.first, "last": self.last, "decimals": self.decimals}

    def state(self) -> State:
        """The scores, row by row."""
        return {"cells": (np.concatenate(self.columns, axis=1).T, "append")} if self.columns else {}

    def restore(self, state: State) -> None:
        """Replace the scores."""
        self.columns = [np.ascontiguousarray(cells.T) for cells, _ in state.values()]

    def add(self, panel: Panel) -> None:
        """Add one block of rows, label by label."""
        cells, present = panel.scores[:, self.first : self.last].T, panel.present()
        if present is None:
            self.columns.append(self._rounded(cells))
            return
        masks = present[:, self.first : self.last].T
        columns = [self._rounded(label[mask]) for label, mask in zip(cells, masks, strict=True)]
        self.columns.append(columns)  # type: ignore[arg-type]

    def _rounded(self, cells: Array) -> Array:
        if self.decimals is not None:
            cells = np.round(cells.astype(np.float64), self.decimals)
        # Adding 0.0 turns -0.0 into 0.0, so that equal scores have equal bits.
        return np.ascontiguousarray(cells + cells.dtype.type(0))

    def merge(self, other: Self) -> None:
        """Add the scores of another tally."""
        self.columns += other.columns

    def result(self) -> Ints:
        """Distinct scores per label. Sorts their bits, since integers sort fast in any order."""
        counts = np.empty(self.last - self.first, np.int64)
        for label in range(counts.size):
            cells = np.concatenate([columns[label] for columns in self.columns])
            bits = cells.view(np.uint32 if cells.itemsize == 4 else np.uint64)
            bits.sort()
            counts[label] = min(1, bits.size) + np.count_nonzero(bits[1:] != bits[:-1])
        return counts
