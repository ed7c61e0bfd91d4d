"""What every export tells: where a repair comes from, and what was written where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oddslip import __version__
from oddslip.calibrators.fitted_repair import FittedRepair
from oddslip.core.results import plain


@dataclass(frozen=True, slots=True)
class Export:
    """A repair in another form.

    Attributes
    ----------
    path : Path
        What was written.
    form : str
        ONNX, SQL or JSON.
    n_bytes : int
    largest_deviation : float
        By how much a probability differs from ours at most, where it was computed less precisely;
        0 where nothing was rounded.
    """

    path: Path
    form: str
    n_bytes: int
    largest_deviation: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only."""
        return {
            "schema": "oddslip.export/1",
            "path": str(self.path),
            "form": self.form,
            "n_bytes": self.n_bytes,
            "largest_deviation": self.largest_deviation,
        }


def describe_repair(repair: FittedRepair) -> dict[str, Any]:
    """Where a repair comes from; built-in types only."""
    return plain(  # type: ignore[no-any-return]
        {
            "written_by": f"oddslip {__version__}",
            "calibrator": repair.calibrator,
            "parameters": repair.parameters,
            "n_calibration_rows": repair.n_rows,
            "kind": repair.maps.kind,
            "scale": repair.maps.scale,
            "n_labels": repair.maps.n_labels,
        }
    )


def names_of(repair: FittedRepair) -> list[str]:
    """Names of the labels; their indices where they have none."""
    return list(repair.label_names or map(str, range(repair.maps.n_labels)))
