"""The repair ladder: every rung ranks the same rows, and all share the same bootstrap draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.catalogue import CATALOGUE
from oddslip.core.formatting import score
from oddslip.core.results import as_frame, plain
from oddslip.metrics.at_k import Column, metric_of_sums
from oddslip.metrics.bootstrap import BootstrapSums, percentile_interval
from oddslip.metrics.evaluation import NAMES, Estimate, metric_name

LEVEL = 0.95


# ---------------------------------------------------------------------------------------- the rungs


def _calibrated_rungs() -> Iterator[tuple[str, str]]:
    """Rungs of the catalogue; isotonic under each other policy, popularity by each prevalence."""
    for entry in CATALOGUE.values():
        if entry.rung:
            yield entry.name, entry.what
        if entry.name == "isotonic":
            yield "isotonic, identity", "per-label isotonic, dead labels keep their raw score"
            yield "isotonic, exclude", "per-label isotonic, dead labels never shown"
        if entry.name == "popularity":
            yield "popularity, calibration", "labels by their prevalence in the calibration rows"


# Every rung that can stand in a ladder, in its order, and what it is.
RUNGS = {
    "unweighted": "the unweighted twin as it is",
    "what-if": "the unweighted twin with ln w added: the ideal weighted model",
    "raw": CATALOGUE["raw"].what,
    "chosen": "what Repair would deploy, chosen without the rows it ranks here",
    **dict(_calibrated_rungs()),
    "ceiling": "per-label isotonic fitted on the evaluated rows themselves",
}
FITTED = tuple(
    name
    for name in RUNGS
    if name == "isotonic, exclude" or (name in CATALOGUE and CATALOGUE[name].fitted)
)
REPAIRS = ("chosen", "inversion", *FITTED)  # what can be deployed in place of raw
LISTS = ("popularity", "popularity, calibration")  # the same list in every row


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

    ``metric`` is the one that rungs are compared by: what `value`, `gain`, `lead` and `best` are
    of, unless told. ``draws`` holds the resampled values of every rung in it, so that any two can
    be compared in pairs.
    """

    rungs: dict[str, Rung]
    k: int
    n_rows: int
    n_evaluated: int
    n_replicates: int
    seed: int
    level: float = LEVEL
    draws: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)
    metric: str = "map"

    @property
    def metric_name(self) -> str:
        """What the metric is called: ``MAP@7``."""
        return metric_name(self.metric, self.k)

    def __repr__(self) -> str:
        names = ", ".join(f"{name} {score(self.value(name))}" for name in self.rungs)
        return f"Ladder({self.metric_name} of {self.n_evaluated:,} rows: {names})"

    def __str__(self) -> str:
        """The rungs as `oddslip diagnose` prints them."""
        from oddslip.reports.text import as_text, rung_table

        return as_text([rung_table(self)])

    def __getitem__(self, name: str) -> Rung:
        return self.rungs[name]

    def __contains__(self, name: object) -> bool:
        return name in self.rungs

    def __iter__(self) -> Iterator[str]:
        return iter(self.rungs)

    def estimate(self, name: str, metric: str | None = None) -> Estimate:
        """A rung's metric with its interval."""
        return self.rungs[name][metric or self.metric]

    def value(self, name: str, metric: str | None = None) -> float:
        """One number of the ladder."""
        return self.estimate(name, metric).value

    def gain(self, name: str, metric: str | None = None) -> Estimate:
        """What a rung gains over raw."""
        return self.rungs[name].differences[metric or self.metric]

    def lead(self, name: str, other: str) -> Estimate:
        """What a rung has over another, with its paired interval; NaN without draws."""
        low = high = float("nan")
        if name in self.draws and other in self.draws:
            drawn = self.draws[name] - self.draws[other]
            low, high = percentile_interval(drawn, self.level)
        return Estimate(self.value(name) - self.value(other), low, high)

    def best(self, names: tuple[str, ...] = REPAIRS, metric: str | None = None) -> str | None:
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
                "metric": [metric_name(line[1], self.k) for line in lines],
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


# ---------------------------------------------------------------------------------- estimating them


def ladder_of_sums(
    sums: BootstrapSums,
    names: Sequence[str],
    *,
    k: int,
    n_rows: int,
    metric: str = "map",
    seed: int,
) -> Ladder:
    """Means, intervals and paired differences to raw.

    Parameters
    ----------
    sums : BootstrapSums
        The columns of `oddslip.metrics.at_k.Column` for one rung after the other, then the number
        of rows.
    names : sequence of str
        The rungs, in the order of the columns.
    k, n_rows, metric, seed
        Of the `Ladder`.

    Returns
    -------
    Ladder
    """
    width = len(Column)
    places = {name: slice(at * width, (at + 1) * width) for at, name in enumerate(names)}

    def values(name: str, metric: str) -> tuple[float, NDArray[np.float64]]:
        """A metric of a rung, and its replicates."""
        total, draws = sums.total, sums.draws
        value = metric_of_sums(total[places[name]], metric, total[-1])
        return float(value), metric_of_sums(draws[:, places[name]], metric, draws[:, -1])

    rungs, draws = {}, {}
    raw = {each: values("raw", each) for each in NAMES}
    for name in (name for name in RUNGS if name in places):
        metrics, differences = {}, {}
        for each in NAMES:
            value, replicates = values(name, each)
            raw_value, raw_replicates = raw[each]
            metrics[each] = Estimate(value, *percentile_interval(replicates, LEVEL))
            differences[each] = Estimate(
                value - raw_value, *percentile_interval(replicates - raw_replicates, LEVEL)
            )
            if each == metric:
                draws[name] = replicates
        rungs[name] = Rung(name, metrics, differences)
    n, n_replicates = round(float(sums.total[-1])), len(sums.draws)
    return Ladder(rungs, k, n_rows, n, n_replicates, seed, draws=draws, metric=metric)
