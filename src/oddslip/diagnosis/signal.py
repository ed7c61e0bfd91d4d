"""What scores say within a label: whether its true rows stand above its others, and the twin's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from oddslip.core.panel import Panel
from oddslip.core.results import plain
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Array, Bools, Floats, Ints, JsonObject
from oddslip.diagnosis.thresholds import (
    FAINT,
    MOVED_CORRELATION,
    MOVED_LEAD,
    MOVED_SHARE,
    SHUFFLED_Z,
    UNLIKE,
)
from oddslip.metrics.evaluation import Estimate
from oddslip.tallies.cell_counts import CellCounts, PositiveKeys

Standing = Literal["there", "none", "reversed", "unsure", "unknown"]

NORMAL = 1.959963984540054  # standard errors that hold the middle 95%
COMPARED_CELLS = 2**21  # cells of either arm that are ranked to hold twin and arm together
MAX_SOUGHT = 256  # labels whose column is looked for among all columns of the twin
MIN_ROWS = 3  # fewer rows have no rank correlation worth the name


# ------------------------------------------------------------------------------- area under the ROC


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """Within-label AUC of the evaluated rows: nothing that a per-label map can add.

    Attributes
    ----------
    areas : numpy.ndarray
        AUC of each label; NaN where it is true for no row or for all.
    mean : Estimate
        Mean over the labels that have one, with its interval.
    """

    areas: Floats
    mean: Estimate

    @property
    def standing(self) -> Standing:
        """Clearly above chance, clearly below it, about chance, or unknown."""
        if not np.isfinite(self.mean.value):
            return "unknown"
        if self.mean.low > 0.5:
            return "there"
        if self.mean.high < 0.5:
            return "reversed"
        return "none" if self.mean.high < FAINT else "unsure"

    @property
    def absent(self) -> bool:
        """Whether there is nothing that a repair could bring to bear."""
        return self.standing in ("none", "reversed")

    def to_dict(self) -> JsonObject:
        """The summary, in built-in types; areas are in the table of labels."""
        n_labels = int(np.isfinite(self.areas).sum())
        mean = self.mean.to_dict()
        return plain({"auc": mean, "n_labels": n_labels, "standing": self.standing})  # type: ignore[no-any-return]


def parts_of_positives(counts: CellCounts) -> Floats:
    """For each distinct key, the part of a positive there in the error of the mean AUC."""
    areas = counts.auc()
    valid = np.isfinite(areas)
    if not valid.any():
        return np.zeros(counts.keys.size)
    share = np.where(valid, 1.0 / np.maximum(1, counts.n_positives), 0.0) / valid.sum()
    label_of = np.repeat(np.arange(counts.n_labels), np.diff(counts.indptr))
    return np.asarray((place_positives(counts) - areas[valid].mean()) * share[label_of])


def signal_of(counts: CellCounts, squares: float) -> Signal:
    """AUC of every label and of their mean, from counts that the ceiling is fitted on too.

    The interval takes rows as they come, true for several labels or not: the part of a positive
    is its place among the negatives less the mean, and parts of one row are summed. What the
    draw of the negatives adds is bounded from above, as if all labels erred together.

    Parameters
    ----------
    counts : CellCounts
        Of all rows.
    squares : float
        Of the sums over rows: see `SignalErrorTally`.
    """
    areas = counts.auc()
    valid = np.isfinite(areas)
    if not valid.any():
        nan = float("nan")
        return Signal(areas, Estimate(nan, nan, nan))
    mean = float(areas[valid].mean())
    spread = areas[valid] * (1.0 - areas[valid]) / (3.0 * counts.n_negatives[valid])
    reach = NORMAL * float(np.sqrt(squares + np.sqrt(spread).mean() ** 2))
    return Signal(areas, Estimate(mean, max(0.0, mean - reach), min(1.0, mean + reach)))


def place_positives(counts: CellCounts) -> Floats:
    """For each distinct key of a positive, the share of its label's negatives that lie below.

    Those at the key count one half, so the mean over a label's positives is its AUC.

    Examples
    --------
    >>> from oddslip.core.passes import run
    >>> from oddslip.tallies.cell_counts import count_cells
    >>> from oddslip.sources import open_source
    >>> source = open_source([[0.2], [0.3], [0.7]], [[0], [1], [0]])
    >>> place_positives(run(source, count_cells(source)))
    array([0.5])
    """
    label_of = np.repeat(np.arange(counts.n_labels), np.diff(counts.indptr))
    between = counts.negatives_between[np.arange(counts.keys.size) + label_of]
    passed = np.cumsum(between + counts.negatives_at)
    before = np.concatenate([[0], passed])[counts.indptr[:-1]]
    below = passed - before[label_of] - counts.negatives_at / 2
    return np.asarray(below / np.maximum(1, counts.n_negatives)[label_of])


class SignalErrorTally(MergeableTally):
    """The parts of a row's positives, summed over the row and squared: see `signal_of`.

    Parameters
    ----------
    indptr, keys : ndarray
        Distinct keys of the positives of every label.
    parts : ndarray
        The part of a positive at each.
    """

    JOINED: ClassVar = {"squares": "add"}
    blocks_apart = 1

    def __init__(self, indptr: Ints, keys: Array, parts: Floats) -> None:
        self.indptr, self.keys, self.parts = indptr, keys, parts
        self.squares = np.zeros(1)

    def add(self, panel: Panel) -> None:
        """Take the positives of one block."""
        positives = PositiveKeys(panel.n_labels, panel.dtype)
        positives.add(panel)
        counts = panel.positives().counts
        rows = np.repeat(np.arange(panel.n_rows), counts)
        parts = self.parts[self._find(positives._labels[0], positives._keys[0])]
        self.squares += (np.bincount(rows, parts, minlength=panel.n_rows) ** 2).sum()

    def _find(self, labels: NDArray[np.int32], keys: Array) -> Ints:
        """Places of the keys, each among those of its label: one binary search for all."""
        low, high = self.indptr[labels], self.indptr[labels + 1] - 1
        while (low < high).any():
            middle = (low + high) // 2
            above = self.keys[middle] < keys
            low, high = np.where(above, middle + 1, low), np.where(above, high, middle)
        return low

    def result(self) -> float:
        """The sum of squares."""
        return float(self.squares[0])


# ----------------------------------------------------------------------------------- twin and model


@dataclass(frozen=True, slots=True, eq=False)
class TwinAgreement:
    """Rank correlation of model and twin within labels, of as many rows as were compared.

    ``mean`` is over ``n_labels`` labels in which neither is constant; None without any. Its
    interval reaches as far to both sides as the correlation of shuffled rows would. ``n_moved`` of
    ``n_sought`` labels correlate far better with the twin's column of another label, and no other
    label does so better; with these columns they correlate by ``moved_mean``.
    """

    mean: Estimate | None
    n_labels: int
    n_rows: int
    identical: bool = False  # every cell compared
    n_moved: int = 0
    n_sought: int = 0
    moved_mean: float = 0.0

    @property
    def columns_moved(self) -> bool:
        """Whether the columns of the twin seem to be in another order."""
        enough = self.n_moved >= max(2, MOVED_SHARE * self.n_sought)
        return enough and self.moved_mean >= MOVED_CORRELATION

    @property
    def follows(self) -> bool:
        """Whether the rows and columns of the twin may be those of the model.

        Saturated and coarse scores leave little of the correlation, so it need not be high: it
        has to be above that of shuffled rows.
        """
        if self.columns_moved:
            return False
        if self.mean is None or self.mean.high >= UNLIKE:
            return True
        chance = (self.mean.high - self.mean.value) / NORMAL
        return self.mean.value > SHUFFLED_Z * chance

    def to_dict(self) -> JsonObject:
        """Built-in types only."""
        mean = None if self.mean is None else self.mean.to_dict()
        return {
            "rank_correlation": mean,
            "n_labels": self.n_labels,
            "n_rows": self.n_rows,
            "identical": self.identical,
            "n_moved": self.n_moved,
            "n_sought": self.n_sought,
        }


def find_likeness(samples: tuple[Array, Array] | None, seed: int) -> TwinAgreement | None:
    """How far the twin orders the rows of a label as the model does; None without a twin.

    ``samples`` are the same rows of both, of which as many are drawn as need be; NaN is absent.
    A label is compared over the rows that have it in both.
    """
    if samples is None:
        return None
    n_sampled, n_labels = samples[0].shape
    n_rows = min(n_sampled, max(MIN_ROWS, COMPARED_CELLS // n_labels))
    rows = np.random.default_rng(seed).permutation(n_sampled)[:n_rows]
    arm, twin = samples[0][rows], samples[1][rows]
    identical = np.array_equal(arm, twin, equal_nan=True)
    absent = np.isnan(arm) | np.isnan(twin)
    n_present = n_rows - absent.sum(axis=0)
    ranks = [_rank_within_labels(scores, absent, n_present) for scores in (arm, twin)]
    spreads = [np.sqrt((rank**2).sum(axis=0)) for rank in ranks]
    vary = (spreads[0] > 0) & (spreads[1] > 0) & (n_present >= MIN_ROWS)
    if not vary.any():
        return TwinAgreement(None, 0, n_rows, identical)
    one, other = (rank[:, vary] / spread[vary] for rank, spread in zip(ranks, spreads, strict=True))
    mean = float((one * other).sum(axis=0).mean())
    reach = NORMAL * _chance_deviation(one, other, n_present[vary])
    around = Estimate(mean, mean - reach, mean + reach)
    moved = _find_moved(one, other, seed)
    return TwinAgreement(around, int(vary.sum()), n_rows, identical, *moved)


def _find_moved(one: Floats, other: Floats, seed: int) -> tuple[int, int, float]:
    """How many labels follow the twin's column of another label, of how many, and how closely.

    Columns are centred and of length 1. Labels that resemble each other share their best column;
    columns in another order have one label each.
    """
    n_rows, n_labels = one.shape
    labels = np.sort(np.random.default_rng(seed).permutation(n_labels)[:MAX_SOUGHT])
    correlations = one[:, labels].T @ other
    own, best = correlations[np.arange(labels.size), labels], correlations.argmax(axis=1)
    highest = correlations.max(axis=1)
    follower = (one.T @ other[:, best]).argmax(axis=0)
    clear = highest - own > max(MOVED_LEAD, SHUFFLED_Z / np.sqrt(n_rows))
    moved = (best != labels) & (follower == labels) & clear
    return int(moved.sum()), labels.size, float(highest[moved].mean()) if moved.any() else 0.0


def _chance_deviation(one: Floats, other: Floats, n_present: Ints) -> float:
    """Standard deviation of the mean correlation over all orders of the rows of one matrix.

    Two labels err together as they correlate, in one matrix times in the other. Exact where every
    row has every label. Columns are centred and of length 1.
    """
    scaled = one / np.sqrt(n_present - 1.0)
    if len(one) < one.shape[1]:
        squares = ((scaled @ other.T) ** 2).sum()
    else:
        squares = ((scaled.T @ scaled) * (other.T @ other)).sum()
    return float(np.sqrt(squares) / one.shape[1])


def _rank_within_labels(scores: Array, absent: Bools, n_present: Ints) -> Floats:
    """Ranks of the rows in every label, equal scores sharing theirs, less their mean."""
    from scipy.stats import rankdata

    ranks = rankdata(np.where(absent, np.inf, scores), axis=0) - (n_present + 1) / 2
    ranks[absent] = 0.0
    return np.asarray(ranks)
