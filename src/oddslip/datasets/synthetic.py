"""Synthetic rows and matched pairs with known marginals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from oddslip import DEFAULT_SEED
from oddslip.core.arguments import is_number
from oddslip.core.types import Bools, Floats
from oddslip.core.weights import resolve_weights
from oddslip.errors import InvalidInput

_N_FACTORS = 8
_SATURATED_MARGIN = 20.0  # above 17.33, where a float64 sigmoid cast to float32 is exactly 1.0


class _Draw:
    """The shape of a draw."""

    __slots__ = ()
    labels: Bools
    label_names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.label_names)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticPair(_Draw):
    """Two arms over the same (n_rows, n_labels) cells, with the truth behind them.

    Attributes
    ----------
    marginals : numpy.ndarray
        The truth: Pr(label | row).
    labels : numpy.ndarray of bool
        Drawn from the marginals, except for ``dead``.
    unweighted, weighted : numpy.ndarray
        Probabilities of both arms, in the requested dtype.
    unweighted_margin, weighted_margin : numpy.ndarray
        Their log-odds, in float64.
    weights, shift, prior : numpy.ndarray
        For each label: its weight, its shift in nat (after the cap, before noise and saturation)
        and its prevalence among the training rows.
    dead : numpy.ndarray of int
        Labels without positives among the calibration rows.
    calibration : numpy.ndarray of bool
        Which rows are for calibration.
    label_names : tuple of str
        Names of the labels.
    seed : int
        Seed of the draw.
    """

    marginals: Floats
    labels: Bools
    unweighted: NDArray[np.floating]
    weighted: NDArray[np.floating]
    unweighted_margin: Floats
    weighted_margin: Floats
    weights: Floats
    shift: Floats
    prior: Floats
    dead: NDArray[np.intp]
    calibration: Bools
    label_names: tuple[str, ...]
    seed: int

    def __repr__(self) -> str:
        shape = f"n_rows={self.n_rows}, n_labels={self.n_labels}"
        return f"SyntheticPair({shape}, n_dead={self.dead.size}, seed={self.seed})"


def synthetic_pair(
    n_rows: int = 4000,
    n_labels: int = 40,
    *,
    prevalence: tuple[float, float] = (0.002, 0.2),
    signal: float = 1.5,
    weights: str | ArrayLike = "balanced",
    realized: float | ArrayLike = 1.0,
    cap: float | None = None,
    noise: float = 0.0,
    saturate: float = 0.0,
    n_dead: int = 0,
    dtype: type[np.float32] | type[np.float64] = np.float32,
    seed: int = DEFAULT_SEED,
) -> SyntheticPair:
    """Draw a weighted arm and its unweighted twin from known marginals.

    Parameters
    ----------
    n_rows, n_labels : int
        Shape of both arms.
    prevalence : pair of float
        Rarest and most common label. Labels are log-spaced between them, in shuffled order,
        and each label's mean marginal equals its prevalence.
    signal : float
        Standard deviation of a label's log-odds over the rows, 0 to 100.
    weights : str, number or array-like of shape (n_labels,)
        "balanced" is r_j = negatives / positives of a separate training draw, 1 where that draw
        holds one class only. "common" gives every label the ratio of all cells together. Otherwise
        the weights themselves.
    realized : float or n_labels floats
        Share of ln w_j that the weighted arm realizes, 0 to 1.
    cap : float, optional
        Step budget: the shift is clipped to [-cap, cap].
    noise : float
        Standard deviation of normal noise on the weighted margins.
    saturate : float
        Share of all cells, the highest of the weighted arm, raised to margins of 20 and more.
        They keep their order as margins and tie at exactly 1.0 as float32. Cells that are already
        saturated count towards the share and are never lowered.
    n_dead : int
        The last n_dead labels lose their positives among the calibration rows (30% of all).
        Only there are the labels not a draw from the marginals.
    dtype : numpy.float32 or numpy.float64
        How probabilities are stored. Margins and marginals are always float64.
    seed : int
        Same seed, same pair. Marginals, drawn labels and calibration rows do not depend on
        ``weights``, ``realized``, ``cap``, ``noise``, ``saturate`` or ``dtype``.

    Returns
    -------
    SyntheticPair

    Examples
    --------
    >>> pair = synthetic_pair(1000, 5, n_dead=1)
    >>> pair
    SyntheticPair(n_rows=1000, n_labels=5, n_dead=1, seed=42)
    >>> pair.weighted.shape
    (1000, 5)
    """
    _check_count("n_rows", n_rows, 2)
    _check_count("n_labels", n_labels, 1)
    _check_count("n_dead", n_dead, 0)
    _check_count("seed", seed, 0)
    _require(n_dead <= n_labels, "n_dead", f"at most n_labels={n_labels}", n_dead)
    _require(0 <= signal <= 100, "signal", "between 0 and 100", signal)
    _require(0 <= noise < np.inf, "noise", "finite and at least 0", noise)
    _require(0 <= saturate < 1, "saturate", "at least 0 and below 1", saturate)
    _require(cap is None or 0 < cap < np.inf, "cap", "positive and finite, or None for no cap", cap)
    _require(dtype in (np.float32, np.float64), "dtype", "numpy.float32 or numpy.float64", dtype)
    ends, shares = _read_prevalence(prevalence), _read_shares(realized, n_labels)
    # One stream per draw, so that changing one option changes no other draw.
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(7)]
    for_training, for_truth, for_calibration, for_noise = streams[3:]
    margin = _draw_margins((n_rows, n_labels), signal, ends, streams[:3])
    marginals: Floats = expit(margin)
    calibration = for_calibration.permutation(n_rows) < max(1, n_rows * 3 // 10)
    labels = for_truth.random(marginals.shape) < marginals
    dead = np.arange(n_labels - n_dead, n_labels)
    labels[np.ix_(calibration, dead)] = False
    positives = (for_training.random(marginals.shape) < marginals).sum(axis=0)
    weight = resolve_weights(weights, positives, n_rows)
    limit = np.inf if cap is None else cap
    shift = np.clip(shares * np.log(weight), -limit, limit)
    weighted_margin = margin + shift
    if noise > 0:
        weighted_margin += noise * for_noise.standard_normal(margin.shape)
    if n_saturated := round(saturate * margin.size):
        _raise_highest(weighted_margin, n_saturated)
    return SyntheticPair(
        marginals=marginals,
        labels=labels,
        unweighted=marginals.astype(dtype),
        weighted=expit(weighted_margin).astype(dtype, copy=False),
        unweighted_margin=margin,
        weighted_margin=weighted_margin,
        weights=weight,
        shift=shift,
        prior=positives / n_rows,
        dead=dead,
        calibration=calibration,
        label_names=_item_names(n_labels),
        seed=seed,
    )


def _check_count(name: str, value: int, minimum: int) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    _require(whole, name, "an integer", value)
    _require(value >= minimum, name, f"at least {minimum}", value)


def _read_prevalence(prevalence: ArrayLike) -> Floats:
    ends = _floats("prevalence", prevalence)
    ordered = ends.shape == (2,) and bool(0 < ends[0] <= ends[1] < 1)
    _require(ordered, "prevalence", "two numbers with 0 < low <= high < 1", prevalence)
    return ends


def _read_shares(realized: ArrayLike, n_labels: int) -> Floats:
    shares = _floats("realized", realized)
    inside = shares.shape in ((), (n_labels,)) and bool(((shares >= 0) & (shares <= 1)).all())
    _require(inside, "realized", f"1 or n_labels={n_labels} numbers between 0 and 1", realized)
    return shares


def _draw_margins(
    shape: tuple[int, int], signal: float, ends: Floats, streams: list[np.random.Generator]
) -> Floats:
    """Log-odds of the cells, with streams for rows, labels and the order of labels."""
    n_rows, n_labels = shape
    for_rows, for_labels, for_order = streams
    loadings = for_labels.standard_normal((_N_FACTORS, n_labels))
    loadings *= signal / np.linalg.norm(loadings, axis=0)
    margin: Floats = for_rows.standard_normal((n_rows, _N_FACTORS)) @ loadings
    targets = for_order.permutation(np.geomspace(ends[0], ends[1], n_labels))
    for label, target in enumerate(targets):
        margin[:, label] += _solve_intercept(margin[:, label].copy(), target)
    return margin


def _item_names(n_labels: int) -> tuple[str, ...]:
    digits = max(3, len(str(n_labels - 1)))
    return tuple(f"item-{label:0{digits}}" for label in range(n_labels))


def _solve_intercept(
    spread: Floats, target: float, mean: Callable[[Floats], Any] = np.mean
) -> float:
    """The intercept at which the mean of sigmoid(intercept + spread) is the target."""
    # At either end every sigmoid is on one side of the target, so the root is inside.
    low, high = logit(target) - spread.max() - 1, logit(target) - spread.min() + 1
    return float(brentq(lambda x: mean(expit(spread + x)) - target, low, high, xtol=1e-12))


def _raise_highest(margin: Floats, n_cells: int) -> None:
    """Raise the highest n_cells >= 1 cells in place, above all others and saturation, in order."""
    cells = margin.reshape(-1)
    threshold = np.partition(cells, cells.size - n_cells)[cells.size - n_cells]
    above = np.flatnonzero(cells > threshold)
    # Ties at the threshold are split by position, so that the share is exact.
    top_cells = np.append(np.flatnonzero(cells == threshold)[: n_cells - above.size], above)
    _, rank = np.unique(cells[top_cells], return_inverse=True)
    # A cell may already be beyond saturation: start from the top, so that none is lowered.
    cells[top_cells] = max(_SATURATED_MARGIN, cells.max()) + rank / n_cells


def _floats(name: str, value: ArrayLike) -> Floats:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must hold numbers only, got {name}={value!r}.") from None


def _require(holds: bool, name: str, requirement: str, value: object) -> None:
    if not holds:
        raise InvalidInput(f"{name} must be {requirement}, got {name}={value!r}.")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticRows(_Draw):
    """Rows to train, calibrate and evaluate on, with the truth behind them.

    Attributes
    ----------
    X : numpy.ndarray of float32
        Features.
    labels : numpy.ndarray of bool
        Drawn from the marginals.
    marginals : numpy.ndarray
        The truth: Pr(label | features of the row).
    prevalence : numpy.ndarray
        Expected marginal of each label.
    label_names : tuple of str
        Names of the labels.
    seed : int
        Seed of the draw.
    """

    X: NDArray[np.float32]
    labels: Bools
    marginals: Floats
    prevalence: Floats
    label_names: tuple[str, ...]
    seed: int

    def __repr__(self) -> str:
        shape = f"n_rows={self.n_rows}, n_labels={self.n_labels}, n_features={self.X.shape[1]}"
        return f"SyntheticRows({shape}, seed={self.seed})"


def synthetic_rows(
    n_rows: int = 4000,
    n_labels: int = 40,
    *,
    n_features: int = 8,
    prevalence: tuple[float, float] = (0.002, 0.2),
    signal: float = 1.5,
    seed: int = DEFAULT_SEED,
) -> SyntheticRows:
    """Draw normal features, and labels whose log-odds are linear in them.

    Rows are independent and identically distributed, so any split into training, calibration and
    evaluation rows is fair.

    Parameters
    ----------
    n_rows, n_labels, n_features : int
        Shapes.
    prevalence : pair of float
        Rarest and most common label. Labels are log-spaced between them, in shuffled order.
    signal : float
        Standard deviation of a label's log-odds over the rows, 0 to 20.
    seed : int
        Same seed, same rows. The labels' log-odds as functions of the features do not depend on
        ``n_rows``, and a larger draw begins with the same rows.

    Returns
    -------
    SyntheticRows

    Examples
    --------
    >>> rows = synthetic_rows(1000, 5, seed=1)
    >>> rows
    SyntheticRows(n_rows=1000, n_labels=5, n_features=8, seed=1)
    >>> rows.X.shape, rows.labels.shape
    ((1000, 8), (1000, 5))
    """
    _check_count("n_rows", n_rows, 1)
    _check_count("n_labels", n_labels, 1)
    _check_count("n_features", n_features, 1)
    _check_count("seed", seed, 0)
    ends = _read_prevalence(prevalence)
    _require(is_number(signal) and 0 <= signal <= 20, "signal", "between 0 and 20", signal)
    # One stream per draw, so that more rows change no other draw.
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]
    for_features, for_loadings, for_order, for_truth = streams
    loadings = for_loadings.standard_normal((n_features, n_labels))
    loadings *= signal / np.linalg.norm(loadings, axis=0)
    targets = for_order.permutation(np.geomspace(ends[0], ends[1], n_labels))
    nodes, shares = np.polynomial.hermite_e.hermegauss(101)  # of normal log-odds
    shares = shares / shares.sum()
    intercepts = [
        _solve_intercept(signal * nodes, target, mean=lambda sigmoids: shares @ sigmoids)
        for target in targets
    ]
    X = for_features.standard_normal((n_rows, n_features), dtype=np.float32)
    marginals: Floats = expit(X @ loadings + intercepts)
    labels = for_truth.random(marginals.shape) < marginals
    return SyntheticRows(X, labels, marginals, targets, _item_names(n_labels), seed)
