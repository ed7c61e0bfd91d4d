"""What a careful protocol changes: cells of the `clean` protocol beside those of `paper`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oddslip.studies.mulan_paper import TABLE_2
from oddslip.studies.mulan_regularities import DEFAULT, Cells

RUNGS = ("raw", "isotonic", "inversion", "ceiling")  # told beside one another

Pair = tuple[Mapping[str, Any], Mapping[str, Any]]


def tell_protocols(cells: Cells, careful: Cells) -> list[str]:
    """The section of the page, as lines of Markdown; empty without a common data set."""
    both = list(_both(cells, careful))
    if not both:
        return []
    return [
        "## What a careful protocol changes",
        "",
        "`--protocol clean` reads all 19 bird labels (the paper's reader finds 15) and scales both",
        "files by the fitted rows, not each file by its own rows. Default LightGBM, MAP@K,",
        "`paper` → `clean`.",
        "",
        "| data set | labels | w=1 raw | " + " | ".join(f"w=r {r}" for r in RUNGS) + " | loss |",
        "|---" * (len(RUNGS) + 4) + "|",
        *(_row(*item, cells, careful) for item in both),
        "",
        *_summary(both),
        "",
    ]


def _both(cells: Cells, careful: Cells) -> Iterator[tuple[str, Pair, Pair]]:
    """Data set, and its two cells under each protocol, where all four are finished."""
    for data in TABLE_2:
        found = [
            cell
            for some in (cells, careful)
            for weight in ("1", "r")
            if data in some and (cell := some.get(f"{data}-{DEFAULT}-{weight}")) is not None
        ]
        if len(found) == 4:
            yield data, (found[0], found[1]), (found[2], found[3])


def _row(data: str, ours: Pair, clean: Pair, cells: Cells, careful: Cells) -> str:
    labels = [some[data]["n_labels"] for some in (cells, careful)]
    shown = [
        str(labels[0]) if labels[0] == labels[1] else f"{labels[0]} → {labels[1]}",
        f"{ours[0]['map']['raw']:.3f} → {clean[0]['map']['raw']:.3f}",
        *(f"{ours[1]['map'][r]:.3f} → {clean[1]['map'][r]:.3f}" for r in RUNGS),
        f"{_loss(ours):+.3f} → {_loss(clean):+.3f}",
    ]
    return f"| {data} | " + " | ".join(shown) + " |"


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
    told = f"{changes[largest]:+.3f} ({largest}); mean {mean:+.3f}"
    yield f"- Largest change of raw or isotonic: {told}."
    told = ", ".join(flipped) or "no data set"
    yield f"- The weight's effect on raw changes its sign on {told}."


def _loss(pair: Pair) -> float:
    return float(pair[0]["map"]["raw"] - pair[1]["map"]["raw"])
