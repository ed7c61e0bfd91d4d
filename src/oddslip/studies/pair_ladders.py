"""Sections of the page: parts of the loss, and all products as labels."""

from __future__ import annotations

from typing import Any

from oddslip.studies.pair_arms import LEARNERS, Arm
from oddslip.studies.pair_tables import Cells, has_loss, markdown


def show_rung(cell: Any, protocol: str, name: str) -> str:
    """MAP@K of a rung with its interval, or a dash."""
    rung = cell[protocol]["ladder"]["rungs"].get(name)
    if rung is None:
        return "--"
    return _interval(rung["map"])


def _interval(estimate: Any) -> str:
    return f"{estimate['value']:.4f} [{estimate['low']:.4f}, {estimate['high']:.4f}]"


def loss_section(cells: Cells) -> list[str]:
    """The loss of each pair and its parts."""
    there = [arm for arm in (Arm(learner, "r") for learner in LEARNERS) if arm.key in cells]
    if not there:
        return []
    rows = []
    for arm in there:
        cell = cells[arm.key]
        told = cell["test-split"]["decomposition"]
        shares, returned, again = told["shares"], told["returned"], cell["reordered"]
        parts = [shares["odds"], shares["slippage"], shares["tie_residue"]]
        back = [returned.get(rung) for rung in ("inversion", "offset", "isotonic")]
        ties = [again[by]["share"] for by in ("by_twin", "by_oracle")]
        lost, sure = cell["test-split"]["ladder"]["rungs"]["unweighted"], has_loss(cell)
        shown = [
            f"{share:.0%}" if sure and share is not None else "--"
            for share in (*parts, *back, *ties)
        ]
        rows.append([arm.learner, _interval(lost["minus_raw"]), *shown])
    header = [
        "", "loss", "odds shift", "slippage", "tie residue", "inversion returns",
        "offset returns", "isotonic returns", "ties by the twin", "ties by the oracle",
    ]  # fmt: skip
    return [
        "## What the loss is made of",
        "",
        "Shares of MAP@K(unweighted) - MAP@K(weighted). The last two re-order the saturated cells",
        "of all test rows by the twin's scores, and by the truth. A pair without a sure loss has",
        "no shares.",
        "",
        markdown(header, rows),
    ]


def all_products_section(cells: Cells) -> list[str]:
    """The pair with every product as a label."""
    arm = Arm("mlp", "r", all_products=True)
    if arm.key not in cells:
        return []
    names = ["raw", "inversion", "isotonic", "isotonic, identity", "isotonic, exclude"]
    there = [each for each in (arm, arm.twin) if each.key in cells]
    rows = [
        [name, *(show_rung(cells[each.key], "test-split", name) for each in there)]
        for name in (*names, "popularity", "ceiling")
    ]
    about, positives = cells.get("data-all-products"), cells[arm.key]["test-split"]
    told = "" if about is None else f"{about['n_labels']:,} labels, "
    dead = positives["calibration_positives"]["n_dead"]
    return [
        "## All products as labels, mlp",
        "",
        f"{told}{dead:,} of them without a calibration positive.",
        "",
        markdown(["rung", *(f"w={each.weight}" for each in there)], rows),
    ]
