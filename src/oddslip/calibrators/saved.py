"""`FittedRepair`: what a fitted calibrator leaves behind, applied to scores and kept in one file.

The file is arrays and JSON, versioned, checksummed, never pickled.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip import __version__
from oddslip.arguments import check_path
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.policy import LabelRecord
from oddslip.documents import parse_json
from oddslip.errors import InvalidInput, OddslipError, UnreadableFile
from oddslip.files import whole_file
from oddslip.inputs import read_bytes
from oddslip.panels import Panel, check_k, check_names
from oddslip.results import as_frame, html_table, plain
from oddslip.sources import Source, open_source

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


@dataclass(frozen=True, slots=True, eq=False)
class FittedRepair:
    """The maps of all labels, the labels' names, and what was done to each label.

    Attributes
    ----------
    maps : LabelMaps
        What is applied.
    label_names : tuple of str or None
        By which labels are matched, where both sides have names.
    record : LabelRecord
        What was done to each label.
    calibrator, parameters : str, dict
        Which calibrator it was, and how it was set.
    n_rows : int
        Calibration rows.
    """

    maps: LabelMaps
    label_names: tuple[str, ...] | None
    record: LabelRecord
    calibrator: str
    parameters: dict[str, Any]
    n_rows: int

    def transform(
        self, scores: Any, *, dtype: Any = None, threads: int | None = None
    ) -> NDArray[Any]:
        """Calibrated probabilities of all cells.

        Parameters
        ----------
        scores
            In any form `oddslip.evaluate` takes.
        dtype : optional
            Of what is returned; that of the scores unless told.
        threads : int, optional
            Threads to use; all cores available unless told.
        """
        source, maps = self._open(scores)
        try:
            dtype = np.dtype(dtype or source.dtype)
        except TypeError as error:
            raise InvalidInput(f"dtype must be one of NumPy's, got {dtype!r:.60}.") from error
        if not source.ordered:
            return source.transform(maps, dtype)  # type: ignore[no-any-return]
        out = np.empty((source.n_rows, source.n_labels), dtype)
        for first, block in self.transform_blocks(source, dtype=dtype, threads=threads):
            out[first : first + len(block)] = block
        return out

    def transform_blocks(
        self, scores: Any, *, dtype: Any = None, threads: int | None = None
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield (first row, calibrated block) in row order, for panels larger than memory.

        Takes the arguments of `transform`.
        """
        source, maps = self._open(scores)
        return source.map(
            lambda panel: maps.transform_panel(panel, dtype), threads=threads, what="repairing rows"
        )

    def rank(self, scores: Any, *, k: int, threads: int | None = None) -> NDArray[np.int32]:
        """Top K after calibration, in one pass, without building the repaired matrix.

        Parameters
        ----------
        scores
            In any form `oddslip.evaluate` takes.
        k : int
            Slots per row, ``1 <= k <= n_labels``.
        threads : int, optional
            Threads to use; all cores available unless told.
        """
        source, maps = self._open(scores)
        k = check_k(k, source.n_labels)
        if not source.ordered:
            return source.rank(k, maps)  # type: ignore[no-any-return]
        out = np.empty((source.n_rows, k), np.int32)
        for first, block in self.rank_blocks(source, k=k, threads=threads):
            out[first : first + len(block)] = block
        return out

    def rank_blocks(
        self, scores: Any, *, k: int, threads: int | None = None
    ) -> Iterator[tuple[int, NDArray[np.int32]]]:
        """Yield (first row, top K of the block) in row order; takes the arguments of `rank`."""
        source, maps = self._open(scores)
        k = check_k(k, source.n_labels)
        return source.map(
            lambda panel: maps.rank_panel(panel, k), threads=threads, what="ranking rows"
        )

    def save(self, path: Any) -> None:
        """Save to one file, whole or not at all. `oddslip.load_repair` reads it."""
        save_repair(self, path)

    def _open(self, scores: Any) -> tuple[Source, LabelMaps]:
        """The source, and the maps in the order of its labels."""
        source = open_as(self.maps.kind, scores)
        if source.kind != self.maps.kind:
            raise InvalidInput(
                f"this repair was fitted on {self.maps.kind} scores, got {source.kind} scores."
            )
        order = align_labels(self.label_names, self.maps.n_labels, source)
        return source, self.maps if order is None else self.maps.take(order)

    def to_dict(self) -> dict[str, Any]:
        """What was fitted and what was done to each label; built-in types only."""
        return plain(  # type: ignore[no-any-return]
            {
                "schema": "oddslip.repair/1",
                "calibrator": self.calibrator,
                "parameters": self.parameters,
                "kind": self.maps.kind,
                "n_labels": self.maps.n_labels,
                "n_rows": self.n_rows,
                "n_dead": self.record.n_dead,
                "prior_source": self.record.prior_source,
                "labels": self._label_columns(),
            }
        )

    def to_frame(self) -> Any:
        """A pandas frame with one line per label."""
        return as_frame(self._label_columns())

    def _label_columns(self) -> dict[str, Any]:
        names = self.label_names or tuple(str(j) for j in range(self.maps.n_labels))
        return {
            "label": list(names),
            "action": list(self.record.action),
            "n_positives": self.record.n_positives,
            "prior": self.record.prior,
        }

    def _repr_html_(self) -> str:
        counts = {action: self.record.action.count(action) for action in self.record.action}
        rows = [[action, f"{count:,}"] for action, count in counts.items()]
        caption = f"{self.calibrator} fitted on {self.n_rows:,} rows, {self.maps.n_labels:,} labels"
        return html_table(["what was done", "labels"], rows, caption)


def open_as(
    kind: str, scores: Any, labels: Any = None, label_names: Sequence[str] | None = None
) -> Source:
    """Open scores as being of this kind. A panel or a source brings its own."""
    named = None if isinstance(scores, Source | Panel) else kind
    return open_source(scores, labels, kind=named, label_names=label_names)  # type: ignore[arg-type]


def align_labels(
    names: tuple[str, ...] | None, n_labels: int, source: Source
) -> NDArray[np.int64] | None:
    """Where each label of the source stands among ours; None if they stand alike.

    Labels are matched by name where both sides have names. Other labels are refused: a repair
    applied to the wrong column would be wrong in silence.
    """
    if names is not None and source.label_names is not None:
        if names == source.label_names:
            return None
        place = {name: at for at, name in enumerate(names)}
        strangers = [name for name in source.label_names if name not in place]
        missing = set(names) - set(source.label_names)
        if strangers or missing:
            what = (
                f"got the unknown label {strangers[0]!r}"
                if strangers
                else f"{min(missing)!r} is missing"
            )
            raise InvalidInput(
                f"scores must have the labels this repair was fitted on, but {what}. "
                "Fit a repair on these labels."
            )
        return np.array([place[name] for name in source.label_names], np.int64)
    if n_labels != source.n_labels:
        raise InvalidInput(
            f"scores must have the {n_labels:,} labels this repair was fitted on, "
            f"got {source.n_labels:,}."
        )
    return None


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
    # A text may hold half of a surrogate pair, as Python's may; json reads it back.
    text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
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


def _rebuild(body: bytes) -> FittedRepair:
    (length,) = struct.unpack("<Q", body[:8])
    header = parse_json(body[8 : 8 + length])
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
    _check_record(arrays, header["n_rows"])
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
        n_rows=header["n_rows"],
    )


def _check_record(arrays: dict[str, NDArray[Any]], n_rows: Any) -> None:
    """Refuse counts and priors that no fit can have left."""
    if type(n_rows) is not int or n_rows < 0:
        raise InvalidInput(f"n_rows must be a count, got {n_rows!r:.30}.")
    if (arrays["n_positives"] < 0).any() or (arrays["n_positives"] > n_rows).any():
        raise InvalidInput(f"n_positives must be between 0 and n_rows={n_rows!s:.30}.")
    if ((arrays["prior"] < 0) | (arrays["prior"] > 1)).any():
        raise InvalidInput("prior must be between 0 and 1.")
    if (arrays["dead"].view(np.uint8) > 1).any():
        raise InvalidInput("dead must be true or false.")


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
