"""Exports of a repair: the file, its result, and the description that every form includes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from oddslip import __version__
from oddslip.calibrators.fitted_repair import FittedRepair
from oddslip.core.results import plain
from oddslip.core.types import FilePath, JsonObject
from oddslip.io.files import atomic_write, check_bytes
from oddslip.io.paths import check_path


@dataclass(frozen=True, slots=True)
class Export:
    """A repair in another form.

    Attributes
    ----------
    path : Path
        The file.
    form : str
        ONNX, SQL or JSON.
    n_bytes : int
        Size of the file.
    largest_deviation : float
        Largest difference of a probability from ours; 0 unless computed in lower precision.
    """

    path: Path
    form: str
    n_bytes: int
    largest_deviation: float = 0.0

    def to_dict(self) -> JsonObject:
        """All fields in built-in types."""
        return {
            "schema": "oddslip.export/1",
            "path": str(self.path),
            "form": self.form,
            "n_bytes": self.n_bytes,
            "largest_deviation": self.largest_deviation,
        }


def write_export(path: FilePath, form: str, raw: bytes, largest_deviation: float = 0.0) -> Export:
    """Write an export atomically, and read it back before it takes its place."""
    path = check_path("path", path)
    with atomic_write(path, check=check_bytes(raw)) as unfinished:
        unfinished.write_bytes(raw)
    return Export(path, form, len(raw), largest_deviation)


def describe_repair(repair: FittedRepair) -> JsonObject:
    """Origin of a repair, in built-in types."""
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
    """Names of the labels, or their indices if they have none."""
    return list(repair.label_names or map(str, range(repair.maps.n_labels)))
