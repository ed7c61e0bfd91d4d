"""`SelectionTable`: what every candidate reached out of fold, and which one was taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.metrics.bootstraps import bootstrap_sums, percentile_interval
from oddslip.metrics.evaluations import NAMES, Estimate
from oddslip.results import as_frame, html_table, plain
from oddslip.selection.candidates import RAW
from oddslip.selection.rules import Choice, Rule, gains_over_raw
from oddslip.selection.trials import Trials

N_REPLICATES = 2000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Line:
    """One candidate: its out-of-fold mean, its paired difference to raw, and that one's error."""

    candidate: str
    mean: float
    difference: Estimate
    standard_error: float


@dataclass(frozen=True, eq=False)
class SelectionTable:
    """Out-of-fold means of all candidates, with paired bootstrap intervals of their differences.

    ``n_evaluated`` of ``n_rows`` rows have a true label. ``fits`` says how many fits were made
    out of fold, by what was fitted: candidates share them. No choice rests on the intervals, and
    drawing them takes longer than choosing; so they are drawn when first looked at.

    Attributes
    ----------
    rule, chosen, why : str
        The rule, what it chose, and why.
    candidates, means, standard_errors : tuple
        Each candidate's name, out-of-fold mean, and standard error of its difference to raw.
    metric, k, n_folds, n_repeats, seed, level
        How candidates were compared.
    """

    rule: str
    chosen: str
    why: str
    metric: str
    k: int
    n_rows: int
    n_evaluated: int
    n_folds: int
    n_repeats: int
    seed: int
    level: float
    fits: dict[str, int]
    candidates: tuple[str, ...]
    means: tuple[float, ...]
    standard_errors: tuple[float, ...]
    _paired: NDArray[np.float64] = field(repr=False)
    _threads: int | None = field(default=None, repr=False)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """One line per candidate, in the order they were given."""
        sums = bootstrap_sums(
            self._paired, n_replicates=N_REPLICATES, seed=self.seed, threads=self._threads
        )
        gains = self._paired.mean(axis=0)
        return tuple(
            Line(
                candidate,
                self.means[at],
                Estimate(
                    float(gains[at]),
                    *percentile_interval(sums[:, at] / self.n_evaluated, self.level),
                ),
                self.standard_errors[at],
            )
            for at, candidate in enumerate(self.candidates)
        )

    def __getitem__(self, candidate: str) -> Line:
        return next(line for line in self.lines if line.candidate == candidate)

    def to_dict(self) -> dict[str, Any]:
        """Built-in types only."""
        named = ("rule", "chosen", "why", "metric", "k", "n_rows", "n_evaluated", "n_folds",
                 "n_repeats", "seed", "level", "fits")  # fmt: skip
        return plain(  # type: ignore[no-any-return]
            {
                "schema": "oddslip.selection/1",
                **{name: getattr(self, name) for name in named},
                "candidates": [
                    {name: values[at] for name, values in self._columns().items()}
                    for at in range(len(self.lines))
                ],
            }
        )

    def to_frame(self) -> Any:
        """A pandas frame with one line per candidate."""
        return as_frame(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        return {
            "candidate": [line.candidate for line in self.lines],
            "mean": [line.mean for line in self.lines],
            "difference": [line.difference.value for line in self.lines],
            "low": [line.difference.low for line in self.lines],
            "high": [line.difference.high for line in self.lines],
            "standard_error": [line.standard_error for line in self.lines],
            "chosen": [line.candidate == self.chosen for line in self.lines],
        }

    def _repr_html_(self) -> str:
        rows = [
            [
                line.candidate + (" (chosen)" if line.candidate == self.chosen else ""),
                f"{line.mean:.4f}",
                f"{line.difference.value:+.4f}",
                f"{line.difference.low:+.4f} to {line.difference.high:+.4f}",
            ]
            for line in self.lines
        ]
        header = ["candidate", f"out-of-fold {NAMES[self.metric]}@{self.k}", "less raw",
                  f"{self.level:.0%} interval"]  # fmt: skip
        return html_table(header, rows, self.why)


def make_table(rule: Rule, trials: Trials, choice: Choice) -> SelectionTable:
    """The table of a choice."""
    _, errors = gains_over_raw(trials)
    values = trials.values
    return SelectionTable(
        rule=rule.name, chosen=trials.candidates[choice.place].name, why=choice.why,
        metric=trials.metric, k=trials.k, n_rows=trials.fits.source.n_rows,
        n_evaluated=len(values), n_folds=trials.n_folds, n_repeats=trials.n_repeats,
        seed=trials.seed, level=LEVEL, fits=trials.n_fits,
        candidates=tuple(candidate.name for candidate in trials.candidates),
        means=tuple(values.mean(axis=0).tolist()), standard_errors=tuple(errors.tolist()),
        _paired=values - values[:, [trials.candidates.index(RAW)]], _threads=trials.fits.threads,
    )  # fmt: skip
