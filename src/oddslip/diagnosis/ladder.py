"""The repair ladder: every rung ranks the same rows, and all share the same bootstrap draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.calibrators import Ceiling, build_calibrator
from oddslip.calibrators.catalogue import CATALOGUE
from oddslip.calibrators.maps import LabelMaps, Scale
from oddslip.calibrators.policy import build_maps
from oddslip.diagnosis.case import Case
from oddslip.diagnosis.signal import Signal, find_signal
from oddslip.kernels.maps import AFFINE, CONSTANT, EXCLUDED, IDENTITY
from oddslip.metrics.at_k import Column, Ties, metric_of_sums, metric_values, rank_source
from oddslip.metrics.bootstrap import bootstrap_sums, percentile_interval
from oddslip.metrics.evaluation import NAMES, Estimate
from oddslip.metrics.ranking import Rankings, rank_panel
from oddslip.panels import Kind, Panel
from oddslip.results import as_frame, plain
from oddslip.selection.folds import FoldCounter, PositiveCellTally
from oddslip.sources import Source

LEVEL = 0.95
GROUP_BYTES = 256 * 1024 * 1024  # of values that are resampled together
Ranking = NDArray[np.int32]


# ---------------------------------------------------------------------------------------- the rungs


def _calibrated_rungs() -> Iterator[tuple[str, str]]:
    """Rungs of the catalogue; isotonic once more under each other policy for dead labels."""
    for entry in CATALOGUE.values():
        if entry.rung:
            yield entry.name, entry.what
        if entry.name == "isotonic":
            yield "isotonic, identity", "per-label isotonic, dead labels keep their raw score"
            yield "isotonic, exclude", "per-label isotonic, dead labels never shown"


# Every rung that can stand in a ladder, in its order, and what it is.
RUNGS = {
    "unweighted": "the unweighted twin as it is",
    "what-if": "the unweighted twin with ln w added: the ideal weighted model",
    **dict(_calibrated_rungs()),
    "ceiling": "per-label isotonic fitted on the evaluated rows themselves",
}
FITTED = tuple(
    name
    for name in RUNGS
    if name == "isotonic, exclude" or (name in CATALOGUE and CATALOGUE[name].fitted)
)
REPAIRS = ("inversion", *FITTED)  # what can be deployed in place of raw


# --------------------------------------------------------------------------------------- the result


@dataclass(frozen=True, slots=True, eq=False)
class Rung:
    """Metrics at K of one ranking, and their paired differences to raw."""

    name: str
    metrics: dict[str, Estimate]
    differences: dict[str, Estimate]

    def __getitem__(self, metric: str) -> Estimate:
        return self.metrics[metric]


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """Rungs by name, in the order of the ladder. ``ladder["raw"]["map"]`` is an `Estimate`.

    ``map_draws`` holds the resampled MAP of every rung, so that any two can be compared in pairs.
    """

    rungs: dict[str, Rung]
    k: int
    n_rows: int
    n_evaluated: int
    n_replicates: int
    seed: int
    level: float = LEVEL
    map_draws: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> Rung:
        return self.rungs[name]

    def __contains__(self, name: object) -> bool:
        return name in self.rungs

    def __iter__(self) -> Iterator[str]:
        return iter(self.rungs)

    def value(self, name: str, metric: str = "map") -> float:
        """One number of the ladder."""
        return self.rungs[name][metric].value

    def gain(self, name: str, metric: str = "map") -> Estimate:
        """What a rung gains over raw."""
        return self.rungs[name].differences[metric]

    def lead(self, name: str, other: str) -> Estimate:
        """What a rung has over another in MAP, with its paired interval; NaN without draws."""
        low = high = float("nan")
        if name in self.map_draws and other in self.map_draws:
            drawn = self.map_draws[name] - self.map_draws[other]
            low, high = percentile_interval(drawn, self.level)
        return Estimate(self.value(name) - self.value(other), low, high)

    def best(self, names: tuple[str, ...] = REPAIRS, metric: str = "map") -> str | None:
        """The highest of these rungs; the earlier of equals; None if none is there."""
        there = [name for name in names if name in self.rungs]
        return max(there, key=lambda name: self.value(name, metric)) if there else None

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only."""
        return plain(  # type: ignore[no-any-return]
            {
                "n_evaluated": self.n_evaluated,
                "bootstrap": {
                    "replicates": self.n_replicates,
                    "level": self.level,
                    "seed": self.seed,
                },
                "rungs": [
                    {
                        "rung": name,
                        "what": RUNGS[name],
                        "metrics": _estimates(rung.metrics),
                        "minus_raw": _estimates(rung.differences),
                    }
                    for name, rung in self.rungs.items()
                ],
            }
        )

    def to_frame(self) -> Any:
        """A pandas frame with one line per rung and metric."""
        lines = [
            (name, metric, estimate, rung.differences[metric])
            for name, rung in self.rungs.items()
            for metric, estimate in rung.metrics.items()
        ]
        return as_frame(
            {
                "rung": [line[0] for line in lines],
                "metric": [f"{NAMES[line[1]]}@{self.k}" for line in lines],
                "value": [line[2].value for line in lines],
                "low": [line[2].low for line in lines],
                "high": [line[2].high for line in lines],
                "minus_raw": [line[3].value for line in lines],
                "minus_raw_low": [line[3].low for line in lines],
                "minus_raw_high": [line[3].high for line in lines],
            }
        )


def _estimates(estimates: dict[str, Estimate]) -> dict[str, Any]:
    return {name: estimate.to_dict() for name, estimate in estimates.items()}


# ------------------------------------------------------------------------------- ranking every rung


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """Rankings of all evaluated rows by rung, and the per-row values of those with a true label.

    ``signal`` is the within-label AUC of raw. ``n_tied`` rows of raw are decided by ties;
    ``map_worst`` and ``map_best`` say how far the order of tied cells can move its MAP.
    """

    rankings: dict[str, Ranking]
    values: dict[str, NDArray[np.float64]]
    signal: Signal
    n_tied: int
    map_worst: float
    map_best: float


def climb(case: Case) -> Climb:
    """Fit, rank and score every rung that the case allows."""
    ceiling, signal = _count_arm(case)
    maps = _fit_rungs(case) | {"ceiling": ceiling}
    rankings = _rank(case.arm, maps, case.k, case.threads)
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
            name: metric_values(Rankings.made(ranking, truth, case.arm.n_labels))
            for name, ranking in rankings.items()
        },
        signal=signal,
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
    return maps


def _count_arm(case: Case) -> tuple[LabelMaps, Signal]:
    """The ceiling, and the within-label AUC, from one count of the evaluated rows."""
    arm, threads = case.arm, case.threads
    tally = PositiveCellTally(arm.dtype)
    cells = arm.run(tally, threads=threads, what="positives").result()
    counter = FoldCounter(arm, cells, [False])
    alone = np.zeros(arm.n_rows, np.int32)  # all rows in one fold
    counts = counter.count(alone, 1, threads=threads)[False].without(None)
    record = Ceiling(kind=arm.kind)._record(counts.n_positives, arm.n_rows)
    maps = build_maps(arm.kind, "probability", record, knots=counts.isotonic_knots())
    return maps, find_signal(cells, counter.places(False), counts)


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
    ranked_by = {key: np.empty((source.n_rows, k), np.int32) for key in (*distinct, 0)}

    def rank_block(panel: Panel) -> dict[int, Ranking]:
        columns = {key: each.rank_panel(panel, k) for key, each in distinct.items()}
        return columns | {0: rank_panel(panel, k)}

    for first, columns in source.map(rank_block, threads=threads, what="climbing the ladder"):
        for key, block in columns.items():
            ranked_by[key][first : first + len(block)] = block
    return {"raw": ranked_by[0]} | {name: ranked_by[id(each)] for name, each in maps.items()}


# ---------------------------------------------------------------------------------- estimating them


def estimate_ladder(
    values: dict[str, NDArray[np.float64]],
    *,
    k: int,
    n_rows: int,
    n_replicates: int,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
) -> Ladder:
    """Means, intervals and paired differences from the per-row values of every rung.

    ``values`` holds the columns of `oddslip.metrics.at_k.Column` for the rows with a true label.
    The draws depend on the seed alone, so rungs resampled one after the other stay paired.
    """
    n = len(values["raw"])
    draws = _resample(values, n_replicates, seed, threads)
    rungs, map_draws = {}, {}
    for name in (name for name in RUNGS if name in values):
        map_draws[name] = metric_of_sums(draws[name], "map", n)
        metrics, differences = {}, {}
        for metric in NAMES:
            mean, raw_mean = (
                metric_of_sums(values[at].sum(axis=0), metric, n) for at in (name, "raw")
            )
            drawn, raw_drawn = (metric_of_sums(draws[at], metric, n) for at in (name, "raw"))
            metrics[metric] = Estimate(float(mean), *percentile_interval(drawn, LEVEL))
            differences[metric] = Estimate(
                float(mean) - float(raw_mean), *percentile_interval(drawn - raw_drawn, LEVEL)
            )
        rungs[name] = Rung(name, metrics, differences)
    return Ladder(rungs, k, n_rows, n, n_replicates, seed, map_draws=map_draws)


def _resample(
    values: dict[str, NDArray[np.float64]], n_replicates: int, seed: int, threads: int | None
) -> dict[str, NDArray[np.float64]]:
    """Resampled sums of all rungs, as many rungs at a time as memory allows."""
    names = list(values)
    size = max(1, values["raw"].nbytes)
    together = max(1, GROUP_BYTES // size)
    sums: dict[str, NDArray[np.float64]] = {}
    for first in range(0, len(names), together):
        group = names[first : first + together]
        stacked = np.hstack([values[name] for name in group])
        drawn = bootstrap_sums(stacked, n_replicates=n_replicates, seed=seed, threads=threads)
        sums |= dict(zip(group, np.split(drawn, len(group), axis=1), strict=True))
    return sums
