"""The file of a saved repair: a header in JSON, arrays, a version and a checksum, never pickled.

NumPy alone: `saved` makes a repair of what is read here, and `oddslip.serving.runtime` serves it
where nothing else is installed.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.map_forms import PlainMaps, check_maps
from oddslip.core.arguments import check_k, check_names
from oddslip.errors import InvalidInput, OddslipError, UnreadableFile
from oddslip.io.files import atomic_write
from oddslip.io.inputs import read_bytes
from oddslip.io.json import parse_json
from oddslip.io.paths import check_path

MAGIC = b"oddslip\0"
FORMAT = 2  # 1 has no fingerprint
_START = struct.Struct("<8sIQ")
_DIGEST = 32
MAP_ARRAYS = {
    "code": "|i1", "a": "<f8", "b": "<f8", "c": "<f8",
    "start": "<i8", "stop": "<i8", "x": "<f8", "y": "<f8",
}  # fmt: skip
RECORD_ARRAYS = {"n_positives": "<i8", "prior": "<f8", "dead": "|b1"}
FINGERPRINT_ARRAYS = {
    "bin_first": "<i8", "bin_size": "<i8", "bin_counts": "<u4", "saturated": "<i8", "slots": "<i8",
}  # fmt: skip
FINGERPRINT_COUNTS = ("n_rows", "n_tied", "shown_sum", "shown_squares")
N_BINS = {
    "probability": 639,
    "margin": 640,
}  # of log-odds: those of `oddslip.tallies.logodds_histogram`
UNIT = 2.0**-32  # of sums of probabilities: whole numbers add up alike in any order

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


class Stored(NamedTuple):
    """What a file holds, checked: the maps, and what is told of each label and of the fit."""

    header: Header
    arrays: Arrays
    maps: PlainMaps
    label_names: tuple[str, ...] | None
    action: tuple[str, ...]
    calibrator: str
    parameters: dict[str, Any]
    prior_source: str
    n_rows: int
    fingerprint: dict[str, Any] | None


def write_stored(path: Any, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a header and the arrays of a repair, whole or not at all, and read them back first."""
    wanted = arrays_of(header["fingerprint"])
    laid = {name: np.ascontiguousarray(arrays[name], dtype) for name, dtype in wanted.items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in laid.items()]
    # A text may hold half of a surrogate pair, as Python's may; json reads it back.
    text = json.dumps({**header, "arrays": listed}, ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )
    digest = hashlib.sha256()
    with atomic_write(path, check=read_stored) as unfinished, unfinished.open("wb") as file:
        for piece in (
            _START.pack(MAGIC, FORMAT, len(text)),
            text,
            *(array.tobytes() for array in laid.values()),
        ):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())


def arrays_of(fingerprint: Any) -> dict[str, str]:
    """Names and types of the arrays of a file, in their order, with a fingerprint or without."""
    own = MAP_ARRAYS | RECORD_ARRAYS
    return own if fingerprint is None else own | FINGERPRINT_ARRAYS


def read_stored(path: Any) -> Stored:
    """What a file holds; whatever is wrong with it becomes one line."""
    path = check_path("path", path)
    body = _read_body(path)
    try:
        return _rebuild(body)
    except OddslipError as error:
        raise UnreadableFile(f"{path} holds a repair that does not add up: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise UnreadableFile(
            f"{path} holds a repair that does not add up ({type(error).__name__})."
        ) from error


def _read_body(path: Path) -> bytes:
    """Everything after the version, once the checksum agrees."""
    whole = read_bytes(path)
    start, rest = whole[: _START.size], whole[_START.size :]
    if not start.startswith(MAGIC):
        what = "an empty file" if not start else "not a saved repair"
        raise UnreadableFile(f"{path} is {what}. Save one with `oddslip fit`.")
    if len(start) < _START.size:
        raise UnreadableFile(f"{path} is cut short. Save the repair again.")
    _, version, length = _START.unpack(start)
    if version > FORMAT or version < 1:
        raise UnreadableFile(
            f"{path} has format {version}, this version reads up to {FORMAT}. "
            "Update oddslip, or save the repair again."
        )
    if len(rest) < length + _DIGEST:
        raise UnreadableFile(f"{path} is cut short. Save the repair again.")
    if hashlib.sha256(start + rest[:-_DIGEST]).digest() != rest[-_DIGEST:]:
        raise UnreadableFile(
            f"{path} was altered or cut short: its checksum does not agree. Save the repair again."
        )
    return start[-8:] + rest[:-_DIGEST]


def _rebuild(body: bytes) -> Stored:
    (length,) = struct.unpack("<Q", body[:8])
    header = parse_json(body[8 : 8 + length])
    fingerprint = header.get("fingerprint")
    arrays = _unpack_arrays(header["arrays"], body[8 + length :], arrays_of(fingerprint))
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
    return Stored(
        header=header,
        arrays=arrays,
        maps=maps,
        label_names=check_names(header["label_names"], n_labels),
        action=action,
        calibrator=str(header["calibrator"]),
        parameters=dict(header["parameters"]),
        prior_source=str(header["prior_source"]),
        n_rows=header["n_rows"],
        fingerprint=fingerprint,
    )


def _unpack_arrays(
    listed: list[Any], data: bytes, expected: dict[str, str]
) -> dict[str, NDArray[Any]]:
    """The arrays by name; their types, order and total length must be as written above."""
    arrays: dict[str, NDArray[Any]] = {}
    offset = 0
    for (name, dtype, shape), wanted in zip(listed, expected.items(), strict=True):
        (size,) = shape
        if (name, dtype) != wanted or size < 0:
            raise ValueError("unexpected array")
        width = np.dtype(dtype).itemsize
        arrays[name] = np.frombuffer(data, dtype, size, offset).copy()
        offset += size * width
    if offset != len(data):
        raise ValueError("bytes left over")
    return arrays


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


def _check_fingerprint(kept: Any, arrays: Arrays, kind: str, n_labels: int) -> None:
    """Refuse counts that no rows can have left."""
    for name in FINGERPRINT_COUNTS:
        if type(kept[name]) is not int or kept[name] < 0:
            raise InvalidInput(f"{name} must be a count, got {kept[name]!r:.30}.")
    n_rows, k = kept["n_rows"], kept["k"]
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
    if kept.get("n_absent", n_absent) != n_absent:
        raise InvalidInput(
            f"the bins must lack n_absent={kept['n_absent']!r:.30} cells, got {n_absent}."
        )
    for name, counts in (("slots", slots), ("saturated", saturated)):
        if ((counts < 0) | (counts > cells[: counts.size])).any():
            raise InvalidInput(f"{name} must be between 0 and the cells of their label.")
    # A row leaves a slot empty only for want of cells.
    n_slots = n_rows * (k or 0)
    if not max(0, n_slots - n_absent) <= int(slots.sum()) <= n_slots:
        raise InvalidInput(f"slots must add up to k times n_rows={n_rows!s:.30}, less the empty.")
    most = 0 if k is None else n_rows
    sums = max(kept["shown_sum"], kept["shown_squares"]) * UNIT
    if kept["n_tied"] > most or sums > most:
        raise InvalidInput(f"what was shown must be of n_rows={n_rows!s:.30} rows.")
    _check_expected(kept["expected"])


def _count_cells(arrays: Arrays, n_bins: int, n_labels: int) -> NDArray[np.int64]:
    """Cells of each label that are there, which are those in its bins."""
    first, size, counts = (arrays[name] for name in ("bin_first", "bin_size", "bin_counts"))
    if first.size != n_labels or size.size != n_labels:
        raise InvalidInput("a fingerprint must hold one row of bins per label.")
    wrong = (first < 0) | (size < 1) | (first > n_bins) | (size > n_bins)
    if wrong.any() or (first + size > n_bins).any() or int(size.sum()) != counts.size:
        raise InvalidInput(f"bins must lie in 0 to {n_bins}.")
    return np.add.reduceat(counts, np.cumsum(size) - size, dtype=np.int64)


def _check_expected(listed: Any) -> None:
    """What a metric was out of fold, and its standard error; None where nothing was chosen."""
    if listed is None:
        return
    metric, value, error = listed
    if not isinstance(metric, str) or any(type(each) not in (int, float) for each in listed[1:]):
        raise InvalidInput("what was expected must be a metric and two numbers.")
    if not (0 <= value <= 1 and 0 <= error < np.inf):
        raise InvalidInput("what was expected must be between 0 and 1, with a finite error.")
