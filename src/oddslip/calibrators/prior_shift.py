"""Prevalences that moved, from scores alone: Saerens, Latinne and Decaestecker (2002), per label.

If a label has become more or less frequent and nothing else has changed, its scores are a mixture
of the same two parts in other shares. The likeliest shares are the fixed point of their EM.
The likelihood is concave, so bisection finds the same point, and surely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.fingerprint import Fingerprint
from oddslip.core.proportions import odds_apart, rate_chances
from oddslip.core.results import label_frame, plain

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SURE = 6.63  # twice the gain in log-likelihood that chance exceeds in 1 of 100 labels
MISFIT = 0.01  # chance that a label of all is called a misfit where there is none
MATERIAL_NAT = 0.2  # odds that moved by less are left alone
SHARES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)  # of rows, below a cut
_HALVINGS = 50
_REACH = 25.0  # nat


@dataclass(frozen=True, slots=True, eq=False)
class PriorShift:
    """How the prevalence of each label moved since it was calibrated, as its scores tell.

    Attributes
    ----------
    before, after : numpy.ndarray
        Mean calibrated probability on the calibration rows, and the likeliest prevalence now.
    fits : numpy.ndarray of bool
        Whether a moved prevalence explains the scores. Where not, scores moved within a class as
        well, and ``after`` means nothing.
    shift : numpy.ndarray
        What is added to the log-odds, in nat: 0 where no shift is sure or none would fit.
    label_names : tuple of str or None
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

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only."""
        return plain(self._columns())  # type: ignore[no-any-return]

    def to_frame(self) -> Any:
        """A pandas frame with one line per label."""
        return label_frame(self._columns(), self.label_names)

    def _columns(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("before", "after", "fits", "shift")}


def find_prior_shift(
    calibrated: Fingerprint,
    now: Fingerprint,
    probabilities: Floats,
    label_names: tuple[str, ...] | None = None,
) -> PriorShift:
    """The prevalences under which the scores of now are likeliest.

    Parameters
    ----------
    calibrated, now : Fingerprint
        Counts of the calibration rows and of the rows to correct.
    probabilities : numpy.ndarray of shape (n_labels, n_bins)
        Calibrated probability of each bin: see `probabilities_of`.
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
    place = (low + high) / 2
    gain = (counts * np.log(_mix(true, false, place))).sum(axis=1)
    # Of the calibration rows, too, there are only so many.
    worth = calibrated.n_cells / np.maximum(1, calibrated.n_cells + now.n_cells)
    shift = place - np.log(before / (1 - before))
    fits = _find_fits(calibrated, now, _mix(true, false, place))
    told = (2 * gain * worth >= SURE) & (np.abs(shift) >= MATERIAL_NAT) & fits
    # What never was a mixture, such as a constant, says nothing of its shares.
    told &= ((calibrated.counts > 0) & (np.abs(true - false) > 1e-9)).any(axis=1)
    return PriorShift(
        before, 1 / (1 + np.exp(-place)), fits, np.where(told, shift, 0.0), label_names
    )


def cut_places(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Bins from which on the rest of a label's cells lie, after `SHARES`; shape (n_labels, cuts).

    Many cells may stand in one bin: those at the low end fall below a cut, others above it.
    """
    below = np.cumsum(counts, axis=1, dtype=np.float64)
    below /= np.where(below[:, -1:] > 0, below[:, -1:], 1.0)  # of a label that no row has
    places = [(below < share - 1e-12).sum(axis=1) + (share < 0.5) for share in SHARES]
    return np.sort(np.stack(places, axis=1), axis=1)


def count_above(counts: NDArray[Any], places: NDArray[np.int64]) -> Floats:
    """Cells of each label from each place on."""
    sums = np.zeros((len(counts), counts.shape[1] + 1))
    np.cumsum(counts[:, ::-1], axis=1, out=sums[:, 1:])
    return np.take_along_axis(sums, counts.shape[1] - places, axis=1)


def _mix(true: Floats, false: Floats, log_odds: Floats) -> Floats:
    """How much likelier each bin became, at the prevalence with these log-odds."""
    share = (1 / (1 + np.exp(-log_odds)))[:, None]
    return np.asarray(np.maximum(share * true + (1 - share) * false, 1e-300))


def _find_fits(calibrated: Fingerprint, now: Fingerprint, likelier: Floats) -> Bools:
    """Whether the calibration rows, each counted so much likelier, are spread like those of now."""
    weighed = calibrated.counts * likelier
    places = cut_places(calibrated.per_cell(weighed) + now.per_cell(now.counts))
    n_before, n_now = calibrated.n_cells[:, None], now.n_cells[:, None]
    expected = count_above(weighed, places)
    squares = count_above(weighed * likelier, places)
    # A few rows that count much are worth as few: so many rows of weight one vary as much.
    size = np.where(squares > 0, expected / np.maximum(squares, 1e-300), 1.0)
    size = np.minimum(size, 1.0)
    first, n_first = expected * size, n_before * size
    second = count_above(now.counts, places)
    chances = rate_chances(first, n_first, second, n_now)
    apart = np.abs(odds_apart(first, n_first, second, n_now))
    wrong = (chances < MISFIT / chances.size) & (apart >= MATERIAL_NAT)
    return np.asarray(~wrong.any(axis=1))
