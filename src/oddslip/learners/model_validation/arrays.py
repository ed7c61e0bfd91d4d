"""Validate coefficients and layers in an .npz: names, shapes, and finite cells."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from oddslip.core.types import Array
from oddslip.errors import UnreadableFile
from oddslip.io.arrays import unpack_arrays

DAMAGE = "a group of labels is damaged"


def pack_npz(arrays: Mapping[str, Array]) -> bytes:
    """Arrays by name as the bytes of an .npz, without pickle."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpack_npz(data: bytes, what: str) -> dict[str, Array]:
    """The arrays of an .npz, by name; ``what`` they are, for the error."""
    if data[:2] != b"PK":
        raise UnreadableFile(f"{DAMAGE}: its {what} must be an .npz.")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return unpack_arrays(archive, Path("a group of labels"))


def read_arrays(data: bytes) -> dict[str, Array]:
    """Read the arrays of an .npz, which must hold finite floating-point cells."""
    arrays = unpack_npz(data, "arrays")
    for name, array in arrays.items():
        if array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
            raise UnreadableFile(f"{DAMAGE}: {name[:20]!r} must hold finite numbers.")
    return arrays


def check_shapes(
    arrays: Mapping[str, Array], expected: Mapping[str, tuple[int | None, ...]]
) -> None:
    """Raise unless the arrays have these names and shapes; None is any length."""
    if set(arrays) != set(expected):
        difference = sorted(set(arrays) ^ set(expected))
        raise UnreadableFile(f"{DAMAGE}: array {difference[0][:20]!r} is missing or unknown.")
    for name, shape in expected.items():
        actual = arrays[name].shape
        fits = len(actual) == len(shape) and all(
            size in (None, other) for size, other in zip(shape, actual, strict=False)
        )
        if not fits:
            raise UnreadableFile(f"{DAMAGE}: {name} must be of shape {shape}, got {actual}.")


def check_layers(arrays: Mapping[str, Array], n_labels: int | None, n_features: int | None) -> int:
    """Raise unless each layer fits the one before it. Returns the number of layers."""
    depth = sum(name.startswith("slope") for name in arrays)
    names = [f"{part}{at}" for at in range(depth) for part in ("slope", "bias")]
    expected: dict[str, tuple[int | None, ...]] = dict.fromkeys(names[::2], (None, None))
    expected |= dict.fromkeys(names[1::2], (None,))
    check_shapes(arrays, expected | {"means": (n_features,), "scales": (n_features,)})
    widths = [arrays["means"].size, *(arrays[name].size for name in names[1::2])]
    if depth == 0 or (n_labels is not None and widths[-1] != n_labels):
        raise UnreadableFile(f"{DAMAGE}: it must have layers that end in {n_labels} labels.")
    check_shapes(
        {name: arrays[name] for name in names[::2]},
        dict(zip(names[::2], pairwise(widths), strict=True)),
    )
    check_shapes({"scales": arrays["scales"]}, {"scales": (widths[0],)})
    if (arrays["scales"] <= 0).any():
        raise UnreadableFile(f"{DAMAGE}: scales must be above 0.")
    return depth
