"""The journal and the unfinished file of a scoring that was killed, changed before it goes on."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from attacks.child import Attempt, refused, try_in_child
from attacks.model_files import make_rows
from attacks.mutation import draw, mutate_bytes, mutate_json
from attacks.outcome import Outcome

TITLE = "Journals and unfinished files of scorings, changed and resealed"
SLICE = 300
FULL = 20_000
ROWS_IN_BLOCK = 10


class _KilledError(Exception):
    """What ends a scoring after some blocks."""


def attack(count: int, seed: int) -> Outcome:
    """Go on from what was changed; it is refused, or the scores are those of a scoring at once."""
    return try_in_child("attacks.journals", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """Every second try leaves the checksums as they were."""
    from oddslip.learners import OneVsRest, score_to_file, scoring

    X, Y = make_rows()
    X = X[:60]
    model = OneVsRest("logistic", threads=1).fit(*make_rows())
    scoring._BLOCK_BYTES = 8 * Y.shape[1] * ROWS_IN_BLOCK
    path = folder / "scores.npy"
    score_to_file(model, X, path, threads=1)
    whole = path.read_bytes()
    path.unlink()
    kept = _kill(scoring, lambda: score_to_file(model, X, path, threads=1), folder)

    def attempt(number: int) -> str:
        dice = draw(seed, number)
        for old in folder.glob(".scores*"):
            old.unlink()
        path.unlink(missing_ok=True)
        files, sealed = dict(kept), number % 2 == 1
        if sealed:
            _reseal(files, dice)
        else:
            name = dice.choice(sorted(files))
            files[name] = mutate_bytes(files[name], dice)
        for name, raw in files.items():
            (folder / name).write_bytes(raw)
        if refused(lambda: score_to_file(model, X, path, threads=1)):
            return "refused" if sealed else "refused unsealed"
        scores = np.load(path)
        if scores.shape != (len(X), Y.shape[1]) or scores.dtype != np.float32:
            raise AssertionError(f"scores must have the model's shape, got {scores.shape}")
        if not sealed and path.read_bytes() != whole:
            raise AssertionError("a scoring whose checksums are wrong went on with other scores")
        if list(folder.glob(".scores*")):
            raise AssertionError("a scoring that is done must leave nothing behind")
        return "went on" if sealed else "went on unsealed, same scores"

    return attempt


def _kill(scoring: Any, score: Any, folder: Path) -> dict[str, bytes]:
    """What a scoring leaves that ends after three blocks of six."""
    write, written = scoring.ResumableScores._write, []

    def stop(self: Any, start: int, cells: Any) -> None:
        if len(written) == 3:
            raise _KilledError
        written.append(start)
        write(self, start, cells)

    scoring.ResumableScores._write = stop
    try:
        score()
    except _KilledError:
        pass
    finally:
        scoring.ResumableScores._write = write
    kept = {path.name: path.read_bytes() for path in folder.glob(".scores*")}
    assert len(kept) == 2, sorted(kept)
    return {name: raw for name, raw in kept.items() if not name.endswith(".lock")}


def _reseal(files: dict[str, bytes], dice: random.Random) -> None:
    """Change cells and say so in the journal, or change what the journal says."""
    journal = next(name for name in files if name.endswith(".journal"))
    part = next(name for name in files if name.endswith(".unfinished"))
    head, *lines = files[journal].decode().split("\n")
    if dice.random() < 0.3:
        head = json.dumps(mutate_json(json.loads(head), dice))
    elif dice.random() < 0.3:
        at = dice.randrange(len(lines))
        lines[at] = dice.choice(("0", "-10 x", "9" * 30, "10 " + "0" * 64, "", "x y z", "10", "\0"))
    else:
        raw = files[part]
        cells = len(raw) - 60 * 3 * 4
        files[part] = raw[:cells] + mutate_bytes(raw[cells:], dice)
        width = 3 * 4 * ROWS_IN_BLOCK
        for at, line in enumerate(lines):
            if line:
                start = int(line.split(" ")[0])
                first = cells + start // ROWS_IN_BLOCK * width
                block = files[part][first : first + width]
                lines[at] = f"{start} {hashlib.sha256(block).hexdigest()}"
    files[journal] = "\n".join([head, *lines]).encode()
