"""A repair as a JSON document for other languages, described in docs/serving.md."""

from __future__ import annotations

import json

import numpy as np

from oddslip.core.types import FilePath, Floats, JsonObject
from oddslip.decisions.list_rule import ListRule
from oddslip.io.json import with_checksum
from oddslip.io.paths import check_path
from oddslip.repairs.fitted_repair import FittedRepair
from oddslip.repairs.map_forms import (
    AFFINE,
    BETA,
    CONSTANT,
    KNOTS,
    compared_constants,
)
from oddslip.repairs.row_aware import RowAwareMaps
from oddslip.serving.export import Export, describe_repair, names_of, write_export
from oddslip.serving.map_pieces import FORMS

SCHEMA = "oddslip.maps/1"
STAGE_SCHEMA = "oddslip.maps/2"  # with a row-aware stage, which readers of the first must refuse


def export_json(repair: FittedRepair, path: FilePath, rule: ListRule | None = None) -> Export:
    """Write the maps as JSON, atomically. See `oddslip.FittedRepair.to_json`."""
    check_path("path", path)
    document = describe_maps(repair)
    if rule is not None:
        document["decision"] = describe_rule(rule)
    text = json.dumps(with_checksum(document), ensure_ascii=False, allow_nan=False)
    return write_export(path, "JSON", f"{text}\n".encode())


def describe_rule(rule: ListRule) -> JsonObject:
    """Everything needed to choose the labels of a ranked row, in built-in types."""

    def numbers(values: Floats) -> list[float | str]:
        return [value if np.isfinite(value) else "Infinity" for value in values.tolist()]

    return {
        "form": rule.form,
        "k_max": rule.k_max,
        "groups": None if rule.groups is None else list(rule.groups),
        "levels": numbers(rule.levels),
        "thresholds": None if rule.thresholds is None else numbers(rule.thresholds),
        "costs": list(rule.costs),
    }


def describe_maps(repair: FittedRepair) -> JsonObject:
    """Everything needed to map and to rank, in built-in types."""
    maps = repair.maps
    constants = compared_constants(maps)
    ranges: dict[tuple[int, int], int] = {}  # labels may share their knots
    labels: list[JsonObject] = []
    for at, name in enumerate(names_of(repair)):
        code = int(maps.code[at])
        label: JsonObject = {"name": name, "form": FORMS[code]}
        if code == KNOTS:
            span = int(maps.start[at]), int(maps.stop[at])
            label["knots"] = ranges.setdefault(span, len(ranges))
        elif code == CONSTANT:
            value = float(constants[at])
            label["probability"] = float(maps.a[at])
            label["value"] = value if np.isfinite(value) else "Infinity"
        elif code == AFFINE:
            label |= {"a": float(maps.a[at]), "b": float(maps.b[at])}
        elif code == BETA:
            label |= {name: float(getattr(maps, name)[at]) for name in "abc"}
        labels.append(label)
    knots = [
        {"x": maps.x[start:stop].tolist(), "y": maps.y[start:stop].tolist()}
        for start, stop in ranges
    ]
    document: JsonObject = {
        "schema": SCHEMA,
        **describe_repair(repair),
        "step": bool(maps.step),
        "knots": knots,
        "labels": labels,
    }
    if isinstance(maps, RowAwareMaps):
        stage = {name: np.asarray(value).tolist() for name, value in maps.stage._asdict().items()}
        document |= {"schema": STAGE_SCHEMA, "stage": stage}
    return document
