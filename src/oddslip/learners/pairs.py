"""Matched pairs: two arms that differ only in the weights, on the same prepared features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from sklearn.base import BaseEstimator, clone

from oddslip.core.panel import Panel
from oddslip.core.types import FeaturesLike, Floats, LabelsLike, PerLabel
from oddslip.errors import InvalidInput
from oddslip.learners.one_vs_rest import OneVsRest, Prepared

CAPS = (0.3, 0.7, 1, 2, 5, None)  # the sweep of the paper, section 3


class PairPanels(NamedTuple):
    """Panels of margins of the same rows from both arms."""

    weighted: Panel
    unweighted: Panel


class MatchedPair(BaseEstimator):  # type: ignore[misc]
    """A weighted model and its unweighted twin: same learner, same rows, same seed.

    Parameters
    ----------
    model : OneVsRest, optional
        How both arms are trained; its weights are ignored. It is not fitted itself.
    weights : str or array-like
        Weights of the weighted arm, as `OneVsRest` takes them.

    Attributes
    ----------
    weighted_, unweighted_ : OneVsRest
        The arms.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> Y = X + rng.normal(size=X.shape) > 1.5
    >>> pair = MatchedPair(OneVsRest(parameters={"num_iterations": 5})).fit(X, Y)
    >>> pair.panels(X, Y).weighted
    Panel(300 rows x 3 labels, margin, float64, labels: yes)
    """

    def __init__(self, model: OneVsRest | None = None, *, weights: PerLabel = "balanced") -> None:
        self.model = model
        self.weights = weights

    def fit(
        self, X: FeaturesLike, Y: LabelsLike, *, label_names: Sequence[str] | None = None
    ) -> Self:
        """Train both arms. A checkpoint folder gets a subfolder for each arm.

        Parameters
        ----------
        X, Y, label_names
            As for `OneVsRest.fit`. X is prepared once.

        Returns
        -------
        MatchedPair
            This pair.
        """
        template, prepared = self._prepare(X)
        self.unweighted_ = _copy(template, "unweighted", weights="none")
        self.weighted_ = _copy(template, "weighted", weights=self.weights)
        for arm in (self.unweighted_, self.weighted_):
            arm.fit(prepared, Y, label_names=label_names)
        return self

    def _prepare(self, X: FeaturesLike) -> tuple[OneVsRest, Prepared]:
        """How the arms are trained, and the features of both."""
        template = OneVsRest() if self.model is None else self.model
        if not isinstance(template, OneVsRest):
            raise InvalidInput(f"model must be a OneVsRest, got {template!r:.60}.")
        return template, X if isinstance(X, Prepared) else template.prepare(X)

    @property
    def weights_(self) -> Floats:
        """Weights of the weighted arm."""
        return self.weighted_.weights_

    def panels(self, X: FeaturesLike, labels: LabelsLike = None) -> PairPanels:
        """Margins of both arms.

        Parameters
        ----------
        X : array-like, scipy.sparse matrix or data frame of shape (n_rows, n_features)
        labels : optional
            True labels of these rows.

        Returns
        -------
        PairPanels
            The panels ``weighted`` and ``unweighted``.
        """
        return PairPanels(self.weighted_.panel(X, labels), self.unweighted_.panel(X, labels))

    def sweep_caps(
        self,
        X: FeaturesLike,
        Y: LabelsLike,
        caps: Sequence[float | None] = CAPS,
        *,
        label_names: Sequence[str] | None = None,
    ) -> Iterator[tuple[float | None, MatchedPair]]:
        """Fit a pair for each cap of the leaf step.

        Parameters
        ----------
        X, Y, label_names
            As for `OneVsRest.fit`. X is prepared once.
        caps : sequence of float or None
            Values of ``max_delta_step``; None for no cap.

        Yields
        ------
        tuple of float or None, MatchedPair
            The cap and its fitted pair.

        Examples
        --------
        >>> for cap, pair in MatchedPair().sweep_caps(X, Y):  # doctest: +SKIP
        ...     print(cap, pair.weighted_.predict_margin(X).max())
        """
        template, prepared = self._prepare(X)
        for cap in caps:
            capped = _copy(template, f"cap-{cap}", max_delta_step=cap or 0.0)
            pair = MatchedPair(capped, weights=self.weights)
            yield cap, pair.fit(prepared, Y, label_names=label_names)


def _copy(template: OneVsRest, name: str, **params: Any) -> OneVsRest:
    """An unfitted copy with other parameters, and a checkpoint in a subfolder of this name."""
    copied: OneVsRest = clone(template).set_params(**params)
    if template.checkpoint is not None:
        copied.set_params(checkpoint=Path(template.checkpoint) / name)
    return copied
