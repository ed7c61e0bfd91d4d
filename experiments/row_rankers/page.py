"""The page of the row-dependent rankers, and its picture, from finished cells."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import TYPE_CHECKING, Any

from experiments.figures.numbers import Series, SeriesPanel
from experiments.row_rankers.ranker import N_COMPONENTS, RANKERS
from experiments.row_rankers.study import DATASETS, LEARNER, N_FOLDS, WEIGHTS, Cells
from experiments.text import paragraph

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_page(cells: Cells) -> str:
    """The page as Markdown."""
    return "\n".join(_format_lines(cells)) + "\n"


def would_serve(cell: dict[str, Any]) -> float:
    """MAP@K on the test rows of what is best out of fold: a ranker, or the repair alone."""
    best = max(RANKERS, key=lambda name: cell["rankers"][name]["out_of_fold"])
    ranker = cell["rankers"][best]
    better = ranker["out_of_fold"] > cell["repaired_out_of_fold"]
    return float(ranker["map"] if better else cell["repaired"])


def _format_lines(cells: Cells) -> Iterator[str]:
    yield "# Beyond per-label maps"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments row-rankers --finished --page "
        "docs/paper/row-rankers.md --figure "
        "docs/paper/row-rankers.png` from the cells in `experiments/results/row-rankers.jsonl`; "
        "the same command without "
        f"`--finished` computes what is missing. {len(cells)} of "
        f"{len(DATASETS) * len(WEIGHTS)} cells are finished. Repairs of the paper map each "
        "label's score alone. This asks what is left above them for a ranker that may "
        "look at the row: one honest experiment, not a search."
    )
    yield ""
    yield from paragraph(
        "LightGBM as in section 4 (`paper-default`), protocol `paper`. A ranker scores a "
        "cell from its repaired log-odds and margin, the label's prior and calibration "
        "positives, the cell's place in its row, the row's highest, mean and spread of "
        f"log-odds, the first {N_COMPONENTS} principal components of the row's features, "
        "and the row's affinity to the label: the inner product of those components with "
        "their mean over the label's fitted positives. It is trained on the calibration "
        f"rows, on scores repaired by `auto` fitted without them ({N_FOLDS} folds), and "
        "judged once on the test rows. **logistic** treats cells alike; **lambdarank** is "
        "LightGBM's, 100 trees of 7 leaves. Nothing was tuned. The ceiling is per-label "
        "isotonic fitted on the test rows themselves, which no per-label repair fitted "
        "elsewhere can be expected to reach."
    )
    yield ""
    yield "![What a ranker adds to the chosen repair](row-rankers.png)"
    yield ""
    yield "MAP@K on the test rows; differences to the chosen repair with 95% paired intervals."
    yield ""
    header = " | ".join(f"{name} | less repair" for name in RANKERS)
    yield f"| data set | w | raw | chosen repair | {header} | best out of fold | ceiling |"
    yield "|---" * (6 + 2 * len(RANKERS)) + "|"
    for data in DATASETS:
        for weight in WEIGHTS:
            cell = cells.get(f"{data}-{LEARNER}-{weight}")
            if cell is None:
                continue
            texts = [data, weight, f"{cell['raw']:.3f}"]
            texts.append(f"{cell['repaired']:.3f} ({cell['chosen']})")
            for name in RANKERS:
                ranker = cell["rankers"][name]
                gain = ranker["gain"]
                texts.append(f"{ranker['map']:.3f}")
                texts.append(f"{gain['value']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f})")
            texts += [f"{would_serve(cell):.3f}", f"{cell['ceiling']:.3f}"]
            yield f"| {' | '.join(texts)} |"
    yield ""
    yield from _conclude(cells)


def _conclude(cells: Cells) -> Iterator[str]:
    yield "## What is left"
    yield ""
    if not cells:
        yield "No cell is finished."
        return
    for name in RANKERS:
        gains = [cell["rankers"][name]["gain"] for cell in cells.values()]
        above = sum(gain["low"] > 0 for gain in gains)
        below = sum(gain["high"] < 0 for gain in gains)
        over = sum(cell["rankers"][name]["map"] > cell["ceiling"] for cell in cells.values())
        mean = fmean(gain["value"] for gain in gains)
        yield from paragraph(
            f"- **{name}**: {mean:+.3f} over the chosen repair, mean of {len(gains)} "
            f"cells; clearly better in {above}, clearly worse in {below}; above the "
            f"per-label ceiling in {over}."
        )
    room = fmean(cell["ceiling"] - cell["repaired"] for cell in cells.values())
    served = fmean(would_serve(cell) - cell["repaired"] for cell in cells.values())
    worse = sum(would_serve(cell) < cell["repaired"] for cell in cells.values())
    yield from paragraph(
        "- **best out of fold** (a ranker only where it beats the repair there): "
        f"{served:+.3f}, lower than the repair alone in {worse} of {len(cells)} cells."
    )
    yield f"- The ceiling lies {room:+.3f} above the chosen repair, mean of the same cells."
    yield ""
    yield from paragraph(
        "A ranker that sees the row is a second model, with features to keep and a fit to "
        "maintain; the rows that calibrate are few, and it is trained on them alone. The "
        "numbers above are what that bought here: they say nothing of larger data, or of "
        "a ranker trained on all rows from the start."
    )


def draw(cells: Cells) -> Figure:
    """Differences to the chosen repair, with the ceiling's."""
    from experiments.figures.series import draw_intervals

    names = {key: key.replace(f"-{LEARNER}-", ", w = ") for key in cells}
    looks = {"logistic": ("repair", False), "lambdarank": ("raw", False)}
    series = [
        Series(
            ranker,
            {
                names[key]: (gain["value"], gain["low"], gain["high"])
                for key, cell in cells.items()
                for gain in (cell["rankers"][ranker]["gain"],)
            },
            *look,
        )
        for ranker, look in looks.items()
    ]
    above = {
        names[key]: (cell["ceiling"] - cell["repaired"], None, None) for key, cell in cells.items()
    }
    series.append(Series("per-label ceiling", above, "reference", hollow=True))
    panel = SeriesPanel("", series)
    return draw_intervals([panel], "MAP@K less that of the chosen repair", marks=(0.0,))
