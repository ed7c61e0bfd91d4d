"""Training of groups of labels in the tasks of an engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from oddslip.adapters.features import hash_features
from oddslip.core.types import FeaturesLike
from oddslip.errors import InvalidInput
from oddslip.io.progress import progress_bar
from oddslip.learners.backends.base import Backend, PreparedRows, get_backend
from oddslip.learners.checkpoint import group_path, is_checkpoint, read_group, write_group
from oddslip.learners.groups import LabelColumns, Training
from oddslip.learners.model_validation.head import load_group
from oddslip.spark.jobs import Workers, run_jobs
from oddslip.spark.tasks import check_versions

# Prepared features of the last job of this process, for the next one.
_PREPARED: dict[str, PreparedRows] = {}


def train_distributed(
    workers: Workers,
    training: Training,
    rows: FeaturesLike,
    *,
    finished_models: dict[int, object],
    folder: Path | None,
    save: Callable[[int, object], None],
) -> list[object]:
    """Models of all groups, as `oddslip.learners.groups.run_groups` returns them.

    Each group is trained in a task on one thread. With a checkpoint folder, which every executor
    must see, a task writes its group there and returns no bytes.
    """
    backend, columns, groups = training.backend, training.columns, training.groups
    parameters = training.parameters
    settings = parameters | ({"threads": 1} if "threads" in parameters else {})
    shared = {
        "learner": backend.name,
        "versions": backend.versions(),
        "features": _pack_features(rows),
        "key": f"{hash_features(rows)} {sorted(settings.items())!r}",
        "truth": {"indptr": columns.indptr, "rows": columns.rows, "n_rows": columns.n_rows},
        "groups": list(groups),
        "weights": training.weights,
        "parameters": settings,
        "seed": training.seed,
        "folder": None if folder is None else str(folder.resolve()),
    }
    models = dict(finished_models)
    numbers = [number for number in range(len(groups)) if number not in finished_models]
    total = sum(group.size for group in groups)
    with progress_bar("training labels", total) as advance:
        advance(sum(groups[number].size for number in finished_models))
        for number, body in run_jobs(workers, train_group, shared, numbers):
            if folder is not None and not body:
                body = read_group(group_path(folder, number, backend))
            size, n_features = groups[number].size, rows.shape[1]
            models[number] = load_group(backend, body, size, n_features)
            if folder is not None and not group_path(folder, number, backend).exists():
                save(number, models[number])
            advance(size)
    return [models[number] for number in range(len(groups))]


def train_group(shared: dict[str, Any], number: int) -> bytes:
    """Train a group in a task; its bytes, or none if they are in the checkpoint folder."""
    from threadpoolctl import threadpool_limits

    backend = get_backend(shared["learner"])
    check_versions(shared["versions"], backend.versions())
    path = None
    if shared["folder"] is not None:
        folder = Path(shared["folder"])
        if not is_checkpoint(folder):
            raise InvalidInput(
                f"checkpoint must be a folder that every executor sees, got {folder}, which one "
                "does not. Choose a folder on a shared disk."
            )
        path = group_path(folder, number, backend)
        if path.exists():  # from an attempt that failed after writing
            read_group(path)
            return b""
    training = Training(
        backend,
        LabelColumns.of(**shared["truth"]),
        shared["groups"],
        shared["weights"],
        shared["parameters"],
        shared["seed"],
    )
    with threadpool_limits(1):
        body = backend.dump(training.train(_prepare(backend, shared), number))
    return b"" if path is not None and _write(path, body) else body


def _write(path: Path, body: bytes) -> bool:
    """Write a group; False if another attempt at the same task is writing it."""
    try:
        write_group(path, body)
    except InvalidInput:
        return False
    return True


def _prepare(backend: Backend, shared: dict[str, Any]) -> PreparedRows:
    key = shared["key"]
    if key not in _PREPARED:
        _PREPARED.clear()
        _PREPARED[key] = backend.prepare(_unpack_features(shared["features"]), shared["parameters"])
    return _PREPARED[key]


def _pack_features(rows: FeaturesLike) -> dict[str, Any]:
    """Features as arrays with their memory order, on which the rounding of sums depends."""
    if hasattr(rows, "tocsr"):
        parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
        return {"format": rows.format, "shape": tuple(rows.shape), **parts}
    by_column = rows.flags.f_contiguous and not rows.flags.c_contiguous
    return {"format": "F" if by_column else "C", "cells": np.asarray(rows.T if by_column else rows)}


def _unpack_features(packed: dict[str, Any]) -> FeaturesLike:
    if "cells" in packed:
        return packed["cells"].T if packed["format"] == "F" else packed["cells"]
    from scipy import sparse

    kind = sparse.csr_matrix if packed["format"] == "csr" else sparse.csc_matrix
    return kind((packed["data"], packed["indices"], packed["indptr"]), packed["shape"])
