"""Which of the paper's claims hold on these cells: costs of a weight, repairs, caps and doses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from experiments.pairs.arms import LEARNERS, Arm
from experiments.pairs.cells import rung_values
from experiments.pairs.protocols import PROTOCOLS
from experiments.pairs.tables import Cells, cap_rows, dose_rows, draw_rows, has_loss

PAYS = 0.5  # share of the loss
REALIZED = (0.8, 1.25)  # median realized over intended shift, "at the intended level"
UNSATURATED = 1e-3  # share of cells, "essentially no cell"
CLOSE = 0.01  # MAP: "within 0.01 of its ceiling" (section 3, The fallback decides the sign)
DEPLOYABLE = ("raw", "inversion", "pooled", "isotonic")  # rungs of Table 1 that can be deployed
NOT_IN_TABLE = ("offset", "platt", "beta")
STABLE = 0.01  # MAP: standard deviation over draws that counts as stable
_ROUNDING = 1e-6  # nat: the realized shift is found to 1e-9, scores are float32


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
    scores = [(p.learner, p.weighted["raw"], p.weighted["popularity"]) for p in ladder_pairs(cells)]
    return claim_all(
        "The weighted model ranks below popularity",
        [raw < popular for _, raw, popular in scores],
        [f"{name} {raw:.4f} against {popular:.4f}" for name, raw, popular in scores],
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
    gains, wrong, n_models = [], [], 0
    for key, cell in cells.items():
        if not has_loss(cell) or cell["deployment"]["shifts"]["median_ratio"] is None:
            continue
        parts = cell["test-split"]["decomposition"]
        ratio = cell["deployment"]["shifts"]["median_ratio"]
        n_models += 1
        if parts["returned"]["inversion"] >= PAYS:
            stored = cell["saturated_share"]
            gains.append(f"{key} ({parts['returned']['inversion']:.0%}, ratio {ratio:.2f})")
            if not (REALIZED[0] <= ratio <= REALIZED[1] and stored <= UNSATURATED):
                wrong.append(f"{key}: ratio {ratio:.2f}, {stored:.1%} of cells at 1.0")
    if not n_models:
        return None
    numbers = f"it does in {len(gains)} of {n_models} models with a loss"
    numbers += f": {', '.join(gains)}" if gains else ""
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
    reordered = cell["reordered"]
    twin, oracle = reordered["by_twin"]["share"], reordered["by_oracle"]["share"]
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
        best_two = ", ".join(f"{rung} {rungs[rung]:.4f}" for rung in order[:2])
        holds.append(order[0] == "isotonic")
        numbers.append(f"{learner}: {best_two}; not in that table {other} {rungs[other]:.4f}")
    what = "Of the rungs of Table 1, isotonic with the prior is the weighted model's best"
    return claim_all(what, holds, numbers)


def pooled_repairs_little(cells: Cells) -> Claim | None:
    """One map for all labels repairs little: it keeps the order of cells but for ties."""
    gains = []
    for pair in ladder_pairs(cells):
        raw = pair.weighted["raw"]
        gains.append((pair.learner, pair.weighted["pooled"] - raw, pair.weighted["isotonic"] - raw))
    return claim_all(
        "The pooled map returns less than a quarter of what isotonic returns",
        [pooled < 0.25 * isotonic for _, pooled, isotonic in gains],
        [f"{name} {pooled:+.4f} against {isotonic:+.4f}" for name, pooled, isotonic in gains],
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
                scores = f"{values[rung]:.4f} against {values['isotonic']:.4f}"
                numbers.append(f"{learner}, {protocol}, {dead} dead: {scores}")
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
    repair_reaches_ceiling,
    isotonic_the_best_rung,
    pooled_repairs_little,
    identity_hurts,
    exclusion_like_prior,
    repaired_weighted_below_twin,
    calibrator_lifts_twin,
    protocols_agree,
)


def _capped(cells: Cells) -> list[dict[str, Any]]:
    return [row for row in cap_rows(cells) if row["cap"] is not None]


def shift_inside_budget(cells: Cells) -> Claim | None:
    """The largest realized shift stays inside the step budget at every cap."""
    rows = [row for row in _capped(cells) if row["largest shift"] is not None]
    if not rows:
        return None
    inside = [row["largest shift"] <= row["budget"] + _ROUNDING for row in rows]
    numbers = [f"{row['largest shift']:.2f} of {row['budget']:.1f}" for row in rows]
    what = "The largest realized shift stays inside the budget at every cap"
    return Claim(what, all(inside), f"{sum(inside)} of {len(rows)} caps: {', '.join(numbers)} nat")


def caps_never_saturate(cells: Cells) -> Claim | None:
    """No cell is at exactly 1.0 under any cap."""
    rows = _capped(cells)
    if not rows:
        return None
    worst = max(row["saturated"] for row in rows)
    free = [row["saturated"] for row in cap_rows(cells) if row["cap"] is None]
    numbers = f"largest share of cells {worst:.2%} over {len(rows)} caps"
    numbers += f", {free[0]:.2%} without a cap" if free else ""
    return Claim("No cell saturates under any cap", worst == 0, numbers)


def isotonic_best_at_caps(cells: Cells) -> Claim | None:
    """Isotonic with the prior is the best rung at every cap (Instacart; 3 of 5 on Santander)."""
    rows = _capped(cells)
    if not rows:
        return None
    best = {row["cap"]: max(DEPLOYABLE, key=lambda rung: row[rung]) for row in rows}
    n_best = sum(rung == "isotonic" for rung in best.values())
    others = ", ".join(f"c={cap:g} {rung}" for cap, rung in best.items() if rung != "isotonic")
    numbers = f"{n_best} of {len(rows)} caps" + (f"; else {others}" if others else "")
    return Claim("Isotonic with the prior is the best rung at every cap", not others, numbers)


def gain_is_the_caps(cells: Cells) -> Claim | None:
    """Repaired alike, the unweighted twin with the same cap is level or ahead."""
    gaps = {}
    for row in _capped(cells):
        cell = cells[Arm("lightgbm", "r", cap=row["cap"]).key]
        gaps[row["cap"]] = cell["test-split"]["repaired_minus_twin"]
    if not gaps:
        return None
    numbers = [
        f"c={c:g} {g['value']:+.4f} [{g['low']:+.4f}, {g['high']:+.4f}]" for c, g in gaps.items()
    ]
    what = "Repaired alike, the unweighted twin with the same cap is level or ahead"
    return Claim(what, all(gap["low"] <= 0 for gap in gaps.values()), "; ".join(numbers))


def over_inversion_falls(cells: Cells) -> Claim | None:
    """What the inversion takes beyond the realized shift falls as the cap rises."""
    rows = [row for row in _capped(cells) if row["over-inverted"] is not None]
    if len(rows) < 2:
        return None
    falls = all(after["over-inverted"] <= row["over-inverted"] for row, after in pairwise(rows))
    numbers = ", ".join(f"c={row['cap']:g} {row['over-inverted']:.1f}" for row in rows)
    return Claim("The median over-inversion falls as the cap rises", falls, f"{numbers} nat")


def larger_weights_rank_worse(cells: Cells) -> Claim | None:
    """Raw falls from no weight over sqrt r and r to 10 r, and isotonic much less."""
    rows = dose_rows(cells, "lightgbm")
    if len(rows) < 4:
        return None
    falls = all(after["raw"] <= row["raw"] for row, after in pairwise(rows))
    drops = {rung: rows[0][rung] - rows[-1][rung] for rung in ("raw", "isotonic")}
    numbers = ", ".join(f"{r['weight']} {r['raw']:.4f} -> {r['isotonic']:.4f}" for r in rows)
    return Claim(
        "The larger the weight, the lower the booster's raw rank; repaired it falls less",
        falls and drops["isotonic"] < drops["raw"],
        f"raw -> isotonic: {numbers}",
    )


def draws_agree(cells: Cells) -> Claim | None:
    """Repaired, the weighted booster is stable over draws of the training rows."""
    rows = draw_rows(cells)
    if not rows or rows["w=r isotonic"]["n"] < 2:
        return None
    numbers = [f"{name} {row['mean']:.4f} ± {row['sd']:.4f}" for name, row in rows.items()]
    what = f"Over draws of the training rows the repaired score moves by less than {STABLE}"
    return Claim(what, rows["w=r isotonic"]["sd"] < STABLE, "; ".join(numbers))


def fallback_decides_all_products(cells: Cells) -> Claim | None:
    """With all products as labels, identity returns to raw and the prior beats popularity."""
    cell = cells.get(Arm("mlp", "r", all_products=True).key)
    if cell is None:
        return None
    values = rung_values(cell, "test-split")
    raw, identity, prior = (values[name] for name in ("raw", "isotonic, identity", "isotonic"))
    dead = cell["test-split"]["calibration_positives"]["n_dead"]
    return Claim(
        "All products, MLP: identity stays near raw, the prior repairs beyond popularity",
        abs(identity - raw) <= 0.005 and prior > values["popularity"],
        f"{dead:,} dead labels; raw {raw:.4f}, identity {identity:.4f}, prior {prior:.4f}, "
        f"popularity {values['popularity']:.4f}",
    )


SWEEP_CLAIMS: tuple[Finder, ...] = (
    shift_inside_budget,
    caps_never_saturate,
    isotonic_best_at_caps,
    gain_is_the_caps,
    over_inversion_falls,
    larger_weights_rank_worse,
    draws_agree,
    fallback_decides_all_products,
)


def find_claims(cells: Cells) -> list[Claim]:
    """Every claim whose cells are finished."""
    claims = (claim(cells) for claim in (*LOSS_CLAIMS, *REPAIR_CLAIMS, *SWEEP_CLAIMS))
    return [claim for claim in claims if claim is not None]
