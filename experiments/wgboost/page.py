"""The page of the WGBoost study, from finished cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from experiments.text import paragraph
from experiments.wgboost.learner import Settings
from experiments.wgboost.panels import TAFENG_STEP
from experiments.wgboost.study import DATASETS, RUNGS, Cells

# MAP@7 of the paper's Table S1, Santander, column WGB.
PRINTED = {
    "raw": 0.776,
    "isotonic, identity": 0.434,
    "isotonic": 0.828,
    "isotonic, exclude": 0.830,
    "offset": 0.689,
    "platt": 0.775,
    "beta": 0.775,
    "pooled": 0.776,
    "ceiling": 0.831,
}
NEARLY_EVERY = 0.9  # share of rows


def value(cell: dict[str, Any], rung: str) -> float:
    """MAP@K of a rung."""
    return float(cell["rungs"][rung]["value"])


def _has_dead_everywhere(cell: dict[str, Any]) -> bool:
    return cell["dead"] is not None and cell["dead"]["rows_share"] >= NEARLY_EVERY


CLAIMS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "isotonic with the prior beats raw": lambda c: value(c, "isotonic") > value(c, "raw"),
    "raw beats isotonic with identity": lambda c: value(c, "raw") > value(c, "isotonic, identity"),
    "the offset is below raw": lambda c: value(c, "offset") < value(c, "raw"),
    f"under identity, dead labels are in the top K of at least {NEARLY_EVERY:.0%} of rows": (
        _has_dead_everywhere
    ),
    "no score is 0 or 1": lambda c: c["lowest_score"] > 0 and c["highest_score"] < 1,
}


COMPARED = dict(zip(CLAIMS, ("isotonic", "isotonic, identity", "offset"), strict=False))


def write_page(cells: Cells) -> str:
    """The page as Markdown."""
    return "\n".join([*_introduce(cells), *_ladder(cells), *_dead(cells), *_claims(cells)]) + "\n"


def _introduce(cells: Cells) -> Iterator[str]:
    settings = Settings()
    yield "# WGBoost"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments wgboost --finished --page docs/paper/wgboost.md` from the "
        "cells in `experiments/results/wgboost.jsonl`; the same command without `--finished` "
        f"computes what is missing. {len(cells)} of {len(DATASETS)} cells are finished."
    )
    yield ""
    yield from paragraph(
        "The third model of the paper's Table S1 is Wasserstein gradient boosting (arXiv "
        "2405.09536). The paper gives none of its settings, and its data are not public. So this "
        "is the method, built from its formulas, with the settings of its public classification "
        "experiment but fewer rounds: what can be compared is the shape of the ladder, not the "
        "digits."
    )
    yield ""
    yield from paragraph(
        f"{settings.n_particles} particles, kernel width {settings.bandwidth:g}, prior deviation "
        f"{settings.prior_deviation:g}, learning rate {settings.learning_rate:g}, "
        f"{settings.n_rounds} rounds of one tree of depth {settings.max_depth} with an output per "
        "particle, squared error. No label is weighted. MULAN sets: protocol `clean`. Santander "
        "sample and Ta-Feng: 30% of the test rows calibrate, the others are evaluated. Of "
        f"Ta-Feng's 1,000 products, every {TAFENG_STEP}th is a label."
    )
    yield ""
    columns = ("labels", "features", "training rows", "calibration rows", "evaluated rows", "CPU s")
    yield f"| data set | {' | '.join(columns)} |"
    yield "|---" + "|---:" * len(columns) + "|"
    for name, cell in cells.items():
        train, calibration, _ = cell["n_rows"]
        counts = (cell["n_labels"], cell["n_features"], train, calibration, cell["n_evaluated"])
        seconds = sum(each["cpu_seconds"] for each in cell["stages"].values())
        yield f"| {name} | {' | '.join(f'{each:,}' for each in counts)} | {seconds:.0f} |"
    yield ""


def _ladder(cells: Cells) -> Iterator[str]:
    yield "## The ladder"
    yield ""
    yield "MAP@K of the evaluated rows, with 95% intervals."
    yield ""
    yield f"| rung | {' | '.join(cells)} | the paper (Santander) |"
    yield "|---" + "|---:" * (len(cells) + 1) + "|"
    for rung, name in RUNGS.items():
        estimates = (cell["rungs"][rung] for cell in cells.values())
        texts = [
            f"{each['value']:.3f} [{each['low']:.3f}, {each['high']:.3f}]" for each in estimates
        ]
        yield f"| {' | '.join([name, *texts])} | {PRINTED[rung]:.3f} |"
    aucs = " | ".join(f"{cell['auc']:.3f}" for cell in cells.values())
    yield f"| mean within-label AUC | {aucs} | 0.920 |"
    yield ""


def _dead(cells: Cells) -> Iterator[str]:
    yield "## Dead labels that keep their raw score"
    yield ""
    yield from paragraph(
        "A row's posterior rests on one observation and a prior. Its mean after one negative "
        "label is 0.0785 for a prior deviation of 10, whatever the prevalence: a floor that rare "
        "labels share. Calibration takes living labels below it; a dead label stays there. In the "
        "paper the three dead labels have a mean raw score of 0.120, the highest living mean is "
        "0.011, and all three are in the top 7 of every row."
    )
    yield ""
    yield (
        "| data set | dead labels | their mean raw score | highest calibrated mean of a living "
        "label | rows with a dead label in the top K | dead labels in the top K, mean |"
    )
    yield "|---|---:|---:|---:|---:|---:|"
    for name, cell in cells.items():
        dead = cell["dead"]
        if dead is None:
            yield f"| {name} | 0 | -- | -- | -- | -- |"
            continue
        living = dead["highest_living_mean"]
        texts = [f"{dead['n']}", f"{dead['mean_raw']:.3f}"]
        texts.append("--" if living is None else f"{living:.3f}")
        texts += [f"{dead['rows_share']:.1%}", f"{dead['mean_shown']:.2f}"]
        yield f"| {name} | {' | '.join(texts)} |"
    yield ""


def _doubt(cell: dict[str, Any], rung: str | None) -> str:
    """What to add where the paired interval of a rung less raw contains 0."""
    if rung is None:
        return ""
    gap = cell["rungs"][rung]["minus_raw"]
    return ", unsure" if gap["low"] <= 0 <= gap["high"] else ""


def _claims(cells: Cells) -> Iterator[str]:
    yield "## Does the paper's shape hold?"
    yield ""
    yield f"| claim | {' | '.join(cells)} |"
    yield "|---" * (len(cells) + 1) + "|"
    for claim, holds in CLAIMS.items():
        texts = [
            ("holds" if holds(cell) else "**does not hold**") + _doubt(cell, COMPARED.get(claim))
            for cell in cells.values()
        ]
        yield f"| {' | '.join([claim, *texts])} |"
    yield ""
    n_held = sum(holds(cell) for cell in cells.values() for holds in CLAIMS.values())
    yield from paragraph(
        f"{n_held} of {len(cells) * len(CLAIMS)} hold; unsure are those whose paired 95% interval "
        "contains 0. What a per-label map can return depends on "
        "the calibration positives: where labels have a handful of them, isotonic regression "
        "overfits and may stay below raw scores, whichever the learner."
    )
