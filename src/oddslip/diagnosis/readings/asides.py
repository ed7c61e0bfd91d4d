"""What is read of the panels beside their rungs, in passes that the rungs need anyway."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.core.panel import Panel
from oddslip.diagnosis.case import Case
from oddslip.diagnosis.drift import unique_row_hashes
from oddslip.shifts import RealizedShift, Saturation, realized_shift, saturation
from oddslip.sources import Source
from oddslip.sources.passes import read_together
from oddslip.sources.views import take_rows

SAMPLED_CELLS = 2**23  # of model and twin each: thousands of rows tell a median well


class Asides(NamedTuple):
    """Shifts and saturation of the evaluated rows; where needed, marks and a sample of them.

    ``marks`` tell rows of two panels that are the same; see `oddslip.diagnosis.drift`.
    ``sample`` are the scores of the rows on which model and twin are held together.
    """

    realized: RealizedShift
    saturation: Saturation
    marks: NDArray[np.uint64] | None
    sample: NDArray[Any] | None


def read_arm(case: Case, function: Callable[[Source], Any]) -> tuple[Any, Asides]:
    """What a function makes of the evaluated rows, and what is read of them beside it."""
    threads = case.threads
    asked: dict[str, Callable[[Source], Any]] = {
        "function": function,
        "realized": lambda rows: realized_shift(rows, case.named_prior, threads=threads),
        "saturation": lambda rows: saturation(rows, k=case.k, distinct=False, threads=threads),
    }
    if case.marked:
        asked["marks"] = partial(unique_row_hashes, threads=threads)
    if case.twin is not None:
        asked["sample"] = partial(take_sample, kept=sampled_rows(case), threads=threads)
    made = read_together(
        case.arm, list(asked.values()), threads=threads, what="reading the evaluated rows"
    )
    found = dict(zip(asked, made, strict=True))
    return found.pop("function"), Asides(
        found["realized"], found["saturation"], found.get("marks"), found.get("sample")
    )


def sampled_rows(case: Case) -> NDArray[np.int64]:
    """All rows, or seeded ones with about `SAMPLED_CELLS` cells, in their order."""
    arm = case.arm
    n_rows = max(1, SAMPLED_CELLS // arm.n_labels)
    if arm.n_rows <= n_rows:
        return np.arange(arm.n_rows)
    return np.sort(np.random.default_rng(case.seed).permutation(arm.n_rows)[:n_rows])


def take_sample(
    source: Source, kept: NDArray[np.int64], threads: int | None = None
) -> NDArray[Any]:
    """Scores of some rows, given in ascending order; NaN where a cell is absent."""

    def take(panel: Panel) -> NDArray[Any]:
        first, last = np.searchsorted(kept, [panel.first_row, panel.first_row + panel.n_rows])
        part = take_rows(panel.checked(), kept[first:last] - panel.first_row)
        there = part.present()
        if there is None:
            return part.scores
        return np.where(there, part.scores, part.dtype.type(np.nan))

    return np.concatenate([block for _, block in source.map(take, threads=threads)])
