"""`Repaired`: a fitted model whose scores are repaired."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from oddslip.adapters import ModelReader
from oddslip.adapters.scorer import clipped_log_odds
from oddslip.core.panel import Panel, check_names
from oddslip.core.results import name_ranking
from oddslip.core.row_ids import match_labels
from oddslip.core.types import FeaturesLike, Floats
from oddslip.errors import InvalidInput
from oddslip.repairs.fitted_repair import FittedRepair, load_repair


class Repaired:
    """A fitted model and its repair, as one object.

    Parameters
    ----------
    model
        Any model that `oddslip.panel_from` reads.
    repair : Repair, calibrator, FittedRepair or path
        Fitted on this model's scores of other rows. Labels are matched by name; if only one of
        the two has names, they are matched by position, with a warning.
    label_names : sequence of str, optional
        Names of the labels, in the order of the model's columns. Default: the names the model
        stores, if any.

    Attributes
    ----------
    model
        The fitted model.
    repair : FittedRepair
        The repair of its scores.
    label_names : tuple of str or None
        Names of the columns: the model's, or else the repair's.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> from oddslip import Repair, panel_from
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4))
    >>> Y = X[:, :3] + rng.normal(size=(600, 3)) > [0.0, 1.0, 2.0]
    >>> model = OneVsRestClassifier(LogisticRegression(class_weight="balanced"))
    >>> model = model.fit(X[:300], Y[:300])
    >>> repair = Repair(k=2, kind="margin").fit(panel_from(model, X[300:], Y[300:]))
    >>> repaired = Repaired(model, repair)
    >>> repaired.predict_topk(X[:2], k=2).shape
    (2, 2)
    >>> repaired.predict_proba(X[:2]).shape
    (2, 3)
    """

    model: object
    repair: FittedRepair
    label_names: tuple[str, ...] | None
    _reader: ModelReader | None

    def __init__(
        self, model: object, repair: object, *, label_names: Sequence[str] | None = None
    ) -> None:
        self._set_pair(model, _read_repair(repair), label_names, warn=True)

    @classmethod
    def _of_pair(cls, model: object, repair: FittedRepair) -> Self:
        """From a model and a repair that were fitted together, with labels in the same order."""
        repaired = object.__new__(cls)
        repaired._set_pair(model, repair, None, warn=False)
        return repaired

    def _set_pair(
        self, model: object, repair: FittedRepair, label_names: Sequence[str] | None, *, warn: bool
    ) -> None:
        self.model, self._reader = model, None
        names, n_labels = self._read().scorer.names, repair.maps.n_labels
        if label_names is not None:
            names = check_names(label_names, n_labels)
        counts = n_labels if names is None else len(names), n_labels
        sides = "model", "repair"
        order = match_labels(names, repair.label_names, sides, n_labels=counts, warn=warn)
        if names is None and repair.label_names is not None:
            names = repair.label_names
            names = names if order is None else [names[at] for at in order]
        self.label_names = None if names is None else tuple(names)
        if repair.label_names is None:  # matched by position, so it takes the model's names
            repair = replace(repair, label_names=self.label_names)
        self.repair = repair

    def predict_proba(self, X: FeaturesLike) -> Floats:
        """Repaired probabilities of all labels.

        Parameters
        ----------
        X
            In any form `oddslip.panel_from` takes.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_labels)
        """
        return self.repair.transform(self._panel(X), dtype=np.float64)

    def decision_function(self, X: FeaturesLike) -> Floats:
        """Log-odds of the repaired probabilities, clipped at 1e-12.

        Parameters
        ----------
        X
            In any form `oddslip.panel_from` takes.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_labels)
        """
        return clipped_log_odds(self.predict_proba(X))

    def predict_topk(self, X: FeaturesLike, *, k: int | None = None, names: bool = False) -> Any:
        """The k labels to show in each row, best first.

        Parameters
        ----------
        X
            In any form `oddslip.panel_from` takes.
        k : int, optional
            Slots per row; default: the k of the repair.
        names : bool
            Whether to return the names of the labels instead of their numbers.

        Returns
        -------
        ndarray of int32, shape (n_rows, k)
            Label indices. With ``names``, an array of names, or for a pandas frame X a frame with
            its index and the columns label_1 to label_k.
        """
        k = self.repair.parameters.get("k") if k is None else k
        if k is None:
            raise InvalidInput("k must be given where the repair was not chosen for one.")
        if names and self.label_names is None:
            raise InvalidInput("names are not known to this repair. Fit it with label_names.")
        ranking = self.repair.rank(self._panel(X), k=k)
        return name_ranking(ranking, self.label_names, X) if names else ranking

    def _panel(self, X: FeaturesLike) -> Panel:
        kind = self.repair.maps.kind
        return self._read().panel(X, kind=kind, label_names=self.label_names)

    def _read(self) -> ModelReader:
        if self._reader is None:
            self._reader = ModelReader(self.model)
        return self._reader

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_reader": None}  # a copy creates its own reader

    def __repr__(self) -> str:
        labels = f"{self.repair.maps.n_labels:,} labels"
        return f"Repaired({type(self.model).__name__}, {self.repair.calibrator}, {labels})"


def _read_repair(repair: object) -> FittedRepair:
    if isinstance(repair, str | os.PathLike):
        repair = load_repair(repair)
    fitted = getattr(repair, "fitted_", repair)
    if not isinstance(fitted, FittedRepair):
        raise InvalidInput(
            "repair must be a fitted Repair or calibrator, a FittedRepair, or the path of a saved "
            f"one, got {type(repair).__name__}. Call its fit first."
        )
    return fitted
