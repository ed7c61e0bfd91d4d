"""The page of the peers of `auto`, from finished cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from experiments.mulan.study import DATASETS
from experiments.row_aware.page import MIN_GAIN
from experiments.selection.page import HARM, summarise
from experiments.selection.peers import BESIDE, MCGRAD, WITH_QUADRATIC, Cells
from experiments.selection.quadratic import RIDGE
from experiments.text import paragraph

CONTENDERS = {
    "quadratic": (*BESIDE, "quadratic", "auto", WITH_QUADRATIC),
    "mcgrad": ("auto", *MCGRAD),
}
TITLES = {
    "platt": "Platt",
    "auto": "`auto`",
    "quadratic": "quadratic scaling",
    WITH_QUADRATIC: "`auto` with quadratic scaling as a candidate",
    "MCGrad": "MCGrad, label alone",
    "MCGrad, row": "MCGrad, label and row",
}


def earns_place(cells: Cells) -> bool:
    """Whether `auto` gains enough by quadratic scaling as a candidate, and harms no cell."""
    gain = summarise(cells, WITH_QUADRATIC, against="auto").mean
    return gain >= MIN_GAIN and not summarise(cells, WITH_QUADRATIC).harmed


def write_page(cells: Mapping[str, Cells]) -> str:
    """The page as Markdown.

    Parameters
    ----------
    cells : mapping of str to dict
        Finished cells by peer and key.
    """
    return "\n".join(_format_lines(cells)).rstrip() + "\n"


def _format_lines(cells: Mapping[str, Cells]) -> Iterator[str]:
    yield "# Peers of the default rule"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments peers --finished --page docs/paper/peers.md` from the "
        f"{sum(map(len, cells.values()))} cells in `experiments/results/peers.jsonl`. Cells are "
        "those of the MULAN study (learner by weight, 1 and r) with trained scores. Everything is "
        "fitted on the calibration rows; MAP@K is that of the test rows, less that of raw scores. "
        "Intervals are 95%, over test rows; cells of one set are taken as fully dependent. "
        "Constants of `auto` were set on some of these sets, as the [selection "
        "study](selection-study.md) says; those of the peers on none. CPU is the mean in seconds "
        "of a cell."
    )
    yield ""
    if cells["quadratic"]:
        yield from _format_quadratic(cells["quadratic"])
    if cells["mcgrad"]:
        yield from _format_mcgrad(cells["mcgrad"])
    for peer, some in cells.items():
        if some:
            yield from _format_cells(peer, some)


def _format_quadratic(cells: Cells) -> Iterator[str]:
    yield "## Quadratic scaling"
    yield ""
    yield from paragraph(
        "Per label, a logistic regression on the log-odds and their square: the binary form of "
        "what the package `probmetrics` has under this name, by the same log-loss, in an "
        f"implementation of our own with a ridge of {RIDGE:g} towards raw scores. Dead labels get "
        "their training prevalence. As a candidate of `auto` it must beat raw out of fold by the "
        "guard of any candidate, have the best mean, and surely beat hierarchical where that is "
        "sure itself."
    )
    yield ""
    yield from _format_table("quadratic", cells)
    gain = summarise(cells, WITH_QUADRATIC, against="auto")
    alone = summarise(cells, "quadratic", against="auto")
    taken = [cell for cell in cells.values() if cell["takes_quadratic"]]
    verdict = "earns its place" if earns_place(cells) else "does not earn its place"
    consequence = "" if earns_place(cells) else " Nothing is added to the package."
    yield from paragraph(
        f"**Quadratic scaling {verdict}.** Required is a mean gain of at least {MIN_GAIN} MAP@K "
        f"over `auto` and no cell more than {HARM} below raw. `auto` would take it in "
        f"{len(taken)} of {len(cells)} cells, which changes the mean by {gain.mean:+.4f} (worst "
        f"cell {gain.worst:+.4f}). Alone, instead of `auto`, it has {alone.mean:+.4f}."
        f"{consequence}"
    )
    yield ""


def _format_mcgrad(cells: Cells) -> Iterator[str]:
    yield "## MCGrad"
    yield ""
    yield from paragraph(
        "The package `mcgrad` with its default settings. A cell of the panel is a line of its "
        "table, the label its segment. With the row: place of the cell in its row, highest score "
        "and sum of the row besides. One fit for all labels, no choice out of fold."
    )
    yield ""
    yield from _format_table("mcgrad", cells)
    texts = []
    for name in MCGRAD:
        gap = summarise(cells, name, against="auto")
        better = sum(
            cell["contenders"][name]["minus_auto"]["difference"] > 0 for cell in cells.values()
        )
        texts.append(
            f"{TITLES[name]} {gap.mean:+.4f}, better in {better} of {len(cells)} cells, "
            f"worse by up to {-gap.worst:.4f}"
        )
    yield from paragraph(f"Against `auto`: {'; '.join(texts)}.")
    yield ""


def _format_table(peer: str, cells: Cells) -> Iterator[str]:
    yield (
        f"| {len(cells)} cells | gain over raw | cells below -{HARM} | worst | "
        "less `auto` (interval) | CPU |"
    )
    yield "|---" * 6 + "|"
    for name in CONTENDERS[peer]:
        raw, auto = summarise(cells, name), summarise(cells, name, against="auto")
        seconds = [cell["cpu"][name] for cell in cells.values() if name in cell["cpu"]]
        yield (
            f"| {TITLES.get(name, name)} | {raw.mean:+.4f} | {raw.harmed} | {raw.worst:+.4f} | "
            f"{auto.mean:+.4f} ({auto.low:+.4f} to {auto.high:+.4f}) | "
            f"{f'{fmean(seconds):.2f}' if seconds else ''} |"
        )
    yield ""
    missing = [each for each in DATASETS if not any(key.startswith(f"{each}-") for key in cells)]
    if missing:
        yield from paragraph(f"Not measured: {', '.join(missing)}.")
        yield ""


def _format_cells(peer: str, cells: Cells) -> Iterator[str]:
    title = {"quadratic": "Quadratic scaling", "mcgrad": "MCGrad"}[peer]
    yield f"## {title}, every cell"
    yield ""
    yield from paragraph(
        "MAP@K of raw scores, and gains over it; from `experiments/results/peers.jsonl`."
    )
    yield ""
    names = CONTENDERS[peer]
    header = " | ".join(TITLES.get(name, name) for name in names)
    yield f"| cell | raw | chosen by `auto` | {header} |"
    yield "|---" * (3 + len(names)) + "|"
    for key, cell in cells.items():
        yield f"| {key} | {cell['raw']:.4f} | {cell['chosen']} | {_format_gains(cell, names)} |"
    yield ""


def _format_gains(cell: dict[str, Any], names: tuple[str, ...]) -> str:
    return " | ".join(f"{cell['contenders'][name]['difference']:+.4f}" for name in names)
