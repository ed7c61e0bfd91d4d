"""The page of a matched-pair study: everything on it is computed from finished cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.pairs.arms import LEARNERS, Arm
from experiments.pairs.cells import HARM, RULES
from experiments.pairs.claims import find_claims
from experiments.pairs.label_counts import label_count_section
from experiments.pairs.paper import TABLE_1, is_papers_data
from experiments.pairs.pictures import supplements
from experiments.pairs.protocols import PROTOCOLS
from experiments.pairs.supplement.measures import SPLIT_SEEDS
from experiments.pairs.supplement.printed import printed_section
from experiments.pairs.supplement.sections import (
    again_section,
    dead_section,
    direct_section,
    earlier_section,
    label_section,
    tie_section,
    what_if_section,
)
from experiments.pairs.tables import (
    Cells,
    Value,
    cap_rows,
    choice_cells,
    dose_rows,
    draw_rows,
    format_table_one,
    has_loss,
    markdown,
    split_rows,
    verdict_rows,
)
from experiments.store import RESULTS

# Rungs whose difference to raw is a part of the loss, or returns one.
_LOSS_PARTS = {
    "unweighted": "loss",
    "what-if": "slippage",
    "inversion": "inversion returns",
    "isotonic": "isotonic returns",
}
_STAGES = ("read", "prepare", "train", "score", "diagnose")
TITLES = {
    "tafeng": "Ta-Feng: matched pairs",
    "instacart": "Instacart: matched pairs",
    "instacart-baskets": "Instacart's last baskets: matched pairs",
    "santander": "Santander: matched pairs",
    "santander-sample": "Santander, the public sample: matched pairs",
}
GENERATED = (
    "Generated data: made by `python -m experiments generate`, so the scores say nothing "
    "about people. "
    "The paper's numbers do not stand beside these; its claims do."
)
# How a study differs from the paper beyond its rows.
PROTOCOL_NOTES = {
    "instacart-baskets": [
        "These are the paper's last baskets, complete and real, under another protocol: the file",
        "has neither the earlier orders nor times. A row is a cart of four or more products. Its",
        "first half, in the order of adding, is known (products, aisles, departments, how many);",
        "what follows is ranked. Rows are split into three equal parts at random, seed 42, where",
        "the paper splits by time. Training, the rows that calibrate and the bootstrap (2,000",
        "replicates) have that seed too. A known product never follows, and nothing keeps it from",
        "being ranked. The paper's numbers do not stand beside these; its claims do. MAP@7 is",
        "small here, so that a claim with a margin of 0.01 is easily met.",
    ]
}
OTHERS = "These are not the paper's data. Its numbers do not stand beside these; its claims do."
UNKNOWN = "Whether these data were generated is not known: their cells do not say it."
FORMS = ("instacart", "santander")  # that `python -m experiments generate` can make

OLD_RULES = (
    "Old rules doubted twins of saturated scores (OS206) and judged signal by the mean AUC alone."
)


def write_page(
    cells: Cells, study: str, *, file: Path | None = None, tables: Path | None = None
) -> str:
    """The page as Markdown.

    ``file`` holds the cells; ``tables`` is the folder that tables and figures were written to
    as numbers, if they were.
    """
    path = file or RESULTS / f"{study}.jsonl"
    source_file = path.as_posix()
    about = cells.get("data")
    papers = about is not None and is_papers_data(study, about)
    title = TITLES.get(study, study)
    command = f"python -m experiments {study.replace('-sample', ' --sample')}"
    if about is not None and path.stem == f"{study}-{about['n_labels']}":
        title += f", {about['n_labels']:,} labels"
        command += f" --labels {about['n_labels']}"
    if path.stem == f"{study}-paper":
        title += ", the paper's columns"
        command += " --features paper"
    source = (
        [f"with `--page`, from the cells in `{source_file}`. Each cell is a"]
        if tables is None
        else [
            f"with `--page`, `--figures` and `--tables`, from the cells in `{source_file}`; all",
            f"tables and figures as numbers lie in `{tables.as_posix()}`. Each cell is a",
        ]
    )
    lines = [
        f"# {title}",
        "",
        f"The paper's section 3. Made by `{command} --finished`",
        *source,
        "line with its configuration, seed, versions and the hashes of its inputs; the same",
        "command without `--finished` computes what is missing.",
        *_format_origin(about, study, papers),
        "",
    ]
    if about is not None:
        lines += _data_section(about)
    lines += ["## Table 1", "", *_table_section(cells, study, path.stem, papers)]
    sections = [label_count_section(study, path), *_sections(cells, path.stem)]
    lines += [line for section in sections if section for line in (*section, "")]
    lines += [line for line in printed_section(cells, study) if papers]
    lines += ["## Which of the paper's claims hold here", "", *_claims(cells), ""]
    lines += [*cost_section(cells), ""]
    return "\n".join(lines)


def _format_origin(about: Any, study: str, papers: bool) -> list[str]:
    """Whose rows these are, and whether they were generated."""
    if papers:
        return ["These are the paper's rows: its digits and the difference stand in brackets."]
    generated = (about or {}).get("generated")
    if generated:
        return [GENERATED]
    if study in PROTOCOL_NOTES:
        return ["", *PROTOCOL_NOTES[study]]
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


def _table_section(cells: Cells, study: str, prefix: str, papers: bool) -> list[str]:
    return [
        "MAP@K, test-split protocol: 30% of the test rows calibrate, 70% are evaluated. Ceiling,",
        "AUC and cells at 1.0 are of all test rows.",
        "",
        format_table_one(cells, TABLE_1[study] if papers else None),
        "",
        f"![The loss of each pair, and the realized shift by cap]({prefix}-figure-1.png)",
        "",
        f"![What the inversion returns, by realized shift]({prefix}-figure-2.png)",
        "",
    ]


def _sections(cells: Cells, prefix: str) -> Iterator[list[str]]:
    pictures = supplements(cells)

    def picture(name: str, caption: str) -> list[str]:
        return [f"![{caption}]({prefix}-{name}.png)"] if name in pictures else []

    for learner in LEARNERS:
        yield _ladder_section(cells, learner)
    yield picture("ladders", "Every rung of both arms under both protocols")
    yield loss_section(cells)
    yield verdict_section(cells)
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
    yield what_if_section(cells)
    yield tie_section(cells)
    yield direct_section(cells)
    yield label_section(cells)
    yield picture("labels", "Intended and realized shift of every label, and its saturated share")
    yield earlier_section(cells)
    yield again_section(cells)
    yield dead_section(cells)


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
        decomposition, again = cell["test-split"]["decomposition"], cell["reordered"]
        shares, returned = decomposition["shares"], decomposition["returned"]
        parts = [shares["odds"], shares["slippage"], shares["tie_residue"]]
        back = [returned.get(rung) for rung in ("inversion", "offset", "isotonic")]
        ties = [again[by]["share"] for by in ("by_twin", "by_oracle")]
        unweighted, sure = cell["test-split"]["ladder"]["rungs"]["unweighted"], has_loss(cell)
        texts = [
            f"{share:.0%}" if sure and share is not None else "--"
            for share in (*parts, *back, *ties)
        ]
        rows.append([arm.learner, _interval(unweighted["minus_raw"]), *texts])
    header = [
        "",
        "loss",
        "odds shift",
        "slippage",
        "tie residue",
        "inversion returns",
        "offset returns",
        "isotonic returns",
        "ties by the twin",
        "ties by the oracle",
    ]
    return [
        "## What the loss is made of",
        "",
        "Shares of MAP@K(unweighted) - MAP@K(weighted). The last two re-order the saturated cells",
        "of all test rows by the twin's scores, and by the truth. A pair without a sure loss has",
        "no shares.",
        "",
        markdown(header, rows),
        "",
        "In MAP@K over raw, with paired intervals: all of the loss, the slippage (what-if less",
        "raw), and what rungs of the ladder return.",
        "",
        markdown(["", *_LOSS_PARTS.values()], [_loss_parts(cells[arm.key], arm) for arm in there]),
    ]


def _loss_parts(cell: Any, arm: Arm) -> list[str]:
    rungs = cell["test-split"]["ladder"]["rungs"]
    return [arm.learner, *(_interval(rungs[rung]["minus_raw"]) for rung in _LOSS_PARTS)]


def verdict_section(cells: Cells) -> list[str]:
    """What `oddslip.diagnose` says of every arm."""
    rows = verdict_rows(cells)
    by_arm: dict[str, list[str]] = {}
    for row in rows:
        share = "" if row["returned"] is None else f", returns {row['returned']:.0%}"
        doubt = ", twin in doubt (OS206)" if row["twin_follows"] is False else ""
        mark = "" if row["current"] else " (old rules)"
        by_arm.setdefault(row["arm"], []).append(f"`{row['verdict']}`{share}{doubt}{mark}")
    if not by_arm:
        return []
    return [
        "## What the diagnosis says of each arm",
        "",
        "The verdict under each protocol, and the share of a sure loss against the twin that the",
        "repair it names returns.",
        *([] if all(row["current"] for row in rows) else [OLD_RULES]),
        "",
        markdown(["arm", *PROTOCOLS], [[arm, *texts] for arm, texts in by_arm.items()]),
    ]


def cap_section(cells: Cells) -> list[str]:
    """The cap sweep with its unweighted twins."""
    rows = cap_rows(cells)
    if not rows:
        return []
    forms = {
        "cap": "g",
        "identified": ",d",
        "saturated": ".1%",
        "largest shift": ".2f",
        "budget": ".1f",
        "median ratio": ".2f",
        "over-inverted": ".1f",
        "auc": ".3f",
        "largest direct": ".2f",
        "2 T eta c": ".1f",
        "direct ratio": ".2f",
    }

    def shown(name: str, value: Value) -> str:
        missing = "none" if name == "cap" else "--"
        return missing if value is None else format(value, forms.get(name, ".4f"))

    return [
        "## Caps of the leaf step, lightgbm",
        "",
        "Budget, largest realized shift and median over-inversion (ln w less the realized shift)",
        "in nat, over the labels without a saturated cell (`identified`), all test rows. MAP@K by",
        "the test-split protocol; ceiling, AUC and what-if of all test rows. The capped what-if",
        "adds min(ln w, T eta c) to the twin. The direct shift is held against 2 T eta c; its",
        "ratio is the median over ln w.",
        "",
        markdown(list(rows[0]), [[shown(*item) for item in row.items()] for row in rows]),
    ]


def dose_section(cells: Cells) -> list[str]:
    """Four weights."""
    names = ("raw", "inversion", "isotonic", "ceiling")
    rows = []
    for learner in LEARNERS:
        for dose in dose_rows(cells, learner):
            texts = [f"{dose[name]:.4f}" if name in dose else "--" for name in names]
            extra = [f"{dose['auc']:.3f}", f"{dose['saturated']:.1%}"]
            rows.append([learner, dose["weight"], *texts, *extra])
    if not rows:
        return []
    header = ["learner", "weight", *names, "AUC", "cells at 1.0"]
    return ["## Doses of the weight", "", markdown(header, rows)]


def draw_section(cells: Cells) -> list[str]:
    """Draws of the training rows."""
    draws = draw_rows(cells)
    if not draws:
        return []
    n_draws = max(int(row["n"]) for row in draws.values())
    rows = [[name, f"{row['mean']:.4f}", f"{row['sd']:.4f}"] for name, row in draws.items()]
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
    claim_rows = [
        [
            f"{100 * share:g}%",
            f"{n_rows:,}",
            f"{dead:,g}",
            f"{median:g}",
            *map("{:.4f}".format, maps),
        ]
        for share, n_rows, dead, median, *maps in rows
    ]
    return [
        "## Sizes of the calibration split",
        "",
        "MAP@K of per-label isotonic with the prior, of the pooled map and of raw scores. Fitted",
        f"on a share of the test rows, evaluated on the rest; means over {len(SPLIT_SEEDS)} seeds.",
        "",
        markdown(header, claim_rows),
    ]


def choice_section(cells: Cells) -> list[str]:
    """The choices of every arm, and how often a rule did harm."""
    arms = choice_cells(cells)
    if not arms:
        return []
    rows, harmed = [], dict.fromkeys(RULES, 0)
    for arm, cell in arms.items():
        row = [arm, f"{cell['choices']['raw']:.4f}"]
        for rule in RULES:
            choice = cell["choices"][rule]
            gap = choice["difference"]
            harmed[rule] += gap["value"] < -HARM
            change = f"{gap['value']:+.4f} [{gap['low']:+.4f}, {gap['high']:+.4f}]"
            row += [choice["chosen"], change]
        rows.append(row)
    counts = ", ".join(f"{rule} {count}" for rule, count in harmed.items())
    return [
        "## What the selection rules choose",
        "",
        "Chosen and fitted on the validation period, evaluated on all test rows; differences to",
        f"raw with paired intervals. More than {HARM} below raw, of {len(arms)} arms: {counts}.",
        "",
        markdown(["arm", "raw", *(name for rule in RULES for name in (rule, "less raw"))], rows),
    ]


def all_products_section(cells: Cells) -> list[str]:
    """The pair with every product as a label."""
    arm = Arm("mlp", "r", all_products=True)
    if arm.key not in cells:
        return []
    names = ["raw", "inversion", "isotonic", "isotonic, identity", "isotonic, exclude"]
    there = [each for each in (arm, arm.twin) if each.key in cells]
    columns = [(each, protocol) for each in there for protocol in PROTOCOLS]
    rows = [
        [name, *(show_rung(cells[each.key], protocol, name) for each, protocol in columns)]
        for name in (*names, "popularity", "ceiling")
    ]
    about, positives = cells.get("data-all-products"), cells[arm.key]["test-split"]
    labels = "" if about is None else f"{about['n_labels']:,} labels, "
    dead = positives["calibration_positives"]["n_dead"]
    return [
        "## All products as labels, mlp",
        "",
        f"{labels}{dead:,} of them without a calibration positive.",
        "",
        markdown(["rung", *(f"w={each.weight}, {protocol}" for each, protocol in columns)], rows),
    ]


def _claims(cells: Cells) -> list[str]:
    rows = [
        f"| {claim.what} | {'holds' if claim.holds else '**does not hold**'} | {claim.numbers} |"
        for claim in find_claims(cells)
    ]
    counts = {cell["test-split"]["ladder"]["n_evaluated"] for cell in _ladder_cells(cells)}
    evaluated = f"{max(counts):,} rows with a true label are evaluated. " if counts else ""
    return [
        f"{evaluated}Point values decide, or intervals where they are shown.",
        "",
        "| claim | here | numbers |",
        "|---|---|---|",
        *rows,
    ]


def _ladder_cells(cells: Cells) -> Iterator[Any]:
    for key in (Arm(learner, weight).key for learner in LEARNERS for weight in ("r", "1")):
        if key in cells:
            yield cells[key]


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
        peak = max(stage["peak_memory_mb"] for stage in stages.values())
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
