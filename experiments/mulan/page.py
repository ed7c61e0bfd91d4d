"""The pages that tell finished cells of the MULAN study, beside the paper."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.figures.doses import DoseRow, draw_doses, draw_magnitudes
from experiments.mulan.arms import LEARNERS
from experiments.mulan.cells import RULES
from experiments.mulan.doses import SHOWN, format_doses, magnitude_lines
from experiments.mulan.regularities import (
    COLLAPSE,
    Finding,
    compare_rules_told,
    find_regularities,
    find_selections,
    finished_choices,
    pairs,
)
from experiments.mulan.table import TABLE_2, Cells, compare_table_2, format_table_2
from experiments.store import RESULTS, WEIGHTS
from oddslip.errors import InvalidInput
from oddslip.io.files import atomic_write
from oddslip.reports.numbers import RegimePoint

XGBOOST = "xgboost"
PROTOCOL_RUNGS = ("raw", "isotonic", "inversion", "ceiling")  # told beside one another

Pair = tuple[Mapping[str, Any], Mapping[str, Any]]
GRID_RUNGS = (
    "raw",
    "inversion",
    "what-if",
    "label_free",
    "offset",
    "isotonic",
    "isotonic, identity",
    "isotonic, exclude",
    "pooled",
    "platt",
    "beta",
    "ceiling",
)
SCORES = {
    "auc": ".3f",
    "distinct": ".1f",
    "saturated_share": ".3%",
    "stored_share": ".3%",
    "tied_rows": "d",
    "median_realized": ".2f",
    "n_identified": "d",
}
HEADS = {
    "auc": "AUC",
    "saturated_share": "saturated",
    "stored_share": "stored as 1",
    "tied_rows": "tied rows",
    "median_realized": "realized",
    "n_identified": "identified",
}
SMALLEST_LOSS = 0.02  # below this, the share of the loss that a repair returns is mostly noise
MIN_LABELS = 3  # whose shift is identified, for a median to say something
DECIMALS = 6
SOURCE = (
    "Our cells of the MULAN study, protocol `paper`, at w = r: those that lost more than "
    f"{SMALLEST_LOSS} MAP@K and have at least {MIN_LABELS} labels with an identified shift."
)


def publish(
    cells: Cells,
    protocol: str,
    careful: Cells | None = None,
    *,
    results: Path = RESULTS,
    page: Path | None = None,
    figure: Path | None = None,
) -> None:
    """Write the page and, beside it, the page of all cells; draw both figures.

    ``careful`` are cells of the `clean` protocol, ``results`` the folder of both. Beside
    ``figure`` stands one whose name ends in ``-doses``, beside ``page`` one in ``-cells``.
    """
    if page is not None:
        texts = {
            page: write_page(cells, protocol, careful, results=results),
            _beside(page, "cells"): write_grid(cells, protocol),
        }
        for path, text in texts.items():
            with atomic_write(path) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
    if figure is not None:
        rows = dose_rows(cells)
        if not rows:
            raise InvalidInput(
                "a figure of doses must have a data set of the paper with the cells w = 1 and "
                "w = r of one learner, got none. Leave out --figure."
            )
        figures = {
            figure: draw_doses(rows),
            _beside(figure, "doses"): draw_magnitudes(magnitude_lines(cells), list(SHOWN.values())),
        }
        for path, drawing in figures.items():
            with atomic_write(path) as unfinished:
                drawing.savefig(unfinished)


def write_page(
    cells: Cells, protocol: str, careful: Cells | None = None, *, results: Path = RESULTS
) -> str:
    """The page as Markdown; with cells of the `clean` protocol, also what that changes."""
    file = (results / f"mulan-{protocol}.jsonl").as_posix()
    lines = [
        "# MULAN beside the paper",
        "",
        "Made by `python -m experiments mulan --finished --page docs/paper/mulan.md`, "
        f"protocol `{protocol}`,",
        f"from the cells in `{file}`. Each cell is a line with its configuration, seed,",
        "versions and the hashes of its inputs. [Every cell](mulan-cells.md) is on its own page.",
        "",
        *format_finished(cells),
        *_format_table_2(cells),
        *_format_section_4(cells),
        *format_doses(cells),
        *_format_selection(cells),
        *_format_left_out(cells),
        *format_protocols(cells, careful or {}),
    ]
    return "\n".join(lines)


def format_finished(cells: Cells) -> list[str]:
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
            remaining = [SHOWN[w] for w in WEIGHTS if (data, learner, w) not in there]
            if remaining:
                missing.setdefault(data, []).append(f"{learner} at {', '.join(remaining)}")
    lines += [f"- not yet: {data}: {'; '.join(remaining)}" for data, remaining in missing.items()]
    return [lines[0], *([""] if missing else []), *lines[1:], ""]


def _format_table_2(cells: Cells) -> list[str]:
    entries = compare_table_2(cells)
    same = sum(entry.agrees for entry in entries)
    printed = sum(len(row) for row in TABLE_2.values())
    wrong = [entry for entry in entries if not entry.agrees]
    return [
        "## Table 2",
        "",
        f"{same} of {len(entries)} entries equal the printed digits "
        f"({printed} entries in the paper). Exceptions are bold, the paper's digits in brackets.",
        "",
        format_table_2(cells),
        "",
        *(f"- {e.data}, {e.column}: ours {e.value:.5g}, paper {e.paper}" for e in wrong),
        *([""] if wrong else []),
    ]


def _format_section_4(cells: Cells) -> list[str]:
    return [
        "## Section 4",
        "",
        "![MAP@K of the unweighted, the weighted and the repaired model](mulan.png)",
        "",
        "Shaded: the weighted model keeps less than half of its unweighted MAP@K. Drawn by the",
        "same command with `--figure docs/paper/mulan.png`.",
        "",
        "Share of the unweighted MAP@K at w = r: raw → after per-label isotonic with the prior",
        "policy. Bold: collapsed, less than half.",
        "",
        *format_collapses(cells),
        "",
        "The paper's text gives no learner's parameters; its supplement gives all five. Those of",
        "both LightGBMs had been found before, by a search that ended where they gave the numbers",
        "printed of them, and the supplement has confirmed them. XGBoost, logistic regression and",
        "the MLP are the supplement's, and the libraries' own: XGBoost and the MLP to the bit,",
        "logistic regression to 1e-9 (`tests/learners/test_presets.py`). What can still differ:",
        "",
        "- Logistic regression stops short of its optimum, on enron and delicious after up to 270",
        "  steps that amplify the last bit of a sum: another order of summation moves a label's",
        "  probability by up to 0.04 on enron and more on delicious. There we sum over the words",
        "  that a row has, not over all cells: minutes instead of hours. The steps are",
        "  scikit-learn's. Margins of two labels tried agree to 1e-8 at w = 1; of two tried at",
        "  w = r, where labels are all but separable, one is off by 0.01 and one by 53 nat.",
        "- The supplement does not say what its second standardisation does with a feature that is",
        "  constant in the fitted rows alone. Ours leaves it as it is, like scikit-learn's",
        "  `StandardScaler`. Divided by what rounding leaves of its deviation, birds' MLP would",
        "  score 0.316 at w = 1 instead of 0.569.",
        "- Nor does it say whether the MLP has outputs for labels of a single class. Ours has.",
        "- XGBoost's bits do not depend on its threads: one and four agree on yeast, corel5k,",
        "  bibtex and delicious.",
        "- How near the repaired model and the shared map come to the *unweighted arm* on",
        "  delicious and Corel5k: the text does not say whether that arm is calibrated too. Both",
        "  readings stand below. The first was set beside the printed digits after both had been",
        "  computed, because it is near them; the sentence before speaks of the same calibrator.",
        "",
        "Every number of the section that is not in Table 2:",
        "",
        *_format_findings(find_regularities(cells)),
        "",
    ]


def format_collapses(cells: Cells) -> list[str]:
    """Shares of the unweighted MAP@K at w = r, raw and repaired, data sets against learners."""
    shares = {
        (data, learner): [w["map"][rung] / plain["map"]["raw"] for rung in ("raw", "isotonic")]
        for data, learner, plain, w in pairs(cells)
    }
    learners = [name for name in LEARNERS if any(learner == name for _, learner in shares)]
    lines = ["| data set | " + " | ".join(learners) + " |", "|---" * (len(learners) + 1) + "|"]
    for data in dict.fromkeys(data for data, _ in shares):
        texts = []
        for learner in learners:
            raw, repaired = shares.get((data, learner), (None, None))
            text = "-" if raw is None else f"{raw:.2f} → {repaired:.2f}"
            texts.append(f"**{text}**" if raw is not None and raw < COLLAPSE else text)
        lines.append(f"| {data} | " + " | ".join(texts) + " |")
    return lines


def _format_selection(cells: Cells) -> list[str]:
    rows = compare_rules_told(cells)
    return [
        "## The negative result and the selection rule",
        "",
        *_format_findings(find_selections(cells)),
        "",
        "The paper's rule, per-label isotonic without one (tau 0), and our default (auto), against",
        "raw on the test rows:",
        "",
        "| data sets | rule | over 0.01 below | interval below 0 | worst | mean gain | cells |",
        "|---" * 7 + "|",
        *("| " + " | ".join(line) + " |" for line in rows),
        "",
    ]


def _format_left_out(cells: Cells) -> list[str]:
    """What the same learners do on data sets that the paper does not use."""
    others = [data for data in described(cells) if data not in TABLE_2]
    if not others:
        return []
    rungs = ("raw", "what-if", "inversion", "isotonic", "platt", "ceiling")
    return [
        "## Left out by the paper",
        "",
        "The paper leaves out two of the large data sets. One of them, tmc2007 with 500 features,",
        "is here with the same protocol and learners; no count above includes it. Six subsets of",
        "the other, Corel16k, are in the [row-aware study](row-aware.md). MAP@K on the test rows:",
        "",
        "| data set | learner | w | " + " | ".join(rungs) + " | AUC |",
        "|---" * (len(rungs) + 4) + "|",
        *(
            _grid_row(
                data,
                learner,
                weight,
                [*(_show(cell["map"].get(r), ".3f") for r in rungs), _show(cell["auc"], ".3f")],
            )
            for data, learner, weight, cell in arms(cells, others)
        ),
        "",
    ]


def _format_findings(findings: list[Finding]) -> list[str]:
    return [
        "| | ours | paper | difference | from |",
        "|---|---|---|---|---|",
        *(
            f"| {f.what} | {f.ours} | {f.paper or '-'} | {f.difference} | {f.of} |"
            for f in findings
        ),
    ]


# Why the protocol matters to XGBoost most.
_WORDS_BY_XGBOOST = [
    "A word's two values, scaled by a file's own rows, are higher the rarer it is there.",
    "XGBoost splits at the upper value of the training file, and what lies below goes with",
    "the lower one: a word that is commoner in the test file is read as absent in all of",
    "its rows. LightGBM splits halfway between both values, which survives that",
    "(`tests/learners/backends/test_xgboost.py`). So XGBoost's cells under `paper` are of",
    "models that miss such words wherever features are words; and the paper's too, if it",
    "scales as this protocol does, which its printed numbers say and its text does not.",
    "",
]


def format_protocols(cells: Cells, careful: Cells) -> list[str]:
    """The section of the page, as lines of Markdown; empty without a common data set."""
    text = {learner: list(_both(cells, careful, learner)) for learner in LEARNERS}
    lines = [
        "## What a careful protocol changes",
        "",
        "`--protocol clean` reads all 19 bird labels (the paper's reader finds 15) and scales both",
        "files by the fitted rows, not each file by its own rows. MAP@K, `paper` → `clean`.",
        "",
    ]
    for learner, both in text.items():
        if both:
            lines += [
                f"### {learner}",
                "",
                "| data set | labels | w=1 raw | "
                + " | ".join(f"w=r {r}" for r in PROTOCOL_RUNGS)
                + " | loss |",
                "|---" * (len(PROTOCOL_RUNGS) + 4) + "|",
                *(_protocol_row(*item, cells, careful) for item in both),
                "",
                *_summary(both),
                *_not_compared(learner, both, cells),
                "",
            ]
        if both and learner == XGBOOST:
            lines += _WORDS_BY_XGBOOST
    return lines if any(text.values()) else []


def _both(cells: Cells, careful: Cells, learner: str) -> Iterator[tuple[str, Pair, Pair]]:
    """Data set, and a learner's two cells under each protocol, where all four are finished."""
    for data in described(cells):
        four = [
            cell
            for some in (cells, careful)
            for weight in ("1", "r")
            if data in some and (cell := some.get(f"{data}-{learner}-{weight}")) is not None
        ]
        if len(four) == 4:
            yield data, (four[0], four[1]), (four[2], four[3])


def _protocol_row(data: str, ours: Pair, clean: Pair, cells: Cells, careful: Cells) -> str:
    labels = [some[data]["n_labels"] for some in (cells, careful)]
    texts = [
        str(labels[0]) if labels[0] == labels[1] else f"{labels[0]} → {labels[1]}",
        f"{ours[0]['map']['raw']:.3f} → {clean[0]['map']['raw']:.3f}",
        *(f"{ours[1]['map'][r]:.3f} → {clean[1]['map'][r]:.3f}" for r in PROTOCOL_RUNGS),
        f"{_loss(ours):+.3f} → {_loss(clean):+.3f}",
    ]
    return f"| {data} | " + " | ".join(texts) + " |"


def _summary(both: list[tuple[str, Pair, Pair]]) -> Iterator[str]:
    changes = {
        f"{data}, w={weight} {rung}": clean[at]["map"][rung] - ours[at]["map"][rung]
        for data, ours, clean in both
        for at, weight in enumerate(("1", "r"))
        for rung in ("raw", "isotonic")
    }
    largest = max(changes, key=lambda name: abs(changes[name]))
    mean = sum(changes.values()) / len(changes)
    flipped = [data for data, ours, clean in both if _loss(ours) * _loss(clean) < 0]
    text = f"{changes[largest]:+.3f} ({largest}); mean {mean:+.3f}"
    yield f"- Largest change of raw or isotonic: {text}."
    text = ", ".join(flipped) or "no data set"
    yield f"- The weight's effect on raw changes its sign on {text}."
    sides = [[(data, pair[side]) for data, *pair in both] for side in (0, 1)]
    text = " → ".join(
        ", ".join(
            data
            for data, (plain, weighted) in pairs_of
            if weighted["map"]["raw"] < COLLAPSE * plain["map"]["raw"]
        )
        or "none"
        for pairs_of in sides
    )
    yield f"- Collapsed at w = r, less than half of the unweighted MAP@K: {text}."


def _not_compared(learner: str, both: list[tuple[str, Pair, Pair]], cells: Cells) -> Iterator[str]:
    """Sets that the paper's protocol has of a learner and `clean` has not, and what they are."""
    compared = {data for data, *_ in both}
    absent = {
        data: (plain["map"]["raw"], weighted["map"]["raw"])
        for data, each, plain, weighted in pairs(cells)
        if each == learner and data not in compared
    }
    if absent:
        collapsed = [data for data, (plain, raw) in absent.items() if raw < COLLAPSE * plain]
        text = f"- Not trained under `clean`: {', '.join(absent)}."
        if collapsed:
            text += f" Under `paper`, {', '.join(collapsed)} collapsed."
        yield text


def _loss(pair: Pair) -> float:
    return float(pair[0]["map"]["raw"] - pair[1]["map"]["raw"])


def dose_rows(cells: Cells) -> list[DoseRow]:
    """What the paper's figure of section 4 shows, learner by learner."""
    rows = [
        DoseRow(
            learner=learner,
            data=data,
            n_labels=cells[data]["n_labels"],
            unweighted=plain["map"]["raw"],
            weighted=weighted["map"]["raw"],
            repaired=weighted["map"]["isotonic"],
            popularity=cells[data]["popularity"],
        )
        for data, learner, plain, weighted in pairs(cells)
    ]
    return sorted(rows, key=lambda row: list(LEARNERS).index(row.learner))


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.stem}-{what}{path.suffix}")


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
            "| data set | learner | w | " + " | ".join(GRID_RUNGS) + " |",
            "|---" * (len(GRID_RUNGS) + 3) + "|",
            *(
                _grid_row(
                    data, learner, weight, [_show(cell["map"].get(r), ".3f") for r in GRID_RUNGS]
                )
                for data, learner, weight, cell in arms(cells)
            ),
            "",
            "Of the same cells: within-label AUC, distinct scores per label, share of cells of at",
            "least 1 - 1e-9 (the paper's saturation) and of those stored as 1.0 in float32, rows",
            "whose top K is decided by ties of the stored scores, and the median of the realized",
            "over the intended shift with the number of labels it is over.",
            "",
            "| data set | learner | w | " + " | ".join(heads) + " |",
            "|---" * (len(SCORES) + 3) + "|",
            *(
                _grid_row(
                    data, learner, w, [_show(cell.get(n), form) for n, form in SCORES.items()]
                )
                for data, learner, w, cell in arms(cells)
            ),
            "",
            *_format_other_metrics(cells),
            *_format_choices(cells),
        ]
    )


def _format_other_metrics(cells: Cells) -> Iterator[str]:
    """Recall and nDCG at K, of the rungs that matter most."""
    rungs = ("raw", "what-if", "inversion", "isotonic", "ceiling")
    yield "Recall and nDCG at K, where they were measured:"
    yield ""
    heads = [f"{metric} {rung}" for metric in ("recall", "nDCG") for rung in rungs]
    yield "| data set | learner | w | " + " | ".join(heads) + " |"
    yield "|---" * (len(heads) + 3) + "|"
    for data, learner, weight, cell in arms(cells):
        if "recall" in cell:
            texts = [_show(cell[m].get(rung), ".3f") for m in ("recall", "ndcg") for rung in rungs]
            yield _grid_row(data, learner, weight, texts)
    yield ""


def _format_choices(cells: Cells) -> Iterator[str]:
    """What both rules choose, with the out-of-fold values that decided."""
    yield "What the rules choose, by out-of-fold MAP@K of the calibration rows, and MAP@K on the"
    yield "test rows of what they chose and of raw scores."
    yield ""
    heads = [
        f"{rule}: {what}"
        for rule in RULES
        for what in ("chosen", "out of fold", "raw out of fold", "test")
    ]
    yield "| data set | learner | w | " + " | ".join(heads) + " | raw test |"
    yield "|---" * (len(heads) + 4) + "|"
    for (data, learner, weight), choices in finished_choices(cells).items():
        texts = []
        for rule in RULES:
            choice = choices[rule]
            values = choice["out_of_fold"]
            texts += [choice["chosen"], f"{values[choice['chosen']]:.4f}", f"{values['raw']:.4f}"]
            texts.append(f"{choice['map']:.3f}")
        raw = choices["paper"]["map"] - choices["paper"]["difference"]
        yield _grid_row(data, learner, weight, [*texts, f"{raw:.3f}"])
    yield ""


def _grid_row(data: str, learner: str, weight: str, texts: list[str]) -> str:
    return f"| {data} | {learner} | {SHOWN[weight]} | " + " | ".join(texts) + " |"


def _show(value: Any, form: str) -> str:
    return "-" if value is None else format(value, form)


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


def regime_points(cells: Cells) -> list[RegimePoint]:
    """One point per weighted model that clearly lost, in the order of the paper's Table 2.

    Parameters
    ----------
    cells : mapping
        Finished cells by key, as `reproduce_mulan` or `read_cells` give them. A point needs the
        cells at w = 1 and w = r.

    Examples
    --------
    >>> told = {"auc": 0.8, "saturated_share": 0.1, "n_identified": 5, "median_realized": 0.7}
    >>> cells = {
    ...     "yeast-mlp-1": {"map": {"raw": 0.6}},
    ...     "yeast-mlp-r": {"map": {"raw": 0.2, "inversion": 0.3}, **told},
    ... }
    >>> point = regime_points(cells)[0]
    >>> point.name, point.ratio, point.returned
    ('yeast, mlp', 0.7, 0.25)
    """
    points = []
    for data, learner, plain, weighted in pairs(cells):
        rungs, ratio = weighted["map"], weighted.get("median_realized")
        loss = plain["map"]["raw"] - rungs["raw"]
        if loss <= SMALLEST_LOSS or ratio is None or weighted["n_identified"] < MIN_LABELS:
            continue
        points.append(
            RegimePoint(
                name=f"{data}, {learner}",
                series=learner,
                ratio=round(ratio, DECIMALS),
                returned=round((rungs["inversion"] - rungs["raw"]) / loss, DECIMALS),
                saturated_share=round(weighted["stored_share"], DECIMALS),
            )
        )
    return points


def format_regimes(cells: Cells) -> dict[str, Any]:
    """The points and where they come from, in built-in types."""
    points = [asdict(point) for point in regime_points(cells)]
    for point in points:
        point.pop("here")  # none of these is the model a report is about
    return {"source": SOURCE, "points": points}


def write_regimes(cells: Cells, path: Path) -> None:
    """Write the points as JSON, whole or not at all."""
    text = json.dumps(format_regimes(cells), indent=1, allow_nan=False)
    with atomic_write(path) as unfinished:
        unfinished.write_text(text + "\n", encoding="utf-8")
