"""What a learner must offer to be trained one-vs-rest, where each lives, the paper's presets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput, MissingDependency, OddslipError


class Backend(ABC):
    """A learner. Labels are trained in groups; a group has one model.

    ``parameters`` is `defaults` with what the user said on top. Three keys come from `OneVsRest`
    itself, each only if `defaults` has it: ``max_delta_step``, ``mode`` and ``threads``, the
    threads this very call may use.
    """

    name: str
    extension: str  # of a saved group, such as ".lgb.txt"
    batches_rows: bool = False  # whether `train` wants Y as sparse rows

    @abstractmethod
    def defaults(self) -> dict[str, Any]:
        """Parameters and their default values."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Versions of the packages on which the trained bits depend."""

    def canonical(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Parameters under one name each; a name that the learner does not know is refused."""
        unknown = [name for name in parameters if name not in self.defaults()]
        if unknown:
            raise InvalidInput(
                f"parameters of {self.name} must be among {', '.join(self.defaults())}, "
                f"got {unknown[0]!r}."
            )
        return dict(parameters)

    def workers(self, parameters: dict[str, Any], threads: int) -> int:
        """Groups that may be trained side by side; one unless a learner says more."""
        return 1

    def trains_constants(self, parameters: dict[str, Any]) -> bool:
        """Whether labels of a single class are trained too, though their scores are not used."""
        return False

    @abstractmethod
    def prepare(self, X: Any, parameters: dict[str, Any]) -> Any:
        """What all labels and arms share: a binned, quantised or standardised X."""

    @abstractmethod
    def group_size(self, n_labels: int, n_rows: int, n_features: int, memory_bytes: int) -> int:
        """Labels to train together so that a group's working memory stays in the budget."""

    @abstractmethod
    def train(
        self,
        prepared: Any,
        Y: NDArray[np.uint8],
        weights: NDArray[np.float64],
        parameters: dict[str, Any],
        seed: int,
    ) -> Any:
        """Model of a group: ``Y`` is (n_rows, g), each label has a positive and a negative."""

    @abstractmethod
    def predict_margin(self, model: Any, X: Any) -> NDArray[np.float64]:
        """Raw log-odds of a block of rows, shape (rows, g)."""

    def predict_stored(self, model: Any, X: Any) -> NDArray[Any]:
        """Probabilities as the learner's own library computes and stores them."""
        from scipy.special import expit

        return np.asarray(expit(self.predict_margin(model, X)))

    def n_rounds(self, model: Any) -> int:
        """Rounds of boosting; refused by a learner that has none."""
        raise InvalidInput(
            f"early_stopping must be left out for learner={self.name!r}, which has no rounds."
        )

    def stage(self, model: Any, X: Any, start: int, stop: int) -> NDArray[np.float64]:
        """What rounds ``start`` to ``stop`` add to the log-odds; the first adds where it starts."""
        raise NotImplementedError

    def cut(self, model: Any, n_rounds: int) -> Any:
        """The same model with its first rounds alone."""
        raise NotImplementedError

    @abstractmethod
    def dump(self, model: Any) -> bytes:
        """The model as bytes, without pickle."""

    @abstractmethod
    def load(self, data: bytes, n_labels: int | None = None, n_features: int | None = None) -> Any:
        """The model that was dumped, checked before any library or kernel sees it.

        The labels and features it must have are told where they are known.
        """


@contextmanager
def refusals(learner: str, *errors: type[Exception]) -> Iterator[None]:
    """What a learner refuses is refused by us, in its words.

    By then everything but the parameters was checked, and those are the learner's to judge: it
    trips over a type that it does not know as well.
    """
    refused: tuple[type[Exception], ...] = (*errors, TypeError, ValueError)
    try:
        yield
    except OddslipError:
        raise
    except refused as error:
        said = " ".join(str(error).partition("Stack trace")[0].split()).rstrip(".")[:400]
        raise InvalidInput(f"{learner} refuses this: {said}. See parameters and X.") from error


def _open_lightgbm() -> Backend:
    from oddslip.learners.backends.lightgbm import BACKEND

    return BACKEND


def _open_xgboost() -> Backend:
    from oddslip.learners.backends.xgboost import BACKEND

    return BACKEND


def _open_hist() -> Backend:
    from oddslip.learners.backends.hist import BACKEND

    return BACKEND


def _open_logistic() -> Backend:
    from oddslip.learners.backends.logistic import BACKEND

    return BACKEND


def _open_mlp() -> Backend:
    from oddslip.learners.backends.mlp import BACKEND

    return BACKEND


# Name of a learner: what loads it, and what to install.
_HOMES: dict[str, tuple[Callable[[], Backend], str]] = {
    "lightgbm": (_open_lightgbm, "oddslip[lightgbm]"),
    "xgboost": (_open_xgboost, "oddslip[xgboost]"),
    "hist": (_open_hist, "oddslip"),
    "logistic": (_open_logistic, "oddslip"),
    "mlp": (_open_mlp, "oddslip[mlp]"),
}
LEARNERS = tuple(_HOMES)


def get_backend(name: str) -> Backend:
    """The backend of a learner. Its package is loaded here and not before.

    Examples
    --------
    >>> get_backend("lightgbm").extension
    '.lgb.txt'
    """
    if not isinstance(name, str) or name not in _HOMES:
        raise InvalidInput(f"learner must be one of {', '.join(LEARNERS)}, got {name!r}.")
    open_backend, package = _HOMES[name]
    try:
        return open_backend()
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("oddslip"):
            raise
        raise MissingDependency(
            f'OneVsRest(learner="{name}") needs {error.name}. Run: pip install "{package}"'
        ) from error


# Name of a preset: its learner and its parameters.
_PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
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


def preset_parameters(name: str) -> dict[str, Any]:
    """Parameters of a preset.

    Examples
    --------
    >>> preset_parameters("paper-booster")["num_iterations"]
    60
    """
    preset_learner(name)  # refuses a name that is none
    return deepcopy(_PRESETS[name][1])
