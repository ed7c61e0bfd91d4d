"""Every finished cell of the study in two wide tables: the rungs, and what the scores look like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oddslip.studies.mulan_arms import LEARNERS, WEIGHTS
from oddslip.studies.mulan_doses import SHOWN
from oddslip.studies.mulan_paper import TABLE_2
from oddslip.studies.mulan_regularities import COLLAPSE, Cells, pairs
from oddslip.studies.mulan_selections import finished_choices

RUNGS = (
    "raw", "inversion", "what-if", "offset", "isotonic", "isotonic, identity",
    "isotonic, exclude", "pooled", "platt", "beta", "ceiling",
)  # fmt: skip
SCORES = {
    "auc": ".3f", "distinct": ".1f", "saturated_share": ".3%", "tied_rows": "d",
    "median_realized": ".2f", "n_identified": "d",
}  # fmt: skip
HEADS = {
    "auc": "AUC",
    "saturated_share": "saturated",
    "tied_rows": "tied rows",
    "median_realized": "realized",
    "n_identified": "identified",
}


def arms(
    cells: Cells, datasets: Iterable[str] = tuple(TABLE_2)
) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Data set, learner, weight and cell, of every finished one; of the 220 unless told."""
    for data in datasets:
        for learner in LEARNERS:
            for weight in WEIGHTS:
                cell = cells.get(f"{data}-{learner}-{weight}")
                if cell is not None:
                    yield data, learner, weight, cell


def described(cells: Cells) -> list[str]:
    """Data sets that have a cell of their own, whatever their names are made of.

    Examples
    --------
    >>> described({"a-mlp": {"n_labels": 9}, "a-mlp-mlp-1": {"map": {}, "auc": 0.8}})
    ['a-mlp']
    """
    return [key for key, cell in cells.items() if "n_labels" in cell]


def tell_finished(cells: Cells) -> list[str]:
    """How many cells are finished, and which are not."""
    there = {(data, learner, weight) for data, learner, weight, _ in arms(cells)}
    chosen = len(finished_choices(cells))
    lines = [
        f"Finished: {len(there)} of 220 cells (11 data sets, 5 learners, weights 1, √r, r, 10r), "
        f"and what the selection rules choose in {chosen} of 110 (weights 1 and r)."
    ]
    missing: dict[str, list[str]] = {}
    for data in TABLE_2:
        for learner in LEARNERS:
            left = [SHOWN[w] for w in WEIGHTS if (data, learner, w) not in there]
            if left:
                missing.setdefault(data, []).append(f"{learner} at {', '.join(left)}")
    lines += [f"- not yet: {data}: {'; '.join(left)}" for data, left in missing.items()]
    return [lines[0], *([""] if missing else []), *lines[1:], ""]


def format_collapses(cells: Cells) -> list[str]:
    """Shares of the unweighted MAP@K at w = r, raw and repaired, data sets against learners."""
    shares = {
        (data, learner): [w["map"][rung] / plain["map"]["raw"] for rung in ("raw", "isotonic")]
        for data, learner, plain, w in pairs(cells)
    }
    learners = [name for name in LEARNERS if any(learner == name for _, learner in shares)]
    lines = ["| data set | " + " | ".join(learners) + " |", "|---" * (len(learners) + 1) + "|"]
    for data in dict.fromkeys(data for data, _ in shares):
        shown = []
        for learner in learners:
            raw, repaired = shares.get((data, learner), (None, None))
            text = "-" if raw is None else f"{raw:.2f} → {repaired:.2f}"
            shown.append(f"**{text}**" if raw is not None and raw < COLLAPSE else text)
        lines.append(f"| {data} | " + " | ".join(shown) + " |")
    return lines


def write_grid(cells: Cells, protocol: str) -> str:
    """The page of all cells, as Markdown."""
    heads = [HEADS.get(name, name) for name in SCORES]
    return "\n".join(
        [
            "# MULAN, every cell",
            "",
            "Made beside the [comparison with the paper](mulan.md) by the same command, protocol",
            f"`{protocol}`. MAP@K of every rung on the test rows. The isotonic rungs differ in the",
            "dead-label policy: prior, identity, exclude.",
            "",
            "| data set | learner | w | " + " | ".join(RUNGS) + " |",
            "|---" * (len(RUNGS) + 3) + "|",
            *(
                _row(data, learner, weight, [_show(cell["map"].get(r), ".3f") for r in RUNGS])
                for data, learner, weight, cell in arms(cells)
            ),
            "",
            "Of the same cells: within-label AUC, distinct scores per label, share of cells stored",
            "as 1.0 in float32, rows whose top K is decided by ties of the stored scores, and the",
            "median of the realized over the intended shift with the number of labels it is over.",
            "",
            "| data set | learner | w | " + " | ".join(heads) + " |",
            "|---" * (len(SCORES) + 3) + "|",
            *(
                _row(data, learner, w, [_show(cell.get(n), form) for n, form in SCORES.items()])
                for data, learner, w, cell in arms(cells)
            ),
            "",
        ]
    )


def _row(data: str, learner: str, weight: str, shown: list[str]) -> str:
    return f"| {data} | {learner} | {SHOWN[weight]} | " + " | ".join(shown) + " |"


def _show(value: Any, form: str) -> str:
    return "-" if value is None else format(value, form)
