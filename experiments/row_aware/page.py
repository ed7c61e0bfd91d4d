"""The page of the row-aware stages, from finished cells."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from experiments.mulan.arms import LEARNERS
from experiments.mulan.study import DATASETS as MULAN
from experiments.row_aware.built import BUILT
from experiments.row_aware.panels import COREL16K_SETS, DATASETS, PUBLISHED, TEXT
from experiments.row_aware.stages import DEPTH, N_DIMENSIONS, STAGES
from experiments.row_aware.study import PEER, Cells
from experiments.selection.page import HARM, summarise
from experiments.text import paragraph
from oddslip.repairs.row_aware import N_PARTNERS
from oddslip.selection.rules import ROW_GUARD

# Set on the cells of `TUNED`, before any other cell was measured, like all constants of the stages.
GUARD = 1.0  # standard errors by which a stage must beat the chosen repair out of fold
TUNED = ("emotions", "scene", "yeast", "medical", "enron")
OTHER_GUARDS = (0.0, 2.0, 3.0)  # shown beside it
MIN_GAIN = 0.002  # mean MAP@K over `auto` that a stage must add
REPAIRS = ("isotonic", "Platt", "paper", "hierarchical", "auto")
ANY = "best"
MEASURED = (*STAGES, BUILT)
FAMILY = "corel"  # sets of one collection of images, which may decide the mean alone
TITLES = {
    "isotonic": "isotonic",
    "Platt": "Platt",
    "paper": "the paper's rule",
    "hierarchical": "hierarchical",
    "auto": "`auto`",
    "shared": "`auto` + shared parameters",
    "embedding": "`auto` + label embedding",
    "trees": "`auto` + LightGBM",
    PEER: "`auto` + MCGrad",
    BUILT: "`auto` + the built stage",
    ANY: "`auto` + the best of the first three stages",
}


def is_tuned(key: str) -> bool:
    """Whether constants of the stages may have been set on this cell."""
    return key.split("-")[0] in TUNED


def guard_stages(cells: Cells, guard: float | None = None) -> Cells:
    """Cells in which `auto` stands for a stage wherever its gain out of fold is not sure.

    The built stage has the guard of the package, unless one is given.
    """
    return {key: _guard_cell(cell, guard) for key, cell in cells.items()}


def _guard_cell(cell: dict[str, Any], guard: float | None) -> dict[str, Any]:
    contenders = dict(cell["contenders"])
    guards = {BUILT: ROW_GUARD} if guard is None else {}
    gains = {
        name: stage["out_of_fold"]
        for name, stage in cell["stages"].items()
        if stage["out_of_fold"]
        > guards.get(name, GUARD if guard is None else guard) * stage["standard_error"]
        and stage.get("over_raw", 1.0) > 0
    }
    for name in cell["stages"]:
        contenders[name] = cell["contenders"][name if name in gains else "auto"]
    ours = {name: gain for name, gain in gains.items() if name not in (PEER, BUILT)}
    contenders[ANY] = contenders[max(ours, key=lambda name: ours[name]) if ours else "auto"]
    return cell | {"contenders": contenders}


def having(cells: Cells, name: str) -> Cells:
    """The cells in which a contender was measured."""
    return {key: cell for key, cell in cells.items() if name in cell["contenders"]}


def earns_place(cells: Cells, name: str) -> bool:
    """Whether a guarded stage adds enough over `auto` and harms no cell."""
    gain = summarise(cells, name, against="auto").mean
    return gain >= MIN_GAIN and not summarise(cells, name).harmed


def write_page(cells: Cells) -> str:
    """The page as Markdown."""
    return "\n".join(_format_lines(cells)) + "\n"


def _format_lines(cells: Cells) -> Iterator[str]:
    others = {key: cell for key, cell in cells.items() if not is_tuned(key)}
    tuned = {key: cell for key, cell in cells.items() if is_tuned(key)}
    yield "# A second stage that sees the row"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments row-aware --finished --page docs/paper/row-aware.md` from "
        f"the {len(cells)} cells in `experiments/results/row-aware.jsonl`. A repair maps each "
        "label's score alone. It cannot use that labels occur together, or that a row is crowded. "
        "A stage behind it can: logit p' = logit p + b_0 + b . f, with features f of the row."
    )
    yield ""
    yield from paragraph(
        "**shared parameters**: b_0 and four coefficients, of the margin, of the sum over other "
        "labels of p times a shrunk log-lift, of the log of the row's sum of p, and of the "
        "distance to the row's best. Only the second can change the order within a row: the "
        "others are constant in a row, or the margin plus such a constant. **label embedding**: "
        "besides, the ridge regression of the residuals on the first "
        f"{N_DIMENSIONS} principal components of the row's probabilities. **LightGBM**: trees on "
        "these and a few dozen other features of row and label, starting from the margin. "
        "**MCGrad** with its defaults, on label, place in the row, highest and sum of p. Each "
        f"ranks the {DEPTH} best labels of a row again. Stages are fitted on margins out of fold. "
        "p is that of the hierarchical calibrator, the margin that of what `auto` chose. **the "
        'built stage** is that of the package, `rule="row_aware"`: margin, support and b_0 on '
        f"hierarchical margins, the support from {N_PARTNERS} partners of a label, and every label "
        f"ranked; its guard is {ROW_GUARD:g} standard errors over what `auto` chose."
    )
    yield ""
    yield from paragraph(
        f"Guarded: the stage is used where its out-of-fold gain over the chosen repair is more "
        f"than {GUARD:g} standard error, else `auto` alone. The guard and the constants of the "
        f"stages were set on {', '.join(TUNED)}, on "
        "their test rows too, before any other cell was measured. Elsewhere test rows choose "
        "nothing. Out of fold, the fits behind a training row's margin have seen the "
        "labels of the fold that is left out; its stage has not."
    )
    yield ""
    for title, group in (("Other sets", others), ("Sets that constants were set on", tuned)):
        if group:
            yield from _format_group(title, group)
    if others:
        yield from _format_sets(others)
        yield from _format_guards(others)
        yield from _format_decision(others)
    yield from _format_cells(cells)


def _format_group(title: str, cells: Cells) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    sets = ", ".join(dict.fromkeys(key.split("-")[0] for key in cells))
    yield from paragraph(
        f"{len(cells)} cells of {sets}. MAP@K on the test rows. Intervals are 95%, over test "
        "rows; cells of one set are taken as fully dependent. By set: every set counts once. CPU "
        "seconds of a cell: of `auto`, its trials; of a stage, all fits, out of fold too; of the "
        "built stage, the trials of `auto` besides."
    )
    yield ""
    yield (
        f"| | cells | gain over raw | cells below -{HARM} | worst | less `auto` (interval) | "
        "by set | used in | CPU |"
    )
    yield "|---" * 9 + "|"
    for name in (*REPAIRS, *MEASURED):
        yield from _format_line(TITLES[name], name, cells, cells)
    guarded = guard_stages(cells)
    for name in (*MEASURED, ANY):
        yield from _format_line(f"{TITLES[name]}, guarded", name, guarded, cells)
    yield ""


def _format_line(title: str, name: str, cells: Cells, plain: Cells) -> Iterator[str]:
    cells = having(cells, name)
    if not cells:
        return
    raw, auto = summarise(cells, name), summarise(cells, name, against="auto")
    by_set: dict[str, list[float]] = {}
    for key, cell in cells.items():
        gain = cell["contenders"][name]["minus_auto"]["difference"]
        by_set.setdefault(key.split("-")[0], []).append(gain)
    used = ""
    if name in (*MEASURED, ANY):
        auto_used = sum(
            cell["contenders"][name] is plain[key]["contenders"]["auto"]
            for key, cell in cells.items()
        )
        used = f"{len(cells) - auto_used}"
    seconds = [cell["cpu"][name] for cell in cells.values() if name in cell["cpu"]]
    yield (
        f"| {title} | {len(cells)} | {raw.mean:+.4f} | {raw.harmed} | {raw.worst:+.4f} | "
        f"{auto.mean:+.4f} ({auto.low:+.4f} to {auto.high:+.4f}) | "
        f"{fmean(map(fmean, by_set.values())):+.4f} | {used} | "
        f"{f'{fmean(seconds):.1f}' if seconds else ''} |"
    )


def _format_sets(cells: Cells) -> Iterator[str]:
    yield "## Set by set, other sets"
    yield ""
    yield "Mean MAP@K of the guarded stages over `auto` (worst cell)."
    yield ""
    yield "| set | cells | " + " | ".join(TITLES[name] for name in (*MEASURED, ANY)) + " |"
    yield "|---" * (3 + len(MEASURED)) + "|"
    guarded = guard_stages(cells)
    for name in dict.fromkeys(key.split("-")[0] for key in cells):
        some = {key: cell for key, cell in guarded.items() if key.split("-")[0] == name}
        texts = []
        for stage in (*MEASURED, ANY):
            measured = having(some, stage)
            gap = summarise(measured, stage, against="auto") if measured else None
            texts.append("" if gap is None else f"{gap.mean:+.4f} ({gap.worst:+.4f})")
        yield f"| {name} | {len(some)} | {' | '.join(texts)} |"
    yield ""


def _format_guards(cells: Cells) -> Iterator[str]:
    yield "## Other guards, other sets"
    yield ""
    yield "Mean MAP@K over `auto` (cells harmed against raw) by the guard in standard errors."
    yield ""
    guards = sorted((GUARD, *OTHER_GUARDS))
    yield "| | " + " | ".join(f"{guard:g}" for guard in guards) + " |"
    yield "|---" * (len(guards) + 1) + "|"
    for name in (*MEASURED, ANY):
        texts = []
        for guard in guards:
            guarded = having(guard_stages(cells, guard), name)
            if guarded:
                gain = summarise(guarded, name, against="auto").mean
                texts.append(f"{gain:+.4f} ({summarise(guarded, name).harmed})")
        if texts:
            yield f"| {TITLES[name]} | {' | '.join(texts)} |"
    yield ""


def _format_decision(others: Cells) -> Iterator[str]:
    yield "## Decision"
    yield ""
    guarded = guard_stages(others)
    texts, winners = [], []
    elsewhere = {key: cell for key, cell in guarded.items() if not key.startswith(FAMILY)}
    for name in (*MEASURED, ANY):
        cells = having(guarded, name)
        if not cells:
            continue
        gain, harmed = summarise(cells, name, against="auto"), summarise(cells, name).harmed
        rest = having(elsewhere, name)
        without = (
            f", {summarise(rest, name, against='auto').mean:+.4f} without Corel" if rest else ""
        )
        count = f"{harmed} of {len(cells)} cells harmed"
        texts.append(f"{TITLES[name]} {gain.mean:+.4f}{without}, {count}")
        if earns_place(cells, name):
            winners.append(TITLES[name])
    verdict = (
        f"{' and '.join(winners)} {'earns' if len(winners) == 1 else 'earn'} a place"
        if winners
        else "No stage earns a place"
    )
    yield from paragraph(
        f"**{verdict}.** Asked for is a mean gain of at least {MIN_GAIN} MAP@K over `auto` on "
        f"sets that nothing was set on, and no cell more than {HARM} below raw. Guarded, the "
        f"stages have: {'; '.join(texts)}."
    )
    yield ""


def _format_cells(cells: Cells) -> Iterator[str]:
    yield "## Every cell"
    yield ""
    yield from paragraph(
        "MAP@K of raw, the gain of `auto` over it, and what each stage adds to `auto` on the test "
        f"rows (out of fold, in standard errors). {_format_missing(cells)}"
    )
    yield ""
    yield "| cell | rows | labels | raw | `auto` | chose | " + " | ".join(MEASURED) + " |"
    yield "|---" * (6 + len(MEASURED)) + "|"
    for key, cell in cells.items():
        texts = [key, f"{cell['n_rows']:,}", f"{cell['n_labels']}", f"{cell['raw']:.4f}"]
        texts += [f"{cell['contenders']['auto']['difference']:+.4f}", cell["chosen"]]
        for name in MEASURED:
            texts.append(_format_stage(cell, name))
        yield f"| {' | '.join(texts)} |"


def _format_stage(cell: dict[str, Any], name: str) -> str:
    if name not in cell["stages"]:
        return ""
    stage, gain = cell["stages"][name], cell["contenders"][name]["minus_auto"]["difference"]
    error = stage["standard_error"]
    return f"{gain:+.4f} ({stage['out_of_fold'] / error if error else 0.0:+.1f})"


def _format_missing(cells: Cells) -> str:
    """Arms that were not measured, and sets without MCGrad."""
    parts = []
    for name in (*MULAN, *COREL16K_SETS):
        missing = [each for each in LEARNERS if f"{name}-{each}-r" not in cells]
        if missing:
            text = "all" if len(missing) == len(LEARNERS) else ", ".join(missing)
            parts.append(f"{name} ({text})")
    parts += [name for name in (TEXT, *PUBLISHED) if not any(key.startswith(name) for key in cells)]
    peerless = [key for key, cell in cells.items() if PEER not in cell["stages"]]
    sets = sorted({next(name for name in DATASETS if key.startswith(name)) for key in peerless})
    arms = f"Not measured, for their cost: {'; '.join(parts)}. " if parts else ""
    peer = f"Without MCGrad: {', '.join(sets)}. " if sets else ""
    return f"{arms}{peer}Ta-Feng and Santander are not among the panels."
