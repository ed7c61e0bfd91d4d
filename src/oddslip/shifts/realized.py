"""The realized shift: how far a weight moved a label, read from the weighted scores alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddslip.errors import InvalidInput
from oddslip.panels import Kind
from oddslip.results import label_frame, plain
from oddslip.shifts.roots import Search
from oddslip.shifts.spreads import SigmoidTally, SpreadTally
from oddslip.sources import open_source
from oddslip.weights import check_weights, per_label

TOLERANCE = 1e-11  # nat
_STARTS_AT = 1e-6  # as close as the histogram is worth solving
_MOST_PASSES = 100


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

    shift: NDArray[np.float64]
    identified: NDArray[np.bool_]
    n_saturated: NDArray[np.int64]
    prior: NDArray[np.float64]
    n_rows: int
    n_passes: int
    label_names: tuple[str, ...] | None = None

    def ratio(self, weights: ArrayLike) -> NDArray[np.float64]:
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
    >>> found = realized_shift([[0.5, 0.75], [0.5, 0.75]], [0.2, 0.5])
    >>> found.shift.round(6).tolist()
    [1.386294, 1.098612]
    """
    source = open_source(scores, kind=kind)
    share = per_label("prior", prior, source.n_labels)
    wrong = np.flatnonzero(~((share >= 0) & (share <= 1)))
    if wrong.size:
        name = source.label_names[wrong[0]] if source.label_names else str(wrong[0])
        raise InvalidInput(
            f"prior must be between 0 and 1, got {share[wrong[0]]:g} at label {name!r}."
        )
    spread = source.run(SpreadTally(source.n_labels, source.kind), threads=threads)
    solvable = (share > 0) & (share < 1)
    search = _start(spread, np.where(solvable, share, 0.5))
    n_passes = 1
    while not search.settled(TOLERANCE) and n_passes < _MOST_PASSES:
        sums = source.run(SigmoidTally(search.shift), threads=threads).result()
        search.advance(sums, source.n_rows)
        n_passes += 1
    blank = spread.n_saturated == source.n_rows
    shift = np.where(solvable, search.shift, np.where(share == 0, np.inf, -np.inf))
    shift[blank] = np.nan
    return RealizedShift(
        shift,
        solvable & (spread.n_saturated == 0),
        spread.n_saturated,
        share.copy(),
        source.n_rows,
        n_passes,
        source.label_names,
    )


def _start(spread: SpreadTally, prior: NDArray[np.float64]) -> Search:
    """The search after matching the histogram: its root, and how far the true one can be."""
    from oddslip.kernels.logits import N_SUMS, sum_binned_sigmoids

    centres, below, above = spread.result()
    wanted = np.log(prior) - np.log1p(-prior)
    search = Search.around(prior, -wanted, centres[0] - wanted, centres[-1] - wanted)
    for _ in range(_MOST_PASSES):
        sums = np.zeros((N_SUMS, prior.size))
        sum_binned_sigmoids(spread.counts, centres, search.shift, sums)
        search.advance(sums, spread.n_rows)
        if search.settled(_STARTS_AT):
            break
    # Moving every cell by at most x moves the root by at most x.
    return Search.around(
        prior, search.shift, search.shift - below - _STARTS_AT, search.shift + above + _STARTS_AT
    )
