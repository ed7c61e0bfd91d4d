"""Helpers of all generators: checks of sizes and folders, random streams, the CSV writer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets import extras
from oddslip.errors import InvalidInput


def check_count(name: str, value: object, low: int, high: int | None = None) -> int:
    """An integer from low to high."""
    rule = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):  # type: ignore[operator]
        raise InvalidInput(f"{name} must be {rule}, got {name}={value!r}.")
    return int(value)  # type: ignore[call-overload, no-any-return]


def make_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder to write to, created if necessary."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"{path} must be a folder to write to ({error.strerror}). Name another."
        ) from None
    return path


def import_polars() -> Any:
    """The engine that writes CSV."""
    return extras.import_polars("generating files")


def stream(seed: int, *place: int) -> np.random.Generator:
    """Random generator of one block, independent of all other blocks."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=place))
