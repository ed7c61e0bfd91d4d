"""Sections of the page: caps, doses, draws, split sizes, and what it all took."""

from __future__ import annotations

from oddslip.studies.pair_arms import LEARNERS
from oddslip.studies.pair_choices import HARM, RULES
from oddslip.studies.pair_tables import (
    Cells,
    Value,
    cap_rows,
    choice_cells,
    dose_rows,
    draw_rows,
    markdown,
    split_rows,
)

_STAGES = ("read", "prepare", "train", "score", "diagnose")


def cap_section(cells: Cells) -> list[str]:
    """The cap sweep with its unweighted twins."""
    rows = cap_rows(cells)
    if not rows:
        return []
    forms = {"cap": "g", "identified": ",d", "saturated": ".1%", "largest shift": ".2f",
             "budget": ".1f", "median ratio": ".2f", "over-inverted": ".1f"}  # fmt: skip

    def shown(name: str, value: Value) -> str:
        missing = "none" if name == "cap" else "--"
        return missing if value is None else format(value, forms.get(name, ".4f"))

    return [
        "## Caps of the leaf step, lightgbm",
        "",
        "Budget, largest realized shift and median over-inversion (ln w less the realized shift)",
        "in nat, over the labels without a saturated cell (`identified`), all test rows. MAP@K by",
        "the test-split protocol.",
        "",
        markdown(list(rows[0]), [[shown(*item) for item in row.items()] for row in rows]),
    ]


def dose_section(cells: Cells) -> list[str]:
    """Four weights."""
    names = ("raw", "inversion", "isotonic", "ceiling")
    rows = []
    for learner in LEARNERS:
        for dose in dose_rows(cells, learner):
            shown = [f"{dose[name]:.4f}" if name in dose else "--" for name in names]
            extra = [f"{dose['auc']:.3f}", f"{dose['saturated']:.1%}"]
            rows.append([learner, dose["weight"], *shown, *extra])
    if not rows:
        return []
    header = ["learner", "weight", *names, "AUC", "cells at 1.0"]
    return ["## Doses of the weight", "", markdown(header, rows)]


def draw_section(cells: Cells) -> list[str]:
    """Draws of the training rows."""
    found = draw_rows(cells)
    if not found:
        return []
    n_draws = max(int(row["n"]) for row in found.values())
    rows = [[name, f"{row['mean']:.4f}", f"{row['sd']:.4f}"] for name, row in found.items()]
    return [
        "## Draws of the training rows, lightgbm",
        "",
        f"Both arms trained again on {n_draws} draws of 90% of the training rows.",
        "",
        markdown(["", "mean", "standard deviation"], rows),
    ]


def split_section(cells: Cells) -> list[str]:
    """Sizes of the calibration split."""
    table = split_rows(cells)
    if not table:
        return []
    header, *rows = table
    shown = [
        [f"{share:.0%}", f"{n_rows:,}", f"{dead:,}", f"{median:g}", *(f"{v:.4f}" for v in maps)]
        for share, n_rows, dead, median, *maps in rows
    ]
    return [
        "## Sizes of the calibration split",
        "",
        "MAP@K of per-label isotonic with the prior, fitted on a share of the test rows and",
        "evaluated on the same 70% of them.",
        "",
        markdown(header, shown),
    ]


def choice_section(cells: Cells) -> list[str]:
    """The choices of every arm, and how often a rule did harm."""
    found = choice_cells(cells)
    if not found:
        return []
    rows, harmed = [], dict.fromkeys(RULES, 0)
    for arm, cell in found.items():
        shown = [arm, f"{cell['choices']['raw']:.4f}"]
        for rule in RULES:
            told = cell["choices"][rule]
            gap = told["difference"]
            harmed[rule] += gap["value"] < -HARM
            change = f"{gap['value']:+.4f} [{gap['low']:+.4f}, {gap['high']:+.4f}]"
            shown += [told["chosen"], change]
        rows.append(shown)
    counts = ", ".join(f"{rule} {count}" for rule, count in harmed.items())
    return [
        "## What the selection rules choose",
        "",
        "Chosen and fitted on the validation period, evaluated on all test rows; differences to",
        f"raw with paired intervals. More than {HARM} below raw, of {len(found)} arms: {counts}.",
        "",
        markdown(["arm", "raw", *(name for rule in RULES for name in (rule, "less raw"))], rows),
    ]


def cost_section(cells: Cells) -> list[str]:
    """Seconds, CPU seconds and peak memory of every cell, stage by stage."""
    rows = []
    for key, cell in cells.items():
        stages = cell["stages"]
        times = [
            f"{stages[name]['seconds']:.0f} / {stages[name]['cpu_seconds']:.0f}"
            if name in stages
            else "--"
            for name in _STAGES
        ]
        peak = max(told["peak_memory_mb"] for told in stages.values())
        rows.append([key, *times, f"{peak:,.0f}"])
    if not rows:
        return []
    return [
        "## What it took",
        "",
        "Seconds / CPU seconds by stage, and the process's peak memory in MB. Arms share prepared",
        "features; a run that was continued counts its last part only.",
        "",
        markdown(["cell", *_STAGES, "peak MB"], rows),
    ]
