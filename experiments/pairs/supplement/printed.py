"""What the paper prints of its matched pairs, section 3 and supplement, and ours beside it.

The numbers lie in `printed.json`: by data set and by the names that `our_numbers` gives, each as it
is printed and with the place where.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from experiments.pairs.arms import DRAWS, LEARNERS, Arm
from experiments.pairs.cells import rung_values
from experiments.pairs.tables import Cells, cap_rows, draw_rows, markdown, split_rows
from experiments.store import WEIGHTS

Numbers = Iterator[tuple[str, float | None]]
_IN_ALL_ROWS = ("ceiling",)  # rungs of Table 1 that are of all test rows


def read_printed() -> dict[str, dict[str, dict[str, str]]]:
    """Data set -> name -> "printed", as it is, and "where".

    Examples
    --------
    >>> read_printed()["santander"]["lightgbm w=r: raw"]
    {'printed': '0.117', 'where': 'Table S1'}
    """
    text = (files("experiments.pairs.supplement") / "printed.json").read_text("utf-8")
    printed: dict[str, dict[str, dict[str, str]]] = json.loads(text)
    return printed


def printed_section(cells: Cells, study: str) -> list[str]:
    """Every number the paper prints, ours beside it, and what is not here."""
    printed, ours = read_printed().get(study, {}), dict(our_numbers(cells))
    rows, missing, n_same = [], [], 0
    for name, number in printed.items():
        value = ours.get(name)
        if value is None:
            missing.append(name)
            continue
        digits = len(number["printed"].partition(".")[2])
        same = f"{value:.{digits}f}" == number["printed"]
        n_same += same
        gap = value - float(number["printed"])
        texts = [f"{value:.{digits}f}", number["printed"], "" if same else f"{gap:+.{digits}f}"]
        rows.append([name, number["where"], *texts])
    if not printed:
        return []
    lines = [
        "## Every printed number",
        "",
        f"{len(printed)} numbers of section 3 and its supplement; {len(rows)} have ours beside "
        f"them, {n_same} of these are equal as printed.",
        "",
        markdown(["", "where", "ours", "paper", "difference"], rows),
        "",
    ]
    if missing:
        lines += [f"Not here ({len(missing)}): {'; '.join(missing)}.", ""]
    return lines


def our_numbers(cells: Cells) -> Numbers:
    """Our numbers under the names of `printed.json`; None for what was not measured."""
    for learner in LEARNERS:
        for weight in WEIGHTS:
            arm = Arm(learner, weight)
            if arm.key in cells:
                yield from _arm_numbers(f"{learner} w={weight}", cells[arm.key])
        cell = cells.get(Arm(learner, "r").key)
        if cell is not None:
            yield from _pair_numbers(learner, cell)
    earlier = cells.get(Arm("lightgbm", "1", variant="earlier").key)
    if earlier is not None:
        yield from _arm_numbers("earlier lightgbm", earlier)
    for row in cap_rows(cells):
        for name, value in row.items() if row["cap"] is not None else ():
            scale = 100 if name == "saturated" and value is not None else 1
            yield f"cap {row['cap']:g}: {name}", None if value is None else scale * value
    yield from _split_numbers(cells)
    yield from _draw_numbers(cells)
    for key, cell in cells.items():
        if key.startswith("again-"):
            yield f"{key.replace('-', ' ')}: raw", cell["again"]["again"]
    for weight in ("r", "1"):
        cell = cells.get(Arm("mlp", weight, all_products=True).key)
        if cell is not None:
            yield from _arm_numbers(f"all products mlp w={weight}", cell)
    for key, name in (("data", "dead"), ("data-all-products", "dead, all products")):
        for each in cells.get(key, {}).get("dead_frequency", []):
            for what in ("mean", "min", "max"):
                yield f"{name} at {100 * each['share']:g}%: {what}", each[what]


def _arm_numbers(name: str, cell: Mapping[str, Any]) -> Numbers:
    values, deployed = (rung_values(cell, protocol) for protocol in ("test-split", "deployment"))
    for rung, value in values.items():
        yield f"{name}: {rung}", deployed[rung] if rung in _IN_ALL_ROWS else value
    for rung, value in deployed.items():
        yield f"{name}, deployment: {rung}", value
    yield f"{name}: AUC", cell["auc"]
    yield f"{name}: cells at 1.0 (%)", 100 * cell["saturated_share"]
    zeros = cell.get("zero_share")
    yield f"{name}: cells at 0 (%)", None if zeros is None else 100 * zeros
    yield f"{name}: dead labels", cell["test-split"]["calibration_positives"]["n_dead"]


def _pair_numbers(learner: str, cell: Mapping[str, Any]) -> Numbers:
    what_if, direct = cell.get("what_if"), cell.get("direct")
    if what_if is not None:
        for step, value in what_if["map"].items():
            yield f"{learner}: what-if at {step} ln w", value
        yield f"{learner}: unweighted, all rows", what_if["unweighted"]
        yield f"{learner}: weighted, all rows", what_if["weighted"]
        share = what_if["odds_share"]
        yield f"{learner}: odds share (%)", None if share is None else 100 * share
        yield f"{learner}: top 7 kept by the what-if", what_if["overlap"]
        yield f"{learner}: rows changed by the what-if (%)", 100 * what_if["rows_changed"]
        yield f"{learner}: top 7 kept by the weighted", what_if["overlap_weighted"]
    if direct is not None:
        yield f"{learner}: median direct / ln w", direct["median_ratio"]
        yield f"{learner}: labels with a direct shift", direct["n_labels"]
    shifts = cell["deployment"]["shifts"]
    yield f"{learner}: median realized / ln w", shifts["median_ratio"]
    yield f"{learner}: labels with a realized shift", shifts["n_identified"]
    returned = cell["test-split"]["decomposition"]["returned"]
    for rung in ("inversion", "offset", "isotonic"):
        value = returned.get(rung)
        yield f"{learner}: {rung} returns (%)", None if value is None else 100 * value
    for by in ("at_random", "by_twin", "by_oracle"):
        share = cell["reordered"].get(by, {}).get("share")
        name = f"{learner}: ties {by.replace('_', ' ')} (%)"
        yield name, None if share is None else 100 * share
    table = cell.get("labels")
    if table is not None:
        for at, label in enumerate(table["label"]):
            yield f"{learner}, {label}: ln w", table["intended"][at]
            yield f"{learner}, {label}: direct", table["direct"][at]
            yield f"{learner}, {label}: cells at 1.0 (%)", 100 * table["saturated_share"][at]
            if table["identified"][at]:
                yield f"{learner}, {label}: realized", table["realized"][at]


def _split_numbers(cells: Cells) -> Numbers:
    header, *rows = split_rows(cells) or [[]]
    for row in rows:
        for name, value in zip(header[1:], row[1:], strict=True):
            yield f"split {100 * row[0]:g}%: {name}", value


def _draw_numbers(cells: Cells) -> Numbers:
    for name, row in draw_rows(cells).items():
        scale = 100 if name == "odds share" else 1
        yield f"draws: {name}, mean", scale * row["mean"]
        yield f"draws: {name}, sd", scale * row["sd"] if row["n"] > 1 else None
    for draw in DRAWS[1:]:
        for weight in ("r", "1"):
            cell = cells.get(Arm("lightgbm", weight, draw=draw).key)
            if cell is not None:
                values = rung_values(cell, "test-split")
                for rung in ("raw", "isotonic", "pooled", "inversion"):
                    if rung in values:
                        yield f"draw {draw}, w={weight}: {rung}", values[rung]
                ceiling = rung_values(cell, "deployment")["ceiling"]
                yield f"draw {draw}, w={weight}: ceiling", ceiling
                yield f"draw {draw}, w={weight}: cells at 1.0 (%)", 100 * cell["saturated_share"]
