"""`reproduce_mulan`: the paper's section 4 as one resumable command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments.datasets.mulan.files import SOURCES
from experiments.datasets.mulan.reader import MulanData, Protocol, read_mulan
from experiments.mulan.arms import LEARNERS, Identity, arm_configuration, train_arm
from experiments.mulan.cells import compare_rules, describe_data, measure_cell
from experiments.store import RESULTS, WEIGHTS, CellStore, check_names
from oddslip.io.progress import progress_bar

DATASETS = (
    "emotions",
    "scene",
    "flags",
    "yeast",
    "birds",
    "genbase",
    "medical",
    "enron",
    "bibtex",
    "corel5k",
    "delicious",
    "tmc2007-500",  # left out by the paper, and of all that is compared with it
)
MEASURES = 2  # raised when what a cell measures changes, so that cells are measured again
DESCRIPTIONS = 1  # the same for what a data set is before any model
CHOICES = 3  # the same for the selection rules

Cells = dict[str, dict[str, Any]]


def reproduce_mulan(
    *,
    datasets: Sequence[str] = DATASETS,
    learners: Sequence[str] = tuple(LEARNERS),
    weights: Sequence[str] = tuple(WEIGHTS),
    protocol: Protocol = "paper",
    data: Any = None,
    results: Any = RESULTS,
    work: Any = ".work/mulan",
    choices: bool = True,
    finished: bool = False,
) -> Cells:
    """Train, measure and keep every cell asked for; returns all of them by key.

    Parameters
    ----------
    datasets, learners, weights : sequences of str
        Which cells: data sets, learners of `LEARNERS`, weights "1", "sqrt", "r", "10r".
    protocol : {"paper", "clean"}
    data : path, optional
        Where the data sets are; see `experiments.datasets.mulan.reader.read_mulan`.
    results, work : path
        Where finished cells and trained scores are kept. Both are used again.
    choices : bool
        Also what the selection rules choose, for weights "1" and "r".
    finished : bool
        Only read the cells that are finished, without the data; train and measure nothing.

    Examples
    --------
    >>> reproduce_mulan(datasets=["flags"], learners=["lightgbm"])  # doctest: +SKIP
    """
    check_names("learners", learners, LEARNERS)
    check_names("weights", weights, WEIGHTS)
    store = CellStore(results, f"mulan-{protocol}")
    folder = None if finished else Path(work) / protocol
    cells: Cells = {}
    total = len(datasets) * (1 + len(learners) * len(weights))
    with progress_bar("MULAN cells", total) as advance:
        for name in datasets:
            loaded = None if finished else read_mulan(name, protocol=protocol, data=data)
            about = _identify(name, protocol, store) if loaded is None else loaded
            if about is None:
                advance(1 + len(learners) * len(weights))
                continue
            configuration = {"inputs": about.sha256, "measures": DESCRIPTIONS}
            describe = None if loaded is None else partial(describe_data, loaded)
            _add_cell(cells, store, about.name, configuration, describe, _command(about))
            advance(1)
            for learner in learners:
                for weight in weights:
                    _add_arm(cells, about, learner, weight, store, folder, choices)
                    advance(1)
    return cells


def _identify(where: str, protocol: str, store: CellStore) -> Identity | None:
    """The data set whose cells are kept, as its own cell tells it; None without that cell."""
    name = Path(where).name
    name = name.lower() if name.lower() in SOURCES else name
    inputs = store.read_configuration(name, "inputs")
    return None if inputs is None else Identity(name, protocol, inputs)


def _add_arm(
    cells: Cells,
    data: MulanData | Identity,
    learner: str,
    weight: str,
    store: CellStore,
    folder: Path | None,
    choices: bool,
) -> None:
    key = f"{data.name}-{learner}-{weight}"
    configuration = arm_configuration(data, learner, weight)
    timings: dict[str, float] = {}

    def measure(folder: Path) -> dict[str, Any]:
        assert isinstance(data, MulanData)
        arm = train_arm(data, learner, weight, folder)
        seconds, cpu_seconds = arm.seconds.round(2).tolist()
        timings.update(training_seconds=seconds, training_cpu_seconds=cpu_seconds)
        twin = train_arm(data, learner, "1", folder)
        return measure_cell(data, arm, twin, weight != "1")

    def choose(folder: Path) -> dict[str, Any]:
        assert isinstance(data, MulanData)
        return compare_rules(data, train_arm(data, learner, weight, folder))

    def bound(compute: Callable[[Path], dict[str, Any]]) -> Any:
        return None if folder is None else partial(compute, folder)

    command = f"{_command(data)} --learner {learner} --weight {weight}"
    settings = configuration | {"measures": MEASURES}
    _add_cell(cells, store, key, settings, bound(measure), command, timings)
    if choices and weight in ("1", "r"):
        settings = configuration | {"choices": CHOICES}
        _add_cell(cells, store, f"{key}-choices", settings, bound(choose), command)


def _command(data: MulanData | Identity) -> str:
    return f"python -m experiments mulan --dataset {data.name} --protocol {data.protocol}"


def _add_cell(
    cells: Cells,
    store: CellStore,
    key: str,
    configuration: dict[str, Any],
    compute: Any,
    command: str,
    timings: dict[str, float] | None = None,
) -> None:
    """Add a cell: as it was kept, else computed, unless there is nothing to compute it with."""
    cell = store.find(key, configuration, compute, command=command, timings=timings)
    if cell is not None:
        cells[key] = dict(cell)
