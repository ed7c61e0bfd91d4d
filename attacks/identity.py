"""Scores and labels whose rows and columns come in any order, under names or without.

Names decide; a side without names has its numbers; what cannot be matched is refused. The oracle
lines both sides up by hand. An answer must be the oracle's, or a refusal: never another number.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attacks.child import Attempt, refused, try_in_child
from attacks.mutation import draw
from attacks.outcome import Outcome

TITLE = "Rows and columns in any order, under names or without, in any container"
SLICE = 250
FULL = 8_000
ROWS, LABELS, K = 12, 5, 2
ID_FORMS = ("none", "text", "numbering", "other numbers")
NAME_FORMS = ("none", "text", "numbering")
# Which containers can hold ids of rows, and names of labels.
WITHOUT_IDS = ("array", "sparse", "lists")
WITHOUT_NAMES = ("array", "sparse", "lists")
SCORES = ("array", "pandas", "polars", "parquet", "csv", "long")
TRUTHS = ("array", "pandas", "polars", "parquet", "csv", "sparse", "lists")
Names = list[Any] | None


class Side(NamedTuple):
    """A table as a user has it: its cells in some order, and what it says of that order."""

    container: str
    cells: NDArray[Any]
    ids: Names
    names: Names


def attack(count: int, seed: int) -> Outcome:
    """Evaluate pairs of tables, and compare with the oracle."""
    return try_in_child("attacks.identity", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """Scores and truth are fixed; order, names and containers are drawn."""
    import oddslip

    rng = np.random.default_rng(0)
    scores = rng.random((ROWS, LABELS))
    truth = (rng.random((ROWS, LABELS)) < 0.4).astype(np.int8)
    told: dict[str, Any] = {"k": K, "n_replicates": 0, "threads": 1}

    def attempt(number: int) -> str:
        dice = draw(seed, number)
        given = _draw_side(dice, scores, SCORES)
        true = _draw_side(dice, truth, TRUTHS)
        aligned = _align(given, true)
        answer: list[Any] = []

        def work() -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that rows were matched by number
                named: dict[str, Any] = {}
                if given.container == "array" and given.ids is not None:
                    named["row_ids"] = given.ids
                source = oddslip.open_source(
                    _hold(given, folder / "scores", as_truth=False),
                    _hold(true, folder / "labels", as_truth=True),
                    **named,
                )
                answer.append(oddslip.evaluate(source, **told))

        if refused(work):
            return "refused" if aligned is None else "refused, though names would match"
        about = f"{_about(given)} and {_about(true)}"
        if aligned is None:
            raise AssertionError(f"{about} cannot be matched, and gave a number")
        wanted = oddslip.evaluate(given.cells, aligned, **told)
        for name in ("map", "precision", "recall", "ndcg"):
            if abs(answer[0][name].value - wanted[name].value) > 1e-12:
                raise AssertionError(
                    f"{about}: {name} is {answer[0][name].value}, not {wanted[name].value}"
                )
        return "as the oracle"

    return attempt


def _about(side: Side) -> str:
    return f"{side.container} (ids {_form(side.ids)}, names {_form(side.names)})"


def _form(names: Names) -> str:
    return "none" if names is None else ",".join(map(str, names[:3]))


def _draw_side(dice: random.Random, cells: NDArray[Any], containers: Sequence[str]) -> Side:
    container = dice.choice(containers)
    rows, columns = list(range(ROWS)), list(range(LABELS))
    if dice.random() < 0.7:
        dice.shuffle(rows)
    if dice.random() < 0.7:
        dice.shuffle(columns)
    ids, names = dice.choice(ID_FORMS), dice.choice(NAME_FORMS)
    is_truth = cells.dtype.kind == "i"
    if container in WITHOUT_IDS and (is_truth or container != "array"):
        ids = "none"
    if container in WITHOUT_NAMES:
        names = "none"
    if container in ("polars", "parquet", "csv") and names == "none":
        names = "text"  # their columns have names
    if container == "long":
        ids = "numbering" if ids == "none" else ids
        names = "text" if names == "none" else names
    return Side(
        container,
        cells[np.ix_(rows, columns)],
        _name(ids, rows, "u"),
        _name(names, columns, "label "),
    )


def _name(form: str, places: list[int], prefix: str) -> Names:
    if form == "none":
        return None
    if form == "text":
        return [f"{prefix}{place}" for place in places]
    is_column = prefix == "label "
    numbers = places if form == "numbering" else [1000 + place for place in places]
    return [str(number) for number in numbers] if is_column else numbers


def _align(scores: Side, truth: Side) -> NDArray[Any] | None:
    """Truth in the order of the scores, by the rule; None where it has to be refused."""
    both = scores.container == "array" and truth.ids is None  # `row_ids=` names rows of both
    rows = _match(None if both else scores.ids, truth.ids, ROWS)
    columns = _match_columns(scores, truth)
    return None if rows is None or columns is None else truth.cells[np.ix_(rows, columns)]


def _match(ours: Names, theirs: Names, n: int) -> list[int] | None:
    one = list(range(n)) if ours is None else ours
    two = list(range(n)) if theirs is None else theirs
    if set(one) != set(two):
        return None
    return [two.index(name) for name in one]


def _match_columns(scores: Side, truth: Side) -> list[int] | None:
    ours, theirs = scores.names, truth.names
    if (ours is None) == (theirs is None):
        return _match(ours, theirs, LABELS)
    named = ours if theirs is None else theirs
    assert named is not None
    if set(named) == set(map(str, range(LABELS))):
        numbers = [str(j) for j in range(LABELS)]
        return _match(ours or numbers, theirs or numbers, LABELS)
    if scores.container == "long":
        return None  # its labels come in an order that nobody saw
    return list(range(LABELS))


def _hold(side: Side, path: Path, *, as_truth: bool) -> Any:
    """The table in its container."""
    import pandas as pd
    from scipy import sparse

    if side.container == "array":
        return side.cells
    if side.container == "sparse":
        return sparse.csr_array(side.cells)
    if side.container == "lists":
        return [np.flatnonzero(row).tolist() for row in side.cells]
    if side.container == "long":
        return _write_long(side, path.with_suffix(".parquet"))
    frame = pd.DataFrame(side.cells, index=side.ids, columns=side.names)
    if side.container == "pandas":
        return frame
    if side.ids is not None:
        frame.insert(0, "row_id", side.ids)
    frame = frame.reset_index(drop=True)
    if side.container == "polars":
        import polars as pl

        return pl.DataFrame({str(name): frame[name].to_numpy() for name in frame.columns})
    if side.container == "csv":
        frame.to_csv(path.with_suffix(".csv"), index=False)
        return path.with_suffix(".csv")
    if as_truth:
        cells = [name for name in frame.columns if name != "row_id"]
        frame = frame.astype(dict.fromkeys(cells, np.int8))
    frame.to_parquet(path.with_suffix(".parquet"), index=False)
    return path.with_suffix(".parquet")


def _write_long(side: Side, path: Path) -> Path:
    import pandas as pd

    assert side.ids is not None
    assert side.names is not None
    lines = [
        (name, label, side.cells[row, column])
        for row, name in enumerate(side.ids)
        for column, label in enumerate(side.names)
    ]
    pd.DataFrame(lines, columns=["row", "label", "score"]).to_parquet(path, index=False)
    return path
