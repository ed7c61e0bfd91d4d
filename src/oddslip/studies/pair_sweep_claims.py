"""Which of the paper's claims hold on these cells: caps, doses, draws, all products."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from oddslip.studies.pair_arms import Arm
from oddslip.studies.pair_cells import rung_values
from oddslip.studies.pair_claims import LOSS_CLAIMS, Claim, Finder
from oddslip.studies.pair_repair_claims import DEPLOYABLE, REPAIR_CLAIMS
from oddslip.studies.pair_tables import Cells, cap_rows, dose_rows, draw_rows

STABLE = 0.01  # MAP: standard deviation over draws that counts as stable
_ROUNDING = 1e-6  # nat: the realized shift is found to 1e-9, scores are float32


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
    told = [
        f"c={c:g} {g['value']:+.4f} [{g['low']:+.4f}, {g['high']:+.4f}]" for c, g in gaps.items()
    ]
    what = "Repaired alike, the unweighted twin with the same cap is level or ahead"
    return Claim(what, all(gap["low"] <= 0 for gap in gaps.values()), "; ".join(told))


def over_inversion_falls(cells: Cells) -> Claim | None:
    """What the inversion takes beyond the realized shift falls as the cap rises."""
    rows = [row for row in _capped(cells) if row["over-inverted"] is not None]
    if len(rows) < 2:
        return None
    falls = all(after["over-inverted"] <= row["over-inverted"] for row, after in pairwise(rows))
    told = ", ".join(f"c={row['cap']:g} {row['over-inverted']:.1f}" for row in rows)
    return Claim("The median over-inversion falls as the cap rises", falls, f"{told} nat")


def larger_weights_rank_worse(cells: Cells) -> Claim | None:
    """Raw falls from no weight over sqrt r and r to 10 r, and isotonic much less."""
    rows = dose_rows(cells, "lightgbm")
    if len(rows) < 4:
        return None
    falls = all(after["raw"] <= row["raw"] for row, after in pairwise(rows))
    drops = {rung: rows[0][rung] - rows[-1][rung] for rung in ("raw", "isotonic")}
    told = ", ".join(f"{r['weight']} {r['raw']:.4f} -> {r['isotonic']:.4f}" for r in rows)
    return Claim(
        "The larger the weight, the lower the booster's raw rank; repaired it falls less",
        falls and drops["isotonic"] < drops["raw"],
        f"raw -> isotonic: {told}",
    )


def draws_agree(cells: Cells) -> Claim | None:
    """Repaired, the weighted booster is stable over draws of the training rows."""
    rows = draw_rows(cells)
    if not rows or rows["w=r isotonic"]["n"] < 2:
        return None
    told = [f"{name} {row['mean']:.4f} ± {row['sd']:.4f}" for name, row in rows.items()]
    what = f"Over draws of the training rows the repaired score moves by less than {STABLE}"
    return Claim(what, rows["w=r isotonic"]["sd"] < STABLE, "; ".join(told))


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
    shift_inside_budget, caps_never_saturate, isotonic_best_at_caps, gain_is_the_caps,
    over_inversion_falls, larger_weights_rank_worse, draws_agree, fallback_decides_all_products,
)  # fmt: skip


def find_claims(cells: Cells) -> list[Claim]:
    """Every claim whose cells are finished."""
    found = (claim(cells) for claim in (*LOSS_CLAIMS, *REPAIR_CLAIMS, *SWEEP_CLAIMS))
    return [claim for claim in found if claim is not None]
