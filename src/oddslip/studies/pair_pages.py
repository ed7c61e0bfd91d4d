"""The page of a matched-pair study: everything on it is computed from finished cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oddslip.studies.pair_arms import LEARNERS, Arm
from oddslip.studies.pair_ladders import all_products_section, loss_section, show_rung
from oddslip.studies.pair_paper import NUMBERS, TABLE_1, is_papers_data
from oddslip.studies.pair_protocols import PROTOCOLS
from oddslip.studies.pair_quoted import quoted_numbers
from oddslip.studies.pair_sections import (
    cap_section,
    choice_section,
    cost_section,
    dose_section,
    draw_section,
    split_section,
)
from oddslip.studies.pair_supplements import supplements
from oddslip.studies.pair_sweep_claims import find_claims
from oddslip.studies.pair_tables import Cells, format_table_one, markdown

TITLES = {
    "tafeng": "Ta-Feng: matched pairs",
    "instacart": "Instacart: matched pairs",
    "santander": "Santander: matched pairs",
    "santander-sample": "Santander, the public sample: matched pairs",
}


GENERATED = (
    "Generated data: made by `oddslip generate`, so the scores say nothing about people. "
    "The paper's numbers do not stand beside these; its claims do."
)
OTHERS = "These are not the paper's data. Its numbers do not stand beside these; its claims do."
UNKNOWN = "Whether these data were generated is not known: their cells do not say it."
FORMS = ("instacart", "santander")  # that `oddslip generate` can make


def write_page(
    cells: Cells, study: str, *, results: Path | None = None, tables: Path | None = None
) -> str:
    """The page as Markdown.

    ``results`` is the folder the cells were read from, ``results/STUDY`` unless told; ``tables``
    the one that tables and figures were written to as numbers, if they were.
    """
    folder = (results or Path("results") / study).as_posix()
    about = cells.get("data")
    papers = about is not None and is_papers_data(study, about)
    command = f"oddslip reproduce {study.replace('-sample', ' --sample')}"
    made = (
        ["with `--page`, from the cells under " + f"`{folder}`. Each cell is a"]
        if tables is None
        else [
            f"with `--page`, `--figures` and `--tables`, from the cells under `{folder}`; all",
            f"tables and figures as numbers lie in `{tables.as_posix()}`. Each cell is a",
        ]
    )
    lines = [
        f"# {TITLES.get(study, study)}",
        "",
        f"The paper's section 3. Made by `{command} --finished`",
        *made,
        "file with its configuration, seed, versions and the hashes of its inputs; the same",
        "command without `--finished` computes what is missing.",
        *_tell_origin(about, study, papers),
        "",
    ]
    if about is not None:
        lines += _data_section(about)
    lines += ["## Table 1", "", *_table_section(cells, study, papers)]
    lines += [line for section in _sections(cells, study) if section for line in (*section, "")]
    if papers:
        lines += ["## Numbers of the text", "", quoted_numbers(cells, NUMBERS[study]), ""]
    lines += ["## Which of the paper's claims hold here", "", *_claims(cells), ""]
    lines += [*cost_section(cells), ""]
    return "\n".join(lines)


def _tell_origin(about: Any, study: str, papers: bool) -> list[str]:
    """Whose rows these are, and whether they were generated."""
    if papers:
        return ["These are the paper's rows: its digits and the difference stand in brackets."]
    generated = (about or {}).get("generated")
    if generated:
        return [GENERATED]
    return [OTHERS, UNKNOWN] if about and generated is None and study in FORMS else [OTHERS]


def _data_section(about: Any) -> list[str]:
    periods = list(about["rows"])
    rows = [
        [name.replace("_", " "), *(f"{about[name][period]:,}" for period in periods)]
        for name in ("rows", "rows_with_a_true_label", "true_cells")
    ]
    without = about["n_labels_without_training_positive"]
    return [
        "## The data",
        "",
        markdown(["", *periods], rows),
        "",
        f"{about['n_labels']:,} labels, {about['n_features']:,} features, K = {about['k']}. "
        f"Weights r from {about['smallest_weight']:,.0f} to {about['largest_weight']:,.0f}"
        + (f"; {without} labels have no positive among the training rows." if without else "."),
        "",
    ]


def _table_section(cells: Cells, study: str, papers: bool) -> list[str]:
    return [
        "MAP@K, test-split protocol: 30% of the test rows calibrate, 70% are evaluated. Ceiling,",
        "AUC and cells at 1.0 are of all test rows.",
        "",
        format_table_one(cells, TABLE_1[study] if papers else None),
        "",
        f"![The loss of each pair, and the realized shift by cap]({study}-figure-1.png)",
        "",
        f"![What the inversion returns, by realized shift]({study}-figure-2.png)",
        "",
    ]


def _sections(cells: Cells, study: str) -> Iterator[list[str]]:
    drawn = supplements(cells)

    def picture(name: str, told: str) -> list[str]:
        return [f"![{told}]({study}-{name}.png)"] if name in drawn else []

    for learner in LEARNERS:
        yield _ladder_section(cells, learner)
    yield picture("ladders", "Every rung of both arms under both protocols")
    yield loss_section(cells)
    yield cap_section(cells)
    yield dose_section(cells)
    yield picture("doses", "Rungs by the weight of the positives")
    yield draw_section(cells)
    yield picture("draws", "Each draw of the training rows beside all rows")
    yield split_section(cells)
    yield picture("splits", "Isotonic by the size of the calibration split")
    yield choice_section(cells)
    yield picture("choices", "What the choice of each rule gains over raw")
    yield all_products_section(cells)


def _ladder_section(cells: Cells, learner: str) -> list[str]:
    arm = Arm(learner, "r")
    there = [each for each in (arm, arm.twin) if each.key in cells]
    if not there:
        return []
    columns = [(each, protocol) for each in there for protocol in PROTOCOLS]
    names = list(cells[there[0].key]["test-split"]["ladder"]["rungs"])
    header = ["rung", *(f"w={each.weight}, {protocol}" for each, protocol in columns)]
    rows = [[name, *(show_rung(cells[e.key], p, name) for e, p in columns)] for name in names]
    return [f"## The whole ladder, {learner}", "", markdown(header, rows)]


def _claims(cells: Cells) -> list[str]:
    rows = [
        f"| {claim.what} | {'holds' if claim.holds else '**does not hold**'} | {claim.numbers} |"
        for claim in find_claims(cells)
    ]
    counts = {cell["test-split"]["ladder"]["n_evaluated"] for cell in _ladder_cells(cells)}
    told = f"{max(counts):,} rows with a true label are evaluated. " if counts else ""
    return [
        f"{told}Point values decide, or intervals where they are shown.",
        "",
        "| claim | here | numbers |",
        "|---|---|---|",
        *rows,
    ]


def _ladder_cells(cells: Cells) -> Iterator[Any]:
    for key in (Arm(learner, weight).key for learner in LEARNERS for weight in ("r", "1")):
        if key in cells:
            yield cells[key]
