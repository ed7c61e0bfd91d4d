"""Validate the head of a saved model: its settings, its labels, and their groups."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from oddslip.core.types import Ints, JsonObject
from oddslip.errors import MissingDependency, OddslipError, UnreadableFile, first_line
from oddslip.io import arrays
from oddslip.learners.backends.base import Backend, TrainedModel

DAMAGE = "a group of labels is damaged"
MAX_ROWS = 2**53  # counts are divided in float64
# Errors of json, zipfile, NumPy and the boosters for files that they cannot read.
DAMAGED = (*arrays.DAMAGED, AttributeError, struct.error, zipfile.LargeZipFile)
_KINDS: dict[str, tuple[type, ...]] = {
    "learner": (str,),
    "weights": (str, int, float, list),
    "max_delta_step": (int, float, type(None)),
    "preset": (str, type(None)),
    "mode": (str,),
    "seed": (int,),
    "memory_bytes": (int,),
    "early_stopping": (int, type(None)),
    "stop_by": (str,),
    "k": (int,),
    "parameters": (dict, type(None)),
}


class Fault(ValueError):  # noqa: N818
    """The model of a group is not valid."""


@contextmanager
def refuse_faults(*errors: type[Exception]) -> Iterator[None]:
    """Turn faults of a model, and errors of its parser, into `UnreadableFile`."""
    kinds: tuple[type[Exception], ...] = (ValueError, OverflowError, *errors)
    try:
        yield
    except kinds as error:
        raise UnreadableFile(f"{DAMAGE}: {str(error)[:160]}.") from error


def check_head(head: JsonObject) -> None:
    """Raise ValueError unless a head holds what `OneVsRest.save` writes."""
    estimator = head["estimator"]
    if not isinstance(estimator, dict):
        raise ValueError("estimator must be a table")
    for key, value in estimator.items():
        if key not in _KINDS or not isinstance(value, _KINDS[key]) or isinstance(value, bool):
            raise ValueError(f"estimator must not hold {key[:30]}={value!r:.30}")
    n_rows, n_features = head["n_rows"], head["n_features"]
    if not _is_whole(n_rows, 1, MAX_ROWS) or not _is_whole(n_features, 0, 2**31 - 1):
        raise ValueError(
            f"rows and features must be counts, got {n_rows!r:.30}, {n_features!r:.30}"
        )
    positives, weights = head["n_positives"], head["weights"]
    if not isinstance(positives, list) or not positives:
        raise ValueError("n_positives must list a count for each label")
    if not all(_is_whole(count, 0, n_rows) for count in positives):
        raise ValueError(f"n_positives must be between 0 and {n_rows}")
    if not isinstance(weights, list) or len(weights) != len(positives):
        raise ValueError(f"weights must list {len(positives)} numbers")
    if not all(type(weight) in (int, float) and 0 <= weight < np.inf for weight in weights):
        raise ValueError("weights must be finite and at least 0")
    line = head.get("line")
    if line is not None and not (
        isinstance(line, list)
        and len(line) == 2
        and all(isinstance(part, list) and len(part) == len(positives) for part in line)
        and all(type(each) in (int, float) and abs(each) < np.inf for part in line for each in part)
    ):
        raise ValueError(f"line must be two lists of {len(positives)} finite numbers")
    for key, count in (("label_names", len(positives)), ("feature_names", n_features)):
        names = head.get(key)
        if names is not None and not (
            isinstance(names, list)
            and len(names) == count
            and all(isinstance(name, str) for name in names)
        ):
            raise ValueError(f"{key} must be {count} texts")


def check_groups(groups: object, live: Iterable[int]) -> list[Ints]:
    """The groups as arrays; ValueError unless they hold each label with a model exactly once."""
    if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
        raise ValueError("groups must be lists of labels")
    labels = [label for group in groups for label in group]
    expected = [int(label) for label in live]
    if not all(type(label) is int for label in labels) or sorted(labels) != expected:
        raise ValueError("groups must hold every label with a model exactly once")
    if not all(groups):
        raise ValueError("groups must not be empty")
    return [np.array(group, np.int64) for group in groups]


def load_group(backend: Backend, data: bytes, n_labels: int, n_features: int) -> TrainedModel:
    """Load the model of a group; any error of the backend becomes `UnreadableFile`."""
    try:
        return backend.load(data, n_labels=n_labels, n_features=n_features)
    except (UnreadableFile, MissingDependency):
        raise
    except (OddslipError, *DAMAGED) as error:
        raise UnreadableFile(f"{DAMAGE} ({first_line(error)}).") from error


def cut_parts(data: bytes, lengths: Any) -> list[bytes]:
    """Cut bytes into parts of these lengths, without a rest."""
    valid = isinstance(lengths, list) and all(_is_whole(length, 1, len(data)) for length in lengths)
    if not valid or sum(lengths) != len(data):
        raise UnreadableFile(f"{DAMAGE}: its parts have other lengths.")
    ends = np.cumsum([0, *lengths]).tolist()
    return [data[start:stop] for start, stop in pairwise(ends)]


def _is_whole(value: object, minimum: int, maximum: int) -> bool:
    return type(value) is int and minimum <= value <= maximum
