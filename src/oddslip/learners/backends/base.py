"""`Backend`: the interface of a learner; the registry of learners; the presets of the paper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.core.types import Array, FeaturesLike, Floats
from oddslip.errors import InvalidInput, MissingDependency, OddslipError

Parameters = dict[str, Any]  # of a learner: numbers, texts and lists by name
# What a backend makes of features and trains. Only the backend looks inside.
PreparedRows = Any
TrainedModel = Any


class Backend(ABC):
    """A learner. Labels are trained in groups; a group has one model.

    ``parameters`` are `defaults` updated with the user's. Three keys are set by `OneVsRest`, each
    only if `defaults` has it: ``max_delta_step``, ``mode`` and ``threads``, the number of threads
    this call may use.
    """

    name: str
    extension: str  # of a saved group, such as ".lgb.txt"
    batches_rows: bool = False  # whether `train` takes Y as sparse rows

    @abstractmethod
    def defaults(self) -> Parameters:
        """Parameters and their default values."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Versions of the packages on which the trained bits depend."""

    def canonical(self, parameters: Parameters) -> Parameters:
        """Parameters under their canonical names; an unknown name is an error."""
        unknown = [name for name in parameters if name not in self.defaults()]
        if unknown:
            raise InvalidInput(
                f"parameters of {self.name} must be among {', '.join(self.defaults())}, "
                f"got {unknown[0]!r}."
            )
        return dict(parameters)

    def workers(self, parameters: Parameters, threads: int) -> int:
        """Number of groups to train in parallel."""
        return 1

    def trains_constants(self, parameters: Parameters) -> bool:
        """Whether labels of a single class are trained too, though their scores are not used."""
        return False

    @abstractmethod
    def prepare(self, X: FeaturesLike, parameters: Parameters) -> PreparedRows:
        """The form of X that all labels and arms share: binned, quantised or standardised."""

    @abstractmethod
    def group_size(self, n_labels: int, n_rows: int, n_features: int, memory_bytes: int) -> int:
        """Labels per group, so that the working memory of a group stays in the budget."""

    @abstractmethod
    def train(
        self,
        prepared: PreparedRows,
        Y: NDArray[np.uint8],
        weights: Floats,
        parameters: Parameters,
        seed: int,
    ) -> TrainedModel:
        """Model of a group: ``Y`` is (n_rows, g), each label has a positive and a negative."""

    @abstractmethod
    def predict_margin(self, model: TrainedModel, X: FeaturesLike) -> Floats:
        """Raw log-odds of a block of rows, shape (rows, g)."""

    def predict_stored(self, model: TrainedModel, X: FeaturesLike) -> Array:
        """Probabilities as the learner's own library computes and stores them."""
        from scipy.special import expit

        return np.asarray(expit(self.predict_margin(model, X)))

    def n_rounds(self, model: TrainedModel) -> int:
        """Rounds of boosting; an error for a learner without rounds."""
        raise InvalidInput(
            f"rounds and early_stopping are for boosters, got learner={self.name!r}, which has no "
            "rounds."
        )

    def stage(self, model: TrainedModel, X: FeaturesLike, start: int, stop: int) -> Floats:
        """Log-odds added by rounds ``start`` to ``stop``; the first includes the initial margin."""
        raise NotImplementedError

    def cut(self, model: TrainedModel, n_rounds: int) -> TrainedModel:
        """The same model with only its first rounds."""
        raise NotImplementedError

    @abstractmethod
    def dump(self, model: TrainedModel) -> bytes:
        """The model as bytes, without pickle."""

    @abstractmethod
    def load(
        self, data: bytes, n_labels: int | None = None, n_features: int | None = None
    ) -> TrainedModel:
        """The dumped model, checked before it reaches any library or kernel.

        The expected numbers of labels and features are checked too, if known.
        """


@contextmanager
def refusals(learner: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn errors of a learner into ours, with its message; a context manager or a decorator.

    Everything except the parameters is checked before, and those only the learner can judge. An
    invalid one may also raise TypeError or ValueError.
    """
    kinds: tuple[type[Exception], ...] = (*errors, TypeError, ValueError)
    try:
        yield
    except OddslipError:
        raise
    except kinds as error:
        message = " ".join(str(error).partition("Stack trace")[0].split()).rstrip(".")[:400]
        raise InvalidInput(f"{learner} refuses this: {message}. See parameters and X.") from error


# What to install for each learner.
_INSTALLS = {
    "lightgbm": "oddslip[lightgbm]",
    "xgboost": "oddslip[xgboost]",
    "hist": "oddslip",
    "logistic": "oddslip",
    "mlp": "oddslip[mlp]",
}
LEARNERS = tuple(_INSTALLS)


def _import_backend(name: str) -> Backend:
    module: Any
    if name == "lightgbm":
        from oddslip.learners.backends import lightgbm as module
    elif name == "xgboost":
        from oddslip.learners.backends import xgboost as module
    elif name == "hist":
        from oddslip.learners.backends import hist as module
    elif name == "logistic":
        from oddslip.learners.backends import logistic as module
    else:
        from oddslip.learners.backends import mlp as module
    backend: Backend = module.BACKEND
    return backend


def get_backend(name: str) -> Backend:
    """The backend of a learner, whose library is only imported here.

    Examples
    --------
    >>> get_backend("lightgbm").extension
    '.lgb.txt'
    """
    if not isinstance(name, str) or name not in _INSTALLS:
        raise InvalidInput(f"learner must be one of {', '.join(LEARNERS)}, got {name!r}.")
    try:
        return _import_backend(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("oddslip"):
            raise
        raise MissingDependency(
            f'OneVsRest(learner="{name}") needs {error.name}. Run: pip install "{_INSTALLS[name]}"'
        ) from error


# Name of a preset: its learner and its parameters.
_PRESETS: dict[str, tuple[str, Parameters]] = {
    "paper-default": (
        "lightgbm",
        {
            "num_iterations": 200,
            "learning_rate": 0.05,
            "num_leaves": 31,
            "min_data_in_leaf": 20,
        },
    ),
    "paper-booster": (
        "lightgbm",
        {
            "num_iterations": 60,
            "learning_rate": 0.05,
            "num_leaves": 31,
            "min_data_in_leaf": 20,
        },
    ),
    "paper-regularised": (
        "lightgbm",
        {
            "num_iterations": 100,
            "learning_rate": 0.05,
            "num_leaves": 15,
            "min_data_in_leaf": 50,
            "lambda_l2": 1.0,
        },
    ),
    # The paper's section 4, as its supplement states them.
    "paper-xgboost": (
        "xgboost",
        {"n_estimators": 200, "learning_rate": 0.05, "max_depth": 5, "start": "weighted"},
    ),
    "paper-logistic": (
        "logistic",
        {"C": 1.0, "standardise": True, "solver": "lbfgs", "tol": 1e-4, "max_iter": 2000},
    ),
    "paper-mlp": (
        "mlp",
        {
            "hidden": [64, 64],
            "epochs": 200,
            "learning_rate": 1e-3,
            "batch_rows": 256,
            "weight_decay": 1e-4,
            "constants": True,
        },
    ),
    # Its section 3, as the supplement states it.
    "paper-mlp-pairs": (
        "mlp",
        {
            "hidden": [256, 256],
            "epochs": 20,
            "learning_rate": 1e-3,
            "batch_rows": 512,
            "weight_decay": 1e-4,
            "constants": True,
            "centre": False,
        },
    ),
}
PRESETS = tuple(_PRESETS)


def preset_learner(name: str) -> str:
    """The learner a preset belongs to.

    Examples
    --------
    >>> preset_learner("paper-mlp")
    'mlp'
    """
    if not isinstance(name, str) or name not in _PRESETS:
        raise InvalidInput(f"preset must be one of {', '.join(PRESETS)}, got {name!r}.")
    return _PRESETS[name][0]


def preset_parameters(name: str) -> Parameters:
    """Parameters of a preset.

    Examples
    --------
    >>> preset_parameters("paper-booster")["num_iterations"]
    60
    """
    preset_learner(name)  # raises for an unknown name
    return deepcopy(_PRESETS[name][1])
