"""Two sources over the same cells, read side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oddslip.errors import InvalidInput
from oddslip.panels import Kind, Panel
from oddslip.sources import Source, open_source


def pair_blocks(one: Source, other: Source) -> Iterator[tuple[Panel, Panel]]:
    """Blocks of the same rows of both, whatever blocks either source cuts."""
    left, right = iter(one.blocks()), iter(other.blocks())
    a, b = next(left, None), next(right, None)
    while a is not None and b is not None:
        rows = min(a.n_rows, b.n_rows)
        yield a.rows(0, rows), b.rows(0, rows)
        a = a.rows(rows, a.n_rows) if rows < a.n_rows else next(left, None)
        b = b.rows(rows, b.n_rows) if rows < b.n_rows else next(right, None)


def open_twin(scores: Any, kind: Kind | None, arm: Source) -> Source:
    """Open scores of the same kind as another arm, unless they say or bring their own."""
    if kind is None and not isinstance(scores, Panel | Source):
        kind = arm.kind
    return open_source(scores, kind=kind)


def check_pair(one: Source, other: Source, what: str) -> None:
    """Refuse two sources that are not over the same cells."""
    shapes = (one.n_rows, one.n_labels), (other.n_rows, other.n_labels)
    if shapes[0] != shapes[1]:
        raise InvalidInput(f"{what} must have the same shape, got {shapes[0]} and {shapes[1]}.")
    names = one.label_names, other.label_names
    if None not in names and names[0] != names[1]:
        raise InvalidInput(
            f"{what} must have the same labels in the same order. Reorder the columns of one."
        )
