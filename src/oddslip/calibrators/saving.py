"""A fitted repair as one file: arrays and JSON, versioned, checksummed, never pickled.

::

    8 bytes   b"oddslip\\0"
    4 bytes   format version, little-endian
    8 bytes   length of the header, little-endian
    header    JSON: what was fitted, label names, and name, type and shape of each array
    arrays    raw bytes, one after another, little-endian
    32 bytes  SHA-256 of everything before

Nothing is compressed, so a small file can not unfold into a large one. A newer oddslip reads
older formats; an older one refuses newer formats.
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip import __version__
from oddslip.calibrators.dead_labels import LabelRecord
from oddslip.calibrators.fitted import FittedRepair
from oddslip.calibrators.maps import LabelMaps
from oddslip.errors import OddslipError, UnreadableFile
from oddslip.panels import check_names
from oddslip.results import plain
from oddslip.sources.sinks import whole_file

MAGIC = b"oddslip\0"
FORMAT = 1
_START = struct.Struct("<8sIQ")
_DIGEST = 32
_MAP_ARRAYS = {
    "code": "|i1", "a": "<f8", "b": "<f8", "c": "<f8",
    "start": "<i8", "stop": "<i8", "x": "<f8", "y": "<f8",
}  # fmt: skip
_RECORD_ARRAYS = {"n_positives": "<i8", "prior": "<f8", "dead": "|b1"}
_ARRAYS = _MAP_ARRAYS | _RECORD_ARRAYS


def save_repair(repair: FittedRepair, path: Any) -> None:
    """Write a fitted repair, whole or not at all."""
    owners = [(name, repair.maps) for name in _MAP_ARRAYS] + [
        (name, repair.record) for name in _RECORD_ARRAYS
    ]
    arrays = {
        name: np.ascontiguousarray(getattr(owner, name), _ARRAYS[name]) for name, owner in owners
    }
    actions = sorted(set(repair.record.action))
    header = {
        "written_by": f"oddslip {__version__}",
        "calibrator": repair.calibrator,
        "parameters": plain(repair.parameters),
        "kind": repair.maps.kind,
        "scale": repair.maps.scale,
        "step": bool(repair.maps.step),
        "n_rows": int(repair.n_rows),
        "label_names": None if repair.label_names is None else list(repair.label_names),
        "prior_source": repair.record.prior_source,
        "actions": actions,
        "action": [actions.index(action) for action in repair.record.action],
        "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()],
    }
    text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode()
    digest = hashlib.sha256()
    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        for piece in (
            _START.pack(MAGIC, FORMAT, len(text)),
            text,
            *(array.tobytes() for array in arrays.values()),
        ):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())


def load_repair(path: Any) -> FittedRepair:
    """Read a fitted repair saved by this or an older version.

    Examples
    --------
    >>> load_repair("repair.oddslip").rank("scores.npy", k=7)  # doctest: +SKIP
    """
    path = Path(path)
    body = _read_body(path)
    try:
        return _rebuild(body)
    except OddslipError as error:
        raise UnreadableFile(f"{path} holds a repair that does not add up: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UnreadableFile(
            f"{path} holds a repair that does not add up ({type(error).__name__})."
        ) from error


def _read_body(path: Path) -> bytes:
    """Everything after the version, once the checksum agrees."""
    try:
        with path.open("rb") as file:
            start = file.read(_START.size)
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
            rest = file.read()
    except UnreadableFile:
        raise
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be read ({error.strerror}).") from error
    if len(rest) < length + _DIGEST:
        raise UnreadableFile(f"{path} is cut short. Save the repair again.")
    if hashlib.sha256(start + rest[:-_DIGEST]).digest() != rest[-_DIGEST:]:
        raise UnreadableFile(
            f"{path} was altered or cut short: its checksum does not agree. Save the repair again."
        )
    return start[-8:] + rest[:-_DIGEST]


def _rebuild(body: bytes) -> FittedRepair:
    (length,) = struct.unpack("<Q", body[:8])
    header = json.loads(body[8 : 8 + length])
    arrays = _unpack_arrays(header["arrays"], body[8 + length :])
    maps = LabelMaps(
        kind=header["kind"],
        scale=header["scale"],
        step=header["step"],
        **{name: arrays[name] for name in _MAP_ARRAYS},
    )
    action = tuple(header["actions"][number] for number in header["action"])
    if not all(isinstance(name, str) for name in action):
        raise ValueError("actions must be text")
    sizes = {len(action), *(arrays[name].size for name in _RECORD_ARRAYS)}
    if sizes != {maps.n_labels}:
        raise ValueError("record and maps differ in length")
    return FittedRepair(
        maps=maps,
        label_names=check_names(header["label_names"], maps.n_labels),
        record=LabelRecord(
            action=action,
            prior_source=str(header["prior_source"]),
            **{name: arrays[name] for name in _RECORD_ARRAYS},
        ),
        calibrator=str(header["calibrator"]),
        parameters=dict(header["parameters"]),
        n_rows=int(header["n_rows"]),
    )


def _unpack_arrays(listed: list[Any], data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays by name; their types, order and total length must be as written above."""
    arrays: dict[str, NDArray[Any]] = {}
    offset = 0
    for (name, dtype, shape), wanted in zip(listed, _ARRAYS.items(), strict=True):
        (size,) = shape
        if (name, dtype) != wanted or size < 0:
            raise ValueError("unexpected array")
        width = np.dtype(dtype).itemsize
        arrays[name] = np.frombuffer(data, dtype, size, offset).copy()
        offset += size * width
    if offset != len(data):
        raise ValueError("bytes left over")
    return arrays
