"""Peers of the selection study: MCGrad beside `auto`, and quadratic scaling as one more candidate.

Cells are those of the MULAN study for which trained scores are at hand. Everything is fitted on the
calibration rows and measured on the test rows, as in the selection study.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.mcgrad import calibrate_with_mcgrad, find_version
from experiments.mulan.study import DATASETS
from experiments.row_aware.built import summarise_rows
from experiments.row_aware.panels import Panel, Scored, list_panels, measure_panels
from experiments.row_aware.study import (
    find_hidden,
    group_folds,
    rank_margins,
    row_precision,
    timed,
    to_margins,
)
from experiments.selection.cells import choose, measure_on_test
from experiments.selection.quadratic import RIDGE, Quadratic
from experiments.store import RESULTS, CellStore, check_names
from oddslip.calibrators.policy import DeadLabelPolicy
from oddslip.core.passes import run
from oddslip.metrics.at_k import Scoring
from oddslip.selection.candidates import HIERARCHICAL, RAW
from oddslip.selection.rules import GUARD, NEAR, RULES
from oddslip.selection.trials import Trials, try_candidates
from oddslip.sources import open_source
from oddslip.sources.open import open_rows

MEASURES = 1  # raised when what a cell measures changes
PEERS = ("quadratic", "mcgrad")
BESIDE = ("platt", "beta", "hierarchical")
WITH_QUADRATIC = "auto, quadratic besides"
MCGRAD = {"MCGrad": False, "MCGrad, row": True}  # whether it sees numbers of the row
SETTINGS: dict[str, Callable[[], dict[str, Any]]] = {
    "quadratic": lambda: {"ridge": RIDGE},
    "mcgrad": lambda: {"mcgrad": find_version()},
}

Cells = dict[str, dict[str, Any]]
Floats = NDArray[np.float64]


class Tried(NamedTuple):
    """The trials of `auto` on the calibration rows, what it chose, and the folds."""

    trials: Trials
    chosen: str
    folds: list[Any]


def reproduce_peers(
    *,
    peers: Sequence[str] = PEERS,
    datasets: Sequence[str] = DATASETS,
    data: Any = None,
    results: Any = RESULTS,
    work: Any = ".work",
    finished: bool = False,
) -> dict[str, Cells]:
    """Measure peers in the cells of some data sets; returns all finished cells by peer and key.

    Parameters
    ----------
    peers : sequence of {"quadratic", "mcgrad"}
    datasets : sequence of str
    data, results, work : path
        Where data sets, finished cells and trained scores are.
    finished : bool
        Only read the cells that are finished.

    Returns
    -------
    dict of dict
        Of both peers, measured now or before.

    Examples
    --------
    >>> reproduce_peers(peers=["quadratic"], datasets=["flags"])  # doctest: +SKIP
    """
    check_names("peers", peers, PEERS)
    check_names("datasets", datasets, DATASETS)
    store = CellStore(results, "peers")
    if not finished:
        for peer in peers:
            measure_panels(
                store,
                {name: list_panels(name, data, Path(work)) for name in datasets},
                partial(_load_and_measure, peer),
                {"measures": MEASURES} | SETTINGS[peer](),
                command=f"python -m experiments peers --peer {peer} --dataset {{}}",
                suffix=f"-{peer}",
            )
    cells = {peer: read_peer(store, peer) for peer in PEERS}
    store.require(cells["quadratic"] | cells["mcgrad"])
    return cells


def read_peer(store: CellStore, peer: str) -> Cells:
    """Finished cells of a peer by the key of the arm, with their CPU seconds."""
    cells = {}
    for key in sorted(store.cells()):
        values = store.read_values(key, measures=MEASURES)
        if values is not None and key.endswith(f"-{peer}"):
            cells[key.removesuffix(f"-{peer}")] = values | {"cpu": store.cpu_seconds(key)}
    return cells


def _load_and_measure(peer: str, panel: Panel, timings: dict[str, float]) -> dict[str, Any]:
    measure = measure_quadratic if peer == "quadratic" else measure_mcgrad
    return measure(panel.load(), timings)


def measure_mcgrad(scored: Scored, timings: dict[str, float]) -> dict[str, Any]:
    """Gains over raw and over `auto` of MCGrad, by label alone and with the row."""
    tried = try_rows(scored, timings)
    tested = _test_candidates(scored, tried, (tried.chosen,))
    contenders = {"auto": tested[tried.chosen]}
    for name, by_row in MCGRAD.items():
        with timed(timings, name):
            chance = calibrate_with_mcgrad(
                scored.calibration, scored.truth, scored.test, by_row=by_row
            )
        ranking = rank_margins(chance, scored.k)
        contenders[name] = row_precision(ranking, scored.test_truth)
    return _describe(scored, tried.chosen, tested["raw"], contenders)


def measure_quadratic(scored: Scored, timings: dict[str, float]) -> dict[str, Any]:
    """Gains of quadratic scaling beside other smooth maps, and of `auto` that may take it."""
    tried = try_rows(scored, timings)
    tested = _test_candidates(scored, tried, (tried.chosen, *BESIDE))
    contenders = {name: tested[name] for name in BESIDE} | {"auto": tested[tried.chosen]}
    with timed(timings, "quadratic"):
        fitted = Quadratic(scored.prior).fit(scored.calibration, scored.truth)
        ranking = rank_margins(fitted.margins(scored.test), scored.k)
    contenders["quadratic"] = row_precision(ranking, scored.test_truth)
    with timed(timings, WITH_QUADRATIC):
        taken = takes_quadratic(scored, tried)
    timings[f"cpu_{WITH_QUADRATIC}"] += timings["cpu_auto"]
    contenders[WITH_QUADRATIC] = contenders["quadratic" if taken else "auto"]
    values = _describe(scored, tried.chosen, tested["raw"], contenders)
    return values | {"takes_quadratic": taken}


def try_rows(scored: Scored, timings: dict[str, float]) -> Tried:
    """All candidates of `auto` out of fold, and its choice."""
    rule = RULES["auto"]
    source = open_rows(scored.calibration, scored.truth, threads=1)
    folds = group_folds(scored.groups, rule.repeats_for(len(scored.truth)))
    policy = DeadLabelPolicy(prior=scored.prior, weights=scored.weights)
    candidates = rule.candidates_for(scored.weights)
    with timed(timings, "auto"):
        trials = run(
            source, try_candidates(source, candidates, Scoring(scored.k), policy, folds=folds)
        )
    return Tried(trials, choose(rule, trials)[0], folds)


def takes_quadratic(scored: Scored, tried: Tried) -> bool:
    """Whether `auto` would take quadratic scaling if it were among its candidates."""
    trials = tried.trials
    names = [each.name for each in trials.candidates]
    favourite = names.index(HIERARCHICAL.name)
    values = _rank_out_of_fold(scored, tried, [names.index(RAW.name), favourite])
    quadratic, raw, hierarchical = values
    gain = summarise_rows(quadratic - raw)
    if gain["difference"] <= GUARD * gain["standard_error"]:
        return False
    gains, errors = trials.gains()
    guards = np.array([RULES["auto"].guard_of(each) for each in trials.candidates])
    sure = gains > guards * errors
    sure[names.index(RAW.name)] = False
    if sure.any() and gain["difference"] <= gains[sure].max():
        return False
    lead = summarise_rows(quadratic - hierarchical)
    return not sure[favourite] or lead["difference"] > NEAR * lead["standard_error"]


def _rank_out_of_fold(scored: Scored, tried: Tried, places: Sequence[int]) -> list[Floats]:
    """Values of every row by quadratic scaling and some candidates, averaged over repeats."""
    hidden = find_hidden(scored)
    totals: list[list[Floats]] = [[] for _ in range(1 + len(places))]
    for repeat, assignment in enumerate(tried.folds):
        tables = np.empty((1 + len(places), *scored.calibration.shape))
        for fold in range(assignment.n_folds):
            inside = assignment.folds == fold
            chance = scored.calibration[inside]
            fitted = Quadratic(scored.prior).fit(scored.calibration[~inside], scored.truth[~inside])
            tables[0, inside] = fitted.margins(chance)
            for at, place in enumerate(places, 1):
                maps = tried.trials.fitted[repeat][fold][place]
                tables[at, inside] = to_margins(maps, chance)
        for table, values in zip(tables, totals, strict=True):
            ranking = rank_margins(np.where(hidden, -np.inf, table), scored.k)
            values.append(row_precision(ranking, scored.truth))
    return [np.mean(values, axis=0) for values in totals]


def _test_candidates(scored: Scored, tried: Tried, names: Sequence[str]) -> dict[str, Floats]:
    wanted = [each for each in tried.trials.candidates if each.name in {"raw", *names}]
    return measure_on_test(tried.trials.of(wanted), open_source(scored.test, scored.test_truth))


def _describe(
    scored: Scored, chosen: str, raw: Floats, contenders: dict[str, Floats]
) -> dict[str, Any]:
    return {
        "k": scored.k,
        "n_rows": len(scored.truth),
        "n_labels": scored.truth.shape[1],
        "raw": float(raw.mean()),
        "chosen": chosen,
        "contenders": {
            name: summarise_rows(values - raw)
            | {"minus_auto": summarise_rows(values - contenders["auto"])}
            for name, values in contenders.items()
        },
    }
