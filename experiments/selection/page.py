"""The page of the selection study, from its finished cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

from experiments.mulan.arms import LEARNERS
from experiments.mulan.study import DATASETS
from experiments.selection.cells import CHOOSING, CONTENDERS, FIXED, N_SEEDS, TAUS, WIDE_TAUS
from experiments.selection.study import SWEEP, WEIGHTS, Cells, is_tuned
from experiments.store import RESULTS
from oddslip.selection.rules import MANY_ROWS

HARM = 0.01  # below raw by more than this counts as harm, as in the paper's section 4
Z = 1.96  # standard errors of a 95% interval
TOLD = {
    "isotonic": "isotonic, dead labels at their prior",
    "Platt": "Platt",
    "hierarchical": "hierarchical",
    "paper": "the paper's rule, of equals the simpler",
    "auto-0.2": "the earlier `auto` (`auto-0.2`)",
    "auto": "`auto`",
    TAUS.name: "`auto` with tau 20, 50, 100 besides",
}


class Summary(NamedTuple):
    """One contender over some cells: mean gain over raw with an interval, harmed cells, worst."""

    n_cells: int
    mean: float
    low: float
    high: float
    harmed: int
    worst: float


def summarise(cells: Cells, contender: str, *, against: str = "raw") -> Summary:
    """Mean over cells of a contender's difference to raw, or to `auto`.

    Rows are what is sampled. Cells of one data set share their test rows, so their errors are
    taken as fully dependent, those of different data sets as independent.

    Examples
    --------
    >>> paired = {"difference": 0.02, "standard_error": 0.01}
    >>> cells = {"flags-mlp-1": {"contenders": {"auto": paired}}}
    >>> summarise(cells, "auto").low.__round__(4)
    0.0004
    """
    gains: list[float] = []
    by_set: dict[str, list[float]] = {}
    for key, cell in cells.items():
        contest = cell["contenders"][contender]
        contest = contest if against == "raw" else contest["minus_auto"]
        gains.append(contest["difference"])
        by_set.setdefault(key.split("-")[0], []).append(contest["standard_error"])
    mean = float(np.mean(gains))
    error = float(np.sqrt(sum(sum(errors) ** 2 for errors in by_set.values())) / len(gains))
    harmed = sum(gain < -HARM for gain in gains)
    return Summary(len(gains), mean, mean - Z * error, mean + Z * error, harmed, min(gains))


def split_cells(cells: Cells) -> dict[str, Cells]:
    """Cells that constants were set on, and the others."""
    return {
        "the others": {k: v for k, v in cells.items() if not (is_tuned(k) or _is_sweep(k))},
        "tuning sets": {k: v for k, v in cells.items() if is_tuned(k) and not _is_sweep(k)},
    }


def write_page(cells: Cells, *, results: Path = RESULTS) -> str:
    """The page as Markdown."""
    swept = {key.removesuffix(SWEEP): cell for key, cell in cells.items() if _is_sweep(key)}
    cells = {key: cell for key, cell in cells.items() if not _is_sweep(key)}
    lines = [
        "# Which rule chooses best",
        "",
        "Made by `python -m experiments selection --finished --page",
        "docs/paper/selection-study.md` from the",
        f"cells in `{(results / 'selection.jsonl').as_posix()}`.",
        "Each is a line with every candidate's out-of-fold gain over raw and its standard",
        "error, its gain on the test rows, what every rule chose",
        "and why, its configuration, versions, and the hashes of its inputs.",
        "",
        f"{len(cells)} cells: MULAN data sets by learner and weight (1 and r), and Ta-Feng arms.",
        "Rules choose on the calibration rows; MAP@K of the test rows is told, less that of the",
        "raw scores. No constant of a rule was set on other cells than those of emotions, birds,",
        "medical, enron, corel5k and the MLP of Ta-Feng. The others are not unseen: they were",
        "looked at under every earlier version of `auto`, three times while this one was made, and",
        "again when cells were measured with other presets; it was not changed after that.",
        "",
        *_format_missing(cells),
        *_format_rechosen(cells),
    ]
    for group, some in split_cells(cells).items():
        if some:
            lines += [*_format_group(group, some), ""]
    lines += [*_format_wider_taus(cells), *_format_stability(swept), *_format_cells(cells)]
    return "\n".join(lines).rstrip() + "\n"


def _format_missing(cells: Cells) -> list[str]:
    parts = []
    for name in DATASETS:
        missing = []
        for learner in LEARNERS:
            lacking = [each for each in WEIGHTS if f"{name}-{learner}-{each}" not in cells]
            at = "" if len(lacking) == len(WEIGHTS) else f" at {' and '.join(lacking)}"
            missing += [f"{learner}{at}"] * bool(lacking)
        whole = missing == list(LEARNERS)
        parts += [f"{name}, {'all' if whole else ', '.join(missing)}"] * bool(missing)
    if not parts:
        return []
    text = "; ".join(parts)
    text = f"Not measured, or not with the presets of today: {text}."
    return [*wrap(text, 95, break_on_hyphens=False), ""]


def _format_rechosen(cells: Cells) -> list[str]:
    n_rechosen = sum(cell.get("rechosen", False) for cell in cells.values())
    if not n_rechosen:
        return []
    text = (
        f"{n_rechosen} cells (`rechosen`) were not measured again when `auto` began to lean to "
        "hierarchical: what it takes there follows from the out-of-fold gains and errors they "
        "hold. Where the error of a difference to `auto` is not known, the sum of two errors "
        "stands in its place, which is never less."
    )
    return [*wrap(text, 95), ""]


def _format_group(group: str, cells: Cells) -> list[str]:
    sets = list(dict.fromkeys(key.split("-")[0] for key in cells))
    lines = [
        f"## {group[0].upper()}{group[1:]}",
        "",
        f"{len(cells)} cells of {', '.join(sets)}. An interval is over test rows; cells of one "
        "data set are taken as fully dependent.",
        "",
        "| | mean gain over raw | 95% interval | cells below -0.01 | worst cell | "
        "less `auto` (interval) |",
        "|---|---|---|---|---|---|",
    ]
    for name in CONTENDERS:
        summary, gap = summarise(cells, name), summarise(cells, name, against="auto")
        beside = "" if name == "auto" else f"{gap.mean:+.4f} ({gap.low:+.4f} to {gap.high:+.4f})"
        lines.append(
            f"| {TOLD[name]} | {summary.mean:+.4f} | {summary.low:+.4f} to {summary.high:+.4f} | "
            f"{summary.harmed} | {summary.worst:+.4f} | {beside} |"
        )
    best, gain = best_candidate(cells)
    oracle = float(np.mean([max(_tested(cell)) for cell in cells.values()]))
    return [
        *lines,
        "",
        f"In hindsight the best candidate to take everywhere is {best}: {gain:+.4f}. The best of "
        f"each cell, which no rule can know: {oracle:+.4f}. {_format_widest(cells, best)}".rstrip(),
    ]


def _format_widest(cells: Cells, best: str) -> str:
    """What one cell makes of the comparison of `auto` with the best candidate."""
    if len(cells) < 2:
        return ""
    chosen = {key: cell["contenders"]["auto"]["difference"] for key, cell in cells.items()}
    fixed = {key: cell["candidates"][best]["test"] for key, cell in cells.items()}
    widest = max(cells, key=lambda key: abs(fixed[key] - chosen[key]))
    texts = cells[widest]["candidates"][best]
    means = [
        np.mean([gain for key, gain in gains_by_key.items() if key != widest])
        for gains_by_key in (fixed, chosen)
    ]
    return (
        f"They are furthest apart in {widest}, where it gains {fixed[widest]:+.4f} on the test "
        f"rows, and {texts['out_of_fold']:+.4f} (standard error {texts['standard_error']:.4f}) "
        f"out of fold on the calibration rows, all that a rule can see; `auto` has "
        f"{chosen[widest]:+.4f} there. Without that cell: {means[0]:+.4f}, and `auto` "
        f"{means[1]:+.4f}."
    )


def _format_wider_taus(cells: Cells) -> list[str]:
    """What the wider grid of tau, which the paper leaves open, changes."""
    contenders = [cell["contenders"] for cell in cells.values()]
    same = sum(each["auto"]["chosen"] == each[TAUS.name]["chosen"] for each in contenders)
    gains = {
        tau: np.mean([cell["candidates"][f"isotonic-{tau}"]["test"] for cell in cells.values()])
        for tau in WIDE_TAUS
    }
    text = (
        f"The paper leaves larger taus open. With {', '.join(map(str, WIDE_TAUS))} besides, `auto` "
        f"chooses the same in {same} of {len(cells)} cells; taken everywhere, isotonic maps with "
        f"these taus gain {', '.join(f'{gain:+.4f} ({tau})' for tau, gain in gains.items())} on "
        "average."
    )
    return ["## Larger taus", "", *wrap(text, 95, break_on_hyphens=False), ""]


def _tested(cell: dict[str, Any]) -> list[float]:
    return [each["test"] for each in cell["candidates"].values()]


def best_candidate(cells: Cells) -> tuple[str, float]:
    """The candidate with the best mean gain on test rows, of those that every cell has."""
    shared = set.intersection(*(set(cell["candidates"]) for cell in cells.values()))
    means = {
        name: float(np.mean([cell["candidates"][name]["test"] for cell in cells.values()]))
        for name in sorted(shared)
    }
    best = max(means, key=lambda name: means[name])
    return best, means[best]


def _is_sweep(key: str) -> bool:
    return key.endswith(SWEEP)


def _format_stability(swept: Cells) -> list[str]:
    small = {key: cell for key, cell in swept.items() if key != "synthetic"}
    lines = _format_sweep("Other folds, other choices?", small)
    if "synthetic" in swept:
        title = f"The same with {MANY_ROWS:,} rows, from where on folds are drawn once"
        lines += _format_sweep(title, {"synthetic": swept["synthetic"]})
    return lines


def _format_sweep(title: str, swept: Cells) -> list[str]:
    if not swept:
        return []
    lines = [
        f"## {title}",
        "",
        f"{N_SEEDS} seeds of the folds in each of {len(swept)} cells of "
        f"{', '.join(dict.fromkeys(key.split('-')[0] for key in swept))}. A choice changes if it "
        "is not the cell's most frequent one. Spread: standard deviation over seeds of the test "
        "gain.",
        "",
        "| | cells that never change | choices that change | mean gain | mean spread | "
        "largest spread |",
        "|---|---|---|---|---|---|",
    ]
    for name in next(iter(swept.values())):
        sweeps = [cell[name] for cell in swept.values()]
        still = sum(len(sweep["chosen"]) == 1 for sweep in sweeps)
        changed = [1 - max(s["chosen"].values()) / len(s["test"]) for s in sweeps]
        spreads = [float(np.std(sweep["test"])) for sweep in sweeps]
        mean = float(np.mean([np.mean(sweep["test"]) for sweep in sweeps]))
        lines.append(
            f"| {TOLD.get(name, name)} | {still} of {len(sweeps)} | {np.mean(changed):.1%} | "
            f"{mean:+.4f} | {np.mean(spreads):.4f} | {max(spreads):.4f} |"
        )
    return [*lines, ""]


def _format_cells(cells: Cells) -> list[str]:
    names: Sequence[str] = [*FIXED, *(name for name in CHOOSING if name != "auto")]
    lines = [
        "## Every cell",
        "",
        "MAP@K of raw on the test rows, then gains over it. `auto` with what it chose.",
        "",
        "| cell | rows | raw | " + " | ".join(TOLD[name] for name in names) + " | `auto` | chose |",
        "|---" * (len(names) + 5) + "|",
    ]
    for key, cell in cells.items():
        entries = [f"{cell['contenders'][name]['difference']:+.4f}" for name in names]
        auto = cell["contenders"]["auto"]
        value = f"{auto['difference']:+.4f}"
        value = f"**{value}**" if auto["difference"] < -HARM else value
        lines.append(
            f"| {key} | {cell['n_rows']:,} | {cell['raw']['test']:.4f} | "
            + " | ".join(entries)
            + f" | {value} | {auto['chosen']} |"
        )
    return lines
