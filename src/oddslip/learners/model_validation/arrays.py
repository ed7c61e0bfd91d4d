"""Coefficients and layers in an .npz held in memory: the names, shapes and finite cells wanted."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import UnreadableFile
from oddslip.io.arrays import unpack_arrays

_DAMAGE = "a group of labels is damaged"


def read_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz, of which each must hold finite floating-point cells."""
    if data[:2] != b"PK":
        raise UnreadableFile(f"{_DAMAGE}: its arrays must be an .npz.")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        arrays = unpack_arrays(archive, Path("a group of labels"))
    for name, array in arrays.items():
        if array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
            raise UnreadableFile(f"{_DAMAGE}: {name[:20]!r} must hold finite numbers.")
    return arrays


def check_shapes(arrays: Mapping[str, Any], wanted: Mapping[str, tuple[int | None, ...]]) -> None:
    """Refuse other names, and other shapes than wanted; None is any length."""
    if set(arrays) != set(wanted):
        strange = sorted(set(arrays) ^ set(wanted))
        raise UnreadableFile(f"{_DAMAGE}: array {strange[0][:20]!r} is missing or unknown.")
    for name, shape in wanted.items():
        got = arrays[name].shape
        fits = len(got) == len(shape) and all(
            size is None or size == came for size, came in zip(shape, got, strict=False)
        )
        if not fits:
            raise UnreadableFile(f"{_DAMAGE}: {name} must be of shape {shape}, got {got}.")


def check_layers(
    arrays: Mapping[str, NDArray[Any]], n_labels: int | None, n_features: int | None
) -> int:
    """Refuse layers that do not follow on one another. Returns how many there are."""
    depth = sum(name.startswith("slope") for name in arrays)
    names = [f"{part}{at}" for at in range(depth) for part in ("slope", "bias")]
    wanted: dict[str, tuple[int | None, ...]] = dict.fromkeys(names[::2], (None, None))
    wanted |= dict.fromkeys(names[1::2], (None,))
    check_shapes(arrays, wanted | {"means": (n_features,), "scales": (n_features,)})
    widths = [arrays["means"].size, *(arrays[name].size for name in names[1::2])]
    if depth == 0 or (n_labels is not None and widths[-1] != n_labels):
        raise UnreadableFile(f"{_DAMAGE}: it must have layers that end in {n_labels} labels.")
    check_shapes(
        {name: arrays[name] for name in names[::2]},
        dict(zip(names[::2], pairwise(widths), strict=True)),
    )
    check_shapes({"scales": arrays["scales"]}, {"scales": (widths[0],)})
    if (arrays["scales"] <= 0).any():
        raise UnreadableFile(f"{_DAMAGE}: scales must be above 0.")
    return depth
