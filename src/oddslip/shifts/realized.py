"""The realized shift of each label's log-odds, estimated from scores and a prior.

A histogram of the cells gives a bracket for each label; a bracketed Newton search on sums of
sigmoids then moves all labels to their roots together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddslip.core.panel import Kind, Panel
from oddslip.core.passes import Passes, run
from oddslip.core.results import label_frame, plain
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Array, Bools, Floats, Ints, JsonObject, ScoresLike
from oddslip.core.weights import by_label, check_weights, per_label
from oddslip.errors import InvalidInput
from oddslip.sources import Source
from oddslip.sources.open import open_rows
from oddslip.tallies.logodds_histogram import (
    LogOddsHistogram,
    collect_histogram,
    edges_of,
    spread_parts,
)

TOLERANCE = 1e-11  # nat
TRUSTED_STEP = 0.5  # nat; a local cubic is not accurate beyond this
CUBIC_STEPS = 4  # Newton steps on the cubic; each doubles the digits
CONVERGED = 1e-6  # size of the last Newton step; the remaining error is about its square
_HISTOGRAM_TOLERANCE = 1e-6  # nat; the bins are wider than this
_MAX_PASSES = 100
SPREAD_BYTES = 128 * 1024 * 1024  # for the bins of one pass, on all threads


@dataclass(frozen=True, slots=True, eq=False)
class RealizedShift:
    """Realized shift b_j of every label, and whether it is identified.

    Attributes
    ----------
    shift : numpy.ndarray
        b_j in nat. ``inf`` where the prior is 0, ``-inf`` where it is 1, NaN where every cell is
        saturated. If only some are, their probabilities are clipped at 1e-12 (margin 27.63;
        margins are not clipped), and the shift is finite but not identified.
    identified : numpy.ndarray of bool
        The shift is finite and no cell of the label is saturated.
    n_saturated : numpy.ndarray
        Cells of each label that float32 would store as exactly 1.0.
    prior : numpy.ndarray
        The prior that the shift matches.
    n_rows : int
        Rows of the panel.
    n_passes : int
        Passes over the scores.
    label_names : tuple of str or None
        Names of the labels.
    """

    shift: Floats
    identified: Bools
    n_saturated: Ints
    prior: Floats
    n_rows: int
    n_passes: int
    label_names: tuple[str, ...] | None = None

    def ratio(self, weights: ArrayLike) -> Floats:
        """Realized share of the intended shift, b_j / ln w_j.

        Parameters
        ----------
        weights : array-like of shape (n_labels,)
            Positive and finite.

        Returns
        -------
        numpy.ndarray of shape (n_labels,)
            NaN where w_j is 1.
        """
        intended = np.log(check_weights(weights, self.shift.size, label_names=self.label_names))
        out = np.full_like(intended, np.nan)
        return np.divide(self.shift, intended, out=out, where=intended != 0)

    def to_dict(self) -> JsonObject:
        """All fields as lists and numbers; None for values that are not finite."""
        return plain({field.name: getattr(self, field.name) for field in fields(self)})  # type: ignore[no-any-return]

    def to_frame(self) -> Any:
        """A pandas data frame with one row per label."""
        names = ("shift", "identified", "n_saturated", "prior")
        return label_frame({name: getattr(self, name) for name in names}, self.label_names)


def realized_shift(
    scores: ScoresLike, prior: ArrayLike, *, kind: Kind | None = None, threads: int | None = None
) -> RealizedShift:
    """Realized shift of every label by prevalence matching, to 1e-9 nat.

    The shift b_j solves: mean over rows of sigmoid(F_ij - b_j) = prior of label j. True labels are
    not needed. A first pass over a histogram of the log-odds finds every shift to a few
    thousandths of a nat; one or two exact passes finish.

    Parameters
    ----------
    scores : anything of shape (n_rows, n_labels)
        Weighted scores: an array, a panel, a source or a path.
    prior : array-like of shape (n_labels,)
        Prevalence of each label among the training rows.
    kind : {"probability", "margin"}, optional
        Scale of the scores; default: probability.
    threads : int, optional
        Threads to use; default: all available cores.

    Returns
    -------
    RealizedShift

    Examples
    --------
    >>> realized = realized_shift([[0.5, 0.75], [0.5, 0.75]], [0.2, 0.5])
    >>> realized.shift.round(6).tolist()
    [1.386294, 1.098612]
    """
    source = open_rows(scores, kind=kind, threads=threads)
    share = per_label("prior", by_label("prior", prior, source.label_names), source.n_labels)
    wrong = np.flatnonzero(~((share >= 0) & (share <= 1)))
    if wrong.size:
        name = source.label_names[wrong[0]] if source.label_names else str(wrong[0])
        raise InvalidInput(
            f"prior must be between 0 and 1, got {share[wrong[0]]:g} at label {name!r}."
        )
    return run(source, match_prior(source, share), what="matching prevalences")


def match_prior(source: Source, share: Floats) -> Passes[RealizedShift]:
    """Realized shifts of the labels of a source, given valid priors of them."""
    solvable = (share > 0) & (share < 1)
    search, n_saturated, n_passes = yield from _begin(source, np.where(solvable, share, 0.5))
    totals = source.totals() if source.partial else source.n_rows
    while not search.converged(TOLERANCE) and n_passes < _MAX_PASSES:
        sums = (yield SigmoidTally(search.shift)).result()
        search.advance(sums, np.maximum(totals, 1))
        n_passes += 1
    all_saturated = n_saturated == totals
    shift = np.where(solvable, search.shift, np.where(share == 0, np.inf, -np.inf))
    shift[all_saturated] = np.nan
    return RealizedShift(
        shift,
        solvable & (n_saturated == 0) & ~all_saturated,
        n_saturated,
        share.copy(),
        source.n_rows,
        n_passes,
        source.label_names,
    )


class SigmoidTally(MergeableTally):
    """Per label, the sums of sigmoid(F - shift), of its complement and its derivatives."""

    JOINED: ClassVar = {"sums": "add"}

    blocks_apart = 1

    def __init__(self, shift: Floats) -> None:
        from oddslip.kernels.logits import N_SUMS

        self.shift = shift
        self.sums = np.zeros((N_SUMS, shift.size))

    def add(self, panel: Panel) -> None:
        """Add one block of rows. Each block is summed separately, which keeps rounding small."""
        from oddslip.kernels.logits import sum_odds_sigmoids, sum_sigmoids

        sums = np.zeros_like(self.sums)

        def sum_block(scores: Array, sums: Floats) -> None:
            if panel.kind == "probability":
                sum_sigmoids(np.ascontiguousarray(scores), np.exp(self.shift), sums)
                return
            odds: Array = np.subtract(scores, self.shift, order="C", dtype=np.float64)
            # Beyond this e^x overflows float64, and the sigmoid is 0 or 1.
            np.clip(odds, -700.0, 700.0, out=odds)
            sum_odds_sigmoids(np.exp(odds, out=odds), sums)

        if panel.absent is None:
            sum_block(panel.scores, sums)
        else:
            scores, placeholder, n_absent = panel.filled()
            placeholder_sums = np.zeros_like(sums)
            sum_block(scores, sums)
            sum_block(placeholder, placeholder_sums)
            sums -= placeholder_sums * n_absent
        self.sums += sums

    def result(self) -> Floats:
        """The sums, one row each."""
        return self.sums


@dataclass(slots=True)
class Search:
    """Trial shifts, each with a bracket around its root and a bound on its error."""

    prior: Floats
    shift: Floats
    low: Floats
    high: Floats
    error: Floats

    @classmethod
    def around(cls, prior: Floats, shift: Floats, low: Floats, high: Floats) -> Search:
        """Start at these shifts, with the roots between low and high."""
        return cls(prior, np.clip(shift, low, high), low, high, high - low)

    @classmethod
    def concatenate(cls, parts: list[Search]) -> Search:
        """One search over the labels of all parts, in order."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def advance(self, sums: Floats, n_rows: Any) -> None:
        """Move every trial shift by the sums of sigmoids at it."""
        inside, outside, slope, bend, twist = sums / n_rows
        # Use the smaller of the mean and its complement: near 1 the mean has lost digits.
        excess = np.where(self.prior <= 0.5, inside - self.prior, (1 - self.prior) - outside)
        self.low = np.where(excess > 0, self.shift, self.low)
        self.high = np.where(excess < 0, self.shift, self.high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = np.clip(excess / slope, -TRUSTED_STEP, TRUSTED_STEP)
            for _ in range(CUBIC_STEPS):
                value = excess - step * (slope - step * (bend / 2 - step * twist / 6))
                fall = slope - step * (bend - step * twist / 2)
                step = step + (last := value / fall)
            trial = self.shift + step
            sure = (np.abs(step) <= TRUSTED_STEP) & (trial >= self.low) & (trial <= self.high)
            # Without a root nearby, Newton steps on the cubic do not converge.
            sure &= np.abs(last) <= CONVERGED
        step = np.where(sure, step, (self.low + self.high) / 2 - self.shift)
        step = np.where(excess == 0, 0.0, step)
        self.shift = self.shift + step
        size = np.minimum(np.abs(step), TRUSTED_STEP)
        near = np.exp(2 * size) * size**4 / 24 + np.where(sure, last, 0.0) ** 2
        bound = np.where(sure, near, (self.high - self.low) / 2)
        self.error = np.where(excess == 0, 0.0, bound)

    def converged(self, tolerance: float) -> bool:
        """Whether every shift is within the tolerance of its root."""
        return bool((self.error <= tolerance).all())


def _begin(source: Source, prior: Floats) -> Passes[tuple[Search, Ints, int]]:
    """The search after the histogram, the saturated cells of each label, and the passes used.

    The bins of a label take as much memory as hundreds of its cells. Where those of all labels
    would take more than `SPREAD_BYTES`, labels are processed in parts.
    """
    searches, saturated = [], []
    for labels in spread_parts(source, SPREAD_BYTES):
        histogram = yield from collect_histogram(source, labels)
        searches.append(_start(histogram, prior[labels]))
        saturated.append(histogram.n_saturated)
        del histogram  # free its memory before the next part
    return Search.concatenate(searches), np.concatenate(saturated), len(searches)


def _start(histogram: LogOddsHistogram, prior: Floats) -> Search:
    """The search after matching the histogram: its root, bracketed by the width of the bins."""
    _, below, above = histogram.result()
    shift = match_counts(histogram.counts, histogram.kind, prior)
    slack = _HISTOGRAM_TOLERANCE
    # Moving every cell by at most x moves the root by at most x.
    return Search.around(prior, shift, shift - below - slack, shift + above + slack)


def match_counts(counts: NDArray[np.uint32], kind: Kind, prior: Floats) -> Floats:
    """Realized shifts of binned cells, with each cell at the centre of its bin of log-odds."""
    from oddslip.kernels.logits import N_SUMS, sum_binned_sigmoids

    edges = edges_of(kind)
    centres = (edges[1:] + edges[:-1]) / 2
    prior_logit = np.log(prior) - np.log1p(-prior)
    search = Search.around(prior, -prior_logit, centres[0] - prior_logit, centres[-1] - prior_logit)
    for _ in range(_MAX_PASSES):
        sums = np.zeros((N_SUMS, prior.size))
        sum_binned_sigmoids(counts, centres, search.shift, sums)
        search.advance(sums, np.maximum(counts.sum(axis=1, dtype=np.int64), 1))
        if search.converged(_HISTOGRAM_TOLERANCE):
            break
    return search.shift
