"""`reproduce_row_aware`: a second stage that sees the row, behind what `auto` chooses."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.folds import NumberedFolds, numbered_folds
from experiments.mcgrad import find_version
from experiments.row_aware import stages
from experiments.row_aware.built import BUILT, built_settings, measure_built, summarise_rows
from experiments.row_aware.panels import DATASETS, Panel, Scored, list_panels, measure_panels
from experiments.row_aware.stages import STAGES, Rows, fit_stage
from experiments.selection.cells import PAPER_RULE, choose, measure_on_test
from experiments.store import RESULTS, CellStore, check_names, row_precisions
from oddslip.calibrators.policy import DeadLabelPolicy, find_prior, find_unobservable
from oddslip.core import panel as core_panel
from oddslip.core.labels import DenseLabels, LabelTotals
from oddslip.core.passes import run
from oddslip.metrics.at_k import Scoring
from oddslip.repairs.maps import LabelMaps
from oddslip.selection.candidates import HIERARCHICAL, RAW, read_candidate
from oddslip.selection.rules import RULES
from oddslip.selection.trials import Trials, try_candidates
from oddslip.sources import open_source
from oddslip.sources.open import open_rows

MEASURES = 1  # raised when what a cell measures changes
MAX_REPEATED_CELLS = 300_000  # above, the folds of the stages are drawn once
FIXED = {"isotonic": "isotonic-0", "Platt": "platt", "hierarchical": "hierarchical"}
PEER = "mcgrad"  # measured apart: it needs a package that the project does not use
CONSTANTS = (
    "SEED",
    "DEPTH",
    "PSEUDO_COUNT",
    "N_DIMENSIONS",
    "SHRINKAGE",
    "MAX_RESPONSE",
    "RIDGE",
    "N_TREE_DIMENSIONS",
    "N_BEST",
    "BOOSTER",
    "N_ROUNDS",
)

Cells = dict[str, dict[str, Any]]
Floats = NDArray[np.float64]


def reproduce_row_aware(
    *,
    datasets: Sequence[str] = DATASETS,
    mcgrad: bool = False,
    built: bool = False,
    data: Any = None,
    results: Any = RESULTS,
    work: Any = ".work",
    finished: bool = False,
) -> Cells:
    """Measure every panel of some data sets; returns all finished cells by key.

    Parameters
    ----------
    datasets : sequence of str
    mcgrad : bool
        Measure MCGrad, in cells of its own, instead of our stages. It must be installed.
    built : bool
        Measure the stage of the package, in cells of its own.
    data : path, optional
        Folder that holds ``mulan``, ``corel16k``, ``goemotions`` and ``published``.
    results, work : path
        Where finished cells and trained scores are kept.
    finished : bool
        Only read the cells that are finished.

    Examples
    --------
    >>> reproduce_row_aware(datasets=["flags"])  # doctest: +SKIP
    """
    check_names("datasets", datasets, DATASETS)
    store = CellStore(results, "row-aware")
    if finished:
        return read_finished(store)
    apart = BUILT if built else PEER if mcgrad else ""
    names = [PEER] if mcgrad else [name for name in STAGES if name != PEER]
    settings = stage_settings() | ({PEER: find_version()} if mcgrad else {})
    if built:
        settings = built_settings()
    measure_panels(
        store,
        {name: list_panels(name, data, Path(work)) for name in datasets},
        partial(_measure, names=() if built else names),
        settings,
        command=f"python -m experiments row-aware --dataset {{}}{f' --{apart}' if apart else ''}",
        suffix=f"-{apart}" if apart else "",
    )
    return read_finished(store)


def stage_settings() -> dict[str, Any]:
    """Constants of the stages."""
    constants = {name.lower(): getattr(stages, name) for name in CONSTANTS}
    return {"stage": constants, "measures": MEASURES}


def read_finished(store: CellStore) -> Cells:
    """Cells of these stages, with the CPU seconds that they took; cells apart joined to them."""
    cells: Cells = {}
    settings = stage_settings()
    for key in sorted(store.cells()):
        is_built = key.endswith(f"-{BUILT}")
        values = store.read_values(key, **(built_settings() if is_built else settings))
        if values is None:
            continue
        cpu = store.cpu_seconds(key)
        apart = BUILT if is_built else PEER
        panel = key.removesuffix(f"-{apart}")
        if panel == key:
            cells[key] = values | {"cpu": cpu}
        elif panel in cells:
            for part in ("stages", "contenders"):
                cells[panel][part][apart] = values[part][apart]
            cells[panel]["cpu"][apart] = cpu[apart]
    return store.require(cells)


def _measure(panel: Panel, timings: dict[str, float], names: Sequence[str]) -> dict[str, Any]:
    scored = panel.load()
    if names:
        return measure_panel(scored, names, timings)
    folds = group_folds(scored.groups, RULES["auto"].repeats_for(len(scored.truth)))
    with timed(timings, BUILT):
        return measure_built(scored, folds)


def measure_panel(
    scored: Scored, names: Sequence[str], timings: dict[str, float] | None = None
) -> dict[str, Any]:
    """Gains over raw on the test rows of repairs and stages, and out of fold of the stages."""
    timings = {} if timings is None else timings
    rule = RULES["auto"]
    weighted = scored.weights is not None
    shared = {*rule.candidates, *PAPER_RULE.candidates, *map(read_candidate, FIXED.values())}
    candidates = sorted(
        (each for each in shared if weighted or not each.needs_weights),
        key=lambda each: (each != RAW, each.complexity),
    )
    source = open_rows(scored.calibration, scored.truth, threads=1)
    folds = group_folds(scored.groups, rule.repeats_for(len(scored.truth)))
    options = Scoring(scored.k), DeadLabelPolicy(prior=scored.prior, weights=scored.weights)
    with timed(timings, "auto"):
        trials = run(source, try_candidates(source, candidates, *options, folds=folds))
    once = run(source, try_candidates(source, candidates, *options, folds=folds[:1]))
    chosen, why = choose(rule, trials)
    choices = FIXED | {"paper": choose(PAPER_RULE, once)[0], "auto": chosen}
    wanted = [each for each in candidates if each.name in {"raw", *choices.values()}]
    tested = measure_on_test(trials.of(wanted), open_source(scored.test, scored.test_truth))
    contenders = {name: tested[candidate] for name, candidate in choices.items()}
    stage_values = {}
    for name in names:
        with timed(timings, name):
            out_of_fold, on_test = measure_stage(name, scored, trials, chosen, folds)
        contenders[name] = on_test
        stage_values[name] = _mean_gain(out_of_fold)
    return {
        "k": scored.k,
        "n_rows": len(scored.truth),
        "n_labels": source.n_labels,
        "raw": float(tested["raw"].mean()),
        "chosen": chosen,
        "why": why,
        "stages": stage_values,
        "contenders": {
            name: summarise_rows(values - tested["raw"])
            | {"minus_auto": summarise_rows(values - contenders["auto"])}
            for name, values in contenders.items()
        },
    }


def measure_stage(
    name: str, scored: Scored, trials: Trials, chosen: str, folds: Sequence[NumberedFolds]
) -> tuple[Floats, Floats]:
    """What a stage adds to the chosen repair, row by row out of fold; its values on test rows."""
    names = [each.name for each in trials.candidates]
    places = names.index(chosen), names.index(HIERARCHICAL.name)
    unobservable = find_hidden(scored)
    repeats = folds if scored.truth.size <= MAX_REPEATED_CELLS else folds[:1]
    gains: list[Floats] = []
    for repeat, assignment in enumerate(repeats):
        rows = _repair_out_of_fold(scored, trials, repeat, assignment.folds, places)
        visible = rows._replace(margin=np.where(unobservable, -np.inf, rows.margin))
        ranking = np.empty((len(scored.truth), scored.k), np.int32)
        for fold in range(assignment.n_folds):
            inside = assignment.folds == fold
            stage = fit_stage(
                name, rows.take(~inside), scored.truth[~inside], assignment.folds[~inside]
            )
            ranking[inside] = stage.rank(visible.take(inside), scored.k)
        before = rank_margins(visible.margin, scored.k)
        gains.append(row_precision(ranking, scored.truth) - row_precision(before, scored.truth))
        if repeat == 0:
            fitted = fit_stage(name, rows, scored.truth, assignment.folds)
    maps = [trials.fits.fit(trials.candidates[place], None)[0] for place in places]
    ranking = fitted.rank(_repair(maps, scored.test), scored.k)
    return np.mean(gains, axis=0), row_precision(ranking, scored.test_truth)


def _repair_out_of_fold(
    scored: Scored,
    trials: Trials,
    repeat: int,
    folds: NDArray[np.int32],
    places: tuple[int, int],
) -> Rows:
    """Every calibration row as repaired by maps that were fitted without its fold."""
    rows = Rows(np.empty(scored.calibration.shape), np.empty(scored.calibration.shape))
    for fold, maps in enumerate(trials.fitted[repeat]):
        inside = folds == fold
        part = _repair([maps[place] for place in places], scored.calibration[inside])
        rows.margin[inside], rows.chance[inside] = part
    return rows


def _repair(maps: Sequence[LabelMaps], scores: Floats) -> Rows:
    panel = core_panel.Panel(scores)
    chosen, calibrated = maps
    return Rows(to_margins(chosen, scores), calibrated.transform_panel(panel, np.float64))


def to_margins(maps: LabelMaps, scores: Floats) -> Floats:
    """Repaired log-odds."""
    margin = maps.values(core_panel.Panel(scores))
    if maps.scale == "probability":
        margin = margin.clip(1e-300, 1 - 2**-53)
        margin = np.log(margin) - np.log1p(-margin)
    return margin


def rank_margins(margin: Floats, k: int) -> NDArray[np.int32]:
    """Top K of each row; equal margins go to the lower label."""
    return np.argsort(-margin, axis=1, kind="stable")[:, :k].astype(np.int32)


def group_folds(groups: NDArray[np.int64], n_repeats: int, n_folds: int = 5) -> list[NumberedFolds]:
    """Folds of the paper's protocol, drawn of groups: rows of one group share a fold."""
    names, at = np.unique(groups, return_inverse=True)
    drawn = numbered_folds(names.size, n_folds, n_repeats=n_repeats)
    return [NumberedFolds(each.n_folds, each.folds[at]) for each in drawn]


def find_hidden(scored: Scored) -> NDArray[np.bool_]:
    """Labels that no calibration row can tell about; trials leave them out of fold."""
    counts, n_rows = scored.truth.sum(axis=0), len(scored.truth)
    totals = LabelTotals.alike(counts, n_rows)
    labels = find_unobservable(totals, *find_prior(scored.prior, counts, n_rows))
    return np.zeros_like(labels) if labels.all() else labels


def row_precision(ranking: NDArray[np.int32], truth: NDArray[np.bool_]) -> Floats:
    """Average precision of every row with a true label."""
    positives = DenseLabels(truth).positives(0, len(truth))
    return row_precisions(ranking, positives, truth.shape[1])


def _mean_gain(values: Floats) -> dict[str, float]:
    summary = summarise_rows(values)
    return {"out_of_fold": summary["difference"], "standard_error": summary["standard_error"]}


@contextmanager
def timed(timings: dict[str, float], name: str) -> Iterator[None]:
    """Note the CPU seconds of the block."""
    start = time.process_time()
    yield
    timings[f"cpu_{name}"] = round(time.process_time() - start, 2)
