"""`OneVsRest`: one model per label, with a weight per label, for any learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from oddslip import DEFAULT_SEED
from oddslip.adapters.features import (
    NamedTable,
    check_features,
    frame_ids,
    hash_features,
    label_panel,
    open_features,
    sliceable,
)
from oddslip.adapters.scorer import clipped_log_odds
from oddslip.core.arguments import check_whole, is_number
from oddslip.core.panel import Panel, check_k, check_names
from oddslip.core.results import plain
from oddslip.core.threads import available_threads, map_threads
from oddslip.core.types import (
    FeaturesLike,
    FilePath,
    Floats,
    Ints,
    JsonObject,
    LabelsLike,
    PerLabel,
)
from oddslip.core.weights import resolve_weights
from oddslip.errors import InvalidInput, MissingDependency, UnreadableFile, first_line
from oddslip.io.files import hash_bytes
from oddslip.learners.backends.base import (
    Backend,
    Parameters,
    PreparedRows,
    get_backend,
    preset_learner,
    preset_parameters,
)
from oddslip.learners.checkpoint import Checkpoint, lock_checkpoint, read_model, write_model
from oddslip.learners.early_stopping import STOP_BY, follow_rounds
from oddslip.learners.groups import LabelColumns, Training, plan_groups, run_groups
from oddslip.learners.model_validation.head import (
    DAMAGED,
    check_groups,
    check_head,
    load_group,
)
from oddslip.metrics.at_k import check_choice

if TYPE_CHECKING:
    from oddslip.spark.jobs import Workers
    from oddslip.spark.session import SparkSession

MEMORY_BYTES = 1024**3
MAX_SEED = 2**31 - 1  # accepted by every learner
_BLOCK_BYTES = 32 * 1024 * 1024
_UNSHARED = ("max_delta_step", "mode", "threads")  # may differ between arms on the same data
_UNSAVED = ("checkpoint", "engine", "threads")  # specific to this machine
_RESERVED = ("max_delta_step", "mode", "seed", "threads")


@dataclass(frozen=True, eq=False)
class Prepared:
    """Features prepared once for several fits, see `OneVsRest.prepare`."""

    features: NamedTable
    learner: str
    parameters: Parameters
    data: PreparedRows  # as `Backend.prepare` returns it


class OneVsRest(BaseEstimator):  # type: ignore[misc]
    """One model per label, each with its own weight of the positives.

    Parameters
    ----------
    learner : {"lightgbm", "xgboost", "hist", "logistic", "mlp"}
        Which learner to use. "hist" is scikit-learn's histogram boosting, which needs no extra.
    weights : str, number or array-like of shape (n_labels,)
        ``"none"``, ``"balanced"`` (negatives over positives), ``"sqrt"``, a multiple of balanced
        such as ``"10x"``, ``"common"`` (negatives over positives of all cells, for all labels),
        a number for all labels, or the weights themselves.
    max_delta_step : float
        Cap of a leaf's step, for boosters; 0 for no cap.
    preset : str, optional
        A configuration of the paper, such as ``"paper-default"``: see
        `oddslip.learners.backends.base`.
    mode : {"grouped", "exact"}
        Whether boosters train labels in groups (faster) or one by one. The trees are the same.
    seed : int
        Seed of the training.
    threads : int, optional
        Threads to use; default: all available cores.
    checkpoint : path, optional
        A folder that stores finished groups, so that a killed training can continue.
    memory_bytes : int
        Memory for the scores and gradients of the labels in training; sets the size of groups.
    early_stopping : int, optional
        For boosters: stop after this many rounds without a better MAP at K on the validation rows
        of `fit`, and keep the rounds up to the best.
    stop_by : {"raw", "repaired"}
        Whether that MAP is of the scores as they are, or after a hierarchical repair, cross-fitted
        on the validation rows. Take the latter if the model is to be repaired: under label weights
        raw can be best at another round.
    k : int
        Slots per row, for early stopping.
    parameters : dict, optional
        Parameters of the learner, on top of the preset.
    engine : "spark" or SparkSession, optional
        Train each group in a Spark task, on one thread. ``memory_bytes`` is then the memory of a
        task, and ``checkpoint`` a folder that every executor sees. "spark" uses the active
        session.

    Attributes
    ----------
    weights_, prevalence_, n_positives_ : ndarray of shape (n_labels,)
        Weight, prevalence and positives of each label among the training rows.
    constant_ : ndarray of bool
        Labels without positives or without negatives, which have no model. `predict_proba`
        returns their prevalence, exactly 0 or 1, and `predict_margin` its log-odds clipped at
        1e-12, about -27.6 or 27.6, since margins must be finite.
    parameters_ : dict
        Parameters of the learner.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a data frame with named columns.
    validation_map_ : ndarray or None
        MAP at K on the validation rows after each round; the model keeps the rounds up to the
        highest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> Y = X + rng.normal(size=X.shape) > 1
    >>> model = OneVsRest(weights="balanced", parameters={"num_iterations": 5}).fit(X, Y)
    >>> model.predict_margin(X).shape
    (200, 3)
    >>> model.panel(X, Y)
    Panel(200 rows x 3 labels, margin, float64, labels: yes)
    """

    _models: list[object]
    _line: tuple[Floats, Floats] | None = None  # a repair: intercepts and slopes of the margins
    validation_map_: Floats | None

    def __init__(
        self,
        learner: str = "lightgbm",
        *,
        weights: PerLabel = "none",
        max_delta_step: float | None = 0.0,
        preset: str | None = None,
        mode: str = "grouped",
        seed: int = DEFAULT_SEED,
        threads: int | None = None,
        checkpoint: FilePath | None = None,
        memory_bytes: int = MEMORY_BYTES,
        early_stopping: int | None = None,
        stop_by: str = "raw",
        k: int = 7,
        parameters: Parameters | None = None,
        engine: SparkSession | str | None = None,
    ) -> None:
        self.learner = learner
        self.weights = weights
        self.max_delta_step = max_delta_step
        self.preset = preset
        self.mode = mode
        self.seed = seed
        self.threads = threads
        self.checkpoint = checkpoint
        self.memory_bytes = memory_bytes
        self.early_stopping = early_stopping
        self.stop_by = stop_by
        self.k = k
        self.parameters = parameters
        self.engine = engine

    def __sklearn_clone__(self) -> Self:
        """A clone; both use the same session, which cannot be copied."""
        params = self.get_params(deep=False)
        engine = params.pop("engine")
        return type(self)(**{k: clone(v, safe=False) for k, v in params.items()}, engine=engine)

    def prepare(self, X: FeaturesLike) -> Prepared:
        """Bin, quantise or standardise X once, for several fits of the same learner.

        The fits may differ in weights, ``max_delta_step`` and ``mode``.

        Parameters
        ----------
        X : array-like, scipy.sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        Prepared
            To be passed to `fit` as X.
        """
        backend = get_backend(self.learner)
        parameters = self._parameters(backend)
        features = open_features(X)
        data = self._prepare(backend, features.table, parameters)
        return Prepared(features, self.learner, parameters, data)

    def _prepare(
        self, backend: Backend, rows: FeaturesLike, parameters: Parameters
    ) -> PreparedRows:
        """Features prepared on all threads; None with an engine, whose tasks prepare them."""
        if self.engine is not None:
            return None
        if "threads" in parameters:
            parameters = parameters | {"threads": available_threads(self.threads)}
        return backend.prepare(rows, parameters)

    def fit(
        self,
        X: FeaturesLike,
        Y: LabelsLike,
        *,
        validation: tuple[FeaturesLike, LabelsLike] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> Self:
        """Train a model for every label.

        Parameters
        ----------
        X : array-like, scipy.sparse matrix, data frame, or `Prepared`, (n_rows, n_features)
            Column names of a data frame are stored, and features to score are matched by them.
        Y : 0/1 cells of shape (n_rows, n_labels), sparse or dense, or lists of label indices
            Rows of two data frames are matched by their index, or by a column ``row_id``.
        validation : pair (X, Y), optional
            Validation rows, required with ``early_stopping``.
        label_names : sequence of str, optional
            Names of the labels. If the columns of Y are named, they are put in this order.

        Returns
        -------
        OneVsRest
            This estimator.
        """
        backend = get_backend(self.learner)
        parameters = self._parameters(backend)
        self._check_stopping(validation, parameters)
        prepared = X if isinstance(X, Prepared) else None
        features = open_features(X) if prepared is None else prepared.features
        rows, columns = features.table, LabelColumns(Y, label_names, features)
        if prepared is not None:
            self._check_shared(prepared, parameters)
        self.weights_ = resolve_weights(
            self.weights, columns.n_positives, columns.n_rows, label_names=columns.names
        )
        self._count(columns.n_positives, columns.n_rows)
        self.n_features_in_, self.label_names_ = int(rows.shape[1]), columns.names
        self._name_features(features.columns)
        self.parameters_ = parameters
        self._line = None
        with lock_checkpoint(self.checkpoint):
            self._train(rows, prepared, columns, backend)
        self.validation_map_ = None
        if validation is not None:
            self._stop_at_best(backend, *validation)
        return self

    def _check_stopping(self, validation: object, parameters: Parameters) -> None:
        if (validation is None) != (self.early_stopping is None):
            raise InvalidInput(
                "early_stopping and validation must be given together: "
                "OneVsRest(early_stopping=20).fit(X, Y, validation=(X_validation, Y_validation))."
            )
        if validation is None:
            return
        check_whole("early_stopping", self.early_stopping, 1)
        check_choice("stop_by", self.stop_by, STOP_BY)
        if not (isinstance(validation, tuple | list) and len(validation) == 2):
            raise InvalidInput(
                f"validation must be a pair (X, Y), got {type(validation).__name__}."
            )
        boosting = parameters.get("booster", parameters.get("boosting", "gbdt"))
        if boosting in ("dart", "rf"):
            raise InvalidInput(
                f"early_stopping must be left out for {boosting!r} boosting, whose first rounds "
                "are not a model by themselves."
            )

    def _stop_at_best(self, backend: Backend, X: FeaturesLike, Y: LabelsLike) -> None:
        """Cut every model to the rounds with the best MAP on the validation rows."""
        for model in self._models:
            backend.n_rounds(model)  # raises for a learner without rounds
        rows = self._read_rows(X)
        panel = self._panel(self._first_margins(rows.shape[0]), X, Y)
        values = follow_rounds(
            backend,
            self._groups,
            self._models,
            panel,
            rows,
            measure=STOP_BY[self.stop_by],
            k=check_k(self.k, self.n_labels),
            patience=int(self.early_stopping or 1),
        )
        if values.size:
            best = int(np.argmax(values)) + 1
            self._models = [backend.cut(model, best) for model in self._models]
        self.validation_map_ = values

    def _constant_margins(self) -> Floats:
        """Log-odds of the labels without a model."""
        return clipped_log_odds(self.prevalence_[self.constant_])

    def _first_margins(self, n_rows: int) -> Floats:
        """Log-odds before the first round: zero for labels with a model."""
        margins = np.zeros((n_rows, self.n_labels))
        margins[:, self.constant_] = self._constant_margins()
        return margins

    def _train(
        self, rows: FeaturesLike, prepared: Prepared | None, columns: LabelColumns, backend: Backend
    ) -> None:
        parameters = self.parameters_
        threads = available_threads(self.threads)
        memory_bytes = check_whole("memory_bytes", self.memory_bytes, 1)
        engine: Workers | None = None
        if self.engine is not None:
            from oddslip.spark.jobs import open_workers

            engine = open_workers(self.engine)
        workers = backend.workers(parameters, threads if engine is None else engine.width())
        labels = self._labels_with_model(backend)
        memory_bytes = memory_bytes // workers if engine is None else memory_bytes
        max_size = backend.group_size(
            labels.size, columns.n_rows, self.n_features_in_, memory_bytes
        )
        groups = plan_groups(labels, max_size, workers)
        finished_models: dict[int, object] = {}
        checkpoint: Checkpoint | None = None
        if self.checkpoint is not None:
            configuration = self._configuration(rows, columns)
            checkpoint = Checkpoint(self.checkpoint, configuration, groups, backend)
            groups = checkpoint.groups
            finished_models = checkpoint.finished_models(self.n_features_in_)
        save = (lambda *_: None) if checkpoint is None else checkpoint.keep
        self._groups = groups
        if engine is not None:
            from oddslip.learners.distributed_training import train_distributed

            job = Training(backend, columns, groups, self.weights_, parameters, self.seed)
            folder = None if checkpoint is None else checkpoint.folder
            self._models = train_distributed(
                engine, job, rows, finished_models=finished_models, save=save, folder=folder
            )
            return
        settings = dict(parameters)
        if "threads" in settings:
            settings["threads"] = max(1, threads // workers)
        data = None if prepared is None else prepared.data
        if data is None and len(finished_models) < len(groups):
            data = self._prepare(backend, rows, parameters)
        job = Training(backend, columns, groups, self.weights_, settings, self.seed)
        self._models = run_groups(
            groups,
            lambda number: job.train(data, number),
            workers=workers,
            finished_models=finished_models,
            save=save,
        )

    def predict_margin(self, X: FeaturesLike) -> Floats:
        """Log-odds of every label.

        Parameters
        ----------
        X : array-like, scipy.sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of float64, shape (n_rows, n_labels)
        """
        rows = self._read_rows(X)
        margins = np.empty((rows.shape[0], self.n_labels), np.float64)
        step = max(1, _BLOCK_BYTES // (8 * self.n_labels))
        threads = available_threads(self.threads)
        step = max(1, min(step, -(-rows.shape[0] // threads)))

        def fill(start: int) -> None:
            margins[start : start + step] = self.margin_block(rows[start : start + step])

        for _ in map_threads(range(0, rows.shape[0], step), fill, threads=threads):
            pass
        return margins

    def margin_block(self, X: FeaturesLike) -> Floats:
        """Log-odds of a few unchecked rows, on this thread."""
        backend = get_backend(self.learner)
        # Every cell is filled: a label is constant or in exactly one group, see `check_groups`.
        margins = np.empty((X.shape[0], self.n_labels), np.float64)
        for group, model in zip(self._groups, self._models, strict=True):
            margins[:, group] = backend.predict_margin(model, X)
        margins[:, self.constant_] = self._constant_margins()
        margins = self._repaired(margins)
        wrong = ~np.isfinite(margins).all(axis=0)
        if wrong.any():
            raise InvalidInput(
                f"scores must be finite, got others for label {int(np.argmax(wrong))}. "
                "Fill NaN and infinite cells of X; if there are none, train again."
            )
        return margins

    def predict_proba(self, X: FeaturesLike) -> Floats:
        """Probability of every label.

        Parameters
        ----------
        X : array-like, scipy.sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of float64, shape (n_rows, n_labels)
        """
        return self.as_probability(self.predict_margin(X))

    def predict_stored(self, X: FeaturesLike) -> Floats:
        """Probabilities as each learner's library computes and stores them.

        XGBoost and the MLP compute in float32, where large scores are tied at 1; `predict_proba`
        computes in float64, where they are not.

        Parameters
        ----------
        X : array-like, scipy.sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of float64, shape (n_rows, n_labels)
        """
        if self._fitted()._line is not None:
            return self.predict_proba(X)
        rows = self._read_rows(X)
        backend = get_backend(self.learner)
        stored = np.empty((rows.shape[0], self.n_labels), np.float64)
        for group, model in zip(self._groups, self._models, strict=True):
            stored[:, group] = backend.predict_stored(model, rows)
        stored[:, self.constant_] = self.prevalence_[self.constant_]
        return stored

    def as_probability(self, margins: Floats) -> Floats:
        """Margins of all labels as probabilities; a label without a model gets its prevalence."""
        from scipy.special import expit

        probabilities: Floats = expit(margins)
        if self._line is None:
            probabilities[:, self.constant_] = self.prevalence_[self.constant_]
        return probabilities

    def with_line(self, intercept: Floats, slope: Floats) -> Self:
        """A copy whose margins are intercept + slope x margin, see `oddslip.fold`.

        Parameters
        ----------
        intercept, slope : ndarray of shape (n_labels,)

        Returns
        -------
        OneVsRest
        """
        copied = copy(self._fitted())
        if self._line is not None:
            intercept, slope = intercept + slope * self._line[0], slope * self._line[1]
        copied._line = (intercept, slope)
        return copied

    @property
    def n_rounds(self) -> int:
        """Rounds of a boosted learner: those of the label that has most."""
        backend = get_backend(self._fitted().learner)
        return max((backend.n_rounds(model) for model in self._models), default=0)

    def staged_margin(self, X: FeaturesLike, rounds: Sequence[int]) -> list[Floats]:
        """Log-odds of every label after some of the rounds of a boosted learner.

        Parameters
        ----------
        X : array-like, scipy.sparse matrix or data frame of shape (n_rows, n_features)
        rounds : sequence of int
            Ascending numbers of rounds.

        Returns
        -------
        list of ndarray of shape (n_rows, n_labels)
        """
        rows, backend = self._read_rows(X), get_backend(self.learner)
        margins = self._first_margins(rows.shape[0])
        stages, start = [], 0
        for stop in rounds:
            for group, model in zip(self._groups, self._models, strict=True):
                margins[:, group] += backend.stage(model, rows, start, stop)
            start = stop
            stages.append(self._repaired(margins.copy()))
        return stages

    def _repaired(self, margins: Floats) -> Floats:
        """Margins after the repair inside, if there is one."""
        return margins if self._line is None else self._line[0] + self._line[1] * margins

    def panel(self, X: FeaturesLike, labels: LabelsLike = None) -> Panel:
        """A panel of margins.

        Parameters
        ----------
        X : array-like, scipy.sparse matrix or data frame of shape (n_rows, n_features)
        labels : optional
            True labels of these rows.

        Returns
        -------
        Panel
        """
        return self._panel(self.predict_margin(X), X, labels)

    def _panel(self, margins: Floats, X: FeaturesLike, labels: LabelsLike) -> Panel:
        ids = frame_ids(X)
        panel = Panel(margins, kind="margin", label_names=self.label_names_, row_ids=ids)
        return label_panel(panel, X, labels)

    def _read_rows(self, X: FeaturesLike) -> FeaturesLike:
        """Rows to score, with features in the order of training."""
        names = getattr(self._fitted(), "feature_names_in_", None)
        return sliceable(check_features(X, self.n_features_in_, names))

    def _name_features(self, names: Sequence[str] | None) -> None:
        """Set or delete the attribute, as scikit-learn does."""
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, object)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self._fitted().prevalence_.size)

    def save(self, path: FilePath) -> None:
        """Write the model to one file, atomically and without pickle.

        Parameters
        ----------
        path : str or path
            Read by `load`.
        """
        backend = get_backend(self._fitted().learner)
        estimator = {key: value for key, value in self.get_params().items() if key not in _UNSAVED}
        head = {
            "estimator": plain(estimator),
            "weights": self.weights_.tolist(),
            "n_positives": self.n_positives_.tolist(),
            "n_rows": self.n_rows_,
            "n_features": self.n_features_in_,
            "feature_names": plain(getattr(self, "feature_names_in_", None)),
            "label_names": self.label_names_,
            "groups": [group.tolist() for group in self._groups],
        }
        if self._line is not None:
            head["line"] = [each.tolist() for each in self._line]
        dumps = {
            f"group-{number:05d}{backend.extension}": backend.dump(model)
            for number, model in enumerate(self._models)
        }
        write_model(path, head, dumps)

    @classmethod
    def load(cls, path: FilePath) -> Self:
        """Read a model that `save` wrote.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        OneVsRest
        """
        head, dumps = read_model(path)
        try:
            check_head(head)
            model = cls(**head["estimator"])
            backend = get_backend(model.learner)
            model.weights_ = np.array(head["weights"], np.float64)
            positives = np.array(head["n_positives"], np.int64)
            model._count(positives, int(head["n_rows"]))
            model.n_features_in_ = int(head["n_features"])
            model._name_features(head.get("feature_names"))  # missing in older files
            model.label_names_ = check_names(head["label_names"], positives.size)
            if head.get("line") is not None:
                intercept, slope = np.array(head["line"], np.float64)
                model._line = (intercept, slope)
            model.parameters_ = model._parameters(backend)
            model._groups = check_groups(head["groups"], model._labels_with_model(backend))
            if len(dumps) != len(model._groups):
                raise ValueError(f"{len(model._groups)} groups must be stored, got {len(dumps)}")
        except MissingDependency:
            raise
        except DAMAGED as error:
            raise UnreadableFile(
                f"{path} is not a saved OneVsRest ({first_line(error)})."
            ) from error
        try:
            model._models = [
                load_group(backend, body, group.size, model.n_features_in_)
                for group, body in zip(model._groups, dumps, strict=True)
            ]
        except UnreadableFile as error:
            raise UnreadableFile(f"{path}: {error}") from error
        return model

    def _count(self, positives: Ints, n_rows: int) -> None:
        self.n_rows_ = n_rows
        self.n_positives_, self.prevalence_ = positives, positives / n_rows
        self.constant_ = (positives == 0) | (positives == n_rows)

    def _labels_with_model(self, backend: Backend) -> Ints:
        """Indices of the labels that have a model."""
        if backend.trains_constants(self.parameters_):
            return np.arange(self.constant_.size)
        return np.flatnonzero(~self.constant_)

    def _fitted(self) -> Self:
        if not hasattr(self, "_models"):
            raise InvalidInput("OneVsRest must be fitted first. Call fit(X, Y).")
        return self

    def _parameters(self, backend: Backend) -> Parameters:
        if not isinstance(self.parameters, Mapping | None):
            raise InvalidInput(
                f"parameters must be a mapping of names to values, got {self.parameters!r:.60}."
            )
        defaults = backend.defaults()
        parameters = backend.canonical(dict(self.parameters or {}))
        for key in _RESERVED:
            if key in parameters:
                raise InvalidInput(
                    f"parameters must not hold {key!r}. Pass it to OneVsRest itself: {key}=..."
                )
        settings = defaults | self._preset_parameters() | parameters
        cap = 0.0 if self.max_delta_step is None else self.max_delta_step
        if not (is_number(cap) and 0 <= cap < np.inf):
            raise InvalidInput(f"max_delta_step must be at least 0, got {self.max_delta_step}.")
        cap = float(cap)
        if cap and "max_delta_step" not in defaults:
            raise InvalidInput(
                f"max_delta_step must be 0 for learner={self.learner!r}, which has no cap of "
                f"leaves, got {cap:g}."
            )
        seed = check_whole("seed", self.seed, 0, MAX_SEED)
        fixed = {"max_delta_step": cap, "mode": self.mode, "seed": seed, "threads": 1}
        return settings | {key: value for key, value in fixed.items() if key in defaults}

    def _preset_parameters(self) -> Parameters:
        if self.preset is None:
            return {}
        if preset_learner(self.preset) != self.learner:
            raise InvalidInput(
                f"preset {self.preset!r} must be used with "
                f"learner={preset_learner(self.preset)!r}, got {self.learner!r}."
            )
        return preset_parameters(self.preset)

    def _check_shared(self, prepared: Prepared, parameters: Parameters) -> None:
        ours = {k: v for k, v in parameters.items() if k not in _UNSHARED}
        theirs = {k: v for k, v in prepared.parameters.items() if k not in _UNSHARED}
        if (self.learner, ours) != (prepared.learner, theirs):
            raise InvalidInput(
                "X must be prepared by a OneVsRest of the same learner and parameters; only "
                "weights, max_delta_step and mode may differ. Call prepare again."
            )

    def _configuration(self, rows: FeaturesLike, columns: LabelColumns) -> JsonObject:
        """Everything that the trained bits depend on."""
        parameters = {key: value for key, value in self.parameters_.items() if key != "threads"}
        return {
            "learner": self.learner,
            "parameters": plain(parameters),
            "seed": int(self.seed),
            "versions": get_backend(self.learner).versions(),
            "features": hash_features(rows),
            "labels": columns.hash(),
            "weights": hash_bytes(self.weights_.tobytes()),
        }
