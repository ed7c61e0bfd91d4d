"""Conventions of the paper that its text leaves open: clipped values, dead labels, draws."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from experiments.bootstrap import N_REPLICATES, interval_of_draws, mean_with_interval
from experiments.datasets.mulan.reader import MulanData, read_mulan
from experiments.dead_products import (
    dead_product_lines,
    describe_carts,
    find_carts,
    measure_carts,
)
from experiments.folds import PaperRepair
from experiments.mulan.arms import arm_configuration, train_arm
from experiments.pairs.supplement.measures import count_dead
from experiments.store import RESULTS, CellStore
from experiments.text import paragraph
from oddslip.calibrators import Isotonic
from oddslip.core.panel import Panel
from oddslip.io.progress import progress_bar
from oddslip.metrics import average_precision_at_k, evaluate

CLIP = 1e-9  # 1e-6 to 1e-12 give the same
SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)
MEASURES = 1  # raised when what a cell measures changes
# MAP@K of default LightGBM with isotonic maps and dead labels as they are, printed in the paper.
PRINTED_MAPS = {
    "genbase-lightgbm-r": 0.874,
    "genbase-lightgbm-10r": 0.663,
    "corel5k-lightgbm-r": 0.060,
    "corel5k-lightgbm-10r": 0.001,
}
# Mean number of dead labels at each of the shares, printed in the supplement.
PRINTED_DEAD = {
    "emotions": (0.0, 0.0, 0.0, 0.0, 0.0),
    "scene": (0.0, 0.0, 0.0, 0.0, 0.0),
    "flags": (1.0, 0.4, 0.0, 0.0, 0.0),
    "yeast": (0.3, 0.2, 0.0, 0.0, 0.0),
    "birds": (6.1, 3.4, 1.4, 0.7, 0.1),
    "genbase": (13.4, 9.6, 7.1, 5.8, 3.5),
    "medical": (34.8, 28.3, 23.0, 19.0, 13.8),
    "enron": (22.4, 13.8, 8.2, 4.7, 2.3),
}
ROUNDING = 0.0005  # of a printed MAP
# Sets on which arms train in seconds: intervals of the paper's rule less raw, drawn in two ways.
INTERVAL_ARMS = tuple(f"{name}-lightgbm-{weight}" for name in PRINTED_DEAD for weight in ("1", "r"))
SEEDS = {"study": 0, "paper": 42, "other": 43}  # of the MULAN study, the paper, and for comparison
DIGITS = 3  # of a printed end

Cells = dict[str, dict[str, Any]]


def reproduce_conventions(
    *, data: Any = None, results: Any = RESULTS, work: Any = ".work", finished: bool = False
) -> Cells:
    """Measure what is not finished; returns all finished cells by key.

    Instacart's cell is left as it is where its last baskets are not at hand.
    """
    store = CellStore(results, "conventions")
    if not finished:
        command = "python -m experiments conventions"
        arms: dict[str, tuple[str, Callable[..., dict[str, Any]], dict[str, Any]]] = {
            **{key: (key, measure_identity, {}) for key in PRINTED_MAPS},
            **{
                f"{key}-interval": (key, measure_interval, {"seeds": SEEDS})
                for key in INTERVAL_ARMS
            },
        }
        with progress_bar("cells", len(arms) + len(PRINTED_DEAD)) as advance:
            for cell_key, (arm_key, measure_arm, settings) in arms.items():
                name, learner, weight = arm_key.split("-")
                loaded = read_mulan(name, protocol="paper", data=data)
                about = arm_configuration(loaded, learner, weight) | {"measures": MEASURES}
                folder = Path(work) / "mulan" / "paper"
                measure = partial(measure_arm, loaded, learner, weight, folder)
                store.find(cell_key, about | settings, measure, command=command)
                advance(1)
            for name in PRINTED_DEAD:
                loaded = read_mulan(name, protocol="paper", data=data)
                about = {"data": name, "inputs": loaded.sha256, "measures": MEASURES}
                store.find(f"{name}-dead", about, partial(measure_dead, loaded), command=command)
                advance(1)
        paths = find_carts(data)
        if paths is not None:
            measure = partial(measure_carts, paths)
            store.find("instacart-dead", describe_carts(paths), measure, command=command)
    return store.require(store.values())


def measure_identity(
    data: MulanData, learner: str, weight: str, folder: Path
) -> dict[str, float | int]:
    """MAP@K of isotonic maps whose dead labels stay as they are, without and with the clip."""
    arm = train_arm(data, learner, weight, folder)
    with warnings.catch_warnings():
        # Dead labels that rise under the identity policy are what is measured.
        warnings.simplefilter("ignore", UserWarning)
        maps = Isotonic(dead="identity").fit(arm.calibration, data.Y_train[data.calibration])
    plain = maps.fitted_.maps
    clipped = replace(plain, y=np.clip(plain.y, CLIP, 1 - CLIP))
    values: dict[str, float | int] = {"n_dead": int((data.calibration_positives == 0).sum())}
    for name, each in (("plain", plain), ("clipped", clipped)):
        scores = each.transform_panel(Panel(arm.test), np.float64)
        values[name] = float(average_precision_at_k(scores, data.Y_test, k=data.k))
    return values


def measure_interval(data: MulanData, learner: str, weight: str, folder: Path) -> dict[str, Any]:
    """Intervals of the paper's rule less raw on the test rows: the study's draws, the paper's."""
    arm = train_arm(data, learner, weight, folder)
    rule = PaperRepair(k=data.k, rule="paper", prior=data.prevalence)
    repair = rule.fit(arm.calibration, data.Y_train[data.calibration])
    chosen, raw = (
        evaluate(scores, data.Y_test, k=data.k, n_replicates=0).per_row("map")
        for scores in (repair.fitted_.transform(arm.test), arm.test)
    )
    draw = {"study": mean_with_interval, "paper": interval_of_draws, "other": interval_of_draws}
    ends = {name: draw[name](chosen - raw, seed=seed) for name, seed in SEEDS.items()}
    return {
        "chosen": repair.chosen_,
        "n_rows": int(raw.size),
        "difference": float((chosen - raw).mean()),
        "intervals": {name: [each.low, each.high] for name, each in ends.items()},
    }


def measure_dead(data: MulanData) -> dict[str, Any]:
    """How many labels are dead in a share of the training rows."""
    counts = count_dead(csr_matrix(data.Y_train), SHARES)
    return {"n_labels": data.n_labels, "n_rows": len(data.Y_train), "counts": counts}


def write_page(cells: Cells) -> str:
    """The page as Markdown."""
    return "\n".join(_lines(cells)) + "\n"


def _lines(cells: Cells) -> Iterator[str]:
    yield "# Conventions that the text leaves open"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments conventions --finished --page docs/paper/conventions.md` "
        "from `experiments/results/conventions.jsonl`."
    )
    yield from ("", "## Clipped isotonic values", "")
    maps = {key: cell for key, cell in cells.items() if key in PRINTED_MAPS}
    agree = [
        sum(abs(cell[name] - PRINTED_MAPS[key]) <= ROUNDING for key, cell in maps.items())
        for name in ("plain", "clipped")
    ]
    yield from paragraph(
        "Where dead labels keep their raw scores, the printed MAP@K follows if the values of "
        f"isotonic maps are clipped to [{CLIP:g}, 1 - {CLIP:g}]: then a raw score of exactly 1.0 "
        "lies above every calibrated label. Without the clip they tie, and the lower label index "
        f"wins. Printed digits are reached in {agree[0]} of {len(maps)} cells without the clip, in "
        f"{agree[1]} with it. The package does not clip: with its default, the prior, dead labels "
        "never compete at 1.0."
    )
    yield ""
    yield "| default LightGBM | dead labels | MAP@K, no clip | clipped | printed |"
    yield "|---|---|---|---|---|"
    for key, cell in maps.items():
        yield (
            f"| {key.replace('-lightgbm-', ', w = ')} | {cell['n_dead']} | {cell['plain']:.4f} | "
            f"{cell['clipped']:.4f} | {PRINTED_MAPS[key]:.3f} |"
        )
    yield from ("", "## How often labels are dead", "")
    yield from paragraph(
        "Mean number of labels without a positive in a random share of the training rows, over ten "
        "seeded splits; range in brackets; printed mean behind the stroke. Nothing is trained. "
        "The paper's draws are not published, so digits may differ."
    )
    yield ""
    yield f"| data set | labels | {' | '.join(f'{share:.0%}' for share in SHARES)} |"
    yield f"|---|---|{'---|' * len(SHARES)}"
    for name, printed in PRINTED_DEAD.items():
        if f"{name}-dead" in cells:
            yield _dead_row(name, cells[f"{name}-dead"], printed)
    yield from dead_product_lines(cells)

    intervals = {key: cell for key, cell in cells.items() if key.endswith("-interval")}
    if intervals:
        yield from ("", "## Draws of the bootstrap", "")
        yield from _interval_lines(intervals)


def _interval_lines(cells: Cells) -> Iterator[str]:
    """Ends of intervals by the study's draws and by the paper's, where the rule changes scores."""
    changed = {key: cell for key, cell in cells.items() if cell["chosen"] != "raw"}
    n_ends = 2 * len(changed)

    def compare(name: str) -> tuple[int, float, float]:
        ends = np.array([cell["intervals"][name] for cell in changed.values()])
        papers = np.array([cell["intervals"]["paper"] for cell in changed.values()])
        printed = np.abs(ends.round(DIGITS) - papers.round(DIGITS))
        same = int((printed < ROUNDING).sum())
        gap = np.abs(ends - papers).max(initial=0.0)
        return same, float(printed.max(initial=0.0)), float(gap)

    study, other = compare("study"), compare("other")
    excludes_zero = [
        {low > 0 or high < 0 for low, high in (cell["intervals"][name] for name in SEEDS)}
        for cell in changed.values()
    ]
    n_verdicts = sum(len(each) > 1 for each in excludes_zero)
    yield from paragraph(
        f"The paper draws {N_REPLICATES:,} times with `default_rng(42).integers` over the test "
        "rows with a positive; the cells on record have draws of our own (`experiments.bootstrap`)."
        " Below, the MAP@K of what the paper's rule chooses less that of raw, with 95% intervals, "
        f"for default LightGBM on {len(PRINTED_DEAD)} small sets. Of {len(cells)} arms the rule "
        f"keeps raw on {len(cells) - len(changed)}, whose differences are 0 in every draw. Of the "
        f"{n_ends} ends of the others, {study[0]} are the same at {DIGITS} digits by both; the "
        f"largest gap is {study[1]:.{DIGITS}f} as printed, {study[2]:.5f} unrounded. Another seed "
        f"of the paper's generator, 43, keeps {other[0]} of them, with a largest gap of "
        f"{other[1]:.{DIGITS}f} as printed and {other[2]:.5f} unrounded. Whether an interval "
        f"excludes 0 depends on the draws in {n_verdicts} of the {len(changed)} arms."
    )
    yield ""
    yield "| default LightGBM | rows | chosen | less raw | our draws | the paper's draws |"
    yield "|---|---|---|---|---|---|"
    for key, cell in changed.items():
        name, _, weight, _ = key.split("-")
        ends = (cell["intervals"][which] for which in ("study", "paper"))
        texts = [f"{low:+.{DIGITS}f} to {high:+.{DIGITS}f}" for low, high in ends]
        yield (
            f"| {name}, w = {weight} | {cell['n_rows']:,} | {cell['chosen']} | "
            f"{cell['difference']:+.{DIGITS}f} | {' | '.join(texts)} |"
        )


def _dead_row(name: str, cell: dict[str, Any], printed: Sequence[float]) -> str:
    texts = [
        f"{each['mean']:.1f} ({each['min']} to {each['max']}) / {mean:.1f}"
        for each, mean in zip(cell["counts"], printed, strict=True)
    ]
    return f"| {name} | {cell['n_labels']} | {' | '.join(texts)} |"
