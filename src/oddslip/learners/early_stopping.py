"""Early stopping by a ranking metric of all labels, here and in the training of other libraries.

Groups of labels are trained one after another, so our training cannot stop in the middle. It runs
to its end, and is then cut where it would have stopped: the validation rows are ranked after every
round, until ``patience`` rounds have brought no improvement. `MapAtK` is for trainings that can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from oddslip.adapters.scorer import as_cells
from oddslip.core.arguments import check_whole
from oddslip.core.panel import Kind, Panel
from oddslip.core.types import Array, FeaturesLike, Floats, Ints, LabelsLike, ScoresLike
from oddslip.errors import InvalidInput
from oddslip.io.progress import progress_bar
from oddslip.learners.backends.base import Backend
from oddslip.metrics.at_k import (
    average_precision_at_k,
    check_choice,
    hit_rate_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
)

if TYPE_CHECKING:
    from lightgbm import Dataset
    from xgboost import DMatrix

_METRICS: dict[str, Callable[..., float | Floats]] = {
    "map": average_precision_at_k,
    "precision": precision_at_k,
    "recall": recall_at_k,
    "ndcg": ndcg_at_k,
    "hit_rate": hit_rate_at_k,
}


def measure_raw(panel: Panel, k: int) -> float:
    """MAP at K of the scores as they are."""
    return float(average_precision_at_k(panel, k=k))


def measure_repaired(panel: Panel, k: int, metric: str = "map") -> float:
    """A metric at K after a hierarchical repair, cross-fitted on the same rows."""
    from oddslip.selection.repair import Repair

    rule = "hierarchical"
    repair = Repair(k=k, metric=metric, rule=rule, kind=panel.kind).fit(panel)
    return float(repair.table_[rule].mean)


STOP_BY: dict[str, Callable[[Panel, int], float]] = {
    "raw": measure_raw,
    "repaired": measure_repaired,
}


def follow_rounds(
    backend: Backend,
    groups: Sequence[Ints],
    models: Sequence[object],
    panel: Panel,
    rows: FeaturesLike,
    *,
    measure: Callable[[Panel, int], float],
    k: int,
    patience: int,
) -> Floats:
    """A metric of the validation rows after each round, up to where training would stop.

    ``panel`` holds the margins before the first round, which are filled in here.
    """
    margins = panel.scores
    n_rounds = max((backend.n_rounds(model) for model in models), default=0)
    values: list[float] = []
    with progress_bar("ranking after each round", n_rounds) as advance:
        for round_number in range(n_rounds):
            for group, model in zip(groups, models, strict=True):
                margins[:, group] += backend.stage(model, rows, round_number, round_number + 1)
            values.append(measure(panel, k))
            advance(1)
            if len(values) - 1 - int(np.argmax(values)) >= patience:
                break
    return np.array(values)


class MapAtK:
    """MAP at K, or another mean over rows, accumulated over batches; higher is better.

    ``update(scores, labels)`` adds a batch, ``compute()`` returns the mean so far and ``reset()``
    starts again, as metrics of Keras and torch do. XGBoost takes ``metric.xgboost`` as its
    ``custom_metric``, LightGBM ``metric.lightgbm(labels)`` as its ``feval``. Scores may be logits
    or probabilities, since only their order matters.

    Parameters
    ----------
    k : int
        Slots per row, ``1 <= k <= n_labels``.
    metric : {"map", "precision", "recall", "ndcg", "hit_rate"}
        Which metric at K.
    repaired : {"probability", "margin"}, optional
        Measure after a hierarchical repair, cross-fitted on the rows so far; the scores are of this
        kind. Stop by it if the model is to be repaired: under label weights raw scores can be best
        at another round.

    Examples
    --------
    >>> metric = MapAtK(k=1)
    >>> metric.update([[2.0, -1.0], [0.5, 3.0]], [[1, 0], [1, 0]])
    >>> metric.compute()
    0.5
    """

    def __init__(self, *, k: int, metric: str = "map", repaired: Kind | None = None) -> None:
        check_choice("metric", metric, _METRICS)
        if repaired is not None:
            check_choice("repaired", repaired, Kind)
        self.k, self.metric, self.repaired = check_whole("k", k, 1), metric, repaired
        # XGBoost reads the name of the function.
        self.__name__ = f"{metric}_at_{k}" + ("" if repaired is None else "_repaired")
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._sum, self._n_rows = 0.0, 0
        self._batches: list[tuple[Array, Array]] = []  # where scores are repaired

    def update(self, scores: ScoresLike, labels: LabelsLike) -> None:
        """Add a batch.

        Parameters
        ----------
        scores, labels : array or tensor of shape (n_rows, n_labels)
        """
        if self.repaired is not None:
            self._batches.append((as_cells(scores), as_cells(labels)))
            return
        values = self._by_row(scores, labels)
        self._sum += float(values.sum())
        self._n_rows += values.size

    def compute(self) -> float:
        """Mean over the rows so far with a true label.

        Returns
        -------
        float
            NaN if no row has a true label.
        """
        if self._batches:
            scores, labels = (np.concatenate(part) for part in zip(*self._batches, strict=True))
            return self(labels, scores)
        return self._sum / self._n_rows if self._n_rows else float("nan")

    def __call__(self, labels: LabelsLike, scores: ScoresLike) -> float:
        """The metric of one batch; labels come first, as in scikit-learn's metrics."""
        if self.repaired is not None:
            panel = Panel(as_cells(scores), labels, kind=self.repaired)
            return measure_repaired(panel, self.k, self.metric)
        values = self._by_row(scores, labels)
        return float(values.mean()) if values.size else float("nan")

    def xgboost(self, predictions: ScoresLike, matrix: DMatrix) -> tuple[str, float]:
        """For ``xgboost.train(custom_metric=...)``; the labels are read from the DMatrix."""
        n_rows = matrix.num_row()
        labels = np.asarray(matrix.get_label()).reshape(n_rows, -1)
        return self.__name__, self(labels, np.asarray(predictions).reshape(n_rows, -1))

    def lightgbm(
        self, labels: LabelsLike = None
    ) -> Callable[[ScoresLike, Dataset], tuple[str, float, bool]]:
        """A function for ``lightgbm.train(feval=...)`` of one Booster of many labels.

        Parameters
        ----------
        labels : 0/1 cells of shape (n_rows, n_labels), optional
            Of the validation rows. By default the Dataset holds the one true label of each row,
            as for ``multiclassova``.

        Returns
        -------
        callable
        """

        def evaluate(predictions: ScoresLike, dataset: Dataset) -> tuple[str, float, bool]:
            scores = np.asarray(predictions)
            if scores.ndim != 2:
                raise InvalidInput(
                    "MapAtK must see the scores of all labels, got those of one. Use it with one "
                    "Booster of many labels; OneVsRest(early_stopping=...) stops a loop of them."
                )
            truth = labels
            if truth is None:
                truth = np.asarray(dataset.get_label(), np.int64)[:, None].tolist()
            return self.__name__, self(truth, scores), True

        return evaluate

    def _by_row(self, scores: ScoresLike, labels: LabelsLike) -> Floats:
        truth = as_cells(labels) if hasattr(labels, "detach") else labels
        measure = _METRICS[self.metric]
        values = measure(as_cells(scores), truth, k=self.k, kind="margin", per_row=True)
        return np.asarray(values)
