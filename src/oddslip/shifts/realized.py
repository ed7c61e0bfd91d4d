"""The realized shift: how far each label's log-odds were moved, from scores and a prior alone.

One tally counts where the cells lie, another sums their sigmoids at trial shifts, and a bracketed
search moves all labels to their roots together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddslip.core.panel import Kind, Panel
from oddslip.core.results import label_frame, plain
from oddslip.core.tally import MergeableTally
from oddslip.core.weights import by_label, check_weights, per_label
from oddslip.errors import InvalidInput
from oddslip.sources import Source, open_source
from oddslip.tallies.logodds_histogram import LogOddsHistogram, edges_of, spread_parts

Floats = NDArray[np.float64]

TOLERANCE = 1e-11  # nat
TRUSTED_STEP = 0.5  # beyond this a cubic says little
CUBIC_STEPS = 4  # Newton steps on the cubic; each doubles the digits
CONVERGED = 1e-6  # of the last of these: what is left is about its square
_STARTS_AT = 1e-6  # as close as the histogram is worth solving
_MOST_PASSES = 100
SPREAD_BYTES = 128 * 1024 * 1024  # for the bins of the labels looked at together, on all threads


@dataclass(frozen=True, slots=True, eq=False)
class RealizedShift:
    """Realized shift b_j of every label, and whether its scores can tell it.

    Attributes
    ----------
    shift : numpy.ndarray
        b_j in nat. ``inf`` where the prior is 0, ``-inf`` where it is 1, NaN where every cell is
        saturated. Where only some are, they count as the margin 27.63 of the clip 1e-12 (margins
        as they are), and the shift is a number but not identified.
    identified : numpy.ndarray of bool
        The shift is finite and no cell of the label is saturated.
    n_saturated : numpy.ndarray
        Cells of each label that float32 would store as exactly 1.0.
    prior : numpy.ndarray
        The prior that was matched.
    n_rows : int
        Rows of the panel.
    n_passes : int
        How often the scores were read.
    label_names : tuple of str or None
        Names of the labels.
    """

    shift: Floats
    identified: NDArray[np.bool_]
    n_saturated: NDArray[np.int64]
    prior: Floats
    n_rows: int
    n_passes: int
    label_names: tuple[str, ...] | None = None

    def ratio(self, weights: ArrayLike) -> Floats:
        """Share of the intended shift that was realized, b_j / ln w_j; NaN where w_j is 1."""
        intended = np.log(check_weights(weights, self.shift.size, label_names=self.label_names))
        out = np.full_like(intended, np.nan)
        return np.divide(self.shift, intended, out=out, where=intended != 0)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers; None for what is not finite."""
        return plain({field.name: getattr(self, field.name) for field in fields(self)})  # type: ignore[no-any-return]

    def to_frame(self) -> Any:
        """A pandas frame with one line per label."""
        names = ("shift", "identified", "n_saturated", "prior")
        return label_frame({name: getattr(self, name) for name in names}, self.label_names)


def realized_shift(
    scores: Any, prior: ArrayLike, *, kind: Kind | None = None, threads: int | None = None
) -> RealizedShift:
    """Realized shift of every label by prevalence matching, to 1e-9 nat.

    The b with mean over rows of sigmoid(F_ij - b) equal to the prior of label j. No true labels
    are needed. A first pass counts log-odds in bins and finds every shift to a few thousandths;
    an exact pass or two finish. The answer does not depend on blocks beyond rounding.

    Parameters
    ----------
    scores : anything of shape (n_rows, n_labels)
        Weighted scores: an array, a panel, a source or a path.
    prior : array-like of shape (n_labels,)
        Prevalence of each label among the training rows.
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise.
    threads : int, optional
        Threads to use; all cores available unless told.

    Examples
    --------
    >>> realized = realized_shift([[0.5, 0.75], [0.5, 0.75]], [0.2, 0.5])
    >>> realized.shift.round(6).tolist()
    [1.386294, 1.098612]
    """
    source = open_source(scores, kind=kind)
    share = per_label("prior", by_label("prior", prior, source.label_names), source.n_labels)
    wrong = np.flatnonzero(~((share >= 0) & (share <= 1)))
    if wrong.size:
        name = source.label_names[wrong[0]] if source.label_names else str(wrong[0])
        raise InvalidInput(
            f"prior must be between 0 and 1, got {share[wrong[0]]:g} at label {name!r}."
        )
    solvable = (share > 0) & (share < 1)
    search, n_saturated, n_passes = _begin(source, np.where(solvable, share, 0.5), threads)
    totals = source.totals(threads) if source.partial else source.n_rows
    while not search.settled(TOLERANCE) and n_passes < _MOST_PASSES:
        sums = source.run(SigmoidTally(search.shift), threads=threads).result()
        search.advance(sums, np.maximum(totals, 1))
        n_passes += 1
    blank = n_saturated == totals
    shift = np.where(solvable, search.shift, np.where(share == 0, np.inf, -np.inf))
    shift[blank] = np.nan
    return RealizedShift(
        shift,
        solvable & (n_saturated == 0) & ~blank,
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

    def empty_like(self) -> Self:
        """An empty tally for another thread."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"shift": self.shift}

    def add(self, panel: Panel) -> None:
        """Take one block of rows. A block is summed apart, which keeps rounding small."""
        from oddslip.kernels.logits import sum_odds_sigmoids, sum_sigmoids

        sums = np.zeros_like(self.sums)

        def add_up(scores: NDArray[Any], sums: Floats) -> None:
            if panel.kind == "probability":
                sum_sigmoids(np.ascontiguousarray(scores), np.exp(self.shift), sums)
                return
            odds: NDArray[Any] = np.subtract(scores, self.shift, order="C", dtype=np.float64)
            # Beyond this e^x leaves float64; the sigmoid has long been 0 or 1.
            np.clip(odds, -700.0, 700.0, out=odds)
            sum_odds_sigmoids(np.exp(odds, out=odds), sums)

        if panel.absent is None:
            add_up(panel.scores, sums)
        else:
            scores, some, times = panel.filled()
            once = np.zeros_like(sums)
            add_up(scores, sums)
            add_up(some, once)
            sums -= once * times
        self.sums += sums

    def result(self) -> Floats:
        """The sums, one row each."""
        return self.sums


@dataclass(slots=True)
class Search:
    """Trial shifts, each with a bracket around its root and a bound on what is still wrong."""

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
    def joined(cls, parts: list[Search]) -> Search:
        """The searches of some labels after others as one."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def advance(self, sums: Floats, n_rows: Any) -> None:
        """Move every label by what the sums at its trial shift say."""
        inside, outside, slope, bend, twist = sums / n_rows
        # Of the mean and its complement, take the smaller: near 1 the mean has lost its digits.
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
            # Where the cubic has no root nearby, its steps jump about and can land anywhere.
            sure &= np.abs(last) <= CONVERGED
        step = np.where(sure, step, (self.low + self.high) / 2 - self.shift)
        step = np.where(excess == 0, 0.0, step)
        self.shift = self.shift + step
        size = np.minimum(np.abs(step), TRUSTED_STEP)
        near = np.exp(2 * size) * size**4 / 24 + last**2
        bound = np.where(sure, near, (self.high - self.low) / 2)
        self.error = np.where(excess == 0, 0.0, bound)

    def settled(self, tolerance: float) -> bool:
        """Whether every shift is this close to its root."""
        return bool((self.error <= tolerance).all())


def _begin(
    source: Source, prior: Floats, threads: int | None
) -> tuple[Search, NDArray[np.int64], int]:
    """The search after one look at the cells, their saturated cells, and the passes it took.

    The bins of a label take as much memory as hundreds of its cells. Where those of all labels
    would take more than `SPREAD_BYTES`, some labels are looked at after others.
    """
    searches, saturated = [], []
    for labels, part in spread_parts(source, SPREAD_BYTES, threads):
        spread = part.run(LogOddsHistogram(part.n_labels, part.kind), threads=threads)
        searches.append(_start(spread, prior[labels]))
        saturated.append(spread.n_saturated)
        del spread  # before the next is made
    return Search.joined(searches), np.concatenate(saturated), len(searches)


def _start(spread: LogOddsHistogram, prior: Floats) -> Search:
    """The search after matching the histogram: its root, and how far the true one can be."""
    _, below, above = spread.result()
    shift = match_counts(spread.counts, spread.kind, prior)
    # Moving every cell by at most x moves the root by at most x.
    return Search.around(prior, shift, shift - below - _STARTS_AT, shift + above + _STARTS_AT)


def match_counts(counts: NDArray[np.uint32], kind: Kind, prior: Floats) -> Floats:
    """Realized shifts of counted cells, as if each stood in the middle of its bin of log-odds."""
    from oddslip.kernels.logits import N_SUMS, sum_binned_sigmoids

    edges = edges_of(kind)
    centres = (edges[1:] + edges[:-1]) / 2
    wanted = np.log(prior) - np.log1p(-prior)
    search = Search.around(prior, -wanted, centres[0] - wanted, centres[-1] - wanted)
    for _ in range(_MOST_PASSES):
        sums = np.zeros((N_SUMS, prior.size))
        sum_binned_sigmoids(counts, centres, search.shift, sums)
        search.advance(sums, np.maximum(counts.sum(axis=1, dtype=np.int64), 1))
        if search.settled(_STARTS_AT):
            break
    return search.shift
