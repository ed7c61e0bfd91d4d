"""`reproduce_boundary`: worlds that say when a weighted booster collapses, and cells that judge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from experiments.boundary.features import Booster, describe_training
from experiments.boundary.held_out_cells import count_labels, read_unseen
from experiments.boundary.model import Training, retained_share
from experiments.boundary.worlds import (
    FIXED,
    MAX_TREES,
    N_TEST,
    TRAINING_SEED,
    K,
    draw_design,
    train_world,
)
from experiments.store import RESULTS, WEIGHTS, CellStore
from oddslip.io.progress import progress_bar

N_WORLDS = 128
MEASURES = 1  # raised when what a cell measures changes

Cells = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What was trained: of worlds, to fit on; of other studies, by source, to judge by."""

    n_worlds: int
    most_trees: int
    worlds: list[Training]
    unseen: dict[str, list[Training]]


def reproduce_boundary(
    *,
    n_worlds: int = N_WORLDS,
    most_trees: int = MAX_TREES,
    data: Any = None,
    results: Any = RESULTS,
    others: Any = RESULTS,
    finished: bool = False,
) -> Study:
    """Train and keep every world asked for, and read what other studies have trained.

    Parameters
    ----------
    n_worlds : int
        Worlds of the design; a longer design begins with a shorter one.
    most_trees : int
        Trees that all labels of an arm may have together; rounds give way.
    data : path, optional
        Where the data sets of the other studies are: their labels are counted once.
    results : path
        Where finished worlds and counts are kept and found again.
    others : path
        The folder with the results of the other studies.
    finished : bool
        Only read what is finished.

    Examples
    --------
    >>> reproduce_boundary(n_worlds=4)  # doctest: +SKIP
    """
    store = CellStore(results, "boundary")
    cells = train_worlds(n_worlds, store, most_trees=most_trees, finished=finished)
    counts = count_labels(store, data=data, finished=finished)
    worlds = [training for key, cell in cells.items() for training in world_trainings(key, cell)]
    return Study(len(cells), most_trees, worlds, read_unseen(counts, others))


def train_worlds(
    n_worlds: int, store: CellStore, *, most_trees: int = MAX_TREES, finished: bool = False
) -> Cells:
    """Every world of the design: as it was kept, else trained and kept."""
    cells: Cells = {}
    with progress_bar("worlds", n_worlds) as advance:
        for number, world in enumerate(draw_design(n_worlds, most_trees)):
            settings = {
                "world": world,
                "fixed": FIXED,
                "k": K,
                "n_test": N_TEST,
                "training_seed": TRAINING_SEED,
                "measures": MEASURES,
            }
            key = f"world-{most_trees}-{number:04}"
            command = f"python -m experiments boundary --worlds {number + 1} --trees {most_trees}"
            compute = None if finished else partial(train_world, world)
            cell = store.find(key, settings, compute, command=command)
            if cell is not None:
                cells[key] = {"world": world, **cell}
            advance(1)
    return cells


def world_trainings(key: str, cell: dict[str, Any]) -> list[Training]:
    """The weighted trainings of a world; none where the unweighted model ranks nothing right."""
    world, arms = cell["world"], cell["arms"]
    twin = arms["1"]["map"]
    booster = Booster.of(world)
    return [
        Training(
            key,
            f"{key}, {weight}",
            describe_training(
                np.asarray(cell["counts"]), world["n_rows"], WEIGHTS[weight], booster, K
            ),
            retained_share(arms[weight]["map"], twin),
        )
        for weight in WEIGHTS
        if weight != "1" and twin > 0
    ]
