"""The page of the synthetic study, beside the paper's Table S10, and its picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

from scipy.stats import spearmanr

from experiments.figures.numbers import Series, SeriesPanel
from experiments.synthetic.study import (
    COMMONEST,
    DECADES,
    EXPONENTS,
    LEARNERS,
    N_FEATURES,
    N_LABELS,
    N_ROWS,
    SATURATED,
    SEEDS,
    SIGNAL,
    Cells,
    K,
    cell_key,
)
from experiments.text import paragraph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Table S10: spread of ln w, true marginals; then raw and inversion of each learner, with ceiling
# and saturated per cent of the two LightGBMs between. A line per (D, e).
_WITH_CEILING = ("raw", "inversion", "ceiling", "saturated")
COLUMNS: tuple[tuple[str, str | None], ...] = (
    ("spread", None),
    ("truth", None),
    *((rung, "logistic") for rung in _WITH_CEILING[:2]),
    *((rung, "lightgbm-30x4") for rung in _WITH_CEILING),
    *((rung, "lightgbm-300x31") for rung in _WITH_CEILING),
    *((rung, learner) for learner in ("xgboost", "mlp") for rung in _WITH_CEILING[:2]),
)
_TABLE_S10 = """
1 0.0 0.0 0.406 0.405 0.405 0.386 0.386 0.393 0 0.368 0.368 0.378 0 0.390 0.390 0.404 0.404
1 0.5 1.1 0.406 0.391 0.405 0.380 0.387 0.394 0 0.357 0.370 0.378 0 0.375 0.391 0.387 0.404
1 1.0 2.2 0.406 0.327 0.405 0.296 0.383 0.393 0 0.340 0.372 0.377 0 0.326 0.390 0.319 0.402
1 1.5 3.4 0.406 0.230 0.405 0.158 0.373 0.390 0 0.317 0.370 0.375 0 0.258 0.389 0.225 0.402
2 0.0 0.0 0.501 0.500 0.500 0.480 0.480 0.489 0 0.464 0.464 0.473 0 0.484 0.484 0.498 0.498
2 0.5 2.1 0.501 0.477 0.500 0.461 0.481 0.491 0 0.454 0.466 0.475 0 0.461 0.485 0.470 0.497
2 1.0 4.1 0.501 0.317 0.500 0.212 0.421 0.489 1 0.364 0.392 0.473 2 0.378 0.485 0.303 0.495
2 1.5 6.2 0.501 0.103 0.500 0.040 0.223 0.486 8 0.197 0.221 0.471 8 0.275 0.483 0.115 0.494
3 0.0 0.0 0.576 0.575 0.575 0.555 0.555 0.566 0 0.542 0.542 0.551 0 0.559 0.559 0.573 0.573
3 0.5 3.2 0.576 0.550 0.575 0.528 0.551 0.566 0 0.482 0.493 0.549 1 0.538 0.560 0.544 0.572
3 1.0 6.3 0.576 0.302 0.575 0.116 0.198 0.565 12 0.148 0.158 0.548 14 0.456 0.560 0.310 0.569
3 1.5 9.5 0.576 0.048 0.568 0.014 0.042 0.562 26 0.087 0.099 0.546 19 0.357 0.558 0.089 0.568
"""
PRINTED = {
    (int(decade), float(exponent)): tuple(map(float, values))
    for decade, exponent, *values in map(str.split, _TABLE_S10.strip().splitlines())
}
_LOOKS = {
    "logistic": ("reference", False),
    "lightgbm-30x4": ("raw", False),
    "lightgbm-300x31": ("raw", True),
    "xgboost": ("repair", False),
    "mlp": ("repair", True),
}


def write_page(cells: Cells) -> str:
    """The page as Markdown."""
    return "\n".join(_format_lines(cells)) + "\n"


def mean_over_seeds(cells: Cells, decade: int, exponent: float, learner: str) -> dict[str, Any]:
    """Means of what the finished seeds of a cell say, and how many they are; empty without any."""
    seed_cells = [
        cells[key] for seed in SEEDS if (key := cell_key(decade, exponent, learner, seed)) in cells
    ]
    if not seed_cells:
        return {}
    names = ("spread", "truth", "raw", "inversion", "ceiling", "saturated_share")
    return {name: fmean(cell[name] for cell in seed_cells) for name in names} | {
        "n": len(seed_cells)
    }


def printed(decade: int, exponent: float, what: str, learner: str | None) -> float:
    """An entry of Table S10."""
    return float(PRINTED[decade, exponent][COLUMNS.index((what, learner))])


def _format_lines(cells: Cells) -> Iterator[str]:
    total = len(DECADES) * len(EXPONENTS) * len(LEARNERS) * len(SEEDS)
    yield "# A synthetic study with known marginals"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments synthetic --finished --page docs/paper/synthetic.md "
        "--figure docs/paper/synthetic.png` from the cells in "
        "`experiments/results/synthetic.jsonl`; the same "
        f"command without `--finished` trains what is missing. {len(cells)} of {total} "
        "cells are finished. The paper's Table S10, with a generator of our own: the "
        "paper describes none, so the shape can be compared and the digits cannot."
    )
    yield ""
    yield from paragraph(
        f"**Generator** (`oddslip.datasets.synthetic_rows`). Features are {N_FEATURES} "
        f"independent standard normal numbers. Each of {N_LABELS} labels has a random "
        f"direction; its log-odds are linear along it with standard deviation {SIGNAL:g} "
        "and an intercept at which the mean marginal is its prevalence. Prevalences are "
        f"log-spaced from {COMMONEST:g} x 10^-D to {COMMONEST:g}, in shuffled order. "
        "Labels are drawn from the marginals, independently. The standard deviation was "
        "set so that the truth's own MAP@5 comes near the column of true marginals, and "
        "to nothing else of the table."
    )
    yield ""
    yield from paragraph(
        f"{N_ROWS:,} training and {N_ROWS:,} test rows, K = {K}, w = r^e; means over the "
        f"finished seeds of {', '.join(map(str, SEEDS))}. Saturated: from {SATURATED:g} "
        "on. Learners:"
    )
    yield ""
    for name, (learner, parameters) in LEARNERS.items():
        text = ", ".join(f"{key} {value}" for key, value in parameters.items())
        yield f"- **{name}**: {learner}, {text}."
    yield ""
    yield "The table does not state learning rates, rows per leaf or the network; those are ours."
    yield ""
    yield "![Raw MAP@5 as a share of the truth's](synthetic.png)"
    yield ""
    for learner in LEARNERS:
        yield from _format_learner(cells, learner)
    yield from _conclude(cells)


def _format_learner(cells: Cells, learner: str) -> Iterator[str]:
    lines = []
    with_ceiling = ("ceiling", learner) in COLUMNS
    for decade in DECADES:
        for exponent in EXPONENTS:
            mean = mean_over_seeds(cells, decade, exponent, learner)
            if not mean:
                continue
            texts = [str(decade), f"{exponent:g}", str(mean["n"]), f"{mean['spread']:.1f}"]
            texts += [f"{mean['truth']:.3f}", f"{mean['raw']:.3f}", f"{mean['inversion']:.3f}"]
            rungs = ["raw", "inversion"]
            if with_ceiling:
                texts += [f"{mean['ceiling']:.3f}", f"{mean['saturated_share']:.0%}"]
                rungs.append("ceiling")
            paper = [f"{printed(decade, exponent, 'spread', None):.1f}"]
            paper.append(f"{printed(decade, exponent, 'truth', None):.3f}")
            paper += [f"{printed(decade, exponent, rung, learner):.3f}" for rung in rungs]
            if with_ceiling:
                paper.append(f"{printed(decade, exponent, 'saturated', learner):.0f}%")
            lines.append(" | ".join([*texts, " ".join(paper)]))
    if not lines:
        return
    columns = ["D", "e", "seeds", "spread of ln w", "truth", "raw", "inversion"]
    columns += ["ceiling", "saturated"] if with_ceiling else []
    measures = "spread, truth, raw, inversion"
    measures += ", ceiling, saturated" if with_ceiling else ""
    yield f"## {learner}"
    yield ""
    yield f"| {' | '.join(columns)} | paper: {measures} |"
    yield "|---" * (len(columns) + 1) + "|"
    yield from (f"| {line} |" for line in lines)
    yield ""


# Of a weighted cell and its twin at w = 1, in order of what Table S10 prints of the learner.
_SHAPES: dict[str, Callable[[Mapping[str, float], Mapping[str, float]], bool]] = {
    "raw loses more than half of w = 1": lambda cell, twin: cell["raw"] < twin["raw"] / 2,
    "the inversion is within 0.01 of w = 1": lambda cell, twin: (
        abs(cell["inversion"] - twin["raw"]) <= 0.01
    ),
    "the ceiling is within 0.01 of that of w = 1": lambda cell, twin: (
        abs(cell["ceiling"] - twin["ceiling"]) <= 0.01
    ),
    "half a percent of the cells is saturated": lambda cell, twin: cell["saturated"] >= 0.5,
}


def _shape_pairs(cells: Cells, learner: str) -> Iterator[list[tuple[dict[str, float], ...]]]:
    """Ours and the paper's: a weighted cell and its twin, where both are finished here."""
    rungs = [rung for rung, each in COLUMNS if each == learner]
    for decade in DECADES:
        for exponent in filter(None, EXPONENTS):
            ours = [mean_over_seeds(cells, decade, each, learner) for each in (exponent, 0.0)]
            if all(ours):
                theirs = (
                    {rung: printed(decade, each, rung, learner) for rung in rungs}
                    for each in (exponent, 0.0)
                )
                percent = ({**each, "saturated": 100 * each["saturated_share"]} for each in ours)
                yield [tuple(percent), tuple(theirs)]


def _compare_spreads(cells: Cells) -> str:
    """How far the weights of both studies are spread at the same D and e."""
    ratios = [
        mean["spread"] / printed(decade, exponent, "spread", None)
        for decade in DECADES
        for exponent in filter(None, EXPONENTS)
        for learner in LEARNERS
        if (mean := mean_over_seeds(cells, decade, exponent, learner))
    ]
    return (
        f"At the same D and e, ln w is spread {min(ratios):.2f} to {max(ratios):.2f} times as far "
        "here as there."
    )


def _conclude(cells: Cells) -> Iterator[str]:
    """Each claim of shape over the finished cells, ours and the paper's, and how often alike."""
    lines, kept, n_alike, n_all = [], [], 0, 0
    for learner in LEARNERS:
        pairs = list(_shape_pairs(cells, learner))
        kept += [[cell["raw"] / twin["raw"] for cell, twin in pair] for pair in pairs]
        n_rungs = sum(each == learner for _, each in COLUMNS)
        for what, holds in list(_SHAPES.items())[: n_rungs if pairs else 0]:
            answers = [[holds(cell, twin) for cell, twin in pair] for pair in pairs]
            alike = sum(ours == theirs for ours, theirs in answers)
            ours, theirs = map(sum, zip(*answers, strict=True))
            n_alike, n_all = n_alike + alike, n_all + len(pairs)
            total = f"of {len(pairs)}"
            lines.append(
                f"| {learner}: {what} | {ours} {total} | {theirs} {total} | {alike} {total} |"
            )
    if not kept:
        return
    yield "## The shape, ours and the paper's"
    yield ""
    yield from paragraph(
        "Over the weighted cells that are finished here (D, e > 0). The last column counts cells "
        f"with the same answer here and there: {n_alike} of {n_all} in all. The rank correlation "
        "between both of what raw keeps of w = 1 is "
        f"{spearmanr(*zip(*kept, strict=True)).statistic:.3f} over {len(kept)} cells. "
        f"{_compare_spreads(cells)}"
    )
    yield ""
    yield "| | ours | paper, same cells | same answer |"
    yield "|---|---|---|---|"
    yield from lines
    yield ""
    yield from paragraph(
        "A learner that can be right (logistic regression, the truth being logistic) "
        "inverts; LightGBM does not where its cells saturate. It starts every label at "
        "its unweighted prior p, where a leaf with a positive takes a first Newton step "
        "of about (learning rate) / p nat once the weight outweighs the leaf's negatives: "
        "[the boundary](boundary.md) builds on that. XGBoost starts at the weighted "
        "prevalence, where the same step is small."
    )


def draw(cells: Cells) -> Figure:
    """Raw MAP@5 over the truth's, by e: a panel for each D."""
    from experiments.figures.series import draw_lines

    panels = []
    for decade in DECADES:
        series = []
        for learner, look in _LOOKS.items():
            values = {
                f"{exponent:g}": (mean["raw"] / mean["truth"], None, None)
                for exponent in EXPONENTS
                if (mean := mean_over_seeds(cells, decade, exponent, learner))
            }
            if values:
                series.append(Series(learner, values, *look))
        if series:
            panels.append(SeriesPanel(f"D = {decade}", series))
    return draw_lines(panels, "e, with w = r^e", f"raw MAP@{K} / MAP@{K} of the truth")
