"""The page of the leaf checks, and its picture, from finished cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.figures.numbers import Series, SeriesPanel
from experiments.leaf.study import (
    BOOSTER,
    DATASETS,
    EPS,
    ROWS_IN_LEAF,
    TREE_ROWS,
    WEIGHTS,
    Cells,
)
from experiments.text import paragraph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# How each kind of leaf is drawn: tone, and whether hollow.
_LOOKS = {5: ("raw", False), 20: ("raw", True), 50: ("repair", False), 200: ("repair", True)}


def write_page(cells: Cells) -> str:
    """The page as Markdown."""
    return "\n".join(_format_lines(cells)) + "\n"


def _format_lines(cells: Cells) -> Iterator[str]:
    trees = {key: cell for key, cell in cells.items() if "predicted_share" in cell}
    expected = len(DATASETS) * len(WEIGHTS)
    yield "# Leaf saturation"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments leaf --finished --page docs/paper/leaf.md --figure "
        "docs/paper/leaf.png` from the cells in `experiments/results/leaf.jsonl`; the same command "
        "without "
        "`--finished` grows what is missing. The paper's Tables S8 and S9: under weighted "
        "log-loss the best constant of a leaf with n+ positives and n- negatives is "
        "rho(w) = w n+ / (w n+ + n-) (the leaf saturation lemma). A test cell counts as "
        f"saturated from 1 - {EPS:g} on. Fitted rows, test rows and K as in the MULAN "
        "study, protocol `paper`. The supplement's two tables are not among the files at "
        "hand, so ours stand alone; that the counts and the trees agree is the claim that "
        "can be checked."
    )
    yield ""
    yield "![Saturated share of the test cells by weight](leaf.png)"
    yield ""
    yield "## Single trees (Table S8)"
    yield ""
    yield from paragraph(
        f"One scikit-learn tree per label, {TREE_ROWS} rows per leaf, class weight on the "
        "positives. Predicted: the share of test cells in leaves with rho at the "
        "threshold or above, from whole counts of the fitted rows. Measured: from the "
        "trees' own scores."
    )
    yield ""
    if trees:
        largest = max(cell["largest_difference"] for cell in trees.values())
        yield from paragraph(
            f"{len(trees)} of {expected} cells are finished. The largest difference "
            "between a score and the rho of its leaf, over all their test cells, is "
            f"{largest:.1e}."
        )
        yield ""
    yield "| data set | w | predicted | measured | raw | ceiling | distinct scores |"
    yield "|---|---|---|---|---|---|---|"
    for data in DATASETS:
        for weight in WEIGHTS:
            cell = cells.get(f"{data}-tree-{weight}")
            if cell is not None:
                yield (
                    f"| {data} | {weight} | {cell['predicted_share']:.2%} "
                    f"| {cell['saturated_share']:.2%} | {cell['raw']:.3f} "
                    f"| {cell['ceiling']:.3f} | {cell['distinct']:.1f} |"
                )
    yield ""
    yield "## Boosted trees (Table S9)"
    yield ""
    n_boosted = len(cells) - len(trees)
    yield from paragraph(
        f"LightGBM, preset `{BOOSTER}` (200 trees) but for the fewest rows of a leaf. "
        f"{n_boosted} of {expected * len(ROWS_IN_LEAF)} cells are finished; a dash is one "
        "that is not. Saturated share, then ceiling."
    )
    yield ""
    yield "| data set | rows per leaf | " + " | ".join(f"w = {weight}" for weight in WEIGHTS) + " |"
    yield "|---" * (2 + len(WEIGHTS)) + "|"
    for data in DATASETS:
        for rows in ROWS_IN_LEAF:
            row_cells = [cells.get(f"{data}-lightgbm-{rows}-{weight}") for weight in WEIGHTS]
            if any(cell is not None for cell in row_cells):
                texts = (
                    "-" if cell is None else f"{cell['saturated_share']:.2%}, {cell['ceiling']:.3f}"
                    for cell in row_cells
                )
                yield f"| {data} | {rows} | " + " | ".join(texts) + " |"
    yield ""
    yield from _conclude(cells)


def _conclude(cells: Cells) -> Iterator[str]:
    """What the finished cells say, counted."""
    pairs = [
        (cells[f"{data}-tree-1"], cells[f"{data}-tree-100r"])
        for data in DATASETS
        if {f"{data}-tree-1", f"{data}-tree-100r"} <= cells.keys()
    ]
    n_rising = sum(high["saturated_share"] > low["saturated_share"] for low, high in pairs)
    n_fewer_distinct = sum(high["distinct"] < low["distinct"] for low, high in pairs)
    yield "## What they say"
    yield ""
    yield from paragraph(
        f"- Single trees, w = 1 against 100 r: the saturated share rises on {n_rising} of "
        f"{len(pairs)} sets, distinct scores fall on {n_fewer_distinct}."
    )
    n_pairs, n_falling = 0, 0
    for data in DATASETS:
        for weight in WEIGHTS:
            shares = [
                cells[key]["saturated_share"]
                for rows in ROWS_IN_LEAF
                if (key := f"{data}-lightgbm-{rows}-{weight}") in cells
            ]
            n_pairs += len(shares) > 1
            n_falling += len(shares) > 1 and shares[0] >= shares[-1]
    yield from paragraph(
        "- Boosted trees: the smallest leaves that are finished saturate at least as many "
        f"cells as the largest in {n_falling} of {n_pairs} pairs of data set and weight."
    )


def draw(cells: Cells) -> Figure:
    """Saturated share by weight: single trees, and boosted ones by their rows per leaf."""
    from experiments.figures.series import draw_lines

    panels = []
    for data in DATASETS:
        groups = {"single trees": ("tree", ("reference", False))}
        groups |= {f"boosted, {rows} rows": (f"lightgbm-{rows}", _LOOKS[rows]) for rows in _LOOKS}
        series = []
        for name, (middle, look) in groups.items():
            values = {
                weight: (cells[key]["saturated_share"], None, None)
                for weight in WEIGHTS
                if (key := f"{data}-{middle}-{weight}") in cells
            }
            if values:
                series.append(Series(name, values, *look))
        if series:
            panels.append(SeriesPanel(data, series))
    return draw_lines(panels, "weight of the positives", f"share of test cells from 1 - {EPS:g}")
