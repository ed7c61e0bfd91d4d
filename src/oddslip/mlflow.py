"""Repairs and diagnoses in MLflow: metrics, the report, and a model that is code and arrays.

Needs ``pip install "oddslip[mlflow]"``. Uses the active run, or starts one.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oddslip import __version__
from oddslip.calibrators.base import ScoreTransformer
from oddslip.core.arguments import check_k
from oddslip.diagnosis.result import Diagnosis
from oddslip.errors import InvalidInput, MissingDependency
from oddslip.repairs.fitted_repair import FittedRepair
from oddslip.serving.export import describe_repair

if TYPE_CHECKING:
    from mlflow.models.model import ModelInfo

MODEL = Path(__file__).parent / "serving" / "mlflow_model.py"

__all__ = ["log_diagnosis", "log_repair"]


def log_repair(
    repair: object, *, k: int | None = None, name: str = "repair", **options: object
) -> ModelInfo:
    """Log a repair as a model: the saved file, and a few lines of code that serve it.

    Nothing is pickled. To load the model, only NumPy, oddslip and MLflow are needed. Its
    ``predict`` takes rows of scores and returns the top K as label indices, or the calibrated
    probabilities if ``k`` is 0.

    Parameters
    ----------
    repair : Repair, calibrator or FittedRepair
        Fitted. Of a `Repair`, the out-of-fold means of its candidates are logged too.
    k : int, optional
        Slots per row, unless ``params={"k": ...}`` says otherwise; default: the k of a `Repair`.
    name : str
        Name of the model.
    **options
        Passed to ``mlflow.pyfunc.log_model``.

    Returns
    -------
    mlflow.models.model.ModelInfo

    Examples
    --------
    >>> log_repair(repair, k=7).model_uri  # doctest: +SKIP
    'models:/m-0c6ea0b6f5ab4b7f8d6d5a3e6c2b1f0a'
    """
    mlflow = _load("log_repair")
    from mlflow.models import ModelSignature
    from mlflow.types import ParamSchema, ParamSpec

    fitted = repair.fitted_ if isinstance(repair, ScoreTransformer) else repair
    if not isinstance(fitted, FittedRepair):
        raise InvalidInput(f"log_repair needs a fitted repair, got {type(repair).__name__}.")
    k = getattr(repair, "k", None) if k is None else k
    slots = 0 if k is None else check_k(k, fitted.maps.n_labels)
    description = describe_repair(fitted)
    parameters = description.pop("parameters")
    mlflow.log_params({f"{name}.{key}": value for key, value in description.items()})
    mlflow.log_params({f"{name}.{key}": str(value)[:500] for key, value in parameters.items()})
    table = getattr(repair, "table_", None)
    if table is not None:
        metric = f"{name}/out_of_fold_{table.metric}_at_{table.k}"
        means = zip(table.candidates, table.means, strict=True)
        mlflow.log_metrics({f"{metric}/{_plain(each)}": mean for each, mean in means})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "repair.oddslip"
        fitted.save(path)
        defaults: dict[str, Any] = {
            "pip_requirements": ["numpy>=2.0.0", f"oddslip=={__version__}"],
            "signature": ModelSignature(params=ParamSchema([ParamSpec("k", "long", slots)])),
        }
        return mlflow.pyfunc.log_model(
            name=name,
            python_model=str(MODEL),
            artifacts={"repair": str(path)},
            **(defaults | options),
        )


def log_diagnosis(diagnosis: Diagnosis, *, name: str = "diagnosis") -> None:
    """Log a diagnosis: metrics of every rung, verdict and findings as tags, JSON and the report.

    Parameters
    ----------
    diagnosis : Diagnosis
        What `oddslip.diagnose` returned.
    name : str
        Prefix of the names of metrics, and folder of the files.

    Examples
    --------
    >>> log_diagnosis(oddslip.diagnose(scores, labels, k=7))  # doctest: +SKIP
    """
    mlflow = _load("log_diagnosis")
    from oddslip.reports.html.page import render_page

    if not isinstance(diagnosis, Diagnosis):
        raise InvalidInput(f"log_diagnosis needs a diagnosis, got {type(diagnosis).__name__}.")
    metrics = {
        f"{name}/{metric}_at_{diagnosis.k}/{_plain(rung.name)}": estimate.value
        for rung in diagnosis.ladder.rungs.values()
        for metric, estimate in rung.metrics.items()
    }
    mlflow.log_metrics(metrics)
    mlflow.set_tag(f"{name}.verdict", diagnosis.verdict.code)
    findings = ", ".join(finding.code for finding in diagnosis.findings)
    mlflow.set_tag(f"{name}.findings", findings)
    mlflow.log_dict(diagnosis.to_dict(), f"{name}/diagnosis.json")
    mlflow.log_text(render_page(diagnosis), f"{name}/report.html")


def _load(verb: str) -> Any:
    try:
        import mlflow
        import mlflow.pyfunc
    except ImportError as error:
        raise MissingDependency(
            f'{verb} needs mlflow. Run: pip install "oddslip[mlflow]"'
        ) from error
    return mlflow


def _plain(text: str) -> str:
    """The name without characters that MLflow rejects."""
    return re.sub(r"[^\w .:/-]", "", text)
