"""Exports of a repair: the file, its result, and the description that every form includes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from oddslip import __version__
from oddslip.core.arguments import check_k
from oddslip.core.results import plain
from oddslip.core.types import FilePath, Floats, JsonObject
from oddslip.decisions.list_rule import ListRule
from oddslip.errors import InvalidInput
from oddslip.io.files import write_bytes
from oddslip.io.paths import check_path
from oddslip.repairs.fitted_repair import FittedRepair


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
    write_bytes(path, raw)
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


class SimpleRule(NamedTuple):
    """Slots per row, and the lowest probability that is shown of each label, if any."""

    k: int
    thresholds: Floats | None


def simplify(rule: ListRule, form: str) -> SimpleRule:
    """A rule of thresholds or of one length; refuses others, which need sums over a row."""
    if rule.groups is not None or rule.form not in ("threshold", "length"):
        by = "groups of rows" if rule.groups is not None else f"the expected {rule.form} of a row"
        raise InvalidInput(
            f"{form} takes thresholds and lists of one length, got lists by {by}. Use to_json, or "
            "serve them with oddslip.serving.load_runtime."
        )
    level = float(rule.levels[0])
    if rule.form == "length" and level < 1:
        raise InvalidInput(f"{form} takes lists of at least one label, got lists of none.")
    if rule.thresholds is not None:
        return SimpleRule(rule.k_max, np.maximum(rule.thresholds, level))
    return SimpleRule(check_k(int(min(level, rule.k_max)), rule.k_max), None)


def names_of(repair: FittedRepair) -> list[str]:
    """Names of the labels, or their indices if they have none."""
    return list(repair.label_names or map(str, range(repair.maps.n_labels)))
