"""`RowAwareMaps`: label maps with a stage behind them that sees the whole row.

The lift of two labels is the log of how often they occur together over how often they would by
chance, with `PSEUDO_COUNT` rows added to both, so that rare pairs say little.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.core.panel import Panel, SparsePanel, check_k
from oddslip.core.types import Array, Floats, LabelsLike
from oddslip.errors import InvalidInput
from oddslip.repairs.map_forms import EXCLUDED, IDENTITY, PER_LABEL, PlainMaps
from oddslip.repairs.maps import LabelMaps, rank_values
from oddslip.repairs.row_stage import RowStage, check_stage

PSEUDO_COUNT = 5.0  # rows added to observed and expected co-occurrences
N_PARTNERS = 32  # labels that support a label
_NEEDS_ROWS = (
    "{what} needs a map per label, got a row-aware repair, which needs whole rows. "
    'Fit Repair(k=..., rule="hierarchical"), which is the same without the row-aware stage.'
)
CHUNK = 1 << 22  # pairs of labels whose lift is computed at a time


@dataclass(frozen=True, eq=False)
class RowAwareMaps(LabelMaps):
    """Maps of labels to log-odds, and a stage that adds what a row's other labels say.

    A cell's value depends on its whole row. Absent cells and excluded labels contribute nothing.

    Parameters
    ----------
    stage : RowStage
        Coefficients, partners, lifts and prevalences. With zero coefficients the values are
        exactly those of the maps alone.

    Examples
    --------
    Two labels that occur together: a sure one raises the other.

    >>> stage = RowStage(
    ...     0.0, 0.0, 1.0, np.array([[1], [0]], np.int32), np.ones((2, 1)), np.full(2, 0.1)
    ... )
    >>> maps = RowAwareMaps(
    ...     "probability", "log_odds", code=[1, 1], a=[1, 1], b=[0, 0], c=[0, 0],
    ...     start=[0, 0], stop=[0, 0], x=[], y=[], stage=stage,
    ... )
    >>> maps.transform_panel(Panel([[0.9, 0.2]])).round(3)
    array([[0.909, 0.357]])
    """

    stage: RowStage = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_stage(self.stage, self)

    def take(self, labels: LabelsLike) -> RowAwareMaps:
        """The maps of some labels, in this order; the others no longer support them."""
        at = np.asarray(labels, np.int64)
        return add_stage(super().take(at), self.stage.take(at))

    def values(self, panel: Panel) -> Floats:
        """Log-odds after the stage; -inf if excluded, NaN if absent."""
        return self.stage.adjust(*self.find_parts(panel))

    def find_parts(self, panel: Panel) -> tuple[Floats, Floats]:
        """Log-odds before the stage, and the support of every cell by its row."""
        probabilities = super().transform_panel(panel, np.float64)
        surprise = self.stage.find_surprise(probabilities, self.code == EXCLUDED)
        return super().values(panel), self.stage.find_support(surprise)

    def transform_panel(self, panel: Panel, dtype: Any = None) -> Array:
        """Calibrated probabilities, by default in the dtype of the scores.

        Excluded labels have 0, absent cells NaN.
        """
        if self.stage.changes_nothing:
            return super().transform_panel(panel, dtype)
        dtype = np.dtype(panel.dtype if dtype is None else dtype)
        values = self.values(panel)
        absent = np.isnan(values)
        probabilities = _find_probabilities(np.where(absent, 0.0, values), dtype)
        probabilities[absent] = np.nan
        return probabilities

    def rank_panel(self, panel: Panel, k: int) -> NDArray[np.int32]:
        """The k labels of highest value of every row; ties go to the lower label.

        -1 where fewer labels are present.
        """
        self._check_panel(panel)
        k = check_k(k, self.n_labels)
        if isinstance(panel, SparsePanel):
            panel = panel.checked()
            return rank_values(self.listed_values(panel), panel, k)
        return rank_values(self.values(panel), panel, k)

    def listed_values(self, panel: SparsePanel) -> Floats:
        """Values by which the listed cells of a checked panel are compared."""
        labels = panel.positions.indices
        log_odds = super().listed_values(panel)
        surprise = super().probabilities_at(panel.cells, labels) - self.stage.prevalence[labels]
        surprise[self.code[labels] == EXCLUDED] = 0.0
        rows = np.repeat(np.arange(panel.n_rows), panel.positions.counts) * self.n_labels
        places, padded = rows + labels, np.append(surprise, 0.0)
        support = np.zeros(labels.size)
        for partner, lift in zip(self.stage.partners.T, self.stage.lift.T, strict=True):
            partner_places = rows + partner[labels]
            at = np.searchsorted(places, partner_places)
            at[np.append(places, -1)[at] != partner_places] = labels.size  # no candidate
            support += lift[labels] * padded[at]
        return self.stage.adjust(log_odds, support)

    def probabilities_at(self, cells: Array, labels: NDArray[np.int32]) -> Floats:
        """Raises: without its row a cell has no value."""
        raise InvalidInput(_NEEDS_ROWS.format(what="a list of cells"))


def add_stage(maps: LabelMaps, stage: RowStage) -> RowAwareMaps:
    """These maps with a stage behind them."""
    arrays = {name: getattr(maps, name) for name in (*PER_LABEL, "x", "y")}
    return RowAwareMaps(maps.kind, maps.scale, **arrays, step=maps.step, stage=stage)


def _find_probabilities(log_odds: Floats, dtype: np.dtype[Any]) -> Array:
    """Probabilities of log-odds, by the same function as in maps."""
    n_labels = log_odds.shape[1]
    unused = dict.fromkeys((*PER_LABEL, "x", "y"), np.zeros(n_labels))
    arrays: Any = unused | {"code": np.full(n_labels, IDENTITY)}
    same = LabelMaps("margin", "log_odds", **arrays)
    largest = np.finfo(np.float64).max
    finite = np.clip(log_odds, -largest, largest)
    return same.transform_panel(Panel(finite, kind="margin"), dtype)


def relate_labels(together: Any, n_rows: float) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Partners, lifts and prevalences from how often labels occur together.

    Partners of a label are those whose lift, times the square root of their prevalence, is
    largest: of a partner that is hardly ever true a large lift is of little use.

    Parameters
    ----------
    together : scipy.sparse matrix of shape (n_labels, n_labels)
        Rows in which two labels are true; on the diagonal, those in which one is.
    n_rows : float
        Number of rows.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> partners, lift, _ = relate_labels(csr_matrix([[10, 10, 0], [10, 10, 0], [0, 0, 10]]), 20)
    >>> partners.tolist(), lift.round(2).tolist()
    ([[1, 2], [0, 2], [0, 1]], [[0.41, -0.69], [0.41, -0.69], [-0.69, -0.69]])
    """
    n_labels = together.shape[0]
    positives = np.asarray(together.diagonal(), np.float64)
    prevalence = positives / max(n_rows, 1.0)
    size = min(N_PARTNERS, n_labels - 1)
    partners = np.zeros((n_labels, size), np.int32)
    lifts = np.zeros((n_labels, size))
    step = max(1, CHUNK // n_labels)
    for first in range(0, n_labels if size else 0, step):
        part = slice(first, min(first + step, n_labels))
        expected = np.outer(positives[part], prevalence)
        observed = together[part].toarray()
        lift = np.log((observed + PSEUDO_COUNT) / (expected + PSEUDO_COUNT))
        weight = np.abs(lift) * np.sqrt(prevalence)
        labels = np.arange(part.start, part.stop)
        weight[labels - first, labels] = -1.0
        best = np.argpartition(-weight, size - 1, axis=1)[:, :size]
        best.sort(axis=1)
        partners[part] = best
        lifts[part] = np.take_along_axis(lift, best, axis=1)
    return partners, lifts, prevalence


def read_maps(maps: PlainMaps, stage: RowStage | None) -> LabelMaps:
    """Maps of arrays, with a stage where there is one."""
    plain = LabelMaps(**maps._asdict())
    return plain if stage is None else add_stage(plain, stage)


def reject_stage(maps: LabelMaps, what: str) -> None:
    """Raise if maps have a row-aware stage, for something that maps labels one by one."""
    if isinstance(maps, RowAwareMaps):
        raise InvalidInput(_NEEDS_ROWS.format(what=what))
