"""The regularities of the paper's section 4, computed from finished cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from oddslip.studies import mulan_paper as paper
from oddslip.studies.mulan_arms import LEARNERS
from oddslip.studies.mulan_paper import TABLE_2

Cells = Mapping[str, Mapping[str, Any]]
DEFAULT = "lightgbm"
MANY_LABELS = ("delicious", "corel5k")
CHOSEN_ON = ("emotions", "birds", "medical", "enron", "corel5k")  # constants of the default rule
RULES_TOLD = ("tau 0", "paper", "auto")


@dataclass(frozen=True, slots=True)
class Finding:
    """A number of section 4: what it is, ours, and the paper's. ``of`` cells were there."""

    what: str
    ours: str
    paper: str
    of: str


def find_regularities(cells: Cells) -> list[Finding]:
    """Every number of section 4 that the finished cells allow."""
    return [
        *_collapses(cells),
        *_gaps(cells),
        *_modest(cells),
        *_what_if(cells),
        *_coarse_leaves(cells),
        *_choices(cells),
    ]


def pairs(cells: Cells) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
    """Data set, learner, unweighted cell and weighted cell, where both are finished."""
    for data in TABLE_2:
        for learner in LEARNERS:
            plain, weighted = (cells.get(f"{data}-{learner}-{w}") for w in ("1", "r"))
            if plain is not None and weighted is not None:
                yield data, learner, plain, weighted


def _collapses(cells: Cells) -> Iterator[Finding]:
    kept = {
        (data, learner): weighted["map"]["raw"] / plain["map"]["raw"]
        for data, learner, plain, weighted in pairs(cells)
    }
    of = f"{len(kept)} of 55 cells"
    for threshold, printed in paper.COLLAPSES.items():
        count = sum(share < threshold for share in kept.values())
        what = f"(i) cells at w = r that keep less than {threshold} of their unweighted MAP"
        yield Finding(what, str(count), str(printed), of)
    for data, printed in paper.COLLAPSED.items():
        names = [learner for (name, learner), share in kept.items() if name == data and share < 0.5]
        shown = f"{len(names)}" + (f" ({', '.join(names)})" if names else "")
        there = sum(name == data for name, _ in kept)
        yield Finding(
            f"(i) learners that collapse on {data}", shown, str(printed), f"{there} of 5 learners"
        )


def _gaps(cells: Cells) -> Iterator[Finding]:
    many = [item for item in pairs(cells) if item[0] in MANY_LABELS]
    if not many:
        return
    of = f"{len(many)} of 10 cells"
    repaired = [plain["map"]["raw"] - w["map"]["isotonic"] for _, _, plain, w in many]
    pooled = [plain["map"]["raw"] - w["map"]["pooled"] for _, _, plain, w in many]
    yield Finding(
        "(i) delicious and Corel5k: largest gap of the repaired to the unweighted model",
        f"{max(repaired):.3f}", f"{paper.LARGEST_REPAIRED_GAP}", of,
    )  # fmt: skip
    yield Finding(
        "(i) delicious and Corel5k: smallest gap of the pooled map to the unweighted model",
        f"{min(pooled):.3f}", f"{paper.SMALLEST_POOLED_GAP}", of,
    )  # fmt: skip


def _modest(cells: Cells) -> Iterator[Finding]:
    changes = [
        (learner, weighted["map"]["raw"] - plain["map"]["raw"])
        for data, learner, plain, weighted in pairs(cells)
        if float(TABLE_2[data]["max_r"]) < 100
    ]
    for what, printed, wanted in (
        ("default LightGBM", paper.MODEST_DEFAULT, (DEFAULT,)),
        ("all learners", paper.MODEST_ALL, tuple(LEARNERS)),
    ):
        found = [change for learner, change in changes if learner in wanted]
        if found:
            yield Finding(
                f"(ii) change at w = r where max r < 100, {what}",
                f"{min(found):+.3f} to {max(found):+.3f}",
                f"{printed[0]:+.3f} to {printed[1]:+.3f}",
                f"{len(found)} of {4 * len(wanted)} cells",
            )


def _what_if(cells: Cells) -> Iterator[Finding]:
    gaps = [
        abs(w["map"]["what-if"] - w["map"]["raw"]) for _, lr, _, w in pairs(cells) if lr == DEFAULT
    ]
    if gaps:
        yield Finding(
            "(iii) data sets whose what-if is within 0.03 of the trained model, default LightGBM",
            str(sum(gap < 0.03 for gap in gaps)), str(paper.WHAT_IF_CLOSE),
            f"{len(gaps)} of 11 data sets",
        )  # fmt: skip


def _coarse_leaves(cells: Cells) -> Iterator[Finding]:
    found = [cells.get(f"medical-lightgbm-regularised-{w}") for w in ("1", "10r")]
    if found[0] is not None and found[1] is not None:
        first, last = (cell["distinct"] for cell in found if cell is not None)
        saturated = found[1]["saturated_share"]
        yield Finding(
            "(iv) medical, strongly regularised: distinct scores per label, w = 1 and 10 r",
            f"{first:.0f} and {last:.1f} ({saturated:.2%} saturated)",
            f"{paper.MEDICAL_DISTINCT[0]} and {paper.MEDICAL_DISTINCT[1]} (0.00% saturated)",
            "chosen parameters, not the paper's",
        )


def _choices(cells: Cells) -> Iterator[Finding]:
    found = {
        key.removesuffix("-choices"): cell
        for key, cell in cells.items()
        if key.endswith("-choices")
    }
    tuned = {key: cell for key, cell in found.items() if key.split("-")[0] in CHOSEN_ON}
    apart = {key: cell for key, cell in found.items() if key not in tuned}
    for group, some, all_of in (
        ("all data sets", found, 110),
        ("the five the default rule was chosen on", tuned, 50),
        ("the other six", apart, 60),
    ):
        for rule in RULES_TOLD if some else ():
            yield _told_choice(group, some, rule, all_of)


def _told_choice(group: str, some: dict[str, Any], rule: str, all_of: int) -> Finding:
    differences = {key: cell[rule]["difference"] for key, cell in some.items()}
    below = sum(difference < -0.01 for difference in differences.values())
    surely = sum(cell[rule]["high"] < 0 for cell in some.values())
    worst = min(differences, key=lambda key: differences[key])
    mean = sum(differences.values()) / len(differences)
    printed = "-"
    if all_of == 110 and rule in paper.BELOW_RAW:
        printed = f"{paper.BELOW_RAW[rule]} below"
        printed += f", worst {paper.WORST_BELOW_RAW:+.3f}" if rule == "paper" else ""
    return Finding(
        f"selection, {group}, rule {rule}: cells more than 0.01 below raw",
        f"{below} below ({surely} with an interval below 0), worst {differences[worst]:+.3f} "
        f"({worst}), mean gain {mean:+.4f}",
        printed,
        f"{len(some)} of {all_of} cells",
    )
