"""Which of the paper's claims hold on these cells: section 3, what repairs a weighted model."""

from __future__ import annotations

from collections.abc import Callable

from oddslip.studies.pair_arms import LEARNERS, Arm
from oddslip.studies.pair_cells import rung_values
from oddslip.studies.pair_claims import Claim, Finder, claim_all, ladder_pairs
from oddslip.studies.pair_protocols import PROTOCOLS
from oddslip.studies.pair_tables import Cells

CLOSE = 0.01  # MAP: "within 0.01 of its ceiling" (section 3, The fallback decides the sign)
DEPLOYABLE = ("raw", "inversion", "pooled", "isotonic")  # rungs of Table 1 that can be deployed
NOT_IN_TABLE = ("offset", "platt", "beta")


def repair_reaches_ceiling(cells: Cells) -> Claim | None:
    """Isotonic with the prior fallback returns the weighted model to its in-sample ceiling."""
    gaps = [
        (p.learner, p.weighted["ceiling"] - p.weighted["isotonic"]) for p in ladder_pairs(cells)
    ]
    return claim_all(
        f"Isotonic returns the weighted model to within {CLOSE} of its ceiling",
        [gap <= CLOSE for _, gap in gaps],
        [f"{name} {gap:+.4f} below it" for name, gap in gaps],
    )


def isotonic_the_best_rung(cells: Cells) -> Claim | None:
    """Isotonic with the prior fallback is the best rung of every weighted pair of Table 1."""
    holds, numbers = [], []
    for learner, rungs, _ in ladder_pairs(cells):
        order = sorted(DEPLOYABLE, key=lambda rung: -rungs[rung])
        other = max(NOT_IN_TABLE, key=lambda rung: rungs[rung])
        told = ", ".join(f"{rung} {rungs[rung]:.4f}" for rung in order[:2])
        holds.append(order[0] == "isotonic")
        numbers.append(f"{learner}: {told}; not in that table {other} {rungs[other]:.4f}")
    what = "Of the rungs of Table 1, isotonic with the prior is the weighted model's best"
    return claim_all(what, holds, numbers)


def pooled_repairs_little(cells: Cells) -> Claim | None:
    """One map for all labels repairs little: it keeps the order of cells but for ties."""
    told = []
    for pair in ladder_pairs(cells):
        raw = pair.weighted["raw"]
        told.append((pair.learner, pair.weighted["pooled"] - raw, pair.weighted["isotonic"] - raw))
    return claim_all(
        "The pooled map returns less than a quarter of what isotonic returns",
        [pooled < 0.25 * isotonic for _, pooled, isotonic in told],
        [f"{name} {pooled:+.4f} against {isotonic:+.4f}" for name, pooled, isotonic in told],
    )


def identity_hurts(cells: Cells) -> Claim | None:
    """With the identity fallback dead labels take slots over."""
    return _fallback(
        cells,
        "isotonic, identity",
        "The identity fallback for dead labels loses against the prior",
        lambda fallback, prior: fallback < prior,
    )


def exclusion_like_prior(cells: Cells) -> Claim | None:
    """Exclusion of dead labels behaves like the prior."""
    return _fallback(
        cells,
        "isotonic, exclude",
        f"Exclusion of dead labels stays within {CLOSE} of the prior",
        lambda fallback, prior: abs(fallback - prior) <= CLOSE,
    )


def _fallback(
    cells: Cells, rung: str, what: str, test: Callable[[float, float], bool]
) -> Claim | None:
    """Only under a protocol with dead labels does a fallback show."""
    holds, numbers = [], []
    for learner in LEARNERS:
        cell = cells.get(Arm(learner, "r").key)
        for protocol in PROTOCOLS if cell else ():
            dead = cell[protocol]["calibration_positives"]["n_dead"]  # type: ignore[index]
            if dead:
                values = rung_values(cell, protocol)
                holds.append(test(values[rung], values["isotonic"]))
                told = f"{values[rung]:.4f} against {values['isotonic']:.4f}"
                numbers.append(f"{learner}, {protocol}, {dead} dead: {told}")
    return claim_all(what, holds, numbers)


def repaired_weighted_below_twin(cells: Cells) -> Claim | None:
    """After the same calibrator the weighted model stays below the unweighted one."""
    keys = {x: Arm(x, "r").key for x in LEARNERS if Arm(x, "r").key in cells}
    gaps = {x: cells[key]["test-split"]["repaired_minus_twin"] for x, key in keys.items()}
    return claim_all(
        "Repaired alike, the weighted model stays below the unweighted one",
        [gap["high"] < 0 for gap in gaps.values()],
        [f"{x} {g['value']:+.4f} [{g['low']:+.4f}, {g['high']:+.4f}]" for x, g in gaps.items()],
    )


def protocols_agree(cells: Cells) -> Claim | None:
    """The two protocols differ little on the bold rung, and the order of rungs is the same."""
    holds, numbers = [], []
    for learner in LEARNERS:
        for weight in ("r", "1"):
            cell = cells.get(Arm(learner, weight).key)
            if cell is not None:
                first, second = (rung_values(cell, protocol) for protocol in PROTOCOLS)
                gap = second["isotonic"] - first["isotonic"]
                holds.append(abs(gap) <= CLOSE)
                numbers.append(f"{learner} w={weight} {gap:+.4f}")
    what = f"Deployment differs from the test split by at most {CLOSE} on isotonic"
    return claim_all(what, holds, numbers)


def calibrator_lifts_twin(cells: Cells) -> Claim | None:
    """The same calibrator lifts the unweighted booster too (Instacart)."""
    cell = cells.get(Arm("lightgbm", "1").key)
    if cell is None:
        return None
    gain = cell["test-split"]["ladder"]["rungs"]["isotonic"]["minus_raw"]
    return Claim(
        "The same calibrator lifts the unweighted booster",
        gain["low"] > 0,
        f"{gain['value']:+.4f} [{gain['low']:+.4f}, {gain['high']:+.4f}]",
    )


REPAIR_CLAIMS: tuple[Finder, ...] = (
    repair_reaches_ceiling, isotonic_the_best_rung, pooled_repairs_little, identity_hurts,
    exclusion_like_prior, repaired_weighted_below_twin, calibrator_lifts_twin, protocols_agree,
)  # fmt: skip
