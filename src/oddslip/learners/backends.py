"""What a learner must offer to be trained one-vs-rest, and where each learner lives."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput, MissingDependency

# Name of a learner: module, and what to install.
_HOMES = {
    "lightgbm": ("oddslip.learners.lightgbms", "oddslip[lightgbm]"),
    "xgboost": ("oddslip.learners.xgboosts", "oddslip[xgboost]"),
    "logistic": ("oddslip.learners.logistics", "oddslip"),
    "mlp": ("oddslip.learners.mlps", "oddslip[mlp]"),
}
LEARNERS = tuple(_HOMES)


class Backend(Protocol):
    """A learner. Labels are trained in groups; a group has one model.

    ``parameters`` is `defaults` with what the user said on top. Three keys come from `OneVsRest`
    itself, each only if `defaults` has it: ``max_delta_step``, ``mode`` and ``threads``, the
    threads this very call may use. A learner with ``batches_rows`` gets Y as sparse rows.
    """

    name: str
    extension: str  # of a saved group, such as ".lgb.txt"

    def defaults(self) -> dict[str, Any]:
        """Parameters and their default values."""
        ...

    def prepare(self, X: Any, parameters: dict[str, Any]) -> Any:
        """What all labels and arms share: a binned, quantised or standardised X."""
        ...

    def group_size(self, n_labels: int, n_rows: int, n_features: int, memory_bytes: int) -> int:
        """Labels to train together so that a group's working memory stays in the budget."""
        ...

    def train(
        self,
        prepared: Any,
        Y: NDArray[np.uint8],
        weights: NDArray[np.float64],
        parameters: dict[str, Any],
        seed: int,
    ) -> Any:
        """Model of a group: ``Y`` is (n_rows, g), each label has a positive and a negative."""
        ...

    def predict_margin(self, model: Any, X: Any) -> NDArray[np.float64]:
        """Raw log-odds of a block of rows, shape (rows, g)."""
        ...

    def dump(self, model: Any) -> bytes:
        """The model as bytes, without pickle."""
        ...

    def load(self, data: bytes) -> Any:
        """The model that was dumped."""
        ...


def get_backend(name: str) -> Backend:
    """The backend of a learner. Its package is loaded here and not before.

    Examples
    --------
    >>> get_backend("lightgbm").extension
    '.lgb.txt'
    """
    if name not in _HOMES:
        raise InvalidInput(f"learner must be one of {', '.join(LEARNERS)}, got {name!r}.")
    home, package = _HOMES[name]
    try:
        return cast("Backend", import_module(home).BACKEND)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("oddslip"):
            raise
        raise MissingDependency(
            f'OneVsRest(learner="{name}") needs {error.name}. Run: pip install "{package}"'
        ) from error


def count_workers(backend: Backend, parameters: dict[str, Any], threads: int) -> int:
    """Groups that may be trained side by side: what the backend says, else one."""
    said = getattr(backend, "workers", None)
    return 1 if said is None else int(said(parameters, threads))
