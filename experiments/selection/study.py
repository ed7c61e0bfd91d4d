"""`reproduce_selection`: what rules choose on the arms of the MULAN and Ta-Feng studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets.mulan.reader import Protocol, read_mulan
from experiments.mulan.arms import LEARNERS, arm_configuration, train_arm
from experiments.mulan.study import DATASETS
from experiments.pairs.arms import Arm
from experiments.pairs.cells import choose_k
from experiments.pairs.training import Bench
from experiments.selection.cells import CHOOSING, SEED, measure_cell, sweep_seeds
from experiments.store import RESULTS, CellStore, check_names
from oddslip.datasets.synthetic import synthetic_pair
from oddslip.io.progress import progress_bar
from oddslip.learners.backends.base import preset_parameters
from oddslip.selection.rules import MANY_ROWS
from oddslip.sources import open_source

MEASURES = 1  # raised when what a cell measures changes, so that cells are measured again
PROTOCOL: Protocol = "paper"
# Constants of the rules were set on these sets, and on the MLP of Ta-Feng, and on nothing else.
TUNED = ("emotions", "birds", "medical", "enron", "corel5k")
STABILITY = ("birds", "medical", "enron")  # sets on which folds are drawn again and again
WEIGHTS = ("1", "r")
TAFENG = tuple(
    Arm(learner, weight, cap=cap)
    for learner, cap in (("mlp", None), ("lightgbm", None), ("lightgbm", 0.7))
    for weight in WEIGHTS
)

SWEEP = "-seeds"
N_SYNTHETIC = 30
PARTS = {"": measure_cell, SWEEP: sweep_seeds}  # what is measured of an arm, by its suffix

Cells = dict[str, dict[str, Any]]


def is_tuned(key: str) -> bool:
    """Whether constants may have been set on this cell.

    Examples
    --------
    >>> is_tuned("birds-mlp-r"), is_tuned("yeast-mlp-r"), is_tuned("tafeng-mlp-r")
    (True, False, True)
    """
    return key.split("-")[0] in TUNED or key.startswith("tafeng-mlp")


def reproduce_selection(
    *,
    datasets: Sequence[str] = DATASETS,
    learners: Sequence[str] = tuple(LEARNERS),
    weights: Sequence[str] = WEIGHTS,
    seeds: bool = False,
    tafeng: bool = False,
    data: Any = None,
    results: Any = RESULTS,
    work: Any = ".work",
    finished: bool = False,
) -> Cells:
    """Choose by every rule in every cell asked for; returns all finished cells by key.

    Parameters
    ----------
    datasets, learners, weights : sequences of str
        Which cells of the MULAN study.
    seeds : bool
        Also what the default chooses with other folds, in the cells of `STABILITY`.
    tafeng : bool
        Also arms of the Ta-Feng study.
    data : path, optional
        Where the data sets are.
    results, work : path
        Where finished cells are kept, and where the other studies keep trained scores, each in a
        folder of its name. Both are used again; what is missing is trained.
    finished : bool
        Only read the cells that are finished; train and measure nothing.

    Examples
    --------
    >>> reproduce_selection(datasets=["flags"], learners=["lightgbm"])  # doctest: +SKIP
    """
    check_names("learners", learners, LEARNERS)
    check_names("weights", weights, WEIGHTS)
    store = CellStore(results, "selection")
    if finished:
        return read_finished(store)
    cells: Cells = {}
    total = len(datasets) * len(learners) * len(weights) + tafeng * len(TAFENG)
    with progress_bar("cells of the selection study", total) as advance:
        for name in datasets:
            loaded = read_mulan(name, protocol=PROTOCOL, data=data)
            for learner in learners:
                for weight in weights:
                    key = f"{loaded.name}-{learner}-{weight}"
                    options = f"--dataset {loaded.name} --learner {learner} --weight {weight}"
                    folder = Path(work) / "mulan" / PROTOCOL
                    about = arm_configuration(loaded, learner, weight)
                    for part, measure in PARTS.items():
                        if part and not (seeds and loaded.name in STABILITY):
                            continue
                        compute = partial(_measure_mulan, measure, loaded, learner, weight, folder)
                        options_of_part = f"{options} --seeds" if part else options
                        cells[f"{key}{part}"] = _find(
                            store, f"{key}{part}", about, compute, options_of_part
                        )
                    advance(1)
        if seeds:
            about = {"rows": MANY_ROWS, "labels": N_SYNTHETIC, "seed": SEED}
            key = f"synthetic{SWEEP}"
            cells[key] = _find(store, key, about, _sweep_synthetic, "--seeds")
        if tafeng:
            for key, cell in _run_tafeng(store, data, Path(work) / "tafeng"):
                cells[key] = cell
                advance(1)
    return cells


def read_finished(store: CellStore) -> Cells:
    """Every cell that is kept and was computed with the rules and the presets of today."""
    cells = {}
    for key, cell in sorted(store.cells().items()):
        expected = settings()
        if "preset" in cell["configuration"]:
            expected["parameters"] = preset_parameters(cell["configuration"]["preset"])
        values = store.read_values(key, **expected)
        if values is not None:
            cells[key] = values
    return store.require(cells)


def settings() -> dict[str, Any]:
    """All that a choice depends on besides the rows."""
    rules = {
        name: asdict(rule) | {"candidates": [each.name for each in rule.candidates]}
        for name, rule in CHOOSING.items()
    }
    for rule in rules.values():  # none of them has the row-aware stage: its study is another
        assert rule.pop("row_guard") is None
    return {"rules": rules, "many_rows": MANY_ROWS, "fold_seed": SEED, "measures": MEASURES}


def _measure_mulan(
    measure: Callable[..., dict[str, Any]], data: Any, learner: str, weight: str, folder: Path
) -> dict[str, Any]:
    arm = train_arm(data, learner, weight, folder)
    return measure(
        open_source(arm.calibration, data.Y_train[data.calibration]),
        open_source(arm.test, data.Y_test),
        k=data.k,
        prior=data.prevalence,
        weights=None if weight == "1" else arm.weights,
    )


def _sweep_synthetic() -> dict[str, Any]:
    """Folds drawn again on as many rows as the default draws them once for."""
    pair = synthetic_pair(2 * MANY_ROWS, N_SYNTHETIC, noise=0.3, weights="sqrt", seed=SEED)
    rows = np.arange(pair.n_rows) < MANY_ROWS
    return sweep_seeds(
        open_source(pair.weighted[rows], pair.labels[rows]),
        open_source(pair.weighted[~rows], pair.labels[~rows]),
        k=7,
        prior=pair.prior,
        weights=pair.weights,
    )


def _run_tafeng(store: CellStore, data: Any, folder: Path) -> Any:
    """(key, cell) of the Ta-Feng arms, deployment protocol."""
    from experiments.datasets.baskets.tafeng import read_tafeng

    bench = Bench(read_tafeng(data, n_labels=1000), folder)

    def measure(arm: Arm) -> dict[str, Any]:
        scores = bench.scores(arm)
        return measure_cell(
            open_source(scores.validation, bench.data.validation.Y),
            open_source(scores.test, bench.data.test.Y),
            k=choose_k(bench.data),
            prior=scores.prior,
            weights=scores.weights if arm.weighted else None,
        )

    for arm in TAFENG:
        key = f"tafeng-{arm.key}"
        about = {"data": bench.configuration, "arm": arm.configuration()}
        yield key, _find(store, key, about, partial(measure, arm), "--tafeng")


def _find(
    store: CellStore,
    key: str,
    about: dict[str, Any],
    measure: Callable[[], dict[str, Any]],
    options: str,
) -> dict[str, Any]:
    command = f"python -m experiments selection {options}"
    cell = store.find(key, about | settings(), measure, command=command)
    assert cell is not None
    return cell
