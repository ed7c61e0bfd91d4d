"""Climbing the ladder: fit every rung, rank all rows by all of them in one pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators import Ceiling, build_calibrator
from oddslip.calibrators.catalogue import CATALOGUE
from oddslip.calibrators.maps import LabelMaps, Scale
from oddslip.diagnosis.cases import Case
from oddslip.kernels.maps import AFFINE, CONSTANT, EXCLUDED, IDENTITY
from oddslip.metrics.at_k import Column, Ties, metric_values, rank_source
from oddslip.metrics.rankings import Rankings, rank_panel
from oddslip.panels import Kind, Panel
from oddslip.sources import Source

Ranking = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """Rankings of all evaluated rows by rung, and the per-row values of those with a true label.

    ``n_tied`` rows of raw are decided by ties; ``map_worst`` and ``map_best`` say how far the
    order of tied cells can move its MAP.
    """

    rankings: dict[str, Ranking]
    values: dict[str, NDArray[np.float64]]
    n_tied: int
    map_worst: float
    map_best: float


def climb(case: Case) -> Climb:
    """Fit, rank and score every rung that the case allows."""
    rankings = _rank(case.arm, _fit_rungs(case), case.k, case.threads)
    if case.twin is not None:
        twin = _rank(case.twin, _twin_rungs(case), case.k, case.threads)
        rankings["unweighted"] = twin.pop("raw")
        rankings |= twin
    ranked = rank_source(case.arm, case.k, case.threads)
    truth = case.arm.positives()

    def bound(ties: Ties) -> float:
        return float(metric_values(ranked, ties=ties)[:, Column.MAP].mean())

    return Climb(
        rankings=rankings,
        values={
            name: metric_values(Rankings.made(found, truth, case.arm.n_labels))
            for name, found in rankings.items()
        },
        n_tied=int(ranked.decided_by_ties.sum()),
        map_worst=bound("worst"),
        map_best=bound("best"),
    )


def _fit_rungs(case: Case) -> dict[str, LabelMaps]:
    """Maps of all rungs over the arm but raw, which needs none."""
    kind, prior, rows = case.arm.kind, case.prior if case.prior_given else None, case.calibration
    maps: dict[str, LabelMaps] = {}
    if case.weights is not None:
        maps["inversion"] = _shift_maps(-np.log(case.weights), kind)
    if case.calibration_counts.any():
        for name in (entry.name for entry in CATALOGUE.values() if entry.rung and entry.fitted):
            calibrator = build_calibrator(name, prior=prior, kind=kind)
            fitted = calibrator.fit(rows, threads=case.threads).fitted_
            maps[name] = fitted.maps
            if name == "isotonic":
                # One fit serves all policies: they differ in the dead labels alone.
                maps["isotonic, identity"] = _with_dead(fitted.maps, fitted.record.dead, IDENTITY)
                maps["isotonic, exclude"] = _with_dead(fitted.maps, fitted.record.dead, EXCLUDED)
    maps["popularity"] = _line_maps(kind, "probability", CONSTANT, case.prior, 0.0)
    maps["ceiling"] = Ceiling(kind=kind).fit(case.arm, threads=case.threads).fitted_.maps
    return maps


def _twin_rungs(case: Case) -> dict[str, LabelMaps]:
    if case.weights is None or case.twin is None:
        return {}
    return {"what-if": _shift_maps(-np.log(1.0 / case.weights), case.twin.kind)}


def _shift_maps(shift_nat: NDArray[np.float64], kind: Kind) -> LabelMaps:
    return _line_maps(kind, "log_odds", AFFINE, np.ones_like(shift_nat), shift_nat)


def _line_maps(kind: Kind, scale: Scale, code: int, a: NDArray[np.float64], b: Any) -> LabelMaps:
    """Maps that are known without a fit, and so without a pass over the rows."""
    n, none = a.size, np.empty(0)
    places = np.zeros(n, np.int64)
    return LabelMaps(
        kind, scale, code=np.full(n, code, np.int8), a=a, b=np.zeros(n) + b, c=np.zeros(n),
        start=places, stop=places, x=none, y=none,
    )  # fmt: skip


def _with_dead(maps: LabelMaps, dead: NDArray[np.bool_], code: int) -> LabelMaps:
    """The same maps with another policy for the dead labels."""
    if not dead.any():
        return maps
    return replace(maps, code=np.where(dead, code, maps.code), a=np.where(dead, 0.0, maps.a))


def _rank(
    source: Source, maps: dict[str, LabelMaps], k: int, threads: int | None
) -> dict[str, Ranking]:
    """Top K of all rows by raw and by every map, each map once, in one pass."""
    distinct = {id(each): each for each in maps.values()}
    found = {key: np.empty((source.n_rows, k), np.int32) for key in (*distinct, 0)}

    def rank_block(panel: Panel) -> dict[int, Ranking]:
        columns = {key: each.rank_panel(panel, k) for key, each in distinct.items()}
        return columns | {0: rank_panel(panel, k)}

    for first, columns in source.map(rank_block, threads=threads, what="climbing the ladder"):
        for key, block in columns.items():
            found[key][first : first + len(block)] = block
    return {"raw": found[0]} | {name: found[id(each)] for name, each in maps.items()}
