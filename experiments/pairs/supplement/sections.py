"""Sections of the page that the supplement adds: Markdown from finished cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from experiments.pairs.arms import EARLIER, LEARNERS, Arm
from experiments.pairs.cells import rung_values
from experiments.pairs.supplement.measures import FREQUENCY_SEEDS, STEPS, TIE_SEEDS
from experiments.pairs.tables import Cells, has_loss, markdown

_LABELS_SHOWN = 24  # as many as Santander has; of more, evenly chosen ones by positives


def _pairs(cells: Cells, measure: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Weighted arms of which there is this measure, pairs of the ladder first."""
    firsts = [Arm(learner, "r").key for learner in LEARNERS]
    keys = [*firsts, *(key for key in cells if key not in firsts)]
    return ((key, cells[key]) for key in keys if cells.get(key, {}).get(measure) is not None)


def what_if_section(cells: Cells) -> list[str]:
    """The twin with parts of ln w added."""
    rows = []
    for key, cell in _pairs(cells, "what_if"):
        what_if = cell["what_if"]
        share = what_if["odds_share"] if has_loss(cell) else None
        rows.append(
            [
                key,
                f"{what_if['unweighted']:.4f}",
                *(f"{what_if['map'][f'{step:g}']:.4f}" for step in STEPS),
                f"{what_if['weighted']:.4f}",
                "--" if share is None else f"{share:.0%}",
                f"{what_if['overlap']:.2f}",
                f"{what_if['rows_changed']:.0%}",
                f"{what_if['overlap_weighted']:.2f}",
            ]
        )
    if not rows:
        return []
    header = [
        "arm",
        "unweighted",
        *(f"{step:g} ln w" for step in STEPS),
        "weighted",
        "odds share",
        "top K kept",
        "rows changed",
        "kept by the weighted",
    ]
    return [
        "## What-if by steps of ln w",
        "",
        "MAP@K of all test rows: the twin, the twin with a part of ln w added, the weighted arm.",
        "The odds share is the loss to the whole of ln w over the loss of the weighted arm. Kept:",
        "labels of the twin's top K that the what-if, and the weighted arm, show too.",
        "",
        markdown(header, rows),
    ]


def tie_section(cells: Cells) -> list[str]:
    """Cells at exactly 1.0 in another order."""
    rows = []
    for key, cell in _pairs(cells, "reordered"):
        reordered = cell["reordered"]
        if "at_random" not in reordered or not cell["saturated_share"]:
            continue
        texts = [f"{reordered['stored']:.4f}"]
        for by in ("at_random", "by_twin", "by_oracle"):
            share = reordered[by]["share"] if has_loss(cell) else None
            texts.append(
                f"{reordered[by]['map']:.4f}" + ("" if share is None else f" ({share:.0%})")
            )
        rows.append([key, f"{cell['saturated_share']:.1%}", *texts])
    if not rows:
        return []
    return [
        "## What ties cost",
        "",
        "MAP@K of all test rows with the cells at exactly 1.0 in another order, and what that",
        f"returns of the loss. At random: the mean over {len(TIE_SEEDS)} seeds.",
        "",
        markdown(
            ["arm", "cells at 1.0", "as stored", "at random", "by the twin", "by the truth"], rows
        ),
    ]


def direct_section(cells: Cells) -> list[str]:
    """The direct shift, and what the inversion leaves."""
    rows = []
    for key, cell in _pairs(cells, "direct"):
        direct = cell["direct"]
        residual = direct["residual"]
        numbers = (
            direct["median_ratio"],
            direct["largest"],
            direct["bound"],
            residual["median_spread"],
            residual["largest_spread"],
            residual["largest_gap"],
        )
        texts = ["--" if each is None else f"{each:.2f}" for each in numbers]
        rows.append([key, f"{direct['n_labels']:,}", *texts])
    if not rows:
        return []
    header = [
        "arm",
        "labels",
        "median direct / ln w",
        "largest direct",
        "2 T eta c",
        "median spread",
        "largest spread",
        "largest gap",
    ]
    return [
        "## The direct shift, and what the inversion leaves",
        "",
        "Over cells strictly inside (1e-6, 1 - 1e-6) in both arms, all test rows, in nat. The",
        "direct shift of a label is the median difference of log-odds. The spread is that of what",
        "inverting by ln w leaves, largest less smallest within a row; 0 would return the twin's",
        "order. Under a cap no gap of a cell may be above 2 T eta c.",
        "",
        markdown(header, rows),
    ]


def label_section(cells: Cells) -> list[str]:
    """Figure S1 as a table: the labels one by one."""
    lines: list[str] = []
    for key, cell in _pairs(cells, "labels"):
        table = cell["labels"]
        n_labels = len(table["label"])
        order = sorted(range(n_labels), key=lambda at: (-table["n_positives"][at], at))
        step = max(1, -(-n_labels // _LABELS_SHOWN))
        rows = []
        for at in order[::step]:
            is_identified = table["identified"][at]
            numbers = (
                table["intended"][at],
                table["realized"][at] if is_identified else None,
                table["direct"][at],
            )
            rows.append(
                [
                    f"`{table['label'][at]}`",
                    f"{table['n_positives'][at]:,}",
                    *("--" if each is None else f"{each:.2f}" for each in numbers),
                    f"{table['saturated_share'][at]:.1%}",
                ]
            )
        which = "every label" if step == 1 else f"one label in {step}, by positives"
        lines += [
            f"### {key}, {which}",
            "",
            markdown(
                ["label", "training positives", "ln w", "realized", "direct", "cells at 1.0"], rows
            ),
            "",
        ]
    if not lines:
        return []
    return [
        "## Label by label",
        "",
        "Shifts in nat. A realized shift is told only where no cell of the label is saturated.",
        "",
        *lines[:-1],
    ]


def earlier_section(cells: Cells) -> list[str]:
    """The supplement's earlier configuration beside that of Table 1."""
    arm = Arm("lightgbm", "1", variant="earlier")
    now = Arm("lightgbm", "1")
    if arm.key not in cells or now.key not in cells:
        return []
    columns = [cells[now.key], cells[arm.key]]
    values = [rung_values(cell, "test-split") for cell in columns]
    rows = [[name, *(f"{each[name]:.4f}" for each in values)] for name in values[1]]
    rows.append(["mean within-label AUC", *(f"{cell['auc']:.3f}" for cell in columns)])
    return [
        "## The earlier configuration, lightgbm without a weight",
        "",
        f"{EARLIER['num_iterations']} trees (Table S2), MAP@K by the test-split protocol. As in "
        "the paper a tree has",
        f"{EARLIER['bagging_fraction']:.0%} of the rows, drawn every {EARLIER['bagging_freq']} "
        f"trees, and {EARLIER['feature_fraction']:.0%} of the features. Its seeds",
        "differ by label; ours is the same.",
        "",
        markdown(["rung", "60 trees", "100 trees, subsampling"], rows),
    ]


def again_section(cells: Cells) -> list[str]:
    """Every arm of the ladder trained twice."""
    start = "again-"
    rows = [
        [
            key.removeprefix(start),
            f"{cell['again']['first']:.4f}",
            f"{cell['again']['again']:.4f}",
            "the same bits" if cell["again"]["same"] else "other bits",
        ]
        for key, cell in cells.items()
        if key.startswith(start)
    ]
    if not rows:
        return []
    return [
        "## Trained a second time",
        "",
        "The same arm with the same seed, raw MAP@K of all test rows.",
        "",
        markdown(["arm", "first", "again", "scores"], rows),
    ]


def dead_section(cells: Cells) -> list[str]:
    """How many labels a split of a given size leaves without a positive."""
    rows = []
    for name, about in (("", cells.get("data")), ("all products", cells.get("data-all-products"))):
        for each in (about or {}).get("dead_frequency", []):
            rows.append(
                [
                    name or f"{about['n_labels']:,} labels",  # type: ignore[index]
                    f"{100 * each['share']:g}%",
                    f"{each['n_rows']:,}",
                    f"{each['mean']:,.1f}",
                    f"{each['min']:,}",
                    f"{each['max']:,}",
                    f"{each['any']:.0%}",
                ]
            )
    if not rows:
        return []
    return [
        "## Dead labels by the size of the split",
        "",
        f"Labels without a positive among a share of the test rows, {len(FREQUENCY_SEEDS)} random "
        "splits each; nothing is trained.",
        "",
        markdown(
            ["labels", "share", "rows", "dead, mean", "fewest", "most", "splits with one"], rows
        ),
    ]
