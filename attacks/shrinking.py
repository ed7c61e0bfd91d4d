"""Files that are cut, written over, grown, replaced or removed while they are read."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attacks.child import Attempt, refused, try_in_child
from attacks.mutation import draw
from attacks.outcome import Outcome

TITLE = "Files cut, written over, grown, replaced or removed while they are read"
SLICE = 150
FULL = 6_000
ROWS, LABELS = 900, 5


def attack(count: int, seed: int) -> Outcome:
    """Read while files change; the answer is that of one whole file, or is refused."""
    return try_in_child("attacks.shrinking", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """Blocks are small, so that a change can come between any two."""
    import oddslip.sources.base as base
    from oddslip.sources import csv, open_source

    base.BLOCK_BYTES, csv.BLOCK_BYTES = 2048, 2048
    first = np.random.default_rng(0).random((ROWS, LABELS))
    second = 1 - first
    truths = [(cells > 0.7).astype(np.int8) for cells in (first, second)]

    def attempt(number: int) -> str:
        dice = draw(seed, number)
        for old in folder.glob("data*"):
            old.unlink()
        name, write = dice.choice(sorted(_FORMS.items()))
        path = folder / f"data{name}"
        is_truth = name in (".npy", ".f.npy", ".npz") and dice.random() < 0.4
        wholes = truths if is_truth else [first, second]
        write(path, wholes[0])
        read: list[Any] = []

        def work() -> None:
            if is_truth:
                source = open_source(first, path)
                _change(dice, path, write, wholes[1])
                read.append(source.positives().places(LABELS))
                return
            source = open_source(path)
            when = dice.randrange(12)
            cells = []
            for at, block in enumerate(source.blocks()):
                if at == when:
                    _change(dice, path, write, wholes[1])
                cells.append(np.array(block.scores))
            read.append(np.concatenate(cells))

        if refused(work):
            return "refused"
        wanted = [np.flatnonzero(each) if is_truth else each for each in wholes]
        if not any(np.array_equal(read[0], each) for each in wanted):
            raise AssertionError(f"{name} gave cells of no file that ever was there")
        return "read as it was"

    return attempt


def _write_table(path: Path, cells: Any) -> None:
    import pandas as pd

    frame = pd.DataFrame(cells, columns=[f"label {j}" for j in range(LABELS)])
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, row_group_size=100)


def _write_columns(path: Path, cells: Any) -> None:
    np.save(path, np.asfortranarray(cells))


def _write_npz(path: Path, cells: Any) -> None:
    np.savez(path, cells=cells)


_FORMS: dict[str, Callable[[Path, Any], None]] = {
    ".npy": np.save,
    ".f.npy": _write_columns,
    ".npz": _write_npz,
    ".parquet": _write_table,
    ".csv": _write_table,
}


def _change(
    dice: random.Random, path: Path, write: Callable[[Path, Any], None], other: Any
) -> None:
    """What a nightly job may do to a file that somebody reads."""
    beside = path.with_name(f"data-new{''.join(path.suffixes)}")
    what = dice.randrange(7)
    if what == 0:
        os.truncate(path, dice.randrange(path.stat().st_size))
    elif what == 1:
        write(path, other)
    elif what == 2:
        write(path, other[: dice.randrange(1, ROWS)])
    elif what == 3:
        write(path, np.concatenate([other, other]))
    elif what == 4:
        write(beside, other)
        os.replace(beside, path)
    elif what == 5:
        path.unlink()
    else:
        with path.open("r+b") as file:
            file.seek(dice.randrange(path.stat().st_size))
            file.write(dice.randbytes(64))
    if path.exists() and what != 4:
        # The clock of a disk may stand still for some milliseconds; not for longer.
        os.utime(path, ns=(0, dice.randrange(1, 10**9)))
