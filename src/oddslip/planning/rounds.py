"""`by_rounds`: the ranking of a boosted model while its trees were added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from oddslip import DEFAULT_SEED
from oddslip.adapters.stages import stages_of
from oddslip.calibrators.policy import find_prior
from oddslip.core.arguments import check_whole
from oddslip.core.results import as_frame, html_table, plain
from oddslip.core.types import Array, FeaturesLike, JsonObject, LabelsLike, PerLabel
from oddslip.core.weights import resolve_weights
from oddslip.errors import InvalidInput
from oddslip.io.progress import progress_bar
from oddslip.metrics.at_k import metric_name
from oddslip.selection.repair import Repair
from oddslip.shifts import realized_shift, saturation
from oddslip.sources import open_source

REPAIR = "hierarchical"


@dataclass(frozen=True, slots=True)
class Rounds:
    """A metric at K by the number of rounds, raw and repaired.

    Attributes
    ----------
    rounds : tuple of int
        Numbers of rounds, ascending.
    raw, repaired : tuple of float
        The metric of the raw scores, and after a hierarchical repair, cross-fitted.
    error : tuple of float
        Standard error of the difference of the two.
    saturated : tuple of float
        Share of cells whose probability float32 stores as exactly 1.0.
    shift_ratio : tuple of float, optional
        Median over labels of the realized over the intended shift; None without weights.
    k, metric, n_rows, n_labels
        What was measured.
    """

    rounds: tuple[int, ...]
    raw: tuple[float, ...]
    repaired: tuple[float, ...]
    error: tuple[float, ...]
    saturated: tuple[float, ...]
    shift_ratio: tuple[float, ...] | None
    k: int
    metric: str
    n_rows: int
    n_labels: int

    @property
    def best_raw(self) -> int:
        """The number of rounds at which the raw scores rank best."""
        return self.rounds[int(np.argmax(self.raw))]

    @property
    def best_repaired(self) -> int:
        """The number of rounds at which the repaired scores rank best."""
        return self.rounds[int(np.argmax(self.repaired))]

    @property
    def cost_of_stopping_by_raw(self) -> float:
        """What the repaired metric loses if training stops where the raw one is best."""
        return max(self.repaired) - self.repaired[int(np.argmax(self.raw))]

    def __str__(self) -> str:
        from oddslip.reports.text import as_text, show_rounds

        return as_text(show_rounds(self))

    def to_dict(self) -> JsonObject:
        """Built-in types only."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        best = {"best_raw": self.best_raw, "best_repaired": self.best_repaired}
        return plain({"schema": "oddslip.rounds/1", **values, **best})  # type: ignore[no-any-return]

    def to_frame(self) -> Any:
        """A pandas frame with one row per number of rounds."""
        return as_frame(self._columns())

    def plot(self) -> Any:
        """The metric, raw and repaired, and the share of saturated cells by round.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from oddslip.reports.figures.curves import draw_rounds

        return draw_rounds(self)

    def _columns(self) -> dict[str, list[Any]]:
        names = ("rounds", "raw", "repaired", "error", "saturated")
        columns = {name: list(getattr(self, name)) for name in names}
        return (
            columns
            if self.shift_ratio is None
            else columns | {"shift_ratio": list(self.shift_ratio)}
        )

    def _repr_html_(self) -> str:
        name = metric_name(self.metric, self.k)
        header = ["rounds", f"{name} raw", f"{name} repaired", "cells at 1.0"]
        lines = [
            [f"{r:,}", f"{raw:.4f}", f"{repaired:.4f}", f"{share:.2%}"]
            for r, raw, repaired, share in zip(
                self.rounds, self.raw, self.repaired, self.saturated, strict=True
            )
        ]
        return html_table(header, lines, f"Repaired is best after {self.best_repaired:,} rounds.")


def by_rounds(
    model: Any,
    X: FeaturesLike,
    labels: LabelsLike,
    *,
    k: int,
    metric: str = "map",
    weights: PerLabel = None,
    prior: PerLabel = None,
    rounds: int | Sequence[int] = 12,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
) -> Rounds:
    """Measure a boosted model after a dozen of its rounds, raw and repaired.

    Under label weights, raw often collapses while repaired still rises: each round shifts the
    log-odds of some labels more than those of others.

    Parameters
    ----------
    model : fitted model, a list of them with one label each, or a dict of name to model
        LightGBM, XGBoost, CatBoost, scikit-learn's gradient boosting, one model a label or one of
        many labels; in ``OneVsRestClassifier``, ``MultiOutputClassifier`` and ``Pipeline`` too;
        `oddslip.OneVsRest` of a boosted learner.
    X, labels
        Held-out rows and their true labels. Repairs are cross-fitted on them.
    k : int
        Slots per row.
    metric : {"map", "precision", "recall", "ndcg", "psp", "hit_rate"}
        What is measured at K.
    weights : number, array-like or str, optional
        The positive weight each label was trained with, for the share of the shift that was
        realized. "balanced" is negatives / positives.
    prior : array-like, optional
        Training prevalence of each label; by default the smoothed prevalence of these rows.
    rounds : int or sequence of int
        How many numbers of rounds to measure, spread evenly on a logarithmic scale, or the numbers.
    seed : int
        Same seed, same folds.
    threads : int, optional
        Threads to use; default: all available cores.

    Returns
    -------
    Rounds

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from sklearn.multioutput import MultiOutputClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> Y = (X + rng.normal(size=X.shape) > [1, 1.5, 2]).astype(int)
    >>> model = MultiOutputClassifier(GradientBoostingClassifier(n_estimators=8)).fit(X, Y)
    >>> by_rounds(model, X, Y, k=1, rounds=[1, 4, 8]).rounds
    (1, 4, 8)
    """
    stages = stages_of(model)
    numbers = _choose_rounds(rounds, stages.n_rounds)
    recorder = RoundsRecorder(
        labels, k=k, metric=metric, weights=weights, prior=prior, seed=seed, threads=threads
    )
    with progress_bar("scoring and repairing rounds", len(numbers)) as advance:
        for number, margins in zip(numbers, stages.margins(X, numbers), strict=True):
            recorder.update(number, margins)
            advance(1)
    return recorder.result()


class RoundsRecorder:
    """Records a joint training round by round, from the scores of validation rows.

    Call `update` with the scores after a round or epoch; `result` has the same table and picture
    as `by_rounds`. For XGBoost pass ``callbacks=[recorder.xgboost(matrix)]``, for a Hugging Face
    ``Trainer`` pass ``compute_metrics=recorder.compute_metrics``.

    Parameters
    ----------
    labels
        True labels of the validation rows.
    k, metric, weights, prior, seed, threads
        As in `by_rounds`.

    Examples
    --------
    >>> recorder = RoundsRecorder([[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]], k=1)
    >>> metrics = recorder.update(1, [[2.0, 1.0], [0.0, 1.0], [1.5, 1.0], [0.5, 1.0], [2.5, 1.0]])
    >>> recorder.result().raw
    (1.0,)
    """

    def __init__(
        self,
        labels: LabelsLike,
        *,
        k: int,
        metric: str = "map",
        weights: PerLabel = None,
        prior: PerLabel = None,
        seed: int = DEFAULT_SEED,
        threads: int | None = None,
    ) -> None:
        self.labels, self.k, self.metric, self.seed = labels, k, metric, seed
        self.weights, self.prior, self.threads = weights, prior, threads
        self._lines: list[tuple[int, dict[str, float]]] = []
        self._shape = (0, 0)

    def update(self, number: int, scores: Array) -> dict[str, float]:
        """Measure the scores after a round.

        Parameters
        ----------
        number : int
            The number of rounds or epochs so far.
        scores : array or tensor of shape (n_rows, n_labels)
            Log-odds of the validation rows.

        Returns
        -------
        dict of str to float
            "raw", "repaired", "error", "saturated" and, with weights, "shift_ratio".
        """
        margins = np.asarray(scores.detach().cpu() if hasattr(scores, "detach") else scores)
        margins = margins.astype(np.float64, copy=False)
        source = open_source(margins, self.labels, kind="margin")
        repair = Repair(k=self.k, metric=self.metric, rule=REPAIR, kind="margin", seed=self.seed)
        table = repair.fit(source, threads=self.threads).table_
        line = {
            "raw": table["raw"].mean,
            "repaired": table[REPAIR].mean,
            "error": table[REPAIR].standard_error,
            "saturated": saturation(source, k=self.k, distinct=False).share_float32,
        }
        if self.weights is not None:
            counts, totals = source.label_counts(), source.totals()
            prior = find_prior(self.prior, counts, totals)[0]
            weights = resolve_weights(self.weights, counts, totals)
            ratio = realized_shift(source, prior).ratio(weights)
            line["shift_ratio"] = float(np.nanmedian(np.where(np.isfinite(ratio), ratio, np.nan)))
        self._lines.append((check_whole("number", number, 0), line))
        self._shape = (source.n_rows, source.n_labels)
        return line

    def result(self) -> Rounds:
        """The table so far."""
        if not self._lines:
            raise InvalidInput("at least one round must be recorded, got none. Call update first.")
        numbers, lines = zip(*sorted(self._lines, key=lambda line: line[0]), strict=True)
        columns: dict[str, Any] = {"shift_ratio": None}
        columns |= {name: tuple(line[name] for line in lines) for name in lines[0]}
        n_rows, n_labels = self._shape
        return Rounds(
            rounds=numbers,
            **columns,
            k=self.k,
            metric=self.metric,
            n_rows=n_rows,
            n_labels=n_labels,
        )

    def xgboost(self, matrix: Any, every: int = 10) -> Any:
        """A callback of ``xgboost.train`` for one Booster of all labels.

        Parameters
        ----------
        matrix : xgboost.DMatrix
            The validation rows.
        every : int
            Rounds between two records.
        """
        import xgboost

        update = self.update

        class Recorder(xgboost.callback.TrainingCallback):
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                if (epoch + 1) % every == 0:
                    update(epoch + 1, model.predict(matrix, output_margin=True))
                return False

        return Recorder()

    def compute_metrics(self, prediction: Any) -> dict[str, float]:
        """For a Hugging Face ``Trainer``: the metrics of one evaluation, raw and repaired.

        ``TrainingArguments(metric_for_best_model="repaired", greater_is_better=True)`` then keeps
        the best epoch by the repaired metric.
        """
        logits = prediction.predictions
        logits = logits[0] if isinstance(logits, tuple) else logits
        return self.update(len(self._lines) + 1, logits)


def _choose_rounds(rounds: int | Sequence[int], n_rounds: int) -> list[int]:
    """Ascending numbers of rounds, the last one included."""
    if isinstance(rounds, Iterable):
        numbers = sorted({check_whole("rounds", each, 1) for each in rounds})
        if not numbers or numbers[-1] > n_rounds:
            largest = numbers[-1] if numbers else "none"
            raise InvalidInput(f"rounds must be between 1 and {n_rounds:,}, got {largest}.")
        return numbers
    count = check_whole("rounds", rounds, 1)
    spread = np.geomspace(1, n_rounds, min(count, n_rounds)).round().astype(int)
    return sorted({*spread.tolist(), n_rounds})
