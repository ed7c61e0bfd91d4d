"""Fits of the candidates with and without a fold, what they share fitted once.

Shrunk maps are made here: isotonic maps shrunk towards offset maps, by how many positives a label
has. An isotonic map of few positives is coarse: it sends most cells to exactly 0, and equal values
rank by label index alone. An offset map has one number per label and keeps the order of the
scores. Mixing them is empirical Bayes with a prior worth ``strength`` positives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.special import expit, logit

from oddslip.calibrators import build_calibrator
from oddslip.calibrators.fixed import build_inversion_maps, build_raw_maps
from oddslip.calibrators.hierarchical import MANY_LABELS, STRENGTH, mix_maps
from oddslip.calibrators.logistic.moments import Summary
from oddslip.calibrators.policy import (
    DeadLabelPolicy,
    Fitted,
    build_maps,
    build_shared_maps,
    record_alike,
    record_policy,
)
from oddslip.core.labels import LabelTotals
from oddslip.core.panel import Kind
from oddslip.core.passes import Passes, run, share_passes
from oddslip.core.threads import release_memory
from oddslip.core.types import Floats, Ints
from oddslip.io.progress import progress_bar
from oddslip.kernels.maps import AFFINE, CLIP
from oddslip.repairs.label_record import LabelRecord
from oddslip.repairs.maps import LabelMaps
from oddslip.selection.candidates import Candidate
from oddslip.selection.fold_counts import FoldedPositives, FoldStatistics, summaries_bytes
from oddslip.sources import Source
from oddslip.tallies.cell_counts import CellCounts, Knots

MapsByFold = list[list[LabelMaps]]  # [fold][candidate]
T = TypeVar("T")

# Scores at which a shrunk map has knots besides the isotonic ones: every quarter of a nat, which
# keeps the chords of an offset map within 2% of it.
_CENTRE = np.linspace(-20.0, 20.0, 161)
GRIDS: dict[Kind, Floats] = {
    "margin": np.concatenate([np.arange(-40.0, -20.0), _CENTRE, np.arange(21.0, 41.0)]),
    "probability": np.concatenate([[0.0], expit(_CENTRE), [1.0]]),
}


# Forms that are mixed: isotonic maps, and the maps of the form named.
MIXED = {"shrunk": "offset", "hierarchical_isotonic": "hierarchical"}
COUNTED = ("isotonic", "pooled")
AS_THEY_ARE = ("raw", "inversion")
# Memory that summaries of folds may take: this much, or so many times that of the scores.
MIN_BYTES, MAX_TIMES = 64 * 1024 * 1024, 8


def summary_needed(candidates: Sequence[Candidate]) -> bool:
    """Whether any of these candidates is fitted on a summary, itself or what it mixes."""
    return any(candidate.form not in (*AS_THEY_ARE, *COUNTED) for candidate in candidates)


def affordable(candidates: Sequence[Candidate], source: Source) -> tuple[Candidate, ...]:
    """Those candidates whose summaries stay in proportion to the scores.

    Of a few rows of very many labels a summary is far larger than the scores themselves. There
    only what is counted is tried: smooth maps of labels that hardly have a positive say little.
    """
    scores = source.n_rows * source.n_labels * np.dtype(source.dtype).itemsize
    if summaries_bytes(source.n_labels) <= max(MIN_BYTES, MAX_TIMES * scores):
        return tuple(candidates)
    return tuple(each for each in candidates if not summary_needed((each,)))


def counts_needed(candidates: Sequence[Candidate]) -> list[bool]:
    """Which counts these candidates are fitted from: per label (False), pooled (True)."""
    forms = {candidate.form for candidate in candidates}
    return [False] * bool(forms & {"isotonic", *MIXED}) + [True] * ("pooled" in forms)


class FoldFits:
    """The maps of candidates, fitted on all rows but those of one fold, or on all rows.

    Parameters
    ----------
    source : Source
    positives : FoldedPositives
        Of all its rows.
    repeat : int
        Which of the fold assignments.
    statistics : FoldStatistics
        The counts that the candidates need.
    policy : DeadLabelPolicy
        Whose ``tau`` is that of each candidate.
    near : mapping, optional
        Fits of nearly the same rows to start from, by form.
    """

    def __init__(
        self,
        source: Source,
        positives: FoldedPositives,
        repeat: int,
        statistics: FoldStatistics,
        policy: DeadLabelPolicy,
        near: Mapping[str, Any] | None = None,
    ) -> None:
        self.source, self.policy = source, policy
        self.n_fits: Counter[str] = Counter()
        self._cache: dict[tuple[Any, ...], Any] = {}
        self.near: dict[str, Any] = dict(near or {})
        self._statistics = statistics
        self._totals = totals_by_fold(source, positives, repeat)

    def fit(self, candidate: Candidate, left_out: int | None) -> Fitted:
        """Maps of one candidate and what was done to each label; None leaves out no fold.

        Candidates whose maps are bound to agree get one and the same object.
        """
        form = candidate.form
        if form == "raw":
            return self._raw(left_out)
        if form == "inversion":
            return self._keep((form, left_out), lambda: self._invert(left_out))
        if form == "pooled":
            return self._once(("pooled", left_out), self._fit_pooled)
        if form == "halfway":
            return self._keep((form, left_out), lambda: self._go_halfway(left_out))
        if form == "hierarchical_isotonic":
            return self._keep((form, left_out), lambda: self._mix(left_out))
        if form not in ("isotonic", "shrunk"):
            return self._once((form, left_out), self._fit_smooth)
        record = self.record(candidate.tau, left_out)
        if form == "isotonic":
            # Where tau is reached by no more labels than a smaller tau, the maps are the same.
            key = ("isotonic with dead labels", left_out, record.n_dead)
            return self._keep(key, lambda: self._fit_isotonic(record, left_out))
        ingredients = self._once(("mixture", left_out), self._gather)
        return shrink_maps(self.source.kind, ingredients, record, candidate.strength), record

    def fit_together(self, candidates: Sequence[Candidate]) -> Passes[list[Fitted]]:
        """Maps of candidates, of all rows; those that read the rows again read them together."""
        forms = {MIXED.get(each.form, each.form) for each in candidates}
        forms = {"hierarchical" if form == "halfway" else form for form in forms}
        smooth = sorted(forms - {*AS_THEY_ARE, *COUNTED})
        self._summary(None)  # which all of them start from
        fits = yield from share_passes([self._fit_all_rows(form) for form in smooth])
        for form, fitted in zip(smooth, fits, strict=True):
            self._once((form, None), lambda *_, fit=fitted: fit)
        return [self.fit(each, None) for each in candidates]

    def counts(self, left_out: int | None) -> CellCounts:
        """Cells of every label between its positives, of all rows but those of one fold."""
        return self._statistics.counts[False].without(left_out)

    def release(self) -> None:
        """Let go of what folds come to, which is large: nothing more can be fitted."""
        self._cache, self._statistics = {}, FoldStatistics({}, [])
        release_memory()

    def forget(self, left_out: int) -> None:
        """Let go of what was fitted without a fold."""
        self._cache = {key: fit for key, fit in self._cache.items() if key[1] != left_out}
        release_memory()

    def _once(self, key: tuple[str, int | None], make: Callable[[str, int | None], T]) -> T:
        """What was fitted before under this key, else what is fitted now, and counted."""
        if key not in self._cache:
            self.n_fits[key[0]] += 1
        return self._keep(key, lambda: make(*key))

    def _keep(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if key not in self._cache:
            self._cache[key] = make()
        value: T = self._cache[key]
        return value

    def _totals_without(self, left_out: int | None) -> LabelTotals:
        """How often labels are true in all rows but those of one fold."""
        parts = [totals for fold, totals in enumerate(self._totals) if fold != left_out]
        return LabelTotals(
            np.sum([totals.n_positives for totals in parts], axis=0),
            np.sum([totals.positives for totals in parts], axis=0),
            sum(totals.total for totals in parts),
        )

    def record(self, tau: int, left_out: int | None) -> LabelRecord:
        """What becomes of each label without a fold."""
        return record_policy(self._totals_without(left_out), replace(self.policy, tau=tau))

    def _record_alike(self, action: str, left_out: int | None) -> LabelRecord:
        return record_alike(action, self._totals_without(left_out), self.policy.prior)

    def _raw(self, left_out: int | None) -> Fitted:
        def make() -> LabelMaps:
            return build_raw_maps(self.source.kind, self._record_alike("raw", None))

        return self._keep(("raw maps", None), make), self._record_alike("raw", left_out)

    def _invert(self, left_out: int | None) -> Fitted:
        """The inversion is not fitted; a named weight is resolved on the rows that count."""
        record = self._record_alike("inverted", left_out)
        totals, source = self._totals_without(left_out), self.source
        weights, names = self.policy.weights, source.label_names
        return build_inversion_maps(source.kind, record, weights, totals, names), record

    def _knots(self, left_out: int | None) -> Knots:
        return self._once(("isotonic", left_out), self._find_knots)

    def _find_knots(self, _: str, left_out: int | None) -> Knots:
        return self._statistics.counts[False].knots(left_out)

    def _fit_isotonic(self, record: LabelRecord, left_out: int | None) -> Fitted:
        knots = self._knots(left_out)
        return build_maps(self.source.kind, "probability", record, knots=knots), record

    def _fit_pooled(self, _: str, left_out: int | None) -> Fitted:
        knots = self._statistics.counts[True].knots(left_out)
        if not knots.x.size:  # no positive at all: the fit is 0 everywhere
            knots = Knots(np.array([0, 1]), np.zeros(1), np.zeros(1))
        maps = build_shared_maps(self.source.kind, self.source.n_labels, knots)
        return maps, self._record_alike("shared", left_out)

    def _summary(self, left_out: int | None) -> Summary:
        return self._keep(("summary", left_out), lambda: self._statistics.summary(left_out))

    def _go_halfway(self, left_out: int | None) -> Fitted:
        """The mean of raw and hierarchical on the log-odds: half the slope's and shift's way."""
        whole, record = self._once(("hierarchical", left_out), self._fit_smooth)
        return replace(whole, a=(1.0 + whole.a) / 2.0, b=whole.b / 2.0), record

    def _mix(self, left_out: int | None) -> Fitted:
        parents, record = self._once(("hierarchical", left_out), self._fit_smooth)
        knots = self._knots(left_out)
        return mix_maps(self.source.kind, knots, parents, record, STRENGTH), record

    def _fit_smooth(self, form: str, left_out: int | None) -> Fitted:
        """On a summary of the other folds, from where the last fold ended.

        Of all rows the summary is known too; what has an exact optimum reads them once from there.
        """
        if left_out is None:
            return run(self.source, self._fit_all_rows(form), what="fitting maps")
        calibrator = self._calibrator(form)
        maps, record, fit = calibrator._map_summary(self._summary(left_out), self.near.get(form))
        self.near[form] = fit
        return maps, record

    def _fit_all_rows(self, form: str) -> Passes[Fitted]:
        fit: Passes[Fitted] = self._calibrator(form)._map_labels(self.source, self._summary(None))
        return fit

    def _calibrator(self, form: str) -> Any:
        policy = self.policy
        return build_calibrator(
            form,
            dead=policy.dead,
            prior=policy.prior,
            weights=policy.weights,
            kind=self.source.kind,
        )

    def _gather(self, _: str, left_out: int | None) -> Ingredients:
        offsets, _record = self._once(("offset", left_out), self._fit_smooth)
        return gather_ingredients(self.source.kind, self._knots(left_out), offsets)


def totals_by_fold(source: Source, positives: FoldedPositives, repeat: int) -> list[LabelTotals]:
    """How often each label is true in the rows of each fold."""
    n_labels, weight = source.n_labels, source.sample_weight
    totals = []
    for fold, total in enumerate(positives.totals[repeat]):
        inside = np.flatnonzero(positives.folds[:, repeat] == fold)
        labels = positives.labels[inside]
        counts = np.bincount(labels, minlength=n_labels)
        weights = counts.astype(np.float64)
        if weight is not None and positives.units is not None:
            units = positives.units[inside].astype(np.float64)
            weights = weight.floats(np.bincount(labels, units, minlength=n_labels))
        totals.append(LabelTotals(counts, weights, total))
    return totals


class Ingredients(NamedTuple):
    """Isotonic and offset values of every label at the knots of both."""

    indptr: Ints
    x: Floats
    isotonic: Floats
    offset: Floats


def gather_ingredients(kind: Kind, knots: Knots, offsets: LabelMaps) -> Ingredients:
    """Both maps of every label that has both, at common scores."""
    indptr, x, y = knots
    grid = GRIDS[kind]
    counts = np.zeros(indptr.size, np.int64)
    parts: list[tuple[Floats, ...]] = []
    for label in np.flatnonzero(np.diff(indptr)).tolist():
        part = slice(indptr[label], indptr[label + 1])
        at = np.union1d(grid, x[part])
        smooth = np.full(at.size, offsets.a[label])  # a label without negatives: a constant
        if offsets.code[label] == AFFINE:
            log_odds = at if kind == "margin" else logit(np.clip(at, CLIP, 1 - CLIP))
            smooth = expit(log_odds + offsets.b[label])
        # Rounding may turn a last digit down, and maps must not descend.
        stairs = np.maximum.accumulate(np.interp(at, x[part], y[part]))
        parts.append((at, stairs, np.maximum.accumulate(smooth)))
        counts[label + 1] = at.size
    columns = [np.concatenate([np.empty(0), *(part[i] for part in parts)]) for i in range(3)]
    return Ingredients(np.cumsum(counts), *columns)


def shrink_maps(
    kind: Kind, ingredients: Ingredients, record: LabelRecord, strength: int
) -> LabelMaps:
    """Maps that are n / (n + strength) isotonic, n being the label's positives."""
    indptr, x, isotonic, offset = ingredients
    n = np.repeat(record.n_positives, np.diff(indptr)).astype(np.float64)
    share = n / (n + strength)
    y = np.minimum(share * isotonic + (1.0 - share) * offset, 1.0)
    return build_maps(kind, "probability", record, knots=Knots(indptr, x, y))


def fit_folds(
    source: Source,
    positives: FoldedPositives,
    statistics: Mapping[int, FoldStatistics],
    candidates: Sequence[Candidate],
    policy: DeadLabelPolicy,
    near: Mapping[str, Any] | None = None,
) -> tuple[list[MapsByFold], FoldFits, Counter[str]]:
    """Maps of every candidate without each fold, by repeat; the last repeat's fits; how many.

    ``statistics`` are those of each repeat by its number. What a fold alone needed is released
    before the next. With many labels a repeat starts from the fits of another, at first ``near``.
    """
    n_fits: Counter[str] = Counter()
    many = source.n_labels >= MANY_LABELS
    maps: list[MapsByFold] = []
    n_folds = positives.n_rows.shape[1]
    with progress_bar("fitting maps", len(statistics) * n_folds) as advance:
        for repeat, fold_statistics in statistics.items():
            fits = FoldFits(
                source, positives, repeat, fold_statistics, policy, near if many else None
            )
            maps.append([])
            for fold in range(n_folds):
                maps[-1].append([fits.fit(each, fold)[0] for each in candidates])
                fits.forget(fold)
                advance(1)
            n_fits += fits.n_fits
            near = fits.near
    return maps, fits, n_fits
