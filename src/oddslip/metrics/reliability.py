"""Is the probability of what is shown right? Calibration of the top K alone.

A ranking can be good while its probabilities are off, and a calibration that is good over all
cells says little about the few that are shown: they were picked for being high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from oddslip.core.arguments import check_whole
from oddslip.core.panel import Kind, Panel, check_k, take_cells
from oddslip.core.results import as_frame, html_table, plain
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Floats, Ints, JsonObject, LabelsLike, ScoresLike
from oddslip.metrics.ranking import rank_panel
from oddslip.sources.open import Nan, open_rows

N_BINS = 10
UNIT = 2.0**-40  # probabilities are summed as whole multiples of it: alike in any order
MAX_BINS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """What is shown, in bins of its probability, and how often it is true.

    Attributes
    ----------
    k : int
        Slots per row.
    edges : numpy.ndarray of shape (n_bins + 1,)
        Ends of the bins, equally wide.
    n_shown, probability, share : numpy.ndarray of shape (n_bins,)
        Slots in each bin, their mean probability, and the share of them that is true. NaN where a
        bin is empty.
    """

    k: int
    edges: Floats
    n_shown: Ints
    probability: Floats
    share: Floats

    @property
    def ece(self) -> float:
        """Expected calibration error: how far share and probability are apart, over the slots."""
        nonempty = self.n_shown > 0
        gaps = np.abs(self.probability - self.share)[nonempty]
        return float((gaps * self.n_shown[nonempty]).sum() / self.n_shown.sum())

    @property
    def reach(self) -> Floats:
        """What chance makes of so many slots: two standard errors of the share in each bin."""
        n = np.maximum(1, self.n_shown)
        return np.asarray(2 * np.sqrt(np.maximum(self.share * (1 - self.share), 0.25 / n) / n))

    @property
    def bias(self) -> float:
        """Mean probability of the slots less the share of them that is true."""
        nonempty = self.n_shown > 0
        gaps = (self.probability - self.share)[nonempty]
        return float((gaps * self.n_shown[nonempty]).sum() / self.n_shown.sum())

    def to_dict(self) -> JsonObject:
        """Built-in types only."""
        named = ("k", "ece", "bias", "edges", "n_shown", "probability", "share")
        return plain({name: getattr(self, name) for name in named})  # type: ignore[no-any-return]

    def to_frame(self) -> Any:
        """A pandas frame with one line per bin."""
        return as_frame(
            {
                "low": self.edges[:-1],
                "high": self.edges[1:],
                "n_shown": self.n_shown,
                "probability": self.probability,
                "share": self.share,
            }
        )

    def plot(self) -> Any:
        """A matplotlib figure: share true against probability, and how often each is shown."""
        # When asked for, as in `Diagnosis.plot`: else reports import results, never the reverse.
        from oddslip.reports.figures.reliability import draw_reliability

        return draw_reliability(self)

    def _repr_html_(self) -> str:
        rows = [
            [f"{low:.2f} to {high:.2f}", f"{n:,}", f"{p:.4f}", f"{s:.4f}"]
            for low, high, n, p, s in zip(
                self.edges[:-1],
                self.edges[1:],
                self.n_shown,
                self.probability,
                self.share,
                strict=True,
            )
            if n
        ]
        caption = f"ECE@{self.k} {self.ece:.4f}"
        return html_table(["probability", "slots", "mean probability", "share true"], rows, caption)


def reliability_at_k(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    k: int,
    n_bins: int = N_BINS,
    kind: Kind | None = None,
    label_names: Sequence[str] | None = None,
    exclude: LabelsLike = None,
    nan: Nan = "refuse",
    threads: int | None = None,
) -> Reliability:
    """Calibration of the slots that are shown, over all rows, with or without a true label.

    Pass repaired probabilities, ``repair.transform(scores)``, to see whether a repair's are right
    where they are read.

    Parameters
    ----------
    scores, labels : array-like of shape (n_rows, n_labels), data frames, paths, or a Panel
    k : int
        Slots per row, ``1 <= k <= n_labels``.
    n_bins : int
        Bins of equal width between 0 and 1.
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise. Margins are taken as log-odds.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    exclude, nan
        Cells that count for nothing, as in `oddslip.rank`.
    threads : int, optional
        Threads to use; all available cores by default.

    Examples
    --------
    >>> found = reliability_at_k([[0.9, 0.2], [0.8, 0.1]], [[1, 0], [0, 1]], k=1, n_bins=2)
    >>> found.n_shown, found.probability, found.share, round(found.ece, 6)
    (array([0, 2]), array([ nan, 0.85]), array([nan, 0.5]), 0.35)
    """
    n_bins = check_whole("n_bins", n_bins, 1, MAX_BINS)
    source = open_rows(
        scores,
        labels,
        kind=kind,
        label_names=label_names,
        exclude=exclude,
        nan=nan,
        threads=threads,
        purpose="evaluate",
    )
    k = check_k(k, source.n_labels)
    return source.run(ReliabilityTally(k, n_bins), what="shown slots").result()


class ReliabilityTally(MergeableTally):
    """Slots, their probabilities and hits, bin by bin."""

    JOINED: ClassVar = {"counts": "add"}

    def __init__(self, k: int, n_bins: int = N_BINS) -> None:
        self.k, self.n_bins = k, n_bins
        self.counts = np.zeros((3, n_bins), np.int64)

    def add(self, panel: Panel) -> None:
        """Rank one block and look at what it shows."""
        panel = panel.checked()
        columns = rank_panel(panel, self.k)
        self.counts += count_shown(panel, columns, raw_shown(panel, columns), self.n_bins)

    def result(self) -> Reliability:
        """Means and shares."""
        return reliability_of(self.counts, self.k)


def raw_shown(panel: Panel, columns: NDArray[np.int32]) -> Floats:
    """Probabilities of the cells that a checked panel shows, by its scores as they are."""
    scores = take_cells(panel, columns)[columns >= 0].astype(np.float64)
    return 0.5 * (1 + np.tanh(scores / 2)) if panel.kind == "margin" else scores


def count_shown(
    panel: Panel,
    columns: NDArray[np.int32],
    probabilities: Floats,
    n_bins: int = N_BINS,
) -> Ints:
    """Slots of every bin, the sum of their probabilities in units, and those that are true.

    ``columns`` are what the rows show, -1 for nothing; ``probabilities`` those of what is there.
    """
    there = columns >= 0
    rows = np.nonzero(there)[0]
    places = np.append(panel.positives().places(panel.n_labels), -1)  # in order, but for the end
    cell_numbers = rows * panel.n_labels + columns[there]
    true = places[np.searchsorted(places[:-1], cell_numbers)] == cell_numbers
    bins = np.minimum((probabilities * n_bins).astype(np.int64), n_bins - 1)
    units = np.rint(probabilities / UNIT).astype(np.int64)
    halves = (units >> 20, units & 0xFFFFF)  # sums of which float64 holds exactly
    high, low = (np.bincount(bins, half, minlength=n_bins).astype(np.int64) for half in halves)
    summed = (high << 20) + low
    hits = np.bincount(bins[true], minlength=n_bins)
    return np.stack([np.bincount(bins, minlength=n_bins), summed, hits])


def reliability_of(counts: Ints, k: int) -> Reliability:
    """Means and shares of what `count_shown` counted, summed over blocks."""
    n_shown, summed, hits = counts
    with np.errstate(invalid="ignore"):
        means, shares = summed * UNIT / n_shown, hits / n_shown
    return Reliability(k, np.linspace(0.0, 1.0, n_shown.size + 1), n_shown.copy(), means, shares)
