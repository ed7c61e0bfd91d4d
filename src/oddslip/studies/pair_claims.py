"""Which of the paper's claims hold on these cells: section 3, what a weight costs and why.

Every claim is a function of the cells: None where they are not finished, else whether it holds
here and the numbers that say so. Nothing is asserted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from oddslip.studies.pair_arms import LEARNERS, Arm
from oddslip.studies.pair_cells import rung_values
from oddslip.studies.pair_tables import Cells, has_loss

PAYS = 0.5  # share of the loss
REALIZED = (0.8, 1.25)  # median realized over intended shift, "at the intended level"
UNSATURATED = 1e-3  # share of cells, "essentially no cell"


class Claim(NamedTuple):
    """A claim of the paper, whether it holds here, and by which numbers."""

    what: str
    holds: bool
    numbers: str


Finder = Callable[[Cells], Claim | None]


class Pair(NamedTuple):
    """Rungs (MAP@K, test-split) of a weighted arm and of its twin."""

    learner: str
    weighted: dict[str, float]
    twin: dict[str, float]


def ladder_pairs(cells: Cells) -> Iterator[Pair]:
    """The pairs of Table 1 that are finished."""
    for learner in LEARNERS:
        arm = Arm(learner, "r")
        if arm.key in cells and arm.twin.key in cells:
            values = (rung_values(cells[key], "test-split") for key in (arm.key, arm.twin.key))
            yield Pair(learner, *values)


def weighted_below_popularity(cells: Cells) -> Claim | None:
    """On all pairs the weighted model ranks below the popularity baseline."""
    told = [(p.learner, p.weighted["raw"], p.weighted["popularity"]) for p in ladder_pairs(cells)]
    return claim_all(
        "The weighted model ranks below popularity",
        [raw < popular for _, raw, popular in told],
        [f"{name} {raw:.4f} against {popular:.4f}" for name, raw, popular in told],
    )


def odds_a_minority(cells: Cells) -> Claim | None:
    """The odds shift is a minority of the weighted booster's loss."""
    cell = cells.get(Arm("lightgbm", "r").key)
    if cell is None or not has_loss(cell):
        return None
    share = cell["test-split"]["decomposition"]["shares"]["odds"]
    what = "The odds shift is a minority of the weighted booster's loss"
    return Claim(what, share < 0.5, f"{share:.0%} of the loss")


def inversion_needs_both(cells: Cells) -> Claim | None:
    """Inverting by ln w pays only where the shift was realized and no cell saturated."""
    paid, wrong, n_models = [], [], 0
    for key, cell in cells.items():
        if not has_loss(cell) or cell["deployment"]["shifts"]["median_ratio"] is None:
            continue
        parts = cell["test-split"]["decomposition"]
        ratio = cell["deployment"]["shifts"]["median_ratio"]
        n_models += 1
        if parts["returned"]["inversion"] >= PAYS:
            stored = cell["saturated_share"]
            paid.append(f"{key} ({parts['returned']['inversion']:.0%}, ratio {ratio:.2f})")
            if not (REALIZED[0] <= ratio <= REALIZED[1] and stored <= UNSATURATED):
                wrong.append(f"{key}: ratio {ratio:.2f}, {stored:.1%} of cells at 1.0")
    if not n_models:
        return None
    numbers = f"it does in {len(paid)} of {n_models} models with a loss"
    numbers += f": {', '.join(paid)}" if paid else ""
    numbers += f"; without both conditions in {len(wrong)} ({'; '.join(wrong)})" if wrong else ""
    what = (
        "Inversion returns half of the loss only where the shift was realized "
        f"(median ratio {REALIZED[0]} to {REALIZED[1]}) and hardly a cell saturated"
    )
    return Claim(what, not wrong, numbers)


def ties_decide(cells: Cells) -> Claim | None:
    """The booster's loss is mostly a matter of how its ties are broken (Instacart)."""
    cell = cells.get(Arm("lightgbm", "r").key)
    if cell is None or not has_loss(cell) or cell["reordered"]["by_twin"]["share"] is None:
        return None
    told = cell["reordered"]
    twin, oracle = told["by_twin"]["share"], told["by_oracle"]["share"]
    return Claim(
        "Re-ordering saturated cells by the twin returns half of the booster's loss (Instacart)",
        twin >= PAYS,
        f"by the twin {twin:.0%}, by the oracle {oracle:.0%}; "
        f"{cell['saturated_share']:.1%} of cells at 1.0, "
        f"{cell['saturated_per_row']:.1f} per row",
    )


def claim_all(what: str, holds: list[bool], numbers: list[str]) -> Claim | None:
    """A claim about several arms: it holds if it holds for each; None if there is none."""
    return Claim(what, all(holds), "; ".join(numbers)) if holds else None


LOSS_CLAIMS: tuple[Finder, ...] = (
    weighted_below_popularity,
    odds_a_minority,
    ties_decide,
    inversion_needs_both,
)
