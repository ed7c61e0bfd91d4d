"""Changed prevalences from scores alone: Saerens, Latinne and Decaestecker (2002), per label.

If only the prevalence of a label has changed, its scores are a mixture of the same two
distributions in other proportions. The maximum-likelihood proportions are the fixed point of EM.
The likelihood is concave, so bisection finds the same point reliably.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oddslip.core.proportions import odds_apart, rate_chances
from oddslip.core.results import label_frame, plain
from oddslip.core.types import Array, Bools, Floats, Ints, JsonObject
from oddslip.repairs.fingerprint import Fingerprint

SURE = 6.63  # twice the gain in log-likelihood: the 1% critical value of a chi-squared test
MISFIT = 0.01  # probability of any false misfit among all labels
MATERIAL_NAT = 0.2  # smaller shifts are ignored
SHARES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)  # of rows below a cut
_HALVINGS = 50
_REACH = 25.0  # nat


@dataclass(frozen=True, slots=True, eq=False)
class PriorShift:
    """Change of the prevalence of each label since calibration, estimated from its scores.

    Attributes
    ----------
    before, after : numpy.ndarray
        Mean calibrated probability on the calibration rows, and the most likely prevalence now.
    fits : numpy.ndarray of bool
        Whether a changed prevalence explains the scores. If not, scores changed within a class as
        well, and ``after`` has no meaning.
    shift : numpy.ndarray
        Shift of the log-odds in nat; 0 if it is not significant or does not fit.
    label_names : tuple of str or None
        Names of the labels.
    """

    before: Floats
    after: Floats
    fits: Bools
    shift: Floats
    label_names: tuple[str, ...] | None = None

    @property
    def n_shifted(self) -> int:
        """Labels whose probabilities are corrected."""
        return int((self.shift != 0).sum())

    def to_dict(self) -> JsonObject:
        """All columns in built-in types."""
        return plain(self._columns())  # type: ignore[no-any-return]

    def to_frame(self) -> Any:
        """A pandas data frame with one row per label."""
        return label_frame(self._columns(), self.label_names)

    def _columns(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("before", "after", "fits", "shift")}


def find_prior_shift(
    calibrated: Fingerprint,
    now: Fingerprint,
    probabilities: Floats,
    label_names: tuple[str, ...] | None = None,
) -> PriorShift:
    """Estimate the prevalences under which the current scores are most likely.

    Parameters
    ----------
    calibrated, now : Fingerprint
        Counts of the calibration rows and of the rows to correct.
    probabilities : numpy.ndarray of shape (n_labels, n_bins)
        Calibrated probability of each bin, see `probabilities_of`.
    label_names : tuple of str, optional
        Names of the labels.

    Returns
    -------
    PriorShift
    """
    before = np.clip(
        calibrated.per_cell((calibrated.counts * probabilities).sum(axis=1)), 1e-12, 1 - 1e-12
    )
    true = probabilities / before[:, None]
    false = (1 - probabilities) / (1 - before)[:, None]
    counts = now.counts.astype(np.float64)
    low = np.full(before.size, -_REACH)
    high = np.full(before.size, _REACH)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        slope = (counts * (true - false) / _mix(true, false, middle)).sum(axis=1)
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    log_odds = (low + high) / 2
    gain = (counts * np.log(_mix(true, false, log_odds))).sum(axis=1)
    # The calibration rows are a finite sample, too.
    worth = calibrated.n_cells / np.maximum(1, calibrated.n_cells + now.n_cells)
    shift = log_odds - np.log(before / (1 - before))
    fits = _find_fits(calibrated, now, _mix(true, false, log_odds))
    significant = (2 * gain * worth >= SURE) & (np.abs(shift) >= MATERIAL_NAT) & fits
    # A label that is no mixture, such as a constant, does not identify its proportions.
    significant &= ((calibrated.counts > 0) & (np.abs(true - false) > 1e-9)).any(axis=1)
    return PriorShift(
        before, 1 / (1 + np.exp(-log_odds)), fits, np.where(significant, shift, 0.0), label_names
    )


def cut_places(counts: Array) -> Ints:
    """Bins at which the cells of each label are cut by `SHARES`; shape (n_labels, cuts).

    The cells of a bin fall below a cut at the low end, and above it otherwise.
    """
    below = np.cumsum(counts, axis=1, dtype=np.float64)
    below /= np.where(below[:, -1:] > 0, below[:, -1:], 1.0)  # a label without cells
    places = [(below < share - 1e-12).sum(axis=1) + (share < 0.5) for share in SHARES]
    return np.sort(np.stack(places, axis=1), axis=1)


def count_above(counts: Array, places: Ints) -> Floats:
    """Cells of each label in the bins from each place on."""
    sums = np.zeros((len(counts), counts.shape[1] + 1))
    np.cumsum(counts[:, ::-1], axis=1, out=sums[:, 1:])
    return np.take_along_axis(sums, counts.shape[1] - places, axis=1)


def _mix(true: Floats, false: Floats, log_odds: Floats) -> Floats:
    """Likelihood ratio of each bin at the prevalence with these log-odds."""
    share = (1 / (1 + np.exp(-log_odds)))[:, None]
    return np.asarray(np.maximum(share * true + (1 - share) * false, 1e-300))


def _find_fits(calibrated: Fingerprint, now: Fingerprint, ratio: Floats) -> Bools:
    """Whether the calibration rows, weighted by the likelihood ratio, match the current rows."""
    weighted_counts = calibrated.counts * ratio
    places = cut_places(calibrated.per_cell(weighted_counts) + now.per_cell(now.counts))
    n_before, n_now = calibrated.n_cells[:, None], now.n_cells[:, None]
    expected = count_above(weighted_counts, places)
    squares = count_above(weighted_counts * ratio, places)
    # Effective sample size: this many rows of weight one have the same variance.
    size = np.where(squares > 0, expected / np.maximum(squares, 1e-300), 1.0)
    size = np.minimum(size, 1.0)
    first, n_first = expected * size, n_before * size
    second = count_above(now.counts, places)
    chances = rate_chances(first, n_first, second, n_now)
    distance = np.abs(odds_apart(first, n_first, second, n_now))
    wrong = (chances < MISFIT / chances.size) & (distance >= MATERIAL_NAT)
    return np.asarray(~wrong.any(axis=1))
