"""The file of a saved repair: a container with the label maps, the record of the fit, counts.

NumPy only: `fitted_repair` makes a repair of what is read here, and `oddslip.serving.runtime`
serves it where nothing else is installed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.core.arguments import check_k, check_names
from oddslip.errors import InvalidInput, OddslipError, UnreadableFile
from oddslip.io.container import START, older_kind, read_container, read_start, write_container
from oddslip.io.inputs import read_bytes
from oddslip.io.json import parse_json
from oddslip.io.paths import check_path
from oddslip.repairs.map_forms import PlainMaps, check_maps
from oddslip.repairs.row_stage import RowStage, check_stage

MAP_ARRAYS = {
    "code": "|i1",
    "a": "<f8",
    "b": "<f8",
    "c": "<f8",
    "start": "<i8",
    "stop": "<i8",
    "x": "<f8",
    "y": "<f8",
}
RECORD_ARRAYS = {"n_positives": "<i8", "prior": "<f8", "dead": "|b1"}
STAGE_ARRAYS = {"partners": "<i4", "lift": "<f8", "prevalence": "<f8"}
STAGE_NUMBERS = ("slope", "intercept", "support")
FINGERPRINT_ARRAYS = {
    "bin_first": "<i8",
    "bin_size": "<i8",
    "bin_counts": "<u4",
    "saturated": "<i8",
    "slots": "<i8",
}
DECISION_ARRAYS = {
    "level": "<f8",
    "threshold": "<f8",
    "plug_in": "<f8",
    "fitted": "<f8",
    "n_true": "<i8",
}
FINGERPRINT_COUNTS = ("n_rows", "n_tied", "shown_sum", "shown_squares")
# Bins of log-odds, those of `oddslip.tallies.logodds_histogram`.
N_BINS = {"probability": 639, "margin": 640}
UNIT = 2.0**-32  # of sums of probabilities: integers add up alike in any order
_DIGEST_BYTES = 32

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


class RepairFile(NamedTuple):
    """The validated contents of a file: the maps, and what describes each label and the fit."""

    arrays: Arrays
    maps: PlainMaps
    label_names: tuple[str, ...] | None
    action: tuple[str, ...]
    calibrator: str
    parameters: dict[str, Any]
    prior_source: str
    n_rows: int
    fingerprint: dict[str, Any] | None
    stage: RowStage | None
    decision: dict[str, Any] | None


def write_repair_file(path: Any, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write the header and the arrays of a repair, atomically, and read them back first."""
    dtypes = array_types(header["fingerprint"], header.get("stage"), header.get("decision"))
    members = {name: np.asarray(arrays[name], dtype) for name, dtype in dtypes.items()}
    write_container(path, "repair", header, members, check=read_repair_file)


def array_types(fingerprint: Any, stage: Any = None, decision: Any = None) -> dict[str, str]:
    """Names and types of the arrays of a file, in their order; parts that are None have none."""
    parts = (fingerprint, FINGERPRINT_ARRAYS), (stage, STAGE_ARRAYS), (decision, DECISION_ARRAYS)
    types = MAP_ARRAYS | RECORD_ARRAYS
    for part, part_types in parts:
        types |= {} if part is None else part_types
    return types


def read_repair_file(path: Any) -> RepairFile:
    """Read and validate a repair, of this version or an older one.

    Parameters
    ----------
    path : path

    Returns
    -------
    RepairFile

    Raises
    ------
    UnreadableFile
        If the file is damaged, holds something else, or a repair that is inconsistent.

    Examples
    --------
    >>> read_repair_file("repair.oddslip").calibrator  # doctest: +SKIP
    'Isotonic'
    """
    path = check_path("path", path)
    older = older_kind(read_start(path)) == "repair"
    body = _read_older(path) if older else None
    try:
        if body is not None:
            return _validate(*_parse_older(body))
        container = read_container(path, "repair")
        return _validate(container.meta, container.arrays)
    except UnreadableFile:
        raise
    except OddslipError as error:
        raise UnreadableFile(f"{path} holds a repair that does not add up: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise UnreadableFile(
            f"{path} holds a repair that does not add up ({type(error).__name__})."
        ) from error


# ------------------------------------------------------------------------- files of 0.1 and of 0.2


def _read_older(path: Path) -> bytes:
    """The length of the header, the header and the arrays, once the checksum agrees."""
    raw = read_bytes(path)
    if hashlib.sha256(raw[:-_DIGEST_BYTES]).digest() != raw[-_DIGEST_BYTES:]:
        raise UnreadableFile(
            f"{path} was altered or cut short: its checksum does not agree. Save the repair again."
        )
    return raw[START.size - 8 : -_DIGEST_BYTES]


def _parse_older(body: bytes) -> tuple[Header, Arrays]:
    """Header and arrays, which follow one another without a gap."""
    offset = 8 + int.from_bytes(body[:8], "little")
    header = parse_json(body[8:offset])
    arrays: Arrays = {}
    for name, dtype, (size,) in header["arrays"]:
        if dtype != array_types(header.get("fingerprint"))[name] or size < 0:
            raise ValueError("unexpected array")
        arrays[name] = np.frombuffer(body, dtype, size, offset).copy()
        offset += arrays[name].nbytes
    if offset != len(body):
        raise ValueError("bytes left over")
    return header, arrays


# --------------------------------------------------------------------------------------- validation


def _validate(header: Header, arrays: Arrays) -> RepairFile:
    fingerprint, stage, decision = map(header.get, ("fingerprint", "stage", "decision"))
    types = {name: array.dtype.str for name, array in arrays.items() if array.ndim == 1}
    if list(types.items()) != list(array_types(fingerprint, stage, decision).items()):
        raise ValueError("unexpected arrays")
    maps = PlainMaps(
        kind=header["kind"],
        scale=header["scale"],
        step=header["step"],
        **{name: arrays[name] for name in MAP_ARRAYS},
    )
    check_maps(maps)
    n_labels = maps.code.size
    action = tuple(header["actions"][number] for number in header["action"])
    if not all(isinstance(name, str) for name in action):
        raise ValueError("actions must be text")
    if {len(action), *(arrays[name].size for name in RECORD_ARRAYS)} != {n_labels}:
        raise ValueError("record and maps differ in length")
    _check_record(arrays, header["n_rows"])
    if fingerprint is not None:
        _check_fingerprint(fingerprint, arrays, maps.kind, n_labels)
    return RepairFile(
        arrays=arrays,
        maps=maps,
        label_names=check_names(header["label_names"], n_labels),
        action=action,
        calibrator=str(header["calibrator"]),
        parameters=dict(header["parameters"]),
        prior_source=str(header["prior_source"]),
        n_rows=header["n_rows"],
        fingerprint=fingerprint,
        stage=None if stage is None else _read_stage(stage, arrays, maps),
        decision=None if decision is None else dict(decision),
    )


def _read_stage(header: Any, arrays: Arrays, maps: PlainMaps) -> RowStage:
    """The row-aware stage, validated."""
    shape = maps.code.size, -1
    numbers = {name: header[name] for name in STAGE_NUMBERS}
    if any(type(number) is not float for number in numbers.values()):
        raise InvalidInput("coefficients of a row stage must be numbers.")
    stage = RowStage(
        **numbers,
        partners=arrays["partners"].reshape(shape),
        lift=arrays["lift"].reshape(shape),
        prevalence=arrays["prevalence"],
    )
    check_stage(stage, maps)
    return stage


def _check_record(arrays: Arrays, n_rows: Any) -> None:
    """Refuse counts and priors that no fit can have left."""
    if type(n_rows) is not int or n_rows < 0:
        raise InvalidInput(f"n_rows must be a count, got {n_rows!r:.30}.")
    if (arrays["n_positives"] < 0).any() or (arrays["n_positives"] > n_rows).any():
        raise InvalidInput(f"n_positives must be between 0 and n_rows={n_rows!s:.30}.")
    if ((arrays["prior"] < 0) | (arrays["prior"] > 1)).any():
        raise InvalidInput("prior must be between 0 and 1.")
    if (arrays["dead"].view(np.uint8) > 1).any():
        raise InvalidInput("dead must be true or false.")


def _check_fingerprint(fingerprint: Any, arrays: Arrays, kind: str, n_labels: int) -> None:
    """Refuse counts that no rows can have left."""
    for name in FINGERPRINT_COUNTS:
        if type(fingerprint[name]) is not int or fingerprint[name] < 0:
            raise InvalidInput(f"{name} must be a count, got {fingerprint[name]!r:.30}.")
    n_rows, k = fingerprint["n_rows"], fingerprint["k"]
    if n_rows < 1:
        raise InvalidInput("a fingerprint must be of at least one row.")
    if k is not None:
        check_k(k, n_labels)
    slots, saturated = arrays["slots"], arrays["saturated"]
    if slots.size != (0 if k is None else n_labels) or saturated.size != n_labels:
        raise InvalidInput("a fingerprint must hold one count of each kind per label.")
    cells = _count_cells(arrays, N_BINS[kind], n_labels)
    if (cells > n_rows).any():
        raise InvalidInput(f"the bins of a label must hold at most n_rows={n_rows!s:.30} cells.")
    n_absent = n_rows * n_labels - int(cells.sum())
    # Files of version 0.2 do not say how many cells are absent.
    if fingerprint.get("n_absent", n_absent) != n_absent:
        raise InvalidInput(
            f"the bins must lack n_absent={fingerprint['n_absent']!r:.30} cells, got {n_absent}."
        )
    for name, counts in (("slots", slots), ("saturated", saturated)):
        if ((counts < 0) | (counts > cells[: counts.size])).any():
            raise InvalidInput(f"{name} must be between 0 and the cells of their label.")
    # A row leaves a slot empty only for want of cells.
    n_slots = n_rows * (k or 0)
    if not max(0, n_slots - n_absent) <= int(slots.sum()) <= n_slots:
        raise InvalidInput(f"slots must add up to k times n_rows={n_rows!s:.30}, less the empty.")
    max_rows = 0 if k is None else n_rows
    sums = max(fingerprint["shown_sum"], fingerprint["shown_squares"]) * UNIT
    if fingerprint["n_tied"] > max_rows or sums > max_rows:
        raise InvalidInput(f"what was shown must be of n_rows={n_rows!s:.30} rows.")
    _check_expected(fingerprint["expected"])


def _count_cells(arrays: Arrays, n_bins: int, n_labels: int) -> NDArray[np.int64]:
    """Cells of each label that are there, which are those in its bins."""
    first, size, counts = (arrays[name] for name in ("bin_first", "bin_size", "bin_counts"))
    if first.size != n_labels or size.size != n_labels:
        raise InvalidInput("a fingerprint must hold one row of bins per label.")
    wrong = (first < 0) | (size < 1) | (first > n_bins) | (size > n_bins)
    if wrong.any() or (first + size > n_bins).any() or int(size.sum()) != counts.size:
        raise InvalidInput(f"bins must lie in 0 to {n_bins}.")
    return np.add.reduceat(counts, np.cumsum(size) - size, dtype=np.int64)


def _check_expected(expected: Any) -> None:
    """Validate a metric out of fold and its standard error; None where nothing was chosen."""
    if expected is None:
        return
    metric, value, error = expected
    if not isinstance(metric, str) or any(type(each) not in (int, float) for each in expected[1:]):
        raise InvalidInput("what was expected must be a metric and two numbers.")
    if not (0 <= value <= 1 and 0 <= error < np.inf):
        raise InvalidInput("what was expected must be between 0 and 1, with a finite error.")
