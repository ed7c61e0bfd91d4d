"""The MLflow model that serves a saved repair; `oddslip.mlflow` logs this file."""

from __future__ import annotations

from typing import Any

import mlflow
from mlflow.pyfunc import PythonModel

from oddslip.serving.runtime import load_runtime


class RepairModel(PythonModel):  # type: ignore[misc]
    """A repair as an MLflow model."""

    def load_context(self, context: Any) -> None:
        """Read the logged repair."""
        self.runtime = load_runtime(context.artifacts["repair"])

    # MLflow would read type hints as a schema, so there are none.
    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
        """The top K of every row as label indices, or probabilities if k is 0."""
        k = int((params or {}).get("k", 0))
        return self.runtime.rank(model_input, k=k) if k else self.runtime.transform(model_input)


mlflow.models.set_model(RepairModel())
