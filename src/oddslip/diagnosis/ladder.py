"""The repair ladder: every rung ranks the same rows, and all share the same bootstrap draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.catalogue import CATALOGUE
from oddslip.core.formatting import score
from oddslip.core.panel import Panel, take_cells
from oddslip.core.results import as_frame, plain
from oddslip.core.types import Floats, Ints, JsonObject
from oddslip.diagnosis.drift import find_takeover
from oddslip.diagnosis.rungs import Rungs
from oddslip.errors import InvalidInput
from oddslip.metrics.at_k import NAMES, Column, Ties, metric_name, metric_of_sums, metric_values
from oddslip.metrics.bootstrap import BootstrapSums, BootstrapTally, percentile_interval
from oddslip.metrics.evaluation import Estimate
from oddslip.metrics.ranking import Rankings, rank_panel, rank_rows
from oddslip.metrics.reliability import N_BINS, count_shown, raw_shown
from oddslip.repairs.maps import LabelMaps
from oddslip.shifts import overlap
from oddslip.sources.views import take_rows

Ranking = NDArray[np.int32]

MAX_ROWS = 1 << 15  # scored together: a row has hundreds of values
TAKEOVER = ("isotonic, identity", "isotonic")  # rankings with and without dead labels' raw scores
LEVEL = 0.95
ROUNDING = 1e-12  # metrics that differ by less are equal: blocks of rows decide their last bits


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

    ``metric`` is the one that rungs are compared by: the default of `value`, `gain`, `lead` and
    `best`. ``draws`` holds its resampled values of every rung, so that any two can be compared in
    pairs.
    """

    rungs: dict[str, Rung]
    k: int
    n_rows: int
    n_evaluated: int
    n_replicates: int
    seed: int
    level: float = LEVEL
    draws: Mapping[str, Floats] = field(default_factory=dict, repr=False)
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
            differences = self.draws[name] - self.draws[other]
            low, high = percentile_interval(differences, self.level)
        return Estimate(self.value(name) - self.value(other), low, high)

    def best(self, names: tuple[str, ...] = REPAIRS, metric: str | None = None) -> str | None:
        """The highest of these rungs; the earlier of equals; None if none is there."""
        values = {name: self.value(name, metric) for name in names if name in self.rungs}
        highest = max(values.values(), default=0.0)
        level = highest - ROUNDING
        return next((name for name, value in values.items() if not value < level), None)

    def to_dict(self) -> JsonObject:
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


def ladder_of_sums(
    sums: BootstrapSums,
    places: Mapping[str, int],
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
        The columns of `oddslip.metrics.at_k.Column` for one ranking after the other, then the
        number of rows.
    places : mapping
        The place of each rung's ranking. Rungs that rank alike may share one.
    k, n_rows, metric, seed
        Of the `Ladder`.

    Returns
    -------
    Ladder
    """
    width = len(Column)

    @cache
    def values(place: int, metric: str) -> tuple[float, Floats]:
        """A metric of a ranking, and its replicates."""
        columns = slice(place * width, (place + 1) * width)
        total, draws = sums.total, sums.draws
        value = metric_of_sums(total[columns], metric, total[-1])
        return float(value), metric_of_sums(draws[:, columns], metric, draws[:, -1])

    @cache
    def estimates(place: int) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
        """All metrics of a ranking, and their differences to raw."""
        metrics, differences = {}, {}
        for each in NAMES:
            value, replicates = values(place, each)
            raw_value, raw_replicates = values(places["raw"], each)
            metrics[each] = Estimate(value, *percentile_interval(replicates, LEVEL))
            differences[each] = Estimate(
                value - raw_value, *percentile_interval(replicates - raw_replicates, LEVEL)
            )
        return metrics, differences

    names = [name for name in RUNGS if name in places]
    return Ladder(
        {name: Rung(name, *estimates(places[name])) for name in names},
        k,
        n_rows,
        round(float(sums.total[-1])),
        len(sums.draws),
        seed,
        draws={name: values(places[name], metric)[1] for name in names},
        metric=metric,
    )


# ---------------------------------------------------------------------------------- the measurement


class LadderTally(BootstrapTally):
    """Ranks every row by every rung, and adds up what each is worth.

    Rungs without a place in each row's comparison with the twin, in what is shown or in the
    takeover rank only the rows with a true label.

    Parameters
    ----------
    rungs : Rungs
    k : int
    propensities : ndarray of shape (n_labels,)
    twin : bool
        Whether panels bring a twin.
    n_replicates, seed : int
        Of the bootstrap.
    """

    JOINED: ClassVar = dict.fromkeys(
        (
            *("n_evaluated", "n_tied", "bounds", "n_shared", "n_changed", "n_risen", "slots"),
            "shown_counts",
        ),
        "add",
    )

    def __init__(
        self, rungs: Rungs, k: int, propensities: Floats, twin: bool, n_replicates: int, seed: int
    ) -> None:
        self.rungs, self.k, self.propensities, self.twin = rungs, k, propensities, twin
        self.n_replicates, self.seed = n_replicates, seed
        self.groups = list(dict.fromkeys(tuple(each) for each in rungs.places.values()))
        single = ["raw", *rungs.popular]
        single += ["unweighted"] * twin + ["what-if"] * (twin and rungs.what_if is not None)
        self.single = {name: len(self.groups) + at for at, name in enumerate(single)}
        by_maps = {name: self.groups.index(tuple(each)) for name, each in rungs.places.items()}
        self.places = by_maps | self.single  # by rung, of its ranking among the sums
        self._ranks_all = {place for name in self._of_all_rows() for place in rungs.places[name]}
        self.n_evaluated = self.n_tied = self.n_shared = self.n_changed = self.n_risen = 0
        self.bounds = np.zeros((2, len(Column)))
        self.slots = np.zeros(propensities.size, np.int64)
        self.shown_counts = np.zeros(
            (2, 3, N_BINS), np.int64
        )  # by raw scores, and by what is chosen
        n_rankings = len(self.groups) + len(self.single)
        self.sums = BootstrapSums(n_rankings * len(Column) + 1, n_replicates, seed)
        self.blocks_apart = max(1, self.sums.draws.nbytes >> 20)

    def _of_all_rows(self) -> list[str]:
        """Rungs whose ranking of rows without a true label is needed too."""
        names = ["chosen"]
        if self.rungs.folds is None and self.rungs.dead.any():
            names += TAKEOVER
        return [name for name in names if name in self.rungs.places]

    def add(self, panel: Panel) -> None:
        """Rank one block."""
        panel = panel.checked()
        for start in range(0, panel.n_rows, MAX_ROWS):
            stop = min(start + MAX_ROWS, panel.n_rows)
            whole = stop - start == panel.n_rows
            self._add_rows(panel if whole else panel.rows(start, stop))

    def _add_rows(self, panel: Panel) -> None:
        tied = rank_rows(panel, self.k)
        rows = tied.rows - panel.first_row
        part = take_some(panel, rows)
        raw = self._rank_raw(panel, rows, tied.columns)
        folds = None if self.rungs.folds is None else self.rungs.folds.of(panel)
        by_maps = self._rank_by_maps(panel, rows, folds)
        rankings = [columns[rows] for columns in by_maps]
        rankings += [tied.columns, *self._rank_popular(part)]
        if self.twin:
            rankings += self._rank_twin(panel, rows, raw)
        truth = panel.positives().take(rows)
        values = [
            metric_values(
                Rankings.of(columns, truth, panel.n_labels), propensities_given=self.propensities
            )
            for columns in rankings
        ]
        self.n_evaluated += rows.size
        self.n_tied += int(tied.decided_by_ties.sum())
        self.bounds += sum_bounds(tied, self.propensities)
        self._add_takeover(by_maps, rows, folds)
        self.shown_counts[0] += count_shown(panel, raw, raw_shown(panel, raw))
        if "chosen" in self.rungs.places:
            self._add_shown(panel, by_maps[self.places["chosen"]], folds)
        keys = panel.row_keys()[rows] if self.n_replicates else None
        self.sums.add_rows(np.column_stack([*values, np.ones(rows.size)]), keys)

    def _rank_raw(self, panel: Panel, rows: Ints, columns: Ranking) -> Ranking:
        """The top K of all rows; ``columns`` are those of the rows with a true label."""
        if rows.size == panel.n_rows:
            return columns
        others = np.setdiff1d(np.arange(panel.n_rows), rows, assume_unique=True)
        ranking = np.empty((panel.n_rows, self.k), np.int32)
        ranking[rows], ranking[others] = columns, rank_panel(take_rows(panel, others), self.k)
        return ranking

    def _rank_by_maps(
        self, panel: Panel, rows: Ints, folds: NDArray[np.int32] | None
    ) -> list[Ranking]:
        """The top K by each group of maps, every map once; -1 in rows that need not be ranked."""
        evaluated = np.zeros(panel.n_rows, np.bool_)
        evaluated[rows] = True

        @cache
        def part(fold: int | None, every: bool) -> tuple[Ints, Panel]:
            inside = np.ones(panel.n_rows, np.bool_) if fold is None else folds == fold
            numbers = np.flatnonzero(inside if every else inside & evaluated)
            return numbers, take_some(panel, numbers)

        @cache
        def rank(place: int, fold: int | None) -> tuple[Ints, Ranking]:
            numbers, some = part(fold, place in self._ranks_all)
            if not numbers.size:
                return numbers, np.empty((0, self.k), np.int32)
            return numbers, self.rungs.maps[place].rank_panel(some, self.k)

        rankings = []
        for group in self.groups:
            ranking = np.full((panel.n_rows, self.k), -1, np.int32)
            for fold, place in enumerate(group):
                numbers, columns = rank(place, None if len(group) == 1 else fold)
                ranking[numbers] = columns
            rankings.append(ranking)
        return rankings

    def _rank_popular(self, part: Panel) -> list[Ranking]:
        return [
            each.rank_panel(part, self.k)
            if isinstance(each, LabelMaps)
            else np.tile(each, (part.n_rows, 1))
            for each in self.rungs.popular.values()
        ]

    def _rank_twin(self, panel: Panel, rows: Ints, raw: Ranking) -> list[Ranking]:
        """The twin as it is and with ln w added; and how far it shows the same labels."""
        twin = panel.twin
        if twin is None:
            raise InvalidInput("a twin must come with every row, got a block without one.")
        columns = rank_panel(twin, self.k)
        shared = overlap(raw, columns)
        self.n_shared += int(shared.sum())
        self.n_changed += int((shared < (raw >= 0).sum(axis=1)).sum())
        rankings = [columns[rows]]
        if self.rungs.what_if is not None:
            rankings.append(self.rungs.what_if.rank_panel(take_some(twin, rows), self.k))
        return rankings

    def _add_shown(self, panel: Panel, columns: Ranking, folds: NDArray[np.int32] | None) -> None:
        """What the chosen maps show of all rows, in bins of its probability."""
        filled, cells = columns >= 0, take_cells(panel, columns)
        probabilities = np.empty(columns.shape)
        places = self.rungs.places["chosen"]
        for fold, place in enumerate(places):
            inside = filled if folds is None else filled & (folds == fold)[:, None]
            maps = self.rungs.maps[place]
            probabilities[inside] = maps.probabilities_at(cells[inside], columns[inside])
        self.shown_counts[1] += count_shown(panel, columns, probabilities[filled])

    def _add_takeover(
        self, by_maps: list[Ranking], rows: Ints, folds: NDArray[np.int32] | None
    ) -> None:
        """Slots of dead labels: in all rows, or fold by fold in those with a true label."""
        if TAKEOVER[0] not in self.rungs.places or not self.rungs.dead.any():
            return
        identity, prior = (by_maps[self.places[name]] for name in TAKEOVER)
        for fold, dead in enumerate(self.rungs.dead):
            inside = slice(None) if folds is None else rows[folds[rows] == fold]
            takeover = find_takeover(identity[inside], prior[inside], dead)
            self.n_risen += takeover.n_rows
            self.slots += takeover.slots

    def result(self) -> Self:
        """The sums."""
        return self


def take_some(panel: Panel, rows: Ints) -> Panel:
    """A panel of some rows, which is the panel itself where these are all."""
    return panel if rows.size == panel.n_rows else take_rows(panel, rows)


def sum_bounds(tied: Rankings, propensities: Floats) -> Floats:
    """Sums of every column, of shape (2, columns): tied cells in their worst order, and best."""

    def sums(ties: Ties) -> list[float]:
        values = metric_values(tied, ties=ties, propensities_given=propensities)
        return [values[:, column].sum() for column in Column]

    return np.array([sums("worst"), sums("best")])
