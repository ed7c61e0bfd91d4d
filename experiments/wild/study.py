"""`reproduce_wild`: repairs of models that were not made for this project, in 20 splits each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments.mcgrad import find_version
from experiments.store import RESULTS, CellStore, check_names
from experiments.wild.measures import (
    BY_ROW,
    N_REPEATS,
    OURS,
    PROTOCOLS,
    THEIRS,
    K,
    diagnose_rows,
    has_groups,
    measure_repeat,
)
from experiments.wild.models import MODELS, Model, Rows, find_model
from oddslip.io.progress import progress_bar

MEASURES = 1  # raised when what a cell measures changes
DIAGNOSIS, PEER = "diagnosis", "mcgrad"

Cells = dict[str, dict[str, Any]]


def reproduce_wild(
    *,
    models: Sequence[str] = tuple(MODELS),
    mcgrad: bool = False,
    repeats: int = N_REPEATS,
    data: Any = None,
    results: Any = RESULTS,
    work: Any = ".work",
    finished: bool = False,
) -> Cells:
    """Repair every model in every repeat of both protocols; returns all finished cells by key.

    Parameters
    ----------
    models : sequence of str
    mcgrad : bool
        Measure MCGrad, in cells of its own and on held-out halves alone. It must be installed.
    repeats : int
        Splits of each protocol.
    data : path, optional
        Folder that holds ``goemotions`` and ``published``.
    results, work : path
        Where finished cells and trained scores are kept.
    finished : bool
        Only read the cells that are finished.

    Examples
    --------
    >>> reproduce_wild(models=["jamendo"])  # doctest: +SKIP
    """
    check_names("models", models, MODELS)
    store = CellStore(results, "wild")
    if finished:
        return read_finished(store)
    with progress_bar("models of the study", len(models)) as advance:
        for name in models:
            _run_model(store, find_model(name, data, Path(work)), mcgrad, repeats)
            advance(1)
    return read_finished(store)


def settings() -> dict[str, Any]:
    """All that a cell depends on besides the rows."""
    return {"k": K, "contenders": list(OURS), "protocols": PROTOCOLS, "measures": MEASURES}


def read_finished(store: CellStore) -> Cells:
    """Cells with the settings of today by key, with the CPU seconds of every contender."""
    cells: Cells = {}
    for key in sorted(store.cells()):
        values = store.read_values(key, **settings())
        if values is not None:
            cells[key] = values | {"cpu": store.cpu_seconds(key)}
    return store.require(cells)


def _run_model(store: CellStore, model: Model, mcgrad: bool, repeats: int) -> None:
    about = model.configuration | settings()
    command = f"python -m experiments wild --model {model.name}"
    loaded: list[Rows] = []

    def rows() -> Rows:
        if not loaded:
            loaded.append(model.load())
        return loaded[0]

    if mcgrad:
        version, command = {PEER: find_version()}, f"{command} --mcgrad"
        for repeat in range(repeats):
            timings: dict[str, float] = {}
            store.find(
                f"{model.name}-half-{repeat:02}-{PEER}",
                about | version,
                partial(_measure, rows, THEIRS, "half", repeat, timings),
                command=command,
                timings=timings,
            )
        return
    store.find(f"{model.name}-{DIAGNOSIS}", about, lambda: diagnose_rows(rows()), command=command)
    for protocol in PROTOCOLS:
        if protocol == BY_ROW and not has_groups(rows()):
            continue
        for repeat in range(repeats):
            timings = {}
            store.find(
                f"{model.name}-{protocol}-{repeat:02}",
                about,
                partial(_measure, rows, OURS, protocol, repeat, timings),
                command=command,
                timings=timings,
            )


def _measure(
    rows: Any, contenders: Any, protocol: str, repeat: int, timings: dict[str, float]
) -> dict[str, Any]:
    return measure_repeat(rows(), contenders, protocol, repeat, timings)
