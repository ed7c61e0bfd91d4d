"""The pages that tell finished cells of the MULAN study, beside the paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oddslip.reports.dose_figures import DoseRow, draw_doses
from oddslip.reports.magnitude_figures import draw_magnitudes
from oddslip.sources.sinks import whole_file
from oddslip.studies.mulan_arms import LEARNERS
from oddslip.studies.mulan_doses import SHOWN, magnitude_lines, tell_doses
from oddslip.studies.mulan_grids import format_collapses, tell_finished, write_grid
from oddslip.studies.mulan_paper import TABLE_2
from oddslip.studies.mulan_protocols import tell_protocols
from oddslip.studies.mulan_regularities import Finding, find_regularities, pairs
from oddslip.studies.mulan_selections import compare_rules_told, find_selections
from oddslip.studies.mulan_tables import compare_table_2, format_table_2

RESULTS = Path("results/mulan")
Cells = Mapping[str, Mapping[str, Any]]


def publish(
    cells: Cells,
    protocol: str,
    careful: Cells | None = None,
    *,
    results: Path = RESULTS,
    page: Path | None = None,
    figure: Path | None = None,
) -> None:
    """Write the page and, beside it, the page of all cells; draw both figures.

    ``careful`` are cells of the `clean` protocol, ``results`` the folder of both. Beside
    ``figure`` stands one whose name ends in ``-doses``, beside ``page`` one in ``-cells``.
    """
    if page is not None:
        texts = {
            page: write_page(cells, protocol, careful, results=results),
            _beside(page, "cells"): write_grid(cells, protocol),
        }
        for path, text in texts.items():
            with whole_file(path) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
    if figure is not None:
        drawn = {
            figure: draw_doses(dose_rows(cells)),
            _beside(figure, "doses"): draw_magnitudes(magnitude_lines(cells), list(SHOWN.values())),
        }
        for path, made in drawn.items():
            with whole_file(path) as unfinished:
                made.savefig(unfinished)


def dose_rows(cells: Cells) -> list[DoseRow]:
    """What the paper's figure of section 4 shows, learner by learner."""
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


def write_page(
    cells: Cells, protocol: str, careful: Cells | None = None, *, results: Path = RESULTS
) -> str:
    """The page as Markdown; with cells of the `clean` protocol, also what that changes."""
    folder = results.as_posix()
    lines = [
        "# MULAN beside the paper",
        "",
        "Made by `oddslip reproduce mulan --finished --page docs/mulan.md`, "
        f"protocol `{protocol}`,",
        f"from the cells under `{folder}`. Each cell is a file with its configuration, seed,",
        "versions and the hashes of its inputs. [Every cell](mulan-cells.md) is on its own page.",
        "",
        *tell_finished(cells),
        *_tell_table_2(cells),
        *_tell_section_4(cells),
        *tell_doses(cells),
        *_tell_selection(cells),
        *tell_protocols(cells, careful or {}),
    ]
    return "\n".join(lines)


def _tell_table_2(cells: Cells) -> list[str]:
    entries = compare_table_2(cells)
    same = sum(entry.agrees for entry in entries)
    printed = sum(len(row) for row in TABLE_2.values())
    wrong = [entry for entry in entries if not entry.agrees]
    return [
        "## Table 2",
        "",
        f"{same} of {len(entries)} entries equal the printed digits "
        f"({printed} entries in the paper). Exceptions are bold, the paper's digits in brackets.",
        "",
        format_table_2(cells),
        "",
        *(f"- {e.data}, {e.column}: ours {e.value:.5g}, paper {e.paper}" for e in wrong),
        *([""] if wrong else []),
    ]


def _tell_section_4(cells: Cells) -> list[str]:
    return [
        "## Section 4",
        "",
        "![MAP@K of the unweighted, the weighted and the repaired model](mulan.png)",
        "",
        "Shaded: the weighted model keeps less than half of its unweighted MAP@K. Drawn by the",
        "same command with `--figure docs/mulan.png`.",
        "",
        "Share of the unweighted MAP@K at w = r: raw → after per-label isotonic with the prior",
        "policy. Bold: collapsed, less than half.",
        "",
        *format_collapses(cells),
        "",
        "The paper gives the parameters of the default LightGBM only. Those of the strongly",
        "regularised one were searched for until they gave the numbers printed of it, so these are",
        "no test. XGBoost, logistic regression and the MLP are ours: their cells need not be the",
        "paper's.",
        "",
        "Every number of the section that is not in Table 2:",
        "",
        *_format_findings(find_regularities(cells)),
        "",
    ]


def _tell_selection(cells: Cells) -> list[str]:
    told = compare_rules_told(cells)
    return [
        "## The negative result and the selection rule",
        "",
        *_format_findings(find_selections(cells)),
        "",
        "The paper's rule, per-label isotonic without one (tau 0), and our default (auto), against",
        "raw on the test rows:",
        "",
        "| data sets | rule | over 0.01 below | interval below 0 | worst | mean gain | cells |",
        "|---" * 7 + "|",
        *("| " + " | ".join(line) + " |" for line in told),
        "",
    ]


def _format_findings(findings: list[Finding]) -> list[str]:
    return [
        "| | ours | paper | difference | from |",
        "|---|---|---|---|---|",
        *(
            f"| {f.what} | {f.ours} | {f.paper or '-'} | {f.difference} | {f.of} |"
            for f in findings
        ),
    ]


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.stem}-{what}{path.suffix}")
