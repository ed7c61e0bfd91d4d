"""`reproduce_decisions`: does the guarantee of a decision hold, on drawn and on real rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from experiments.row_aware.panels import Panel, list_panels
from experiments.store import RESULTS, CellStore
from experiments.text import paragraph
from oddslip import DEFAULT_SEED, Decision, check
from oddslip.calibrators import Isotonic
from oddslip.core.types import Floats, Ints
from oddslip.io.progress import progress_bar
from oddslip.selection.repair import Repair

DATASETS = ("emotions", "yeast", "scene", "medical", "enron", "tmc2007-500", "birds")
ALPHAS = (0.05, 0.1, 0.2)
SIZES = (200, 5000)
GOALS = (("common_threshold", "missed"), ("row", "missed"), ("common_threshold", "wrong"))
ARM = "lightgbm-r"
N_DRAWS = 500
N_SPLITS = 100
N_LABELS = 6
N_NEW = 1000  # rows on which the risk of a draw is measured
MEASURES = 1  # raised when what a cell measures changes

Cells = dict[str, dict[str, Any]]


def reproduce_decisions(
    *,
    datasets: Sequence[str] = DATASETS,
    data: Any = None,
    results: Any = RESULTS,
    work: Any = ".work",
    finished: bool = False,
) -> Cells:
    """Measure the risk that guarantees reach; returns all finished cells by key."""
    store = CellStore(results, "decisions")
    command = "python -m experiments decisions"
    if not finished:
        with progress_bar("cells", len(datasets) + len(SIZES)) as advance:
            for n_rows in SIZES:
                about = {"n_rows": n_rows, "n_draws": N_DRAWS, "measures": MEASURES}
                run = partial(measure_draws, n_rows, N_DRAWS)
                store.find(f"simulation-{n_rows}", about, run, command=command)
                advance(1)
            for dataset in datasets:
                for panel in list_panels(dataset, data, Path(work)):
                    if panel.key == f"{dataset}-{ARM}":
                        about = panel.configuration | {"measures": MEASURES, "splits": N_SPLITS}
                        store.find(panel.key, about, partial(measure, panel), command=command)
                advance(1)
    return store.require(store.values())


def draw_rows(rng: np.random.Generator, n_rows: int, drift: float = 0.0) -> tuple[Floats, Ints]:
    """Scores of a weighted model and true labels; drift makes labels likelier than scores say."""
    margins = np.linspace(-2.5, 0.0, N_LABELS) + rng.normal(0, 1.5, (n_rows, N_LABELS))
    labels = rng.random(margins.shape) < expit(margins + drift)
    scores = expit(margins - drift + np.linspace(3.0, 0.5, N_LABELS))
    return scores, labels.astype(np.int64)


def simulate(
    n_rows: int, n_draws: int, rule: str, goal: str, alpha: float, drift: float = 0.0
) -> Floats:
    """Risk of new rows in each draw of the rows that the guarantee is fitted on."""
    rng = np.random.default_rng(DEFAULT_SEED)
    repair = Isotonic().fit(*draw_rows(rng, 2000), threads=1)
    risks = np.empty(n_draws)
    for draw in range(n_draws):
        decision = Decision(repair, rule, goal=goal, target=alpha)
        decision.fit(*draw_rows(rng, n_rows), threads=1)
        reached = decision.fitted_.evaluate(*draw_rows(rng, N_NEW, drift), threads=1)
        risks[draw] = reached[f"{goal}_share"]
    return risks


def measure_draws(n_rows: int, n_draws: int) -> dict[str, Any]:
    """Mean risks of the simulation, with and without drift, and whether `check` notices it."""
    values = {
        f"{rule}-{goal}-{alpha:g}": summarise(simulate(n_rows, n_draws, rule, goal, alpha))
        for rule, goal in GOALS
        for alpha in ALPHAS
    }
    drifted = simulate(n_rows, n_draws // 5, *GOALS[0], ALPHAS[1], drift=1.0)
    rng = np.random.default_rng(DEFAULT_SEED)
    repair = Isotonic().fit(*draw_rows(rng, 2000), threads=1)
    flags = [
        [not check(repair, draw_rows(rng, N_NEW, drift)[0], k=3).passed for _ in range(20)]
        for drift in (0.0, 1.0)
    ]
    noticed = {"quiet": float(np.mean(flags[0])), "drift": float(np.mean(flags[1]))}
    return {"risks": values, "drift": summarise(drifted), "noticed": noticed}


def summarise(risks: Floats) -> dict[str, float]:
    """Mean risk and its standard error over draws or splits."""
    return {
        "risk": float(risks.mean()),
        "standard_error": float(risks.std(ddof=1) / np.sqrt(risks.size)),
        "largest": float(risks.max()),
    }


def measure(panel: Panel) -> dict[str, Any]:
    """Mean risks over random halves of the test rows: one for the guarantee, one to judge it."""
    scored = panel.load()
    repair = Repair(k=scored.k, prior=scored.prior, weights=scored.weights)
    fitted = repair.fit(scored.calibration, scored.truth, threads=1).fitted_
    rng = np.random.default_rng(DEFAULT_SEED)
    n = len(scored.test_truth)
    halves = [np.array_split(rng.permutation(n), 2) for _ in range(N_SPLITS)]
    risks: dict[str, Any] = {}
    for rule, goal in GOALS:
        for alpha in ALPHAS:
            reached = np.empty((N_SPLITS, 2))
            for split, (mine, new) in enumerate(halves):
                decision = Decision(fitted, rule, goal=goal, target=alpha)
                decision.fit(scored.test[mine], scored.test_truth[mine], threads=1)
                judged = decision.fitted_.evaluate(
                    scored.test[new], scored.test_truth[new], threads=1
                )
                reached[split] = judged[f"{goal}_share"], judged["mean_length"]
            risks[f"{rule}-{goal}-{alpha:g}"] = summarise(reached[:, 0]) | {
                "mean_length": float(reached[:, 1].mean())
            }
    return {"n_rows": n, "n_labels": int(scored.test_truth.shape[1]), "risks": risks}


def write_page(cells: Cells) -> str:
    """The page as Markdown."""
    return "\n".join(_lines(cells)) + "\n"


def _lines(cells: Cells) -> Iterator[str]:
    drawn = {key: cell for key, cell in cells.items() if key.startswith("simulation-")}
    real = {key: cell for key, cell in cells.items() if key not in drawn}
    yield "# Does the guarantee hold?"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments decisions --finished --page docs/paper/decisions.md` from "
        "`experiments/results/decisions.jsonl`. `Decision` bounds the expected share of missed "
        "labels, or of wrong slots, by alpha ([How many to show?](../how-many.md)). Each number is "
        "the mean risk of new rows, with its standard error; it should be at most alpha."
    )
    yield ""
    yield from paragraph(
        f"**Drawn rows.** {N_DRAWS} draws of the rows of the fit; the risk of each is measured on "
        f"{N_NEW:,} new rows. The share of missed labels should be near alpha; with one threshold "
        "it stays a little below, because the repair ties many cells and a threshold shows all of "
        "a tie or none. That of wrong slots may stay far below: the loss that is controlled is the "
        "largest share of wrong slots among the first ones, so that it never falls as a list grows."
    )
    yield ""
    yield from _table("rows of the fit", {key.split("-")[1]: cell for key, cell in drawn.items()})
    yield ""
    for key, cell in drawn.items():
        noticed, n_rows = cell["noticed"], key.split("-")[1]
        yield from paragraph(
            f"With drift (labels of new rows likelier, and their scores lower), {n_rows} rows and "
            f"alpha {ALPHAS[1]}: the risk is {cell['drift']['risk']:.3f}. The guarantee is for "
            "exchangeable rows, and these are not. `oddslip.check` fails on "
            f"{noticed['drift']:.0%} of such days, and on {noticed['quiet']:.0%} of quiet ones."
        )
        yield ""
    yield from paragraph(
        f"**Real rows.** The arm `{ARM}` of the [MULAN study](mulan.md). `Repair` is fitted on the "
        f"calibration rows; {N_SPLITS} times the test rows are split in random halves, one to fit "
        "the guarantee and one to judge it. Splits share rows, so the standard error is too small."
    )
    yield ""
    yield from _table("data set", {key.removesuffix(f"-{ARM}"): each for key, each in real.items()})


def _table(what: str, cells: Cells) -> Iterator[str]:
    yield f"| {what} | lists by | loss | " + " | ".join(f"alpha {a:g}" for a in ALPHAS) + " |"
    yield "|---|---|---" + "|---" * len(ALPHAS) + "|"
    for name, cell in cells.items():
        for rule, goal in GOALS:
            risks = [cell["risks"][f"{rule}-{goal}-{alpha:g}"] for alpha in ALPHAS]
            numbers = " | ".join(f"{r['risk']:.4f} ± {r['standard_error']:.4f}" for r in risks)
            yield f"| {name} | {rule.replace('_', ' ')} | {goal} | {numbers} |"
