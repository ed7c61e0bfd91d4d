"""Fits that candidates share: each is made once per fold, however many candidates use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.base import Calibrator
from oddslip.calibrators.dead_labels import LabelRecord, find_prior
from oddslip.calibrators.logistics import Beta, Offset, Platt, Temperature
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.parts import build_maps
from oddslip.calibrators.simple import Raw
from oddslip.kernels.maps import KNOTS
from oddslip.selection.candidates import LOGISTIC, Candidate
from oddslip.selection.fold_counts import FoldCounter, FoldCounts, PositiveCells
from oddslip.selection.folds import Folds, FoldSource
from oddslip.selection.shrinkages import Ingredients, Knots, gather_ingredients, shrink_maps
from oddslip.sources import Source

Fitted = tuple[LabelMaps, LabelRecord]
T = TypeVar("T")
_CALIBRATORS: dict[str, Any] = {
    "temperature": Temperature, "offset": Offset, "platt": Platt, "beta": Beta,
}  # fmt: skip


def counts_needed(candidates: Sequence[Candidate]) -> list[bool]:
    """Which counts these candidates are fitted from: per label (False), pooled (True)."""
    forms = {candidate.form for candidate in candidates}
    return [False] * bool(forms & {"isotonic", "shrunk"}) + [True] * ("pooled" in forms)


class FoldFits:
    """The maps of candidates, fitted on all rows but those of one fold, or on all rows.

    Parameters
    ----------
    source : Source
    cells : PositiveCells
        Of all its rows.
    counter : FoldCounter
        With the counts that the candidates need.
    folds : ndarray of shape (n_rows,)
    n_folds : int
    dead : {"prior", "identity", "exclude"}
    prior : array-like, optional
        Of each label; else the smoothed prevalence of the rows fitted on.
    """

    def __init__(
        self,
        source: Source,
        cells: PositiveCells,
        counter: FoldCounter,
        folds: Folds,
        n_folds: int,
        *,
        dead: str,
        prior: Any,
    ) -> None:
        self.source, self.cells, self.folds, self.n_folds = source, cells, folds, n_folds
        self.dead, self.prior = dead, prior
        self.n_made: Counter[str] = Counter()
        self._kept: dict[tuple[Any, ...], Any] = {}
        counts = counter.count(folds, n_folds)
        self._counts = {each.cells[0].n_labels == 1 and at == len(counts) - 1: each
                        for at, each in enumerate(counts)}

    def fit(self, candidate: Candidate, left_out: int | None) -> Fitted:
        """Maps of one candidate, and what was done to each label; None leaves out no fold.

        Candidates whose maps are bound to agree get the same maps object.
        """
        if candidate.form == "raw":
            return self._once(("raw",), lambda: Raw(kind=self.source.kind)._map_labels(self._rows(None)))
        raise NotImplementedError
