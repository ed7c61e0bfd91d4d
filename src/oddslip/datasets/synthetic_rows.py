"""Features and labels with known marginals: something small to train a model on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from oddslip import DEFAULT_SEED
from oddslip.errors import InvalidInput

BOUNDS = {"n_rows": 1, "n_labels": 1, "n_features": 1, "seed": 0}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticRows:
    """Rows to train, calibrate and evaluate on, with the truth behind them."""

    X: NDArray[np.float32]
    labels: NDArray[np.bool_]  # drawn from the marginals
    marginals: NDArray[np.float64]  # the truth: Pr(label | features of the row)
    prevalence: NDArray[np.float64]  # per label: the expected value of its marginal
    label_names: tuple[str, ...]
    seed: int

    @property
    def n_rows(self) -> int:
        """Rows of features and of labels."""
        return len(self.labels)

    @property
    def n_labels(self) -> int:
        """Labels of each row."""
        return len(self.label_names)

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

    Rows are independent and alike, so any cut into training, calibration and evaluation rows is a
    fair one.

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
        ``n_rows``, and more rows begin with the same rows.

    Examples
    --------
    >>> drawn = synthetic_rows(1000, 5, seed=1)
    >>> drawn
    SyntheticRows(n_rows=1000, n_labels=5, n_features=8, seed=1)
    >>> drawn.X.shape, drawn.labels.shape
    ((1000, 8), (1000, 5))
    """
    for (name, least), value in zip(
        BOUNDS.items(), (n_rows, n_labels, n_features, seed), strict=True
    ):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < least:
            raise InvalidInput(f"{name} must be an integer of at least {least}, got {value!r}.")
    try:
        low, high = map(float, prevalence)
        ordered = 0 < low <= high < 1
    except (TypeError, ValueError):
        ordered = False
    if not ordered:
        raise InvalidInput(
            f"prevalence must be two numbers with 0 < low <= high < 1, got {prevalence!r}."
        )
    if not (isinstance(signal, int | float | np.number) and 0 <= signal <= 20):
        raise InvalidInput(f"signal must be a number between 0 and 20, got {signal!r}.")

    # One stream per draw, so that more rows disturb no other draw.
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]
    for_features, for_loadings, for_order, for_truth = streams
    loadings = for_loadings.standard_normal((n_features, n_labels))
    loadings *= signal / np.linalg.norm(loadings, axis=0)
    targets = for_order.permutation(np.geomspace(low, high, n_labels))
    intercepts = np.array([_solve_intercept(target, signal) for target in targets])

    X = for_features.standard_normal((n_rows, n_features), dtype=np.float32)
    marginals: NDArray[np.float64] = expit(X @ loadings + intercepts)
    labels = for_truth.random(marginals.shape) < marginals
    digits = max(3, len(str(n_labels - 1)))
    names = tuple(f"item-{label:0{digits}}" for label in range(n_labels))
    return SyntheticRows(X, labels, marginals, targets, names, seed)


def _solve_intercept(target: float, signal: float) -> float:
    """The intercept at which a normal log-odds of this spread has the target as mean marginal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(101)
    weights = weights / weights.sum()
    # At either end every sigmoid lies on one side of the target, so the root is inside.
    low, high = logit(target) - signal * nodes.max() - 1, logit(target) + signal * nodes.max() + 1
    return float(
        brentq(lambda x: weights @ expit(signal * nodes + x) - target, low, high, xtol=1e-12)
    )
