"""The page that compares finished cells of the MULAN study with the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oddslip.reports.dose_figures import DoseRow
from oddslip.studies.mulan_arms import LEARNERS
from oddslip.studies.mulan_paper import TABLE_2
from oddslip.studies.mulan_regularities import find_regularities, pairs
from oddslip.studies.mulan_tables import compare_table_2, format_table_2

Cells = Mapping[str, Mapping[str, Any]]


def dose_rows(cells: Cells) -> list[DoseRow]:
    """What the dose-response figure shows, learner by learner."""
    rows = [
        DoseRow(
            learner=learner,
            data=data,
            n_labels=cells[data]["n_labels"],
            unweighted=plain["map"]["raw"],
            weighted=weighted["map"]["raw"],
            repaired=weighted["map"]["isotonic"],
            popularity=cells[data]["popularity"],
        )
        for data, learner, plain, weighted in pairs(cells)
    ]
    return sorted(rows, key=lambda row: list(LEARNERS).index(row.learner))


def write_page(cells: Cells, protocol: str) -> str:
    """The page as Markdown."""
    entries = compare_table_2(cells)
    same = sum(entry.agrees for entry in entries)
    printed = sum(len(row) for row in TABLE_2.values())
    lines = [
        "# MULAN beside the paper",
        "",
        "Made by `oddslip reproduce mulan --finished --page docs/mulan.md`, "
        f"protocol `{protocol}`,",
        "from the cells under `results/mulan`. Each cell is a file with its configuration, seed,",
        "versions and the hashes of its inputs.",
        "",
        "## Table 2",
        "",
        f"{same} of {len(entries)} entries equal the printed digits "
        f"({printed} entries in the paper). Exceptions are bold, the paper's digits in brackets.",
        "",
        format_table_2(cells),
        "",
    ]
    for entry in entries:
        if not entry.agrees:
            lines.append(
                f"- {entry.data}, {entry.column}: ours {entry.value:.5g}, paper {entry.paper}"
            )
    lines += [
        "",
        "## Section 4",
        "",
        "![MAP@K of the unweighted, the weighted and the repaired model](mulan.png)",
        "",
        "Shaded: the weighted model keeps less than half of its unweighted MAP@K. Drawn by the",
        "same command with `--figure docs/mulan.png`.",
        "",
        "| | ours | paper | from |",
        "|---|---|---|---|",
        *(f"| {f.what} | {f.ours} | {f.paper} | {f.of} |" for f in find_regularities(cells)),
        "",
    ]
    return "\n".join(lines)
