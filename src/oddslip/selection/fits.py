"""Fits that candidates share: each is made once per fold, however many candidates use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators import build_calibrator
from oddslip.calibrators.dead_labels import LabelRecord, find_prior
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.parts import build_maps
from oddslip.kernels.maps import IDENTITY, KNOTS
from oddslip.selection.candidates import Candidate
from oddslip.selection.fold_counts import FoldCounter
from oddslip.selection.folds import Folds, FoldSource
from oddslip.selection.positive_cells import PositiveCells
from oddslip.selection.shrinkages import Ingredients, Knots, gather_ingredients, shrink_maps
from oddslip.sources import Source

Fitted = tuple[LabelMaps, LabelRecord]
T = TypeVar("T")


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
    threads : int, optional
        Threads to use; all cores available unless told.
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
        threads: int | None = None,
    ) -> None:
        self.source, self.cells, self.folds = source, cells, folds
        self.dead, self.prior, self.threads = dead, prior, threads
        self.n_made: Counter[str] = Counter()
        self._made: dict[tuple[Any, ...], Any] = {}
        self._counts = counter.count(folds, n_folds, threads=threads)
        labels = cells.positives.indices
        fold_of = np.repeat(folds.astype(np.int64), cells.positives.counts)
        held = np.bincount(fold_of * source.n_labels + labels, minlength=n_folds * source.n_labels)
        self._held_positives = held.reshape(n_folds, source.n_labels)
        self._held_rows = np.bincount(folds, minlength=n_folds)

    def fit(self, candidate: Candidate, left_out: int | None) -> Fitted:
        """Maps of one candidate and what was done to each label; None leaves out no fold.

        Candidates whose maps are bound to agree get one and the same object.
        """
        form = candidate.form
        if form == "raw":
            return self._raw(left_out)
        if form == "pooled":
            return self._once(("pooled", left_out), self._fit_pooled)
        if form not in ("isotonic", "shrunk"):
            return self._once((form, left_out), self._fit_rows)
        record = self._record(candidate.tau, left_out)
        if form == "isotonic":
            # Where tau is reached by no more labels than a smaller tau, the maps are the same.
            key = ("isotonic with dead labels", left_out, record.n_dead)
            return self._keep(
                key,
                lambda: (
                    build_maps(
                        self.source.kind, "probability", record, knots=self._knots(left_out)
                    ),
                    record,
                ),
            )
        ingredients = self._once(("mixture", left_out), self._gather)
        return shrink_maps(self.source.kind, ingredients, record, candidate.strength), record

    def forget(self, left_out: int) -> None:
        """Let go of what was fitted without a fold."""
        self._made = {key: made for key, made in self._made.items() if key[1] != left_out}

    def _once(self, key: tuple[str, int | None], make: Callable[[str, int | None], T]) -> T:
        """What was made before under this key, else what is made now and counted as a fit."""
        if key not in self._made:
            self.n_made[key[0]] += 1
        return self._keep(key, lambda: make(*key))

    def _keep(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def _n_rows(self, left_out: int | None) -> int:
        held = 0 if left_out is None else self._held_rows[left_out]
        return int(self.source.n_rows - held)

    def _n_positives(self, left_out: int | None) -> NDArray[np.int64]:
        total: NDArray[np.int64] = self._held_positives.sum(axis=0)
        return total if left_out is None else total - self._held_positives[left_out]

    def _record(self, tau: int, left_out: int | None) -> LabelRecord:
        n_positives = self._n_positives(left_out)
        prior, origin = find_prior(self.prior, n_positives, self._n_rows(left_out))
        is_dead = n_positives <= tau
        action = np.where(is_dead, self.dead, "calibrated")
        return LabelRecord(tuple(action.tolist()), n_positives, prior, origin, is_dead)

    def _record_all(self, action: str, left_out: int | None) -> LabelRecord:
        """All labels are treated alike, and none is dead."""
        n_positives = self._n_positives(left_out)
        prior, origin = find_prior(self.prior, n_positives, self._n_rows(left_out))
        nobody = np.zeros(n_positives.size, np.bool_)
        return LabelRecord((action,) * n_positives.size, n_positives, prior, origin, nobody)

    def _raw(self, left_out: int | None) -> Fitted:
        def make() -> LabelMaps:
            code = np.full(self.source.n_labels, IDENTITY, np.int8)
            record = self._record_all("raw", None)
            # Margins are compared as margins, so that the order inside saturated cells survives.
            if self.source.kind == "margin":
                return build_maps("margin", "log_odds", record, code=code)
            return build_maps("probability", "probability", record, code=code)

        return self._keep(("raw maps", None), make), self._record_all("raw", left_out)

    def _knots(self, left_out: int | None) -> Knots:
        return self._once(("isotonic", left_out), self._fit_isotonic)

    def _fit_isotonic(self, _: str, left_out: int | None) -> Knots:
        return self._counts[False].without(left_out).isotonic_knots()

    def _fit_pooled(self, _: str, left_out: int | None) -> Fitted:
        indptr, x, y = self._counts[True].without(left_out).isotonic_knots()
        if not x.size:  # no positive at all: the fit is 0 everywhere
            indptr, x, y = np.array([0, 1]), np.zeros(1), np.zeros(1)
        n = self.source.n_labels
        zeros = np.zeros(n)
        maps = LabelMaps(
            self.source.kind, "probability", code=np.full(n, KNOTS, np.int8),
            a=zeros, b=zeros, c=zeros, start=np.zeros(n, np.int64),
            stop=np.full(n, indptr[1], np.int64), x=x, y=y,
        )  # fmt: skip
        return maps, self._record_all("shared", left_out)

    def _fit_rows(self, form: str, left_out: int | None) -> Fitted:
        """A calibrator that counts do not give: fitted on the rows themselves."""
        rows: Source = self.source
        if left_out is not None:
            rows = FoldSource(self.source, self.folds != left_out, self.cells.positives)
        calibrator = build_calibrator(form, dead=self.dead, prior=self.prior, kind=self.source.kind)
        return calibrator._map_labels(rows, self.threads)

    def _gather(self, _: str, left_out: int | None) -> Ingredients:
        offsets, _record = self._once(("offset", left_out), self._fit_rows)
        return gather_ingredients(self.source.kind, self._knots(left_out), offsets)
